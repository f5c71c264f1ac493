/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* compact.c - the public functions of quire/compact.h: each checks its arguments and calls the
   core. */
#include "quire/compact.h"

#include "src/api/check.h"
#include "src/core/compact/compact.h"

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

void quire_compact_end(quire_compaction **compaction)
{
    if (!compaction || !*compaction)
        return;
    qi_compact_end(*compaction);
    *compaction = NULL;
}
