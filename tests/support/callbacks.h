/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * callbacks.h - runs a log sink, a hook, an out-of-memory callback, visitors and text sinks that
 * use the memory they are called for, at every place where the library calls one, on the device of
 * any backend.
 */
#ifndef QUIRE_TESTS_SUPPORT_CALLBACKS_H
#define QUIRE_TESTS_SUPPORT_CALLBACKS_H

#include "quire/quire.h"

/* A backend to test the callbacks on. */
typedef struct callbacks_subject {
    uint64_t page; /* bytes: its page granularity, or a multiple */
    uint32_t kind; /* of the memories */
    /* Opens a device with this log and stores it in `*device`, which is NULL until then. */
    void (*open)(quire_log log, quire_device **device);
    /* Called after the device is destroyed. Checks that nothing remains. */
    void (*close)(void);
} callbacks_subject;

/* Runs every place with each set of actions, with 1 and with 4 shards. */
void callbacks_try(const callbacks_subject *subject);

#endif
