/*
 * page.c - see page.h.
 */
#include "src/memory/page.h"

#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/memory/memory.h"
#include "src/memory/policy.h"
#include "src/space/fit.h"

void qi_pages_init(qi_pages *pages)
{
    pages->top = pages->free_hint = pages->in_use = 0;
    pages->shared = pages->leaving = 0;
    pages->being_made = NULL;
    pages->turns = pages->last_size = 0;
    qi_table_init(&pages->records, sizeof(qi_page));
    qi_table_init(&pages->by_region, sizeof(uint32_t));
}

void qi_pages_finish(qi_pages *pages, qi_host *host)
{
    qi_table_finish(&pages->records, host);
    qi_table_finish(&pages->by_region, host);
}

/* ---- numbers ------------------------------------------------------------------------------ */

static quire_result take_number(quire_memory *memory, qi_page **out)
{
    qi_pages *pages = &memory->pages;
    uint32_t most = memory->policy.most_pages;
    if (most && pages->in_use >= most)
        return qi_fail_text(QUIRE_ERROR_TOO_MANY_PAGES,
                            "memory '%s' has %u pages, as many as its policy allows", memory->name,
                            pages->in_use);
    uint32_t number = pages->free_hint;
    while (number < pages->top && qi_page_at(pages, number)->phase != QI_PAGE_NONE)
        number++;
    if (!qi_table_ensure(&pages->records, &memory->host, number))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for page record %u",
                            number);
    pages->free_hint = number + 1;
    pages->top += number == pages->top;
    pages->in_use++;
    qi_page *page = qi_page_at(pages, number);
    memset(page, 0, sizeof *page);
    page->number = number;
    page->phase = QI_PAGE_MAKING;
    *out = page;
    return QUIRE_SUCCESS;
}

static void give_number(quire_memory *memory, qi_page *page)
{
    qi_pages *pages = &memory->pages;
    page->phase = QI_PAGE_NONE;
    pages->in_use--;
    if (page->number < pages->free_hint)
        pages->free_hint = page->number;
}

/* ---- figures ------------------------------------------------------------------------------ */

void qi_page_add_live(quire_memory *memory, qi_page *page, uint64_t bytes)
{
    if (!page->allocation_count++)
        memory->stats.empty_bytes -= page->native.native.size;
    page->live_bytes += bytes;
    qi_raise(&page->peak_live_bytes, page->live_bytes);
}

void qi_page_remove_live(quire_memory *memory, qi_page *page, uint64_t bytes)
{
    page->live_bytes -= bytes;
    if (!--page->allocation_count)
        memory->stats.empty_bytes += page->native.native.size;
}

static void count_in(quire_memory *memory, const qi_page *page)
{
    quire_memory_stats *stats = &memory->stats;
    stats->pages_created++;
    stats->page_count++;
    stats->reserved_bytes += page->native.native.size;
    stats->empty_bytes += page->native.native.size;
    qi_raise(&stats->peak_page_count, stats->page_count);
    qi_raise(&stats->peak_reserved_bytes, stats->reserved_bytes);
}

static void count_out(quire_memory *memory, const qi_page *page)
{
    quire_memory_stats *stats = &memory->stats;
    stats->pages_destroyed++;
    stats->page_count--;
    stats->reserved_bytes -= page->native.native.size;
    stats->empty_bytes -= page->native.native.size;
}

/* ---- giving back -------------------------------------------------------------------------- */

static qi_page *take_out(quire_memory *memory, qi_page *page, qi_page *list)
{
    count_out(memory, page);
    memory->pages.shared -= !page->dedicated;
    memory->pages.leaving++;
    page->phase = QI_PAGE_LEAVING;
    page->next = list;
    return page;
}

/* It is empty: removing its region cannot fail. */
static qi_page *take_with_region(quire_memory *memory, qi_page *page, qi_page *list)
{
    if (!page->dedicated)
        qi_ignore(quire_space_remove_region(memory->space, page->region));
    return take_out(memory, page, list);
}

qi_page *qi_page_take(quire_memory *memory, qi_page *page)
{
    return take_with_region(memory, page, NULL);
}

qi_page *qi_pages_take_empty(quire_memory *memory, uint64_t keep)
{
    qi_page *list = NULL;
    for (uint32_t i = memory->pages.top; i-- > 0 && memory->stats.empty_bytes > keep;) {
        qi_page *page = qi_page_at(&memory->pages, i);
        if (page->phase == QI_PAGE_LIVE && !page->dedicated && !page->allocation_count)
            list = take_with_region(memory, page, list);
    }
    return list;
}

qi_page *qi_pages_take_all(quire_memory *memory)
{
    qi_page *list = NULL;
    for (uint32_t i = memory->pages.top; i-- > 0;) {
        qi_page *page = qi_page_at(&memory->pages, i);
        if (page->phase == QI_PAGE_LIVE)
            list = take_out(memory, page, list);
    }
    return list;
}

uint64_t qi_pages_destroy(quire_memory *memory, qi_page *list)
{
    uint64_t bytes = 0, count = 0;
    for (const qi_page *page = list; page; page = page->next) {
        bytes += page->native.native.size;
        count++;
        qi_device_page_destroy(memory->device, &memory->calls, &memory->account, &page->native);
    }
    if (!count)
        return 0;
    qi_lock_acquire(&memory->lock);
    memory->pages.leaving -= (uint32_t)count;
    for (qi_page *page = list, *next; page; page = next) {
        next = page->next;
        give_number(memory, page);
    }
    qi_lock_wake_all(&memory->lock);
    qi_lock_release(&memory->lock);
    /* after all is done: a sink that allocates must not wait for pages of its own thread */
    qi_log(&memory->device->log, QUIRE_LOG_DEBUG, "memory '%s': pages given back: %llu, %s",
           memory->name, (unsigned long long)count, qi_bytes(bytes).text);
    return bytes;
}

/* ---- making ------------------------------------------------------------------------------- */

/* Page sizes are multiples of this. */
static uint64_t page_unit(const quire_memory *memory)
{
    uint64_t granularity = memory->device->info.limits.page_granularity;
    return granularity > memory->granule ? granularity : memory->granule;
}

/* Regions begin at whole granules. */
static uint64_t coarsest(const quire_memory *memory, uint64_t alignment)
{
    return alignment > memory->granule ? alignment : memory->granule;
}

/* The bytes a page needs so that the request fits whatever the native base turns out to be. */
static bool page_overflows(const quire_memory *memory, uint64_t size, uint64_t alignment,
                           bool dedicated, uint64_t *total)
{
    uint64_t wanted = coarsest(memory, alignment),
             base = memory->device->info.limits.page_alignment;
    if (!base) /* pages come aligned as they are asked for */
        base = coarsest(memory, memory->largest_alignment);
    if (!dedicated)
        return qi_space_region_overflows(memory->space, size, alignment, base, total);
    return qi_align_up_overflows(size, memory->granule, total) ||
           qi_add_overflows(*total, wanted > base ? wanted - base : 0, total);
}

static quire_result needed_size(const quire_memory *memory, uint64_t size, uint64_t alignment,
                                bool dedicated, uint64_t *needed)
{
    const quire_device_info *info = &memory->device->info;
    uint64_t heap = info->heaps[info->kinds[memory->kind].heap].size, total = 0;
    if (page_overflows(memory, size, alignment, dedicated, &total) ||
        qi_align_up_overflows(total, page_unit(memory), &total) || total > heap)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                            "%b (%u bytes) asked: the heap of memory kind %u has %b in all", size,
                            size, memory->kind, heap);
    if (info->limits.largest_page && total > info->limits.largest_page)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                            "%b asked: the device makes no page above %b", size,
                            info->limits.largest_page);
    *needed = total;
    return QUIRE_SUCCESS;
}

/* What the policy says for the next page, within the device's limit. */
uint64_t qi_page_policy_size(const quire_memory *memory)
{
    uint64_t largest = memory->device->info.limits.largest_page, unit = page_unit(memory);
    uint64_t size = qi_policy_next_page(&memory->policy, memory->pages.last_size, unit);
    uint64_t line = qi_space_line_left(memory->space);
    largest = largest && largest < line ? largest : line;
    return size > largest ? qi_align_down(largest, unit) : size;
}

/* With the lock: a numbered record for a page to make, and what others may wait for in it. */
static quire_result begin(quire_memory *memory, uint64_t needed, bool dedicated, qi_page **out)
{
    quire_result result = take_number(memory, out);
    if (result)
        return result;
    qi_page *page = *out;
    page->dedicated = dedicated;
    page->policy_size = dedicated ? 0 : qi_page_policy_size(memory);
    page->to_join = page->policy_size > needed ? page->policy_size - needed : 0;
    page->turn = ++memory->pages.turns;
    page->next = memory->pages.being_made;
    memory->pages.being_made = page;
    return QUIRE_SUCCESS;
}

/* With the lock: the making is over, one way or the other. */
static void end(quire_memory *memory, qi_page *page, quire_result result)
{
    qi_page **link = &memory->pages.being_made;
    while (*link != page)
        link = &(*link)->next;
    *link = page->next;
    if (result)
        give_number(memory, page);
    qi_lock_wake_all(&memory->lock);
}

/* Without the lock: asks the backend, for less and less while the request still fits. */
static quire_result create(quire_memory *memory, const qi_page *page, uint64_t needed,
                           qi_device_page *native)
{
    quire_page_request request = {
        .kind = memory->kind,
        .dedicated = page->dedicated,
        .exportable = memory->exportable,
        .size = page->policy_size > needed ? page->policy_size : needed,
        .alignment = coarsest(memory, memory->largest_alignment),
        .label = memory->name,
    };
    for (;;) {
        quire_result result = qi_device_page_create(memory->device, &memory->calls,
                                                    &memory->account, &request, native);
        if (!qi_is_want_of_memory(result) || request.size == needed)
            return result;
        uint64_t half = qi_align_down(request.size / 2, page_unit(memory));
        request.size = half > needed ? half : needed;
    }
}

/* With the lock: the made page becomes part of the memory. */
static quire_result publish(quire_memory *memory, qi_page *page)
{
    qi_pages *pages = &memory->pages;
    const quire_native_page *native = &page->native.native;
    if (!page->dedicated) {
        page->skipped = qi_padding(native->address, memory->granule);
        uint64_t size = qi_align_down(native->size - page->skipped, memory->granule);
        /* regions take the lowest free number: none is above their count */
        if (!qi_table_ensure(&pages->by_region, &memory->host, pages->shared))
            return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a page's region");
        quire_result result = quire_space_add_region(
            memory->space, size, native->address + page->skipped, &page->region);
        if (result)
            return result;
        *(uint32_t *)qi_table_get(&pages->by_region, page->region) = page->number;
        pages->shared++;
    }
    page->phase = QI_PAGE_LIVE;
    count_in(memory, page);
    return QUIRE_SUCCESS;
}

/* Without the lock on entry, with it on return: makes a numbered page and publishes it. */
static quire_result make_numbered(quire_memory *memory, qi_page *page, uint64_t needed)
{
    qi_device_page native = {0};
    quire_result result = create(memory, page, needed, &native);
    qi_lock_acquire(&memory->lock);
    if (result)
        return result;
    page->native = native;
    result = publish(memory, page);
    if (result) {
        qi_lock_release(&memory->lock);
        qi_device_page_destroy(memory->device, &memory->calls, &memory->account, &native);
        qi_lock_acquire(&memory->lock);
    }
    return result;
}

/* With the lock: whether the fit takes no further region beside those made and being made. */
static bool has_all_shared(const quire_memory *memory)
{
    uint32_t most = memory->space->fit->most_regions, count = memory->pages.shared;
    for (const qi_page *page = memory->pages.being_made; page; page = page->next)
        count += !page->dedicated;
    return most && count >= most;
}

quire_result qi_page_make(quire_memory *memory, uint64_t size, uint64_t alignment, bool dedicated,
                          qi_page **out)
{
    uint64_t needed = 0;
    quire_result result = needed_size(memory, size, alignment, dedicated, &needed);
    if (result)
        return result;
    qi_page *leaving = qi_pages_take_empty(memory, 0);
    if (leaving) {
        qi_lock_release(&memory->lock);
        qi_pages_destroy(memory, leaving);
        qi_lock_acquire(&memory->lock);
    }
    if (!dedicated && has_all_shared(memory))
        return qi_fail_text(QUIRE_ERROR_TOO_MANY_PAGES,
                            "memory '%s' has %u shared page, as many as its fit works in",
                            memory->name, memory->space->fit->most_regions);
    uint64_t place = qi_space_line_most(memory->space);
    if (!dedicated && needed > place)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                            "a page of %b has no place: the pages of a memory with granule %u "
                            "reach no further; %b are left",
                            needed, memory->granule, place);
    qi_page *page = NULL;
    result = begin(memory, needed, dedicated, &page);
    if (result)
        return result;
    qi_lock_release(&memory->lock);
    result = make_numbered(memory, page, needed);
    end(memory, page, result);
    *out = page;
    return result;
}

/* ---- waiting ------------------------------------------------------------------------------ */

bool qi_page_join(quire_memory *memory, uint64_t size, const qi_page **joined)
{
    qi_page *page = memory->pages.being_made;
    while (page && page != *joined)
        page = page->next;
    if (!page) { /* not joined yet, or over without room for this one */
        page = memory->pages.being_made;
        while (page && page->to_join < size)
            page = page->next;
        if (!page)
            return false;
        page->to_join -= size;
    }
    *joined = page;
    qi_lock_wait(&memory->lock);
    return true;
}

/* Whether a page is still being made that was begun up to this turn. */
static bool is_making(const qi_pages *pages, uint64_t turn)
{
    const qi_page *page = pages->being_made;
    while (page && page->turn > turn)
        page = page->next;
    return page != NULL;
}

bool qi_page_await_change(quire_memory *memory, quire_result refusal, uint64_t *turn)
{
    const qi_pages *pages = &memory->pages;
    uint32_t most = memory->policy.most_pages;
    bool is_full = (most && pages->in_use >= most) || /* or the fit waits for its only page */
                   pages->shared < memory->space->fit->most_regions;
    if (refusal != QUIRE_ERROR_TOO_MANY_PAGES && !qi_is_want_of_memory(refusal))
        return false;
    if (!*turn)
        *turn = pages->turns;
    bool is_over = refusal == QUIRE_ERROR_OVER_BUDGET && is_making(pages, *turn);
    if (!pages->leaving && !is_over && !(is_full && pages->being_made))
        return false;
    qi_lock_wait(&memory->lock);
    return true;
}
