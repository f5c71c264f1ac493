/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * lazy.c - a call that changes several ranges prepares all of them before it changes one, or marks
 * what it changes so that it can take it back without host memory: chunks that it backs are FRESH
 * until the call succeeds, and those that it takes are LEAVING. Only the thread that changes the
 * page has such chunks.
 */
#include "src/core/page/lazy.h"

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/base/thread.h"
#include "src/core/find/addresses.h"
#include "src/core/page/backing.h"
#include "src/core/page/life.h"
#include "src/core/slot/slot.h"
#include "src/space/space.h"

/* The record of an allocation in use. */
static qi_slot *record_of(const quire_memory *memory, const quire_view *range)
{
    return qi_memory_slot(memory, qi_handle_slot(range->allocation.id));
}

/* Requires the shard's lock. The bytes of one kind in a part of a window. */
static uint64_t bytes_of(const quire_space *space, const qi_window *part, qi_piece piece)
{
    qi_chunk_run run = {0};
    uint64_t bytes = 0;
    while (qi_space_next_piece(space, part, piece, &run))
        bytes += run.size;
    return bytes;
}

/* ---- taking and giving -------------------------------------------------------------------- */

static quire_result refuse_addresses(const qi_page *page, uint64_t size)
{
    return qi_fail_at_limit(
        QI_LIMIT_ADDRESSES, page->native.native.size,
        qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                     "%b (%u byte%s) requested: no stretch without memory of the page's %b of "
                     "addresses has room",
                     size, size, page->native.native.size));
}

/* Reserves a window for a slot that is taken. Fails with OUT_OF_HOST_MEMORY or
   TOO_MANY_ALLOCATIONS. */
static quire_result reserve(qi_shard *shard, qi_page *page, qi_window *window, uint32_t slot)
{
    quire_result result = qi_space_reserve_window(shard->space, window);
    if (result)
        return result;
    /* the allocation starts in this chunk; others are covered when they get memory */
    result = qi_addresses_cover(shard->memory, page, window->offset, shard->memory->chunk);
    if (result)
        qi_space_close_window(shard->space, window);
    else
        qi_space_keep_window(shard->space, window, slot);
    return result;
}

static void fill_record(qi_shard *shard, const qi_range_request *request, const qi_window *window,
                        qi_lazy *lazy, uint32_t slot)
{
    qi_tally *tally = qi_shard_tally(shard, window->region);
    qi_slot *record = qi_memory_slot(shard->memory, slot);
    *record = (qi_slot){
        .offset = window->offset + tally->skipped,
        .user_data = request->user_data,
        .meta = request->meta,
        .tally = tally,
        .shard = (uint8_t)shard->index,
        .extras = request->extras | QI_EXTRA_LAZY,
    };
    *lazy = (qi_lazy){.offset = window->offset,
                      .size = window->size,
                      .region = window->region,
                      .node = window->node,
                      .requested = request->requested};
    record->meta->lazy = lazy;
    qi_checked_resized(record);
    tally->page->lazy_count++;
    qi_range_count_in(shard, record);
}

/* Requires the shard's lock. Releases and reacquires it. The elastic page, made with one chunk of
   memory if there is none. */
static quire_result find_page(qi_shard *shard, qi_page_progress *progress)
{
    const qi_page *joined = NULL;
    quire_result result = QUIRE_SUCCESS;
    while (!result && !qi_backing_page(shard)) {
        qi_page *page = NULL;
        if (qi_page_wait_for_room(shard, 0, &joined)) /* a lazy allocation needs addresses alone */
            continue;
        result = qi_page_make(shard, shard->memory->chunk, 1, false, &page, progress);
        if (result)
            break;
        progress->events.made = qi_page_made(page);
        qi_page_keep(page);
        qi_retention_note_made(shard);
    }
    return result;
}

/* Requires the shard's lock. Releases and reacquires it if free chunks have to lose their memory
   for their addresses. */
static bool find_room(qi_shard *shard, uint64_t size, uint64_t alignment, qi_window *window,
                      qi_page_progress *progress)
{
    if (qi_space_find_room(shard->space, size, alignment, window))
        return true;
    qi_page *leaving = qi_backing_shrink(shard, UINT64_MAX, NULL);
    if (!leaving)
        return false;
    qi_lock_release(&shard->lock);
    qi_pages_give_back(shard->memory, leaving, &progress->events);
    qi_lock_acquire(&shard->lock);
    return qi_space_find_room(shard->space, size, alignment, window);
}

quire_result qi_lazy_take(qi_shard *shard, const qi_range_request *request, uint32_t *slot,
                          qi_page_progress *progress)
{
    quire_memory *memory = shard->memory;
    const uint64_t alignment = request->alignment + !request->alignment;
    uint64_t size;
    qi_window window;
    quire_result result = find_page(shard, progress);
    if (result)
        return result;
    qi_page *page = qi_backing_page(shard);
    if (qi_align_up_overflows(request->requested, memory->chunk, &size) ||
        !find_room(shard, size, alignment, &window, progress))
        return refuse_addresses(page, request->requested);
    result = qi_slot_take(&memory->slots, &shard->queue, &memory->host, slot);
    if (result)
        return result;
    qi_lazy *lazy = qi_host_allocate(&memory->host, 1, sizeof *lazy);
    result = lazy ? reserve(shard, page, &window, *slot)
                  : qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                            "no host memory for the addresses of a lazy allocation");
    if (!result) {
        fill_record(shard, request, &window, lazy, *slot);
        return QUIRE_SUCCESS;
    }
    qi_host_release(&memory->host, lazy, 1, sizeof *lazy);
    qi_slot_give(&memory->slots, &shard->queue, *slot);
    return result;
}

/* ---- a list of ranges --------------------------------------------------------------------- */

/* A call that changes chunks. `ranges` are checked and in use from begin_uses on. */
typedef struct change {
    quire_memory *memory;
    qi_shard *shard; /* the only one of an elastic memory; its lock is held */
    const quire_view *ranges;
    uint64_t count;
    int accept; /* QI_ACCEPT_...: the phases of the allocations */
    qi_page *page;
} change;

static quire_result refuse_kind(const quire_memory *memory, quire_allocation allocation)
{
    return qi_fail_naming(QUIRE_ERROR_UNSUPPORTED, "allocation %x of memory '%t' is not lazy",
                          memory->name, allocation.id);
}

/* Whole chunks around a range, or with `inward` those inside it, from the start of the page. A size
   of 0 means up to the end. The range lies in the allocation. */
static qi_chunk_run chunks_of(const change *c, const quire_view *range, bool inward)
{
    const qi_lazy *lazy = qi_slot_lazy(record_of(c->memory, range));
    const uint64_t chunk = c->memory->chunk;
    uint64_t begin = range->offset, end = range->offset + range->size;
    if (!range->size || end == lazy->requested)
        end = lazy->size;
    begin = inward ? qi_align_up(begin, chunk) : qi_align_down(begin, chunk);
    end = inward ? qi_align_down(end, chunk) : qi_align_up(end, chunk);
    return (qi_chunk_run){.region = lazy->region,
                          .offset = lazy->offset + begin,
                          .size = end > begin ? end - begin : 0};
}

static quire_result check_range(const change *c, const quire_view *range, uint32_t slot)
{
    const qi_slot *record = qi_memory_slot(c->memory, slot);
    if (!qi_slot_is_lazy(record))
        return refuse_kind(c->memory, range->allocation);
    const uint64_t usable = qi_slot_usable(record);
    if (range->offset < usable && qi_range_fits(range->offset, range->size, usable))
        return QUIRE_SUCCESS;
    return qi_fail_naming(QUIRE_ERROR_OUT_OF_RANGE,
                          "%u byte%s at offset %u of an allocation in '%t', which has %u byte%s",
                          c->memory->name, range->size, range->offset, usable);
}

static void end_uses(const change *c, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        qi_slot_lazy(record_of(c->memory, &c->ranges[i]))->changing--;
        qi_slot_end_use(&c->memory->slots, qi_handle_slot(c->ranges[i].allocation.id));
    }
}

/* Checks every range and begins its use. On failure none is in use. */
static quire_result begin_uses(const change *c)
{
    for (uint64_t i = 0; i < c->count; i++) {
        uint32_t slot = 0;
        quire_result result =
            qi_slot_begin_use(&c->memory->slots, c->ranges[i].allocation, c->accept, &slot);
        if (!result) {
            result = check_range(c, &c->ranges[i], slot);
            if (result)
                qi_slot_end_use(&c->memory->slots, slot);
        }
        if (result) {
            end_uses(c, i);
            return result;
        }
        qi_slot_lazy(qi_memory_slot(c->memory, slot))->changing++;
    }
    return QUIRE_SUCCESS;
}

/* Acquires the shard's lock, takes the ranges into use, and begins to change the page. On failure
   nothing is held. */
static quire_result begin(change *c)
{
    if (c->memory->device->is_disabled)
        return qi_refuse_disabled();
    qi_lock_acquire(&c->shard->lock);
    quire_result result = begin_uses(c);
    if (!result && c->count) {
        c->page = qi_memory_page(c->memory, qi_handle_slot(c->ranges[0].allocation.id));
        result = qi_resize_await_turn(c->shard, c->page);
        if (result)
            end_uses(c, c->count);
    }
    if (result || !c->count)
        qi_lock_release(&c->shard->lock);
    return result;
}

/* Ends what `begin` began, and reports the events. */
static void end(const change *c, bool has_changed, qi_page_events *events)
{
    qi_resize_end(c->page, has_changed);
    end_uses(c, c->count);
    qi_lock_release(&c->shard->lock);
    qi_page_events_report(c->memory, events, "");
}

/* ---- counts ------------------------------------------------------------------------------- */

/* The accounts of names are the caller's. */
static void count_more(qi_shard *shard, qi_slot *record, uint64_t bytes)
{
    quire_memory_stats *stats = &shard->stats;
    stats->live_bytes += bytes;
    stats->requested_bytes += bytes;
    record->tally->live_bytes += bytes;
    record->size += bytes;
    record->requested += bytes;
    qi_checked_resized(record);
}

static void count_less(qi_shard *shard, qi_slot *record, uint64_t bytes)
{
    quire_memory_stats *stats = &shard->stats;
    qi_shard_keep_peaks(stats);
    qi_raise(&record->tally->peak_live_bytes, record->tally->live_bytes);
    stats->live_bytes -= bytes;
    stats->requested_bytes -= bytes;
    record->tally->live_bytes -= bytes;
    record->size -= bytes;
    record->requested -= bytes;
    qi_checked_resized(record);
}

/* ---- giving memory ------------------------------------------------------------------------ */

/* The same, for an allocation that is awake. */
static void count_less_named(qi_shard *shard, qi_slot *record, uint64_t bytes)
{
    qi_names_shrink(&shard->memory->names, record->meta ? record->meta->name : NULL, bytes, bytes);
    count_less(shard, record, bytes);
}

static void unpoison(const qi_page *page, const qi_window *part)
{
    qi_chunk_run run = {0};
    while (qi_space_next_piece(page->shard->space, part, QI_PIECE_HOLE, &run))
        qi_checked_page_used(page, run.offset, run.offset + run.size);
}

/* Finds the part of a range. Chunks of it that were to lose their memory at a point keep it. */
static quire_result part_to_back(const change *c, const quire_view *range, qi_window *part)
{
    quire_space *space = c->shard->space;
    const qi_window window = qi_lazy_window(qi_slot_lazy(record_of(c->memory, range)));
    const qi_chunk_run wanted = chunks_of(c, range, false);
    quire_result result = qi_space_part_of_window(space, &window, wanted.offset, wanted.size, part);
    if (result || !bytes_of(space, part, QI_PIECE_WAITING))
        return result;
    qi_space_mark_pieces(space, part, QI_PIECE_WAITING, QI_PIECE_BACKED); /* the part is invalid */
    return qi_space_part_of_window(space, &window, wanted.offset, wanted.size, part);
}

/* Chunks that are backed now are FRESH. On failure none has got memory. */
static quire_result back_range(const change *c, const quire_view *range, qi_page_progress *progress)
{
    quire_space *space = c->shard->space;
    qi_slot *record = record_of(c->memory, range);
    qi_window part;
    quire_result result = part_to_back(c, range, &part);
    const uint64_t missing = result ? 0 : bytes_of(space, &part, QI_PIECE_HOLE);
    if (!missing)
        return result;
    result = qi_names_admit(&c->memory->names, record->meta->name, missing);
    if (!result)
        result = qi_addresses_cover(c->memory, c->page, part.offset, part.size);
    if (!result)
        result = qi_backing_back_pieces(c->page, &part, progress);
    if (result)
        return result;
    result = qi_names_grow(&c->memory->names, record->meta->name, missing, missing);
    if (result) {
        qi_backing_unback_pieces(c->page, &part, QI_PIECE_HOLE);
        return result;
    }
    count_more(c->shard, record, missing);
    unpoison(c->page, &part);
    qi_space_mark_pieces(space, &part, QI_PIECE_HOLE, QI_PIECE_FRESH);
    return QUIRE_SUCCESS;
}

/* Takes the memory of one kind of chunks from the allocations of the first ranges. */
static void take_memory(const change *c, uint64_t count, qi_piece piece)
{
    for (uint64_t i = 0; i < count; i++) {
        qi_slot *record = record_of(c->memory, &c->ranges[i]);
        const qi_window window = qi_lazy_window(qi_slot_lazy(record));
        count_less_named(c->shard, record, bytes_of(c->shard->space, &window, piece));
        qi_backing_unback_pieces(c->page, &window, piece);
    }
}

static void mark_all(const change *c, uint64_t count, qi_piece from, qi_piece to)
{
    for (uint64_t i = 0; i < count; i++) {
        const qi_window window = qi_lazy_window(qi_slot_lazy(record_of(c->memory, &c->ranges[i])));
        qi_space_mark_pieces(c->shard->space, &window, from, to);
    }
}

quire_result qi_lazy_back(quire_memory *memory, const quire_view *ranges, uint64_t count)
{
    change c = {memory, memory->shards[0], ranges, count, QI_ACCEPT_LIVE, NULL};
    qi_page_progress progress = {.within_budget = false};
    quire_result result = begin(&c);
    if (result || !count)
        return result;
    const uint64_t before = c.page->native.bytes;
    uint64_t done = 0;
    while (done < count && !result) {
        result = back_range(&c, &ranges[done], &progress);
        done += !result;
    }
    if (result)
        take_memory(&c, done, QI_PIECE_FRESH);
    else
        mark_all(&c, count, QI_PIECE_FRESH, QI_PIECE_BACKED);
    if (c.page->native.bytes != before) {
        progress.events.made = qi_page_made(c.page);
        progress.events.made.resized = true;
    }
    end(&c, true, &progress.events);
    return result;
}

/* ---- taking memory ------------------------------------------------------------------------ */

/* Whether only calls that change chunks use the allocation. */
static bool has_no_other_use(const quire_memory *memory, uint32_t slot)
{
    const uint64_t word = qi_atomic_load_acquire_u64(qi_slot_state(&memory->slots, slot));
    return qi_word_uses(word) == qi_slot_lazy(qi_memory_slot(memory, slot))->changing;
}

/* Marks chunks as LEAVING, which no call uses any more. On failure nothing has changed. */
static quire_result prepare_to_leave(const change *c, const quire_view *range)
{
    const qi_window window = qi_lazy_window(qi_slot_lazy(record_of(c->memory, range)));
    const qi_chunk_run leaving = chunks_of(c, range, true);
    qi_window part;
    if (!has_no_other_use(c->memory, qi_handle_slot(range->allocation.id)))
        return qi_fail_naming(QUIRE_ERROR_BUSY,
                              "allocation %x of memory '%t' is in use by another call, or an "
                              "object of the backend lies in it",
                              c->memory->name, range->allocation.id);
    if (!leaving.size)
        return QUIRE_SUCCESS;
    quire_result result =
        qi_space_part_of_window(c->shard->space, &window, leaving.offset, leaving.size, &part);
    if (!result)
        qi_space_mark_pieces(c->shard->space, &part, QI_PIECE_BACKED, QI_PIECE_LEAVING);
    return result;
}

/* The same for all ranges, or none. */
static quire_result prepare_all(const change *c)
{
    quire_result result = QUIRE_SUCCESS;
    uint64_t prepared = 0;
    while (prepared < c->count && !result) {
        result = prepare_to_leave(c, &c->ranges[prepared]);
        prepared += !result;
    }
    if (result)
        mark_all(c, prepared, QI_PIECE_LEAVING, QI_PIECE_BACKED);
    return result;
}

/* Takes the memory of all LEAVING chunks of the allocations. */
static void let_leave(const change *c, qi_page_events *events)
{
    const uint64_t before = c->page->native.bytes;
    take_memory(c, c->count, QI_PIECE_LEAVING);
    if (c->page->native.bytes != before)
        events->given = (qi_page_change){
            .size = c->page->native.bytes, .number = c->page->number, .resized = true};
}

quire_result qi_lazy_unback(quire_memory *memory, const quire_view *ranges, uint64_t count)
{
    change c = {memory, memory->shards[0], ranges, count, QI_ACCEPT_LIVE, NULL};
    qi_page_events events = {.gone = NULL};
    quire_result result = begin(&c);
    if (result || !count)
        return result;
    result = prepare_all(&c);
    if (!result)
        let_leave(&c, &events);
    end(&c, !result, &events);
    return result;
}

/* ---- chunks that wait for a point --------------------------------------------------------- */

quire_result qi_lazy_begin_wait(quire_memory *memory, const quire_view *ranges, uint64_t count,
                                void (*enter)(void *user, uint64_t i, uint32_t number), void *user)
{
    change c = {memory, memory->shards[0], ranges, count, QI_ACCEPT_LIVE, NULL};
    quire_result result = begin(&c);
    if (result || !count)
        return result;
    result = prepare_all(&c);
    for (uint64_t i = 0; i < count && !result; i++) {
        const qi_window window = qi_lazy_window(qi_slot_lazy(record_of(memory, &ranges[i])));
        uint32_t *number = &c.page->last_point;
        *number += *number == UINT32_MAX ? 2 : 1; /* 0 is none */
        qi_space_mark_waiting(c.shard->space, &window, *number);
        enter(user, i, *number);
    }
    end(&c, false, &(qi_page_events){.gone = NULL});
    return result;
}

uint64_t qi_lazy_end_wait(quire_memory *memory, quire_allocation allocation, uint32_t number)
{
    const quire_view range = {.allocation = allocation};
    change c = {memory, memory->shards[0], &range, 1, QI_ACCEPT_LIVE | QI_ACCEPT_ASLEEP, NULL};
    qi_page_events events = {.gone = NULL};
    qi_error error;
    qi_error_save(&error);
    const bool is_live = !begin(&c);
    qi_error_restore(&error);
    if (!is_live)
        return 0;
    const qi_window window = qi_lazy_window(qi_slot_lazy(record_of(memory, &range)));
    const uint64_t before = c.page->native.bytes;
    qi_space_end_waiting(c.shard->space, &window, number);
    let_leave(&c, &events);
    const uint64_t bytes = before - c.page->native.bytes;
    end(&c, bytes != 0, &events);
    return bytes;
}

/* ---- sleep -------------------------------------------------------------------------------- */

uint64_t qi_lazy_bytes(const qi_page *page, uint32_t slot, qi_piece piece)
{
    const qi_lazy *lazy = qi_slot_lazy(qi_memory_slot(page->shard->memory, slot));
    const qi_window window = qi_lazy_window(lazy);
    return bytes_of(page->shard->space, &window, piece);
}

void qi_lazy_sleep(qi_page *page, uint32_t slot)
{
    qi_slot *record = qi_memory_slot(page->shard->memory, slot);
    const qi_window window = qi_lazy_window(qi_slot_lazy(record));
    const uint64_t bytes = qi_lazy_bytes(page, slot, QI_PIECE_BACKED);
    count_less(page->shard, record, bytes);
    page->shard->stats.asleep_bytes += bytes;
    qi_space_mark_pieces(page->shard->space, &window, QI_PIECE_BACKED, QI_PIECE_ASLEEP);
}

void qi_lazy_wake(qi_page *page, uint32_t slot)
{
    qi_slot *record = qi_memory_slot(page->shard->memory, slot);
    const qi_window window = qi_lazy_window(qi_slot_lazy(record));
    const uint64_t bytes = qi_lazy_bytes(page, slot, QI_PIECE_ASLEEP);
    count_more(page->shard, record, bytes);
    page->shard->stats.asleep_bytes -= bytes;
    qi_space_mark_pieces(page->shard->space, &window, QI_PIECE_ASLEEP, QI_PIECE_BACKED);
}

/* ---- in the child of a fork --------------------------------------------------------------- */

static bool settle(void *user, const quire_space_item *item)
{
    const qi_page *page = user;
    if (item->is_free || item->range.id) /* no kept window */
        return true;
    quire_space *space = page->shard->space;
    qi_slot *record = qi_memory_slot(page->shard->memory, (uint32_t)item->user);
    const qi_window window = qi_lazy_window(qi_slot_lazy(record));
    qi_slot_lazy(record)->changing = 0;
    qi_space_mark_pieces(space, &window, QI_PIECE_FRESH, QI_PIECE_HOLE);
    qi_space_mark_pieces(space, &window, QI_PIECE_LEAVING, QI_PIECE_HOLE);
    qi_space_mark_pieces(space, &window, QI_PIECE_WAITING, QI_PIECE_HOLE); /* all points passed */
    count_less_named(page->shard, record, record->size - bytes_of(space, &window, QI_PIECE_BACKED));
    return true;
}

void qi_lazy_settle(qi_page *page)
{
    if (page->elastic && page->phase == QI_PAGE_LIVE)
        qi_space_walk_region(page->shard->space, page->region, settle, page);
}

/* ---- checks ------------------------------------------------------------------------------- */

/* The end of the memory that the window has in a row from `begin` on, at most `end`. Pieces that
   are alike do not touch, so that one piece has all of it. */
static uint64_t end_of_memory(const quire_space *space, const qi_window *window, uint64_t begin,
                              uint64_t end)
{
    qi_chunk_run run = {0};
    while (qi_space_next_piece(space, window, QI_PIECE_BACKED, &run) && run.offset <= begin)
        if (run.offset + run.size > begin)
            return run.offset + run.size < end ? run.offset + run.size : end;
    return begin;
}

quire_result qi_lazy_check(quire_memory *memory, uint32_t slot, uint64_t offset, uint64_t size)
{
    qi_lock *lock = &memory->shards[0]->lock;
    const qi_lazy *lazy = qi_slot_lazy(qi_memory_slot(memory, slot));
    const qi_window window = qi_lazy_window(lazy);
    const uint64_t begin = window.offset + offset, end = begin + size;
    qi_lock_acquire(lock);
    const uint64_t has = end_of_memory(memory->shards[0]->space, &window, begin, end);
    qi_lock_release(lock);
    return has == end ? QUIRE_SUCCESS
                      : qi_fail_naming(QUIRE_ERROR_WRONG_STATE,
                                       "offset %u of a lazy allocation in '%t' has no memory: "
                                       "quire_back_range gives it some",
                                       memory->name, has - window.offset);
}

bool qi_lazy_agrees(const qi_page *page, uint32_t slot)
{
    const qi_slot *record = qi_memory_slot(page->shard->memory, slot);
    const quire_space *space = page->shard->space;
    const qi_lazy *lazy = qi_slot_lazy(record);
    if (!lazy || record->range.id || record->offset != lazy->offset + page->tally->skipped)
        return false;
    const qi_window window = qi_lazy_window(lazy);
    const uint64_t counted =
        bytes_of(space, &window, QI_PIECE_BACKED) + bytes_of(space, &window, QI_PIECE_WAITING);
    /* a change releases the lock between its marks and its counts */
    const uint64_t changing =
        bytes_of(space, &window, QI_PIECE_FRESH) + bytes_of(space, &window, QI_PIECE_LEAVING);
    return record->size == record->requested && record->size >= counted &&
           record->size - counted <= changing;
}
