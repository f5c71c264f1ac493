/*
 * stream_life.c - creates and destroys streams.
 *
 * The device's lock protects the list of streams. A stream's record outlives the stream while waits
 * name it (qi_stream_drop_wait).
 */
#include "src/core/deferred/stream_life.h"

#include <string.h>

#include "src/base/result.h"
#include "src/base/thread.h"
#include "src/core/deferred/deferred_free.h"
#include "src/core/deferred/deferred_collect.h"
#include "src/core/deferred/recorded_use.h"

/* A stream that is destroyed waits this long for its deferred frees; nanoseconds. */
static const uint64_t GRACE_NANOSECONDS = UINT64_C(1000000000);

static void add_to_device(quire_stream *stream)
{
    quire_device *device = stream->device;
    qi_lock_acquire(&device->lock);
    stream->next_of_device = device->streams;
    device->streams = stream;
    qi_lock_release(&device->lock);
}

static void remove_from_device(const quire_stream *stream)
{
    quire_device *device = stream->device;
    qi_lock_acquire(&device->lock);
    quire_stream **link = &device->streams;
    while (*link != stream)
        link = &(*link)->next_of_device;
    *link = stream->next_of_device;
    qi_lock_release(&device->lock);
}

/* Returns a record that no device lists, or NULL if host memory is exhausted. */
static quire_stream *create_record(quire_device *device, const char *name, bool capture)
{
    quire_stream *stream = qi_host_allocate(&device->host, 1, sizeof *stream);
    if (!stream)
        return NULL;
    qi_atomic_add_u64(&device->stream_records, 1);
    stream->device = device;
    stream->capture = capture;
    stream->name = qi_host_copy_text(&device->host, name ? name : "stream");
    qi_atomic_init_u32(&stream->marking, QI_MARKING_UNKNOWN);
    qi_atomic_init_u64(&stream->marked, 0);
    qi_atomic_init_u64(&stream->passed, 0);
    qi_atomic_init_u64(&stream->waits, 1);
    qi_lock_init(&stream->lock, "stream", QI_RANK_STREAM);
    if (stream->name)
        return stream;
    qi_stream_release_record(stream);
    return NULL;
}

quire_result qi_stream_create(quire_device *device, const void *description, const char *name,
                              bool capture, quire_stream **out)
{
    if (device->is_disabled)
        return qi_refuse_disabled();
    if (!capture && !qi_device_offers(device, QUIRE_BACKEND_STREAMS))
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "backend %s has no streams",
                            device->info.backend);
    if (name && strlen(name) > QUIRE_MAX_NAME)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "a name of %u byte%s: %u are allowed",
                            strlen(name), QUIRE_MAX_NAME);
    quire_stream *stream = create_record(device, name, capture);
    if (!stream)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a stream");
    if (!capture) {
        quire_result result = qi_device_stream_create(device, description, &stream->native);
        if (result) {
            qi_stream_release_record(stream);
            return result;
        }
    }
    add_to_device(stream);
    *out = stream;
    return QUIRE_SUCCESS;
}

/* Waits until no thread calls the backend for a queue of the stream. */
static void await_lookers(quire_stream *stream)
{
    qi_lock_acquire(&stream->lock);
    while (stream->lookers)
        qi_lock_wait(&stream->lock, NULL);
    qi_lock_release(&stream->lock);
}

/*
 * Releases the deferred frees whose points pass within the grace period. On an error of the backend
 * the others stay deferred.
 */
static void collect_last(quire_stream *stream)
{
    qi_error error;
    qi_error_save(&error);
    quire_result result = qi_deferred_collect_stream(stream, GRACE_NANOSECONDS);
    await_lookers(stream);
    if (!result && qi_stream_waits(stream)) /* another thread had taken frees out to mark them */
        qi_ignore(qi_deferred_collect_stream(stream, GRACE_NANOSECONDS));
    qi_error_restore(&error);
}

quire_result qi_stream_destroy(quire_stream **destroyed)
{
    quire_stream *stream = *destroyed;
    if (stream->capture) /* nothing runs on it: the frees that wait for it complete now */
        qi_atomic_raise_release_u64(&stream->passed, QI_ALL_PASSED);
    collect_last(stream);
    if (!stream->capture)
        qi_end_own_uses(stream, GRACE_NANOSECONDS);
    if (!stream->capture && !stream->is_over && qi_stream_waits(stream))
        return qi_fail_text(QUIRE_ERROR_BUSY,
                            "allocations that wait for stream '%s', or were used on it: %llu",
                            stream->name, (unsigned long long)qi_stream_waits(stream));
    stream->destroying_thread = qi_thread_self();
    *destroyed = NULL;
    await_lookers(stream); /* no free waits for the stream: no thread looks at it from now on */
    qi_deferred_forget_stream(stream);
    remove_from_device(stream);
    if (!stream->capture)
        qi_device_stream_destroy(stream->device, stream->native);
    qi_stream_drop_wait(stream);
    return QUIRE_SUCCESS;
}
