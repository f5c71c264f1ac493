/*
 * streams.h - streams for the fake backend whose work is done when the test says so: a stream is a
 * counter of marks and one of how far it came. Each call is counted and can be made to fail.
 * Thread-safe but for the state, which one thread sets while no other calls.
 */
#ifndef QUIRE_TESTS_SUPPORT_STREAMS_H
#define QUIRE_TESTS_SUPPORT_STREAMS_H

#include "quire/backend.h"

enum { STREAMS_MOST = 16 };

typedef struct fake_streams {
    uint64_t created, destroyed; /* streams */
    uint64_t marked[STREAMS_MOST + 1], passed[STREAMS_MOST + 1];
    /* the value of each other stream that one is ordered behind */
    uint64_t behind[STREAMS_MOST + 1][STREAMS_MOST + 1];
    uint64_t marks, asked, awaited, orders; /* calls */
    quire_result mark_answers, asked_answers, awaited_answers, order_answers, create_answers;
    bool await_passes; /* whoever waits sees everything pass */
    uint64_t last_nanoseconds;
} fake_streams;

/* Adds the groups of streams and their order to a table, before its device is opened. There is one
   set for a program. */
void streams_offer(quire_backend *table);
fake_streams *streams_state(void);

/* The number that the backend knows a stream by. */
uint64_t streams_number(const quire_stream *stream);

/* Everything marked so far has passed; or up to a value. */
void streams_pass(const quire_stream *stream);
void streams_pass_to(const quire_stream *stream, uint64_t value);

#endif
