/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * bytes.h - the bytes of physical memory: a part of an anonymous file, so that it can be mapped at
 * several addresses and shared with another process.
 *
 * The driver itself uses its own mapping, which the caller's protection does not affect.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_BYTES_H
#define QUIRE_TESTS_SUPPORT_CUDA_BYTES_H

#include "tests/support/cuda/driver.h"

typedef struct fc_bytes {
    int fd;
    uint64_t offset, size; /* 0: no bytes */
    unsigned char *own;    /* NULL until it is mapped */
    bool alone;            /* the file holds only these bytes */
} fc_bytes;

/* `alone` creates a separate file with `more` bytes of room after them. Returns false without
   memory or descriptors. */
bool fc_bytes_make(fc_bytes *bytes, uint64_t size, bool alone, uint64_t more);

/* Takes the bytes at the start of a file, and the ownership of its descriptor. */
void fc_bytes_adopt(fc_bytes *bytes, int fd, uint64_t size);

void fc_bytes_end(fc_bytes *bytes);

/*
 * Returns the address in the driver's own mapping. Ends the program if there are no addresses left.
 */
unsigned char *fc_bytes_at(fc_bytes *bytes, uint64_t offset);

/* Fills the first bytes with garbage. */
void fc_bytes_dirty(fc_bytes *bytes);

/* Maps a part at a reserved address. Returns false if the system permits no more mappings. */
bool fc_bytes_map(const fc_bytes *bytes, uint64_t offset, uint64_t size, uint64_t address);

/* Bytes of a system page, and a size rounded up to whole pages. */
uint64_t fc_page(void);
uint64_t fc_whole_pages(uint64_t size);

/* Reserves addresses without access at a multiple of `alignment`, a power of two of at least a
   page; 0 on failure. Releases them. Makes a part of them inaccessible again. */
uint64_t fc_addresses_take(uint64_t size, uint64_t alignment, uint64_t hint);
void fc_addresses_give(uint64_t address, uint64_t size);
void fc_addresses_clear(uint64_t address, uint64_t size);

/* Sets the protection for the processor. */
void fc_addresses_allow(uint64_t address, uint64_t size, bool reads, bool writes);

#endif
