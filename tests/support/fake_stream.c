/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fake_stream.c - streams of the fake backend (see fake.h): lists of work that a test executes.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/fake.h"

typedef struct fake_stream fake_stream;

typedef enum fake_kind { FAKE_NOTHING = 0, FAKE_WAIT, FAKE_COPY, FAKE_FILL } fake_kind;

typedef struct fake_work {
    struct fake_work *next;
    fake_kind kind;
    quire_copy_job job;
    quire_native_page to, from; /* of the job or the fill */
    uint64_t offset, size;
    uint8_t byte;
    fake_stream *earlier; /* of a wait */
    uint64_t value;
} fake_work;

struct fake_stream {
    fake_backend *fake;
    fake_work *first, **last;
    uint64_t submitted, done; /* values */
};

static fake_stream *stream_of(uint64_t native)
{
    return (fake_stream *)(uintptr_t)native;
}

/* Requires the lock. */
static void submit(fake_stream *stream, const fake_work *work)
{
    fake_work *added = malloc(sizeof *added);
    if (!added)
        abort();
    *added = *work;
    added->next = NULL;
    *stream->last = added;
    stream->last = &added->next;
    stream->submitted++;
}

static void submit_locked(fake_stream *stream, const fake_work *work)
{
    pthread_mutex_lock(&stream->fake->lock);
    submit(stream, work);
    pthread_mutex_unlock(&stream->fake->lock);
}

static void do_work(const fake_stream *stream, fake_work *work)
{
    if (work->kind == FAKE_FILL)
        memset(fake_bytes(&work->to) + work->offset, work->byte, work->size);
    if (work->kind != FAKE_COPY)
        return;
    work->job.to = work->job.to ? &work->to : NULL;
    work->job.from = work->job.from ? &work->from : NULL;
    fake_do_copy(stream->fake, &work->job);
}

/* Requires the lock. Executes the first piece; `forces` executes what it waits for. Returns false
   if it cannot be executed yet. */
static bool step(fake_stream *stream, bool forces)
{
    fake_work *work = stream->first;
    if (!work)
        return false;
    if (work->kind == FAKE_WAIT)
        while (work->earlier->done < work->value)
            if (!forces || !step(work->earlier, true))
                return false;
    do_work(stream, work);
    stream->first = work->next;
    if (!stream->first)
        stream->last = &stream->first;
    stream->done++;
    free(work);
    return true;
}

/* ---- for tests ---------------------------------------------------------------------------- */

uint64_t fake_stream_submit(uint64_t native)
{
    fake_stream *stream = stream_of(native);
    submit_locked(stream, &(fake_work){.kind = FAKE_NOTHING});
    return stream->submitted;
}

uint64_t fake_stream_run(uint64_t native, uint64_t count)
{
    fake_stream *stream = stream_of(native);
    uint64_t done = 0;
    pthread_mutex_lock(&stream->fake->lock);
    while (done < count && step(stream, false))
        done++;
    pthread_mutex_unlock(&stream->fake->lock);
    return done;
}

uint64_t fake_stream_waiting(uint64_t native)
{
    fake_stream *stream = stream_of(native);
    pthread_mutex_lock(&stream->fake->lock);
    uint64_t waiting = stream->submitted - stream->done;
    pthread_mutex_unlock(&stream->fake->lock);
    return waiting;
}

/* ---- the table's entries ------------------------------------------------------------------ */

static quire_result create(void *state, const void *description, uint64_t *native)
{
    fake_backend *fake = state;
    quire_result result = fake_enter(fake, FAKE_STREAM_CREATE);
    (void)description;
    if (result)
        return result;
    fake_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        abort();
    *stream = (fake_stream){.fake = fake, .last = &stream->first, .submitted = 1, .done = 1};
    pthread_mutex_lock(&fake->lock);
    fake->streams++;
    pthread_mutex_unlock(&fake->lock);
    *native = (uintptr_t)stream;
    return QUIRE_SUCCESS;
}

/* Its work is dropped with it: no caller queries its points any more. */
static void destroy(void *state, uint64_t native)
{
    fake_backend *fake = state;
    fake_stream *stream = stream_of(native);
    if (stream->fake != fake)
        abort();
    pthread_mutex_lock(&fake->lock);
    while (step(stream, true)) {
    }
    fake->streams--;
    pthread_mutex_unlock(&fake->lock);
    if (stream->first)
        abort();
    free(stream);
}

static quire_result mark(void *state, uint64_t native, uint64_t *value)
{
    quire_result result = fake_enter(state, FAKE_STREAM_MARK);
    fake_stream *stream = stream_of(native);
    if (result)
        return result;
    pthread_mutex_lock(&stream->fake->lock);
    *value = stream->submitted;
    pthread_mutex_unlock(&stream->fake->lock);
    return QUIRE_SUCCESS;
}

static quire_result passed(void *state, uint64_t native, uint64_t *value)
{
    quire_result result = fake_enter(state, FAKE_STREAM_PASSED);
    fake_stream *stream = stream_of(native);
    if (result)
        return result;
    pthread_mutex_lock(&stream->fake->lock);
    *value = stream->done;
    pthread_mutex_unlock(&stream->fake->lock);
    return QUIRE_SUCCESS;
}

static quire_result await(void *state, uint64_t native, uint64_t value, uint64_t nanoseconds,
                          bool *has_passed)
{
    quire_result result = fake_enter(state, FAKE_STREAM_AWAIT);
    fake_stream *stream = stream_of(native);
    if (result)
        return result;
    pthread_mutex_lock(&stream->fake->lock);
    while (nanoseconds == UINT64_MAX && stream->done < value)
        if (!step(stream, true))
            abort(); /* the wait would never end */
    *has_passed = stream->done >= value;
    pthread_mutex_unlock(&stream->fake->lock);
    return QUIRE_SUCCESS;
}

static quire_result order(void *state, uint64_t later, uint64_t earlier, uint64_t value)
{
    quire_result result = fake_enter(state, FAKE_STREAM_ORDER);
    if (stream_of(earlier)->fake != state)
        abort();
    if (!result)
        submit_locked(
            stream_of(later),
            &(fake_work){.kind = FAKE_WAIT, .earlier = stream_of(earlier), .value = value});
    return result;
}

static quire_result copy(void *state, uint64_t native, const quire_copy_job *job)
{
    fake_backend *fake = state;
    quire_result result = fake_enter(fake, FAKE_STREAM_COPY);
    if (result)
        return result;
    fake_work work = {.kind = FAKE_COPY, .job = *job};
    if (job->to)
        work.to = *job->to;
    if (job->from)
        work.from = *job->from;
    pthread_mutex_lock(&fake->lock);
    fake->last_copy = *job;
    submit(stream_of(native), &work);
    pthread_mutex_unlock(&fake->lock);
    return QUIRE_SUCCESS;
}

quire_result fake_stream_write_many(void *state, uint64_t native, const quire_page_copy *copies,
                                    uint64_t count)
{
    fake_backend *fake = state;
    quire_result result = fake_enter(fake, FAKE_STREAM_WRITE_MANY);
    if (!count)
        abort();
    if (result)
        return result;
    pthread_mutex_lock(&fake->lock);
    fake->longest_list = count > fake->longest_list ? count : fake->longest_list;
    for (uint64_t i = 0; i < count; i++) {
        fake_work work = {.kind = FAKE_COPY, .to = *copies[i].page};
        work.job = (quire_copy_job){.to = &work.to,
                                    .to_offset = copies[i].offset,
                                    .host_from = copies[i].host,
                                    .size = copies[i].size,
                                    .rows = 1,
                                    .slices = 1};
        submit(stream_of(native), &work);
    }
    pthread_mutex_unlock(&fake->lock);
    return QUIRE_SUCCESS;
}

static quire_result fill(void *state, uint64_t native, const quire_native_page *page,
                         uint64_t offset, uint64_t size, uint8_t value)
{
    quire_result result = fake_enter(state, FAKE_STREAM_FILL);
    if (!size || offset > fake_usable(page) || size > fake_usable(page) - offset)
        abort();
    if (!result)
        submit_locked(
            stream_of(native),
            &(fake_work){
                .kind = FAKE_FILL, .to = *page, .offset = offset, .size = size, .byte = value});
    return result;
}

void fake_offer_streams(fake_backend *fake)
{
    fake->table.features |= QUIRE_BACKEND_STREAMS | QUIRE_BACKEND_STREAM_ORDER |
                            QUIRE_BACKEND_STREAM_COPY | QUIRE_BACKEND_STREAM_FILL;
    fake->table.stream_create = create;
    fake->table.stream_destroy = destroy;
    fake->table.stream_mark = mark;
    fake->table.stream_passed = passed;
    fake->table.stream_await = await;
    fake->table.stream_order = order;
    fake->table.stream_copy = copy;
    fake->table.stream_fill = fill;
}
