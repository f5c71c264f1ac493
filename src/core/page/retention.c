/*
 * retention.c - takes out the empty pages that the policy no longer keeps.
 *
 * Every function requires the lock of the shard, except qi_empty_pages_apply_all.
 */
#include "src/core/page/retention.h"

#include "src/core/page/drain.h"
#include "src/core/page/empty_pages.h"
#include "src/core/page/page_take.h"

/* Whether the memory stays at or above its floor without this page. */
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

/* What one call may take, and what it has taken. */
typedef struct portion {
    uint64_t needed; /* bytes to take before pages are counted */
    uint32_t max;    /* pages to take after that */
    uint32_t beyond; /* pages taken after the needed bytes */
    uint64_t taken;  /* bytes */
    uint64_t spare;  /* bytes above the floor: larger pages stay, unless tied */
    uint64_t least;  /* the smallest page that had to stay */
} portion;

/* `spare` is read once and serves as a cheap first test; may_leave tests the present bytes. */
static portion begin(const qi_shard *shard, uint64_t needed, uint32_t max)
{
    return (portion){.needed = needed,
                     .max = max,
                     .spare = qi_pages_above_floor(&shard->memory->pages),
                     .least = UINT64_MAX};
}

/* Whether the floor keeps every page. The search is skipped then. */
static bool must_all_stay(const qi_empty_pages *empty_pages, const portion *p)
{
    return !empty_pages->tied && p->spare < empty_pages->least;
}

/* Takes one page, unless the floor needs it. Counts it beyond the limit once enough bytes are
   taken. */
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

/*
 * Takes the oldest pages until at most `keep` bytes are left. A complete pass learns the size of
 * the smallest page that stays.
 */
static qi_page *take_down_to(qi_shard *shard, uint64_t keep, portion *p, qi_page *leaving)
{
    qi_empty_pages *empty_pages = &shard->empty_pages;
    qi_page *page = must_all_stay(empty_pages, p) ? NULL : empty_pages->oldest;
    if (!page)
        return leaving;
    for (qi_page *newer; page && empty_pages->bytes > keep && p->beyond < p->max; page = newer) {
        newer = page->newer;
        leaving = take(p, page, leaving);
    }
    if (!page)
        empty_pages->least = p->least;
    return leaving;
}

qi_page *qi_empty_pages_take_oldest(qi_shard *shard, uint64_t needed, uint32_t max,
                                    qi_page *leaving)
{
    if (!shard->empty_pages.oldest) /* most refused requests */
        return leaving;
    portion p = begin(shard, needed, max);
    return take_down_to(shard, 0, &p, leaving);
}

/* Takes every tied page, from the newest: a tied page becomes empty when its object is
   destroyed. */
static qi_page *take_tied(const qi_shard *shard, qi_page *leaving)
{
    for (qi_page *page = shard->empty_pages.newest, *older; page && shard->empty_pages.tied;
         page = older) {
        older = page->older;
        if (page->tied)
            leaving = qi_page_take(page, leaving);
    }
    return leaving;
}

/* Takes the pages that have been empty for `longest` nanoseconds. If the clock went back, pages
   stay. */
static qi_page *take_old(qi_shard *shard, uint64_t longest, portion *p, qi_page *leaving)
{
    uint64_t time = qi_empty_pages_now(shard->memory);
    if (must_all_stay(&shard->empty_pages, p))
        return leaving;
    for (qi_page *page = shard->empty_pages.oldest, *newer; page && p->beyond < p->max;
         page = newer) {
        newer = page->newer;
        if (time < page->emptied_at || time - page->emptied_at < longest)
            break;
        leaving = take(p, page, leaving);
    }
    return leaving;
}

qi_page *qi_empty_pages_apply(qi_shard *shard, uint32_t max, qi_page *leaving)
{
    const quire_page_policy *policy = &shard->memory->policy;
    leaving = take_tied(shard, leaving);
    portion p = begin(shard, 0, max);
    if (policy->retained_empty_bytes)
        leaving = take_down_to(shard, policy->retained_empty_bytes / qi_shard_shares(shard->memory),
                               &p, leaving);
    if (policy->retention_nanoseconds)
        leaving = take_old(shard, policy->retention_nanoseconds, &p, leaving);
    shard->emptied = p.beyond >= max;
    return leaving;
}

qi_page *qi_empty_pages_apply_all(quire_memory *memory, uint32_t max, qi_page *leaving)
{
    for (uint32_t i = 0; i < qi_shard_count(memory); i++) {
        qi_shard *shard = memory->shards[i];
        qi_lock_acquire(&shard->lock);
        qi_shard_drain(shard);
        leaving = qi_empty_pages_apply(shard, max, leaving);
        qi_lock_release(&shard->lock);
    }
    return leaving;
}

qi_page *qi_shard_catch_up(qi_shard *shard, qi_page *leaving)
{
    qi_shard_drain(shard);
    if (!shard->emptied)
        return leaving;
    return qi_empty_pages_apply(shard, QI_EMPTY_PAGES_PER_CALL, leaving);
}
