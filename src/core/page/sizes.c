/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * sizes.c - requests the policy's size, then half of it, down to what the request needs; the size
 * that the backend refused bounds later calls.
 */
#include "src/core/page/sizes.h"

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/space/fit.h"
#include "src/space/space.h"

/* ---- sizes -------------------------------------------------------------------------------- */

/* A size above 64 bits counts as UINT64_MAX, which no heap has. */

uint64_t qi_page_unit(const quire_memory *memory)
{
    uint64_t granularity = memory->device->info.limits.page_granularity;
    if (granularity < memory->chunk)
        granularity = memory->chunk;
    return granularity > memory->granule ? granularity : memory->granule;
}

uint64_t qi_page_alignment(const quire_memory *memory, uint64_t alignment)
{
    return alignment > memory->granule ? alignment : memory->granule;
}

/*
 * Computes the bytes of a page in which the request fits for every address that the backend may
 * give the page. Returns true if they exceed 64 bits.
 */
static bool page_overflows(const qi_shard *shard, uint64_t size, uint64_t alignment, bool dedicated,
                           uint64_t *total)
{
    const quire_memory *memory = shard->memory;
    uint64_t wanted = qi_page_alignment(memory, alignment),
             base = memory->device->info.limits.page_alignment;
    if (!base) /* no promise by the device: the page has the alignment that is requested for it */
        base = qi_page_alignment(memory, memory->max_alignment);
    if (!dedicated)
        return qi_space_region_overflows(shard->space, size, alignment, base, total);
    return qi_align_up_overflows(size, memory->granule, total) ||
           qi_add_overflows(*total, wanted > base ? wanted - base : 0, total);
}

static uint64_t heap_of(const quire_memory *memory)
{
    const quire_device_info *info = &memory->device->info;
    uint32_t index = info->kinds[memory->kind].heap;
    return qi_heap_size(&memory->device->heaps[index], info->heaps[index].size);
}

bool qi_page_can_exist(const quire_memory *memory, uint64_t size)
{
    uint64_t max = memory->device->info.limits.max_page;
    return size <= heap_of(memory) && (!max || size <= max);
}

quire_result qi_page_check_total(const quire_memory *memory, uint64_t size, uint64_t total)
{
    uint64_t heap = heap_of(memory), max = memory->device->info.limits.max_page;
    if (total > heap)
        return qi_fail_at_limit(
            QI_LIMIT_HEAP_SIZE, heap,
            qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                         "%b (%u byte%s) can never fit: the heap of memory kind %u has %b in all",
                         size, size, memory->kind, heap));
    if (max && total > max)
        return qi_fail_at_limit(
            QI_LIMIT_PAGE_SIZE, max,
            qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                         "%b can never fit: the largest page of the device has %b", size, max));
    return QUIRE_SUCCESS;
}

quire_result qi_page_needed_size(const qi_shard *shard, uint64_t size, uint64_t alignment,
                                 bool dedicated, uint64_t *needed)
{
    uint64_t total = 0;
    if (page_overflows(shard, size, alignment, dedicated, &total) ||
        qi_align_up_overflows(total, qi_page_unit(shard->memory), &total))
        total = UINT64_MAX;
    quire_result result = qi_page_check_total(shard->memory, size, total);
    if (!result)
        *needed = total;
    return result;
}

/* Limits a size to what the device expects of pages and buffers, and to the free part of the
   space's line. A buffer can then cover the page. */
static uint64_t within_limits(const qi_shard *shard, uint64_t size)
{
    const quire_memory *memory = shard->memory;
    const quire_limits *limits = &memory->device->info.limits;
    const uint64_t list[] = {limits->max_page, limits->usual_page, limits->max_buffer};
    uint64_t largest = qi_space_line_left(shard->space);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i] && list[i] < largest)
            largest = list[i];
    return size > largest ? qi_align_down(largest, qi_page_unit(memory)) : size;
}

uint64_t qi_page_policy_size(const qi_shard *shard)
{
    const quire_memory *memory = shard->memory;
    qi_page_history history = qi_page_history_of(shard);
    return within_limits(shard,
                         qi_policy_next_page(&memory->policy, &history, qi_page_unit(memory)));
}

/* The policy and the limits never make a page too small for its request. */
uint64_t qi_page_wanted_size(const qi_shard *shard, const qi_page *page, uint64_t size,
                             uint64_t needed)
{
    const quire_page_policy *policy = &shard->memory->policy;
    if (page->tied || page->elastic)
        return needed;
    uint64_t wanted = qi_policy_round(policy, needed);
    if (!page->dedicated)
        qi_raise(&wanted, qi_policy_page_for(policy, page->policy_size, size, needed,
                                             qi_page_unit(shard->memory)));
    wanted = within_limits(shard, wanted);
    return wanted > needed ? wanted : needed;
}

/* ---- sums for the policy ------------------------------------------------------------------ */

/*
 * Dedicated pages are excluded: a request decides their size, and their bytes serve no other
 * request. A shared page that a large request made larger counts in full. A page that is being made
 * counts with the size requested for it.
 */

void qi_page_history_change(const qi_page *page, uint64_t from, uint64_t to)
{
    if (page->dedicated)
        return;
    page->shard->memory->pages.shared_bytes += to - from; /* wraps, as intended, if to < from */
    page->shard->shared_bytes += to - from;
}

/* The bytes that a page counts. */
static uint64_t counted(const qi_page *page)
{
    if (page->dedicated)
        return 0;
    if (page->phase == QI_PAGE_MAKING)
        return page->wanted;
    return page->phase == QI_PAGE_LIVE || page->phase == QI_PAGE_MOVING ? page->native.bytes : 0;
}

static uint64_t largest(const qi_pages *pages)
{
    uint64_t largest = 0;
    for (uint32_t i = 0; i < pages->top; i++)
        qi_raise(&largest, counted(qi_page_at(pages, i)));
    return largest;
}

qi_page_history qi_page_history_of(const qi_shard *shard)
{
    const quire_memory *memory = shard->memory;
    const qi_pages *pages = &memory->pages;
    return (qi_page_history){
        .last = pages->last_size,
        .largest = memory->policy.growth == QUIRE_GROWTH_LARGEST ? largest(pages) : 0,
        .total = pages->shared_bytes,
        .own = shard->shared_bytes,
        .floor = pages->floor / qi_shard_shares(memory),
    };
}

bool qi_page_history_agrees(const quire_memory *memory)
{
    uint64_t sums[QI_MAX_SHARDS] = {0}, all = 0;
    for (uint32_t i = 0; i < memory->pages.top; i++) {
        const qi_page *page = qi_page_at(&memory->pages, i);
        uint64_t bytes = counted(page);
        all += bytes;
        if (bytes)
            sums[page->shard->index] += bytes;
    }
    bool agrees = all == memory->pages.shared_bytes;
    for (uint32_t i = 0; i < qi_shard_count(memory); i++)
        agrees = agrees && sums[i] == memory->shards[i]->shared_bytes;
    return agrees;
}

/* ---- attempts ----------------------------------------------------------------------------- */

static uint64_t releases_of(const quire_memory *memory)
{
    const quire_device *device = memory->device;
    return qi_heap_releases(&device->heaps[device->info.kinds[memory->kind].heap]);
}

static uint64_t half_of(const quire_memory *memory, uint64_t size, uint64_t needed)
{
    uint64_t half = qi_align_down(size / 2, qi_page_unit(memory));
    return half > needed ? half : needed;
}

uint64_t qi_page_attempt_size(const quire_memory *memory, uint64_t wanted, uint64_t needed,
                              uint64_t max_bytes, bool *is_reduced)
{
    const qi_pages *pages = &memory->pages;
    uint64_t size = max_bytes && max_bytes < wanted ? max_bytes : wanted;
    size = size > needed ? size : needed;
    *is_reduced = false;
    if (!pages->refused || pages->refused_as_of != releases_of(memory))
        return size;
    while (size >= pages->refused && size > needed) {
        size = half_of(memory, size, needed);
        *is_reduced = true;
    }
    return size;
}

qi_page_attempt qi_page_attempt_begin(quire_memory *memory, uint64_t size, uint64_t needed,
                                      bool is_reduced, qi_page_progress *progress)
{
    progress->is_smaller |= is_reduced;
    progress->is_over_budget = false;
    return (qi_page_attempt){
        .memory = memory,
        .size = size,
        .needed = needed,
        .is_reduced = is_reduced,
        .terms = {.is_strict = memory->within_budget || progress->within_budget,
                  .may_exceed = progress->may_exceed},
    };
}

/* Read before the request: a release during it makes its refusal outdated. */
void qi_page_attempt_start(qi_page_attempt *a)
{
    a->releases = releases_of(a->memory);
}

/* Another thread's record may already be of a later time than this refusal. */
static void note_refused(qi_page_attempt *a)
{
    qi_pages *pages = &a->memory->pages;
    a->was_refused = true;
    if (a->is_tied)
        return;
    qi_lock_acquire(&pages->lock);
    if (a->releases > pages->refused_as_of || !pages->refused)
        pages->refused = a->size;
    else if (a->releases == pages->refused_as_of && a->size < pages->refused)
        pages->refused = a->size;
    if (a->releases > pages->refused_as_of)
        pages->refused_as_of = a->releases;
    qi_lock_release(&pages->lock);
}

static void note_made(const qi_page_attempt *a)
{
    qi_pages *pages = &a->memory->pages;
    if (a->is_tied)
        return;
    qi_lock_acquire(&pages->lock);
    if (pages->refused && a->size >= pages->refused)
        pages->refused = 0;
    else if (a->is_reduced && !a->was_refused && pages->refused > UINT64_MAX / 2)
        pages->refused = 0;
    else if (a->is_reduced && !a->was_refused)
        pages->refused *= 2;
    qi_lock_release(&pages->lock);
}

/* Whether the least size exceeds the backend's budget and no limit of the caller. */
static bool is_over_budget(const qi_page_attempt *a)
{
    const qi_budget_terms *terms = &a->terms;
    return terms->is_refused && !terms->is_strict && !terms->may_exceed &&
           a->needed > terms->room && a->needed <= terms->room_by_limit;
}

bool qi_page_attempt_again(qi_page_attempt *a, quire_result result, qi_page_progress *progress)
{
    if (!result)
        note_made(a);
    if (!qi_is_out_of_memory(result))
        return false;
    if (!a->terms.is_refused)
        note_refused(a);
    progress->is_over_budget = is_over_budget(a);
    progress->excess = a->terms.excess;
    if (progress->is_over_budget || a->size == a->needed)
        return false;
    uint64_t room = a->terms.is_refused ? a->terms.room : UINT64_MAX;
    do
        a->size = half_of(a->memory, a->size, a->needed);
    while (a->size > room && a->size > a->needed);
    progress->is_smaller = true;
    return true;
}

void qi_page_attempt_forget(quire_memory *memory)
{
    qi_lock_acquire(&memory->pages.lock);
    memory->pages.refused = 0;
    qi_lock_release(&memory->pages.lock);
}
