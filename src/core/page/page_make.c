/*
 * page_make.c - how a page is made (see page.h): numbered under the locks, asked of the backend
 * without them, published under them; and how threads wait for pages that others make.
 */
#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/base/transit.h"
#include "src/core/page/elastic.h"
#include "src/core/page/page_size.h"
#include "src/core/device/policy.h"
#include "src/core/allocate/oom_report.h"
#include "src/space/space.h"

/* ---- numbering ---------------------------------------------------------------------------- */

/* The lowest number below one of pages that this call has given back; NULL: there is none. */
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
 * With the lock of the pages: the lowest free number. That of a page that this call has given back
 * is free for it, for its news are told in order.
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
    events->renewed = (qi_page_change){.size = (*gone)->native.size, .number = number};
    *gone = (*gone)->next;
    return number;
}

static quire_result take_number(quire_memory *memory, qi_page_events *events, qi_page **out)
{
    qi_pages *pages = &memory->pages;
    uint32_t most = memory->policy.max_pages;
    if (most && pages->in_use >= most)
        return qi_fail_text(QUIRE_ERROR_TOO_MANY_PAGES,
                            "memory '%s' has %u page%s, as many as its policy allows", memory->name,
                            pages->in_use, qi_plural(pages->in_use));
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

/* Shared pages that the shard can have; 0: any number. */
static uint32_t max_shared(const qi_shard *shard)
{
    return shard->memory->address_space ? 1 : shard->space->fit->max_regions;
}

/* With the shard's lock: whether the fit takes no further region beside those there and coming. */
static bool has_all_shared(const qi_shard *shard)
{
    uint32_t most = max_shared(shard), count = shard->shared;
    for (const qi_page *page = shard->memory->pages.being_made; page; page = page->next)
        count += !page->dedicated && page->shard == shard;
    return most && count >= most;
}

/* A page to be made. */
typedef struct plan {
    uint64_t size;
    uint64_t needed;
    bool dedicated;
    const qi_tie *tie; /* NULL: it is not tied */
} plan;

/* With both locks: a numbered record for a page to make, and what others may wait for in it. */
static quire_result begin(qi_shard *shard, const plan *p, qi_page_events *events, qi_page **out)
{
    quire_memory *memory = shard->memory;
    uint64_t place = qi_space_line_max(shard->space);
    if (memory->is_ending)
        return qi_fail_text(QUIRE_ERROR_WRONG_STATE, "memory '%s' is being destroyed",
                            memory->name);
    if (!p->dedicated && has_all_shared(shard))
        return qi_fail_text(QUIRE_ERROR_TOO_MANY_PAGES,
                            "memory '%s' has %u shared page, as many as its fit works in",
                            memory->name, max_shared(shard));
    if (!p->dedicated && p->needed > place)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                            "a page of %b has no place: the pages of a memory with granule %u "
                            "reach no further; %b are left",
                            p->needed, memory->granule, place);
    quire_result result = take_number(memory, events, out);
    if (result)
        return result;
    qi_page *page = *out;
    page->shard = shard;
    page->dedicated = p->dedicated;
    page->tied = p->tie != NULL;
    page->policy_size = p->dedicated ? 0 : qi_page_policy_size(shard);
    page->wanted = qi_page_wanted_size(shard, page, p->size, p->needed);
    page->to_join = p->dedicated ? 0 : page->wanted - p->needed;
    page->turn = ++memory->pages.turns;
    page->next = memory->pages.being_made;
    memory->pages.being_made = page;
    qi_transit_begin();
    return QUIRE_SUCCESS;
}

/* With the lock of the pages: the number of a page that was not made is what it was before. */
static void give_number(qi_pages *pages, qi_page *page, qi_page_events *events)
{
    pages->in_use--;
    page->phase = QI_PAGE_GONE;
    if (!qi_page_events_keep_number(events, page))
        qi_page_free_number(pages, page);
}

/* With the lock of the pages: the making is over, one way or the other. */
static void end(qi_pages *pages, qi_page *page, quire_result result, qi_page_events *events)
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

/* ---- making ------------------------------------------------------------------------------- */

bool qi_pages_give_back_empty(quire_memory *memory, qi_page_events *events)
{
    qi_page *leaving = NULL;
    for (uint32_t i = 0; i < memory->shard_count; i++) {
        qi_lock_acquire(&memory->shards[i].lock);
        qi_shard_drain(&memory->shards[i]);
        leaving = qi_empty_pages_take_oldest(&memory->shards[i], 0, QI_EMPTY_PAGES_ALL, leaving);
        leaving = qi_elastic_shrink(&memory->shards[i], 0, leaving);
        qi_lock_release(&memory->shards[i].lock);
    }
    return qi_pages_give_back(memory, leaving, events) != 0;
}

static quire_result ask(quire_memory *memory, const quire_page_request *request,
                        qi_device_page *native, qi_page_events *events)
{
    quire_result result;
    bool is_want;
    do {
        result = qi_device_page_create(memory->device, &memory->calls, &memory->account, request,
                                       native);
        is_want = qi_is_out_of_memory(result) || result == QUIRE_ERROR_TOO_MANY_PAGES;
    } while (is_want && qi_pages_give_back_empty(memory, events));
    return result;
}

/* Without a lock: asks the backend, for less and less while the request still fits. */
static quire_result create(quire_memory *memory, const qi_page *page, const plan *p,
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
        .description = tie.description,
        .priority = memory->priority,
        .extra = memory->extra,
        .max_size = qi_elastic_max_size(page->shard, page->wanted, page->dedicated),
    };
    for (;;) {
        quire_result result = ask(memory, &request, native, &progress->events);
        if (!qi_is_out_of_memory(result) || request.size == p->needed)
            return result;
        uint64_t half = qi_align_down(request.size / 2, qi_page_unit(memory));
        request.size = half > p->needed ? half : p->needed;
        progress->tried |= QI_TRIED_SMALLER;
    }
}

quire_result qi_page_add_region(qi_shard *shard, qi_page *page)
{
    const quire_native_page *native = &page->native.native;
    uint64_t skipped = qi_padding(native->address, shard->memory->granule);
    uint64_t size = qi_align_down(page->native.size - skipped, shard->memory->granule);
    /* regions take the lowest free number: none is above their count */
    if (!qi_table_ensure(&shard->by_region, &shard->memory->host, shard->shared))
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a page's region");
    quire_result result =
        qi_space_add_region(shard->space, size, native->address + skipped, &page->region);
    if (result)
        return result;
    page->tally = qi_shard_tally(shard, page->region);
    *page->tally = page->own;
    page->tally->skipped = (uint32_t)skipped;
    shard->shared++;
    return QUIRE_SUCCESS;
}

static void count_in(qi_pages *pages, const qi_page *page)
{
    quire_memory_stats *stats = &pages->stats;
    stats->pages_created++;
    stats->page_count++;
    stats->reserved_bytes += page->native.size;
    qi_raise(&stats->peak_page_count, stats->page_count);
    qi_raise(&stats->peak_reserved_bytes, stats->reserved_bytes);
}

/* With the shard's lock: the made page becomes part of the memory. */
static quire_result publish(qi_shard *shard, qi_page *page, const qi_device_page *native)
{
    qi_pages *pages = &shard->memory->pages;
    page->native = *native;
    quire_result result = page->dedicated ? QUIRE_SUCCESS : qi_page_add_region(shard, page);
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

/* Without a lock on entry, with the shard's on return: makes a numbered page and publishes it. */
static quire_result make_numbered(qi_shard *shard, qi_page *page, const plan *p,
                                  qi_page_progress *progress)
{
    quire_memory *memory = shard->memory;
    qi_device_page native = {0};
    quire_result result = create(memory, page, p, &native, progress);
    qi_lock_acquire(&shard->lock);
    if (result)
        return result;
    result = publish(shard, page, &native);
    if (result) {
        qi_lock_release(&shard->lock);
        qi_device_page_destroy(memory->device, &memory->calls, &memory->account, &native);
        qi_lock_acquire(&shard->lock);
    }
    return result;
}

/*
 * With the shard's lock, given up meanwhile: of its empty pages as many bytes as are needed, with
 * some more, and what no shard is to keep. All go where the backend refuses.
 */
static void give_before_making(qi_shard *shard, uint64_t needed, qi_page_events *events)
{
    quire_memory *memory = shard->memory;
    bool others = memory->shard_count > 1 && memory->policy.retention_nanoseconds;
    qi_page *leaving = qi_empty_pages_take_oldest(shard, needed, QI_EMPTY_PAGES_PER_CALL, NULL);
    leaving = qi_elastic_shrink(shard, 0, leaving);
    if (!leaving && !others)
        return;
    qi_lock_release(&shard->lock);
    if (others)
        leaving = qi_empty_pages_apply_all(memory, QI_EMPTY_PAGES_PER_CALL, leaving);
    qi_pages_give_back(memory, leaving, events);
    qi_lock_acquire(&shard->lock);
}

/* With the shard's lock: `begin` under the lock of the pages. */
static quire_result number(qi_shard *shard, const plan *p, qi_page **page, qi_page_events *events)
{
    qi_pages *pages = &shard->memory->pages;
    qi_lock_acquire(&pages->lock);
    quire_result result = begin(shard, p, events, page);
    qi_lock_release(&pages->lock);
    return result;
}

/* The same, given up where the memory has as many pages as it may, and empty ones in some shard. */
static quire_result number_or_give(qi_shard *shard, const plan *p, qi_page **page,
                                   qi_page_events *events)
{
    quire_result result = number(shard, p, page, events);
    if (result != QUIRE_ERROR_TOO_MANY_PAGES || shard->memory->shard_count == 1)
        return result;
    qi_lock_release(&shard->lock);
    bool any = qi_pages_give_back_empty(shard->memory, events);
    qi_lock_acquire(&shard->lock);
    return any ? number(shard, p, page, events) : result;
}

static quire_result make_planned(qi_shard *shard, const plan *p, qi_page **out,
                                 qi_page_progress *progress)
{
    quire_memory *memory = shard->memory;
    qi_page *page = NULL;
    progress->tried |= QI_TRIED_EMPTIES;
    give_before_making(shard, p->needed, &progress->events);
    quire_result result = number_or_give(shard, p, &page, &progress->events);
    if (result)
        return result;
    qi_lock_release(&shard->lock);
    result = make_numbered(shard, page, p, progress);
    qi_lock_acquire(&memory->pages.lock);
    end(&memory->pages, page, result, &progress->events);
    qi_lock_release(&memory->pages.lock);
    *out = page;
    return result;
}

quire_result qi_page_make(qi_shard *shard, uint64_t size, uint64_t alignment, bool dedicated,
                          qi_page **page, qi_page_progress *progress)
{
    plan p = {.size = size, .dedicated = dedicated};
    quire_result result = qi_page_needed_size(shard, size, alignment, dedicated, &p.needed);
    return result ? result : make_planned(shard, &p, page, progress);
}

quire_result qi_page_make_tied(qi_shard *shard, uint64_t size, const qi_tie *tie, qi_page **page,
                               qi_page_progress *progress)
{
    const plan p = {.size = size, .needed = size, .dedicated = true, .tie = tie};
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

/* ---- waiting ------------------------------------------------------------------------------ */

bool qi_page_wait_for_room(qi_shard *shard, uint64_t size, const qi_page **joined)
{
    qi_pages *pages = &shard->memory->pages;
    if (qi_transit_is_on())
        return false;
    qi_lock_acquire(&pages->lock);
    qi_page *page = pages->being_made;
    while (page && page != *joined)
        page = page->next;
    if (!page) { /* not joined yet, or over without room for this one */
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

/* Whether a page is still being made that was begun up to this turn. */
static bool is_making(const qi_pages *pages, uint64_t turn)
{
    const qi_page *page = pages->being_made;
    while (page && page->turn > turn)
        page = page->next;
    return page != NULL;
}

bool qi_page_wait_for_change(qi_shard *shard, quire_result refusal, qi_page_wait *stall_timeout)
{
    if (refusal != QUIRE_ERROR_TOO_MANY_PAGES && !qi_is_out_of_memory(refusal))
        return false;
    if (qi_transit_is_on())
        return false;
    qi_pages *pages = &shard->memory->pages;
    uint32_t most = shard->memory->policy.max_pages;
    qi_lock_acquire(&pages->lock);
    bool is_full = (most && pages->in_use >= most) || /* or the fit waits for its only page */
                   shard->shared < max_shared(shard);
    bool has_changed = pages->changes != stall_timeout->changes;
    if (!stall_timeout->turn || stall_timeout->as_of != stall_timeout->changes)
        *stall_timeout =
            (qi_page_wait){stall_timeout->changes, pages->turns, stall_timeout->changes};
    bool waits = pages->leaving || pages->moving || qi_elastic_is_shrinking(shard) ||
                 (is_full && pages->being_made) || is_making(pages, stall_timeout->turn);
    if (waits && !has_changed)
        qi_lock_wait(&pages->lock, &shard->lock);
    qi_lock_release(&pages->lock);
    return waits || has_changed;
}
