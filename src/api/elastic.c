/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* elastic.c - the public functions of quire/elastic.h: each checks its arguments and calls the
   core. */
#include "quire/elastic.h"

#include "src/api/check.h"
#include "src/core/deferred/deferred_unback.h"
#include "src/core/page/lazy.h"

/* Only elastic memories have lazy allocations. */
static quire_result check(const char *call, const quire_memory *memory, const quire_view *ranges,
                          uint64_t count)
{
    if (!memory || (count && !ranges))
        return qi_fail_null(call, !memory ? "memory" : "ranges");
    return memory->is_elastic ? QUIRE_SUCCESS
                              : qi_fail_naming(QUIRE_ERROR_UNSUPPORTED,
                                               "memory '%t' is not elastic: it has no lazy "
                                               "allocations",
                                               memory->name, 0);
}

quire_result quire_back_range(quire_memory *memory, const quire_view *ranges, uint64_t count)
{
    quire_result result = check("quire_back_range", memory, ranges, count);
    return result ? result : qi_back_or_collect(memory, ranges, count);
}

quire_result quire_unback_range(quire_memory *memory, const quire_view *ranges, uint64_t count,
                                const quire_point *after)
{
    quire_result result = check("quire_unback_range", memory, ranges, count);
    if (result)
        return result;
    if (!after || !after->stream || qi_stream_has_passed(after->stream, after->value))
        return qi_lazy_unback(memory, ranges, count);
    result = qi_stream_check_point(after);
    return result ? result : qi_unback_after(memory, ranges, count, after->stream, after->value);
}
