/*
 * elastic_shrink.h - cuts the free end of an elastic page, and gives back empty pages.
 *
 * The shard's lock protects the cut; the end is unmapped without a lock. Invariant: while cut_from
 * of a page is not 0, the page is `resizing`, so that no other thread moves its end.
 */
#ifndef QUIRE_SRC_CORE_PAGE_ELASTIC_SHRINK_H
#define QUIRE_SRC_CORE_PAGE_ELASTIC_SHRINK_H

#include "src/core/page/page_events.h"

/*
 * Requires the shard's lock. Cuts the free end of the elastic page beyond `keep` bytes, down to the
 * memory's floor. Puts the page in front of the list, which the caller gives to qi_pages_give_back
 * without a lock: that unmaps the end. Changes nothing if another thread moves the end.
 */
qi_page *qi_elastic_shrink(qi_shard *shard, uint64_t keep, qi_page *leaving);

/*
 * Requires no lock. Gives back empty pages and free ends of the shards until `bytes` are given
 * back; UINT64_MAX: all. Drains the inboxes of these shards. Returns the bytes.
 */
uint64_t qi_pages_give_back_empty(quire_memory *memory, uint64_t bytes, qi_page_events *events);

#endif
