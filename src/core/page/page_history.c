/*
 * page_history.c - sums the shared pages of a memory for its policy (see page_history.h).
 *
 * Dedicated pages are excluded: a request decides their size, and their bytes serve no other
 * request. A shared page that a large request made larger counts in full. A page that is being made
 * counts with the size requested for it.
 */
#include "src/core/page/page_history.h"

#include "src/base/bits.h"

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
    return page->phase == QI_PAGE_LIVE || page->phase == QI_PAGE_MOVING ? page->native.size : 0;
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
