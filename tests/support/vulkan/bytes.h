/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * bytes.h - the bytes of one memory object, as the host and as the device see them.
 *
 * Split bytes exist twice, like memory with non-coherent caches. A flush copies what the host wrote
 * to the device, by whole atoms. An invalidate copies what the device wrote to the host. Before the
 * invalidate the host sees garbage where the device wrote, so that correct old bytes cannot hide a
 * missing invalidate.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_BYTES_H
#define QUIRE_TESTS_SUPPORT_VULKAN_BYTES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fv_bytes {
    unsigned char *host;   /* what vkMapMemory returns */
    unsigned char *device; /* what commands access; equal to `host` if the bytes are not split */
    unsigned char *clean;  /* host bytes as of the last flush or invalidate; NULL: not split */
    uint64_t size;
    uint64_t atom;
    bool borrowed; /* the caller's pointer */
    bool shared;   /* a file's pages */
} fv_bytes;

/* Reserves bytes that are 0 and backed at the first access, so that a GiB costs nothing. Returns
   false if no address space is left. */
bool fv_bytes_make(fv_bytes *bytes, uint64_t size, uint64_t atom, bool split);

/* Maps a file, which is at least as large. */
bool fv_bytes_share(fv_bytes *bytes, uint64_t size, int fd);

/* Uses the caller's bytes. */
void fv_bytes_borrow(fv_bytes *bytes, uint64_t size, void *pointer);

void fv_bytes_end(fv_bytes *bytes);

/* Fills the first bytes with garbage, for host and device. */
void fv_bytes_dirty(fv_bytes *bytes);

/* Ranges are within the bytes. Callers pass whole atoms to flush and invalidate. */
void fv_bytes_flush(fv_bytes *bytes, uint64_t offset, uint64_t size);
void fv_bytes_invalidate(fv_bytes *bytes, uint64_t offset, uint64_t size);

/* Reads and writes by the device. */
void fv_bytes_read(const fv_bytes *bytes, uint64_t offset, void *to, uint64_t size);
void fv_bytes_write(fv_bytes *bytes, uint64_t offset, const void *from, uint64_t size);

#endif
