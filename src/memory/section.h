/*
 * section.h - figures of a part of a program: what is counted between a push and its pop.
 *
 * Nothing is counted twice for it. A push puts the peaks aside and lets them begin anew; its pop
 * takes what was counted before off, and puts the higher peaks back.
 */
#ifndef QUIRE_SRC_MEMORY_SECTION_H
#define QUIRE_SRC_MEMORY_SECTION_H

#include "quire/insight.h"
#include "src/base/host_memory.h"

/* What a shard, or the pages, had reached when the section began. */
typedef struct qi_peaks {
    uint64_t live_bytes, requested_bytes, reserved_bytes;
    uint64_t allocation_count, page_count;
} qi_peaks;

typedef struct qi_section {
    struct qi_section *outer;
    quire_memory_stats begun; /* as they were */
    uint32_t shard_count;
    qi_peaks pages;
    qi_peaks shards[];
} qi_section;

/* Those never popped, when a memory ends. */
void qi_sections_finish(qi_section *innermost, qi_host *host);

#endif
