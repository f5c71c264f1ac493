/*
 * elastic_end.h - the page of a contiguous memory, and which thread moves its end.
 *
 * A contiguous memory has one shared page. The backend reserves addresses when the page is made and
 * maps the part in use. elastic_grow.h and elastic_shrink.h move the end of that part.
 *
 * One thread at a time moves the end: the page is `resizing` from qi_elastic_begin to
 * qi_elastic_end. Other threads that want to move it wait, and the page does not leave the memory.
 * Allocations in the page are made, used and freed as usual during that time.
 */
#ifndef QUIRE_SRC_CORE_PAGE_ELASTIC_END_H
#define QUIRE_SRC_CORE_PAGE_ELASTIC_END_H

#include "src/core/state/memory.h"

/* Requires the shard's lock. Returns the page, or NULL if there is none or it is being made. */
qi_page *qi_elastic_page(const qi_shard *shard);

/*
 * Returns the bytes of addresses to reserve for a page that is made with `size` bytes; 0 for a page
 * that cannot grow.
 */
uint64_t qi_elastic_max_size(const qi_shard *shard, uint64_t size, bool dedicated);

/* Returns the bytes of the region of a page of `size` bytes. */
uint64_t qi_elastic_region_size(const qi_page *page, uint64_t size);

/* Requires the shard's lock. Returns false if another thread moves the end. */
QUIRE_MUST_USE bool qi_elastic_begin(qi_page *page);

/* Requires the shard's lock. Releases and reacquires it: waits until no thread moves the end. */
void qi_elastic_wait(qi_shard *shard, const qi_page *page);

/* Ends what qi_elastic_begin began. `has_moved` makes waiting threads look for room again. */
void qi_elastic_end(qi_page *page, bool has_moved);

/* Requires the shard's lock. The statistics and the list of empty pages follow the new size. */
void qi_elastic_set_size(qi_page *page, uint64_t size);

/* Requires the locks of the shard and of the pages. Whether a cut end is not yet unmapped. */
bool qi_elastic_is_shrinking(const qi_shard *shard);

/* Requires no lock. Unmaps the cut end of a page. Returns its bytes. */
uint64_t qi_elastic_shrink_finish(quire_memory *memory, qi_page *page);

#endif
