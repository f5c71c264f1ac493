/*
 * stream_steps.h - steps that tests of streams share. Each of them must succeed.
 */
#ifndef QUIRE_TESTS_SUPPORT_STREAM_STEPS_H
#define QUIRE_TESTS_SUPPORT_STREAM_STEPS_H

#include "quire/stream.h"
#include "tests/support/check.h"

static inline quire_point mark(quire_stream *stream)
{
    quire_point point;
    CHECK_OK(quire_stream_mark(stream, &point));
    return point;
}

static inline bool has_passed(quire_point point)
{
    bool passed = false;
    CHECK_OK(quire_point_has_passed(&point, &passed));
    return passed;
}

/* Waits until all work of the stream is done. */
static inline void finish(quire_stream *stream)
{
    quire_point point = mark(stream);
    CHECK_OK(quire_point_await(&point, QUIRE_FOREVER));
}

#endif
