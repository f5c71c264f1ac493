/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * streams.c - a hash table, which readers use without a lock, has the stream of quire for each
 * stream of torch. Also two questions to the driver about streams: see state.h.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/adapters/torch/state.h"

/* ---- streams of quire --------------------------------------------------------------------- */

/* Readers take no lock. */

#define LEGACY ((void *)(uintptr_t)1)
#define PER_THREAD ((void *)(uintptr_t)2)

/* A number of the thread that no other thread ever has, unlike the system's. */
static uint64_t thread_number(void)
{
    static atomic_ullong last;
    static _Thread_local uint64_t number;
    if (!number)
        number = atomic_fetch_add(&last, 1) + 1;
    return number;
}

void torch_streams_init(torch_streams *streams, bool capture)
{
    for (int i = 0; i < TORCH_BUCKETS; i++)
        atomic_init(&streams->buckets[i], NULL);
    pthread_mutex_init(&streams->mutex, NULL);
    streams->capture = capture;
}

/* Streams are addresses, aligned to 16 bytes or more. */
static _Atomic(torch_stream *) *bucket_of(torch_streams *streams, const void *native)
{
    uintptr_t bits = (uintptr_t)native;
    return &streams->buckets[(bits >> 4 ^ bits >> 12 ^ bits) % TORCH_BUCKETS];
}

static torch_stream *find(const torch_stream *s, const void *native, uint64_t thread)
{
    while (s && (s->native != native || s->thread != thread))
        s = s->next;
    return (torch_stream *)(uintptr_t)s;
}

/* The first mark cannot be deferred: a free on a stream that captures would fail without it. */
static quire_result make(const torch_streams *streams, quire_device *device, void *native,
                         quire_stream **stream)
{
    quire_point point;
    if (streams->capture)
        return quire_stream_create(device, &(quire_stream_options){.capture = true}, stream);
    quire_result result = quire_cuda_stream_wrap(device, native, NULL, stream);
    bool has_mark = !result && !quire_stream_mark(*stream, &point);
    (void)has_mark; /* if not, it captures now: allocate.c */
    return result;
}

/* Requires the mutex. */
static quire_result add(torch_streams *streams, quire_device *device, void *native, uint64_t thread,
                        torch_stream **added)
{
    _Atomic(torch_stream *) *bucket = bucket_of(streams, native);
    torch_stream *s = find(atomic_load(bucket), native, thread);
    *added = s;
    if (s)
        return QUIRE_SUCCESS;
    s = malloc(sizeof *s);
    if (!s)
        return torch_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a stream");
    *s = (torch_stream){.next = atomic_load(bucket), .native = native, .thread = thread};
    if (make(streams, device, native, &s->stream)) {
        free(s);
        return torch_fail_quire("a stream");
    }
    atomic_store(bucket, s);
    atomic_fetch_add(&streams->count, 1);
    *added = s;
    return QUIRE_SUCCESS;
}

quire_result torch_streams_find(torch_streams *streams, quire_device *device, void *native,
                                quire_stream **stream)
{
    native = native == LEGACY ? NULL : native;
    uint64_t thread = native == PER_THREAD ? thread_number() : 0;
    torch_stream *s = find(atomic_load(bucket_of(streams, native)), native, thread);
    quire_result result = QUIRE_SUCCESS;
    if (!s) {
        pthread_mutex_lock(&streams->mutex);
        result = add(streams, device, native, thread, &s);
        pthread_mutex_unlock(&streams->mutex);
    }
    *stream = s ? s->stream : NULL;
    return result;
}

void torch_streams_destroy(torch_streams *streams)
{
    for (int i = 0; i < TORCH_BUCKETS; i++)
        while (atomic_load(&streams->buckets[i])) {
            torch_stream *s = atomic_load(&streams->buckets[i]);
            atomic_store(&streams->buckets[i], s->next);
            /* BUSY cannot happen to a capture stream; another stays with its device */
            if (quire_stream_destroy(&s->stream))
                torch_fail_quire("a stream");
            free(s);
        }
    atomic_store(&streams->count, 0);
}

/* ---- the driver --------------------------------------------------------------------------- */

/* quire does not ask these questions for its callers. It has opened the library before. */

typedef int driver_result;                                  /* CUresult; 0 is success */
enum { CAPTURE_STATUS_NONE = 0, CAPTURE_MODE_RELAXED = 2 }; /* as in cuda.h */

static struct driver {
    driver_result (*push)(void *context);
    driver_result (*pop)(void **context);
    driver_result (*wait)(void);
    driver_result (*exchange)(int *mode);
    driver_result (*is_capturing)(void *stream, int *status);
    bool is_complete;
} driver;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool find_function(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found;
}

static void load(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    driver.is_complete =
        library && find_function(library, "cuCtxPushCurrent_v2", &driver.push) &&
        find_function(library, "cuCtxPopCurrent_v2", &driver.pop) &&
        find_function(library, "cuCtxSynchronize", &driver.wait) &&
        find_function(library, "cuThreadExchangeStreamCaptureMode", &driver.exchange) &&
        find_function(library, "cuStreamIsCapturing", &driver.is_capturing);
}

static bool enter(void *context)
{
    pthread_once(&once, load);
    return driver.is_complete && !driver.push(context);
}

static void leave(void)
{
    void *popped = NULL;
    driver.pop(&popped);
}

/* The relaxed mode: a capture of another device does not forbid the call. */
bool torch_driver_wait(void *context)
{
    int mode = CAPTURE_MODE_RELAXED;
    if (!enter(context))
        return false;
    bool is_relaxed = !driver.exchange(&mode);
    driver_result result = driver.wait();
    if (is_relaxed)
        driver.exchange(&mode);
    leave();
    return !result;
}

bool torch_driver_captures(void *context, void *stream)
{
    int status = CAPTURE_STATUS_NONE;
    if (!enter(context))
        return true;
    driver_result result = driver.is_capturing(stream, &status);
    leave();
    return result || status != CAPTURE_STATUS_NONE;
}
