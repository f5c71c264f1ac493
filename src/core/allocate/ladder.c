/*
 * place.c - placing ranges in the pages of a memory (see place.h); place_free.c gives them back.
 *
 * The order of an allocation: slot and range under one hold of the shard's lock - if no range fits,
 * an empty page of another shard - a page made without the lock, in which the request is placed
 * before anybody else can - if no page can be had, one full pass over the space of every shard -
 * the caller's callback, and all again - the refusal, with its numbers.
 */
#include "src/core/allocate/ladder.h"

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/base/transit.h"
#include "src/core/copy/access.h"
#include "src/core/state/event.h"
#include "src/core/slot/slot_meta.h"
#include "src/core/page/elastic.h"
#include "src/core/page/page_size.h"
#include "src/core/device/policy.h"
#include "src/core/page/range_take.h"
#include "src/core/allocate/oom_report.h"
#include "src/core/deferred/deferred_free.h"

/* ---- placing ------------------------------------------------------------------------------ */

/* What the parts of placing hand to each other. */
typedef struct placing {
    const qi_request *request;
    qi_range_request range_request;
    qi_shard *shard; /* the one whose lock is held */
    qi_page *leaving;
    qi_page_progress progress;
    bool is_over_name; /* placed, and over the limit of a name: to be given back */
    qi_error *before;  /* the thread's last error when it began, kept once something failed */
    bool has_before;
    qi_page_wait stall_timeout;
} placing;

/* With the lock: takes a slot and a range of the shared pages. */
static quire_result place_shared(const placing *p, uint32_t how, uint32_t *slot)
{
    quire_result result = qi_range_take(p->shard, &p->range_request, how, slot);
    if (!result)
        qi_checked_mark(p->shard->memory, *slot, p->request, p->range_request.alignment);
    return result;
}

/* With the lock: gives the request the whole of an empty dedicated page. */
static quire_result place_dedicated(const placing *p, qi_page *page, uint32_t *slot)
{
    quire_memory *memory = p->shard->memory;
    quire_result result = qi_slot_take(&memory->slots, &p->shard->queue, &memory->host, slot);
    if (result)
        return result;
    uint64_t padding =
        page->tied ? 0 : qi_padding(page->native.native.address, p->range_request.alignment);
    qi_slot *record = qi_memory_slot(memory, *slot);
    *record = (qi_slot){
        .offset = padding,
        .size = p->range_request.size,
        .requested = p->range_request.requested,
        .user_data = p->range_request.user_data,
        .meta = p->range_request.meta,
        .tally = page->tally,
        .left_padding = (uint32_t)padding,
        .shard = (uint8_t)p->shard->index,
        .object = (uint8_t)p->range_request.object,
        .borrowed = p->range_request.borrowed,
    };
    page->slot = *slot;
    qi_range_count_in(p->shard, record);
    qi_checked_mark(memory, *slot, p->request, p->range_request.alignment);
    return QUIRE_SUCCESS;
}

/*
 * With the lock, given up meanwhile: gives back what has left so far. Before a page is made, for
 * pages that leave count until they are gone, and whoever waits for them would wait for itself.
 */
static void give_back(placing *p)
{
    qi_page *leaving = p->leaving;
    if (!leaving)
        return;
    p->leaving = NULL;
    qi_lock_release(&p->shard->lock);
    qi_pages_give_back(p->shard->memory, leaving, &p->progress.events);
    qi_lock_acquire(&p->shard->lock);
}

/* With the lock: holes that fit badly can hide the room that was made from the bounds of a try. */
static quire_result place_in_made(const placing *p, uint32_t *slot)
{
    quire_result result = place_shared(p, QI_TRY, slot);
    return result == QUIRE_ERROR_NO_SPACE ? place_shared(p, QI_EXHAUSTIVE, slot) : result;
}

/* With the lock, given up meanwhile: in the page that grows. NO_SPACE: there is none. */
static quire_result place_in_grown_page(placing *p, uint32_t *slot)
{
    qi_elastic_result growth = QI_ELASTIC_AWAITED;
    quire_result result = QUIRE_ERROR_NO_SPACE;
    const qi_page *page = qi_elastic_page(p->shard);
    while (result == QUIRE_ERROR_NO_SPACE && page && growth != QI_ELASTIC_NONE) {
        result = qi_elastic_grow_for(p->shard, p->range_request.size, p->range_request.alignment,
                                     &growth, &p->progress);
        if (!result)
            result = place_in_made(p, slot);
        page = qi_elastic_page(p->shard);
    }
    return result;
}

/* With the lock, given up meanwhile: makes a page for the request and places it there. */
static quire_result place_in_new_page(placing *p, bool dedicated, uint32_t *slot)
{
    qi_page *page = NULL;
    const qi_tie tie = {p->request->object, p->request->native, p->request->description};
    give_back(p);
    quire_result result = dedicated ? QUIRE_ERROR_NO_SPACE : place_in_grown_page(p, slot);
    if (result != QUIRE_ERROR_NO_SPACE)
        return result;
    result = p->request->tied
                 ? qi_page_make_tied(p->shard, p->range_request.size, &tie, &page, &p->progress)
                 : qi_page_make(p->shard, p->range_request.size, p->range_request.alignment,
                                dedicated, &page, &p->progress);
    if (result)
        return result;
    result = dedicated ? place_dedicated(p, page, slot) : place_in_made(p, slot);
    if (result) {
        qi_page *leaving = qi_page_take(page, NULL);
        qi_lock_release(&p->shard->lock);
        qi_page_undo(p->shard->memory, leaving, &p->progress.events);
        qi_lock_acquire(&p->shard->lock);
    } else {
        p->progress.events.made =
            (qi_page_change){.size = page->native.size, .number = page->number};
        qi_page_keep(page);
    }
    return result;
}

/* ---- other shards ------------------------------------------------------------------------- */

/* Gives up the lock that is held and takes another shard's. */
static void go_to(placing *p, qi_shard *shard)
{
    qi_lock_release(&p->shard->lock);
    p->shard = shard;
    qi_lock_acquire(&shard->lock);
    p->leaving = qi_shard_catch_up(shard, p->leaving);
}

/* With the lock, given up meanwhile: an empty page of another shard becomes this one's. */
static bool take_over_page(placing *p, uint64_t needed)
{
    quire_memory *memory = p->shard->memory;
    qi_shard *mine = p->shard;
    qi_page *page = NULL;
    for (uint32_t i = 1; i < memory->shard_count && !page; i++) {
        go_to(p, &memory->shards[(mine->index + i) % memory->shard_count]);
        page = qi_empty_pages_find_shared(p->shard, needed);
        if (page)
            qi_page_leave_shard(page);
    }
    if (p->shard != mine)
        go_to(p, mine);
    return page && qi_page_enter_shard(page, mine, &p->leaving);
}

/* With the lock, given up meanwhile: a full pass over every shard, this one first. */
static quire_result place_anywhere(placing *p, uint32_t *slot)
{
    const quire_memory *memory = p->shard->memory;
    const uint32_t first = p->shard->index;
    quire_result result = QUIRE_ERROR_NO_SPACE;
    for (uint32_t i = 0; i < memory->shard_count && result; i++) {
        if (i)
            go_to(p, &memory->shards[(first + i) % memory->shard_count]);
        result = place_shared(p, QI_EXHAUSTIVE, slot);
    }
    p->progress.tried |= QI_TRIED_PASS | (memory->shard_count > 1 ? QI_TRIED_SHARDS : 0);
    return result;
}

/* ---- the order of attempts ---------------------------------------------------------------- */

/* With the lock, given up meanwhile: a page of another shard's, or a new one. */
static quire_result place_in_other_page(placing *p, uint32_t *slot)
{
    uint64_t needed = 0;
    if (p->shard->memory->shard_count > 1 &&
        !qi_page_needed_size(p->shard, p->range_request.size, p->range_request.alignment, false,
                             &needed) &&
        take_over_page(p, needed) && !place_shared(p, QI_TRY, slot))
        return QUIRE_SUCCESS;
    return place_in_new_page(p, false, slot);
}

/* With the lock, given up meanwhile: what there is, looked through whole. On failure, from the
   caller's own shard again, and with the sentence of before. */
static bool is_placed_anywhere(placing *p, uint32_t *slot)
{
    qi_shard *mine = p->shard;
    qi_error error = qi_error_save();
    if (!place_anywhere(p, slot))
        return true;
    qi_error_restore(&error);
    if (p->shard != mine)
        go_to(p, mine);
    give_back(p);
    return false;
}

/* With the lock, given up meanwhile: no range fits, so that a page is needed. */
static quire_result find_with_page(placing *p, uint32_t *slot)
{
    uint64_t room = 0;
    if (qi_add_overflows(p->range_request.size, p->range_request.alignment, &room))
        room = UINT64_MAX;
    const qi_page *joined = NULL;
    quire_result result = QUIRE_ERROR_NO_SPACE;
    give_back(p);
    while (result == QUIRE_ERROR_NO_SPACE) {
        p->stall_timeout.changes = qi_pages_changes(p->shard);
        if (!qi_page_wait_for_room(p->shard, room, &joined)) {
            result = place_in_other_page(p, slot);
            if (!qi_is_out_of_pages(result))
                return result;
            if (!qi_page_wait_for_change(p->shard, result, &p->stall_timeout)) {
                if (is_placed_anywhere(p, slot))
                    return QUIRE_SUCCESS;
                if (!qi_page_wait_for_change(p->shard, result, &p->stall_timeout))
                    return result;
            }
        }
        result = place_shared(p, QI_TRY, slot);
    }
    return result;
}

/* With the lock: an empty page kept from an earlier dedicated allocation. */
static quire_result place_in_kept_page(const placing *p, uint32_t *slot)
{
    uint64_t needed = 0;
    if (qi_page_needed_size(p->shard, p->range_request.size, p->range_request.alignment, true,
                            &needed))
        return QUIRE_ERROR_NO_SPACE; /* making one will say so */
    /* the policy may have made it larger than needed, or the backend had no memory for that */
    qi_page *page =
        qi_empty_pages_find_dedicated(p->shard, qi_policy_round(&p->shard->memory->policy, needed));
    if (!page)
        page = qi_empty_pages_find_dedicated(p->shard, needed);
    return page ? place_dedicated(p, page, slot) : QUIRE_ERROR_NO_SPACE;
}

/* With the lock, given up meanwhile. */
static quire_result find_dedicated(placing *p, uint32_t *slot)
{
    quire_result result;
    give_back(p);
    do {
        p->stall_timeout.changes = qi_pages_changes(p->shard);
        result = p->request->tied ? QUIRE_ERROR_NO_SPACE : place_in_kept_page(p, slot);
        if (result == QUIRE_ERROR_NO_SPACE)
            result = place_in_new_page(p, true, slot);
    } while (qi_page_wait_for_change(p->shard, result, &p->stall_timeout));
    return result;
}

/* Before the first failure: what the thread's last error stays when all ends well. */
static void keep_error(placing *p)
{
    if (!p->has_before)
        *p->before = qi_error_save();
    p->has_before = true;
}

/*
 * With the lock, given up meanwhile: whether anything came free that waited for a point, or in
 * quarantine, which is empty now.
 */
static bool has_made_room(placing *p)
{
    if (!QI_IS_CHECKED && !qi_deferred_count(p->shard->memory))
        return false;
    give_back(p); /* who gives ranges back may be waiting for these pages */
    bool has_passed = qi_deferred_make_room(p->shard);
    return qi_checked_make_room(p->shard) || has_passed;
}

/* With the lock: whether what was freed on the wish's stream serves it. Zeros are written by the
   host, who would not wait for the stream. */
static bool is_reused(const placing *p, bool dedicated, uint32_t *slot)
{
    const qi_request *request = p->request;
    if (!request->stream || request->zero)
        return false;
    *request->has_waited =
        qi_deferred_reuse(p->shard, request->stream, &p->range_request, dedicated, slot);
    return *request->has_waited;
}

/* With the lock, given up meanwhile: the same of other streams. */
static bool is_taken_over(const placing *p, bool dedicated, uint32_t *slot)
{
    const qi_request *request = p->request;
    if (!request->stream || request->zero)
        return false;
    *request->has_waited =
        qi_deferred_take_over(p->shard, request->stream, &p->range_request, dedicated, slot);
    return *request->has_waited;
}

/* With the lock, given up meanwhile. */
static quire_result find(placing *p, bool dedicated, uint32_t *slot)
{
    if (is_reused(p, dedicated, slot))
        return QUIRE_SUCCESS;
    quire_result result = dedicated ? QUIRE_ERROR_NO_SPACE : place_shared(p, QI_TRY, slot);
    if (result == QUIRE_ERROR_NO_SPACE && has_made_room(p) && !dedicated)
        result = place_shared(p, QI_TRY, slot);
    if (result != QUIRE_ERROR_NO_SPACE)
        return result;
    if (is_taken_over(p, dedicated, slot))
        return QUIRE_SUCCESS;
    keep_error(p);
    return dedicated ? find_dedicated(p, slot) : find_with_page(p, slot);
}

/*
 * With the lock, given up meanwhile: the same within the limits of the request's name. They are
 * looked at before a page is made in vain, and hold for what is really held, once that is known.
 */
static quire_result find_by_name(placing *p, bool dedicated, uint32_t *slot)
{
    quire_memory *memory = p->shard->memory;
    const char *name = p->request->name;
    const char *limited = name ? name : p->request->name_later;
    if (!limited)
        return find(p, dedicated, slot);
    if (QI_IS_CHECKED ||
        memory->on_out_of_memory.callback) /* a name's limit may give way meanwhile */
        keep_error(p);
    quire_result result =
        qi_names_admit(&memory->names, limited,
                       qi_checked_size_without(memory, p->request, p->range_request.size));
    if (!result)
        result = find(p, dedicated, slot);
    if (result || !name)
        return result;
    qi_slot *record = qi_memory_slot(memory, *slot);
    result = qi_names_replace(&memory->names, NULL, name, record);
    if (result) {
        record->meta = NULL; /* it has no name where it is not counted */
        p->is_over_name = true;
    }
    return result;
}

/*
 * Without a lock: one attempt, from the calling thread's shard. The hook and the log are told when
 * it is over: what they do cannot make it begin again, and no page is under way.
 */
static quire_result attempt(quire_memory *memory, placing *p, bool dedicated, uint32_t *slot)
{
    p->shard = qi_shard_mine(memory);
    p->leaving = NULL;
    p->is_over_name = false;
    qi_lock_acquire(&p->shard->lock);
    p->leaving = qi_shard_catch_up(p->shard, NULL);
    quire_result result = find_by_name(p, dedicated, slot);
    qi_lock_release(&p->shard->lock);
    if (p->leaving)
        qi_pages_give_back(memory, p->leaving, &p->progress.events);
    qi_page_events_report(memory, &p->progress.events, dedicated ? ", dedicated" : "");
    if (p->is_over_name)
        qi_release_unpublished(memory, *slot);
    return result;
}

/* The same; in checked builds once more before a refusal, with all there that was freed. */
static quire_result attempt_with_freed(quire_memory *memory, placing *p, bool dedicated,
                                       uint32_t *slot)
{
    quire_result result = attempt(memory, p, dedicated, slot);
    if (!qi_is_out_of_pages(result) || !qi_checked_begin_out_of_memory(memory))
        return result;
    result = attempt(memory, p, dedicated, slot);
    qi_checked_end_out_of_memory(memory);
    return result;
}

/* Without a lock: whether the caller says that it has freed something; the error stays. */
static bool caller_helps(quire_memory *memory, placing *p, quire_result reason, uint32_t times)
{
    const quire_on_out_of_memory *on_out_of_memory = &memory->on_out_of_memory;
    if (!on_out_of_memory->callback || p->request->is_unaided || !qi_is_out_of_pages(reason) ||
        times > QUIRE_MAX_OUT_OF_MEMORY_CALLS)
        return false;
    const quire_out_of_memory shortage = {.size = p->range_request.size,
                                          .alignment = p->range_request.alignment,
                                          .reason = reason,
                                          .times = times};
    qi_error error = qi_error_save();
    p->progress.tried |= QI_TRIED_CALLER;
    qi_transit_assert_none();
    bool helps = on_out_of_memory->callback(on_out_of_memory->user, memory, &shortage);
    qi_error_restore(&error);
    return helps;
}

/* Attempts, while the caller promises to help. What failed on the way to a success is not told. */
static quire_result place(quire_memory *memory, placing *p, bool dedicated, uint32_t *slot)
{
    qi_error before;
    quire_result result;
    uint32_t times = 0;
    p->before = &before;
    do
        result = attempt_with_freed(memory, p, dedicated, slot);
    while (result && caller_helps(memory, p, result, ++times));
    if (!result && p->has_before)
        qi_error_restore(&before);
    return result;
}

static quire_result prepare(const quire_memory *memory, const qi_request *request, placing *p)
{
    uint64_t held = request->held > request->size ? request->held : request->size;
    *p = (placing){
        .request = request,
        .range_request = {.alignment = request->alignment,
                          .requested = request->size,
                          .user_data = request->object ? request->native : request->user_data,
                          .object = request->object,
                          .borrowed = request->borrowed}};
    if (memory->atom > request->alignment)
        p->range_request.alignment = memory->atom;
    if (request->tied) { /* the page is as large as the object, to the byte */
        p->range_request.size = held;
        return QUIRE_SUCCESS;
    }
    if (qi_policy_size_overflows(&memory->policy, held, &p->range_request.size) ||
        qi_align_up_overflows(p->range_request.size, memory->atom, &p->range_request.size) ||
        qi_checked_grow_overflows(memory, &p->range_request.alignment, &p->range_request.size))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                            "%u bytes asked: more than can be counted once rounded up", held);
    return QUIRE_SUCCESS;
}

quire_result qi_allocate(quire_memory *memory, const qi_request *request, quire_result failed,
                         uint32_t *slot)
{
    placing p;
    if (memory->device->is_disabled)
        return qi_refuse_disabled();
    bool dedicated = qi_request_needs_dedicated(memory, request);
    quire_result result = prepare(memory, request, &p);
    if (!result)
        result = failed;
    if (!result)
        result =
            qi_slot_meta_create(memory, request->name, request->object ? request->user_data : 0,
                                request->object == QUIRE_OBJECT_IMAGE, &p.range_request.meta);
    if (!result)
        result = place(memory, &p, dedicated, slot);
    if (result) {
        qi_slot_meta_release(memory, p.range_request.meta);
        return qi_oom_report(memory, request->name ? request->name : request->name_later,
                             request->size, p.range_request.alignment, p.progress.tried, result);
    }
    if (!request->tied) /* its object is not bound yet */
        qi_checked_placed(memory, *slot, request->zero);
    if (request->zero)
        result = qi_access_fill_zero(memory, *slot);
    if (result) {
        qi_release_unpublished(memory, *slot);
        qi_oom_count(memory);
    }
    return result;
}
