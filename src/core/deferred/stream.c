/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stream.c - answers of the backend only raise `marked` and `passed`, so that threads may store
 * them in any order. Marks, queries, awaits and orders streams.
 *
 * Functions that call the backend require that the caller holds no lock.
 */
#include "src/core/deferred/stream.h"

#include <string.h>

#include "src/base/result.h"
#include "src/base/thread.h"
#include "src/core/deferred/deferred_free.h"

/* Releases a record that no device lists and no qi_wait names. */
static void release_record(quire_stream *stream)
{
    quire_device *device = stream->device;
    qi_host_release_text(&device->host, stream->name);
    qi_host_release(&device->host, stream, 1, sizeof *stream);
    qi_atomic_drop_u64(&device->stream_records); /* the device may be destroyed from here on */
}

void qi_stream_add_wait(quire_stream *stream)
{
    qi_atomic_add_u64(&stream->waits, 1);
}

void qi_stream_drop_wait(quire_stream *stream)
{
    if (qi_atomic_drop_u64(&stream->waits) == 1)
        release_record(stream);
}

void qi_stream_begin_query(quire_stream *stream)
{
    qi_lock_acquire(&stream->lock);
    stream->callers++;
    qi_lock_release(&stream->lock);
}

void qi_stream_end_query(quire_stream *stream)
{
    qi_lock_acquire(&stream->lock);
    if (!--stream->callers)
        qi_lock_wake_all(&stream->lock);
    qi_lock_release(&stream->lock);
}

static qi_marking marking_of(const quire_stream *stream)
{
    return (qi_marking)qi_atomic_load_acquire_u32(&stream->marking);
}

/*
 * Returns the result. On a lost device no work runs any more: all points of the stream count as
 * passed.
 */
static quire_result note_loss(quire_stream *stream, quire_result result)
{
    if (result == QUIRE_ERROR_DEVICE_LOST)
        qi_atomic_raise_release_u64(&stream->passed, QI_ALL_PASSED);
    return result;
}

/* Returns the highest value that the owner of the timeline has announced. */
static quire_result announced(const quire_stream *stream, uint64_t *value)
{
    *value = qi_atomic_load_acquire_u64(&stream->marked);
    if (*value)
        return QUIRE_SUCCESS;
    return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                        "stream '%s' cannot be marked: its owner signals its values, and none was "
                        "announced (quire_stream_announce)",
                        stream->name);
}

/* Makes the backend set a mark, and notes whether the backend or the owner sets the values. */
static quire_result set_mark(quire_stream *stream, uint64_t *value)
{
    quire_result result = qi_device_stream_mark(stream->device, stream->native, value);
    if (!result)
        qi_atomic_store_release_u32(&stream->marking, QI_MARKED_BY_BACKEND);
    else if (result == QUIRE_ERROR_UNSUPPORTED && marking_of(stream) == QI_MARKING_UNKNOWN)
        qi_atomic_store_release_u32(&stream->marking, QI_ANNOUNCED);
    return note_loss(stream, result);
}

quire_result qi_stream_mark(quire_stream *stream, uint64_t *value)
{
    *value = stream->capture; /* a capture stream has the one point 1, which does not pass */
    if (stream->capture)
        return QUIRE_SUCCESS;
    if (marking_of(stream) == QI_ANNOUNCED)
        return announced(stream, value);
    uint64_t mark = 0;
    qi_error before;
    qi_error_save(&before);
    quire_result result = set_mark(stream, &mark);
    /* the backend cannot mark the stream: the owner announces its values */
    if (result && marking_of(stream) == QI_ANNOUNCED) {
        qi_error_restore(&before);
        return announced(stream, value);
    }
    if (result)
        return result;
    qi_atomic_raise_release_u64(&stream->marked, mark);
    *value = mark;
    return QUIRE_SUCCESS;
}

quire_result qi_stream_check_marks(quire_stream *stream)
{
    uint64_t value = 0;
    if (stream->capture || marking_of(stream) == QI_MARKED_BY_BACKEND ||
        qi_stream_has_passed(stream, QI_ALL_PASSED))
        return QUIRE_SUCCESS;
    qi_error before;
    qi_error_save(&before);
    quire_result result = qi_stream_mark(stream, &value);
    if (result != QUIRE_ERROR_DEVICE_LOST)
        return result;
    qi_error_restore(&before); /* nothing is left to mark */
    return QUIRE_SUCCESS;
}

/*
 * Finds out who sets the values of the stream. The mark that this sets is not a point of the caller
 * and does not raise `marked`.
 */
static quire_result learn_marking(quire_stream *stream)
{
    uint64_t unused = 0;
    qi_error before;
    qi_error_save(&before);
    quire_result result = set_mark(stream, &unused);
    if (result && marking_of(stream) != QI_ANNOUNCED && result != QUIRE_ERROR_DEVICE_LOST)
        return result;
    qi_error_restore(&before);
    return QUIRE_SUCCESS;
}

quire_result qi_stream_check_unmarked_point(quire_stream *stream, uint64_t value)
{
    uint64_t last = stream->capture ? 1 : qi_atomic_load_acquire_u64(&stream->marked);
    quire_result result = QUIRE_SUCCESS;
    if (value <= last || marking_of(stream) == QI_ANNOUNCED || qi_stream_has_passed(stream, value))
        return QUIRE_SUCCESS;
    if (!stream->capture && marking_of(stream) == QI_MARKING_UNKNOWN)
        result = learn_marking(stream);
    if (result || marking_of(stream) == QI_ANNOUNCED || qi_stream_has_passed(stream, value))
        return result;
    return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                        "point %llu of stream '%s' was never marked: the last mark is %llu",
                        (unsigned long long)value, stream->name, (unsigned long long)last);
}

quire_result qi_stream_query(quire_stream *stream)
{
    if (stream->capture || qi_stream_has_passed(stream, QI_ALL_PASSED))
        return QUIRE_SUCCESS;
    uint64_t value = 0;
    quire_result result = qi_device_stream_passed(stream->device, stream->native, &value);
    if (!result)
        qi_atomic_raise_release_u64(&stream->passed, value);
    return note_loss(stream, result);
}

quire_result qi_stream_await(quire_stream *stream, uint64_t value, uint64_t nanoseconds)
{
    if (qi_stream_has_passed(stream, value))
        return QUIRE_SUCCESS;
    bool has_passed = false;
    quire_result result = QUIRE_SUCCESS;
    if (!stream->capture)
        result =
            qi_device_stream_await(stream->device, stream->native, value, nanoseconds, &has_passed);
    if (result)
        return note_loss(stream, result);
    if (!has_passed)
        return qi_fail_text(QUIRE_ERROR_BUSY, "point %llu of stream '%s' has not passed",
                            (unsigned long long)value, stream->name);
    qi_atomic_raise_release_u64(&stream->passed, value);
    return QUIRE_SUCCESS;
}

bool qi_stream_finish(quire_stream *stream, uint64_t nanoseconds)
{
    uint64_t value = 0;
    bool has_passed = qi_stream_has_passed(stream, QI_ALL_PASSED);
    qi_error before;
    if (has_passed)
        return true;
    qi_error_save(&before);
    quire_result result = qi_stream_mark(stream, &value);
    if (!result)
        result = note_loss(stream, qi_device_stream_await(stream->device, stream->native, value,
                                                          nanoseconds, &has_passed));
    qi_error_restore(&before);
    return has_passed || result == QUIRE_ERROR_BUSY || qi_stream_has_passed(stream, QI_ALL_PASSED);
}

quire_result qi_stream_order(quire_stream *later, quire_stream *earlier, uint64_t value)
{
    quire_device *device = later->device;
    if (later == earlier || qi_stream_has_passed(earlier, value))
        return QUIRE_SUCCESS;
    if (device != earlier->device)
        return qi_fail_text(QUIRE_ERROR_FOREIGN_HANDLE,
                            "stream '%s' is of device '%s', the point of device '%s'", later->name,
                            device->info.name, earlier->device->info.name);
    /* work ordered after a capture stream would never run */
    if (later->capture || earlier->capture)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                            "stream '%s' is a capture stream: nothing runs on it, and none of its "
                            "points passes",
                            later->capture ? later->name : earlier->name);
    if (!qi_device_offers(device, QUIRE_BACKEND_STREAM_ORDER))
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "backend %s cannot order streams",
                            device->info.backend);
    return qi_device_stream_order(device, later->native, earlier->native, value);
}

quire_result qi_stream_announce(quire_stream *stream, uint64_t value)
{
    if (marking_of(stream) !=
        QI_ANNOUNCED) { /* marked by the backend, or unknown: a mark decides */
        uint64_t marked = 0;
        qi_error before;
        qi_error_save(&before);
        quire_result result = qi_stream_mark(stream, &marked);
        if (!result)
            return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                                "stream '%s' marks its points itself: nothing is to be announced",
                                stream->name);
        if (result != QUIRE_ERROR_UNSUPPORTED)
            return result;
        qi_error_restore(&before);
    }
    qi_atomic_raise_release_u64(&stream->marked, value);
    return QUIRE_SUCCESS;
}

quire_result qi_stream_refuse_after_fork(const quire_stream *stream)
{
    return stream->device->is_disabled
               ? qi_refuse_disabled()
               : qi_fail_text(QUIRE_ERROR_NOT_PERMITTED,
                              "stream '%s' was made before a fork: nothing runs on it in the child",
                              stream->name);
}

/* ---- creation and destruction ------------------------------------------------------------- */

/*
 * The device's lock protects the list of streams. A stream's record outlives the stream while waits
 * name it (qi_stream_drop_wait).
 */

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
    release_record(stream);
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
            release_record(stream);
            return result;
        }
    }
    add_to_device(stream);
    *out = stream;
    return QUIRE_SUCCESS;
}

/* Waits until no thread calls the backend for a queue of the stream. */
static void await_callers(quire_stream *stream)
{
    qi_lock_acquire(&stream->lock);
    while (stream->callers)
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
    await_callers(stream);
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
    await_callers(stream); /* no free waits for the stream: no thread looks at it from now on */
    qi_deferred_forget_stream(stream);
    remove_from_device(stream);
    if (!stream->capture)
        qi_device_stream_destroy(stream->device, stream->native);
    qi_stream_drop_wait(stream);
    return QUIRE_SUCCESS;
}
