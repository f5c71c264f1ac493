/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * streams.h - streams for the fake backend that advance when the test requests it: a stream is a
 * counter of marks and a counter of its progress. Each call is counted and can fail on request.
 * Thread-safe except for the state, which one thread sets while no other thread calls.
 */
#ifndef QUIRE_TESTS_SUPPORT_STREAMS_H
#define QUIRE_TESTS_SUPPORT_STREAMS_H

#include "quire/backend.h"

enum { STREAMS_MAX = 16 };

typedef struct fake_streams {
    uint64_t created, destroyed; /* streams */
    uint64_t marked[STREAMS_MAX + 1], passed[STREAMS_MAX + 1];
    /* the value of each other stream that this one is ordered after */
    uint64_t after[STREAMS_MAX + 1][STREAMS_MAX + 1];
    uint64_t marks, asked, awaited, orders; /* calls */
    quire_result mark_answers, asked_answers, awaited_answers, order_answers, create_answers;
    bool await_passes; /* a wait makes all marks pass */
    uint64_t last_nanoseconds;
} fake_streams;

/* Adds the groups of streams and their order to a table, before its device is opened. A program has
   one set. */
void streams_offer(quire_backend *table);
fake_streams *streams_state(void);

/* The number that the backend uses for a stream. */
uint64_t streams_number(const quire_stream *stream);

/* Everything marked so far passes; or everything up to a value. */
void streams_pass(const quire_stream *stream);
void streams_pass_to(const quire_stream *stream, uint64_t value);

#endif
