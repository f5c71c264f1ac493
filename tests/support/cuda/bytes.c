/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * bytes.c - bytes are a part of one sparse file that grows and is never reused, or a file of their
 * own; addresses are reserved without access, and the file is mapped over them. See bytes.h.
 */
#include "tests/support/cuda/bytes.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GARBAGE_BYTES (UINT64_C(64) << 10)

static void *pointer_to(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

/* ---- files -------------------------------------------------------------------------------- */

/* Takes a part of the store that was never used. The file is sparse and has room for everything
   that a test can allocate. */
static bool take_of_store(fc_bytes *bytes)
{
    if (fc.store < 0)
        fc.store = memfd_create("fake-cuda", MFD_CLOEXEC);
    uint64_t end = fc.store_end + bytes->size;
    if (fc.store < 0 || ftruncate(fc.store, (off_t)end))
        return false;
    bytes->fd = fc.store;
    bytes->offset = fc.store_end;
    fc.store_end = end;
    return true;
}

static bool take_alone(fc_bytes *bytes, uint64_t more)
{
    bytes->fd = memfd_create("fake-cuda-shared", MFD_CLOEXEC);
    if (bytes->fd >= 0 && !ftruncate(bytes->fd, (off_t)(bytes->size + more)))
        return true;
    if (bytes->fd >= 0)
        close(bytes->fd);
    return false;
}

uint64_t fc_page(void)
{
    static uint64_t size;
    if (!size) /* the lock protects it */
        size = (uint64_t)sysconf(_SC_PAGESIZE);
    return size;
}

uint64_t fc_whole_pages(uint64_t size)
{
    return (size + fc_page() - 1) & ~(fc_page() - 1);
}

bool fc_bytes_make(fc_bytes *bytes, uint64_t size, bool alone, uint64_t more)
{
    *bytes = (fc_bytes){.size = fc_whole_pages(size), .alone = alone};
    bool made = alone ? take_alone(bytes, more) : take_of_store(bytes);
    if (!made)
        *bytes = (fc_bytes){0};
    return made;
}

void fc_bytes_adopt(fc_bytes *bytes, int fd, uint64_t size)
{
    *bytes = (fc_bytes){.size = size, .alone = true, .fd = fd};
}

void fc_bytes_end(fc_bytes *bytes)
{
    if (!bytes->size)
        return;
    if (bytes->own)
        munmap(bytes->own, (size_t)bytes->size);
    if (bytes->alone)
        close(bytes->fd);
    else
        (void)fallocate(bytes->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)bytes->offset,
                        (off_t)bytes->size);
    *bytes = (fc_bytes){0};
}

unsigned char *fc_bytes_at(fc_bytes *bytes, uint64_t offset)
{
    if (!bytes->own) {
        void *own = mmap(NULL, (size_t)bytes->size, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_NORESERVE, bytes->fd, (off_t)bytes->offset);
        if (own == MAP_FAILED)
            abort();
        bytes->own = own;
    }
    return bytes->own + offset;
}

void fc_bytes_dirty(fc_bytes *bytes)
{
    memset(fc_bytes_at(bytes, 0), 0xc5,
           (size_t)(bytes->size < GARBAGE_BYTES ? bytes->size : GARBAGE_BYTES));
}

bool fc_bytes_map(const fc_bytes *bytes, uint64_t offset, uint64_t size, uint64_t address)
{
    return mmap(pointer_to(address), (size_t)size, PROT_NONE,
                MAP_SHARED | MAP_FIXED | MAP_NORESERVE, bytes->fd,
                (off_t)(bytes->offset + offset)) != MAP_FAILED;
}

/* ---- addresses ---------------------------------------------------------------------------- */

#define EMPTY (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

/* Maps more than requested and unmaps the edges around the aligned part. */
static uint64_t take_aligned(uint64_t size, uint64_t alignment)
{
    uint64_t more = alignment > fc_page() ? alignment - fc_page() : 0;
    if (size > UINT64_MAX - more)
        return 0;
    void *taken = mmap(NULL, (size_t)(size + more), PROT_NONE, EMPTY, -1, 0);
    if (taken == MAP_FAILED)
        return 0;
    uint64_t begin = (uintptr_t)taken, at = (begin + alignment - 1) & ~(alignment - 1);
    if (at > begin)
        munmap(taken, (size_t)(at - begin));
    if (begin + more > at)
        munmap(pointer_to(at + size), (size_t)(begin + more - at));
    return at;
}

uint64_t fc_addresses_take(uint64_t size, uint64_t alignment, uint64_t hint)
{
    if (hint && !(hint & (alignment - 1))) {
        /* The system maps elsewhere if the addresses are taken. MAP_FIXED_NOREPLACE would say so
         * too, but the thread sanitizer maps at address 0 where it replaces the hint. */
        void *taken = mmap(pointer_to(hint), (size_t)size, PROT_NONE, EMPTY, -1, 0);
        if (taken == pointer_to(hint))
            return hint;
        if (taken != MAP_FAILED)
            munmap(taken, (size_t)size);
    }
    return take_aligned(size, alignment);
}

void fc_addresses_give(uint64_t address, uint64_t size)
{
    munmap(pointer_to(address), (size_t)size);
}

void fc_addresses_clear(uint64_t address, uint64_t size)
{
    /* in one step, so that no other mapping takes the addresses in between */
    if (mmap(pointer_to(address), (size_t)size, PROT_NONE, EMPTY | MAP_FIXED, -1, 0) == MAP_FAILED)
        abort();
}

void fc_addresses_allow(uint64_t address, uint64_t size, bool reads, bool writes)
{
    int protection = writes ? PROT_READ | PROT_WRITE : reads ? PROT_READ : PROT_NONE;
    if (mprotect(pointer_to(address), (size_t)size, protection))
        abort();
}
