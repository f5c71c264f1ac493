/*
 * stream.c - streams and their points (see stream.h and quire/stream.h). What waits for points is
 * waiting.c.
 */
#include "src/core/deferred/stream.h"

#include <string.h>

#include "src/base/result.h"
#include "src/base/thread.h"
#include "src/core/device/backend_call.h"
#include "src/core/deferred/deferred_free.h"

/* What waits for a stream that ends may take so long. */
static const uint64_t GRACE_NANOSECONDS = UINT64_C(1000000000);

/* ---- making and ending -------------------------------------------------------------------- */

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

static void release_record(quire_stream *stream)
{
    quire_device *device = stream->device;
    qi_host_release_text(&device->host, stream->name);
    qi_host_release(&device->host, stream, 1, sizeof *stream);
    qi_atomic_drop_u64(&device->stream_records); /* the device may go with it */
}

static quire_stream *make_record(quire_device *device, const char *name, bool capture)
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

static quire_result make(quire_device *device, const void *description, const char *name,
                         bool capture, quire_stream **out)
{
    if (device->is_disabled)
        return qi_refuse_disabled();
    if (!capture && !qi_device_offers(device, QUIRE_BACKEND_STREAMS))
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "backend %s has no streams",
                            device->info.backend);
    if (name && strlen(name) > QUIRE_MAX_NAME)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "a name of %u bytes: %u are allowed",
                            strlen(name), QUIRE_MAX_NAME);
    quire_stream *stream = make_record(device, name, capture);
    if (!stream)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a stream");
    if (!capture) {
        qi_backend_call entered = qi_backend_call_begin();
        quire_result result = qi_backend_call_end(
            device, NULL, entered,
            device->table.stream_create(device->state, description, &stream->native));
        if (result) {
            release_record(stream);
            return result;
        }
    }
    add_to_device(stream);
    *out = stream;
    return QUIRE_SUCCESS;
}

quire_result quire_stream_create(quire_device *device, const quire_stream_options *options,
                                 quire_stream **stream)
{
    if (stream)
        *stream = NULL;
    if (!device || !stream)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_stream_create: device or stream is null");
    const quire_stream_options asked = options ? *options : (quire_stream_options){0};
    quire_result result = qi_check_unused(&asked, "quire_stream_options");
    return result ? result : make(device, NULL, asked.name, asked.capture, stream);
}

quire_result quire_stream_wrap(quire_device *device, const void *description, const char *name,
                               quire_stream **stream)
{
    if (stream)
        *stream = NULL;
    if (!device || !description || !stream)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_stream_wrap: device, description or stream is null");
    return make(device, description, name, false, stream);
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

void qi_stream_begin_look(quire_stream *stream)
{
    qi_lock_acquire(&stream->lock);
    stream->lookers++;
    qi_lock_release(&stream->lock);
}

void qi_stream_end_look(quire_stream *stream)
{
    qi_lock_acquire(&stream->lock);
    if (!--stream->lookers)
        qi_lock_wake_all(&stream->lock);
    qi_lock_release(&stream->lock);
}

static void await_lookers(quire_stream *stream)
{
    qi_lock_acquire(&stream->lock);
    while (stream->lookers)
        qi_lock_wait(&stream->lock, NULL);
    qi_lock_release(&stream->lock);
}

static uint64_t waits_of(const quire_stream *stream)
{
    return qi_atomic_load_acquire_u64(&stream->waits) - 1;
}

/* Gives back what has passed within the grace; what the backend does not tell still waits. */
static void collect_last(quire_stream *ending)
{
    qi_error error = qi_error_save();
    quire_result result = qi_deferred_collect_stream(ending, GRACE_NANOSECONDS);
    await_lookers(ending);
    if (!result && waits_of(ending)) /* others had taken it out to mark it */
        qi_ignore(qi_deferred_collect_stream(ending, GRACE_NANOSECONDS));
    qi_error_restore(&error);
}

quire_result quire_stream_destroy(quire_stream **stream)
{
    if (!stream)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_stream_destroy: stream is null");
    quire_stream *ending = *stream;
    if (!ending)
        return QUIRE_SUCCESS;
    if (ending->capture)
        qi_atomic_raise_release_u64(&ending->passed, QI_ALL_PASSED);
    collect_last(ending);
    if (!ending->capture && !ending->is_over && waits_of(ending))
        return qi_fail_text(QUIRE_ERROR_BUSY,
                            "allocations that wait for stream '%s', or were used on it: %llu",
                            ending->name, (unsigned long long)waits_of(ending));
    ending->destroying_thread = qi_thread_self();
    *stream = NULL;
    await_lookers(ending); /* nothing waits, so that none comes any more */
    qi_deferred_forget_stream(ending);
    remove_from_device(ending);
    if (!ending->capture) {
        qi_backend_call entered = qi_backend_call_begin();
        ending->device->table.stream_destroy(ending->device->state, ending->native);
        qi_backend_call_end(ending->device, NULL, entered, QUIRE_SUCCESS);
    }
    qi_stream_drop_wait(ending);
    return QUIRE_SUCCESS;
}

quire_result quire_stream_get_info(quire_stream *stream, quire_stream_info *info)
{
    if (info)
        *info = (quire_stream_info){0};
    if (!stream || !info)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_stream_get_info: stream or info is null");
    if (stream->device->is_disabled)
        return qi_refuse_disabled();
    *info = (quire_stream_info){
        .name = stream->name,
        .device = stream->device,
        .capture = stream->capture,
        .native = stream->native,
        .marked = qi_atomic_load_acquire_u64(&stream->marked),
        .passed = qi_atomic_load_acquire_u64(&stream->passed),
        .deferred = waits_of(stream),
    };
    return QUIRE_SUCCESS;
}

uint64_t quire_stream_native(const quire_stream *stream)
{
    return stream ? stream->native : 0;
}

/* ---- asking the backend ------------------------------------------------------------------- */

static qi_marking marking_of(const quire_stream *stream)
{
    return (qi_marking)qi_atomic_load_acquire_u32(&stream->marking);
}

/* What a backend answers of a device that is lost is that nothing runs on it any more. */
static quire_result heed_loss(quire_stream *stream, quire_result result)
{
    if (result == QUIRE_ERROR_DEVICE_LOST)
        qi_atomic_raise_release_u64(&stream->passed, QI_ALL_PASSED);
    return result;
}

/* The highest value that the owner of a timeline has announced. */
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

/* Has the backend set a mark, and learns who sets them. */
static quire_result set_mark(quire_stream *stream, uint64_t *reported)
{
    quire_device *device = stream->device;
    qi_backend_call entered = qi_backend_call_begin();
    quire_result result = qi_backend_call_end(
        device, NULL, entered, device->table.stream_mark(device->state, stream->native, reported));
    if (!result)
        qi_atomic_store_release_u32(&stream->marking, QI_MARKED_BY_BACKEND);
    else if (result == QUIRE_ERROR_UNSUPPORTED && marking_of(stream) == QI_MARKING_UNKNOWN)
        qi_atomic_store_release_u32(&stream->marking, QI_ANNOUNCED);
    return heed_loss(stream, result);
}

quire_result qi_stream_mark(quire_stream *stream, uint64_t *value)
{
    *value = stream->capture;
    if (stream->capture)
        return QUIRE_SUCCESS;
    if (marking_of(stream) == QI_ANNOUNCED)
        return announced(stream, value);
    uint64_t reported = 0;
    qi_error before = qi_error_save();
    quire_result result = set_mark(stream, &reported);
    if (result && marking_of(stream) == QI_ANNOUNCED) {
        qi_error_restore(&before);
        return announced(stream, value);
    }
    if (result)
        return result;
    qi_atomic_raise_release_u64(&stream->marked, reported);
    *value = reported;
    return QUIRE_SUCCESS;
}

quire_result qi_stream_check_marks(quire_stream *stream)
{
    uint64_t value = 0;
    if (stream->capture || marking_of(stream) == QI_MARKED_BY_BACKEND ||
        qi_stream_has_passed(stream, QI_ALL_PASSED))
        return QUIRE_SUCCESS;
    qi_error before = qi_error_save();
    quire_result result = qi_stream_mark(stream, &value);
    if (result != QUIRE_ERROR_DEVICE_LOST)
        return result;
    qi_error_restore(&before); /* there is nothing left to mark */
    return QUIRE_SUCCESS;
}

/* Learns who marks a stream of which that is not known. The mark is nobody's point. */
static quire_result learn_marking(quire_stream *stream)
{
    uint64_t unused = 0;
    qi_error before = qi_error_save();
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
    quire_device *device = stream->device;
    uint64_t value = 0;
    qi_backend_call entered = qi_backend_call_begin();
    quire_result result = qi_backend_call_end(
        device, NULL, entered, device->table.stream_passed(device->state, stream->native, &value));
    if (!result)
        qi_atomic_raise_release_u64(&stream->passed, value);
    return heed_loss(stream, result);
}

quire_result qi_stream_await(quire_stream *stream, uint64_t value, uint64_t nanoseconds)
{
    if (qi_stream_has_passed(stream, value))
        return QUIRE_SUCCESS;
    bool has_passed = false;
    quire_result result = QUIRE_SUCCESS;
    if (!stream->capture) {
        quire_device *device = stream->device;
        qi_backend_call entered = qi_backend_call_begin();
        result = qi_backend_call_end(device, NULL, entered,
                                     device->table.stream_await(device->state, stream->native,
                                                                value, nanoseconds, &has_passed));
    }
    if (result)
        return heed_loss(stream, result);
    if (!has_passed)
        return qi_fail_text(QUIRE_ERROR_BUSY, "point %llu of stream '%s' has not passed",
                            (unsigned long long)value, stream->name);
    qi_atomic_raise_release_u64(&stream->passed, value);
    return QUIRE_SUCCESS;
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
    if (later->capture || earlier->capture)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                            "stream '%s' is held: nothing runs on it, and none of its points "
                            "passes",
                            later->capture ? later->name : earlier->name);
    if (!qi_device_offers(device, QUIRE_BACKEND_STREAM_ORDER))
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "backend %s cannot order streams",
                            device->info.backend);
    qi_backend_call entered = qi_backend_call_begin();
    return qi_backend_call_end(
        device, NULL, entered,
        device->table.stream_order(device->state, later->native, earlier->native, value));
}

/* ---- public calls on points --------------------------------------------------------------- */

quire_result quire_stream_mark(quire_stream *stream, quire_point *point)
{
    if (point)
        *point = (quire_point){0};
    if (!stream || !point)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_stream_mark: stream or point is null");
    if (stream->is_over)
        return qi_stream_refuse_after_fork(stream);
    uint64_t value = 0;
    quire_result result = qi_stream_mark(stream, &value);
    if (!result)
        *point = (quire_point){stream, value};
    return result;
}

quire_result quire_stream_announce(quire_stream *stream, uint64_t value)
{
    if (!stream || !value)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_stream_announce: stream is null or value is 0");
    if (stream->is_over)
        return qi_stream_refuse_after_fork(stream);
    if (marking_of(stream) != QI_ANNOUNCED) { /* or not known yet */
        uint64_t marked = 0;
        qi_error before = qi_error_save();
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

quire_result quire_stream_wait(quire_stream *stream, const quire_point *point)
{
    if (!stream || !point)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_stream_wait: stream or point is null");
    if (stream->is_over)
        return qi_stream_refuse_after_fork(stream);
    quire_result result = qi_stream_check_point(point);
    if (result || !point->stream)
        return result;
    return qi_stream_order(stream, point->stream, point->value);
}

quire_result quire_point_has_passed(const quire_point *point, bool *has_passed)
{
    if (has_passed)
        *has_passed = false;
    if (!point || !has_passed)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_point_has_passed: point or has_passed is null");
    if (point->stream && point->stream->device->is_disabled)
        return qi_refuse_disabled();
    quire_result result = qi_stream_check_point(point);
    if (!result && point->stream && !qi_stream_has_passed(point->stream, point->value))
        result = qi_stream_query(point->stream);
    *has_passed = !result && (!point->stream || qi_stream_has_passed(point->stream, point->value));
    return result;
}

quire_result quire_point_await(const quire_point *point, uint64_t nanoseconds)
{
    if (!point)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_point_await: point is null");
    if (point->stream && point->stream->device->is_disabled)
        return qi_refuse_disabled();
    quire_result result = qi_stream_check_point(point);
    if (result || !point->stream)
        return result;
    return qi_stream_await(point->stream, point->value, nanoseconds);
}
