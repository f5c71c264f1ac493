/*
 * trim.c - gives back empty pages of a whole memory, under the locks of all its shards.
 */
#include "src/core/page/trim.h"

#include "src/core/page/drain.h"
#include "src/core/page/elastic_shrink.h"
#include "src/core/page/page_attempt.h"
#include "src/core/page/page_give_back.h"
#include "src/core/page/page_take.h"
#include "src/core/page/retention.h"
#include "src/space/space.h"

uint64_t qi_memory_set_floor(quire_memory *memory, uint64_t bytes)
{
    qi_lock_acquire(&memory->pages.lock);
    uint64_t old = memory->pages.floor;
    memory->pages.floor = bytes;
    qi_lock_release(&memory->pages.lock);
    return old;
}

/* Requires the locks of all shards. Whether the page is LIVE, empty and not resizing. */
static bool is_empty(quire_memory *memory, const qi_page *page)
{
    qi_lock_acquire(&memory->pages.lock);
    bool is_live = page->phase == QI_PAGE_LIVE && !page->resizing;
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
        empty -= page->native.size;
        leaving = qi_page_take(page, leaving);
    }
    return leaving;
}

/* Requires the locks of all shards. Cuts the free ends of elastic pages down to `target` bytes. */
static qi_page *cut_ends(quire_memory *memory, uint64_t target, qi_page *leaving)
{
    uint64_t empty = empty_bytes(memory);
    for (uint32_t i = 0; i < qi_shard_count(memory); i++)
        leaving =
            qi_elastic_shrink(memory->shards[i], target > empty ? target - empty : 0, leaving);
    return leaving;
}

/* The quarantine is drained first, because its ranges keep pages from being empty. */
uint64_t qi_memory_trim(quire_memory *memory, uint64_t target)
{
    qi_slot_queue *queues[QI_MAX_SHARDS];
    qi_checked_drain(memory);
    qi_memory_set_floor(memory, 0);
    qi_shards_acquire(memory);
    qi_page *leaving = NULL;
    for (uint32_t i = 0; i < qi_shard_count(memory); i++)
        leaving = qi_empty_pages_apply(memory->shards[i], QI_EMPTY_PAGES_ALL, leaving);
    leaving = take_highest(memory, target, leaving);
    leaving = cut_ends(memory, target, leaving);
    for (uint32_t i = 0; i < qi_shard_count(memory); i++) {
        qi_space_trim(memory->shards[i]->space);
        queues[i] = &memory->shards[i]->queue;
    }
    qi_slots_trim(&memory->slots, queues, qi_shard_count(memory), &memory->host);
    qi_shards_release(memory);
    return qi_pages_destroy(memory, leaving);
}

/*
 * Page numbers decide the order here as in a trim. If the empty pages are not enough, the free ends
 * of elastic pages follow. Pages with allocations stay, and no further page is granted.
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
        leaving = cut_ends(memory, 0, leaving);
    qi_shards_release(memory);
    qi_pages_destroy(memory, leaving);
}
