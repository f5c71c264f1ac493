/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * ladder.c - the allocation ladder: the ways to serve a request, cheapest first.
 *
 * Under the lock of a shard a request takes what exists (take_existing), then a page (take_page),
 * then what is left (take_last_resort). A step says whether the request is placed, refused for
 * good, to be served by the next step, or to be tried again with a page, because something has
 * changed. The lock is released during calls of the backend and while the thread waits. Without a
 * lock follow the quarantine of checked builds and the application's callback (climb).
 *
 * Before the thread waits for another one, it gives back the pages that it has taken out: the other
 * thread may be waiting for these pages.
 */
#include "src/core/allocate/ladder.h"

#include "src/base/bits.h"
#include "src/base/thread.h"
#include "src/core/allocate/oom_report.h"
#include "src/core/copy/access.h"
#include "src/core/deferred/deferred_free.h"
#include "src/core/deferred/deferred_reuse.h"
#include "src/core/device/policy.h"
#include "src/core/find/addresses.h"
#include "src/core/page/backing.h"
#include "src/core/page/empty.h"
#include "src/core/page/lazy.h"
#include "src/core/page/life.h"
#include "src/core/page/map.h"
#include "src/core/page/range.h"
#include "src/core/page/sizes.h"
#include "src/core/slot/slot.h"

typedef enum verdict {
    PLACED,  /* c->slot has the request */
    NEXT,    /* the next step may serve it */
    AGAIN,   /* something has changed: try again from take_page on */
    REFUSED, /* for c->refusal, which no later step changes */
} verdict;

/*
 * A request on the ladder. Invariant: it holds at most one shard's lock, that of `shard`. The pages
 * in `leaving` belong to this thread.
 */
typedef struct climb {
    const qi_request *request;
    qi_range_request range; /* its size includes what the policy adds */
    bool dedicated;
    uint64_t needed;       /* bytes of the smallest page that holds the request; 0: not computed */
    qi_shard *home;        /* the calling thread's shard */
    qi_shard *shard;       /* the shard whose lock is held */
    qi_page *leaving;      /* pages taken out under the lock, to be destroyed without it */
    quire_result refusal;  /* why a page, or the request, was refused last */
    uint32_t slot;         /* the slot of the placed request */
    uint32_t tried;        /* QI_TRIED_... */
    bool is_over_name;     /* placed, but over the limit of its name: to be given back */
    const qi_page *joined; /* the page that the thread waits for; see qi_page_wait_for_room */
    qi_page_wait wait;
    uint32_t trims_of_others; /* see qi_pages_take_from_others */
    qi_page_progress progress;
    uint32_t caller_calls; /* how often the application's callback was called */
    bool has_before;       /* `before` has the thread's last error from before the first failure */
    qi_error before;
} climb;

/* ---- placing ------------------------------------------------------------------------------ */

/*
 * Moves a placed range to the next multiple of the request's unit. The range has the bytes for it,
 * because offsets are multiples of the alignment, which divides the unit.
 */
static void move_to_unit(const climb *c)
{
    qi_slot *record = qi_memory_slot(c->shard->memory, c->slot);
    uint64_t over = record->offset % c->request->unit;
    if (!over)
        return;
    uint64_t bytes = c->request->unit - over;
    record->offset += bytes;
    record->left_padding += (uint32_t)bytes;
    if (!qi_checked_moved(record, bytes))
        record->size -= bytes;
}

/* A checked build divides the range into the red zones and the caller's bytes. */
static void finish(const climb *c)
{
    qi_checked_mark(c->shard->memory, c->slot, c->request, c->range.alignment);
    if (c->request->unit)
        move_to_unit(c);
}

/* Takes a slot and a range of the shard's shared pages. `flags` is QI_TRY or QI_EXHAUSTIVE. */
static quire_result place(climb *c, uint32_t flags)
{
    flags |= c->request->upper ? QI_UPPER : 0;
    quire_result result = qi_range_take(c->shard, &c->range, flags, &c->slot);
    if (!result)
        finish(c);
    return result;
}

static uint64_t alignment_of(const climb *c)
{
    return c->range.alignment + !c->range.alignment;
}

/* Whether a full search of the shard has found no range for such a request, and nothing was freed
   since: a search would find nothing either. */
static bool is_hopeless(const climb *c)
{
    const quire_space *space = c->shard->space;
    uint64_t alignment = alignment_of(c);
    return alignment <= space->max_alignment &&
           qi_refusals_cover(&space->refusals, c->range.size, alignment, false);
}

/* In a page that was just made: badly fitting holes can hide the new room from a bounded search, so
   that a full search follows. */
static quire_result place_in_made(climb *c)
{
    quire_result result = place(c, QI_TRY);
    return result == QUIRE_ERROR_NO_SPACE ? place(c, QI_EXHAUSTIVE) : result;
}

static quire_result place_dedicated(climb *c, qi_page *page)
{
    quire_result result = qi_range_take_page(page, &c->range, &c->slot);
    if (!result)
        finish(c);
    return result;
}

/* ---- shards and errors -------------------------------------------------------------------- */

/*
 * Releases and reacquires the lock. Destroys the pages taken out so far. Called before a page is
 * made or waited for: leaving pages still count, and a thread that waits for them would wait for
 * itself.
 */
static void give_back(climb *c)
{
    qi_page *leaving = c->leaving;
    if (!leaving)
        return;
    c->leaving = NULL;
    qi_lock_release(&c->shard->lock);
    qi_pages_give_back(c->shard->memory, leaving, &c->progress.events);
    qi_lock_acquire(&c->shard->lock);
}

/* Never holds two shard locks at once. What other threads left to the new shard is done first. */
static void go_to(climb *c, qi_shard *shard)
{
    if (shard == c->shard)
        return;
    qi_lock_release(&c->shard->lock);
    c->shard = shard;
    qi_lock_acquire(&shard->lock);
    c->leaving = qi_shard_catch_up(shard, c->leaving);
}

/* Remembers the thread's last error, before the first failure of a request that may still
   succeed. */
static void keep_error(climb *c)
{
    if (!c->has_before)
        qi_error_save(&c->before);
    c->has_before = true;
}

/* ---- ranges that exist -------------------------------------------------------------------- */

/*
 * A range freed on a stream can be reused on that stream before its point has passed. A request for
 * zeros is excluded: the host writes the zeros and would not wait for the stream. So is a tied
 * request, whose page is created for its object, and one whose offset has a unit.
 */
static bool may_reuse(const climb *c)
{
    return c->request->stream && !c->request->zero && !c->request->tied && !c->request->unit;
}

static qi_fitting fitting_of(const climb *c)
{
    qi_fitting fitting = qi_deferred_fitting(c->shard, &c->range, c->dedicated);
    fitting.optimal = c->request->optimal;
    return fitting;
}

/* Takes a range that was freed on the request's stream, before its point has passed. */
static bool reuse(climb *c)
{
    const qi_fitting fitting = fitting_of(c);
    return qi_deferred_reuse(c->shard, c->request->stream, &c->range, &fitting, &c->slot,
                             c->request->reuse);
}

/* The same of another stream's, after whose point the request's stream is ordered. */
static bool take_over(climb *c)
{
    const qi_fitting fitting = fitting_of(c);
    return qi_deferred_take_over(c->shard, c->request->stream, &c->range, &fitting, &c->slot,
                                 c->request->reuse);
}

/* Only NO_SPACE leads to the next step. */
static verdict verdict_of(climb *c, quire_result result)
{
    if (!result)
        return PLACED;
    c->refusal = result;
    return result == QUIRE_ERROR_NO_SPACE ? NEXT : REFUSED;
}

/* Takes a free range of the shard, by the bounded search. No range of a shared page serves a
   dedicated request. */
static verdict search(climb *c)
{
    if (c->dedicated)
        return NEXT;
    if (is_hopeless(c))
        return verdict_of(c, QUIRE_ERROR_NO_SPACE);
    return verdict_of(c, place(c, QI_TRY));
}

/*
 * Releases deferred frees whose points have passed, and in checked builds the quarantine, which may
 * hold ranges even if no free is deferred. Then searches again. The pages taken out so far are
 * given back first: a thread that frees ranges may be waiting for them.
 */
static verdict collect(climb *c)
{
    if (!QI_IS_CHECKED && !qi_deferred_count(c->shard->memory))
        return NEXT;
    give_back(c);
    bool has_passed = qi_deferred_make_room(c->shard);
    bool has_room = qi_checked_make_room(c->shard) || has_passed;
    return has_room ? search(c) : NEXT;
}

static verdict take_existing(climb *c)
{
    if (may_reuse(c) && reuse(c))
        return PLACED;
    verdict outcome = search(c);
    if (outcome == NEXT)
        outcome = collect(c);
    if (outcome == NEXT && may_reuse(c) && take_over(c))
        return PLACED;
    return outcome;
}

/* ---- pages that exist --------------------------------------------------------------------- */

/* Computes c->needed once. A tied page has exactly the object's size. */
static quire_result find_needed(climb *c)
{
    uint64_t size = c->range.size;
    if (c->needed)
        return QUIRE_SUCCESS;
    if (!c->request->tied)
        return qi_page_needed_size(c->shard, size, c->range.alignment, c->dedicated, &c->needed);
    quire_result result = qi_page_check_total(c->shard->memory, size, size);
    if (!result)
        c->needed = size;
    return result;
}

/* After a wait: another thread may have made room in a page that exists. */
static verdict search_again(climb *c)
{
    verdict outcome = search(c);
    return outcome == NEXT ? AGAIN : outcome;
}

/* Waits for a page that another thread makes and that will have room left. The request needs at
   most `room` bytes of it, for every possible padding. */
static verdict join(climb *c)
{
    uint64_t room = 0;
    if (qi_add_overflows(c->range.size, c->range.alignment, &room))
        room = UINT64_MAX;
    return qi_page_wait_for_room(c->shard, room, &c->joined) ? search_again(c) : NEXT;
}

/*
 * Takes an empty dedicated page: of the size that the policy rounds to, otherwise of the needed
 * size, because the backend may have had no memory for the larger one.
 */
static verdict take_kept_page(climb *c)
{
    if (find_needed(c))
        return NEXT; /* a new page fails with the same error and reports it */
    const quire_page_policy *policy = &c->shard->memory->policy;
    qi_page *page = qi_empty_pages_find_dedicated(c->shard, qi_policy_round(policy, c->needed));
    if (!page)
        page = qi_empty_pages_find_dedicated(c->shard, c->needed);
    if (!page)
        return NEXT;
    page->fresh = false; /* other allocations have used it */
    return verdict_of(c, place_dedicated(c, page));
}

/*
 * Moves an empty page of another shard to this one. Searches the other shards, one lock at a time.
 * The page is in phase MOVING while neither shard's lock is held.
 */
static verdict take_page_of_other_shard(climb *c)
{
    quire_memory *memory = c->shard->memory;
    qi_page *page = NULL;
    keep_error(c);
    if (find_needed(c))
        return NEXT; /* as in take_kept_page */
    for (uint32_t i = 1; i < qi_shard_count(memory) && !page; i++) {
        go_to(c, memory->shards[(c->home->index + i) % qi_shard_count(memory)]);
        page = qi_empty_pages_find_shared(c->shard, c->needed);
        if (page)
            qi_page_leave_shard(page);
    }
    go_to(c, c->home);
    if (!page || !qi_page_enter_shard(page, c->home, &c->leaving))
        return NEXT;
    return place(c, QI_TRY) ? NEXT : PLACED;
}

/* A tied request is excluded: the backend requires that its page is created for its object. */
static verdict take_page_that_exists(climb *c)
{
    if (c->dedicated)
        return c->request->tied ? NEXT : take_kept_page(c);
    verdict outcome = c->request->existing_pages ? NEXT : join(c);
    if (outcome == NEXT && qi_shard_count(c->shard->memory) > 1)
        outcome = take_page_of_other_shard(c);
    return outcome;
}

/* ---- new pages ---------------------------------------------------------------------------- */

/* A page was refused. Only an exhausted resource leaves something to try. */
static verdict page_refused(climb *c, quire_result result)
{
    c->refusal = result;
    return qi_is_out_of_pages(result) ? NEXT : REFUSED;
}

/* Making or backing a page also gives back empty pages and tries smaller ones. */
static void note_progress(climb *c)
{
    if (c->progress.gave_back_empty)
        c->tried |= QI_TRIED_EMPTY_PAGES;
    if (c->progress.is_smaller)
        c->tried |= QI_TRIED_SMALLER_PAGE;
}

enum { MAX_WINDOWS = 2 };

/* Whether the shared page can get more memory, instead of another page. */
static bool can_extend(const climb *c)
{
    return !c->dedicated && qi_backing_page(c->shard);
}

/*
 * Gives the shared page memory. Several threads may do so in turn: each searches again after
 * another one. A search can miss room that is just large enough; more room than that follows.
 * Returns NO_SPACE if the page serves no such request, which a new page may then.
 */
static quire_result extend(climb *c)
{
    qi_resize_result outcome = QI_RESIZE_AWAITED;
    quire_result result = QUIRE_ERROR_NO_SPACE;
    uint64_t size = c->range.size;
    give_back(c);
    for (uint32_t windows = 0; result == QUIRE_ERROR_NO_SPACE && outcome != QI_RESIZE_NONE &&
                               windows < MAX_WINDOWS && can_extend(c);) {
        result = qi_page_check_total(c->shard->memory, size, size);
        if (!result)
            result = qi_backing_make_room(c->shard, size, alignment_of(c), &outcome, &c->progress);
        if (!result)
            result = place_in_made(c);
        if (outcome == QI_RESIZE_DONE) {
            windows++;
            size += c->shard->memory->chunk;
        }
    }
    note_progress(c);
    return result;
}

/*
 * Places the request in the page that was made for it. On failure the page is destroyed, and no
 * event reports it.
 */
static quire_result place_in_new_page(climb *c, qi_page *page)
{
    quire_result result = c->dedicated ? place_dedicated(c, page) : place_in_made(c);
    if (!result) {
        c->progress.events.made = qi_page_made(page);
        qi_page_keep(page);
        qi_retention_note_made(c->shard);
        return QUIRE_SUCCESS;
    }
    qi_page *leaving = qi_page_take(page, NULL);
    qi_lock_release(&c->shard->lock);
    qi_page_undo(c->shard->memory, leaving, &c->progress.events);
    qi_lock_acquire(&c->shard->lock);
    return result;
}

/* Creates a page. If memory is exhausted, creates a smaller one. */
static quire_result make(climb *c)
{
    const qi_request *request = c->request;
    const qi_tie tie = {c->range.object, c->range.object ? c->range.user_data : 0,
                        request->description};
    qi_page *page = NULL;
    quire_result result =
        request->tied ? qi_page_make_tied(c->shard, c->range.size, &tie, &page, &c->progress)
                      : qi_page_make(c->shard, c->range.size, c->range.alignment, c->dedicated,
                                     &page, &c->progress);
    note_progress(c);
    return result ? result : place_in_new_page(c, page);
}

/* Destroys empty pages of the shard, to make room in the heap for a new one. */
static quire_result make_room_in_heap(climb *c)
{
    give_back(c);
    quire_result result = find_needed(c);
    if (result)
        return result;
    c->tried |= QI_TRIED_EMPTY_PAGES;
    qi_page_give_back_before(c->shard, c->needed, &c->progress.events);
    return QUIRE_SUCCESS;
}

/* Gives the shared page memory, or makes a page. After a refusal a new page would be refused as
   well. */
static verdict make_or_extend(climb *c)
{
    quire_result result = QUIRE_ERROR_NO_SPACE;
    if (can_extend(c))
        result = extend(c);
    if (result == QUIRE_ERROR_NO_SPACE) {
        result = c->progress.may_exceed ? QUIRE_SUCCESS : make_room_in_heap(c);
        if (!result)
            result = make(c);
    }
    return result ? page_refused(c, result) : PLACED;
}

/* Waits for other threads that create or destroy pages. The thread's own leaving pages are given
   back first: it would wait for itself. */
static bool wait_for_change(climb *c)
{
    give_back(c);
    return qi_page_wait_for_change(c->shard, c->refusal, &c->wait);
}

/* Destroys empty pages of the device's other memories. */
static bool trim_other_memories(climb *c)
{
    give_back(c);
    bool has_addresses =
        !can_extend(c) || qi_backing_has_addresses(c->shard, c->range.size, alignment_of(c));
    if (!has_addresses || find_needed(c) ||
        !qi_pages_take_from_others(c->shard, c->refusal, c->needed, c->dedicated,
                                   &c->trims_of_others))
        return false;
    c->tried |= QI_TRIED_OTHER_MEMORIES;
    return true;
}

/* A new page may fail where a later step succeeds: the thread's last error is saved. */
static verdict take_page(climb *c)
{
    give_back(c);
    if (!c->request->existing_pages) {
        keep_error(c);
        c->wait.changes = qi_pages_changes(c->shard);
    }
    verdict outcome = take_page_that_exists(c);
    if (outcome != NEXT)
        return outcome;
    if (c->request->existing_pages)
        return NEXT;
    outcome = make_or_extend(c);
    if (outcome != NEXT)
        return outcome;
    return wait_for_change(c) || trim_other_memories(c) ? search_again(c) : NEXT;
}

/* ---- what is left ------------------------------------------------------------------------- */

/*
 * Searches every free range of the shard. The thread's last error stays the refusal of the page,
 * which says more than "no space".
 */
static bool search_fully(climb *c)
{
    qi_error error;
    c->tried |= QI_TRIED_FULL_SEARCH;
    if (is_hopeless(c))
        return false;
    qi_error_save(&error);
    bool is_placed = !place(c, QI_EXHAUSTIVE);
    qi_error_restore(&error);
    return is_placed;
}

/* Searches every free range of the other shards, one shard after the other. On success c->shard
   stays the shard of the range, with its lock. */
static bool search_other_shards(climb *c)
{
    quire_memory *memory = c->shard->memory;
    qi_error error;
    if (qi_shard_count(memory) == 1)
        return false;
    qi_error_save(&error);
    c->tried |= QI_TRIED_OTHER_SHARDS;
    bool is_placed = false, is_for_images = qi_shard_is_for_images(memory, c->home);
    for (uint32_t i = 1; i < qi_shard_count(memory) && !is_placed; i++) {
        qi_shard *shard = memory->shards[(c->home->index + i) % qi_shard_count(memory)];
        if (qi_shard_is_for_images(memory, shard) != is_for_images)
            continue;
        go_to(c, shard);
        is_placed = !place(c, QI_EXHAUSTIVE);
    }
    qi_error_restore(&error);
    if (!is_placed)
        go_to(c, c->home);
    return is_placed;
}

/* Makes or backs a page that exceeds the backend's budget, but no limit of the caller. */
static verdict exceed_budget(climb *c)
{
    c->tried |= QI_TRIED_BEYOND_BUDGET;
    give_back(c);
    c->progress.may_exceed = true;
    verdict outcome = make_or_extend(c);
    c->progress.may_exceed = false;
    return outcome;
}

/* A page was refused. Pages may have changed during the searches. */
static verdict take_last_resort(climb *c)
{
    if (!c->dedicated) {
        if (search_fully(c) || search_other_shards(c))
            return PLACED;
        if (!c->request->existing_pages && wait_for_change(c))
            return search_again(c);
    }
    if (c->request->existing_pages)
        c->refusal = qi_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                             "existing_pages is set, so that no page is made");
    if (c->refusal == QUIRE_ERROR_OVER_BUDGET && c->progress.is_over_budget &&
        exceed_budget(c) == PLACED)
        return PLACED;
    return REFUSED;
}

/* ---- the climb ---------------------------------------------------------------------------- */

/*
 * Requires the lock of c->shard. Releases and reacquires it, and may return with the lock of
 * another shard, which c->shard then names.
 */
static quire_result climb_under_lock(climb *c)
{
    if (c->request->lazy)
        return qi_lazy_take(c->shard, &c->range, &c->slot, &c->progress);
    verdict outcome = take_existing(c);
    while (outcome == NEXT || outcome == AGAIN) {
        outcome = take_page(c);
        if (outcome == NEXT)
            outcome = take_last_resort(c);
    }
    return outcome == PLACED ? QUIRE_SUCCESS : c->refusal;
}

/* The name that the allocation gets, also where it is set after the climb; NULL: none. */
static const char *name_of(const qi_request *request)
{
    return request->name ? request->name : request->deferred_name;
}

/*
 * Like climb_under_lock, within the limits of the request's name. They are checked twice: before
 * the climb with the least size, so that no page is made for a request that cannot be counted, and
 * after it with the bytes that the allocation holds.
 */
static quire_result climb_within_name(climb *c)
{
    quire_memory *memory = c->shard->memory;
    const char *name = c->request->name;
    const char *limited = name_of(c->request);
    if (!limited)
        return climb_under_lock(c);
    if (QI_IS_CHECKED || memory->on_out_of_memory.callback) /* a later attempt may succeed */
        keep_error(c);
    quire_result result = QUIRE_SUCCESS;
    if (!c->request->lazy) /* which has no bytes yet */
        result = qi_names_admit(&memory->names, limited,
                                qi_checked_size_without(memory, c->request, c->range.size));
    if (!result)
        result = climb_under_lock(c);
    if (result || !name)
        return result;
    qi_slot *record = qi_memory_slot(memory, c->slot);
    result = qi_names_replace(&memory->names, NULL, name, record);
    if (result) {
        qi_slot_detach_meta(record); /* it has a name only while its limits count it */
        c->is_over_name = true;
    }
    return result;
}

/*
 * Requires no lock. Climbs once, from the calling thread's shard. Page events are reported at the
 * end, when no page is in transit: what a hook does cannot restart the climb.
 */
static quire_result attempt(climb *c)
{
    quire_memory *memory = c->home->memory;
    c->shard = c->home;
    c->leaving = NULL;
    c->joined = NULL;
    c->is_over_name = false;
    c->trims_of_others = 0;
    c->refusal = QUIRE_ERROR_NO_SPACE;
    qi_shard_enter(c->shard);
    c->leaving = qi_shard_catch_up(c->shard, NULL);
    quire_result result = climb_within_name(c); /* may change c->shard */
    qi_lock_release(&c->shard->lock);
    if (c->leaving)
        qi_pages_give_back(memory, c->leaving, &c->progress.events);
    qi_page_events_report(memory, &c->progress.events, c->dedicated ? ", dedicated" : "");
    if (c->is_over_name)
        qi_release_unpublished(memory, c->slot);
    return result;
}

/* Checked builds: releases the quarantine, which freed ranges bypass during the second attempt.
   Returns `result` if there was nothing to release. */
static quire_result attempt_without_quarantine(climb *c, quire_result result)
{
    if (!qi_checked_begin_out_of_memory(c->home->memory))
        return result;
    result = attempt(c);
    qi_checked_end_out_of_memory(c->home->memory);
    return result;
}

/* At most QUIRE_MAX_OUT_OF_MEMORY_CALLS calls for one request, so that the climb ends. A request
   with existing_pages is refused although memory may be left, and nothing that the callback frees
   helps one that no page can hold. */
static bool may_ask_caller(const climb *c, quire_result result)
{
    return c->home->memory->on_out_of_memory.callback && !c->request->skip_callback &&
           !c->request->existing_pages && qi_is_out_of_pages(result) &&
           c->caller_calls < QUIRE_MAX_OUT_OF_MEMORY_CALLS &&
           qi_page_can_exist(c->home->memory, c->range.size);
}

/* Returns whether the application's callback has freed something. The thread's last error stays: it
   is the reason of the refusal if the callback does not help. */
static bool ask_caller(climb *c, quire_result result)
{
    quire_memory *memory = c->home->memory;
    const quire_on_out_of_memory *on = &memory->on_out_of_memory;
    const quire_out_of_memory event = {.size = c->range.size,
                                       .alignment = c->range.alignment,
                                       .reason = result,
                                       .times = ++c->caller_calls,
                                       .name = name_of(c->request)};
    qi_error error;
    qi_error_save(&error);
    c->tried |= QI_TRIED_CALLBACK;
    qi_transit_assert_none();
    bool has_freed = on->callback(on->user, memory, &event);
    qi_error_restore(&error);
    return has_freed;
}

/*
 * Requires no lock. Repeats the whole climb as long as the application's callback frees something.
 * On success the thread's last error is the one from before the request.
 */
static quire_result climb_up(climb *c)
{
    quire_result result;
    do {
        result = attempt(c);
        if (QI_IS_CHECKED && qi_is_out_of_pages(result))
            result = attempt_without_quarantine(c, result);
    } while (may_ask_caller(c, result) && ask_caller(c, result));
    if (!result && c->has_before)
        qi_error_restore(&c->before);
    return result;
}

/* ---- requests ----------------------------------------------------------------------------- */

/*
 * Sets up the climb and computes the size of the range: the bytes held, with the padding and
 * rounding of the policy, the atom of non-coherent memory, and the red zones of checked builds.
 */
static quire_result prepare(quire_memory *memory, const qi_request *request, climb *c)
{
    uint64_t held = request->range.size;
    uint64_t room = request->unit ? request->unit - request->range.alignment : 0; /* move_to_unit */
    qi_range_request *range = &c->range;
    *range = request->range;
    range->extras |= memory->extras;
    c->request = request;
    bool is_for_images = request->optimal && memory->first_shard;
    c->home = is_for_images ? memory->shards[0] : qi_shard_mine(memory);
    c->dedicated = !request->lazy && qi_request_needs_dedicated(memory, request);
    c->needed = 0;
    c->tried = c->caller_calls = 0;
    c->has_before = false;
    c->wait = (qi_page_wait){0};
    c->progress =
        (qi_page_progress){.within_budget = request->within_budget, .zero = request->zero};
    if (memory->atom > range->alignment)
        range->alignment = memory->atom;
    if (request->tied || request->lazy) /* the object's size; whole chunks */
        return QUIRE_SUCCESS;
    if (qi_add_overflows(held, room, &held) ||
        qi_policy_size_overflows(&memory->policy, held, &range->size) ||
        qi_align_up_overflows(range->size, memory->atom, &range->size) ||
        qi_checked_grow_overflows(memory, &range->alignment, &range->size))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                            "%u byte%s requested: rounded up, that exceeds 64 bits", held);
    return QUIRE_SUCCESS;
}

/* Releases the meta record and writes the out-of-memory report. Returns `result`. */
static quire_result refuse(quire_memory *memory, const climb *c, quire_result result)
{
    const qi_request *request = c->request;
    qi_oom_request refused = {
        .name = name_of(request),
        .size = request->range.requested,
        .alignment = request->unit ? request->unit : c->range.alignment,
        .is_dedicated = c->dedicated,
        .tried = c->tried,
    };
    qi_slot_meta_release(&memory->host, c->range.meta);
    return qi_oom_report(memory, &refused, result);
}

void qi_allocate_undo(quire_memory *memory, uint32_t slot, qi_reuse *reuse)
{
    if (!reuse || !reuse->wait) {
        qi_release_unpublished(memory, slot);
        return;
    }
    qi_page_map_drop(memory, slot);
    qi_deferred_undo_reuse(memory, slot, reuse);
}

quire_result qi_allocate(quire_memory *memory, const qi_request *request, quire_result failed,
                         uint32_t *slot)
{
    climb c;
    bool is_raw = !request->range.object;
    if (memory->device->is_disabled)
        return qi_refuse_disabled();
    quire_result result = prepare(memory, request, &c);
    if (!result)
        result = failed;
    if (!result && memory->addresses && !qi_addresses_reserve(memory))
        result = qi_addresses_refuse();
    if (!result)
        result = qi_slot_meta_create(&memory->host, request->name, is_raw ? 0 : request->user_data,
                                     qi_request_meta_parts(request), &c.range.meta);
    if (!result)
        result = climb_up(&c);
    if (result)
        return refuse(memory, &c, result);
    *slot = c.slot;
    if (!request->tied && !request->lazy) /* a tied object is not bound yet: no bytes to write */
        qi_checked_placed(memory, *slot, request->zero);
    if (qi_unlikely(request->host_use & QI_HOST_MAPPED))
        result = qi_page_map_keep(memory, *slot);
    if (!result && request->zero && is_raw)
        result = qi_access_fill_zero(memory, *slot);
    if (!result && memory->addresses &&
        !qi_addresses_add(memory, *slot, is_raw && !request->reserved))
        result = qi_addresses_refuse();
    if (result) {
        qi_allocate_undo(memory, *slot, request->reuse);
        qi_oom_count(memory);
    }
    return result;
}
