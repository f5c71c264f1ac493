/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * event_log.h - a hook that keeps the events of a memory.
 */
#ifndef QUIRE_TESTS_SUPPORT_EVENT_LOG_H
#define QUIRE_TESTS_SUPPORT_EVENT_LOG_H

#include "quire/quire.h"
#include "tests/support/check.h"

typedef struct event_log {
    quire_event events[64];
    uint32_t count;
} event_log;

/* quire_hook.event; `user` is the event_log. */
static inline void event_log_note(void *user, quire_memory *memory, const quire_event *event)
{
    event_log *log = user;
    (void)memory;
    CHECK(log->count < sizeof log->events / sizeof *log->events);
    log->events[log->count++] = *event;
}

/* Keeps the events of these kinds, from now on; 0 means all. */
static inline void event_log_start(event_log *log, quire_memory *memory, quire_event_kinds kinds)
{
    log->count = 0;
    CHECK_OK(quire_memory_set_hook(
        memory, &(quire_hook){.event = event_log_note, .user = log, .kinds = kinds}));
}

static inline void event_log_expect(const event_log *log, uint32_t at, quire_event_kinds kind,
                                    uint64_t size)
{
    CHECK(at < log->count);
    CHECK_EQ(log->events[at].kind, kind);
    CHECK_EQ(log->events[at].size, size);
}

#endif
