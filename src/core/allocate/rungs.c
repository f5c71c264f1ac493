/*
 * rungs.c - the conditions and steps of the allocation ladder that hold a shard's lock (rungs.h).
 *
 * Before the climb waits for another thread, the pages that it has taken out are given back
 * (qi_climb_give_back): the other thread may be waiting for these pages.
 */
#include "src/core/allocate/rungs.h"

#include "src/base/bits.h"
#include "src/core/deferred/deferred_free.h"
#include "src/core/deferred/deferred_reuse.h"
#include "src/core/device/policy.h"
#include "src/core/page/backing.h"
#include "src/core/page/empty.h"
#include "src/core/page/life.h"
#include "src/core/page/sizes.h"

/* ---- conditions --------------------------------------------------------------------------- */

/*
 * A range freed on a stream can be reused on that stream before its point has passed. A request for
 * zeros is excluded: the host writes the zeros and would not wait for the stream. So is a tied
 * request, whose page is created for its object, and one whose offset has a unit.
 */
bool qi_rung_if_on_stream(const qi_climb *c)
{
    return c->request->stream && !c->request->zero && !c->request->tied && !c->request->unit;
}

bool qi_rung_if_shared(const qi_climb *c)
{
    return !c->dedicated;
}

/* A page that another thread makes does not exist yet. */
bool qi_rung_if_joinable(const qi_climb *c)
{
    return !c->dedicated && !c->request->existing_pages;
}

/* In checked builds the quarantine may hold ranges even if no free is deferred. */
bool qi_rung_if_deferred(const qi_climb *c)
{
    return QI_IS_CHECKED || qi_deferred_count(c->shard->memory);
}

bool qi_rung_if_any(const qi_climb *c)
{
    (void)c;
    return true;
}

/* A tied request is excluded: the backend requires that its page is created for its object. */
bool qi_rung_if_untied_dedicated(const qi_climb *c)
{
    return c->dedicated && !c->request->tied;
}

bool qi_rung_if_other_shards(const qi_climb *c)
{
    return !c->dedicated && qi_shard_count(c->shard->memory) > 1;
}

bool qi_rung_if_existing_pages(const qi_climb *c)
{
    return c->request->existing_pages;
}

bool qi_rung_if_elastic(const qi_climb *c)
{
    return !c->dedicated && qi_rung_if_none_refused(c) && qi_elastic_page(c->shard);
}

/* No page was refused so far: after a refused growth, a new page would be refused as well. */
bool qi_rung_if_none_refused(const qi_climb *c)
{
    return c->result == QUIRE_ERROR_NO_SPACE;
}

/* A page was requested, and refused because memory, a budget or page numbers are exhausted. */
bool qi_rung_if_page_refused(const qi_climb *c)
{
    return qi_is_out_of_pages(c->result) && !c->request->existing_pages;
}

bool qi_rung_if_shared_page_refused(const qi_climb *c)
{
    return !c->dedicated && qi_rung_if_page_refused(c);
}

bool qi_rung_if_shared_refused(const qi_climb *c)
{
    return !c->dedicated && qi_is_out_of_pages(c->result);
}

/* A page fits every limit of the caller, and exceeds the budget of the backend. */
bool qi_rung_if_over_budget(const qi_climb *c)
{
    return c->result == QUIRE_ERROR_OVER_BUDGET && c->progress.is_over_budget;
}

bool qi_rung_if_other_shards_refused(const qi_climb *c)
{
    return qi_rung_if_other_shards(c) && qi_is_out_of_pages(c->result);
}

/* ---- ranges that exist -------------------------------------------------------------------- */

/* Turns the result of a placement into the outcome of a rung. Only NO_SPACE leads further. */
static qi_outcome outcome_of(qi_climb *c, quire_result result)
{
    if (!result)
        return QI_PLACED;
    c->result = result;
    return result == QUIRE_ERROR_NO_SPACE ? QI_NEXT : QI_REFUSED;
}

static qi_fitting fitting_of(const qi_climb *c)
{
    qi_fitting fitting = qi_deferred_fitting(c->shard, &c->range, c->dedicated);
    fitting.optimal = c->request->optimal;
    return fitting;
}

qi_outcome qi_rung_reuse(qi_climb *c)
{
    const qi_fitting fitting = fitting_of(c);
    return qi_deferred_reuse(c->shard, c->request->stream, &c->range, &fitting, &c->slot,
                             c->request->reuse)
               ? QI_PLACED
               : QI_NEXT;
}

qi_outcome qi_rung_existing(qi_climb *c)
{
    if (qi_climb_is_hopeless(c))
        return outcome_of(c, QUIRE_ERROR_NO_SPACE);
    return outcome_of(c, qi_climb_place(c, QI_TRY));
}

/*
 * The pages taken out so far are given back first: a thread that frees ranges may be waiting for
 * them. A dedicated request continues: no range of a shared page serves it.
 */
qi_outcome qi_rung_collect(qi_climb *c)
{
    qi_climb_give_back(c);
    bool has_passed = qi_deferred_make_room(c->shard);
    bool has_room = qi_checked_make_room(c->shard) || has_passed;
    return has_room && !c->dedicated ? qi_rung_existing(c) : QI_NEXT;
}

qi_outcome qi_rung_take_over(qi_climb *c)
{
    const qi_fitting fitting = fitting_of(c);
    return qi_deferred_take_over(c->shard, c->request->stream, &c->range, &fitting, &c->slot,
                                 c->request->reuse)
               ? QI_PLACED
               : QI_NEXT;
}

/* ---- pages -------------------------------------------------------------------------------- */

/* What fails from here on can still be followed by a success, hence the saved error. */
qi_outcome qi_rung_begin_page(qi_climb *c)
{
    qi_climb_keep_error(c);
    qi_climb_give_back(c);
    c->result = QUIRE_ERROR_NO_SPACE;
    c->wait.changes = qi_pages_changes(c->shard);
    return QI_NEXT;
}

/* After a wait: another thread may have made room in a page that exists. */
static qi_outcome search_again(qi_climb *c)
{
    qi_outcome outcome = c->dedicated ? QI_NEXT : qi_rung_existing(c);
    return outcome == QI_NEXT ? QI_AGAIN : outcome;
}

/* The request needs at most `room` bytes of the page, for every possible padding. */
qi_outcome qi_rung_join(qi_climb *c)
{
    uint64_t room = 0;
    if (qi_add_overflows(c->range.size, c->range.alignment, &room))
        room = UINT64_MAX;
    return qi_page_wait_for_room(c->shard, room, &c->joined) ? search_again(c) : QI_NEXT;
}

/*
 * Looks for a page of the size that the policy rounds to, then for one of the needed size: the
 * backend may have had no memory for the larger one.
 */
qi_outcome qi_rung_kept_page(qi_climb *c)
{
    uint64_t needed = 0;
    if (qi_page_needed_size(c->shard, c->range.size, c->range.alignment, true, &needed))
        return QI_NEXT; /* QI_RUNG_NEW_PAGE fails with the same error and reports it */
    const quire_page_policy *policy = &c->shard->memory->policy;
    qi_page *page = qi_empty_pages_find_dedicated(c->shard, qi_policy_round(policy, needed));
    if (!page)
        page = qi_empty_pages_find_dedicated(c->shard, needed);
    if (!page)
        return QI_NEXT;
    page->fresh = false; /* other allocations have used it */
    return outcome_of(c, qi_climb_place_dedicated(c, page));
}

/*
 * Searches the other shards for an empty page, one lock at a time. The page is in phase MOVING
 * while neither shard's lock is held.
 */
qi_outcome qi_rung_other_shards_page(qi_climb *c)
{
    quire_memory *memory = c->shard->memory;
    qi_page *page = NULL;
    uint64_t needed = 0;
    if (qi_page_needed_size(c->shard, c->range.size, c->range.alignment, false, &needed))
        return QI_NEXT; /* as in qi_rung_kept_page */
    for (uint32_t i = 1; i < qi_shard_count(memory) && !page; i++) {
        qi_climb_go_to(c, memory->shards[(c->home->index + i) % qi_shard_count(memory)]);
        page = qi_empty_pages_find_shared(c->shard, needed);
        if (page)
            qi_page_leave_shard(page);
    }
    qi_climb_go_to(c, c->home);
    if (!page || !qi_page_enter_shard(page, c->home, &c->leaving))
        return QI_NEXT;
    return qi_climb_place(c, QI_TRY) ? QI_NEXT : QI_PLACED;
}

/* Last of what can serve a dedicated request; the searches for a shared one remain. */
qi_outcome qi_rung_no_new_page(qi_climb *c)
{
    c->result =
        qi_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, "existing_pages is set, so that no page is made");
    return QI_NEXT;
}

/* A page was refused. Only an exhausted resource is worth waiting for. */
static qi_outcome page_refused(qi_climb *c, quire_result result)
{
    c->result = result;
    return qi_is_out_of_pages(result) ? QI_NEXT : QI_REFUSED;
}

/* Making or growing a page also gives back empty pages and tries smaller ones. The report of a
   refusal names these rungs. */
static void note_progress(qi_climb *c)
{
    if (c->progress.gave_back_empty)
        qi_climb_note(c, QI_RUNG_EMPTY_PAGES);
    if (c->progress.is_smaller)
        qi_climb_note(c, QI_RUNG_NEW_PAGE);
}

/* Several threads may grow the page in turn: each searches again after another one's growth. */
qi_outcome qi_rung_elastic(qi_climb *c)
{
    qi_elastic_result grown = QI_ELASTIC_AWAITED;
    quire_result result = QUIRE_ERROR_NO_SPACE;
    qi_climb_give_back(c);
    while (result == QUIRE_ERROR_NO_SPACE && qi_elastic_page(c->shard) &&
           grown != QI_ELASTIC_NONE) {
        result =
            qi_elastic_grow_for(c->shard, c->range.size, c->range.alignment, &grown, &c->progress);
        if (!result)
            result = qi_climb_place_in_made(c);
    }
    note_progress(c);
    return result && result != QUIRE_ERROR_NO_SPACE ? page_refused(c, result)
                                                    : outcome_of(c, result);
}

/* Computes the smallest page that holds the request. A tied page has exactly the object's size. */
static quire_result needed_size(const qi_climb *c, uint64_t *needed)
{
    if (!c->request->tied)
        return qi_page_needed_size(c->shard, c->range.size, c->range.alignment, c->dedicated,
                                   needed);
    *needed = c->range.size;
    return qi_page_check_total(c->shard->memory, c->range.size, c->range.size);
}

qi_outcome qi_rung_empty_pages(qi_climb *c)
{
    uint64_t needed = 0;
    qi_climb_give_back(c);
    quire_result result = needed_size(c, &needed);
    if (result)
        return page_refused(c, result);
    qi_climb_note(c, QI_RUNG_EMPTY_PAGES);
    qi_page_give_back_before(c->shard, needed, &c->progress.events);
    return QI_NEXT;
}

/*
 * Places the request in the page that was made for it. On failure the page is destroyed, and no
 * event reports it.
 */
static quire_result place_in_new_page(qi_climb *c, qi_page *page)
{
    quire_result result =
        c->dedicated ? qi_climb_place_dedicated(c, page) : qi_climb_place_in_made(c);
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

qi_outcome qi_rung_new_page(qi_climb *c)
{
    const qi_request *request = c->request;
    const qi_tie tie = {request->object, request->native, request->description};
    qi_page *page = NULL;
    quire_result result =
        request->tied ? qi_page_make_tied(c->shard, c->range.size, &tie, &page, &c->progress)
                      : qi_page_make(c->shard, c->range.size, c->range.alignment, c->dedicated,
                                     &page, &c->progress);
    note_progress(c);
    if (!result)
        result = place_in_new_page(c, page);
    return result ? page_refused(c, result) : QI_PLACED;
}

/* Grows the elastic page where the memory has one, as the rungs within the budget do. */
qi_outcome qi_rung_beyond_budget(qi_climb *c)
{
    qi_outcome outcome = QI_NEXT;
    qi_climb_note(c, QI_RUNG_BEYOND_BUDGET);
    qi_climb_give_back(c);
    c->result = QUIRE_ERROR_NO_SPACE;
    c->progress.may_exceed = true;
    if (qi_rung_if_elastic(c))
        outcome = qi_rung_elastic(c);
    if (outcome == QI_NEXT && qi_rung_if_none_refused(c))
        outcome = qi_rung_new_page(c);
    c->progress.may_exceed = false;
    return outcome;
}

/* The thread's own leaving pages are given back first: it would wait for itself. */
qi_outcome qi_rung_wait(qi_climb *c)
{
    qi_climb_give_back(c);
    return qi_page_wait_for_change(c->shard, c->result, &c->wait) ? search_again(c) : QI_NEXT;
}

qi_outcome qi_rung_other_memories(qi_climb *c)
{
    uint64_t needed = 0;
    qi_climb_give_back(c);
    if (needed_size(c, &needed) ||
        !qi_pages_take_from_others(c->shard, c->result, needed, c->dedicated, &c->trims_of_others))
        return QI_NEXT;
    qi_climb_note(c, QI_RUNG_OTHER_MEMORIES);
    return search_again(c);
}

/* ---- full searches ------------------------------------------------------------------------ */

/* The thread's last error stays the refusal of the page, which says more than "no space". */
qi_outcome qi_rung_full_search(qi_climb *c)
{
    qi_error error;
    qi_climb_note(c, QI_RUNG_FULL_SEARCH);
    if (qi_climb_is_hopeless(c))
        return QI_NEXT;
    qi_error_save(&error);
    if (!qi_climb_place(c, QI_EXHAUSTIVE))
        return QI_PLACED;
    qi_error_restore(&error);
    return QI_NEXT;
}

/* On success c->shard stays the shard of the range, with its lock. */
qi_outcome qi_rung_other_shards_search(qi_climb *c)
{
    quire_memory *memory = c->shard->memory;
    qi_error error;
    qi_error_save(&error);
    qi_climb_note(c, QI_RUNG_OTHER_SHARDS_SEARCH);
    bool is_for_images = qi_shard_is_for_images(memory, c->home);
    for (uint32_t i = 1; i < qi_shard_count(memory); i++) {
        qi_shard *shard = memory->shards[(c->home->index + i) % qi_shard_count(memory)];
        if (qi_shard_is_for_images(memory, shard) != is_for_images)
            continue;
        qi_climb_go_to(c, shard);
        if (!qi_climb_place(c, QI_EXHAUSTIVE))
            return QI_PLACED;
    }
    qi_error_restore(&error);
    qi_climb_go_to(c, c->home);
    return QI_NEXT;
}
