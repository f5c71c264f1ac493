/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * life.c - a page changes its phase under the locks, and the backend is called without a lock
 * between two phases. Events are collected meanwhile and reported at the end of the call.
 */
#include "src/core/page/life.h"

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/base/thread.h"
#include "src/core/device/policy.h"
#include "src/core/find/addresses.h"
#include "src/core/page/backing.h"
#include "src/core/page/empty.h"
#include "src/core/page/sizes.h"
#include "src/core/state/event.h"
#include "src/space/space.h"

/* ---- events ------------------------------------------------------------------------------- */

/*
 * For a GONE page that was never published. If it has the renewed number, its record replaces that
 * of the earlier page with this number, whose end is reported later. Returns false if it has
 * another number.
 */
static bool keep_number(qi_page_events *events, qi_page *page)
{
    if (!events->renewed.size || events->renewed.number != page->number)
        return false;
    page->native.bytes = events->renewed.size;
    page->next = events->gone;
    events->gone = page;
    events->renewed.size = 0;
    return true;
}

/* Takes the lock of the pages. Frees the numbers of a list of GONE pages. */
static void free_numbers(qi_pages *pages, qi_page *gone)
{
    qi_lock_acquire(&pages->lock);
    for (qi_page *page = gone, *next; page; page = next) {
        next = page->next;
        qi_page_free_number(pages, page);
    }
    qi_lock_release(&pages->lock);
}

/* The hook receives the end of every page before the page numbers become free. */
static void report_gone(quire_memory *memory, qi_page *gone, const qi_page_change *renewed)
{
    uint64_t bytes = renewed->size, count = bytes != 0;
    if (count)
        qi_event_page(memory, QUIRE_EVENT_PAGE_GONE, renewed->number, renewed->size);
    for (const qi_page *page = gone; page; page = page->next) {
        bytes += page->native.bytes;
        count++;
        qi_event_page(memory, QUIRE_EVENT_PAGE_GONE, page->number, page->native.bytes);
    }
    free_numbers(&memory->pages, gone);
    qi_log(&memory->device->log, QUIRE_LOG_DEBUG, "memory '%s': pages given back: %llu, %s",
           memory->name, (unsigned long long)count, qi_bytes(bytes).text);
}

static void report_made(quire_memory *memory, const qi_page_change *made, const char *more)
{
    qi_event_page(memory, made->resized ? QUIRE_EVENT_PAGE_RESIZED : QUIRE_EVENT_PAGE_MADE,
                  made->number, made->size);
    if (made->over_budget)
        qi_event_page(memory, QUIRE_EVENT_OVER_BUDGET, made->number, made->size);
    qi_log(&memory->device->log, QUIRE_LOG_DEBUG, "memory '%s': page %u %s, %s%s%s", memory->name,
           made->number, made->resized ? "grown" : "made", qi_bytes(made->size).text, more,
           made->over_budget ? ", beyond the backend's budget" : "");
}

/*
 * The events are cleared first: the hook and the log sink may call quire, which may use them again.
 */
void qi_page_events_report_some(quire_memory *memory, qi_page_events *events, const char *more)
{
    const qi_page_events reported = *events;
    *events = (qi_page_events){.gone = NULL};
    if (reported.given.resized)
        qi_event_page(memory, QUIRE_EVENT_PAGE_RESIZED, reported.given.number, reported.given.size);
    if (reported.gone || reported.renewed.size)
        report_gone(memory, reported.gone, &reported.renewed);
    if (reported.made.size)
        report_made(memory, &reported.made, more);
}

/* ---- numbers ------------------------------------------------------------------------------ */

/* A page to make. */
typedef struct qi_page_plan {
    uint64_t size;      /* of the request that it is made for; bytes */
    uint64_t needed;    /* the least page size in which the request fits */
    uint64_t max_bytes; /* the page has no more bytes, unless it needs them; 0: no bound */
    bool dedicated;
    const qi_tie *tie; /* NULL: not tied to an object */
    bool is_reduced;   /* written with the number: see qi_page_attempt */
} qi_page_plan;

/*
 * Returns the link to the page with the lowest number below `below` among those that this call has
 * destroyed, or NULL.
 */
static qi_page **find_gone(qi_page_events *events, uint32_t below)
{
    qi_page **found = NULL;
    for (qi_page **link = &events->gone; *link && !events->renewed.size; link = &(*link)->next)
        if ((*link)->number < below) {
            below = (*link)->number;
            found = link;
        }
    return found;
}

/*
 * Requires the lock of the pages. Returns the lowest free number. The number of a page that this
 * call has destroyed is free for the page it makes, because its events are reported in order.
 */
static uint32_t find_number(qi_pages *pages, qi_page_events *events)
{
    uint32_t number = pages->free_hint;
    while (number < pages->top && qi_page_at(pages, number)->phase != QI_PAGE_NONE)
        number++;
    qi_page **gone = find_gone(events, number);
    if (!gone) {
        pages->free_hint = number + (number < pages->top);
        return number;
    }
    number = (*gone)->number;
    events->renewed = (qi_page_change){.size = (*gone)->native.bytes, .number = number};
    *gone = (*gone)->next;
    return number;
}

/* Requires the lock of the pages. Assigns the lowest free number and a record in phase MAKING.
   Fails with TOO_MANY_PAGES or OUT_OF_HOST_MEMORY. */
static quire_result take_number(quire_memory *memory, qi_page_events *events, qi_page **out)
{
    qi_pages *pages = &memory->pages;
    uint32_t max = memory->policy.max_pages;
    if (max && pages->in_use >= max)
        return qi_fail_at_limit(
            QI_LIMIT_MEMORY_PAGES, max,
            qi_fail_naming(QUIRE_ERROR_TOO_MANY_PAGES,
                           "memory '%t' has %u page%s, the maximum of its policy", memory->name,
                           pages->in_use));
    uint32_t number = find_number(pages, events);
    if (!qi_table_ensure(&pages->records, &memory->host, number))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for page record %u",
                            number);
    pages->top += number == pages->top;
    pages->in_use++;
    *out = qi_page_at(pages, number);
    **out = (qi_page){
        .number = number, .phase = QI_PAGE_MAKING, .own.page = *out, .owner = qi_thread_self()};
    (*out)->tally = &(*out)->own;
    return QUIRE_SUCCESS;
}

uint32_t qi_page_max_shared(const qi_shard *shard)
{
    return shard->memory->address_space ? 1 : shard->space->fit->max_regions;
}

/* Requires the shard's lock. Whether the fit takes no further region, pages being made included. */
static bool has_all_shared(const qi_shard *shard)
{
    uint32_t max = qi_page_max_shared(shard), count = shard->shared;
    for (const qi_page *page = shard->memory->pages.being_made; page; page = page->next)
        count += !page->dedicated && page->shard == shard;
    return max && count >= max;
}

/*
 * Requires the locks of the shard and of the pages. Assigns a number and a record in phase MAKING.
 * From then on the calling thread has a page in transit (thread.h). Fails with WRONG_STATE (the
 * memory is being destroyed), TOO_MANY_PAGES, OUT_OF_RANGE, OUT_OF_HOST_MEMORY.
 */
static quire_result begin_page(qi_shard *shard, qi_page_plan *p, qi_page_events *events,
                               qi_page **out)
{
    quire_memory *memory = shard->memory;
    uint64_t room = qi_space_line_max(shard->space);
    if (qi_atomic_load_u32(&memory->is_ending))
        return qi_fail_text(QUIRE_ERROR_WRONG_STATE, "memory '%s' is being destroyed",
                            memory->name);
    if (!p->dedicated && has_all_shared(shard))
        return qi_fail_at_limit(
            QI_LIMIT_MEMORY_PAGES, qi_page_max_shared(shard),
            qi_fail_naming(QUIRE_ERROR_TOO_MANY_PAGES,
                           "memory '%t' has %u shared page and cannot have another", memory->name,
                           qi_page_max_shared(shard)));
    if (!p->dedicated && p->needed > room)
        return qi_fail_with(
            QUIRE_ERROR_OUT_OF_RANGE,
            "a page of %b exceeds the offsets of a memory with granule %u: %b are left", p->needed,
            memory->granule, room);
    quire_result result = take_number(memory, events, out);
    if (result)
        return result;
    qi_page *page = *out;
    page->shard = shard;
    page->dedicated = p->dedicated;
    page->elastic = memory->is_elastic && !p->dedicated;
    page->tied = p->tie != NULL;
    page->policy_size = p->dedicated ? 0 : qi_page_policy_size(shard);
    page->wanted = qi_page_wanted_size(shard, page, p->size, p->needed);
    page->wanted =
        qi_page_attempt_size(memory, page->wanted, p->needed, p->max_bytes, &p->is_reduced);
    page->to_join = p->dedicated ? 0 : page->wanted - p->needed;
    page->turn = ++memory->pages.turns;
    page->next = memory->pages.being_made;
    memory->pages.being_made = page;
    qi_page_history_change(page, 0, page->wanted);
    qi_transit_begin();
    return QUIRE_SUCCESS;
}

/* Requires the lock of the pages. The number of a page that was not made gets its old state
   back. */
static void give_number(qi_pages *pages, qi_page *page, qi_page_events *events)
{
    pages->in_use--;
    page->phase = QI_PAGE_GONE;
    qi_page_history_change(page, page->wanted, 0);
    if (!keep_number(events, page))
        qi_page_free_number(pages, page);
}

/*
 * Requires the lock of the pages. Ends what begin_page began and wakes waiting threads. With an
 * error the number becomes free again.
 */
static void end_page(qi_pages *pages, qi_page *page, quire_result result, qi_page_events *events)
{
    qi_page **link = &pages->being_made;
    while (*link != page)
        link = &(*link)->next;
    *link = page->next;
    if (result)
        give_number(pages, page, events);
    qi_lock_wake_all(&pages->lock);
    qi_transit_end();
}

/* ---- regions ------------------------------------------------------------------------------ */

/*
 * A region starts at the first whole granule of the page. The bytes before it (`skipped`) are not
 * used if the backend's base address is not a multiple of the granule.
 */

/* Adds a shared page to the shard's space. Fails with OUT_OF_HOST_MEMORY; nothing changed then. */
static quire_result add_region(qi_shard *shard, qi_page *page)
{
    quire_result result = QUIRE_SUCCESS;
    const quire_native_page *native = &page->native.native;
    uint64_t skipped = qi_padding(native->address, shard->memory->granule);
    uint64_t size = qi_align_down(page->native.native.size - skipped, shard->memory->granule);
    /* The space assigns the lowest free number, so that no region's number exceeds the count. */
    if (!qi_table_ensure(&shard->by_region, &shard->memory->host, shard->shared))
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a page's region");
    if (page->elastic && skipped)
        return qi_backing_refuse_place(page);
    if (page->elastic)
        result = qi_space_add_hole(shard->space, size, page->native.bytes, native->address,
                                   shard->memory->chunk, &page->region);
    else
        result = qi_space_add_region(shard->space, size, native->address + skipped, &page->region);
    if (result)
        return result;
    page->tally = qi_shard_tally(shard, page->region);
    *page->tally = page->own;
    page->tally->skipped = (uint32_t)skipped;
    shard->shared++;
    return QUIRE_SUCCESS;
}

/*
 * Removes an empty page from the list of empty pages and, if it is shared, from the space. Cannot
 * fail.
 */
static void remove_region(qi_page *page)
{
    qi_empty_pages_remove(page);
    if (page->dedicated)
        return;
    page->own = *page->tally; /* the next page may get the region's number */
    page->tally = &page->own;
    qi_ignore(qi_space_remove_region(page->shard->space, page->region));
    page->shard->shared--;
}

/* ---- pages that leave or move ------------------------------------------------------------- */

void qi_pages_init(qi_pages *pages)
{
    *pages = (qi_pages){0};
    qi_lock_init(&pages->lock, "pages", QI_RANK_PAGES);
    qi_table_init(&pages->records, sizeof(qi_page));
}

void qi_pages_finish(qi_pages *pages, qi_host *host)
{
    qi_table_finish(&pages->records, host);
}

/* The lock order requires the shard's lock first, but the page must be read to know its shard. */
qi_page *qi_page_acquire(quire_memory *memory, uint32_t number)
{
    qi_pages *pages = &memory->pages;
    for (;;) {
        qi_lock_acquire(&pages->lock);
        qi_page *page = qi_page_at(pages, number);
        qi_shard *shard = page && page->phase == QI_PAGE_LIVE ? page->shard : NULL;
        qi_lock_release(&pages->lock);
        if (!shard)
            return NULL;
        qi_lock_acquire(&shard->lock);
        /* between the locks the page may have left, and its number may belong to another page */
        qi_lock_acquire(&pages->lock);
        bool is_still_live = page->phase == QI_PAGE_LIVE && page->shard == shard;
        qi_lock_release(&pages->lock);
        if (is_still_live)
            return page;
        qi_lock_release(&shard->lock);
    }
}

/* Requires the lock of the pages. Called before the phase changes. */
static void count_moving(qi_pages *pages, const qi_page *page, bool will_move)
{
    if (page->phase == QI_PAGE_MOVING) {
        pages->moving--;
        pages->changes++;
        qi_lock_wake_all(&pages->lock);
    }
    pages->moving += will_move;
}

/* Takes a page out of the statistics. Its region is removed already, or its space is destroyed. */
static qi_page *take_out(qi_page *page, qi_page *list)
{
    qi_pages *pages = &page->shard->memory->pages;
    quire_memory_stats *stats = &pages->stats;
    qi_addresses_leave_page(page->shard->memory, page);
    qi_lock_acquire(&pages->lock);
    stats->pages_destroyed++;
    stats->page_count--;
    stats->reserved_bytes -= page->native.bytes;
    qi_page_history_change(page, page->native.bytes, 0);
    pages->leaving++;
    count_moving(pages, page, false);
    page->phase = QI_PAGE_LEAVING;
    page->owner = qi_thread_self();
    qi_lock_release(&pages->lock);
    qi_transit_begin();
    page->next = list;
    return page;
}

qi_page *qi_page_take(qi_page *page, qi_page *list)
{
    remove_region(page);
    return take_out(page, list);
}

qi_page *qi_pages_take_all(quire_memory *memory)
{
    qi_page *list = NULL;
    for (uint32_t i = memory->pages.top; i-- > 0;) {
        qi_page *page = qi_page_at(&memory->pages, i);
        if (page->phase == QI_PAGE_LIVE)
            list = take_out(page, list);
    }
    return list;
}

/* ---- from shard to shard ------------------------------------------------------------------ */

/* Changes phase and shard together, so that no thread sees one without the other. */
static void set_phase(qi_page *page, qi_shard *shard, qi_page_phase phase)
{
    qi_pages *pages = &shard->memory->pages;
    qi_lock_acquire(&pages->lock);
    count_moving(pages, page, phase == QI_PAGE_MOVING);
    qi_page_history_change(page, page->native.bytes, 0);
    page->shard = shard;
    qi_page_history_change(page, 0, page->native.bytes);
    page->phase = phase;
    page->owner = qi_thread_self();
    qi_lock_release(&pages->lock);
}

void qi_page_leave_shard(qi_page *page)
{
    remove_region(page);
    set_phase(page, page->shard, QI_PAGE_MOVING);
    qi_transit_begin();
}

bool qi_page_enter_shard(qi_page *page, qi_shard *shard, qi_page **leaving)
{
    qi_transit_end();
    if (add_region(shard, page)) {
        *leaving = take_out(page, *leaving);
        return false;
    }
    set_phase(page, shard, QI_PAGE_LIVE);
    qi_empty_pages_add(page);
    return true;
}

/* ---- the end ------------------------------------------------------------------------------ */

/* Requires the lock of the pages. The number stays taken until the end of the page is reported. */
static void count_gone(qi_pages *pages, qi_page *page)
{
    page->phase = QI_PAGE_GONE;
    pages->changes++;
    pages->in_use--;
    pages->leaving--;
}

/* In the child of a fork such a page is lost: the backend may have destroyed it. */
static void set_ending(qi_pages *pages, qi_page *page)
{
    qi_lock_acquire(&pages->lock);
    page->phase = QI_PAGE_ENDING;
    qi_lock_release(&pages->lock);
}

/* Takes the memory that pages in the list give, and removes these pages from it: they stay LIVE. */
static qi_page *take_given(quire_memory *memory, qi_page *list, uint64_t *bytes,
                           qi_page_events *events)
{
    qi_page **link = &list;
    while (*link) {
        qi_page *page = *link;
        if (page->to_give) {
            *link = page->next;
            *bytes += qi_resize_finish(memory, page, &events->given);
        } else {
            link = &page->next;
        }
    }
    return list;
}

/*
 * All pages are destroyed before the lock is taken, so that it is taken once and waiting threads
 * wake once. The list is then prepended to the events, which own it until they are reported.
 */
uint64_t qi_pages_give_back(quire_memory *memory, qi_page *list, qi_page_events *events)
{
    uint64_t bytes = 0;
    list = take_given(memory, list, &bytes, events);
    if (!list)
        return bytes;
    for (qi_page *page = list; page; page = page->next) {
        bytes += page->native.bytes;
        qi_checked_page_leaving(page);
        set_ending(&memory->pages, page);
        qi_device_page_destroy(memory->device, &memory->calls, &memory->account, &page->native);
    }
    qi_page *last = NULL;
    qi_lock_acquire(&memory->pages.lock);
    for (qi_page *page = list; page; page = page->next) {
        count_gone(&memory->pages, page);
        qi_transit_end();
        last = page;
    }
    last->next = events->gone;
    qi_lock_wake_all(&memory->pages.lock);
    qi_lock_release(&memory->pages.lock);
    events->gone = list;
    return bytes;
}

uint64_t qi_pages_destroy(quire_memory *memory, qi_page *list)
{
    qi_page_events events = {.gone = NULL};
    uint64_t bytes = qi_pages_give_back(memory, list, &events);
    qi_page_events_report(memory, &events, "");
    return bytes;
}

/* The events of a page that no one has seen are dropped; only its number is settled. */
void qi_page_undo(quire_memory *memory, qi_page *page, qi_page_events *events)
{
    qi_page_events unreported = {.gone = NULL};
    qi_pages_give_back(memory, page, &unreported);
    if (!keep_number(events, page))
        free_numbers(&memory->pages, unreported.gone);
}

/* ---- making a page ------------------------------------------------------------------------ */

/*
 * The thread that makes a page owns its record in phase MAKING. Until the page is published, other
 * threads read only what the lock of the pages protects.
 */

/*
 * Requires no lock. Creates a page of one size. If memory is exhausted, it gives back the empty
 * pages of all shards and tries again.
 */
static quire_result create_sized(qi_page_attempt *a, const quire_page_request *request,
                                 qi_device_page *native, qi_page_events *events)
{
    quire_memory *memory = a->memory;
    quire_result result;
    bool is_exhausted;
    do {
        qi_page_attempt_start(a);
        result = qi_device_page_create(memory->device, &memory->calls, &memory->account, &a->terms,
                                       request, native);
        is_exhausted = qi_is_out_of_memory(result) || result == QUIRE_ERROR_TOO_MANY_PAGES;
    } while (is_exhausted && qi_pages_give_back_empty(memory, UINT64_MAX, events));
    return result;
}

/*
 * Requires no lock. Creates the page in the backend. If memory is exhausted, it requests smaller
 * sizes, down to the size that the request needs.
 */
static quire_result create(quire_memory *memory, qi_page *page, const qi_page_plan *p,
                           qi_device_page *native, qi_page_progress *progress)
{
    const qi_tie tie = p->tie ? *p->tie : (qi_tie){.native = 0};
    quire_page_request request = {
        .kind = memory->kind,
        .dedicated = page->dedicated,
        .exportable = memory->exportable,
        .size = page->wanted,
        .alignment = qi_page_alignment(memory, memory->max_alignment),
        .label = memory->name,
        .object = tie.object,
        .native = tie.native,
        .object_description = tie.native ? tie.description : NULL,
        .description = tie.native ? NULL : tie.description,
        .priority = memory->priority,
        .extra = memory->extra,
        .max_size = qi_backing_max_size(page),
        .zero = page->dedicated && progress->zero,
    };
    request.chunk = request.max_size ? qi_page_unit(memory) : 0;
    native->on_demand = memory->maps_on_demand || !(memory->flags & QUIRE_HOST_VISIBLE);
    qi_page_attempt a =
        qi_page_attempt_begin(memory, page->wanted, p->needed, p->is_reduced, progress);
    quire_result result;
    a.is_tied = page->tied;
    do {
        request.size = a.size;
        result = create_sized(&a, &request, native, &progress->events);
    } while (qi_page_attempt_again(&a, result, progress));
    page->over_budget = a.terms.has_exceeded;
    /* red zones are written to a page first, and may flush bytes beside them */
    page->fresh = request.zero && native->native.is_zero && !QI_IS_CHECKED;
    return result;
}

/* Requires the lock of the pages. */
static void count_in(qi_pages *pages, const qi_page *page)
{
    quire_memory_stats *stats = &pages->stats;
    qi_page_history_change(page, page->wanted, page->native.bytes);
    stats->pages_created++;
    stats->pages_over_budget += page->over_budget;
    stats->page_count++;
    stats->reserved_bytes += page->native.bytes;
    qi_raise(&stats->peak_page_count, stats->page_count);
    qi_raise(&stats->peak_reserved_bytes, stats->reserved_bytes);
}

/* Requires no lock. Returns the device address of a page, or 0. Memories need it to find
   allocations by address. */
static uint64_t address_of(quire_memory *memory, const qi_device_page *native)
{
    if (!memory->addresses || native->native.address)
        return native->native.address;
    return qi_device_address(memory->device, &memory->calls, native, 0);
}

/* Requires the shard's lock. The page gets its place in the space and in the addresses. */
static quire_result enter(qi_shard *shard, qi_page *page, uint64_t address)
{
    quire_result result = qi_addresses_enter_page(shard->memory, page, address);
    if (result || page->dedicated)
        return result;
    result = add_region(shard, page);
    if (result)
        qi_addresses_leave_page(shard->memory, page);
    return result;
}

/* Requires the shard's lock. The page becomes part of the memory. */
static quire_result publish(qi_shard *shard, qi_page *page, const qi_device_page *native,
                            uint64_t address)
{
    qi_pages *pages = &shard->memory->pages;
    page->native = *native;
    quire_result result = enter(shard, page, address);
    if (result)
        return result;
    qi_checked_page_made(page);
    qi_empty_pages_add(page);
    qi_lock_acquire(&pages->lock);
    page->phase = QI_PAGE_LIVE;
    pages->changes++;
    count_in(pages, page);
    qi_lock_release(&pages->lock);
    return QUIRE_SUCCESS;
}

/* Requires no lock, and returns with the shard's lock acquired. Makes and publishes a numbered
   page. */
static quire_result make_numbered(qi_shard *shard, qi_page *page, const qi_page_plan *p,
                                  qi_page_progress *progress)
{
    quire_memory *memory = shard->memory;
    qi_device_page native = {0};
    quire_result result = create(memory, page, p, &native, progress);
    uint64_t address = result ? 0 : address_of(memory, &native);
    qi_lock_acquire(&shard->lock);
    if (result)
        return result;
    result = publish(shard, page, &native, address);
    if (result) {
        qi_lock_release(&shard->lock);
        qi_device_page_destroy(memory->device, &memory->calls, &memory->account, &native);
        qi_lock_acquire(&shard->lock);
    }
    return result;
}

void qi_page_give_back_before(qi_shard *shard, uint64_t needed, qi_page_events *events)
{
    quire_memory *memory = shard->memory;
    /* the time limit of the policy applies to all shards, not only to this one */
    bool others = qi_shard_count(memory) > 1 && (memory->policy.retention_nanoseconds ||
                                                 qi_retention_is_default(&memory->policy));
    qi_page *leaving = qi_empty_pages_take_oldest(shard, needed, QI_EMPTY_PAGES_PER_CALL, NULL);
    if (!leaving && !others)
        return;
    qi_lock_release(&shard->lock);
    if (others)
        leaving = qi_empty_pages_apply_all(memory, QI_EMPTY_PAGES_PER_CALL, leaving);
    qi_pages_give_back(memory, leaving, events);
    qi_lock_acquire(&shard->lock);
}

/* Requires the shard's lock. Calls begin_page under the lock of the pages. */
static quire_result number(qi_shard *shard, qi_page_plan *p, qi_page **page, qi_page_events *events)
{
    qi_pages *pages = &shard->memory->pages;
    qi_lock_acquire(&pages->lock);
    quire_result result = begin_page(shard, p, events, page);
    qi_lock_release(&pages->lock);
    return result;
}

/*
 * Like `number`. If the memory has as many pages as it may have, it releases and reacquires the
 * lock to give back the empty pages of all shards, and tries again.
 */
static quire_result number_or_give(qi_shard *shard, qi_page_plan *p, qi_page **page,
                                   qi_page_events *events)
{
    quire_result result = number(shard, p, page, events);
    if (result != QUIRE_ERROR_TOO_MANY_PAGES || qi_shard_count(shard->memory) == 1)
        return result;
    qi_lock_release(&shard->lock);
    bool has_given = qi_pages_give_back_empty(shard->memory, UINT64_MAX, events) != 0;
    qi_lock_acquire(&shard->lock);
    return has_given ? number(shard, p, page, events) : result;
}

/* Requires the shard's lock. Releases and reacquires it. Numbers and makes a page for the plan. */
static quire_result make_planned(qi_shard *shard, qi_page_plan *p, qi_page **out,
                                 qi_page_progress *progress)
{
    quire_memory *memory = shard->memory;
    qi_page *page = NULL;
    quire_result result = number_or_give(shard, p, &page, &progress->events);
    if (result)
        return result;
    qi_lock_release(&shard->lock);
    result = make_numbered(shard, page, p, progress);
    qi_lock_acquire(&memory->pages.lock);
    end_page(&memory->pages, page, result, &progress->events);
    qi_lock_release(&memory->pages.lock);
    *out = page;
    return result;
}

uint64_t qi_page_max_bytes(const qi_shard *shard, const qi_page_progress *progress)
{
    uint64_t excess = qi_align_down(progress->excess, qi_page_unit(shard->memory));
    return progress->may_exceed ? (excess ? excess : 1) : 0;
}

quire_result qi_page_make(qi_shard *shard, uint64_t size, uint64_t alignment, bool dedicated,
                          qi_page **page, qi_page_progress *progress)
{
    qi_page_plan p = {
        .size = size, .dedicated = dedicated, .max_bytes = qi_page_max_bytes(shard, progress)};
    quire_result result = qi_page_needed_size(shard, size, alignment, dedicated, &p.needed);
    return result ? result : make_planned(shard, &p, page, progress);
}

quire_result qi_page_make_tied(qi_shard *shard, uint64_t size, const qi_tie *tie, qi_page **page,
                               qi_page_progress *progress)
{
    qi_page_plan p = {.size = size, .needed = size, .dedicated = true, .tie = tie};
    quire_result result = qi_page_check_total(shard->memory, size, size);
    return result ? result : make_planned(shard, &p, page, progress);
}

void qi_page_keep(const qi_page *page)
{
    qi_pages *pages = &page->shard->memory->pages;
    if (page->dedicated)
        return;
    qi_lock_acquire(&pages->lock);
    pages->last_size = page->policy_size;
    qi_lock_release(&pages->lock);
}

/* ---- waiting for other threads ------------------------------------------------------------ */

/*
 * A thread that claims room lowers to_join of the page, so that no more threads wait for a page
 * than it can serve. The claim is not returned: the page is searched once it is published.
 */
bool qi_page_wait_for_room(qi_shard *shard, uint64_t size, const qi_page **joined)
{
    qi_pages *pages = &shard->memory->pages;
    if (qi_transit_is_on())
        return false;
    qi_lock_acquire(&pages->lock);
    qi_page *page = pages->being_made;
    while (page && page != *joined)
        page = page->next;
    if (!page) { /* not joined yet, or the joined page is finished and had no room */
        page = pages->being_made;
        while (page && (page->to_join < size || page->shard != shard))
            page = page->next;
        if (page)
            page->to_join -= size;
    }
    if (page) {
        *joined = page;
        qi_lock_wait(&pages->lock, &shard->lock);
    }
    qi_lock_release(&pages->lock);
    return page != NULL;
}

uint64_t qi_pages_changes(const qi_shard *shard)
{
    qi_pages *pages = &shard->memory->pages;
    qi_lock_acquire(&pages->lock);
    uint64_t changes = pages->changes;
    qi_lock_release(&pages->lock);
    return changes;
}

/* Requires the lock of the pages. Whether a page begun up to this turn is still being made. */
static bool has_page_begun_by(const qi_pages *pages, uint64_t turn)
{
    const qi_page *page = pages->being_made;
    while (page && page->turn > turn)
        page = page->next;
    return page != NULL;
}

bool qi_page_wait_for_change(qi_shard *shard, quire_result refusal, qi_page_wait *wait)
{
    if (refusal != QUIRE_ERROR_TOO_MANY_PAGES && !qi_is_out_of_memory(refusal))
        return false;
    if (qi_transit_is_on())
        return false;
    qi_pages *pages = &shard->memory->pages;
    uint32_t max = shard->memory->policy.max_pages;
    qi_lock_acquire(&pages->lock);
    bool is_full = (max && pages->in_use >= max) || /* or the only page of the fit is being made */
                   shard->shared < qi_page_max_shared(shard);
    bool has_changed = pages->changes != wait->changes;
    if (!wait->turn || wait->as_of != wait->changes)
        *wait = (qi_page_wait){wait->changes, pages->turns, wait->changes};
    bool waits = pages->leaving || pages->moving || qi_resize_is_giving(shard) ||
                 (is_full && pages->being_made) || has_page_begun_by(pages, wait->turn);
    if (waits && !has_changed)
        qi_lock_wait(&pages->lock, &shard->lock);
    qi_lock_release(&pages->lock);
    return waits || has_changed;
}
