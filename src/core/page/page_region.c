/*
 * page_region.c - adds pages to a shard's space and removes them.
 *
 * A region starts at the first whole granule of the page. The bytes before it (`skipped`) are not
 * used where the backend's base address is not a multiple of the granule.
 */
#include "src/core/page/page_region.h"

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/page/empty_pages.h"
#include "src/space/space.h"

quire_result qi_page_add_region(qi_shard *shard, qi_page *page)
{
    const quire_native_page *native = &page->native.native;
    uint64_t skipped = qi_padding(native->address, shard->memory->granule);
    uint64_t size = qi_align_down(page->native.size - skipped, shard->memory->granule);
    /* The space assigns the lowest free number, so that no region's number exceeds the count. */
    if (!qi_table_ensure(&shard->by_region, &shard->memory->host, shard->shared))
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a page's region");
    quire_result result =
        qi_space_add_region(shard->space, size, native->address + skipped, &page->region);
    if (result)
        return result;
    page->tally = qi_shard_tally(shard, page->region);
    *page->tally = page->own;
    page->tally->skipped = (uint32_t)skipped;
    shard->shared++;
    return QUIRE_SUCCESS;
}

void qi_page_remove_region(qi_page *page)
{
    qi_empty_pages_remove(page);
    if (page->dedicated)
        return;
    page->own = *page->tally; /* the next page may get the region's number */
    page->tally = &page->own;
    qi_ignore(qi_space_remove_region(page->shard->space, page->region));
    page->shard->shared--;
}
