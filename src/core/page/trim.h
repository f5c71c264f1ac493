/*
 * trim.h - sets how many bytes of pages a memory keeps: floor, limit and trim.
 *
 * No function requires a lock. The lock of the pages protects the floor; the limit is an account
 * (device/budget.h).
 */
#ifndef QUIRE_SRC_CORE_PAGE_TRIM_H
#define QUIRE_SRC_CORE_PAGE_TRIM_H

#include "src/core/state/memory.h"

/* Sets the bytes of pages that the memory keeps while they are empty. Returns the old value. */
uint64_t qi_memory_set_floor(quire_memory *memory, uint64_t bytes);

/*
 * Sets the floor to 0, and gives back empty pages until at most `target` bytes of them are left.
 * Also gives back host memory of slots and spaces. Returns the bytes of pages given back.
 */
uint64_t qi_memory_trim(quire_memory *memory, uint64_t target);

/* Sets the limit of the memory's pages; 0 removes it. Gives back the excess as far as it is
   empty. */
void qi_memory_set_limit(quire_memory *memory, uint64_t bytes);

#endif
