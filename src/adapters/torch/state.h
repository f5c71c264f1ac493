/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * state.h - the records of the adapter: devices, their streams, their pools.
 *
 * Locks. The devices that are open are published by atomic pointers and never closed, except by
 * torch_close. Every call on a device holds its `lock` for reading; calls that change pools, or
 * destroy capture streams, hold it for writing. The mutexes of the streams, of the late frees and
 * of the history are taken after it and are never held together.
 *
 * Captures. torch begins a pool before a stream captures a graph, and its filter selects the
 * streams of the capture. What the graph allocates is a range of the pool's own memory, on a
 * capture stream of quire for each stream of torch: it is reused in the order of that stream of
 * torch, and by nothing else as long as the pool has users.
 */
#ifndef QUIRE_SRC_ADAPTERS_TORCH_STATE_H
#define QUIRE_SRC_ADAPTERS_TORCH_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "quire/cuda.h"
#include "quire/insight.h"
#include "quire/stream.h"
#include "src/adapters/torch/calls.h"

enum { TORCH_MAX_DEVICES = 64, TORCH_BUCKETS = 64 };

/* ---- streams.c: streams of quire by stream of torch, and the driver ----------------------- */

typedef struct torch_stream {
    struct torch_stream *next;
    void *native;
    uint64_t thread; /* whose default stream it is; 0: any other stream */
    quire_stream *stream;
} torch_stream;

/* A hash table without removals. The mutex protects additions. */
typedef struct torch_streams {
    _Atomic(torch_stream *) buckets[TORCH_BUCKETS];
    pthread_mutex_t mutex;
    atomic_uint count;
    bool capture; /* quire's streams are capture streams */
} torch_streams;

void torch_streams_init(torch_streams *streams, bool capture);

/* Finds the stream of quire for a stream of torch, and makes it at the first call. */
quire_result torch_streams_find(torch_streams *streams, quire_device *device, void *native,
                                quire_stream **stream);

/* Destroys all streams of quire; the table is empty afterwards. No other call may run. */
void torch_streams_destroy(torch_streams *streams);

/* Waits for all work of a context. No stream may capture. Returns false on failure. */
bool torch_driver_wait(void *context);

/* Whether a stream of the context captures, or, for the legacy default stream, a stream that waits
   for it. Also true if the driver does not say. */
bool torch_driver_captures(void *context, void *stream);

/* ---- insight.c: pages in the history ------------------------------------------------------ */

typedef struct torch_page {
    uint64_t address; /* 0: there is no such page */
    uint64_t size;
} torch_page;

/* The pages of a memory. The mutex protects the array. */
typedef struct torch_pages {
    int device;
    torch_pool_id id;
    pthread_mutex_t mutex;
    torch_page *pages; /* `room` of them, by number */
    uint32_t room;
} torch_pages;

/* Sets the hook of a new memory. The record must live until the memory is destroyed. */
quire_result torch_pages_watch(torch_pages *pages, int device, torch_pool_id id,
                               quire_memory *memory);
void torch_pages_finish(torch_pages *pages);

/* ---- devices.c ---------------------------------------------------------------------------- */

typedef struct torch_pool {
    struct torch_pool *next;
    torch_pool_id id;
    uint32_t users; /* 0: nothing allocates in it any more */
    bool drained;   /* its graphs are done, and its capture streams are destroyed */
    quire_memory *memory;
    torch_pages pages;
    torch_streams streams;
} torch_pool;

/* Between the begin and the end of a pool; the oldest first. */
typedef struct torch_begun {
    struct torch_begun *next;
    torch_pool *pool;
    torch_filter filter;
} torch_begun;

/* A free, or the record of a use, that waits until its stream no longer captures. */
typedef struct torch_late {
    struct torch_late *next;
    quire_memory *memory;
    quire_allocation allocation;
    quire_stream *stream;
    bool is_free;
} torch_late;

typedef struct torch_device {
    int ordinal;
    quire_device *device;
    void *context; /* CUcontext */
    quire_memory *memory;
    torch_pages pages;
    torch_streams streams;
    pthread_rwlock_t lock;
    torch_pool *pools;
    torch_begun *begun;
    pthread_mutex_t late_mutex;
    torch_late *late; /* the oldest first */
    atomic_uint late_count;
    atomic_ullong refused, retried; /* allocations */
    bool counts_peaks;              /* a stats scope is open: torch_reset_peaks */
} torch_device;

/* Finds a device, and opens it at the first call. */
quire_result torch_device_open(int ordinal, torch_device **device);

/* NULL if the device is not open, or there is no such device. */
torch_device *torch_device_get(int ordinal);

/* Fails in the child of a fork, in which no lock of the adapter may be taken. */
bool torch_is_forked(void);
quire_result torch_check_fork(void);

/* Creates a memory of the device, for a pool or, with the id {0, 0}, for the device itself. On
   failure there is neither the memory nor the record of its pages. */
quire_result torch_memory_create(torch_device *d, const char *name, torch_pool_id id,
                                 torch_pages *pages, quire_memory **memory);

/* Sets the sentence of the thread and returns the result. */
quire_result torch_fail(quire_result result, const char *format, ...) QUIRE_PRINTF(2, 3);

/* Sets the sentence to quire's last error, and returns its result. */
quire_result torch_fail_quire(const char *what);

/* ---- pools.c ------------------------------------------------------------------------------ */

/* Requires the lock for reading. The pool to which the filters direct a stream; NULL: none. */
torch_pool *torch_pool_of_stream(torch_device *d, void *native);

/* Requires the lock for reading. The pool that owns a memory; NULL: the device does. */
torch_pool *torch_pool_of_memory(torch_device *d, const quire_memory *memory);

/*
 * Requires the lock for writing. Waits for the work of the device, destroys the memories of pools
 * without users, and collects what was freed. Returns false, and does nothing, while a stream
 * captures.
 */
bool torch_device_settle(torch_device *d);

/* Requires no lock. The same after torch_late_retry. */
bool torch_device_sweep(torch_device *d);

/* Requires the lock, so that no pool of the device begins. Waits for all work of the device.
   Returns false, and does nothing, while a pool of any device is begun, or the driver reports a
   capture in the stream or in one that waits for the legacy default stream. */
bool torch_device_wait(torch_device *d, void *stream);

/* Requires the lock for writing, or that no other call runs. */
void torch_pools_destroy(torch_device *d);

/* ---- allocate.c: frees and uses that a capture forbids ------------------------------------ */

/* Tries again what waits. */
void torch_late_retry(torch_device *d);

/* ---- insight.c: the history --------------------------------------------------------------- */

typedef enum torch_action {
    TORCH_ALLOC,
    TORCH_FREE,
    TORCH_OOM,
    TORCH_PAGE_MADE,
    TORCH_PAGE_GONE
} torch_action;

typedef struct torch_entry {
    torch_action action;
    int device;
    uint64_t address; /* of TORCH_OOM: the free bytes of the device */
    uint64_t size;
    uint64_t stream;
    uint64_t time_us;
    torch_pool_id pool;
} torch_entry;

/* Whether anything is recorded: one atomic read. */
bool torch_history_is_on(void);
void torch_history_add(torch_entry entry);

#endif
