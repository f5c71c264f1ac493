/*
 * section.h - figures of a part of a program: what is counted between a push and its pop.
 *
 * Nothing is counted twice for it. A push puts the peaks aside and lets them begin anew; its pop
 * takes what was counted before off, and puts the higher peaks back.
 */
#ifndef QUIRE_SRC_CORE_STATS_STATS_SCOPE_H
#define QUIRE_SRC_CORE_STATS_STATS_SCOPE_H

#include "quire/insight.h"
#include "src/base/host_memory.h"

/* What a shard, or the pages, had reached when the section began. */
typedef struct qi_peaks {
    uint64_t live_bytes, requested_bytes, reserved_bytes;
    uint64_t allocation_count, page_count;
} qi_peaks;

typedef struct qi_stats_scope {
    struct qi_stats_scope *outer;
    quire_memory_stats begun; /* as they were */
    uint32_t shard_count;
    qi_peaks pages;
    qi_peaks shards[];
} qi_stats_scope;

/* Those never popped, when a memory ends. */
void qi_stats_scopes_finish(qi_stats_scope *innermost, qi_host *host);

#endif
