/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * page_addresses.c - a bit for each granule of a shared page says where allocations start, so that
 * only the allocation of the previous bit can contain an offset.
 */
#include "src/core/find/page_addresses.h"

#include "src/base/bitmap.h"

/* Returns how many granules lie in `size` bytes of the page, whole or in part. */
static uint64_t granules_of(const qi_page_addresses *page, uint64_t size)
{
    return (size - page->skipped + page->granule - 1) / page->granule;
}

qi_page_addresses *qi_page_addresses_create(quire_memory *memory, const qi_page *page,
                                            uint64_t device)
{
    qi_host *host = &memory->host;
    const qi_device_page *native = &page->native;
    qi_page_addresses *p = qi_host_allocate(host, 1, sizeof *p);
    if (!p)
        return NULL;
    p->size = native->native.size;
    p->addresses[QI_ADDRESS_OF_DEVICE] = device;
    p->addresses[QI_ADDRESS_OF_HOST] = native->on_demand ? 0 : (uintptr_t)native->host;
    qi_atomic_init_u64(&p->base, device ? device : p->addresses[QI_ADDRESS_OF_HOST]);
    p->granule = memory->granule;
    p->skipped = qi_padding(native->native.address, memory->granule);
    if (page->dedicated)
        return p;
    if (page->elastic) {
        p->is_elastic = true;
        p->chunks.shift = qi_highest_bit(memory->chunk / memory->granule);
        if (qi_chunk_starts_cover(&p->chunks, host, 0, native->bytes / memory->chunk))
            return p;
        qi_page_addresses_release(p, host);
        return NULL;
    }
    p->granules = (uint32_t)granules_of(p, p->size);
    p->starts = qi_host_allocate(host, qi_bitmap_words(p->granules), sizeof *p->starts);
    if (p->starts)
        return p;
    qi_page_addresses_release(p, host);
    return NULL;
}

static void release_starts(qi_page_addresses *page, qi_host *host)
{
    if (page->starts)
        qi_host_release(host, page->starts, qi_bitmap_words(page->granules), sizeof *page->starts);
}

void qi_page_addresses_release(qi_page_addresses *page, qi_host *host)
{
    release_starts(page, host);
    qi_chunk_starts_release(&page->chunks, host);
    qi_host_release(host, page, 1, sizeof *page);
}

void qi_page_addresses_set_device(qi_page_addresses *page, uint64_t device)
{
    page->addresses[QI_ADDRESS_OF_DEVICE] = device;
    if (qi_atomic_load_u64(&page->base))
        return;
    page->is_late = true; /* before the base: who has read the base may read it without a lock */
    qi_atomic_store_release_u64(&page->base, device);
}

/* Bytes of a chunk. */
static uint64_t chunk_of(const qi_page_addresses *page)
{
    return page->granule << page->chunks.shift;
}

bool qi_page_addresses_cover(qi_page_addresses *page, qi_host *host, uint64_t offset, uint64_t size)
{
    const uint64_t first = offset / chunk_of(page), end = (offset + size - 1) / chunk_of(page) + 1;
    qi_lock_acquire(page->lock);
    bool is_covered = qi_chunk_starts_cover(&page->chunks, host, first, end - first);
    qi_lock_release(page->lock);
    return is_covered;
}

void qi_page_addresses_uncover(qi_page_addresses *page, qi_host *host, uint64_t offset,
                               uint64_t size)
{
    qi_lock_acquire(page->lock);
    qi_chunk_starts_uncover(&page->chunks, host, offset / chunk_of(page), size / chunk_of(page));
    qi_lock_release(page->lock);
}

static uint32_t number_of(const qi_page_addresses *page, uint64_t offset)
{
    return (uint32_t)((offset - page->skipped) / page->granule);
}

void qi_page_addresses_add(qi_page_addresses *page, uint64_t offset, uint64_t id)
{
    qi_lock_acquire(page->lock);
    page->inner |= (offset - page->skipped) & (page->granule - 1); /* a power of two */
    if (page->starts) {
        uint32_t number = number_of(page, offset);
        if (!qi_bitmap_has(page->starts, number))
            qi_bitmap_add(page->starts, page->granules, number);
    } else if (page->is_elastic) {
        qi_chunk_starts_add(&page->chunks, offset / page->granule);
    } else {
        page->only_id = id;
        page->only_start = offset;
    }
    qi_lock_release(page->lock);
}

void qi_page_addresses_remove(qi_page_addresses *page, uint64_t offset)
{
    qi_lock_acquire(page->lock);
    if (page->is_elastic)
        qi_chunk_starts_remove(&page->chunks, offset / page->granule);
    else if (!page->starts)
        page->only_id = 0;
    else if (qi_bitmap_has(page->starts, number_of(page, offset)))
        qi_bitmap_remove(page->starts, page->granules, number_of(page, offset));
    qi_lock_release(page->lock);
}

bool qi_page_addresses_before(const qi_page_addresses *page, uint64_t offset, uint64_t *start)
{
    if (offset < page->skipped)
        return false;
    if (page->is_elastic) {
        bool is_found = qi_chunk_starts_before(&page->chunks, offset / page->granule, start);
        *start *= page->granule;
        return is_found;
    }
    uint32_t number = number_of(page, offset);
    if (number >= page->granules)
        number = page->granules - 1;
    number = qi_bitmap_previous(page->starts, page->granules, number);
    *start = page->skipped + number * page->granule;
    return number < page->granules;
}
