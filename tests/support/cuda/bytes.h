/*
 * bytes.h - the bytes of physical memory: a part of a file without a name, so that it can be mapped
 * at several addresses and given to another process.
 *
 * The driver itself reaches them through a mapping of its own, whatever the caller's mappings
 * allow.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_BYTES_H
#define QUIRE_TESTS_SUPPORT_CUDA_BYTES_H

#include "tests/support/cuda/driver.h"

typedef struct fc_bytes {
    int fd;
    uint64_t offset, size; /* size 0: none */
    unsigned char *own;    /* NULL: not yet mapped */
    bool alone;            /* the file is for these bytes only */
} fc_bytes;

/*
 * `alone`: in a file of its own, with room for `more` bytes behind them. False: no memory or no
 * descriptor.
 */
bool fc_bytes_make(fc_bytes *bytes, uint64_t size, bool alone, uint64_t more);

/* Those at the beginning of a file, whose descriptor it takes. */
void fc_bytes_adopt(fc_bytes *bytes, int fd, uint64_t size);

void fc_bytes_end(fc_bytes *bytes);

/* Where the driver reaches them; ends the program where there are no addresses left. */
unsigned char *fc_bytes_at(fc_bytes *bytes, uint64_t offset);

/* Fills the first with garbage. */
void fc_bytes_dirty(fc_bytes *bytes);

/* Maps a part at an address that is reserved; false: the system has no more mappings. */
bool fc_bytes_map(const fc_bytes *bytes, uint64_t offset, uint64_t size, uint64_t address);

/* Bytes of a page of the system, and a size made of whole ones. */
uint64_t fc_page(void);
uint64_t fc_whole_pages(uint64_t size);

/*
 * Addresses with nothing behind them, aligned, a power of two of at least a page; 0: none. And
 * back, and a part of them made empty again.
 */
uint64_t fc_addresses_take(uint64_t size, uint64_t alignment, uint64_t hint);
void fc_addresses_give(uint64_t address, uint64_t size);
void fc_addresses_clear(uint64_t address, uint64_t size);

/* What the processor may do there. */
void fc_addresses_allow(uint64_t address, uint64_t size, bool reads, bool writes);

#endif
