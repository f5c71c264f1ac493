/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * bytes.c - the bytes of a memory object: see bytes.h.
 */
#include "tests/support/vulkan/bytes.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Smaller ones are allocated by malloc, so that sanitizers detect accesses beyond their ends. */
#define MAPPED_FROM (UINT64_C(256) << 10)
#define SMALL_ALIGNMENT 4096
#define GARBAGE_BYTES (UINT64_C(64) << 10)

static unsigned char *take(uint64_t size)
{
    if (size < MAPPED_FROM) {
        void *small = NULL;
        if (posix_memalign(&small, SMALL_ALIGNMENT, (size_t)size))
            return NULL;
        return memset(small, 0, (size_t)size);
    }
    void *large = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return large == MAP_FAILED ? NULL : large;
}

static void give(unsigned char *bytes, uint64_t size)
{
    if (!bytes)
        return;
    if (size < MAPPED_FROM)
        free(bytes);
    else
        munmap(bytes, (size_t)size);
}

bool fv_bytes_make(fv_bytes *bytes, uint64_t size, uint64_t atom, bool split)
{
    *bytes = (fv_bytes){.size = size, .atom = atom};
    bytes->host = take(size);
    bytes->device = split ? take(size) : bytes->host;
    bytes->clean = split ? take(size) : NULL;
    if (bytes->host && bytes->device && (bytes->clean || !split))
        return true;
    fv_bytes_end(bytes);
    return false;
}

bool fv_bytes_share(fv_bytes *bytes, uint64_t size, int fd)
{
    void *shared = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED)
        return false;
    *bytes = (fv_bytes){.host = shared, .device = shared, .size = size, .shared = true};
    return true;
}

void fv_bytes_borrow(fv_bytes *bytes, uint64_t size, void *pointer)
{
    *bytes = (fv_bytes){.host = pointer, .device = pointer, .size = size, .borrowed = true};
}

void fv_bytes_end(fv_bytes *bytes)
{
    if (bytes->shared)
        munmap(bytes->host, (size_t)bytes->size);
    else if (!bytes->borrowed) {
        if (bytes->device != bytes->host)
            give(bytes->device, bytes->size);
        give(bytes->host, bytes->size);
        give(bytes->clean, bytes->size);
    }
    *bytes = (fv_bytes){0};
}

void fv_bytes_dirty(fv_bytes *bytes)
{
    size_t size = (size_t)(bytes->size < GARBAGE_BYTES ? bytes->size : GARBAGE_BYTES);
    memset(bytes->host, 0xa5, size);
    if (bytes->clean) {
        memset(bytes->device, 0x5a, size);
        memset(bytes->clean, 0xa5, size);
    }
}

/* ---- split bytes -------------------------------------------------------------------------- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Copies only atoms in which the host wrote, and those completely, as a cache does. */
void fv_bytes_flush(fv_bytes *bytes, uint64_t offset, uint64_t size)
{
    if (!bytes->clean)
        return;
    for (uint64_t at = offset; at < offset + size; at += bytes->atom) {
        size_t length = (size_t)least(bytes->atom, offset + size - at);
        if (!memcmp(bytes->host + at, bytes->clean + at, length))
            continue;
        memcpy(bytes->device + at, bytes->host + at, length);
        memcpy(bytes->clean + at, bytes->host + at, length);
    }
}

/* Compares first, so that untouched memory stays unbacked. */
void fv_bytes_invalidate(fv_bytes *bytes, uint64_t offset, uint64_t size)
{
    if (!bytes->clean)
        return;
    for (uint64_t at = offset; at < offset + size; at += bytes->atom) {
        size_t length = (size_t)least(bytes->atom, offset + size - at);
        if (memcmp(bytes->host + at, bytes->device + at, length))
            memcpy(bytes->host + at, bytes->device + at, length);
        if (memcmp(bytes->clean + at, bytes->device + at, length))
            memcpy(bytes->clean + at, bytes->device + at, length);
    }
}

void fv_bytes_read(const fv_bytes *bytes, uint64_t offset, void *to, uint64_t size)
{
    memcpy(to, bytes->device + offset, (size_t)size);
}

/*
 * Fills the host's copy of what the device wrote with garbage: neither the old nor the new bytes.
 * Bytes that the host wrote and did not flush stay, because they are still in its cache.
 */
static void spoil(fv_bytes *bytes, uint64_t offset, const unsigned char *from, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++) {
        if (bytes->host[offset + i] != bytes->clean[offset + i])
            continue;
        unsigned char garbage = (unsigned char)(from[i] ^ 0x5c);
        bytes->host[offset + i] = bytes->clean[offset + i] = garbage;
    }
}

void fv_bytes_write(fv_bytes *bytes, uint64_t offset, const void *from, uint64_t size)
{
    if (bytes->clean)
        spoil(bytes, offset, from, size);
    memmove(bytes->device + offset, from, (size_t)size);
}
