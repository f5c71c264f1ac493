/*
 * empty_pages.c - keeps the empty pages of a shard in a list by time, and the dedicated ones also
 * in lists by size.
 *
 * Tied pages are not listed by size, because no other object can use them. They are counted.
 */
#include "src/core/page/empty_pages.h"

#include "src/base/bits.h"
#include "src/base/system.h"

/*
 * A dedicated page serves a request of at least 7/8 of its size. A search looks at up to 32 pages
 * of a list, so that its cost is bounded.
 */
enum { MIN_EIGHTHS_USED = 7, MAX_LOOKED_AT = 32 };

/*
 * The size that was requested for the page. The backend may have made it larger; the page then
 * still serves requests of the same size as the one it was made for.
 */
static uint64_t requested_size(const qi_page *page)
{
    uint64_t size = page->native.size;
    return page->wanted && page->wanted < size ? page->wanted : size;
}

static qi_page **list_of(qi_empty_pages *empty_pages, const qi_page *page)
{
    return &empty_pages->dedicated[qi_highest_bit(requested_size(page))];
}

uint64_t qi_empty_pages_now(const quire_memory *memory)
{
    return memory->clock.now ? memory->clock.now(memory->clock.user) : qi_clock();
}

void qi_empty_pages_add(qi_page *page)
{
    qi_empty_pages *empty_pages = &page->shard->empty_pages;
    page->older = empty_pages->newest;
    page->newer = NULL;
    *(page->older ? &page->older->newer : &empty_pages->oldest) = page;
    if (!page->older || page->native.size < empty_pages->least)
        empty_pages->least = page->native.size;
    empty_pages->newest = page;
    empty_pages->bytes += page->native.size;
    page->emptied_at = page->shard->memory->policy.retention_nanoseconds
                           ? qi_empty_pages_now(page->shard->memory)
                           : 0;
    empty_pages->tied += page->tied;
    if (!page->dedicated || page->tied)
        return;
    qi_page **list = list_of(empty_pages, page);
    page->previous_alike = NULL;
    page->next_alike = *list;
    if (*list)
        (*list)->previous_alike = page;
    *list = page;
}

void qi_empty_pages_remove(qi_page *page)
{
    qi_empty_pages *empty_pages = &page->shard->empty_pages;
    *(page->older ? &page->older->newer : &empty_pages->oldest) = page->newer;
    *(page->newer ? &page->newer->older : &empty_pages->newest) = page->older;
    empty_pages->bytes -= page->native.size;
    empty_pages->tied -= page->tied;
    if (!page->dedicated || page->tied)
        return;
    *(page->previous_alike ? &page->previous_alike->next_alike : list_of(empty_pages, page)) =
        page->next_alike;
    if (page->next_alike)
        page->next_alike->previous_alike = page->previous_alike;
}

static qi_page *find_in_list(qi_page *page, uint64_t size)
{
    uint64_t max = size / MIN_EIGHTHS_USED;
    for (int looked = 0; page && looked < MAX_LOOKED_AT; looked++, page = page->next_alike) {
        uint64_t requested = requested_size(page);
        if (requested >= size && requested - size <= max)
            return page;
    }
    return NULL;
}

qi_page *qi_empty_pages_find_dedicated(const qi_shard *shard, uint64_t size)
{
    uint32_t at = qi_highest_bit(size);
    qi_page *page = find_in_list(shard->empty_pages.dedicated[at], size);
    if (!page && at + 1 < QI_EMPTY_SIZES)
        page = find_in_list(shard->empty_pages.dedicated[at + 1], size);
    return page;
}

qi_page *qi_empty_pages_find_shared(const qi_shard *shard, uint64_t size)
{
    qi_page *found = NULL;
    for (qi_page *page = shard->empty_pages.oldest; page; page = page->newer)
        if (!page->dedicated && page->native.size >= size &&
            (!found || page->number < found->number))
            found = page;
    return found;
}
