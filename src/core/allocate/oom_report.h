/*
 * refusal.h - the refusal of an allocation: its sentence, and what is remembered of the last one.
 */
#ifndef QUIRE_SRC_CORE_ALLOCATE_OOM_REPORT_H
#define QUIRE_SRC_CORE_ALLOCATE_OOM_REPORT_H

#include "quire/memory.h"
#include "src/base/result.h"

/* What was tried before it, for its sentence. */
typedef enum qi_tried {
    QI_TRIED_EMPTIES = 1,
    QI_TRIED_SMALLER = 2,
    QI_TRIED_SHARDS = 4,
    QI_TRIED_PASS = 8,
    QI_TRIED_CALLER = 16
} qi_tried;

/* Whether no page could be had, so that only what is there, or elsewhere, can help. */
static inline bool qi_is_out_of_pages(quire_result result)
{
    return result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY || result == QUIRE_ERROR_TOO_MANY_PAGES ||
           result == QUIRE_ERROR_OUT_OF_RANGE || result == QUIRE_ERROR_OVER_BUDGET;
}

/* The last one of a shard, under its lock. */
typedef struct qi_oom_record {
    uint64_t number; /* among those of the memory, from 1; 0: there was none */
    quire_result code;
    uint64_t size; /* asked for */
    uint64_t alignment;
    char text[QI_ERROR_TEXT];
} qi_oom_record;

/*
 * Without a lock: counts the refusal, which is the thread's last error, remembers it, and makes the
 * error say what was asked, under which name (NULL: none), why it is refused, what is there and
 * what was tried.
 */
quire_result qi_oom_report(quire_memory *memory, const char *name, uint64_t size,
                           uint64_t alignment, unsigned tried, quire_result result);

/* Without a lock: counts one whose sentence is said already. */
void qi_oom_count(quire_memory *memory);

/* The last one of all shards; number 0: there was none. */
void qi_oom_last(quire_memory *memory, qi_oom_record *last);

#endif
