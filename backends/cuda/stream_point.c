/*
 * stream_point.c - points of streams: marking, querying, waiting, ordering. All static functions on
 * marks require the mutex of the stream and the context.
 */
#include <time.h>

#include "backends/cuda/stream.h"
#include "src/base/result.h"
#include "src/base/system.h"

/* The driver's wait has no timeout, so a wait with one polls. The sleeps double from the first to
   the last, in nanoseconds: short at first, for copies that take microseconds. */
static const uint64_t MIN_SLEEP = 50000, MAX_SLEEP = 1000000; /* nanoseconds */

/* ---- marks ------------------------------------------------------------------------------ */

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

/* ---- points ----------------------------------------------------------------------------- */

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
