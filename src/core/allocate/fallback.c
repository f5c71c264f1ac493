/*
 * fallback.c - the two rounds over a list of memories (see fallback.h).
 */
#include "src/core/allocate/fallback.h"

#include "src/base/result.h"

quire_result qi_fallback_check(const char *call, quire_memory *const *memories, uint32_t count,
                               const void *options, uint32_t *chosen, const void *made)
{
    if (chosen)
        *chosen = 0;
    if (!memories || !options || !chosen || !made)
        return qi_fail_null(call, !memories  ? "memories"
                                  : !options ? "options"
                                  : !chosen  ? "chosen"
                                             : "the output for the handle");
    for (uint32_t i = 0; i < count; i++)
        if (!memories[i])
            return qi_fail_naming(QUIRE_ERROR_INVALID_ARGUMENT, "%t: memories[%u] is null", call,
                                  i);
    return count ? QUIRE_SUCCESS
                 : qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT, "%s: the list of memories is empty",
                                call);
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
