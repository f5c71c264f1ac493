/*
 * bytes.h - the bytes of one memory object, as the host and as the device see them.
 *
 * Split bytes are there twice, like memory behind caches that nothing keeps coherent. Whatever the
 * host writes reaches the device with a flush, by whole atoms; what the device writes reaches the
 * host with an invalidate. Until then the host sees garbage where the device wrote, so that a
 * missing invalidate is never hidden by old bytes that happen to be right.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_BYTES_H
#define QUIRE_TESTS_SUPPORT_VULKAN_BYTES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fv_bytes {
    unsigned char *host;   /* what vkMapMemory gives */
    unsigned char *device; /* what commands work on; the same where the bytes are not split */
    unsigned char *clean;  /* host bytes as of the last flush or invalidate; NULL: not split */
    uint64_t size;
    uint64_t atom;
    bool borrowed; /* the caller's pointer */
    bool shared;   /* a file's pages */
} fv_bytes;

/* Backed when touched, so that a GiB costs nothing; false: no address space. Bytes are 0. */
bool fv_bytes_make(fv_bytes *bytes, uint64_t size, uint64_t atom, bool split);

/* Those of a file, at least as large. */
bool fv_bytes_share(fv_bytes *bytes, uint64_t size, int fd);

/* The caller's. */
void fv_bytes_borrow(fv_bytes *bytes, uint64_t size, void *pointer);

void fv_bytes_end(fv_bytes *bytes);

/* Fills the first bytes with garbage, for host and device. */
void fv_bytes_dirty(fv_bytes *bytes);

/* Ranges lie within the bytes; those of flush and invalidate are cut to whole atoms by callers. */
void fv_bytes_flush(fv_bytes *bytes, uint64_t offset, uint64_t size);
void fv_bytes_invalidate(fv_bytes *bytes, uint64_t offset, uint64_t size);

/* The device reads and writes. */
void fv_bytes_read(const fv_bytes *bytes, uint64_t offset, void *to, uint64_t size);
void fv_bytes_write(fv_bytes *bytes, uint64_t offset, const void *from, uint64_t size);

#endif
