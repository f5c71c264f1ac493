/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * oom_report.h - the report of a refused allocation: facts from the time of the refusal, of which
 * words are made when the error is read. It says what was requested, why it is refused, what the
 * memory has free, and which steps of the ladder were tried.
 *
 * The report becomes the thread's last error. Each shard keeps its last one (state/shard.h), which
 * the shard's lock protects. No function requires a lock. Invariant: the numbers of the records are
 * unique in a memory and ascend with time.
 */
#ifndef QUIRE_SRC_CORE_ALLOCATE_OOM_REPORT_H
#define QUIRE_SRC_CORE_ALLOCATE_OOM_REPORT_H

#include "src/base/result.h"
#include "src/core/state/memory.h"

/* What was tried for a request, in the order of the report. */
enum {
    QI_TRIED_EMPTY_PAGES = 1, /* given back */
    QI_TRIED_SMALLER_PAGE = 2,
    QI_TRIED_OTHER_MEMORIES = 4, /* whose empty pages were given back */
    QI_TRIED_FULL_SEARCH = 8,
    QI_TRIED_OTHER_SHARDS = 16,
    QI_TRIED_BEYOND_BUDGET = 32,
    QI_TRIED_CALLBACK = 64
};

/* A request that is refused. */
typedef struct qi_oom_request {
    const char *name; /* NULL: none */
    uint64_t size;    /* requested bytes */
    uint64_t alignment;
    bool is_dedicated; /* needs a page of its own: free ranges cannot serve it */
    uint32_t tried;    /* QI_TRIED_... */
} qi_oom_request;

/*
 * Counts the refusal and writes the report. The thread's last error is the reason. Calls the hook.
 * Returns `result`.
 */
quire_result qi_oom_report(quire_memory *memory, const qi_oom_request *request,
                           quire_result result);

/* Counts a refusal whose error is already complete. */
void qi_oom_count(quire_memory *memory);

/*
 * A call that tries several memories of a device notes after its failure, in each of them, the
 * kinds that refused it. `since` is qi_oom_thread_count from the beginning of the call: a record
 * of an earlier call, or of another thread, stays as it is.
 */
uint64_t qi_oom_thread_count(void);
void qi_oom_note_kinds(quire_memory *memory, uint32_t kinds, uint64_t since);

/* Copies the last report of all shards; number 0 if there is none. */
void qi_oom_last(quire_memory *memory, qi_oom_record *last);

#endif
