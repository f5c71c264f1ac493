/*
 * ladder.c - the allocation ladder: one table of rungs, and the functions that climb it.
 *
 * A request tries the rungs from the top of the table to its end. A rung whose condition is false
 * is skipped. The outcome of its step (rungs.h) says whether the climb ends, goes to the next rung,
 * or returns to an earlier one because something has changed. The functions call each other in this
 * order:
 *
 *   qi_allocate            prepares the request; reports the refusal if the climb fails
 *     climb                one or more attempts, each followed by the rungs that hold no lock
 *       attempt            acquires the lock of the thread's shard; reports page events at the end
 *         climb_within_name  checks the limits of the request's name before and after
 *           climb_under_lock   the loop over the rungs that hold the shard's lock
 *
 * c->result is NO_SPACE until a page is refused, and then the reason. BEGIN_PAGE resets it.
 */
#include "src/core/allocate/ladder.h"

#include "src/base/bits.h"
#include "src/base/thread.h"
#include "src/core/allocate/oom_report.h"
#include "src/core/allocate/rungs.h"
#include "src/core/copy/access.h"
#include "src/core/deferred/deferred_reuse.h"
#include "src/core/device/policy.h"
#include "src/core/find/addresses.h"
#include "src/core/page/empty.h"
#include "src/core/page/life.h"
#include "src/core/page/map.h"
#include "src/core/page/range.h"
#include "src/core/page/sizes.h"
#include "src/core/slot/slot.h"

static bool if_quarantine(const qi_climb *c);
static qi_outcome quarantine(qi_climb *c);
static bool if_caller(const qi_climb *c);
static qi_outcome caller(qi_climb *c);

/* One way to serve a request. */
typedef struct rung {
    bool (*applies)(const qi_climb *c); /* has no side effects */
    qi_outcome (*step)(qi_climb *c);
    const char *report; /* the refusal lists it after "Tried:" if the step ran; NULL: not listed */
} rung;

static const rung RUNGS[QI_RUNG_COUNT] = {
    /* ---- ranges that exist; with the shard's lock ---- */
    /* Reuse a range that was freed on the request's stream, before its point has passed. */
    [QI_RUNG_REUSE] = {qi_rung_if_on_stream, qi_rung_reuse, NULL},
    /* Take a free range of the shard, by the bounded search. */
    [QI_RUNG_EXISTING] = {qi_rung_if_shared, qi_rung_existing, NULL},
    /* Release deferred frees whose points have passed, and in checked builds the quarantine. Then
       search again. */
    [QI_RUNG_COLLECT] = {qi_rung_if_deferred, qi_rung_collect, NULL},
    /* Reuse a range that was freed on another stream, and order the request's stream after it. */
    [QI_RUNG_TAKE_OVER] = {qi_rung_if_on_stream, qi_rung_take_over, NULL},

    /* ---- pages; with the shard's lock, released during backend calls ---- */
    /* Save the thread's last error. Note the number of page changes so far, for WAIT. QI_AGAIN
       continues here. */
    [QI_RUNG_BEGIN_PAGE] = {qi_rung_if_any, qi_rung_begin_page, NULL},
    /* Wait for a page that another thread makes and that will have room left. */
    [QI_RUNG_JOIN] = {qi_rung_if_joinable, qi_rung_join, NULL},
    /* Reuse an empty dedicated page of about the same size. */
    [QI_RUNG_KEPT_PAGE] = {qi_rung_if_untied_dedicated, qi_rung_kept_page, NULL},
    /* Move an empty shared page of another shard to this one. */
    [QI_RUNG_OTHER_SHARDS_PAGE] = {qi_rung_if_other_shards, qi_rung_other_shards_page, NULL},
    /* Refuse a page to a request with existing_pages. The full searches follow. */
    [QI_RUNG_NO_NEW_PAGE] = {qi_rung_if_existing_pages, qi_rung_no_new_page, NULL},
    /* Grow the elastic page, if the memory has one. */
    [QI_RUNG_ELASTIC] = {qi_rung_if_elastic, qi_rung_elastic, NULL},
    /* Destroy empty pages of the shard, to make room in the heap for a new one. */
    [QI_RUNG_EMPTY_PAGES] = {qi_rung_if_none_refused, qi_rung_empty_pages,
                             "empty pages given back"},
    /* Create a page. If memory is exhausted, create a smaller one. */
    [QI_RUNG_NEW_PAGE] = {qi_rung_if_none_refused, qi_rung_new_page, "a smaller page"},
    /* Wait for other threads that create or destroy pages. */
    [QI_RUNG_WAIT] = {qi_rung_if_page_refused, qi_rung_wait, NULL},
    /* Destroy empty pages of the device's other memories. Then try again. */
    [QI_RUNG_OTHER_MEMORIES] = {qi_rung_if_page_refused, qi_rung_other_memories,
                                "empty pages of other memories"},

    /* ---- no page is available; with a shard's lock ---- */
    /* Search every free range of the shard. */
    [QI_RUNG_FULL_SEARCH] = {qi_rung_if_shared_refused, qi_rung_full_search, "a full pass"},
    /* Search every free range of the other shards, one shard after the other. */
    [QI_RUNG_OTHER_SHARDS_SEARCH] = {qi_rung_if_other_shards_refused, qi_rung_other_shards_search,
                                     "other shards"},
    /* Wait again: pages may have changed during the searches. */
    [QI_RUNG_WAIT_LAST] = {qi_rung_if_shared_page_refused, qi_rung_wait, NULL},
    /* Create a page that exceeds the backend's budget, but no limit of the caller. */
    [QI_RUNG_BEYOND_BUDGET] = {qi_rung_if_over_budget, qi_rung_beyond_budget,
                               "a page beyond the budget"},

    /* ---- without a lock ---- */
    /* Checked builds: release the quarantine and keep it empty during a second attempt. */
    [QI_RUNG_QUARANTINE] = {if_quarantine, quarantine, NULL},
    /* Call the application's on_out_of_memory. If it has freed something, start from the top. */
    [QI_RUNG_CALLER] = {if_caller, caller, "the caller's callback"},
};

/* The name that the allocation gets, also where it is set after the climb; NULL: none. */
static const char *name_of(const qi_request *request)
{
    return request->name ? request->name : request->name_later;
}

/* ---- the climb ---------------------------------------------------------------------------- */

/*
 * Requires the lock of c->shard. Releases and reacquires it, and may return with the lock of
 * another shard, which c->shard then names. Tries the rungs that hold a lock.
 */
static quire_result climb_under_lock(qi_climb *c)
{
    for (int i = 0; i < QI_RUNG_QUARANTINE; i++) {
        if (!RUNGS[i].applies(c))
            continue;
        switch (RUNGS[i].step(c)) {
        case QI_PLACED:
            return QUIRE_SUCCESS;
        case QI_AGAIN:
            i = QI_RUNG_BEGIN_PAGE - 1; /* the loop adds 1 */
            break;
        case QI_REFUSED:
            return c->result;
        case QI_NEXT:
            break;
        }
    }
    return c->result;
}

/*
 * Like climb_under_lock, within the limits of the request's name. They are checked twice: before
 * the climb with the least size, so that no page is made for a request that cannot be counted, and
 * after it with the bytes that the allocation holds.
 */
static quire_result climb_within_name(qi_climb *c)
{
    quire_memory *memory = c->shard->memory;
    const char *name = c->request->name;
    const char *limited = name_of(c->request);
    if (!limited)
        return climb_under_lock(c);
    if (QI_IS_CHECKED || memory->on_out_of_memory.callback) /* a later attempt may succeed */
        qi_climb_keep_error(c);
    quire_result result = qi_names_admit(
        &memory->names, limited, qi_checked_size_without(memory, c->request, c->range.size));
    if (!result)
        result = climb_under_lock(c);
    if (result || !name)
        return result;
    qi_slot *record = qi_memory_slot(memory, c->slot);
    result = qi_names_replace(&memory->names, NULL, name, record);
    if (result) {
        record->meta = NULL; /* a record has a name only while its limits count it */
        c->is_over_name = true;
    }
    return result;
}

/*
 * Requires no lock. Climbs once, from the calling thread's shard. Page events are reported at the
 * end, when no page is under way: what a hook does cannot restart the climb.
 */
static quire_result attempt(qi_climb *c)
{
    quire_memory *memory = c->home->memory;
    c->shard = c->home;
    c->leaving = NULL;
    c->joined = NULL;
    c->is_over_name = false;
    c->trims_of_others = 0;
    c->result = QUIRE_ERROR_NO_SPACE;
    qi_shard_enter(c->shard);
    c->leaving = qi_shard_catch_up(c->shard, NULL);
    c->result = climb_within_name(c); /* may change c->shard */
    qi_lock_release(&c->shard->lock);
    if (c->leaving)
        qi_pages_give_back(memory, c->leaving, &c->progress.events);
    qi_page_events_report(memory, &c->progress.events, c->dedicated ? ", dedicated" : "");
    if (c->is_over_name)
        qi_release_unpublished(memory, c->slot);
    return c->result;
}

/* ---- the rungs without a lock ------------------------------------------------------------- */

static bool if_quarantine(const qi_climb *c)
{
    return QI_IS_CHECKED && qi_is_out_of_pages(c->result);
}

/* Between begin and end no freed range enters the quarantine, so that the attempt finds all of
   them. */
static qi_outcome quarantine(qi_climb *c)
{
    if (!qi_checked_begin_out_of_memory(c->home->memory))
        return QI_NEXT;
    quire_result result = attempt(c);
    qi_checked_end_out_of_memory(c->home->memory);
    return result ? QI_NEXT : QI_PLACED;
}

/* At most QUIRE_MAX_OUT_OF_MEMORY_CALLS calls for one request, so that the climb ends. A request
   with existing_pages is refused although memory may be left, and nothing that the callback frees
   helps one that no page can hold. */
static bool if_caller(const qi_climb *c)
{
    return c->home->memory->on_out_of_memory.callback && !c->request->is_unaided &&
           !c->request->existing_pages && qi_is_out_of_pages(c->result) &&
           c->caller_calls < QUIRE_MAX_OUT_OF_MEMORY_CALLS &&
           qi_page_can_exist(c->home->memory, c->range.size);
}

/* The thread's last error stays: it is the reason of the refusal if the callback does not help. */
static qi_outcome caller(qi_climb *c)
{
    quire_memory *memory = c->home->memory;
    const quire_on_out_of_memory *on = &memory->on_out_of_memory;
    const quire_out_of_memory event = {.size = c->range.size,
                                       .alignment = c->range.alignment,
                                       .reason = c->result,
                                       .times = ++c->caller_calls,
                                       .name = name_of(c->request)};
    qi_error error;
    qi_error_save(&error);
    qi_climb_note(c, QI_RUNG_CALLER);
    qi_transit_assert_none();
    bool has_freed = on->callback(on->user, memory, &event);
    qi_error_restore(&error);
    return has_freed ? QI_AGAIN : QI_NEXT;
}

/*
 * Requires no lock. Repeats the whole climb as long as the application's callback frees something.
 * On success the thread's last error is the one from before the request.
 */
static quire_result climb(qi_climb *c)
{
    qi_outcome outcome;
    do {
        outcome = attempt(c) ? QI_NEXT : QI_PLACED;
        for (int i = QI_RUNG_QUARANTINE; i < QI_RUNG_COUNT && outcome == QI_NEXT; i++)
            if (RUNGS[i].applies(c))
                outcome = RUNGS[i].step(c);
    } while (outcome == QI_AGAIN);
    if (outcome != QI_PLACED)
        return c->result;
    if (c->has_before)
        qi_error_restore(&c->before);
    return QUIRE_SUCCESS;
}

/* ---- requests ----------------------------------------------------------------------------- */

/*
 * Sets up the climb and computes the size of the range: the bytes held, with the padding and
 * rounding of the policy, the atom of non-coherent memory, and the red zones of checked builds.
 */
static quire_result prepare(quire_memory *memory, const qi_request *request, qi_climb *c)
{
    uint64_t held = request->held > request->size ? request->held : request->size;
    uint64_t room = request->unit ? request->unit - request->alignment : 0; /* see move_to_unit */
    qi_range_request *range = &c->range;
    *range = (qi_range_request){.alignment = request->alignment,
                                .requested = request->size,
                                .user_data = request->object ? request->native : request->user_data,
                                .object = request->object,
                                .extras = request->extras | memory->extras};
    c->request = request;
    bool is_for_images = request->optimal && memory->first_shard;
    c->home = is_for_images ? memory->shards[0] : qi_shard_mine(memory);
    c->dedicated = qi_request_needs_dedicated(memory, request);
    c->tried = c->caller_calls = 0;
    c->has_before = false;
    c->wait = (qi_page_wait){0};
    c->progress =
        (qi_page_progress){.within_budget = request->within_budget, .zero = request->zero};
    if (memory->atom > request->alignment)
        range->alignment = memory->atom;
    if (request->tied) { /* the page has exactly the object's size */
        range->size = held;
        return QUIRE_SUCCESS;
    }
    if (qi_add_overflows(held, room, &held) ||
        qi_policy_size_overflows(&memory->policy, held, &range->size) ||
        qi_align_up_overflows(range->size, memory->atom, &range->size) ||
        qi_checked_grow_overflows(memory, &range->alignment, &range->size))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                            "%u byte%s requested: rounded up, that exceeds 64 bits", held);
    return QUIRE_SUCCESS;
}

/* Releases the meta record and writes the out-of-memory report. Returns `result`. */
static quire_result refuse(quire_memory *memory, const qi_climb *c, quire_result result)
{
    const qi_request *request = c->request;
    qi_oom_request refused = {
        .name = name_of(request),
        .size = request->size,
        .alignment = request->unit ? request->unit : c->range.alignment,
        .is_dedicated = c->dedicated,
    };
    for (uint32_t rungs = c->tried; rungs && refused.step_count < QI_OOM_STEPS; rungs &= rungs - 1)
        refused.steps[refused.step_count++] = RUNGS[qi_lowest_bit(rungs)].report;
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
    qi_climb c;
    if (memory->device->is_disabled)
        return qi_refuse_disabled();
    quire_result result = prepare(memory, request, &c);
    if (!result)
        result = failed;
    if (!result && memory->addresses && !qi_addresses_reserve(memory))
        result = qi_addresses_refuse();
    if (!result)
        result = qi_slot_meta_create(&memory->host, request->name,
                                     request->object ? request->user_data : 0,
                                     request->object == QUIRE_OBJECT_IMAGE, &c.range.meta);
    if (!result)
        result = climb(&c);
    if (result)
        return refuse(memory, &c, result);
    *slot = c.slot;
    if (!request->tied) /* a tied object is not bound yet: its bytes cannot be written */
        qi_checked_placed(memory, *slot, request->zero);
    if (qi_unlikely(request->host_use & QI_HOST_MAPPED))
        result = qi_page_map_keep(memory, *slot);
    if (!result && request->zero && !request->object)
        result = qi_access_fill_zero(memory, *slot);
    if (!result && memory->addresses &&
        !qi_addresses_add(memory, *slot, !request->object && !request->reserved))
        result = qi_addresses_refuse();
    if (result) {
        qi_allocate_undo(memory, *slot, request->reuse);
        qi_oom_count(memory);
    }
    return result;
}
