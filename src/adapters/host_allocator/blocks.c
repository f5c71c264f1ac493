/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * blocks.c - a byte beside each small block says whether it is live, so that a wrong free is
 * noticed; lists by size keep the freed blocks of a thread. A cache beyond its limit returns half
 * of each list to the memory, the blocks that were freed first. See blocks.h.
 */
#include "src/adapters/host_allocator/blocks.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "quire/backend.h"
#include "src/adapters/host_allocator/record.h"

/* ---- marks -------------------------------------------------------------------------------- */

/* Bytes that are 0. The system gives them memory when they are first written. NULL: none left. */
static void *map(uint64_t size)
{
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED)
        return NULL;
#ifdef MADV_NOHUGEPAGE
    (void)madvise(bytes, size, MADV_NOHUGEPAGE); /* one mark would make 2 MiB resident */
#endif
    return bytes;
}

quire_result host_marks_create(host_marks *marks)
{
    marks->parts = map(HOST_PART_COUNT * sizeof *marks->parts);
    return marks->parts ? QUIRE_SUCCESS
                        : quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                             "no host memory for the marks of small blocks");
}

void host_marks_destroy(host_marks *marks)
{
    if (!marks->parts)
        return;
    for (uint64_t i = 0; i < HOST_PART_COUNT; i++) {
        host_mark *part = atomic_load_explicit(&marks->parts[i], memory_order_relaxed);
        if (part)
            munmap(part, HOST_PART_MARKS);
    }
    munmap(marks->parts, HOST_PART_COUNT * sizeof *marks->parts);
    marks->parts = NULL;
}

/* Makes the part of an address, unless another thread does it first. */
static void make_part(_Atomic(host_mark *) *place)
{
    host_mark *made = map(HOST_PART_MARKS), *other = NULL;
    if (made && !atomic_compare_exchange_strong(place, &other, made))
        munmap(made, HOST_PART_MARKS);
}

host_mark *host_marks_add(host_marks *marks, const host_block *block)
{
    const uint64_t address = (uintptr_t)block;
    host_mark *mark = host_marks_find(marks, block);
    if (!mark && !(address >> HOST_MARKS_SHIFT)) {
        make_part(&marks->parts[address >> HOST_PART_SHIFT]);
        mark = host_marks_find(marks, block);
    }
    if (!mark)
        (void)!quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                  "no host memory for the mark of a small block");
    return mark;
}

/* ---- caches: lock ------------------------------------------------------------------------- */

enum { MAX_YIELDS = 64, SLEEP_NANOSECONDS = 50000 };

static void lock_slowly(host_cache *cache)
{
    for (int yields = 0; atomic_exchange_explicit(&cache->is_locked, true, memory_order_acquire);
         yields++)
        if (yields < MAX_YIELDS)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = SLEEP_NANOSECONDS}, NULL);
}

static inline void lock(host_cache *cache)
{
    if (__builtin_expect(atomic_exchange_explicit(&cache->is_locked, true, memory_order_acquire),
                         0))
        lock_slowly(cache);
}

static inline void unlock(host_cache *cache)
{
    atomic_store_explicit(&cache->is_locked, false, memory_order_release);
}

/* ---- caches: blocks ----------------------------------------------------------------------- */

host_block *host_cache_take(host_cache *cache, uint32_t size_class, uint64_t size)
{
    lock(cache);
    host_block *block = cache->lists[size_class];
    if (block) {
        cache->lists[size_class] = block->next;
        cache->bytes -= host_block_size(size_class);
        cache->count--;
        cache->counts.allocations++;
        cache->counts.hits++;
        cache->counts.requested += size;
    }
    unlock(cache);
    return block;
}

void host_cache_count_block(host_cache *cache, uint32_t size_class, uint64_t size)
{
    lock(cache);
    cache->counts.allocations++;
    cache->counts.requested += size;
    cache->counts.blocks_made++;
    cache->counts.block_bytes += host_block_size(size_class);
    unlock(cache);
}

/*
 * Moves blocks from the lists of a cache to the list `taken`: of each class the half that was freed
 * first, and a single one. Returns the longer list. Requires the lock.
 */
static host_block *take_older_half(host_cache *cache, host_block *taken)
{
    for (uint32_t i = 0; i < HOST_BLOCK_CLASSES; i++) {
        host_block **middle = &cache->lists[i];
        for (host_block *end = *middle; end && end->next; end = end->next->next)
            middle = &(*middle)->next;
        while (*middle) {
            host_block *block = *middle;
            *middle = block->next;
            block->next = taken;
            taken = block;
            cache->bytes -= host_block_size(i);
            cache->count--;
        }
    }
    return taken;
}

host_block *host_cache_put(host_cache *cache, host_block *block)
{
    host_block *surplus = NULL;
    lock(cache);
    cache->counts.frees++;
    cache->counts.requested -= block->requested;
    block->next = cache->lists[block->size_class];
    cache->lists[block->size_class] = block;
    cache->bytes += host_block_size(block->size_class);
    cache->count++;
    if (cache->bytes > cache->max_bytes) /* once suffices: a single block goes as well */
        surplus = take_older_half(cache, surplus);
    unlock(cache);
    return surplus;
}

enum { BATCH = 64 };

/* Frees up to BATCH blocks of a list in the memory, and returns the rest of the list. */
static host_block *release_batch(host_cache *cache, host_block *list)
{
    quire_memory *memory = cache->allocator->memory;
    quire_allocation allocations[BATCH] = {{0}};
    uint64_t count = 0, bytes = 0;
    for (; list && count < BATCH; list = list->next) {
        allocations[count++] = list->allocation;
        bytes += host_block_size(list->size_class);
    }
    if (quire_free_batch(memory, allocations, count))
        for (uint64_t i = 0; i < count; i++)
            quire_free(memory, allocations[i]); /* one that is damaged does not keep the others */
    lock(cache);
    cache->counts.blocks_released += count;
    cache->counts.block_bytes -= bytes;
    unlock(cache);
    return list;
}

void host_blocks_release(host_cache *cache, host_block *list)
{
    while (list)
        list = release_batch(cache, list);
}

/* Frees all blocks of a cache in the memory. Returns whether there was one. */
static bool empty(host_cache *cache)
{
    host_block *list = NULL;
    lock(cache);
    while (cache->count)
        list = take_older_half(cache, list);
    unlock(cache);
    host_blocks_release(cache, list);
    return list != NULL;
}

/* ---- caches: threads ---------------------------------------------------------------------- */

/* The destructor of the key: at the end of a thread. If a destructor that runs later uses the
   allocator, the thread gets a cache again, and the system calls this once more. */
static void leave(void *value)
{
    host_cache *cache = value;
    host_caches *caches = &cache->allocator->caches;
    empty(cache);
    pthread_mutex_lock(&caches->mutex);
    cache->is_used = false;
    pthread_mutex_unlock(&caches->mutex);
}

static void init_cache(host_cache *cache, host_allocator *allocator, uint64_t max_bytes)
{
    memset(cache, 0, sizeof *cache);
    atomic_init(&cache->is_locked, false);
    cache->allocator = allocator;
    cache->max_bytes = max_bytes;
}

/* Returns a cache that no live thread uses, or a new one. NULL: host memory is exhausted. */
static host_cache *find_unused(host_allocator *allocator)
{
    host_caches *caches = &allocator->caches;
    pthread_mutex_lock(&caches->mutex);
    host_cache *cache = atomic_load(&caches->first);
    while (cache && cache->is_used)
        cache = cache->next;
    if (!cache && (cache = aligned_alloc(_Alignof(host_cache), sizeof *cache))) {
        init_cache(cache, allocator, caches->max_bytes);
        cache->next = atomic_load(&caches->first);
        atomic_store(&caches->first, cache);
    }
    if (cache)
        cache->is_used = true;
    pthread_mutex_unlock(&caches->mutex);
    return cache;
}

static host_cache *enter(host_caches *caches)
{
    host_cache *cache = find_unused(caches->common.allocator);
    if (!cache)
        return &caches->common;
    if (!pthread_setspecific(caches->key, cache))
        return cache;
    pthread_mutex_lock(&caches->mutex);
    cache->is_used = false;
    pthread_mutex_unlock(&caches->mutex);
    return &caches->common;
}

host_cache *host_cache_of_thread(host_caches *caches)
{
    host_cache *cache = pthread_getspecific(caches->key);
    return __builtin_expect(cache != NULL, 1) ? cache : enter(caches);
}

/* ---- all caches --------------------------------------------------------------------------- */

quire_result host_caches_create(host_allocator *allocator, uint64_t max_bytes)
{
    host_caches *caches = &allocator->caches;
    if (pthread_key_create(&caches->key, leave))
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                  "the process has no thread-specific key left");
    pthread_mutex_init(&caches->mutex, NULL);
    atomic_init(&caches->first, NULL);
    caches->max_bytes = max_bytes;
    init_cache(&caches->common, allocator, 0);
    return QUIRE_SUCCESS;
}

void host_caches_destroy(host_caches *caches)
{
    pthread_key_delete(caches->key);
    for (host_cache *cache = atomic_load(&caches->first), *next; cache; cache = next) {
        next = cache->next;
        free(cache);
    }
    pthread_mutex_destroy(&caches->mutex);
}

bool host_caches_empty(host_caches *caches)
{
    bool had_block = false;
    for (host_cache *cache = atomic_load(&caches->first); cache; cache = cache->next)
        if (empty(cache))
            had_block = true;
    return had_block;
}

static void add_cache(host_cache_sums *sums, host_cache *cache)
{
    lock(cache);
    const host_counts *counts = &cache->counts;
    sums->counts.allocations += counts->allocations;
    sums->counts.frees += counts->frees;
    sums->counts.requested += counts->requested;
    sums->counts.hits += counts->hits;
    sums->counts.blocks_made += counts->blocks_made;
    sums->counts.blocks_released += counts->blocks_released;
    sums->counts.block_bytes += counts->block_bytes;
    sums->bytes += cache->bytes;
    sums->count += cache->count;
    unlock(cache);
}

void host_caches_sum(host_caches *caches, host_cache_sums *sums)
{
    *sums = (host_cache_sums){0};
    add_cache(sums, &caches->common);
    pthread_mutex_lock(&caches->mutex);
    for (host_cache *cache = atomic_load(&caches->first); cache; cache = cache->next) {
        add_cache(sums, cache);
        sums->thread_count += cache->is_used;
    }
    pthread_mutex_unlock(&caches->mutex);
}

/* ---- caches: fork ------------------------------------------------------------------------- */

void host_caches_lock_all(host_caches *caches)
{
    pthread_mutex_lock(&caches->mutex);
    lock(&caches->common);
    for (host_cache *cache = atomic_load(&caches->first); cache; cache = cache->next)
        lock(cache);
}

void host_caches_unlock_all(host_caches *caches)
{
    for (host_cache *cache = atomic_load(&caches->first); cache; cache = cache->next)
        unlock(cache);
    unlock(&caches->common);
    pthread_mutex_unlock(&caches->mutex);
}

void host_caches_unlock_in_child(host_caches *caches)
{
    const host_cache *own = pthread_getspecific(caches->key);
    for (host_cache *cache = atomic_load(&caches->first); cache; cache = cache->next)
        cache->is_used = cache == own;
    host_caches_unlock_all(caches);
}
