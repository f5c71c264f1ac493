/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stream.c - a point is an event of the driver, recorded in the stream; see stream.h. Before work
 * is added to a stream the driver is asked whether the stream captures: the work would become part
 * of the graph. Also the waits for work before memory is released.
 */
#include "backends/cuda/stream.h"

#include <time.h>

#include "backends/cuda/device.h"
#include "src/base/atomic.h"
#include "src/base/result.h"
#include "src/base/system.h"

/* ---- default streams of threads ----------------------------------------------------------- */

/* The number of the calling thread. A thread that begins later gets another one. */
static uint64_t thread_number(void)
{
    static qi_atomic_u64 last;
    static _Thread_local uint64_t number;
    if (!number)
        number = qi_atomic_add_u64(&last, 1) + 1;
    return number;
}

/* Returns true if the record is the default stream of another thread than the calling one. */
static bool is_foreign(const qi_cuda_stream *stream)
{
    return stream->owner && stream->owner != thread_number();
}

qi_cu_stream qi_cuda_stream_handle(const qi_cuda_stream *stream)
{
    return is_foreign(stream) ? NULL : stream->native;
}

/* ---- captures ----------------------------------------------------------------------------- */

/*
 * All streams of all devices. A forked child leaves the list and its mutex as they are: CUDA does
 * not work there, so that it has no streams of its own.
 */
static pthread_mutex_t known_mutex = PTHREAD_MUTEX_INITIALIZER;
static qi_cuda_stream *known;

static void add_known(qi_cuda_stream *stream)
{
    pthread_mutex_lock(&known_mutex);
    stream->next_known = known;
    if (known)
        known->previous_known = stream;
    known = stream;
    pthread_mutex_unlock(&known_mutex);
}

static void remove_known(qi_cuda_stream *stream)
{
    pthread_mutex_lock(&known_mutex);
    if (stream->next_known)
        stream->next_known->previous_known = stream->previous_known;
    if (stream->previous_known)
        stream->previous_known->next_known = stream->next_known;
    else
        known = stream->next_known;
    pthread_mutex_unlock(&known_mutex);
}

/* Returns true if a stream of the device captures a graph: one that quire knows, the calling
   thread's, or one that waits for the default stream. A context of the device must be current.
   Default streams of other threads need no question: they wait for the legacy default stream. */
static bool any_captures(const qi_cuda *cuda, qi_cu_device device)
{
    bool any = qi_cuda_is_capturing(cuda, NULL) ||
               qi_cuda_is_capturing(cuda, (qi_cu_stream)(uintptr_t)QI_CU_STREAM_PER_THREAD);
    pthread_mutex_lock(&known_mutex); /* so that no stream is destroyed before the question */
    for (const qi_cuda_stream *s = known; s && !any; s = s->next_known)
        any = s->cuda->device == device && !s->owner && qi_cuda_is_capturing(s->cuda, s->native);
    pthread_mutex_unlock(&known_mutex);
    return any;
}

/* Asks the driver before work is added to the stream: what is added during a capture becomes part
   of the graph. */
quire_result qi_cuda_check_capture(const qi_cuda *cuda, const qi_cuda_stream *stream)
{
    qi_cu_capture_status status = QI_CU_STREAM_CAPTURE_STATUS_NONE;
    if (!cuda->f.StreamIsCapturing)
        return QUIRE_SUCCESS;
    qi_cu_result code = cuda->f.StreamIsCapturing(qi_cuda_stream_handle(stream), &status);
    if (code && code != QI_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        return qi_cuda_fail(&cuda->f, code, "cuStreamIsCapturing");
    if (!code && status == QI_CU_STREAM_CAPTURE_STATUS_NONE)
        return QUIRE_SUCCESS;
    return quire_backend_fail(
        QUIRE_ERROR_NOT_PERMITTED, code,
        "the stream captures a graph, whose work does not run now: allocate and free the memory of "
        "the graph on a capture stream (quire_stream_options.capture)");
}

/* ---- creation and destruction ------------------------------------------------------------- */

/* Drivers that cannot say which device a stream has can say which its context has. */
static qi_cu_result device_of(const qi_cuda *cuda, qi_cu_stream stream, qi_cu_context context,
                              qi_cu_device *device)
{
    if (cuda->f.StreamGetDevice)
        return cuda->f.StreamGetDevice(stream, device);
    qi_cu_result code = cuda->f.CtxPushCurrent(context);
    if (code)
        return code;
    code = cuda->f.CtxGetDevice(device);
    cuda->f.CtxPopCurrent(&context);
    return code;
}

/*
 * The stream of a green context shares the memory and the events of its device's primary context.
 * Its own context is never the device's. Drivers without cuStreamGetGreenCtx have no green
 * contexts.
 */
static quire_result check_green(const qi_cuda *cuda, qi_cu_stream stream, qi_cu_context context)
{
    qi_cu_green green = NULL;
    qi_cu_device device = cuda->device;
    qi_cu_result code = QI_CUDA_SUCCESS;
    if (cuda->f.StreamGetGreenCtx)
        code = cuda->f.StreamGetGreenCtx(stream, &green);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuStreamGetGreenCtx");
    if (!green)
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                                  "the stream belongs to another context than the device");
    code = device_of(cuda, stream, context, &device);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "querying the device of a stream");
    return device == cuda->device
               ? QUIRE_SUCCESS
               : quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                                    "the stream belongs to device %d, not to device %d", device,
                                    cuda->device);
}

/* INVALID_ARGUMENT for a stream that does not work with the memory of the device's context. The
   default streams are those of whichever context is current. */
static quire_result check_context(const qi_cuda *cuda, qi_cu_stream stream)
{
    qi_cu_context context = cuda->context;
    if ((uintptr_t)stream <= QI_CU_STREAM_PER_THREAD || !cuda->f.StreamGetCtx)
        return QUIRE_SUCCESS;
    qi_cu_result code = cuda->f.StreamGetCtx(stream, &context);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuStreamGetCtx");
    return context == cuda->context ? QUIRE_SUCCESS : check_green(cuda, stream, context);
}

/* Takes the caller's stream, or creates one that does not wait for the default stream. */
static quire_result find_native(const qi_cuda *cuda, const qi_cuda_stream_description *requested,
                                qi_cuda_stream *stream)
{
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    if (requested) {
        stream->native = requested->stream;
        if ((uintptr_t)stream->native == QI_CU_STREAM_PER_THREAD)
            stream->owner = thread_number();
        result = check_context(cuda, requested->stream);
    } else {
        qi_cu_result code = cuda->f.StreamCreate(&stream->native, QI_CU_STREAM_NON_BLOCKING);
        stream->is_own = !code;
        result = code ? qi_cuda_fail(&cuda->f, code, "cuStreamCreate") : QUIRE_SUCCESS;
    }
    qi_cuda_leave(cuda);
    return result;
}

quire_result qi_cuda_stream_create(void *state, const void *description, uint64_t *out)
{
    qi_cuda *cuda = state;
    qi_cuda_stream *stream = qi_host_allocate(&cuda->host, 1, sizeof *stream);
    if (!stream)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0, "no host memory for a stream");
    quire_result result = find_native(cuda, description, stream);
    if (result) {
        qi_host_release(&cuda->host, stream, 1, sizeof *stream);
        return result;
    }
    pthread_mutex_init(&stream->mutex, NULL);
    stream->cuda = cuda;
    add_known(stream);
    *out = (uintptr_t)stream;
    return QUIRE_SUCCESS;
}

/* Returns true if the driver destroyed the object, or is gone and has none. */
static bool is_ended(qi_cu_result code)
{
    return !code || qi_cuda_is_lost(code);
}

/*
 * Destroys a list of marks; without the driver only their records. False: the driver refused one.
 */
static bool destroy_marks(qi_cuda *cuda, qi_cuda_mark **marks, bool has_driver)
{
    while (*marks) {
        qi_cuda_mark *mark = *marks;
        if (has_driver && !is_ended(cuda->f.EventDestroy(mark->event)))
            return false;
        *marks = mark->next;
        qi_host_release(&cuda->host, mark, 1, sizeof *mark);
    }
    return true;
}

/* Returns false if the driver refused a step, or if the caller captures a graph in quire's stream;
   the rest can be retried. Running work is not affected. */
static bool destroy_native(qi_cuda *cuda, qi_cuda_stream *stream, bool has_driver, bool is_last)
{
    if (has_driver && stream->is_own && !is_last && qi_cuda_is_capturing(cuda, stream->native))
        return false;
    if (!destroy_marks(cuda, &stream->first, has_driver) ||
        !destroy_marks(cuda, &stream->spare, has_driver))
        return false;
    if (!stream->is_own || !has_driver)
        return true;
    stream->is_own = !is_ended(cuda->f.StreamDestroy(stream->native));
    return !stream->is_own;
}

static void release_record(qi_cuda *cuda, qi_cuda_stream *stream)
{
    pthread_mutex_destroy(&stream->mutex);
    qi_host_release(&cuda->host, stream, 1, sizeof *stream);
}

static qi_cuda_stream *take_deferred(qi_cuda *cuda)
{
    pthread_mutex_lock(&cuda->mutex);
    qi_cuda_stream *list = cuda->deferred_streams;
    cuda->deferred_streams = NULL;
    pthread_mutex_unlock(&cuda->mutex);
    return list;
}

static void defer(qi_cuda *cuda, qi_cuda_stream *stream)
{
    pthread_mutex_lock(&cuda->mutex);
    stream->next = cuda->deferred_streams;
    cuda->deferred_streams = stream;
    pthread_mutex_unlock(&cuda->mutex);
}

/* In a forked child only the records are released. */
void qi_cuda_retry_deferred_streams(qi_cuda *cuda, bool is_last)
{
    bool has_driver = !qi_cuda_has_forked(cuda);
    qi_cuda_stream *stream = take_deferred(cuda);
    while (stream) {
        qi_cuda_stream *next = stream->next;
        if (destroy_native(cuda, stream, has_driver, is_last) || is_last) {
            if (has_driver)
                remove_known(stream);
            destroy_marks(cuda, &stream->first, false);
            destroy_marks(cuda, &stream->spare, false);
            release_record(cuda, stream);
        } else {
            defer(cuda, stream);
        }
        stream = next;
    }
}

/* Defers the stream and retries the list, so that one path handles both. */
void qi_cuda_stream_destroy(void *state, uint64_t number)
{
    qi_cuda *cuda = state;
    bool is_entered = !qi_cuda_has_forked(cuda) && !qi_cuda_push(cuda);
    defer(cuda, qi_cuda_stream_of(number));
    qi_cuda_retry_deferred_streams(cuda, false);
    if (is_entered)
        qi_cuda_leave(cuda);
}

/* ---- marks -------------------------------------------------------------------------------- */

/* All static functions on marks require the mutex of the stream and the context. */

static void lock(qi_cuda_stream *stream)
{
    pthread_mutex_lock(&stream->mutex);
}

static void unlock(qi_cuda_stream *stream)
{
    pthread_mutex_unlock(&stream->mutex);
}

static void add_spare(qi_cuda_stream *stream, qi_cuda_mark *mark)
{
    mark->next = stream->spare;
    stream->spare = mark;
}

/* A mark with waiters becomes spare when the last of them returns. */
static void retire_first(qi_cuda_stream *stream)
{
    qi_cuda_mark *mark = stream->first;
    stream->first = mark->next;
    stream->last = stream->first ? stream->last : NULL;
    stream->passed = mark->value;
    mark->is_retired = true;
    if (!mark->waiters)
        add_spare(stream, mark);
}

/* Queries the marks in their order until one has not passed, and retires those that have. */
static qi_cu_result collect(const qi_cuda *cuda, qi_cuda_stream *stream)
{
    while (stream->first) {
        qi_cu_result code = cuda->f.EventQuery(stream->first->event);
        if (code)
            return code == QI_CUDA_ERROR_NOT_READY ? QI_CUDA_SUCCESS : code;
        retire_first(stream);
    }
    return QI_CUDA_SUCCESS;
}

/* Returns the first mark in the list that covers a value; NULL if the value has passed. */
static qi_cuda_mark *find_mark(const qi_cuda_stream *stream, uint64_t value)
{
    qi_cuda_mark *mark = stream->first;
    while (mark && mark->value < value)
        mark = mark->next;
    return mark;
}

/* Events without timing are cheaper; blocking ones let a waiting thread sleep. */
static quire_result create_mark(qi_cuda *cuda, qi_cuda_mark **out)
{
    qi_cuda_mark *mark = qi_host_allocate(&cuda->host, 1, sizeof *mark);
    if (!mark)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                  "no host memory for a point of a stream");
    qi_cu_result code =
        cuda->f.EventCreate(&mark->event, QI_CU_EVENT_BLOCKING_SYNC | QI_CU_EVENT_DISABLE_TIMING);
    if (code) {
        qi_host_release(&cuda->host, mark, 1, sizeof *mark);
        return qi_cuda_fail(&cuda->f, code, "cuEventCreate");
    }
    *out = mark;
    return QUIRE_SUCCESS;
}

/* Takes a spare mark, after retiring those that have passed, or creates one. */
static quire_result acquire_mark(qi_cuda *cuda, qi_cuda_stream *stream, qi_cuda_mark **out)
{
    if (!stream->spare && stream->first) {
        qi_cu_result code = collect(cuda, stream);
        if (code)
            return qi_cuda_fail(&cuda->f, code, "cuEventQuery");
    }
    *out = stream->spare;
    if (!*out)
        return create_mark(cuda, out);
    stream->spare = (*out)->next;
    return QUIRE_SUCCESS;
}

/* A failed record returns the mark to the spare list. */
static quire_result add_mark(qi_cuda *cuda, qi_cuda_stream *stream)
{
    qi_cuda_mark *mark = NULL;
    quire_result result = acquire_mark(cuda, stream, &mark);
    if (result)
        return result;
    qi_cu_result code = cuda->f.EventRecord(mark->event, qi_cuda_stream_handle(stream));
    if (code) {
        add_spare(stream, mark);
        return qi_cuda_fail(&cuda->f, code, "cuEventRecord");
    }
    mark->value = ++stream->marked;
    mark->is_retired = false;
    mark->next = NULL;
    if (stream->last)
        stream->last->next = mark;
    else
        stream->first = mark;
    stream->last = mark;
    return QUIRE_SUCCESS;
}

/* ---- points ------------------------------------------------------------------------------- */

quire_result qi_cuda_stream_mark(void *state, uint64_t number, uint64_t *value)
{
    qi_cuda *cuda = state;
    qi_cuda_stream *stream = qi_cuda_stream_of(number);
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    lock(stream);
    result = qi_cuda_check_capture(cuda, stream);
    if (!result)
        result = add_mark(cuda, stream);
    *value = stream->marked;
    unlock(stream);
    qi_cuda_leave(cuda);
    return result;
}

quire_result qi_cuda_stream_passed(void *state, uint64_t number, uint64_t *value)
{
    qi_cuda *cuda = state;
    qi_cuda_stream *stream = qi_cuda_stream_of(number);
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    lock(stream);
    qi_cu_result code = collect(cuda, stream);
    *value = stream->passed;
    unlock(stream);
    qi_cuda_leave(cuda);
    return code ? qi_cuda_fail(&cuda->f, code, "cuEventQuery") : QUIRE_SUCCESS;
}

/* Releases the mutex while the driver waits; `waiters` keeps the mark. */
static qi_cu_result synchronize(const qi_cuda *cuda, qi_cuda_stream *stream, qi_cuda_mark *mark)
{
    mark->waiters++;
    unlock(stream);
    qi_cu_result code = cuda->f.EventSynchronize(mark->event);
    lock(stream);
    if (!--mark->waiters && mark->is_retired)
        add_spare(stream, mark);
    return code;
}

/* The driver's wait has no timeout, so a wait with one polls. The sleeps double from the first to
   the last: short at first, for copies that take microseconds. */
static const uint64_t MIN_SLEEP = 50000, MAX_SLEEP = 1000000; /* nanoseconds */

static void sleep_for(uint64_t nanoseconds)
{
    const struct timespec time = {.tv_nsec = (long)nanoseconds};
    nanosleep(&time, NULL);
}

/* Queries until the deadline. Releases the mutex while the thread sleeps. */
static qi_cu_result poll(const qi_cuda *cuda, qi_cuda_stream *stream, uint64_t value,
                         uint64_t deadline)
{
    uint64_t nap = MIN_SLEEP;
    for (;;) {
        qi_cu_result code = collect(cuda, stream);
        uint64_t now = qi_clock();
        if (code || stream->passed >= value || now >= deadline)
            return code;
        unlock(stream);
        sleep_for(nap < deadline - now ? nap : deadline - now);
        lock(stream);
        nap = nap * 2 < MAX_SLEEP ? nap * 2 : MAX_SLEEP;
    }
}

/* Marks of a thread's default stream that other threads set in the legacy default stream may pass
   after later marks: those before the value are waited for as well. */
static qi_cu_result await_marks(const qi_cuda *cuda, qi_cuda_stream *stream, uint64_t value)
{
    qi_cuda_mark *mark = find_mark(stream, value);
    qi_cu_result code = QI_CUDA_SUCCESS;
    while (mark && !code) {
        code = synchronize(cuda, stream, mark);
        if (!code)
            code = collect(cuda, stream);
        mark = stream->passed < value ? stream->first : NULL;
    }
    return code;
}

/* A timeout that overflows the clock means no timeout. */
static qi_cu_result await_value(const qi_cuda *cuda, qi_cuda_stream *stream, uint64_t value,
                                uint64_t nanoseconds)
{
    uint64_t now = qi_clock();
    if (nanoseconds <= UINT64_MAX - now)
        return nanoseconds ? poll(cuda, stream, value, now + nanoseconds) : collect(cuda, stream);
    return await_marks(cuda, stream, value);
}

quire_result qi_cuda_stream_await(void *state, uint64_t number, uint64_t value,
                                  uint64_t nanoseconds, bool *has_passed)
{
    qi_cuda *cuda = state;
    qi_cuda_stream *stream = qi_cuda_stream_of(number);
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    lock(stream);
    qi_cu_result code = await_value(cuda, stream, value, nanoseconds);
    *has_passed = stream->passed >= value;
    unlock(stream);
    qi_cuda_leave(cuda);
    return code ? qi_cuda_fail(&cuda->f, code, "waiting for a point of a stream") : QUIRE_SUCCESS;
}

/* A value that has passed needs no order. */
quire_result qi_cuda_stream_order(void *state, uint64_t later, uint64_t earlier, uint64_t value)
{
    const qi_cuda *cuda = state;
    const qi_cuda_stream *waits = qi_cuda_stream_of(later);
    qi_cuda_stream *awaited = qi_cuda_stream_of(earlier);
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    result = qi_cuda_check_capture(cuda, waits);
    lock(awaited); /* so that the event is not recorded again before the wait is submitted */
    const qi_cuda_mark *mark = result ? NULL : find_mark(awaited, value);
    qi_cu_result code = mark ? cuda->f.StreamWaitEvent(qi_cuda_stream_handle(waits), mark->event, 0)
                             : QI_CUDA_SUCCESS;
    unlock(awaited);
    qi_cuda_leave(cuda);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuStreamWaitEvent");
    return result;
}

/* ---- waiting before a release ------------------------------------------------------------- */

/*
 * Something is awaited before it is released if the settings ask for it. Otherwise the caller's
 * frees mean that no work uses what is released, and nothing waits.
 *
 * cuCtxSynchronize invalidates every graph that a stream of the context captures, in all capture
 * modes. quire therefore asks all streams that it knows first, and does not wait while one of them
 * captures: the caller defers the release. A capture that begins between the question and the
 * wait, or in a non-blocking stream that quire does not know, is not seen.
 */

/* Waits for the work of the current context, which is of the device. */
static bool await_current(const qi_cuda *cuda, qi_cu_device device)
{
    if (any_captures(cuda, device))
        return false;
    qi_cu_result code = cuda->f.CtxSynchronize();
    return !code || qi_cuda_is_lost(code);
}

bool qi_cuda_await_context(const qi_cuda *cuda)
{
    return !cuda->settings.wait_before_release || await_current(cuda, cuda->device);
}

/* A primary context that is not active has no work. */
static bool is_active(const qi_cuda *cuda, qi_cu_device device)
{
    unsigned flags = 0;
    int active = 1;
    return !cuda->f.DevicePrimaryCtxGetState ||
           cuda->f.DevicePrimaryCtxGetState(device, &flags, &active) || active;
}

/* Waits for the work of the primary context of another device. */
static bool await_device(const qi_cuda *cuda, qi_cu_device device)
{
    qi_cu_context context = NULL;
    if (!is_active(cuda, device))
        return true;
    qi_cu_result code = cuda->f.DevicePrimaryCtxRetain(&context, device);
    if (code)
        return qi_cuda_is_lost(code);
    code = cuda->f.CtxPushCurrent(context);
    bool is_done = code ? qi_cuda_is_lost(code) : await_current(cuda, device);
    if (!code)
        cuda->f.CtxPopCurrent(&context);
    cuda->f.DevicePrimaryCtxRelease(device);
    return is_done;
}

/* Pages that are not of virtual memory management may be accessible to every device. */
static bool has_access(const qi_cuda *cuda, const qi_cuda_page *page, qi_cu_device device)
{
    unsigned long long flags = 0;
    const qi_cu_location location = {.type = QI_CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
    return page->type != QI_CUDA_PAGE_VIRTUAL || !cuda->f.MemGetAccess ||
           cuda->f.MemGetAccess(&flags, &location, page->reserved) ||
           flags != QI_CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

/* Nothing is released for a borrowed page, and destroying an array waits for the work that uses its
   part of a tile pool. */
bool qi_cuda_await_work(const qi_cuda *cuda, const qi_cuda_page *page)
{
    int count = 0;
    if (!page->was_used || !cuda->settings.wait_before_release ||
        page->type == QI_CUDA_PAGE_BORROWED || page->type == QI_CUDA_PAGE_TILES)
        return true;
    if (!qi_cuda_await_context(cuda) || cuda->f.DeviceGetCount(&count))
        return false;
    for (qi_cu_device device = 0; device < count; device++)
        if (device != cuda->device && has_access(cuda, page, device) && !await_device(cuda, device))
            return false;
    return true;
}

/* ---- public calls ------------------------------------------------------------------------- */

quire_result quire_cuda_stream_wrap(quire_device *device, void *native, const char *name,
                                    quire_stream **stream)
{
    if (stream)
        *stream = NULL;
    if (!stream)
        return qi_fail_null("quire_cuda_stream_wrap", "stream");
    if (!qi_cuda_of(device))
        return quire_last_result();
    const qi_cuda_stream_description description = {.stream = native};
    return quire_stream_wrap(device, &description, name, stream);
}

quire_result quire_cuda_stream_get(const quire_stream *stream, void **native)
{
    quire_stream_info info;
    if (native)
        *native = NULL;
    if (!native)
        return qi_fail_null("quire_cuda_stream_get", "native");
    quire_result result = quire_stream_get_info(stream, &info);
    if (result)
        return result;
    if (!qi_cuda_of(info.device))
        return quire_last_result();
    if (info.capture)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "a capture stream has no CUstream");
    const qi_cuda_stream *found = qi_cuda_stream_of(quire_stream_native(stream));
    if (is_foreign(found))
        return qi_fail(QUIRE_ERROR_NOT_PERMITTED,
                       "the stream is the default stream of another thread: its CUstream means "
                       "another stream here");
    *native = found->native;
    return QUIRE_SUCCESS;
}
