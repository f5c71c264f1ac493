/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * chunk_starts.h - the granules of an elastic page in which allocations start: a bitmap for each
 * chunk that has memory, so that the addresses without memory cost none, and a bitmap of the chunks
 * that have starts.
 *
 * A granule has a number, counted from the start of the page. No lock: the caller serializes all
 * calls. Invariants: a chunk with a start has a bitmap; its bit in `used` is set if it has a start.
 */
#ifndef QUIRE_SRC_CORE_FIND_CHUNK_STARTS_H
#define QUIRE_SRC_CORE_FIND_CHUNK_STARTS_H

#include "src/base/host_memory.h"

typedef struct qi_chunk_starts {
    uint64_t **bitmaps; /* of each chunk below `room`; NULL: it has no memory */
    uint64_t *used;     /* a bitmap (bitmap.h) of `room` chunks */
    uint32_t room;      /* raised to the highest chunk that had memory */
    uint32_t shift;     /* a chunk has 2^shift granules */
} qi_chunk_starts;

void qi_chunk_starts_release(qi_chunk_starts *starts, qi_host *host);

/* Gives chunks a bitmap that have none. Returns false if host memory is exhausted; some may have
   one then. */
QUIRE_MUST_USE bool qi_chunk_starts_cover(qi_chunk_starts *starts, qi_host *host, uint64_t first,
                                          uint64_t count);

/* Takes the bitmaps of chunks without starts. */
void qi_chunk_starts_uncover(qi_chunk_starts *starts, qi_host *host, uint64_t first,
                             uint64_t count);

/* Both may be called more than once for a granule. Its chunk has a bitmap. */
void qi_chunk_starts_add(qi_chunk_starts *starts, uint64_t granule);
void qi_chunk_starts_remove(qi_chunk_starts *starts, uint64_t granule);

/* Finds the last granule with a start that is not behind `granule`. Returns false if there is none.
 */
bool qi_chunk_starts_before(const qi_chunk_starts *starts, uint64_t granule, uint64_t *found);

#endif
