/*
 * climb.h - the state of one request on the allocation ladder, and the steps that rungs share.
 *
 * A climb belongs to the calling thread. Every function requires the lock of c->shard; functions
 * that say so release and reacquire it. Invariant: the climb holds at most one shard's lock, that
 * of c->shard. The pages in `leaving` belong to this thread.
 */
#ifndef QUIRE_SRC_CORE_ALLOCATE_CLIMB_H
#define QUIRE_SRC_CORE_ALLOCATE_CLIMB_H

#include "src/base/result.h"
#include "src/core/allocate/request.h"
#include "src/core/page/life.h"

/* The rungs of the ladder, in the order in which they are tried. The table in ladder.c says what
   each does. */
typedef enum qi_rung {
    QI_RUNG_REUSE,
    QI_RUNG_EXISTING,
    QI_RUNG_COLLECT,
    QI_RUNG_TAKE_OVER,
    QI_RUNG_BEGIN_PAGE, /* QI_AGAIN of a rung with a lock continues here */
    QI_RUNG_JOIN,
    QI_RUNG_KEPT_PAGE,
    QI_RUNG_OTHER_SHARDS_PAGE,
    QI_RUNG_NO_NEW_PAGE,
    QI_RUNG_ELASTIC,
    QI_RUNG_EMPTY_PAGES,
    QI_RUNG_NEW_PAGE,
    QI_RUNG_WAIT,
    QI_RUNG_OTHER_MEMORIES,
    QI_RUNG_FULL_SEARCH,
    QI_RUNG_OTHER_SHARDS_SEARCH,
    QI_RUNG_WAIT_LAST,
    QI_RUNG_BEYOND_BUDGET,
    QI_RUNG_QUARANTINE, /* from here on without a lock */
    QI_RUNG_CALLER,
    QI_RUNG_COUNT
} qi_rung;

typedef struct qi_climb {
    const qi_request *request;
    qi_range_request range; /* its size includes what the policy adds */
    bool dedicated;
    qi_shard *home;        /* the calling thread's shard */
    qi_shard *shard;       /* the shard whose lock is held */
    qi_page *leaving;      /* pages taken out under the lock, to be destroyed without it */
    quire_result result;   /* the last failure: NO_SPACE until a page was refused */
    uint32_t slot;         /* the slot of the placed request */
    uint32_t tried;        /* one bit for each qi_rung that the report names */
    bool is_over_name;     /* placed, but over the limit of its name: to be given back */
    const qi_page *joined; /* the page that the thread waits for; see qi_page_wait_for_room */
    qi_page_wait wait;
    uint32_t trims_of_others; /* see qi_pages_take_from_others */
    qi_page_progress progress;
    uint32_t caller_calls; /* how often the application's callback was called */
    bool has_before;       /* `before` has the thread's last error from before the first failure */
    qi_error before;
} qi_climb;

/* Takes a slot and a range of the shard's shared pages. `how` is QI_TRY or QI_EXHAUSTIVE. */
QUIRE_MUST_USE quire_result qi_climb_place(qi_climb *c, uint32_t how);

/* Whether a full search of the shard has found no range for such a request, and nothing was freed
   since: a search would find nothing either. */
bool qi_climb_is_hopeless(const qi_climb *c);

/*
 * Like qi_climb_place in a page that was just made: badly fitting holes can hide the new room from
 * a bounded search, so that a full search follows.
 */
QUIRE_MUST_USE quire_result qi_climb_place_in_made(qi_climb *c);

/* Gives the request the whole of an empty dedicated page. */
QUIRE_MUST_USE quire_result qi_climb_place_dedicated(qi_climb *c, qi_page *page);

/*
 * Releases and reacquires the lock. Destroys the pages taken out so far. Called before a page is
 * made or waited for: leaving pages still count, and a thread that waits for them would wait for
 * itself.
 */
void qi_climb_give_back(qi_climb *c);

/* Releases the lock that is held and acquires another shard's. */
void qi_climb_go_to(qi_climb *c, qi_shard *shard);

/* The report of a refusal names this rung. */
static inline void qi_climb_note(qi_climb *c, qi_rung rung)
{
    c->tried |= UINT32_C(1) << rung;
}

/* Remembers the thread's last error, before the first failure of a climb that may still succeed. */
void qi_climb_keep_error(qi_climb *c);

#endif
