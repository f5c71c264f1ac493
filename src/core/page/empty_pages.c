/*
 * empty_pages.c - see empty_pages.h.
 */
#include "src/core/page/empty_pages.h"

#include "src/base/bits.h"
#include "src/base/clock.h"
#include "src/core/state/memory.h"

/* A dedicated page serves requests down to this share of it: eighths. */
enum { LEAST_EIGHTHS_USED = 7, MAX_LOOKED_AT = 32 };

/* What was asked for, where the backend made more of it: it serves what asks for as much. */
static uint64_t asked_size(const qi_page *page)
{
    uint64_t there = page->native.size;
    return page->wanted && page->wanted < there ? page->wanted : there;
}

static qi_page **list_of(qi_empty_pages *empty_pages, const qi_page *page)
{
    return &empty_pages->dedicated[qi_highest_bit(asked_size(page))];
}

static uint64_t now(const quire_memory *memory)
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
    if (page->shard->memory->policy.retention_nanoseconds)
        page->emptied_at = now(page->shard->memory);
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
    uint64_t most = size / LEAST_EIGHTHS_USED;
    for (int looked = 0; page && looked < MAX_LOOKED_AT; looked++, page = page->next_alike) {
        uint64_t asked = asked_size(page);
        if (asked >= size && asked - size <= most)
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

/* ---- giving back -------------------------------------------------------------------------- */

/* Whether the memory keeps what quire_memory_preallocate asked for without this page. */
static bool may_leave(const qi_page *page)
{
    qi_pages *pages = &page->shard->memory->pages;
    if (page->tied)
        return true;
    qi_lock_acquire(&pages->lock);
    bool may = !page->resizing && pages->stats.reserved_bytes - page->native.size >= pages->floor;
    qi_lock_release(&pages->lock);
    return may;
}

/* What one call takes out: so many bytes, and then so many pages. */
typedef struct portion {
    uint64_t needed;
    uint32_t most;
    uint32_t beyond; /* pages taken after the needed bytes */
    uint64_t taken;  /* bytes */
    uint64_t spare;  /* no page that is larger may leave, but for tied ones */
    uint64_t least;  /* of the pages that had to stay */
} portion;

static portion begin(const qi_shard *shard, uint64_t needed, uint32_t most)
{
    return (portion){.needed = needed,
                     .most = most,
                     .spare = qi_pages_above_floor(&shard->memory->pages),
                     .least = UINT64_MAX};
}

/* Whether every page has to stay, so that none need be looked at. */
static bool must_all_stay(const qi_empty_pages *empty_pages, const portion *p)
{
    return !empty_pages->tied && p->spare < empty_pages->least;
}

static qi_page *take(portion *p, qi_page *page, qi_page *leaving)
{
    uint64_t size = page->native.size;
    if ((size > p->spare && !page->tied) || !may_leave(page)) {
        p->least = size < p->least ? size : p->least;
        return leaving;
    }
    p->beyond += p->taken >= p->needed;
    p->taken += size;
    return qi_page_take(page, leaving);
}

/* The oldest, until at most `keep` bytes are left. A look at all learns the smallest. */
static qi_page *give(qi_shard *shard, uint64_t keep, portion *p, qi_page *leaving)
{
    qi_empty_pages *empty_pages = &shard->empty_pages;
    qi_page *page = must_all_stay(empty_pages, p) ? NULL : empty_pages->oldest;
    if (!page)
        return leaving;
    for (qi_page *newer; page && empty_pages->bytes > keep && p->beyond < p->most; page = newer) {
        newer = page->newer;
        leaving = take(p, page, leaving);
    }
    if (!page)
        empty_pages->least = p->least;
    return leaving;
}

qi_page *qi_empty_pages_take_oldest(qi_shard *shard, uint64_t needed, uint32_t most,
                                    qi_page *leaving)
{
    portion p = begin(shard, needed, most);
    return give(shard, 0, &p, leaving);
}

/* The newest first, for that is where they are found. */
static qi_page *give_tied(const qi_shard *shard, qi_page *leaving)
{
    for (qi_page *page = shard->empty_pages.newest, *older; page && shard->empty_pages.tied;
         page = older) {
        older = page->older;
        if (page->tied)
            leaving = qi_page_take(page, leaving);
    }
    return leaving;
}

/* A clock that has stepped back has them stay. */
static qi_page *give_old(qi_shard *shard, uint64_t longest, portion *p, qi_page *leaving)
{
    uint64_t time = now(shard->memory);
    if (must_all_stay(&shard->empty_pages, p))
        return leaving;
    for (qi_page *page = shard->empty_pages.oldest, *newer; page && p->beyond < p->most;
         page = newer) {
        newer = page->newer;
        if (time < page->emptied_at || time - page->emptied_at < longest)
            break;
        leaving = take(p, page, leaving);
    }
    return leaving;
}

qi_page *qi_empty_pages_apply(qi_shard *shard, uint32_t most, qi_page *leaving)
{
    const quire_page_policy *policy = &shard->memory->policy;
    leaving = give_tied(shard, leaving);
    portion p = begin(shard, 0, most);
    if (policy->retained_empty_bytes)
        leaving =
            give(shard, policy->retained_empty_bytes / shard->memory->shard_count, &p, leaving);
    if (policy->retention_nanoseconds)
        leaving = give_old(shard, policy->retention_nanoseconds, &p, leaving);
    shard->emptied = p.beyond >= most;
    return leaving;
}

qi_page *qi_empty_pages_apply_all(quire_memory *memory, uint32_t most, qi_page *leaving)
{
    for (uint32_t i = 0; i < memory->shard_count; i++) {
        qi_shard *shard = &memory->shards[i];
        qi_lock_acquire(&shard->lock);
        qi_shard_drain(shard);
        leaving = qi_empty_pages_apply(shard, most, leaving);
        qi_lock_release(&shard->lock);
    }
    return leaving;
}
