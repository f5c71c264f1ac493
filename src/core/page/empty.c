/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * empty.c - the oldest empty pages leave first. By default they leave after an age that doubles if
 * pages are soon made again. A trim takes the highest page numbers first.
 */
#include "src/core/page/empty.h"

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/base/system.h"
#include "src/base/thread.h"
#include "src/core/page/backing.h"
#include "src/core/page/life.h"
#include "src/core/page/range.h"
#include "src/core/page/sizes.h"
#include "src/core/state/visitors.h"
#include "src/space/space.h"

/* ---- the list ----------------------------------------------------------------------------- */

/*
 * Tied pages are not listed by size, because no other object can use them. They are counted.
 */

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
    uint64_t size = page->native.bytes;
    return page->wanted && page->wanted < size ? page->wanted : size;
}

static qi_page **list_of(qi_empty_pages *empty_pages, const qi_page *page)
{
    return &empty_pages->dedicated[qi_highest_bit(requested_size(page))];
}

uint64_t qi_memory_time(const quire_memory *memory)
{
    return memory->clock.now ? memory->clock.now(memory->clock.user) : qi_clock();
}

void qi_empty_pages_add(qi_page *page)
{
    if (page->elastic)
        return;
    qi_empty_pages *empty_pages = &page->shard->empty_pages;
    page->older = empty_pages->newest;
    page->newer = NULL;
    *(page->older ? &page->older->newer : &empty_pages->oldest) = page;
    if (!page->older || page->native.bytes < empty_pages->least)
        empty_pages->least = page->native.bytes;
    empty_pages->newest = page;
    empty_pages->bytes += page->native.bytes;
    page->emptied_at =
        page->shard->memory->policy.retention_nanoseconds ? qi_memory_time(page->shard->memory) : 0;
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
    if (page->elastic)
        return;
    qi_empty_pages *empty_pages = &page->shard->empty_pages;
    *(page->older ? &page->older->newer : &empty_pages->oldest) = page->newer;
    *(page->newer ? &page->newer->older : &empty_pages->newest) = page->older;
    empty_pages->bytes -= page->native.bytes;
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
        if (!page->dedicated && page->native.bytes >= size &&
            (!found || page->number < found->number))
            found = page;
    return found;
}

/* ---- which pages stay --------------------------------------------------------------------- */

/*
 * Every function requires the lock of the shard, except qi_empty_pages_apply_all.
 */

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
    bool may = !page->resizing && pages->stats.reserved_bytes - page->native.bytes >= pages->floor;
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
    uint64_t size = page->native.bytes;
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
    uint64_t last = newest && !newest->dedicated ? newest->native.bytes : 0;
    if (shard->empty_pages.bytes == last)
        return UINT64_MAX;
    return qi_pages_reserved(&shard->memory->pages) / DEFAULT_SHARE /
               qi_shard_shares(shard->memory) +
           last;
}

uint64_t qi_retention_age(qi_retention *now, uint64_t time)
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
    uint64_t time = qi_memory_time(shard->memory), missed = time - now->since;
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
    uint64_t time = qi_memory_time(shard->memory);
    portion p = begin(shard, 0, max);
    leaving = take_old(shard, time, qi_retention_age(&shard->retention, time), keep, &p, leaving);
    shard->work |= p.beyond >= max ? QI_WORK_EMPTIED : 0;
    if (p.beyond) {
        shard->retention.given += p.beyond;
        shard->retention.since = p.since;
    }
    return leaving;
}

/*
 * Requires the shard's lock. Takes the pages that the policy no longer keeps, at most `max`. If
 * more remain, QI_WORK_EMPTIED stays set and the shard's next operation continues.
 */
static qi_page *apply_policy(qi_shard *shard, uint32_t max, qi_page *leaving)
{
    const quire_page_policy *policy = &shard->memory->policy;
    leaving = take_tied(shard, leaving);
    shard->work = 0;
    leaving = qi_backing_age(shard, leaving);
    if (!shard->empty_pages.oldest) /* most looks at an elastic page */
        return leaving;
    if (qi_retention_is_default(policy))
        return apply_default(shard, max, leaving);
    portion p = begin(shard, 0, max);
    if (policy->retained_empty_bytes)
        leaving = take_down_to(shard, policy->retained_empty_bytes / qi_shard_shares(shard->memory),
                               &p, leaving);
    if (policy->retention_nanoseconds)
        leaving = take_old(shard, qi_memory_time(shard->memory), policy->retention_nanoseconds, 0,
                           &p, leaving);
    shard->work |= p.beyond >= max ? QI_WORK_EMPTIED : 0;
    return leaving;
}

qi_page *qi_empty_pages_apply_all(quire_memory *memory, uint32_t max, qi_page *leaving)
{
    for (uint32_t i = 0; i < qi_shard_count(memory); i++) {
        qi_shard *shard = memory->shards[i];
        qi_lock_acquire(&shard->lock);
        qi_shard_drain(shard);
        leaving = apply_policy(shard, max, leaving);
        qi_lock_release(&shard->lock);
    }
    return leaving;
}

qi_page *qi_shard_catch_up(qi_shard *shard, qi_page *leaving)
{
    qi_shard_drain(shard);
    if (!(shard->work & QI_WORK_EMPTIED))
        return leaving;
    return apply_policy(shard, QI_EMPTY_PAGES_PER_CALL, leaving);
}

/* ---- floor, limit and trim ---------------------------------------------------------------- */

/* Sets the bytes of pages that the memory keeps while they are empty. Returns the old value. */
static uint64_t set_floor(quire_memory *memory, uint64_t bytes)
{
    qi_lock_acquire(&memory->pages.lock);
    uint64_t old = memory->pages.floor;
    memory->pages.floor = bytes;
    qi_lock_release(&memory->pages.lock);
    return old;
}

/* Requires the locks of all shards. Whether the page is LIVE, empty and not resizing. An elastic
   page stays, and its memory goes (backing.h). */
static bool is_empty(quire_memory *memory, const qi_page *page)
{
    qi_lock_acquire(&memory->pages.lock);
    bool is_live = page->phase == QI_PAGE_LIVE && !page->resizing && !page->elastic;
    qi_lock_release(&memory->pages.lock);
    return is_live && !page->tally->allocation_count;
}

/* Requires the locks of all shards. Returns the bytes of empty pages. */
static uint64_t empty_bytes(const quire_memory *memory)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < qi_shard_count(memory); i++)
        bytes += memory->shards[i]->empty_pages.bytes;
    return bytes;
}

/*
 * Requires the locks of all shards. Takes empty pages until at most `target` bytes of them are
 * left, the highest numbers first: new allocations fill low numbers first.
 */
static qi_page *take_highest(quire_memory *memory, uint64_t target, qi_page *leaving)
{
    uint64_t empty = empty_bytes(memory);
    for (uint32_t i = memory->pages.top; i-- > 0 && empty > target;) {
        qi_page *page = qi_page_at(&memory->pages, i);
        if (!is_empty(memory, page))
            continue;
        empty -= page->native.bytes;
        leaving = qi_page_take(page, leaving);
    }
    return leaving;
}

/* Requires the shards' locks. Takes free chunks of an elastic page, down to `target` bytes. */
static qi_page *take_chunks(quire_memory *memory, uint64_t target, qi_page *leaving)
{
    qi_shard *shard = memory->shards[0]; /* the only one of an elastic memory */
    const uint64_t empty = empty_bytes(memory), keep = target > empty ? target - empty : 0;
    const uint64_t free = qi_backing_free(shard);
    return qi_backing_shrink(shard, free > keep ? free - keep : 0, leaving);
}

/* The quarantine is drained first, because its ranges keep pages from being empty. */
uint64_t qi_memory_trim(quire_memory *memory, uint64_t target)
{
    qi_slot_queue *queues[QI_MAX_SHARDS];
    qi_checked_drain(memory);
    set_floor(memory, 0);
    qi_shards_acquire(memory);
    qi_page *leaving = NULL;
    for (uint32_t i = 0; i < qi_shard_count(memory); i++)
        leaving = apply_policy(memory->shards[i], QI_EMPTY_PAGES_ALL, leaving);
    leaving = take_highest(memory, target, leaving);
    leaving = take_chunks(memory, target, leaving);
    for (uint32_t i = 0; i < qi_shard_count(memory); i++) {
        qi_space_trim(memory->shards[i]->space);
        queues[i] = &memory->shards[i]->queue;
    }
    qi_slots_trim(&memory->slots, queues, qi_shard_count(memory), &memory->host);
    qi_shards_release(memory);
    return qi_pages_destroy(memory, leaving);
}

/*
 * Page numbers decide the order here as in a trim. If the empty pages are not enough, free chunks
 * of an elastic page follow. Pages with allocations stay, and no further page is granted.
 */
void qi_memory_set_limit(quire_memory *memory, uint64_t bytes)
{
    qi_account_set_limit(&memory->account, bytes);
    qi_page_attempt_forget(memory);
    qi_checked_drain(memory);
    qi_shards_acquire(memory);
    uint64_t empty = empty_bytes(memory), used = qi_account_used(&memory->account);
    uint64_t over = bytes && used > bytes ? used - bytes : 0;
    qi_page *leaving = take_highest(memory, empty > over ? empty - over : 0, NULL);
    if (over > empty)
        leaving = qi_backing_shrink(memory->shards[0], over - empty, leaving);
    qi_shards_release(memory);
    qi_pages_destroy(memory, leaving);
}

uint64_t qi_pages_give_back_empty(quire_memory *memory, uint64_t bytes, qi_page_events *events)
{
    qi_page *leaving = NULL;
    uint64_t taken = 0;
    for (uint32_t i = 0; i < qi_shard_count(memory) && taken < bytes; i++) {
        qi_shard *shard = memory->shards[i];
        qi_lock_acquire(&shard->lock);
        qi_shard_drain(shard);
        uint64_t before = shard->empty_pages.bytes;
        leaving = qi_empty_pages_take_oldest(shard, bytes - taken, 0, leaving);
        taken += before - shard->empty_pages.bytes;
        if (taken < bytes)
            leaving = qi_backing_shrink(shard, bytes - taken, leaving);
        qi_lock_release(&shard->lock);
    }
    return qi_pages_give_back(memory, leaving, events);
}

/* ---- preallocation ------------------------------------------------------------------------ */

/*
 * Requires the shard's lock. Releases and reacquires it. Makes a page of the policy's size, or
 * backs chunks of the elastic page.
 */
static quire_result add(qi_shard *shard, qi_page_progress *progress)
{
    if (qi_backing_page(shard))
        return qi_backing_add(shard, qi_pages_below_floor(&shard->memory->pages), progress);
    qi_page *page = NULL;
    uint64_t needed = 0;
    quire_result result = qi_page_needed_size(shard, 1, 1, false, &needed);
    if (result)
        return result;
    qi_page_give_back_before(shard, needed, &progress->events);
    result = qi_page_make(shard, 1, 1, false, &page, progress);
    if (!result) {
        qi_page_keep(page);
        progress->events.made = qi_page_made(page);
    }
    return result;
}

/* Like `add`, within the backend's budget, then after other memories have given back empty pages,
   then beyond the budget if the memory allows that. *turns is of qi_pages_take_from_others. */
static quire_result add_anyway(qi_shard *shard, qi_page_progress *progress, uint32_t *turns)
{
    quire_result result;
    do {
        progress->is_over_budget = false;
        result = add(shard, progress);
    } while (result &&
             qi_pages_take_from_others(shard, result, qi_page_unit(shard->memory), false, turns));
    if (!result || !progress->is_over_budget)
        return result;
    progress->may_exceed = true;
    result = add(shard, progress);
    progress->may_exceed = false;
    return result;
}

/* Requires no lock. Adds one page of the policy's size, which stays empty. */
static quire_result make_page(qi_shard *shard)
{
    qi_page_progress progress = {0};
    qi_page_wait wait = {0};
    uint32_t turns = 0;
    quire_result result;
    qi_lock_acquire(&shard->lock);
    do {
        wait.changes = qi_pages_changes(shard);
        result = add_anyway(shard, &progress, &turns);
    } while (qi_page_wait_for_change(shard, result, &wait));
    qi_lock_release(&shard->lock);
    qi_page_events_report(shard->memory, &progress.events, ", preallocated");
    return result;
}

/*
 * Whether more pages are needed. No longer once another thread has changed the floor: the pages
 * would leave again.
 */
static bool needs_pages(quire_memory *memory, uint64_t bytes)
{
    qi_lock_acquire(&memory->pages.lock);
    bool needs = memory->pages.floor == bytes && memory->pages.stats.reserved_bytes < bytes;
    qi_lock_release(&memory->pages.lock);
    return needs;
}

/* Restores the old floor, unless another thread has changed it since. */
static void restore_floor(quire_memory *memory, uint64_t bytes, uint64_t old)
{
    qi_lock_acquire(&memory->pages.lock);
    if (memory->pages.floor == bytes)
        memory->pages.floor = old;
    qi_lock_release(&memory->pages.lock);
}

static quire_result check(const quire_memory *memory, uint64_t bytes)
{
    const quire_device_info *info = &memory->device->info;
    uint32_t index = info->kinds[memory->kind].heap;
    uint64_t heap = qi_heap_size(&memory->device->heaps[index], info->heaps[index].size);
    if (bytes > heap)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                            "%b to preallocate: the heap of memory kind %u has %b in all", bytes,
                            memory->kind, heap);
    if (bytes && memory->policy.dedicated == QUIRE_DEDICATED_ALWAYS)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "a memory of dedicated pages cannot preallocate: each page is made for its "
                       "allocation");
    return QUIRE_SUCCESS;
}

quire_result qi_memory_preallocate(quire_memory *memory, uint64_t bytes)
{
    quire_result result = check(memory, bytes);
    if (result)
        return result;
    uint64_t old = set_floor(memory, bytes);
    for (uint32_t turn = 0; !result && needs_pages(memory, bytes); turn++) {
        uint32_t first = memory->first_shard;
        result = make_page(memory->shards[first + turn % (qi_shard_count(memory) - first)]);
    }
    if (result) {
        qi_page_events events = {.gone = NULL};
        restore_floor(memory, bytes, old);
        qi_pages_give_back_empty(memory, UINT64_MAX, &events);
        qi_page_events_report(memory, &events, "");
    } else if (bytes < old) { /* the policy may no longer keep all pages */
        qi_pages_destroy(memory, qi_empty_pages_apply_all(memory, QI_EMPTY_PAGES_ALL, NULL));
    }
    return result;
}

/* ---- the device's other memories ---------------------------------------------------------- */

/* No lock is held between two memories. */

enum { MAX_TURNS = 2 };

/* Requires the shard's lock. Whether the limits of the memory itself allow a page of the needed
   bytes, so that only the device has no room for it. */
static bool is_device_full(const qi_shard *shard, quire_result refusal, uint64_t needed,
                           bool dedicated)
{
    quire_memory *memory = shard->memory;
    if (refusal == QUIRE_ERROR_TOO_MANY_PAGES) {
        uint32_t max = memory->policy.max_pages, max_shared = qi_page_max_shared(shard);
        qi_lock_acquire(&memory->pages.lock);
        bool may_have_more = !max || memory->pages.in_use < max;
        qi_lock_release(&memory->pages.lock);
        return may_have_more && (dedicated || !max_shared || shard->shared < max_shared);
    }
    uint64_t max = qi_account_max(&memory->account), used = qi_account_used(&memory->account);
    return qi_is_out_of_memory(refusal) && used <= max && needed <= max - used;
}

static uint32_t heap_of(const quire_memory *memory)
{
    return memory->device->info.kinds[memory->kind].heap;
}

/* Requires no lock. The events of each memory are reported before the next one is visited. Returns
   the bytes given back. */
static uint64_t take_from(const quire_memory *memory, bool of_any_heap, uint64_t bytes)
{
    quire_device *device = memory->device;
    uint64_t given = 0;
    quire_memory *other = qi_visitors_next(device, NULL);
    for (; other && given < bytes; other = qi_visitors_next(device, other)) {
        qi_page_events events = {.gone = NULL};
        if (other == memory || (heap_of(other) != heap_of(memory) && !of_any_heap))
            continue;
        given += qi_pages_give_back_empty(other, bytes - given, &events);
        qi_page_events_report(other, &events, "");
    }
    if (other)
        qi_visitors_leave(other);
    return given;
}

/* A thread with a page in transit may call no hook, also not one of another memory. */
bool qi_pages_take_from_others(qi_shard *shard, quire_result refusal, uint64_t needed,
                               bool dedicated, uint32_t *turns)
{
    if (*turns == MAX_TURNS || qi_transit_is_on() ||
        !is_device_full(shard, refusal, needed, dedicated))
        return false;
    bool of_any_heap = refusal == QUIRE_ERROR_TOO_MANY_PAGES; /* one page is enough */
    uint64_t bytes = of_any_heap ? 1 : *turns ? UINT64_MAX : needed;
    qi_error error;
    ++*turns;
    qi_error_save(&error);
    qi_lock_release(&shard->lock);
    uint64_t given = take_from(shard->memory, of_any_heap, bytes);
    qi_lock_acquire(&shard->lock);
    qi_error_restore(&error);
    return given != 0;
}
