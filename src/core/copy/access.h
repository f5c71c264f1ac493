/*
 * access.h - the bytes of an allocation: reading, writing and filling through the mapping or
 * through the backend.
 */
#ifndef QUIRE_SRC_CORE_COPY_ACCESS_H
#define QUIRE_SRC_CORE_COPY_ACCESS_H

#include "src/core/state/memory.h"

/* Fills a reserved or pinned slot with zeros, or a range of it with a value. */
QUIRE_MUST_USE quire_result qi_access_fill_zero(quire_memory *memory, uint32_t slot);
QUIRE_MUST_USE quire_result qi_access_fill(quire_memory *memory, uint32_t slot, uint64_t offset,
                                           uint64_t size, uint8_t value);

/* Pins an allocation for a fill and resolves its range. */
QUIRE_MUST_USE quire_result qi_access_begin_fill(quire_memory *memory, quire_allocation allocation,
                                                 uint64_t offset, uint64_t *size, uint32_t *slot);

/*
 * For a part of a mapped page, which lies in one allocation: what the host wrote reaches the
 * device, and the reverse. Nothing is done where the kind is coherent.
 */
QUIRE_MUST_USE quire_result qi_access_flush(quire_memory *memory, const qi_device_page *page,
                                            uint64_t begin, uint64_t size);
QUIRE_MUST_USE quire_result qi_access_invalidate(quire_memory *memory, const qi_device_page *page,
                                                 uint64_t begin, uint64_t size);

/*
 * The size that 0 stands for ("to the end"), and whether the range lies in its parent of `limit`
 * bytes and is not empty. OUT_OF_RANGE with the numbers otherwise.
 */
QUIRE_MUST_USE quire_result qi_access_resolve_range(uint64_t limit, uint64_t offset,
                                                    uint64_t *size);

/* Pins an allocation for access by the host and resolves the range, as above. */
QUIRE_MUST_USE quire_result qi_access_begin(quire_memory *memory, quire_allocation allocation,
                                            uint64_t offset, uint64_t *size, uint32_t *slot);

/*
 * The part of its page that is flushed or invalidated for a range of a pinned slot: rounded
 * outwards to the atom. On a kind that is not coherent, offsets and sizes of allocations are
 * multiples of it, so that the rounded range stays inside the allocation.
 */
quire_page_range qi_access_atoms(const quire_memory *memory, uint32_t slot, uint64_t offset,
                                 uint64_t size);

#endif
