/*
 * stream.c - see stream.h: making streams, points in them, and waiting. What is submitted to them
 * is stream_work.c.
 */
#include "backends/cuda/stream.h"

#include <time.h>

#include "src/base/clock.h"
#include "src/base/result.h"

/* The driver's wait for an event has no end, so a limited one looks again and again, sleeping in
   between: short at first, for copies that take microseconds. */
static const uint64_t SHORTEST_SLEEP = 50000, MAX_SLEEP = 1000000; /* nanoseconds */

/* ---- in the context ----------------------------------------------------------------------- */

quire_result qi_cuda_stream_enter(const qi_cuda *cuda, qi_cuda_entered *entered)
{
    *entered = (qi_cuda_entered){.mode = QI_CU_STREAM_CAPTURE_MODE_RELAXED};
    quire_result result = qi_cuda_enter(cuda);
    if (!result && cuda->f.ThreadExchangeStreamCaptureMode)
        entered->is_changed = !cuda->f.ThreadExchangeStreamCaptureMode(&entered->mode);
    return result;
}

void qi_cuda_stream_leave(const qi_cuda *cuda, qi_cuda_entered *entered)
{
    if (entered->is_changed)
        cuda->f.ThreadExchangeStreamCaptureMode(&entered->mode);
    qi_cuda_leave(cuda);
}

quire_result qi_cuda_check_capture(const qi_cuda *cuda, const qi_cuda_stream *stream)
{
    qi_cu_capture_status status = QI_CU_STREAM_CAPTURE_STATUS_NONE;
    if (!cuda->f.StreamIsCapturing)
        return QUIRE_SUCCESS;
    qi_cu_result code = cuda->f.StreamIsCapturing(stream->native, &status);
    if (code && code != QI_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        return qi_cuda_fail(&cuda->f, code, "cuStreamIsCapturing");
    if (!code && status == QI_CU_STREAM_CAPTURE_STATUS_NONE)
        return QUIRE_SUCCESS;
    return quire_backend_fail(
        QUIRE_ERROR_NOT_PERMITTED, code,
        "the stream captures a graph, whose work is not done now: what the graph uses is "
        "allocated and freed on a capture stream (quire_stream_options.held)");
}

/* ---- marks -------------------------------------------------------------------------------- */

static void lock(qi_cuda_stream *stream)
{
    pthread_mutex_lock(&stream->mutex);
}

static void unlock(qi_cuda_stream *stream)
{
    pthread_mutex_unlock(&stream->mutex);
}

static void make_spare(qi_cuda_stream *stream, qi_cuda_mark *mark)
{
    mark->next = stream->spare;
    stream->spare = mark;
}

static void retire_first(qi_cuda_stream *stream)
{
    qi_cuda_mark *mark = stream->first;
    stream->first = mark->next;
    stream->last = stream->first ? stream->last : NULL;
    stream->passed = mark->value;
    mark->is_retired = true;
    if (!mark->waiters)
        make_spare(stream, mark);
}

/* Finds out how far the stream is. In the context, under the mutex. */
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

/* The first mark that has not passed and behind which the value has; NULL: it has passed. */
static qi_cuda_mark *find_mark(const qi_cuda_stream *stream, uint64_t value)
{
    qi_cuda_mark *mark = stream->first;
    while (mark && mark->value < value)
        mark = mark->next;
    return mark;
}

static quire_result make_mark(qi_cuda *cuda, qi_cuda_mark **out)
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

/* One that was used before, if any has passed. */
static quire_result take_mark(qi_cuda *cuda, qi_cuda_stream *stream, qi_cuda_mark **out)
{
    if (!stream->spare && stream->first) {
        qi_cu_result code = collect(cuda, stream);
        if (code)
            return qi_cuda_fail(&cuda->f, code, "cuEventQuery");
    }
    *out = stream->spare;
    if (!*out)
        return make_mark(cuda, out);
    stream->spare = (*out)->next;
    return QUIRE_SUCCESS;
}

static quire_result add_mark(qi_cuda *cuda, qi_cuda_stream *stream)
{
    qi_cuda_mark *mark = NULL;
    quire_result result = take_mark(cuda, stream, &mark);
    if (result)
        return result;
    qi_cu_result code = cuda->f.EventRecord(mark->event, stream->native);
    if (code) {
        make_spare(stream, mark);
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

/* ---- making and ending -------------------------------------------------------------------- */

/* A stream of another context cannot be used here; who knows which one is the driver's to say. */
static quire_result check_context(const qi_cuda *cuda, qi_cu_stream stream)
{
    qi_cu_context context = cuda->context;
    if (!stream || (uintptr_t)stream == QI_CU_STREAM_LEGACY || !cuda->f.StreamGetCtx)
        return QUIRE_SUCCESS;
    qi_cu_result code = cuda->f.StreamGetCtx(stream, &context);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuStreamGetCtx");
    return context == cuda->context
               ? QUIRE_SUCCESS
               : quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                                    "the stream is of another context than the device");
}

static quire_result find_native(const qi_cuda *cuda, const qi_cuda_stream_description *asked,
                                qi_cuda_stream *stream)
{
    qi_cuda_entered entered;
    quire_result result = qi_cuda_stream_enter(cuda, &entered);
    if (result)
        return result;
    if (asked) {
        stream->native = asked->stream;
        result = check_context(cuda, asked->stream);
    } else {
        qi_cu_result code = cuda->f.StreamCreate(&stream->native, QI_CU_STREAM_NON_BLOCKING);
        stream->is_own = !code;
        result = code ? qi_cuda_fail(&cuda->f, code, "cuStreamCreate") : QUIRE_SUCCESS;
    }
    qi_cuda_stream_leave(cuda, &entered);
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
    *out = (uintptr_t)stream;
    return QUIRE_SUCCESS;
}

/* What a driver that is gone answers to an end is that there is nothing to end. */
static bool is_ended(qi_cu_result code)
{
    return !code || qi_cuda_is_lost(code);
}

static bool end_marks(qi_cuda *cuda, qi_cuda_mark **marks, bool has_driver)
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

/* False: the driver failed, and the rest is to be gone on with. What still runs goes on. */
static bool take_down(qi_cuda *cuda, qi_cuda_stream *stream, bool has_driver)
{
    if (!end_marks(cuda, &stream->first, has_driver) ||
        !end_marks(cuda, &stream->spare, has_driver))
        return false;
    if (!stream->is_own || !has_driver)
        return true;
    stream->is_own = !is_ended(cuda->f.StreamDestroy(stream->native));
    return !stream->is_own;
}

static void release(qi_cuda *cuda, qi_cuda_stream *stream)
{
    pthread_mutex_destroy(&stream->mutex);
    qi_host_release(&cuda->host, stream, 1, sizeof *stream);
}

static qi_cuda_stream *take_ended(qi_cuda *cuda)
{
    pthread_mutex_lock(&cuda->mutex);
    qi_cuda_stream *list = cuda->ended;
    cuda->ended = NULL;
    pthread_mutex_unlock(&cuda->mutex);
    return list;
}

static void add_ended(qi_cuda *cuda, qi_cuda_stream *stream)
{
    pthread_mutex_lock(&cuda->mutex);
    stream->next = cuda->ended;
    cuda->ended = stream;
    pthread_mutex_unlock(&cuda->mutex);
}

/* In a forked child the records alone go. */
void qi_cuda_finish_streams(qi_cuda *cuda, bool last)
{
    bool has_driver = !qi_cuda_has_forked(cuda);
    qi_cuda_stream *stream = take_ended(cuda);
    while (stream) {
        qi_cuda_stream *next = stream->next;
        if (take_down(cuda, stream, has_driver) || last) {
            end_marks(cuda, &stream->first, false);
            end_marks(cuda, &stream->spare, false);
            release(cuda, stream);
        } else {
            add_ended(cuda, stream);
        }
        stream = next;
    }
}

void qi_cuda_stream_destroy(void *state, uint64_t number)
{
    qi_cuda *cuda = state;
    bool is_entered = !qi_cuda_has_forked(cuda) && !cuda->f.CtxPushCurrent(cuda->context);
    add_ended(cuda, qi_cuda_stream_of(number));
    qi_cuda_finish_streams(cuda, false);
    if (is_entered)
        qi_cuda_leave(cuda);
}

/* ---- points ------------------------------------------------------------------------------- */

quire_result qi_cuda_stream_mark(void *state, uint64_t number, uint64_t *value)
{
    qi_cuda *cuda = state;
    qi_cuda_stream *stream = qi_cuda_stream_of(number);
    qi_cuda_entered entered;
    quire_result result = qi_cuda_stream_enter(cuda, &entered);
    if (result)
        return result;
    lock(stream);
    result = qi_cuda_check_capture(cuda, stream);
    if (!result)
        result = add_mark(cuda, stream);
    *value = stream->marked;
    unlock(stream);
    qi_cuda_stream_leave(cuda, &entered);
    return result;
}

quire_result qi_cuda_stream_passed(void *state, uint64_t number, uint64_t *value)
{
    qi_cuda *cuda = state;
    qi_cuda_stream *stream = qi_cuda_stream_of(number);
    qi_cuda_entered entered;
    quire_result result = qi_cuda_stream_enter(cuda, &entered);
    if (result)
        return result;
    lock(stream);
    qi_cu_result code = collect(cuda, stream);
    *value = stream->passed;
    unlock(stream);
    qi_cuda_stream_leave(cuda, &entered);
    return code ? qi_cuda_fail(&cuda->f, code, "cuEventQuery") : QUIRE_SUCCESS;
}

/* The mutex is not held while the driver waits. */
static qi_cu_result synchronize(const qi_cuda *cuda, qi_cuda_stream *stream, qi_cuda_mark *mark)
{
    mark->waiters++;
    unlock(stream);
    qi_cu_result code = cuda->f.EventSynchronize(mark->event);
    lock(stream);
    if (!--mark->waiters && mark->is_retired)
        make_spare(stream, mark);
    return code;
}

static void sleep_for(uint64_t nanoseconds)
{
    const struct timespec time = {.tv_nsec = (long)nanoseconds};
    nanosleep(&time, NULL);
}

/* Looks until the deadline. Under the mutex, which is not held while the thread sleeps. */
static qi_cu_result poll(const qi_cuda *cuda, qi_cuda_stream *stream, uint64_t value,
                         uint64_t deadline)
{
    uint64_t nap = SHORTEST_SLEEP;
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

static qi_cu_result await_value(const qi_cuda *cuda, qi_cuda_stream *stream, uint64_t value,
                                uint64_t nanoseconds)
{
    uint64_t now = qi_clock();
    if (nanoseconds <= UINT64_MAX - now)
        return nanoseconds ? poll(cuda, stream, value, now + nanoseconds) : collect(cuda, stream);
    qi_cuda_mark *mark = find_mark(stream, value);
    qi_cu_result code = mark ? synchronize(cuda, stream, mark) : QI_CUDA_SUCCESS;
    return code ? code : collect(cuda, stream);
}

quire_result qi_cuda_stream_await(void *state, uint64_t number, uint64_t value,
                                  uint64_t nanoseconds, bool *has_passed)
{
    qi_cuda *cuda = state;
    qi_cuda_stream *stream = qi_cuda_stream_of(number);
    qi_cuda_entered entered;
    quire_result result = qi_cuda_stream_enter(cuda, &entered);
    if (result)
        return result;
    lock(stream);
    qi_cu_result code = await_value(cuda, stream, value, nanoseconds);
    *has_passed = stream->passed >= value;
    unlock(stream);
    qi_cuda_stream_leave(cuda, &entered);
    return code ? qi_cuda_fail(&cuda->f, code, "waiting for a point of a stream") : QUIRE_SUCCESS;
}

quire_result qi_cuda_stream_order(void *state, uint64_t later, uint64_t earlier, uint64_t value)
{
    const qi_cuda *cuda = state;
    const qi_cuda_stream *waits = qi_cuda_stream_of(later);
    qi_cuda_stream *awaited = qi_cuda_stream_of(earlier);
    qi_cuda_entered entered;
    quire_result result = qi_cuda_stream_enter(cuda, &entered);
    if (result)
        return result;
    result = qi_cuda_check_capture(cuda, waits);
    lock(awaited); /* the event is not recorded anew meanwhile */
    const qi_cuda_mark *mark = result ? NULL : find_mark(awaited, value);
    qi_cu_result code =
        mark ? cuda->f.StreamWaitEvent(waits->native, mark->event, 0) : QI_CUDA_SUCCESS;
    unlock(awaited);
    qi_cuda_stream_leave(cuda, &entered);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuStreamWaitEvent");
    return result;
}
