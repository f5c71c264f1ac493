/*
 * elastic_end.c - the page whose end moves, and the protocol between the threads that move it.
 *
 * `resizing` and `cut_from` of the page carry the protocol. The lock of the pages protects
 * `resizing`, because a thread that waits for the end to stop moving sleeps on that lock.
 */
#include "src/core/page/elastic_end.h"

#include "src/base/bits.h"
#include "src/base/thread.h"
#include "src/core/page/page_history.h"
#include "src/core/page/page_size.h"
#include "src/space/space.h"

qi_page *qi_elastic_page(const qi_shard *shard)
{
    if (!shard->memory->address_space || !shard->shared)
        return NULL;
    return qi_shard_tally(shard, 0)->page; /* its only region has the lowest number */
}

/* The least of: the memory's address space, the largest page of the device, the rest of the
   line. */
uint64_t qi_elastic_max_size(const qi_shard *shard, uint64_t size, bool dedicated)
{
    const quire_memory *memory = shard->memory;
    const quire_device_info *info = &memory->device->info;
    if (!memory->address_space || dedicated)
        return 0;
    uint64_t most = memory->address_space, line = qi_space_line_left(shard->space);
    if (info->limits.max_page && most > info->limits.max_page)
        most = info->limits.max_page;
    most = qi_align_down(most < line ? most : line, qi_page_unit(memory));
    return most > size ? most : size;
}

uint64_t qi_elastic_region_size(const qi_page *page, uint64_t size)
{
    return qi_align_down(size - page->tally->skipped, page->shard->memory->granule);
}

/* The thread then counts as one with a page under way (transit.h): it must not wait for itself. */
bool qi_elastic_begin(qi_page *page)
{
    qi_pages *pages = &page->shard->memory->pages;
    qi_lock_acquire(&pages->lock);
    bool is_free = !page->resizing;
    page->resizing = true;
    if (is_free)
        page->owner = qi_thread_self();
    qi_lock_release(&pages->lock);
    if (is_free)
        qi_transit_begin();
    return is_free;
}

/* Waits once. The caller tests its condition again, because another thread may begin at once. */
void qi_elastic_wait(qi_shard *shard, const qi_page *page)
{
    qi_pages *pages = &shard->memory->pages;
    qi_lock_acquire(&pages->lock);
    if (page->resizing)
        qi_lock_wait(&pages->lock, &shard->lock);
    qi_lock_release(&pages->lock);
}

void qi_elastic_end(qi_page *page, bool has_moved)
{
    qi_pages *pages = &page->shard->memory->pages;
    qi_lock_acquire(&pages->lock);
    page->resizing = false;
    page->cut_from = 0;
    pages->changes += has_moved;
    qi_lock_wake_all(&pages->lock);
    qi_lock_release(&pages->lock);
    qi_transit_end();
}

/* An empty page is in the list of empty pages, whose sum and minimum change with its size. */
void qi_elastic_set_size(qi_page *page, uint64_t size)
{
    qi_pages *pages = &page->shard->memory->pages;
    quire_memory_stats *stats = &pages->stats;
    uint64_t from = page->native.size;
    if (!page->tally->allocation_count) {
        page->shard->empty_pages.bytes += size - from; /* of a smaller size: wraps, as intended */
        if (size < page->shard->empty_pages.least)
            page->shard->empty_pages.least = size;
    }
    qi_lock_acquire(&pages->lock);
    page->native.size = size;
    qi_page_history_change(page, from, size);
    stats->reserved_bytes += size - from;
    qi_raise(&stats->peak_reserved_bytes, stats->reserved_bytes);
    qi_lock_release(&pages->lock);
}

bool qi_elastic_is_shrinking(const qi_shard *shard)
{
    const qi_page *page = qi_elastic_page(shard);
    return page && page->cut_from;
}

uint64_t qi_elastic_shrink_finish(quire_memory *memory, qi_page *page)
{
    uint64_t from = page->cut_from, bytes = from - page->native.size;
    qi_device_page_shrink(memory->device, &memory->calls, &memory->account, &page->native, from,
                          page->native.size);
    qi_elastic_end(page, true);
    return bytes;
}
