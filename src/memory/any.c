/*
 * any.c - see any.h.
 */
#include "src/memory/any.h"

#include "src/base/result.h"

static quire_result check(const qi_any *any, const uint32_t *chosen)
{
    bool is_null = !any->memories || !any->options || !chosen || !any->made;
    for (uint32_t i = 0; i < any->count && !is_null; i++)
        is_null = !any->memories[i];
    if (is_null)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "any of several memories: memories, one of "
                                                     "them, options, chosen or the handle is null");
    if (!any->count)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "any of several memories: there are no memories");
    return QUIRE_SUCCESS;
}

/* One round over the memories; *error is the last refusal of the first one. */
static quire_result try_all(const qi_any *any, bool is_unaided, uint32_t *chosen, qi_error *error)
{
    for (uint32_t i = 0; i < any->count; i++) {
        if (!is_unaided && !any->memories[i]->on_shortage.freed)
            continue; /* it has done what it can */
        quire_result result = any->make(any, any->memories[i], is_unaided);
        if (!result)
            *chosen = i;
        if (!result || result == QUIRE_ERROR_INVALID_ARGUMENT)
            return result;
        if (!i)
            *error = qi_error_save();
    }
    return error->code;
}

quire_result qi_any_make(const qi_any *any, uint32_t *chosen)
{
    if (chosen)
        *chosen = 0;
    quire_result result = check(any, chosen);
    if (result)
        return result;
    qi_error before = qi_error_save(), error;
    result = try_all(any, true, chosen, &error);
    if (result && result != QUIRE_ERROR_INVALID_ARGUMENT)
        result = try_all(any, false, chosen, &error);
    if (result != QUIRE_ERROR_INVALID_ARGUMENT) /* whose sentence is the last error */
        qi_error_restore(result ? &error : &before);
    return result;
}
