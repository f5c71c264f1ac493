/*
 * retention.c - takes out the empty pages that the policy no longer keeps.
 *
 * Every function requires the lock of the shard, except qi_empty_pages_apply_all.
 */
#include "src/core/page/retention.h"

#include "src/core/page/drain.h"
#include "src/core/page/empty_pages.h"
#include "src/core/page/page_take.h"

/*
 * By default empty pages beyond a tenth of the memory leave after a second: longer than the frame
 * of an application, short against the levels and models that end. A page that is made within five
 * minutes after others have left shows that they left too early: the age doubles, up to twice the
 * time for which they were not used. It halves after 16 times its length without such a page. A
 * memory whose use rises and falls thus pays for a few pages. A replay of 34 minutes of a
 * conversation makes 246 backend calls if all pages are kept, 323 by this rule, and 2766 with a
 * constant second.
 */
static const uint64_t DEFAULT_AGE = 1000000000;
static const uint64_t LONGEST_MISSED = UINT64_C(300) * 1000000000;
enum { DEFAULT_SHARE = 10, QUIET_AGES = 16 };

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
    uint64_t since;  /* when the last page that was too old became empty */
} portion;

/* `spare` is read once and serves as a cheap first test; may_leave tests the present bytes. */
static portion begin(const qi_shard *shard, uint64_t needed, uint32_t max)
{
    return (portion){.needed = needed,
                     .max = max,
                     .spare = qi_pages_above_floor(&shard->memory->pages),
                     .least = UINT64_MAX};
}

static bool may_take(const portion *p)
{
    return p->taken < p->needed || p->beyond < p->max;
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
    for (qi_page *newer; page && empty_pages->bytes > keep && may_take(p); page = newer) {
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

/* Takes the pages that have been empty for `longest` nanoseconds, until at most `keep` bytes are
   left. If the clock went back, pages stay. Notes whether more will have to leave. */
static qi_page *take_old(qi_shard *shard, uint64_t time, uint64_t longest, uint64_t keep,
                         portion *p, qi_page *leaving)
{
    qi_empty_pages *empty_pages = &shard->empty_pages;
    if (must_all_stay(empty_pages, p))
        return leaving;
    for (qi_page *page = empty_pages->newest; page && !page->emptied_at; page = page->older)
        page->emptied_at = time;
    for (qi_page *page = empty_pages->oldest, *newer;
         page && p->beyond < p->max && empty_pages->bytes > keep; page = newer) {
        newer = page->newer;
        if (time < page->emptied_at || time - page->emptied_at < longest) {
            shard->work |= QI_WORK_AGING;
            break;
        }
        p->since = page->emptied_at;
        leaving = take(p, page, leaving);
    }
    return leaving;
}

/*
 * The bytes of empty pages that the default keeps whatever their age: a tenth of the memory, and
 * the newest page, which is likely to be used next. A dedicated page serves few requests, and does
 * not count. Without another page there is nothing to decide: UINT64_MAX.
 */
static uint64_t kept_by_default(const qi_shard *shard)
{
    const qi_page *newest = shard->empty_pages.newest;
    uint64_t last = newest && !newest->dedicated ? newest->native.size : 0;
    if (shard->empty_pages.bytes == last)
        return UINT64_MAX;
    return qi_pages_reserved(&shard->memory->pages) / DEFAULT_SHARE /
               qi_shard_shares(shard->memory) +
           last;
}

/* The age at which pages leave by default. Falls after a quiet time. */
static uint64_t default_age(qi_retention *now, uint64_t time)
{
    if (now->age <= DEFAULT_AGE)
        now->age = DEFAULT_AGE;
    else if (time > now->changed_at && (time - now->changed_at) / QUIET_AGES > now->age) {
        now->age /= 2;
        now->changed_at = time;
    }
    return now->age;
}

void qi_retention_note_made(qi_shard *shard)
{
    qi_retention *now = &shard->retention;
    if (!now->given)
        return;
    uint64_t time = qi_empty_pages_now(shard->memory), missed = time - now->since;
    bool is_recent = time >= now->since && missed <= LONGEST_MISSED;
    now->given = is_recent ? now->given - 1 : 0;
    if (!is_recent || now->age >= 2 * missed)
        return;
    now->age *= 2;
    now->changed_at = time;
}

/* Without bounds of the caller. Most pages that become empty are alone, and read no clock. */
static qi_page *apply_default(qi_shard *shard, uint32_t max, qi_page *leaving)
{
    uint64_t keep = kept_by_default(shard);
    if (shard->empty_pages.bytes <= keep)
        return leaving;
    uint64_t time = qi_empty_pages_now(shard->memory);
    portion p = begin(shard, 0, max);
    leaving = take_old(shard, time, default_age(&shard->retention, time), keep, &p, leaving);
    shard->work |= p.beyond >= max ? QI_WORK_EMPTIED : 0;
    if (p.beyond) {
        shard->retention.given += p.beyond;
        shard->retention.since = p.since;
    }
    return leaving;
}

qi_page *qi_empty_pages_apply(qi_shard *shard, uint32_t max, qi_page *leaving)
{
    const quire_page_policy *policy = &shard->memory->policy;
    leaving = take_tied(shard, leaving);
    shard->work = 0;
    if (qi_retention_is_default(policy))
        return apply_default(shard, max, leaving);
    portion p = begin(shard, 0, max);
    if (policy->retained_empty_bytes)
        leaving = take_down_to(shard, policy->retained_empty_bytes / qi_shard_shares(shard->memory),
                               &p, leaving);
    if (policy->retention_nanoseconds)
        leaving = take_old(shard, qi_empty_pages_now(shard->memory), policy->retention_nanoseconds,
                           0, &p, leaving);
    shard->work |= p.beyond >= max ? QI_WORK_EMPTIED : 0;
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
    if (!(shard->work & QI_WORK_EMPTIED))
        return leaving;
    return qi_empty_pages_apply(shard, QI_EMPTY_PAGES_PER_CALL, leaving);
}
