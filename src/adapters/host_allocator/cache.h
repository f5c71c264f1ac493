/*
 * cache.h - the freed small blocks that a thread keeps, with its counts.
 *
 * Each thread that uses an allocator has a cache. The lock of a cache is held for some instructions
 * and while the process forks, and nothing is called under it. Other threads take it only to empty
 * the cache, to read the counts, and to fork. The cache of a thread that has ended is empty, and
 * the next new thread takes it over. In the child of a fork the caches of the threads that do not
 * exist there keep their blocks until a new thread takes them over or the allocator is trimmed.
 */
#ifndef QUIRE_SRC_ADAPTERS_HOST_ALLOCATOR_CACHE_H
#define QUIRE_SRC_ADAPTERS_HOST_ALLOCATOR_CACHE_H

#include <pthread.h>
#include <stdatomic.h>

#include "src/adapters/host_allocator/block.h"

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
