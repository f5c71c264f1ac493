/*
 * block.h - small blocks: the header in front of the bytes of the caller, and the size classes.
 *
 * A block is an allocation of the memory at a multiple of 128 bytes. Its header has 64 bytes, so
 * that bit 6 of the caller's pointer is set. Pointers of large allocations are multiples of 128.
 * A free thus knows from the pointer alone whether there is a header.
 */
#ifndef QUIRE_SRC_ADAPTERS_HOST_ALLOCATOR_BLOCK_H
#define QUIRE_SRC_ADAPTERS_HOST_ALLOCATOR_BLOCK_H

#include <stdatomic.h>

#include "quire/allocation.h"

typedef struct host_allocator host_allocator;

enum {
    HOST_BLOCK_HEADER = 64,
    HOST_BLOCK_UNIT = 128,
    HOST_BLOCK_MAX = 32 << 10, /* bytes of the largest request */
    HOST_BLOCK_CLASSES = 49
};

/* The state of a block, kept beside it: see marks.h. */
typedef _Atomic(uint8_t) host_mark;
enum { HOST_MARK_NONE = 0, HOST_MARK_LIVE, HOST_MARK_FREED };

typedef struct host_block {
    host_mark *mark; /* set when the block is made; a free compares it with the mark of its pointer,
                        to detect an overwritten header */
    quire_allocation allocation;
    uint64_t requested;      /* bytes, while it is allocated */
    uint64_t number;         /* in the trace; 0: none */
    struct host_block *next; /* in a list of freed blocks */
    uint32_t size_class;
} host_block;

_Static_assert(sizeof(host_block) <= HOST_BLOCK_HEADER, "the header has room for the record");

static inline bool host_block_is_at(const void *pointer)
{
    return (uintptr_t)pointer & HOST_BLOCK_HEADER;
}

static inline host_block *host_block_of(void *pointer)
{
    return (host_block *)(void *)((char *)pointer - HOST_BLOCK_HEADER);
}

static inline void *host_block_bytes(host_block *block)
{
    return (char *)block + HOST_BLOCK_HEADER;
}

/*
 * The class of a request of 1 to HOST_BLOCK_MAX bytes. The blocks of the classes hold 64, 192, 320
 * and so on up to 1,088 bytes; then there are eight steps for each doubling. A power of two fits a
 * class with 64 bytes to spare.
 */
static inline uint32_t host_block_class(uint64_t size)
{
    uint32_t units = (uint32_t)(size + HOST_BLOCK_HEADER - 1) / HOST_BLOCK_UNIT;
    if (units <= 8)
        return units;
    uint32_t shift = 28 - (uint32_t)__builtin_clz(units - 1);
    return 1 + shift * 8 + ((units - 1) >> shift);
}

/* Bytes of a block of a class with its header. */
static inline uint64_t host_block_size(uint32_t size_class)
{
    uint32_t shift = size_class <= 8 ? 0 : (size_class - 9) / 8;
    uint64_t units = (uint64_t)(size_class - shift * 8) << shift;
    return (units + 1) * HOST_BLOCK_UNIT;
}

#endif
