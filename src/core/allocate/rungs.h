/*
 * rungs.h - the conditions and steps of the allocation ladder that work under a shard's lock.
 *
 * Every function requires the lock of c->shard. A condition has no side effects. A step may release
 * the lock and reacquire it, also that of another shard.
 */
#ifndef QUIRE_SRC_CORE_ALLOCATE_RUNGS_H
#define QUIRE_SRC_CORE_ALLOCATE_RUNGS_H

#include "src/core/allocate/climb.h"

typedef enum qi_outcome {
    QI_PLACED,  /* c->slot has the request */
    QI_NEXT,    /* try the next rung */
    QI_AGAIN,   /* something changed: continue at QI_RUNG_BEGIN_PAGE, from a rung without a lock at
                   the top */
    QI_REFUSED, /* c->result is an error that no later rung changes */
} qi_outcome;

/* ---- conditions; rungs.c says what each means, where its name does not ----------------------- */

bool qi_rung_if_any(const qi_climb *c);
bool qi_rung_if_on_stream(const qi_climb *c);
bool qi_rung_if_shared(const qi_climb *c);
bool qi_rung_if_joinable(const qi_climb *c);
bool qi_rung_if_deferred(const qi_climb *c);
bool qi_rung_if_untied_dedicated(const qi_climb *c);
bool qi_rung_if_other_shards(const qi_climb *c);
bool qi_rung_if_existing_pages(const qi_climb *c);
bool qi_rung_if_elastic(const qi_climb *c);
bool qi_rung_if_none_refused(const qi_climb *c);
bool qi_rung_if_page_refused(const qi_climb *c);
bool qi_rung_if_shared_page_refused(const qi_climb *c);
bool qi_rung_if_shared_refused(const qi_climb *c);
bool qi_rung_if_other_shards_refused(const qi_climb *c);
bool qi_rung_if_over_budget(const qi_climb *c);

/* ---- steps; the table in ladder.c says what each does
   ----------------------------------------- */

qi_outcome qi_rung_reuse(qi_climb *c);
qi_outcome qi_rung_existing(qi_climb *c);
qi_outcome qi_rung_collect(qi_climb *c);
qi_outcome qi_rung_take_over(qi_climb *c);
qi_outcome qi_rung_begin_page(qi_climb *c);
qi_outcome qi_rung_join(qi_climb *c);
qi_outcome qi_rung_kept_page(qi_climb *c);
qi_outcome qi_rung_other_shards_page(qi_climb *c);
qi_outcome qi_rung_no_new_page(qi_climb *c);
qi_outcome qi_rung_elastic(qi_climb *c);
qi_outcome qi_rung_empty_pages(qi_climb *c);
qi_outcome qi_rung_new_page(qi_climb *c);
qi_outcome qi_rung_beyond_budget(qi_climb *c);
qi_outcome qi_rung_wait(qi_climb *c);
qi_outcome qi_rung_other_memories(qi_climb *c);
qi_outcome qi_rung_full_search(qi_climb *c);
qi_outcome qi_rung_other_shards_search(qi_climb *c);

#endif
