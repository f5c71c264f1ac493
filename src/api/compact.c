/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* compact.c - the public functions of quire/compact.h: each checks its arguments and calls the
   core. */
#include "quire/compact.h"

#include "src/api/check.h"
#include "src/core/compact/compact.h"
#include "src/core/deferred/stream.h"

quire_result quire_compact_estimate(const quire_memory *memory, quire_compact_stats *stats)
{
    if (stats)
        *stats = (quire_compact_stats){.moves = 0};
    if (!memory || !stats)
        return qi_fail_null("quire_compact_estimate", !memory ? "memory" : "stats");
    return qi_compact_estimate(qi_memory_queried(memory), stats);
}

quire_result quire_compact_begin(quire_memory *memory, quire_compaction **compaction)
{
    if (compaction)
        *compaction = NULL;
    if (!memory || !compaction)
        return qi_fail_null("quire_compact_begin", !memory ? "memory" : "compaction");
    return qi_compact_begin(memory, compaction);
}

quire_result quire_compact_step(quire_compaction *compaction, const quire_compact_limits *limits,
                                quire_compact_stats *stats)
{
    quire_compact_stats ignored;
    quire_result result =
        !compaction ? qi_fail_null("quire_compact_step", "compaction")
                    : (limits ? qi_check_unused(limits, "quire_compact_limits") : QUIRE_SUCCESS);
    if (stats)
        *stats = (quire_compact_stats){.moves = 0};
    return result ? result : qi_compact_step(compaction, limits, stats ? stats : &ignored);
}

quire_result quire_compact_step_on_stream(quire_compaction *compaction,
                                          const quire_compact_limits *limits, quire_stream *stream,
                                          quire_compact_stats *stats)
{
    quire_compact_stats ignored;
    if (stats)
        *stats = (quire_compact_stats){.moves = 0};
    if (!compaction || !stream)
        return qi_fail_null("quire_compact_step_on_stream", !compaction ? "compaction" : "stream");
    quire_result result = limits ? qi_check_unused(limits, "quire_compact_limits") : QUIRE_SUCCESS;
    return result ? result
                  : qi_compact_step_on_stream(compaction, limits, stream, stats ? stats : &ignored);
}

static quire_result check_offer(const quire_compaction *compaction,
                                const quire_compact_limits *limits, const quire_compact_move *moves,
                                uint64_t room)
{
    if (!compaction || (room && !moves))
        return qi_fail_null("quire_compact_offer", !compaction ? "compaction" : "moves");
    return limits ? qi_check_unused(limits, "quire_compact_limits") : QUIRE_SUCCESS;
}

quire_result quire_compact_offer(quire_compaction *compaction, const quire_compact_limits *limits,
                                 quire_compact_move *moves, uint64_t room, uint64_t *count,
                                 bool *complete)
{
    uint64_t offered = 0;
    bool is_complete = false;
    quire_result result = count ? check_offer(compaction, limits, moves, room)
                                : qi_fail_null("quire_compact_offer", "count");
    if (!result)
        result = qi_compact_offer(compaction, limits, moves, room, &offered, &is_complete);
    if (count)
        *count = offered;
    if (complete)
        *complete = is_complete;
    return result;
}

quire_result quire_compact_accept(quire_compaction *compaction, const quire_compact_move *move,
                                  const quire_point *after)
{
    if (!compaction || !move)
        return qi_fail_null("quire_compact_accept", !compaction ? "compaction" : "move");
    quire_result result = QUIRE_SUCCESS;
    if (after && after->stream && !qi_stream_has_passed(after->stream, after->value))
        result = qi_stream_check_point(after);
    return result ? result : qi_compact_accept(compaction, move, after);
}

quire_result quire_compact_decline(quire_compaction *compaction, const quire_compact_move *move)
{
    return compaction && move
               ? qi_compact_decline(compaction, move)
               : qi_fail_null("quire_compact_decline", !compaction ? "compaction" : "move");
}

quire_result quire_compact_get_stats(const quire_compaction *compaction, quire_compact_stats *stats)
{
    if (stats)
        *stats = (quire_compact_stats){.moves = 0};
    if (!compaction || !stats)
        return qi_fail_null("quire_compact_get_stats", !compaction ? "compaction" : "stats");
    *stats = qi_compact_stats(compaction);
    return QUIRE_SUCCESS;
}

void quire_compact_end(quire_compaction **compaction)
{
    if (!compaction || !*compaction)
        return;
    qi_compact_end(*compaction);
    *compaction = NULL;
}
