/*
 * access.h - the bytes of an allocation: reading, writing and filling through the mapping or
 * through the backend.
 */
#ifndef QUIRE_SRC_MEMORY_ACCESS_H
#define QUIRE_SRC_MEMORY_ACCESS_H

#include "src/memory/memory.h"

/* Fills a reserved or pinned slot with zeros. */
QUIRE_MUST_USE quire_result qi_access_fill_zero(quire_memory *memory, uint32_t slot);

/*
 * The size that 0 stands for ("to the end"), and whether the range lies in its parent of `limit`
 * bytes and is not empty. OUT_OF_RANGE with the numbers otherwise.
 */
QUIRE_MUST_USE quire_result qi_access_resolve_range(uint64_t limit, uint64_t offset,
                                                    uint64_t *size);

#endif
