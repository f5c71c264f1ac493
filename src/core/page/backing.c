/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * backing.c - memory comes and goes in rounds. A round takes free chunks out of the space, lets
 * their memory go, requests what they do not suffice for, and backs holes of a window. The memory
 * that went stays claimed in the accounts, so that no other memory gets it in between.
 */
#include "src/core/page/backing.h"

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/base/thread.h"
#include "src/core/find/addresses.h"
#include "src/core/page/empty.h"
#include "src/core/page/life.h"
#include "src/core/page/range.h"
#include "src/core/page/sizes.h"
#include "src/space/fit.h"
#include "src/space/space.h"

/* ---- one thread at a time ----------------------------------------------------------------- */

bool qi_resize_begin(qi_page *page)
{
    qi_pages *pages = &page->shard->memory->pages;
    qi_lock_acquire(&pages->lock);
    bool is_free = !page->resizing;
    page->resizing = true;
    if (is_free)
        page->owner = qi_thread_self();
    qi_lock_release(&pages->lock);
    if (is_free)
        qi_transit_begin();
    return is_free;
}

void qi_resize_await(qi_shard *shard, const qi_page *page)
{
    qi_pages *pages = &shard->memory->pages;
    qi_lock_acquire(&pages->lock);
    if (page->resizing)
        qi_lock_wait(&pages->lock, &shard->lock);
    qi_lock_release(&pages->lock);
}

quire_result qi_resize_await_turn(qi_shard *shard, qi_page *page)
{
    while (!qi_resize_begin(page)) {
        if (qi_transit_is_on())
            return qi_fail(QUIRE_ERROR_BUSY, "a call from inside a backend's function does not "
                                             "wait for the page");
        qi_resize_await(shard, page);
    }
    return QUIRE_SUCCESS;
}

void qi_resize_end(qi_page *page, bool has_changed)
{
    qi_pages *pages = &page->shard->memory->pages;
    qi_lock_acquire(&pages->lock);
    page->resizing = false;
    page->to_give = 0;
    pages->changes += has_changed;
    qi_lock_wake_all(&pages->lock);
    qi_lock_release(&pages->lock);
    qi_transit_end();
}

quire_result qi_sleep_begin(qi_shard *shard, qi_page *page)
{
    qi_pages *pages = &shard->memory->pages;
    const void *self = qi_thread_self();
    bool is_inside = qi_transit_is_on();
    qi_lock_acquire(&pages->lock);
    while (page->sleeper && !is_inside) {
        is_inside = page->sleeper == self;
        if (!is_inside)
            qi_lock_wait(&pages->lock, &shard->lock);
    }
    if (!is_inside)
        page->sleeper = self;
    qi_lock_release(&pages->lock);
    return is_inside ? qi_fail(QUIRE_ERROR_BUSY, "a call from inside a backend's function puts "
                                                 "nothing to sleep and wakes nothing")
                     : QUIRE_SUCCESS;
}

void qi_sleep_end(qi_page *page)
{
    qi_pages *pages = &page->shard->memory->pages;
    qi_lock_acquire(&pages->lock);
    page->sleeper = NULL;
    qi_lock_wake_all(&pages->lock);
    qi_lock_release(&pages->lock);
}

/* ---- the page ----------------------------------------------------------------------------- */

qi_page *qi_backing_page(const qi_shard *shard)
{
    if (!shard->memory->is_elastic || !shard->shared)
        return NULL;
    return qi_shard_tally(shard, 0)->page; /* its only region has the lowest number */
}

/* The least of: the memory's address space, the largest page of the device, the rest of the
   line. */
uint64_t qi_backing_max_size(const qi_page *page)
{
    const quire_memory *memory = page->shard->memory;
    const quire_device_info *info = &memory->device->info;
    if (!page->elastic)
        return 0;
    uint64_t max = memory->address_space, line = qi_space_line_left(page->shard->space);
    if (info->limits.max_page && max > info->limits.max_page)
        max = info->limits.max_page;
    max = qi_align_down(max < line ? max : line, qi_page_unit(memory));
    return max > page->wanted ? max : page->wanted;
}

quire_result qi_backing_refuse_place(const qi_page *page)
{
    return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                        "an elastic memory: the backend made its page at %x, which is not a "
                        "multiple of the granule, %u byte%s",
                        page->native.native.address, page->shard->memory->granule);
}

/* Requires the locks of the shard and of the pages, but for the child of a fork. The statistics
   follow. */
static void set_bytes(qi_page *page, uint64_t bytes)
{
    quire_memory_stats *stats = &page->shard->memory->pages.stats;
    qi_page_history_change(page, page->native.bytes, bytes);
    stats->reserved_bytes += bytes - page->native.bytes;
    qi_raise(&stats->peak_reserved_bytes, stats->reserved_bytes);
    page->native.bytes = bytes;
}

/* Requires the shard's lock. */
static void change_bytes(qi_page *page, uint64_t more, uint64_t less)
{
    qi_pages *pages = &page->shard->memory->pages;
    qi_lock_acquire(&pages->lock);
    set_bytes(page, page->native.bytes + more - less);
    qi_lock_release(&pages->lock);
}

/* ---- a round ------------------------------------------------------------------------------ */

/* A list on the stack, so that no host memory is needed. */
enum { MAX_SPANS = 128 };

typedef struct span_list {
    quire_span spans[MAX_SPANS]; /* in ascending order */
    uint32_t count;
    uint64_t bytes;
} span_list;

static void add_span(span_list *list, const qi_chunk_run *run)
{
    uint32_t at = list->count++;
    for (; at && list->spans[at - 1].offset > run->offset; at--)
        list->spans[at] = list->spans[at - 1];
    list->spans[at] = (quire_span){run->offset, run->size};
    list->bytes += run->size;
}

/* What gets or loses memory, in ascending order: pieces of a window, or an array of runs. */
typedef struct source {
    const quire_space *space;
    const qi_window *window; /* NULL: runs */
    qi_piece piece;
    const qi_chunk_run *runs;
    uint64_t left;   /* runs */
    qi_chunk_run at; /* the last one that was listed */
} source;

static source pieces_of(const qi_page *page, const qi_window *window, qi_piece piece)
{
    return (source){.space = page->shard->space, .window = window, .piece = piece};
}

static bool next_run(source *s)
{
    if (s->window)
        return qi_space_next_piece(s->space, s->window, s->piece, &s->at);
    if (!s->left)
        return false;
    s->at = *s->runs++;
    s->left--;
    return true;
}

/* Lists what comes next. Returns false if nothing does. */
static bool list_next(source *s, span_list *list)
{
    *list = (span_list){.count = 0};
    while (list->count < MAX_SPANS && next_run(s))
        add_span(list, &s->at);
    return list->count != 0;
}

/* Requires the shard's lock. Takes free chunks of up to `bytes` out of the space: a few ranges are
   examined, or `all`. */
static void take_free(const qi_page *page, uint64_t bytes, bool all, span_list *taken)
{
    quire_space *space = page->shard->space;
    const uint64_t chunk = page->shard->memory->chunk;
    qi_chunk_run run = {.size = 1};
    *taken = (span_list){.count = 0};
    while (taken->count < MAX_SPANS && taken->bytes < bytes) {
        uint64_t most = (bytes - taken->bytes) / chunk;
        if (qi_space_take_chunks(space, most, all, &run) || !run.size)
            break;
        qi_addresses_uncover(page->shard->memory, page, run.offset, run.size);
        add_span(taken, &run);
    }
}

/* Requires no lock. Takes the memory of the spans; `holds` keeps its claim. */
static void unback(const qi_page *page, const span_list *list, bool holds)
{
    quire_memory *memory = page->shard->memory;
    qi_device_page_unback(memory->device, &memory->calls, &memory->account, &page->native,
                          list->spans, list->count, holds);
}

/* What a round backs, and what it has for that. */
typedef struct qi_round {
    qi_page *page;
    span_list holes; /* to back */
    uint64_t held;   /* bytes that stay claimed, of chunks that have lost their memory */
} qi_round;

/*
 * Requires the shard's lock. Releases and reacquires it. Lets the memory of free chunks go, as much
 * as the round needs. Returns whether there was any.
 */
static bool take_memory(qi_round *r, bool all)
{
    qi_shard *shard = r->page->shard;
    const uint64_t before = r->held;
    span_list taken = {.count = 1};
    while (r->held < r->holes.bytes && taken.count) {
        take_free(r->page, r->holes.bytes - r->held, all, &taken);
        if (!taken.count)
            break;
        r->held += taken.bytes;
        qi_lock_release(&shard->lock);
        unback(r->page, &taken, true);
        qi_lock_acquire(&shard->lock);
    }
    return r->held > before;
}

static void note_budget(qi_page *page, const qi_budget_terms *terms)
{
    qi_pages *pages = &page->shard->memory->pages;
    page->over_budget = terms->has_exceeded;
    qi_lock_acquire(&pages->lock);
    pages->stats.pages_over_budget += terms->has_exceeded;
    qi_lock_release(&pages->lock);
}

/* Requires no lock. Backs the holes, with new memory for what is not held. */
static quire_result request(const qi_round *r, qi_page_progress *progress)
{
    quire_memory *memory = r->page->shard->memory;
    const uint64_t more = r->holes.bytes - r->held;
    qi_page_attempt a = qi_page_attempt_begin(memory, more, more, false, progress);
    quire_result result;
    do {
        qi_page_attempt_start(&a);
        result = qi_device_page_back(memory->device, &memory->calls, &memory->account, &a.terms,
                                     memory->name, &r->page->native, r->holes.spans, r->holes.count,
                                     r->held);
    } while (qi_is_out_of_memory(result) &&
             qi_pages_give_back_empty(memory, UINT64_MAX, &progress->events));
    (void)qi_page_attempt_again(&a, result, progress); /* there is no smaller size */
    if (!result)
        note_budget(r->page, &a.terms);
    return result;
}

/* Requires the shard's lock. Releases and reacquires it. What the round holds is lost. */
static void give_up(const qi_round *r)
{
    qi_shard *shard = r->page->shard;
    quire_memory *memory = shard->memory;
    if (!r->held)
        return;
    change_bytes(r->page, 0, r->held);
    qi_lock_release(&shard->lock);
    qi_device_page_give_up(memory->device, &memory->calls, &memory->account, &r->page->native,
                           r->held);
    qi_lock_acquire(&shard->lock);
}

/* Requires the shard's lock. Whether the policy keeps the free chunks beside new memory. */
static bool may_keep_more(const qi_round *r)
{
    const uint64_t retained = r->page->shard->memory->policy.retained_empty_bytes;
    const uint64_t free = qi_backing_free(r->page->shard);
    return free < retained && r->holes.bytes <= retained - free;
}

/*
 * Requires the shard's lock. Releases and reacquires it. Backs the holes of the round: with the
 * memory of free chunks if it `takes` some, unless the policy keeps them; otherwise with new
 * memory. After a refusal it examines all free ranges.
 */
static quire_result back_holes(qi_round *r, bool takes, qi_page_progress *progress)
{
    qi_shard *shard = r->page->shard;
    quire_result result;
    bool all = false;
    if (takes && !may_keep_more(r))
        take_memory(r, false);
    do {
        qi_lock_release(&shard->lock);
        result = request(r, progress);
        qi_lock_acquire(&shard->lock);
        all = !all && takes && qi_is_out_of_memory(result);
    } while (all && take_memory(r, true));
    if (result) {
        give_up(r);
        return result;
    }
    change_bytes(r->page, r->holes.bytes, r->held);
    if (r->holes.bytes > r->held)
        qi_retention_note_made(shard);
    for (uint32_t i = 0; i < r->holes.count; i++)
        qi_checked_page_grown(r->page, r->holes.spans[i].offset,
                              r->holes.spans[i].offset + r->holes.spans[i].size);
    return QUIRE_SUCCESS;
}

/* ---- windows ------------------------------------------------------------------------------ */

/* Requires the shard's lock. Releases and reacquires it. Takes the memory of what begins before
   `end`. */
static void unback_before(qi_page *page, source from, uint64_t end)
{
    qi_shard *shard = page->shard;
    span_list list;
    while (list_next(&from, &list) && list.spans[0].offset < end) {
        change_bytes(page, 0, list.bytes);
        qi_lock_release(&shard->lock);
        unback(page, &list, false);
        qi_lock_acquire(&shard->lock);
    }
}

/* Requires the shard's lock. Releases and reacquires it. Backs all of a source, or nothing. */
static quire_result back_all(qi_page *page, const source *wanted, bool takes,
                             qi_page_progress *progress)
{
    source rest = *wanted;
    qi_round r = {.page = page};
    quire_result result = QUIRE_SUCCESS;
    while (!result && list_next(&rest, &r.holes)) {
        r.held = 0;
        result = back_holes(&r, takes, progress);
    }
    if (result)
        unback_before(page, *wanted, r.holes.spans[0].offset);
    return result;
}

static quire_result back_window(qi_page *page, const qi_window *window, bool takes,
                                qi_page_progress *progress)
{
    const source holes = pieces_of(page, window, QI_PIECE_HOLE);
    return back_all(page, &holes, takes, progress);
}

/* Requires the shard's lock, for a page that is resizing. Releases and reacquires the lock. */
static quire_result make_window(qi_page *page, qi_window *window, bool takes,
                                qi_page_progress *progress)
{
    quire_memory *memory = page->shard->memory;
    quire_space *space = page->shard->space;
    if (qi_atomic_load_u32(&memory->is_ending))
        return qi_fail_text(QUIRE_ERROR_WRONG_STATE, "memory '%s' is being destroyed",
                            memory->name);
    quire_result result = qi_space_reserve_window(space, window);
    if (result)
        return result;
    page->window = *window;
    result = qi_addresses_cover(memory, page, window->offset, window->size);
    if (!result)
        result = back_window(page, window, takes, progress);
    page->window.size = 0;
    if (result) {
        qi_space_close_window(space, window);
        return result;
    }
    qi_space_open_window(space, window);
    progress->events.made = qi_page_made(page);
    progress->events.made.resized = true;
    return QUIRE_SUCCESS;
}

/*
 * Requires the shard's lock, for a page that is resizing. Releases and reacquires the lock. A
 * refused request has lost the memory of free chunks: what is promised beyond the rest comes back,
 * as far as there is memory. The thread's last error stays.
 */
static void restore_promise(qi_page *page, qi_page_progress *progress)
{
    quire_memory *memory = page->shard->memory;
    qi_page_progress own = *progress; /* the request's own says why it was refused */
    quire_result result = QUIRE_SUCCESS;
    qi_window window;
    qi_error error;
    qi_error_save(&error);
    while (!result) {
        const uint64_t missing = qi_align_up(qi_pages_below_floor(&memory->pages), memory->chunk);
        if (!missing || !qi_space_find_hole(page->shard->space, missing, &window))
            break;
        result = make_window(page, &window, false, &own);
    }
    progress->events = own.events;
    qi_error_restore(&error);
}

/* ---- kept windows ------------------------------------------------------------------------- */

quire_result qi_backing_back_pieces(qi_page *page, const qi_window *part,
                                    qi_page_progress *progress)
{
    quire_result result = back_window(page, part, true, progress);
    if (result)
        restore_promise(page, progress);
    return result;
}

void qi_backing_unback_pieces(qi_page *page, const qi_window *part, qi_piece piece)
{
    unback_before(page, pieces_of(page, part, piece), UINT64_MAX);
    qi_space_mark_pieces(page->shard->space, part, piece, QI_PIECE_HOLE);
}

/* ---- chunks that sleep ------------------------------------------------------------------ */

quire_result qi_backing_back_runs(qi_page *page, const qi_chunk_run *runs, uint64_t count,
                                  qi_page_progress *progress)
{
    const source wanted = {.runs = runs, .left = count};
    quire_result result = back_all(page, &wanted, true, progress);
    if (result)
        restore_promise(page, progress);
    return result;
}

void qi_backing_unback_runs(qi_page *page, const qi_chunk_run *runs, uint64_t count)
{
    unback_before(page, (source){.runs = runs, .left = count}, UINT64_MAX);
}

/* ---- in the child of a fork --------------------------------------------------------------- */

/* Takes what stretches without ranges may have. */
typedef struct gaps {
    const qi_page *page;
    uint64_t end;  /* of the range before */
    uint64_t kept; /* bytes of kept windows that have memory */
} gaps;

/* A hole is whole chunks; what is less lies at the edge of a slab. */
static void unback_gap(const gaps *g, uint64_t end)
{
    const quire_memory *memory = g->page->shard->memory;
    const quire_device *device = memory->device;
    const uint64_t first = qi_align_up(g->end, memory->chunk);
    end = qi_align_down(end, memory->chunk);
    if (first < end)
        device->table.page_unback(device->state, &g->page->native.native,
                                  &(quire_span){first, end - first}, 1, false);
}

static void visit_kept(gaps *g, const quire_space_item *item)
{
    const qi_page *page = g->page;
    const qi_slot *record = qi_memory_slot(page->shard->memory, (uint32_t)item->user);
    const qi_window window = qi_lazy_window(qi_slot_lazy(record));
    qi_chunk_run run = {0};
    while (qi_space_next_piece(page->shard->space, &window, QI_PIECE_BACKED, &run)) {
        unback_gap(g, run.offset);
        g->end = run.offset + run.size;
        g->kept += run.size;
    }
}

/* The chunks of a live range that sleep have no memory, also if a vanished thread was waking it. */
static void unback_asleep(const gaps *g, const quire_space_item *item)
{
    const quire_memory *memory = g->page->shard->memory;
    const quire_device *device = memory->device;
    const uint64_t chunk = memory->chunk, end = item->offset + item->size;
    for (uint64_t at = qi_align_down(item->offset, chunk); at < end; at += chunk)
        if (qi_space_chunk_sleeps(g->page->shard->space, item->range, at))
            device->table.page_unback(device->state, &g->page->native.native,
                                      &(quire_span){at, chunk}, 1, false);
}

static bool visit_range(void *user, const quire_space_item *item)
{
    gaps *g = user;
    if (!item->is_free && !item->range.id) {
        visit_kept(g, item);
        return true;
    }
    if (!item->is_free)
        unback_asleep(g, item);
    unback_gap(g, item->offset - item->left_padding);
    g->end = item->offset + item->size;
    return true;
}

void qi_backing_settle(qi_page *page)
{
    quire_space *space = page->shard->space;
    gaps g = {.page = page};
    if (page->window.size)
        qi_space_close_window(space, &page->window);
    page->window.size = 0;
    qi_space_walk_region(space, page->region, visit_range, &g);
    unback_gap(&g, page->native.native.size);
    set_bytes(page, space->region_bytes - space->asleep_bytes + g.kept);
}

/* ---- room --------------------------------------------------------------------------------- */

bool qi_backing_has_addresses(const qi_shard *shard, uint64_t size, uint64_t alignment)
{
    qi_window window;
    return qi_space_find_window(shard->space, size, alignment, &window);
}

quire_result qi_backing_make_room(qi_shard *shard, uint64_t size, uint64_t alignment,
                                  qi_resize_result *outcome, qi_page_progress *progress)
{
    qi_page *page = qi_backing_page(shard);
    qi_window window;
    *outcome = QI_RESIZE_NONE;
    if (!qi_resize_begin(page)) {
        if (qi_transit_is_on())
            return qi_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                           "a call from inside a backend's function does not wait for the page");
        qi_resize_await(shard, page);
        *outcome = QI_RESIZE_AWAITED;
        return QUIRE_SUCCESS;
    }
    quire_result result = QUIRE_SUCCESS;
    if (!qi_space_find_window(shard->space, size, alignment, &window))
        result = qi_fail_at_limit(
            QI_LIMIT_ADDRESSES, page->native.native.size,
            qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                         "%b (%u byte%s) requested: no stretch of the page's %b of addresses "
                         "has room",
                         size, size, page->native.native.size));
    else
        result = make_window(page, &window, true, progress);
    if (result)
        restore_promise(page, progress);
    *outcome = result ? QI_RESIZE_NONE : QI_RESIZE_DONE;
    qi_resize_end(page, !result);
    return result;
}

quire_result qi_backing_add(qi_shard *shard, uint64_t bytes, qi_page_progress *progress)
{
    qi_page *page = qi_backing_page(shard);
    qi_window window;
    if (!qi_resize_begin(page)) {
        qi_resize_await(shard, page);
        return QUIRE_SUCCESS;
    }
    quire_result result = QUIRE_SUCCESS;
    if (!qi_space_find_hole(shard->space, bytes, &window))
        result =
            qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                         "all %b of the page's addresses have memory", page->native.native.size);
    else
        result = make_window(page, &window, false, progress);
    qi_resize_end(page, !result);
    return result;
}

/* ---- free chunks -------------------------------------------------------------------------- */

/*
 * Free chunks leave in rounds without a lock. Meanwhile allocations may use some of them, and
 * others may become free.
 */

uint64_t qi_backing_free(const qi_shard *shard)
{
    const qi_page *page = qi_backing_page(shard);
    if (!page)
        return 0;
    const uint64_t used = page->tally->live_bytes + page->asleep_bytes + page->waking_bytes -
                          shard->space->asleep_bytes;
    return page->native.bytes > used ? page->native.bytes - used : 0;
}

/* Whether this thread has put the page in its list: a trim applies the policy before its target. */
static bool is_giving(qi_page *page)
{
    qi_pages *pages = &page->shard->memory->pages;
    qi_lock_acquire(&pages->lock);
    bool is = page->resizing && page->to_give && page->owner == qi_thread_self();
    qi_lock_release(&pages->lock);
    return is;
}

qi_page *qi_backing_shrink(qi_shard *shard, uint64_t bytes, qi_page *leaving)
{
    qi_page *page = qi_backing_page(shard);
    const uint64_t above = qi_pages_above_floor(&shard->memory->pages);
    const uint64_t free = qi_backing_free(shard), chunk = shard->memory->chunk;
    if (!page || !bytes || free < chunk)
        return leaving;
    bytes = bytes < free ? qi_align_up(bytes, chunk) : free;
    bytes = qi_align_down(bytes < above ? bytes : above, chunk);
    if (bytes && is_giving(page)) {
        qi_raise(&page->to_give, bytes);
        return leaving;
    }
    if (!bytes || !qi_resize_begin(page))
        return leaving;
    page->to_give = bytes;
    page->next = leaving;
    return page;
}

/* Requires no lock. Takes page->to_give bytes of free chunks, or as many as there are. Pages that
   left since were released above the floor, too. */
static uint64_t give_chunks(quire_memory *memory, qi_page *page)
{
    qi_shard *shard = page->shard;
    const uint64_t wanted = page->to_give;
    uint64_t given = 0;
    span_list taken;
    do {
        qi_lock_acquire(&shard->lock);
        const uint64_t left = wanted - given, above = qi_pages_above_floor(&memory->pages);
        take_free(page, left < above ? left : qi_align_down(above, memory->chunk), true, &taken);
        change_bytes(page, 0, taken.bytes);
        qi_lock_release(&shard->lock);
        if (taken.count)
            unback(page, &taken, false);
        given += taken.bytes;
    } while (taken.count && given < wanted);
    return given;
}

bool qi_resize_is_giving(const qi_shard *shard)
{
    const qi_page *page = qi_backing_page(shard);
    return page && page->to_give;
}

uint64_t qi_resize_finish(quire_memory *memory, qi_page *page, qi_page_change *change)
{
    uint64_t bytes = give_chunks(memory, page);
    if (bytes)
        *change =
            (qi_page_change){.size = page->native.bytes, .number = page->number, .resized = true};
    qi_resize_end(page, bytes != 0); /* a refused request searches again after a change only */
    return bytes;
}

/* Returns the bytes that were free at all looks of `age` nanoseconds, once these have passed. */
static uint64_t aged_bytes(qi_page *page, uint64_t free, uint64_t time, uint64_t age)
{
    if (!page->emptied_at || time < page->emptied_at) {
        page->emptied_at = time;
        page->least_free = free;
    }
    if (free < page->least_free)
        page->least_free = free;
    return time - page->emptied_at < age ? 0 : page->least_free;
}

enum { DEFAULT_SHARE = 10 };

/* Of `free` bytes those beyond `keep` leave at an age; 0: that of the default. */
static qi_page *give_aged(qi_page *page, uint64_t free, uint64_t keep, uint64_t age,
                          qi_page *leaving)
{
    qi_shard *shard = page->shard;
    const uint64_t time = qi_memory_time(shard->memory);
    const bool is_default = !age;
    if (is_default)
        age = qi_retention_age(&shard->retention, time);
    const uint64_t aged = aged_bytes(page, free, time, age);
    if (!aged)
        return leaving;
    if (is_default && aged > keep) {
        shard->retention.given++;
        shard->retention.since = page->emptied_at;
    }
    page->emptied_at = 0;
    return aged > keep ? qi_backing_shrink(shard, aged - keep, leaving) : leaving;
}

qi_page *qi_backing_age(qi_shard *shard, qi_page *leaving)
{
    qi_page *page = qi_backing_page(shard);
    const quire_page_policy *policy = &shard->memory->policy;
    shard->work |= shard->memory->is_elastic ? QI_WORK_AGING : 0;
    if (!page)
        return leaving;
    const uint64_t free = qi_backing_free(shard), chunk = shard->memory->chunk;
    const uint64_t age = policy->retention_nanoseconds;
    if (policy->retained_empty_bytes) {
        const uint64_t retained = qi_align_down(policy->retained_empty_bytes, chunk);
        if (free >= chunk && free - chunk >= retained)
            return qi_backing_shrink(shard, free - retained, leaving);
        if (!age)
            return leaving;
    }
    const uint64_t keep = age ? 0 : page->native.bytes / DEFAULT_SHARE;
    if (free >= keep + chunk)
        return give_aged(page, free, keep, age, leaving);
    page->emptied_at = 0;
    return leaving;
}
