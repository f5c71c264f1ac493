/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * streams.c - see streams.h.
 */
#include "tests/support/streams.h"

#include <pthread.h>
#include <stdlib.h>

static fake_streams now;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static quire_result answer(quire_result result)
{
    return result ? quire_backend_fail(result, -7, "a stream was made to fail") : QUIRE_SUCCESS;
}

static quire_result create(void *state, const void *description, uint64_t *stream)
{
    (void)state;
    pthread_mutex_lock(&lock);
    quire_result result = now.create_answers;
    if (!result && now.created == STREAMS_MAX)
        abort();
    if (!result)
        *stream = ++now.created;
    if (!result && description)
        now.marked[*stream] = *(const uint64_t *)description;
    pthread_mutex_unlock(&lock);
    return answer(result);
}

static void destroy(void *state, uint64_t stream)
{
    (void)state;
    pthread_mutex_lock(&lock);
    if (!stream || stream > now.created)
        abort();
    now.destroyed++;
    pthread_mutex_unlock(&lock);
}

static quire_result mark(void *state, uint64_t stream, uint64_t *value)
{
    (void)state;
    pthread_mutex_lock(&lock);
    quire_result result = now.mark_answers;
    now.marks++;
    if (!result)
        *value = ++now.marked[stream];
    pthread_mutex_unlock(&lock);
    return answer(result);
}

static quire_result passed(void *state, uint64_t stream, uint64_t *value)
{
    (void)state;
    pthread_mutex_lock(&lock);
    quire_result result = now.asked_answers;
    now.asked++;
    *value = now.passed[stream];
    pthread_mutex_unlock(&lock);
    return answer(result);
}

static quire_result await(void *state, uint64_t stream, uint64_t value, uint64_t nanoseconds,
                          bool *has_passed)
{
    (void)state;
    pthread_mutex_lock(&lock);
    quire_result result = now.awaited_answers;
    now.awaited++;
    now.last_nanoseconds = nanoseconds;
    if (now.await_passes)
        now.passed[stream] = now.marked[stream];
    *has_passed = now.passed[stream] >= value;
    pthread_mutex_unlock(&lock);
    return answer(result);
}

static quire_result order(void *state, uint64_t later, uint64_t earlier, uint64_t value)
{
    (void)state;
    pthread_mutex_lock(&lock);
    quire_result result = now.order_answers;
    now.orders++;
    if (!result && now.after[later][earlier] < value)
        now.after[later][earlier] = value;
    pthread_mutex_unlock(&lock);
    return answer(result);
}

void streams_offer(quire_backend *table)
{
    now = (fake_streams){0};
    table->features |= QUIRE_BACKEND_STREAMS | QUIRE_BACKEND_STREAM_ORDER;
    table->stream_create = create;
    table->stream_destroy = destroy;
    table->stream_mark = mark;
    table->stream_passed = passed;
    table->stream_await = await;
    table->stream_order = order;
}

fake_streams *streams_state(void)
{
    return &now;
}

uint64_t streams_number(const quire_stream *stream)
{
    return quire_stream_native(stream);
}

void streams_pass_to(const quire_stream *stream, uint64_t value)
{
    pthread_mutex_lock(&lock);
    now.passed[streams_number(stream)] = value;
    pthread_mutex_unlock(&lock);
}

void streams_pass(const quire_stream *stream)
{
    pthread_mutex_lock(&lock);
    now.passed[streams_number(stream)] = now.marked[streams_number(stream)];
    pthread_mutex_unlock(&lock);
}
