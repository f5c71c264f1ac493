/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * blocks.h - small blocks: what is in front of each and beside it, and the caches of freed ones.
 *
 * A block is an allocation of the memory at a multiple of 128 bytes. Its header has 64 bytes, so
 * that bit 6 of the caller's pointer is set. Pointers of large allocations are multiples of 128.
 * A free thus knows from the pointer alone whether there is a header.
 */
#ifndef QUIRE_SRC_ADAPTERS_HOST_ALLOCATOR_BLOCKS_H
#define QUIRE_SRC_ADAPTERS_HOST_ALLOCATOR_BLOCKS_H

#include <pthread.h>
#include <stdatomic.h>

#include "quire/allocation.h"

/* ---- headers and size classes ------------------------------------------------------------- */

typedef struct host_allocator host_allocator;

enum {
    HOST_BLOCK_HEADER = 64,
    HOST_BLOCK_UNIT = 128,
    HOST_BLOCK_MAX = 32 << 10, /* bytes of the largest request */
    HOST_BLOCK_CLASSES = 49
};

/* The state of a block, kept beside it: see below. */
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

/* ---- marks -------------------------------------------------------------------------------- */

/*
 * The state of each small block, found by its address.
 *
 * A mark is a byte beside the blocks, one for each HOST_BLOCK_UNIT bytes of addresses. Marks exist
 * until the allocator is destroyed, so that a free can look at the mark of any pointer, also of one
 * whose page was released. The thread that changes a mark from LIVE to FREED owns the block. It
 * alone may read the header, because nothing releases the page of a live block.
 *
 * The marks are two levels of arrays, which the system fills with pages where they are used: 4 KiB
 * for each 512 KiB of addresses with small blocks. Finding a mark takes no lock.
 */

enum {
    HOST_MARK_SHIFT = 7,  /* HOST_BLOCK_UNIT bytes have one mark */
    HOST_PART_SHIFT = 28, /* bytes of addresses in a part: 256 MiB, with 2 MiB of marks */
    HOST_MARKS_SHIFT = 48 /* bytes of addresses in all: what systems give without a hint */
};

_Static_assert(HOST_BLOCK_UNIT == 1 << HOST_MARK_SHIFT, "a block has a mark of its own");

#define HOST_PART_MARKS (UINT64_C(1) << (HOST_PART_SHIFT - HOST_MARK_SHIFT))
#define HOST_PART_COUNT (UINT64_C(1) << (HOST_MARKS_SHIFT - HOST_PART_SHIFT))

typedef struct host_marks {
    _Atomic(host_mark *) *parts; /* HOST_PART_COUNT; NULL: no block was there yet */
} host_marks;

/* create fails with OUT_OF_HOST_MEMORY. destroy accepts marks that were not created. */
QUIRE_MUST_USE quire_result host_marks_create(host_marks *marks);
void host_marks_destroy(host_marks *marks);

/* Returns the mark of a new block, or NULL with OUT_OF_HOST_MEMORY as the last error. Any thread
   may call it. */
host_mark *host_marks_add(host_marks *marks, const host_block *block);

/* Returns the mark of an address, which may be any value. NULL: no block was near it yet. */
static inline host_mark *host_marks_find(const host_marks *marks, const void *pointer)
{
    const uint64_t address = (uintptr_t)pointer;
    if (address >> HOST_MARKS_SHIFT)
        return NULL;
    host_mark *part =
        atomic_load_explicit(&marks->parts[address >> HOST_PART_SHIFT], memory_order_acquire);
    return part ? &part[(address >> HOST_MARK_SHIFT) % HOST_PART_MARKS] : NULL;
}

/* ---- caches ------------------------------------------------------------------------------- */

/*
 * The freed small blocks that a thread keeps, with its counts.
 *
 * Each thread that uses an allocator has a cache. The lock of a cache is held for some instructions
 * and while the process forks, and nothing is called under it. Other threads take it only to empty
 * the cache, to read the counts, and to fork. The cache of a thread that has ended is empty, and
 * the next new thread takes it over. In the child of a fork the caches of the threads that do not
 * exist there keep their blocks until a new thread takes them over or the allocator is trimmed.
 */

/* Sums since creation over the calls of the threads that had the cache. A thread may free what
   another one allocated: only the sums over all caches have a meaning (modulo 2^64). */
typedef struct host_counts {
    uint64_t allocations, frees; /* of small requests */
    uint64_t requested;          /* bytes allocated minus bytes freed */
    uint64_t hits;
    uint64_t blocks_made, blocks_released; /* allocations of the memory */
    uint64_t block_bytes;                  /* of them, made minus released */
} host_counts;

typedef struct host_cache {
    _Alignas(64) atomic_bool is_locked;
    host_allocator *allocator;
    struct host_cache *next; /* in the list of all caches; never changes */
    bool is_used;            /* by a live thread. Requires host_caches.mutex. */
    uint64_t max_bytes;      /* of the blocks in the lists */
    uint64_t bytes, count;   /* of the blocks in the lists */
    host_counts counts;
    host_block *lists[HOST_BLOCK_CLASSES]; /* the block freed last comes first */
} host_cache;

typedef struct host_caches {
    pthread_key_t key;     /* the cache of a thread */
    pthread_mutex_t mutex; /* for additions to the list, and is_used */
    _Atomic(host_cache *) first;
    uint64_t max_bytes; /* of the blocks in one cache */
    host_cache
        common; /* of threads that cannot have a cache, which keep no blocks; not in the list */
} host_caches;

/* create fails with OUT_OF_HOST_MEMORY. */
QUIRE_MUST_USE quire_result host_caches_create(host_allocator *allocator, uint64_t max_bytes);
void host_caches_destroy(host_caches *caches);

/* Returns the cache of the calling thread. */
host_cache *host_cache_of_thread(host_caches *caches);

/* Returns a block of the class from the cache and counts an allocation of `size` bytes, or returns
   NULL. */
host_block *host_cache_take(host_cache *cache, uint32_t size_class, uint64_t size);

/* Counts a new block and an allocation of `size` bytes in it. */
void host_cache_count_block(host_cache *cache, uint32_t size_class, uint64_t size);

/* Puts a block into the cache and counts the free. Returns a list of blocks that the cache does not
   keep, for host_blocks_release. */
host_block *host_cache_put(host_cache *cache, host_block *block);

/* Frees the blocks of a list in the memory. */
void host_blocks_release(host_cache *cache, host_block *list);

/* Empties the caches of all threads. Returns whether there was a block. */
bool host_caches_empty(host_caches *caches);

/* Adds up the counts of all caches. */
typedef struct host_cache_sums {
    host_counts counts;
    uint64_t bytes, count; /* of the blocks in the caches */
    uint64_t thread_count;
} host_cache_sums;
void host_caches_sum(host_caches *caches, host_cache_sums *sums);

/* Around a fork: take and give back all locks. In the child only the calling thread exists. */
void host_caches_lock_all(host_caches *caches);
void host_caches_unlock_all(host_caches *caches);
void host_caches_unlock_in_child(host_caches *caches);

#endif
