/*
 * streams.c - see streams.h.
 */
#include "tests/support/streams.h"

#include <stdlib.h>

static fake_streams now;

static quire_result answer(quire_result result)
{
    return result ? quire_backend_fail(result, -7, "a stream was made to fail") : QUIRE_SUCCESS;
}

static quire_result create(void *state, const void *description, uint64_t *stream)
{
    (void)state;
    if (now.create_answers)
        return answer(now.create_answers);
    if (now.created == STREAMS_MOST)
        abort();
    *stream = ++now.created;
    if (description)
        now.marked[*stream] = *(const uint64_t *)description;
    return QUIRE_SUCCESS;
}

static void destroy(void *state, uint64_t stream)
{
    (void)state;
    if (!stream || stream > now.created)
        abort();
    now.destroyed++;
}

static quire_result mark(void *state, uint64_t stream, uint64_t *value)
{
    (void)state;
    now.marks++;
    if (now.mark_answers)
        return answer(now.mark_answers);
    *value = ++now.marked[stream];
    return QUIRE_SUCCESS;
}

static quire_result passed(void *state, uint64_t stream, uint64_t *value)
{
    (void)state;
    now.asked++;
    *value = now.passed[stream];
    return answer(now.asked_answers);
}

static quire_result await(void *state, uint64_t stream, uint64_t value, uint64_t nanoseconds,
                          bool *has_passed)
{
    (void)state;
    now.awaited++;
    now.last_nanoseconds = nanoseconds;
    if (now.await_passes)
        now.passed[stream] = now.marked[stream];
    *has_passed = now.passed[stream] >= value;
    return answer(now.awaited_answers);
}

static quire_result order(void *state, uint64_t later, uint64_t earlier, uint64_t value)
{
    (void)state;
    now.orders++;
    if (!now.order_answers && now.behind[later][earlier] < value)
        now.behind[later][earlier] = value;
    return answer(now.order_answers);
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
    now.passed[streams_number(stream)] = value;
}

void streams_pass(const quire_stream *stream)
{
    streams_pass_to(stream, now.marked[streams_number(stream)]);
}
