/*
 * fallback.c - the two rounds over a list of memories (see fallback.h).
 */
#include "src/core/allocate/fallback.h"

#include "src/base/result.h"

quire_result qi_fallback_check(quire_memory *const *memories, uint32_t count, const void *options,
                               uint32_t *chosen, const void *made)
{
    bool is_null = !memories || !options || !chosen || !made;
    if (chosen)
        *chosen = 0;
    for (uint32_t i = 0; i < count && !is_null; i++)
        is_null = !memories[i];
    if (is_null)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "fallback: memories, one of them, options, chosen or the handle is null");
    if (!count)
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
        quire_result result = fallback->make(fallback->work, fallback->memories[i], is_unaided);
        if (!result)
            *chosen = i;
        if (!result || result == QUIRE_ERROR_INVALID_ARGUMENT)
            return result;
        if (!i)
            qi_error_save(error);
    }
    return error->code;
}

quire_result qi_fallback_run(const qi_fallback *fallback, uint32_t *chosen)
{
    *chosen = 0;
    qi_error before, error;
    qi_error_save(&before);
    quire_result result = try_all(fallback, true, chosen, &error);
    if (result && result != QUIRE_ERROR_INVALID_ARGUMENT)
        result = try_all(fallback, false, chosen, &error);
    if (result != QUIRE_ERROR_INVALID_ARGUMENT) /* its text is the thread's last error already */
        qi_error_restore(result ? &error : &before);
    return result;
}
