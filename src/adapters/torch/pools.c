/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * pools.c - each private pool of torch is a memory. It ends after its last user and its last
 * allocation, once the work of the device is done: see state.h.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/adapters/torch/state.h"

/* Pools that are begun, of all devices. While there is one, nothing waits for a device, because
   that would invalidate the graph, and the adapter does not see when its capture really begins. */
static atomic_uint begun_count;

/* ---- which pool ----------------------------------------------------------------------------- */

torch_pool *torch_pool_of_stream(torch_device *d, void *native)
{
    for (torch_begun *b = d->begun; b; b = b->next)
        if (!b->filter.matches || b->filter.matches(b->filter.state, native))
            return b->pool;
    return NULL;
}

torch_pool *torch_pool_of_memory(torch_device *d, const quire_memory *memory)
{
    torch_pool *p = d->pools;
    while (p && p->memory != memory)
        p = p->next;
    return p;
}

/* A pool without users is never used again: torch may use the number for a new pool. */
static torch_pool *find_used(const torch_device *d, torch_pool_id id)
{
    torch_pool *p = d->pools;
    while (p && !(p->users && p->id.first == id.first && p->id.second == id.second))
        p = p->next;
    return p;
}

static quire_result no_pool(int device, torch_pool_id id)
{
    return torch_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                      "device %d has no pool (%" PRIu64 ", %" PRIu64 ") in this state", device,
                      id.first, id.second);
}

/* ---- begin, end, release -------------------------------------------------------------------- */

static void finish_filter(const torch_filter *filter)
{
    if (filter->destroy)
        filter->destroy(filter->state);
}

/* Requires the lock for writing. */
static torch_pool *make_pool(torch_device *d, torch_pool_id id)
{
    char name[64];
    torch_pool *p = calloc(1, sizeof *p);
    snprintf(name, sizeof name, "torch pool %" PRIu64 ".%" PRIu64, id.first, id.second);
    if (!p) {
        torch_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a pool");
        return NULL;
    }
    if (torch_memory_create(d, name, id, &p->pages, &p->memory)) {
        free(p);
        return NULL;
    }
    p->id = id;
    torch_streams_init(&p->streams, true);
    p->next = d->pools;
    d->pools = p;
    return p;
}

/* Requires the lock for writing. */
static bool append(torch_device *d, torch_pool *pool, const torch_filter *filter)
{
    torch_begun **end = &d->begun;
    torch_begun *b = malloc(sizeof *b);
    if (!b) {
        torch_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a pool");
        return false;
    }
    while (*end)
        end = &(*end)->next;
    *b = (torch_begun){.pool = pool, .filter = *filter};
    *end = b;
    atomic_fetch_add(&begun_count, 1);
    return true;
}

quire_result torch_begin_pool(int device, torch_pool_id id, const torch_filter *filter)
{
    torch_device *d = NULL;
    quire_result result = torch_check_fork();
    if (!result)
        result = torch_device_open(device, &d);
    if (result) {
        finish_filter(filter);
        return result;
    }
    pthread_rwlock_wrlock(&d->lock);
    torch_pool *p = find_used(d, id);
    p = p ? p : make_pool(d, id);
    bool is_begun = p && append(d, p, filter);
    if (is_begun)
        p->users++;
    pthread_rwlock_unlock(&d->lock);
    if (is_begun)
        return QUIRE_SUCCESS;
    finish_filter(filter);
    return QUIRE_ERROR_OUT_OF_HOST_MEMORY;
}

/* Requires the lock for writing. Returns false if the pool is not begun. */
static bool end_one(torch_device *d, const torch_pool *p)
{
    torch_begun **at = &d->begun;
    while (*at && (*at)->pool != p)
        at = &(*at)->next;
    torch_begun *b = *at;
    if (!b)
        return false;
    *at = b->next;
    finish_filter(&b->filter);
    free(b);
    atomic_fetch_sub(&begun_count, 1);
    return true;
}

/* torch ends a pool after the capture. */
quire_result torch_end_pool(int device, torch_pool_id id)
{
    torch_device *d = torch_device_get(device);
    quire_result result = torch_check_fork();
    if (result || !d)
        return result ? result : no_pool(device, id);
    pthread_rwlock_wrlock(&d->lock);
    torch_pool *p = find_used(d, id);
    if (!p || !end_one(d, p))
        result = no_pool(device, id);
    pthread_rwlock_unlock(&d->lock);
    torch_late_retry(d);
    return result;
}

/* A capture that failed may not have ended its pool. */
quire_result torch_release_pool(int device, torch_pool_id id)
{
    torch_device *d = torch_device_get(device);
    quire_result result = torch_check_fork();
    if (result || !d)
        return result ? result : no_pool(device, id);
    pthread_rwlock_wrlock(&d->lock);
    torch_pool *p = find_used(d, id);
    if (!p)
        result = no_pool(device, id);
    else if (!--p->users)
        while (end_one(d, p))
            ;
    pthread_rwlock_unlock(&d->lock);
    return result;
}

/* ---- the end of a pool ---------------------------------------------------------------------- */

bool torch_device_wait(torch_device *d, void *stream)
{
    if (atomic_load(&begun_count) || torch_driver_captures(d->context, NULL) ||
        (stream && torch_driver_captures(d->context, stream)))
        return false;
    return torch_driver_wait(d->context);
}

/* After the work of the device. A free that waits for several streams waits for one after the
   other, so that it may need as many rounds. */
static void collect(const torch_device *d, quire_memory *memory)
{
    quire_memory_stats stats = {.deferred_count = 1};
    for (unsigned i = atomic_load(&d->streams.count); i && stats.deferred_count; i--)
        if (quire_collect(memory, NULL) || quire_memory_get_stats(memory, &stats))
            return;
}

/* Requires the lock for writing, after the work of the device. The graphs of pools without users
   are gone: what they used, in whichever memory, waits for them no longer. */
static void end_graphs(torch_device *d)
{
    for (torch_pool *p = d->pools; p; p = p->next)
        if (!p->users && !p->drained) {
            torch_streams_destroy(&p->streams);
            p->drained = true;
        }
}

/* Requires the lock for writing, after end_graphs. Allocations that live, or that another graph
   uses, keep the memory of a pool. */
static void end_pools(torch_device *d)
{
    for (torch_pool **at = &d->pools; *at;) {
        torch_pool *p = *at, *next = p->next;
        if (p->drained)
            collect(d, p->memory);
        if (!p->drained || quire_memory_destroy(&p->memory)) {
            at = &p->next;
            continue;
        }
        torch_pages_finish(&p->pages);
        pthread_mutex_destroy(&p->streams.mutex);
        free(p);
        *at = next;
    }
}

bool torch_device_settle(torch_device *d)
{
    if (!torch_device_wait(d, NULL))
        return false;
    end_graphs(d);
    end_pools(d);
    collect(d, d->memory);
    return true;
}

bool torch_device_sweep(torch_device *d)
{
    torch_late_retry(d);
    pthread_rwlock_wrlock(&d->lock);
    bool is_idle = torch_device_settle(d);
    pthread_rwlock_unlock(&d->lock);
    return is_idle;
}

void torch_pools_destroy(torch_device *d)
{
    while (d->pools) {
        torch_pool *p = d->pools;
        while (end_one(d, p))
            ;
        torch_streams_destroy(&p->streams);
        quire_memory_destroy_all(&p->memory);
        torch_pages_finish(&p->pages);
        pthread_mutex_destroy(&p->streams.mutex);
        d->pools = p->next;
        free(p);
    }
}
