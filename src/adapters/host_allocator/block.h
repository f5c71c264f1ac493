/*
 * block.h - small blocks: the header in front of the bytes of the caller, and the size classes.
 *
 * A block is an allocation of the memory at a multiple of 128 bytes. Its header has 64 bytes, so
 * that bit 6 of the caller's pointer is set. Pointers of large allocations are multiples of 128.
 * A free thus knows from the pointer alone whether there is a header.
 */
#ifndef QUIRE_SRC_ADAPTERS_HOST_ALLOCATOR_BLOCK_H
#define QUIRE_SRC_ADAPTERS_HOST_ALLOCATOR_BLOCK_H

#include "quire/allocation.h"

typedef struct host_allocator host_allocator;

enum {
    HOST_BLOCK_HEADER = 64,
    HOST_BLOCK_UNIT = 128,
    HOST_BLOCK_MAX = 32 << 10, /* bytes of the largest request */
    HOST_BLOCK_CLASSES = 49
};

typedef struct host_block {
    uint64_t seal; /* see host_block_seal */
    quire_allocation allocation;
    uint64_t requested;      /* bytes, while it is allocated */
    uint64_t number;         /* in the trace; 0: none */
    struct host_block *next; /* in a list of freed blocks */
    uint32_t size_class;
} host_block;

_Static_assert(sizeof(host_block) <= HOST_BLOCK_HEADER, "the header has room for the record");

typedef enum host_block_state {
    HOST_BLOCK_GONE = 0,
    HOST_BLOCK_LIVE,
    HOST_BLOCK_FREED
} host_block_state;

/*
 * The seal names the state, and differs for each block and each allocator. What lies in front of
 * a pointer that is no block has another value, except by rare chance.
 */
static inline uint64_t host_block_seal(const host_allocator *allocator, const host_block *block,
                                       host_block_state state)
{
    return ((uint64_t)(uintptr_t)block * UINT64_C(0x9e3779b97f4a7c15)) ^
           (uint64_t)(uintptr_t)allocator ^ ((uint64_t)state << 56);
}

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
