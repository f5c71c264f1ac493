/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * allocate.c - torch's allocations and frees are ranges of quire in the order of a stream. What a
 * capture forbids is queued for later, and what a captured graph used stays until its pool has no
 * users. See calls.h.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "src/adapters/torch/state.h"

/* ---- allocating --------------------------------------------------------------------------- */

/* Requires the lock for reading. The stream of quire on which a stream of torch allocates and frees
   in a pool, or in the device's memory (NULL). */
static quire_result find_stream(torch_device *d, torch_pool *pool, void *native,
                                quire_stream **stream)
{
    return torch_streams_find(pool ? &pool->streams : &d->streams, d->device, native, stream);
}

/* The user data is the stream of torch. */
static quire_result allocate_once(torch_device *d, uint64_t size, void *native, void **pointer,
                                  torch_pool_id *id)
{
    quire_stream *stream = NULL;
    quire_allocation allocation;
    quire_allocation_info info;
    pthread_rwlock_rdlock(&d->lock);
    torch_pool *pool = torch_pool_of_stream(d, native);
    quire_result result = find_stream(d, pool, native, &stream);
    if (!result) {
        const quire_allocation_options options = {.size = size,
                                                  .alignment = 512,
                                                  .name = torch_tag(),
                                                  .stream = stream,
                                                  .user_data = (uintptr_t)native,
                                                  .info = &info};
        result = quire_allocate(pool ? pool->memory : d->memory, &options, &allocation);
        if (result)
            torch_fail_quire("quire");
    }
    *id = pool ? pool->id : (torch_pool_id){0, 0};
    pthread_rwlock_unlock(&d->lock);
    *pointer = result ? NULL : (void *)(uintptr_t)info.address;
    return result;
}

bool torch_is_exhausted(quire_result result)
{
    return result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY || result == QUIRE_ERROR_OVER_BUDGET ||
           result == QUIRE_ERROR_TOO_MANY_PAGES || result == QUIRE_ERROR_OUT_OF_RANGE;
}

static void record(const torch_device *d, torch_action action, uint64_t address, uint64_t size,
                   const void *native, torch_pool_id id)
{
    if (torch_history_is_on())
        torch_history_add((torch_entry){.action = action,
                                        .device = d->ordinal,
                                        .address = address,
                                        .size = size,
                                        .stream = (uintptr_t)native,
                                        .pool = id});
}

static void record_refusal(torch_device *d, uint64_t size, const void *native, torch_pool_id id)
{
    quire_budget_info budget = {.available = 0};
    atomic_fetch_add(&d->refused, 1);
    if (torch_history_is_on() && !quire_device_get_budget(d->device, 0, &budget))
        record(d, TORCH_OOM, budget.available, size, native, id);
}

quire_result torch_allocate(int64_t size, int device, void *stream, void **pointer)
{
    torch_device *d = NULL;
    torch_pool_id id;
    *pointer = NULL;
    quire_result result = torch_check_fork();
    if (!result && size < 0)
        result = torch_fail(QUIRE_ERROR_INVALID_ARGUMENT, "%" PRId64 " bytes", size);
    if (!result)
        result = torch_device_open(device, &d);
    if (result || !size)
        return result;
    result = allocate_once(d, (uint64_t)size, stream, pointer, &id);
    if (torch_is_exhausted(result) && torch_device_sweep(d)) {
        atomic_fetch_add(&d->retried, 1);
        result = allocate_once(d, (uint64_t)size, stream, pointer, &id);
    }
    if (torch_is_exhausted(result))
        record_refusal(d, (uint64_t)size, stream, id);
    else if (!result)
        record(d, TORCH_ALLOC, (uintptr_t)*pointer, (uint64_t)size, stream, id);
    return result;
}

/* ---- frees and uses that a capture forbids ------------------------------------------------ */

/*
 * What quire refuses while a stream captures, because the stream has no mark yet, is queued. That
 * happens only to a stream that captures without a pool when the adapter first sees it.
 */

static quire_result perform(const torch_late *l)
{
    return l->is_free ? quire_free_on_stream(l->memory, l->allocation, l->stream)
                      : quire_record_use(l->memory, l->allocation, l->stream);
}

/* Requires the mutex. A free comes after the uses of its allocation, which are older. */
static bool waits(const torch_device *d, quire_allocation allocation)
{
    for (const torch_late *l = d->late; l; l = l->next)
        if (l->allocation.id == allocation.id)
            return true;
    return false;
}

/* Requires the mutex. */
static quire_result put_off(torch_device *d, const torch_late *wanted)
{
    torch_late **end = &d->late;
    torch_late *l = malloc(sizeof *l);
    if (!l)
        return torch_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a free");
    while (*end)
        end = &(*end)->next;
    *l = *wanted;
    *end = l;
    atomic_fetch_add(&d->late_count, 1);
    return QUIRE_SUCCESS;
}

static quire_result now_or_later(torch_device *d, const torch_late *wanted)
{
    quire_result result = QUIRE_ERROR_NOT_PERMITTED;
    bool may_wait = atomic_load(&d->late_count);
    if (may_wait)
        pthread_mutex_lock(&d->late_mutex);
    if (!may_wait || !waits(d, wanted->allocation))
        result = perform(wanted);
    if (result == QUIRE_ERROR_NOT_PERMITTED) {
        if (!may_wait)
            pthread_mutex_lock(&d->late_mutex);
        may_wait = true;
        result = put_off(d, wanted);
    } else if (result) {
        torch_fail_quire(wanted->is_free ? "a free" : "a use of a stream");
    }
    if (may_wait)
        pthread_mutex_unlock(&d->late_mutex);
    return result;
}

/* Require the lock for reading. They do it now, or later if the stream captures. */
static quire_result free_or_wait(torch_device *d, quire_memory *memory, quire_allocation allocation,
                                 quire_stream *stream)
{
    return now_or_later(
        d, &(torch_late){
               .memory = memory, .allocation = allocation, .stream = stream, .is_free = true});
}

static quire_result use_or_wait(torch_device *d, quire_memory *memory, quire_allocation allocation,
                                quire_stream *stream)
{
    return now_or_later(
        d, &(torch_late){.memory = memory, .allocation = allocation, .stream = stream});
}

/* Stops at the first that still waits for the same stream's end of its capture: the order of the
   uses and the free of an allocation matters. */
void torch_late_retry(torch_device *d)
{
    if (!atomic_load(&d->late_count))
        return;
    pthread_mutex_lock(&d->late_mutex);
    while (d->late && perform(d->late) != QUIRE_ERROR_NOT_PERMITTED) {
        torch_late *done = d->late;
        d->late = done->next;
        atomic_fetch_sub(&d->late_count, 1);
        free(done);
    }
    pthread_mutex_unlock(&d->late_mutex);
}

/* ---- freeing ------------------------------------------------------------------------------ */

/* An allocation of the adapter. */
typedef struct found {
    quire_memory *memory;
    quire_allocation allocation;
    torch_pool *pool; /* NULL: it is in the device's memory */
    quire_allocation_info info;
} found;

/* Requires the lock for reading. */
static bool find(torch_device *d, const void *pointer, found *f)
{
    if (quire_device_find(d->device, (uintptr_t)pointer, &f->memory, &f->allocation) ||
        quire_allocation_get_info(f->memory, f->allocation, &f->info))
        return false;
    f->pool = torch_pool_of_memory(d, f->memory);
    return true;
}

/* Requires the lock for reading. The pool whose graph a stream captures now; NULL: none. */
static torch_pool *captured_pool(torch_device *d, void *native)
{
    torch_pool *pool = torch_pool_of_stream(d, native);
    return pool && torch_driver_captures(d->context, native) ? pool : NULL;
}

/*
 * Requires the lock for reading. What is freed on a stream that captures was used by the graph,
 * which will use it at each replay. It stays until the pool of the graph has no users.
 */
static quire_result keep_for_graph(torch_device *d, const found *f, void *native)
{
    quire_stream *graph = NULL;
    torch_pool *pool = captured_pool(d, native);
    if (!pool || pool == f->pool || f->info.asleep) /* what sleeps is used by no graph */
        return QUIRE_SUCCESS;
    quire_result result = find_stream(d, pool, native, &graph);
    return result ? result : use_or_wait(d, f->memory, f->allocation, graph);
}

/* Requires the lock for reading. */
static quire_result free_found(torch_device *d, const found *f, void *native)
{
    quire_stream *stream = NULL;
    /* what outlives the graphs of its pool is used and freed by ordinary work */
    torch_pool *pool = f->pool && !f->pool->drained ? f->pool : NULL;
    quire_result result = keep_for_graph(d, f, native);
    if (!result)
        result = find_stream(d, pool, native, &stream);
    return result ? result : free_or_wait(d, f->memory, f->allocation, stream);
}

static quire_result not_found(const torch_device *d, const void *pointer)
{
    return torch_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                      "%p is freed on device %d, where it is not the start of an allocation",
                      pointer, d->ordinal);
}

/* Requires the lock for reading. Records the entry before the address can be allocated again. */
static quire_result free_slowly(torch_device *d, const void *pointer, void *native)
{
    found f;
    if (!find(d, pointer, &f) || f.info.address != (uintptr_t)pointer)
        return not_found(d, pointer);
    record(d, TORCH_FREE, f.info.address, f.info.requested, native,
           f.pool ? f.pool->id : (torch_pool_id){0, 0});
    return free_found(d, &f, native);
}

/* Requires the lock for reading. The common case: no graph, no pool, nothing queued. */
static bool free_fast(torch_device *d, const void *pointer, void *native)
{
    quire_stream *stream = NULL;
    return !d->begun && !atomic_load(&d->late_count) && !torch_history_is_on() &&
           !find_stream(d, NULL, native, &stream) &&
           !quire_free_at_address(d->memory, (uintptr_t)pointer, stream);
}

quire_result torch_free(void *pointer, int device, void *stream)
{
    quire_result result = QUIRE_SUCCESS;
    if (!pointer || torch_is_forked())
        return QUIRE_SUCCESS;
    torch_device *d = torch_device_get(device);
    if (!d)
        return torch_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                          "%p is freed on device %d, which has no allocation", pointer, device);
    torch_late_retry(d);
    pthread_rwlock_rdlock(&d->lock);
    if (!free_fast(d, pointer, stream))
        result = free_slowly(d, pointer, stream);
    pthread_rwlock_unlock(&d->lock);
    return result;
}

/* torch's caching allocator uses a segment on one stream; a caller of its raw functions may have
   used another one than that on which the segment was allocated. */
quire_result torch_free_segment(void *pointer, int device, void *stream)
{
    torch_device *d = torch_device_get(device);
    if (pointer && d && !torch_is_forked()) {
        pthread_rwlock_rdlock(&d->lock); /* no capture begins during the wait */
        torch_device_wait(d, stream);
        pthread_rwlock_unlock(&d->lock);
    }
    return torch_free(pointer, device, stream);
}

/* ---- other streams, pages ----------------------------------------------------------------- */

/* Requires the lock for reading. */
static quire_result use_found(torch_device *d, const found *f, void *native)
{
    quire_stream *stream = NULL;
    if (f->info.user_data == (uintptr_t)native)
        return QUIRE_SUCCESS;
    quire_result result = find_stream(d, captured_pool(d, native), native, &stream);
    return result ? result : use_or_wait(d, f->memory, f->allocation, stream);
}

quire_result torch_record_stream(void *pointer, void *stream)
{
    quire_result result = pointer ? torch_check_fork() : QUIRE_SUCCESS;
    bool is_found = !pointer || result;
    for (int i = 0; i < TORCH_MAX_DEVICES && !is_found; i++) {
        torch_device *d = torch_device_get(i);
        found f;
        if (!d)
            continue;
        pthread_rwlock_rdlock(&d->lock);
        is_found = find(d, pointer, &f);
        if (is_found)
            result = use_found(d, &f, stream);
        pthread_rwlock_unlock(&d->lock);
    }
    return result;
}

void *torch_get_base(void *pointer, size_t *size)
{
    void *base = pointer;
    size_t bytes = 0;
    for (int i = 0; i < TORCH_MAX_DEVICES && !bytes && !torch_is_forked(); i++) {
        torch_device *d = torch_device_get(i);
        quire_page_info page;
        found f;
        if (!d)
            continue;
        pthread_rwlock_rdlock(&d->lock);
        if (find(d, pointer, &f) && !quire_page_get_info(f.memory, f.info.page, &page)) {
            base = (void *)(uintptr_t)page.address;
            bytes = page.size;
        }
        pthread_rwlock_unlock(&d->lock);
    }
    if (size)
        *size = bytes;
    return base;
}

/* ---- the cache, limits -------------------------------------------------------------------- */

static quire_result reset_device(torch_device *d)
{
    torch_device_sweep(d);
    pthread_rwlock_rdlock(&d->lock);
    quire_result result = quire_memory_trim(d->memory, 0, NULL);
    pthread_rwlock_unlock(&d->lock);
    return result ? torch_fail_quire("quire") : QUIRE_SUCCESS;
}

quire_result torch_reset(void)
{
    quire_result result = torch_check_fork();
    for (int i = 0; i < TORCH_MAX_DEVICES && !result; i++)
        if (torch_device_get(i))
            result = reset_device(torch_device_get(i));
    return result;
}

quire_result torch_set_fraction(double fraction, int device)
{
    torch_device *d = NULL;
    quire_device_info info;
    quire_result result = torch_check_fork();
    if (!result && !(fraction >= 0 && fraction <= 1))
        result = torch_fail(QUIRE_ERROR_INVALID_ARGUMENT, "a fraction of %g; it is from 0 to 1",
                            fraction);
    if (!result)
        result = torch_device_open(device, &d);
    if (result)
        return result;
    if (quire_device_get_info(d->device, &info))
        return torch_fail_quire("quire");
    /* to quire 0 means no limit */
    uint64_t limit = (uint64_t)(fraction * (double)info.heaps[0].size);
    if (quire_device_set_heap_limit(d->device, 0, limit ? limit : 1))
        return torch_fail_quire("quire");
    return QUIRE_SUCCESS;
}
