/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* elastic.c - the public functions of quire/elastic.h: each checks its arguments and calls the
   core. */
#include "quire/elastic.h"

#include "src/api/check.h"
#include "src/core/compact/evict.h"
#include "src/core/copy/sleep.h"
#include "src/core/deferred/deferred_unback.h"
#include "src/core/page/lazy.h"

/* Whether there is nothing to wait for. */
static bool has_passed(const quire_point *after)
{
    return !after || !after->stream || qi_stream_has_passed(after->stream, after->value);
}

static quire_result check_elastic(const quire_memory *memory, const char *what)
{
    if (memory->is_elastic)
        return QUIRE_SUCCESS;
    return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "memory '%s' is not elastic: %s", memory->name,
                        what);
}

/* Only elastic memories have lazy allocations. */
static quire_result check(const char *call, const quire_memory *memory, const quire_view *ranges,
                          uint64_t count)
{
    if (!memory || (count && !ranges))
        return qi_fail_null(call, !memory ? "memory" : "ranges");
    return check_elastic(memory, "it has no lazy allocations");
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
    if (has_passed(after))
        return qi_lazy_unback(memory, ranges, count);
    result = qi_stream_check_point(after);
    return result ? result : qi_unback_after(memory, ranges, count, after->stream, after->value);
}

/* ---- sleep ------------------------------------------------------------------------------- */

static quire_result await(const quire_point *after)
{
    if (has_passed(after))
        return QUIRE_SUCCESS;
    quire_result result = qi_stream_check_point(after);
    return result ? result : qi_stream_await(after->stream, after->value, UINT64_MAX);
}

quire_result quire_memory_sleep(quire_memory *memory, const char *prefix, quire_sleep_mode mode,
                                const quire_point *after, uint64_t *bytes)
{
    uint64_t freed = 0;
    if (!memory)
        return qi_fail_null("quire_memory_sleep", "memory");
    quire_result result = check_sleep_mode("quire_memory_sleep", mode);
    if (!result)
        result = check_elastic(memory, "its allocations cannot sleep");
    if (!result)
        result = await(after);
    if (!result)
        result = qi_memory_sleep(memory, prefix, mode == QUIRE_SLEEP_DISCARD, &freed);
    if (bytes)
        *bytes = freed;
    return result;
}

quire_result quire_memory_wake(quire_memory *memory, const char *prefix, uint64_t *bytes)
{
    uint64_t got = 0;
    if (!memory)
        return qi_fail_null("quire_memory_wake", "memory");
    quire_result result = memory->is_elastic ? qi_memory_wake(memory, prefix, &got)
                                             : qi_wake_named(memory, prefix, &got);
    if (bytes)
        *bytes = got;
    return result;
}
