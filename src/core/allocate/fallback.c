/*
 * fallback.c - the two rounds over a list of memories (see fallback.h).
 */
#include "src/core/allocate/fallback.h"

#include "src/base/result.h"

/* The callers pass unchecked pointers, so that all three public functions report the same text. */
static quire_result check(const qi_fallback *fallback, const uint32_t *chosen)
{
    bool is_null = !fallback->memories || !fallback->options || !chosen || !fallback->made;
    for (uint32_t i = 0; i < fallback->count && !is_null; i++)
        is_null = !fallback->memories[i];
    if (is_null)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "fallback: memories, one of them, options, chosen or the handle is null");
    if (!fallback->count)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "fallback: the list of memories is empty");
    return QUIRE_SUCCESS;
}

/* One round over the memories. Sets *error to the error of the first memory, if it fails. */
static quire_result try_all(const qi_fallback *fallback, bool is_unaided, uint32_t *chosen,
                            qi_error *error)
{
    for (uint32_t i = 0; i < fallback->count; i++) {
        if (!is_unaided && !fallback->memories[i]->on_out_of_memory.callback)
            continue; /* the first round was its only attempt */
        quire_result result = fallback->make(fallback, fallback->memories[i], is_unaided);
        if (!result)
            *chosen = i;
        if (!result || result == QUIRE_ERROR_INVALID_ARGUMENT)
            return result;
        if (!i)
            *error = qi_error_save();
    }
    return error->code;
}

quire_result qi_fallback_run(const qi_fallback *fallback, uint32_t *chosen)
{
    if (chosen)
        *chosen = 0;
    quire_result result = check(fallback, chosen);
    if (result)
        return result;
    qi_error before = qi_error_save(), error;
    result = try_all(fallback, true, chosen, &error);
    if (result && result != QUIRE_ERROR_INVALID_ARGUMENT)
        result = try_all(fallback, false, chosen, &error);
    if (result != QUIRE_ERROR_INVALID_ARGUMENT) /* its text is the thread's last error already */
        qi_error_restore(result ? &error : &before);
    return result;
}
