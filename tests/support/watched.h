/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * watched.h - a memory of a checked build on the fake backend: its log, and bytes of its pages
 * changed as a stray write would change them, past the tools that would report it.
 */
#ifndef QUIRE_TESTS_SUPPORT_WATCHED_H
#define QUIRE_TESTS_SUPPORT_WATCHED_H

#include "quire/quire.h"
#include "tests/support/fake.h"

/* Kinds of the fake backend. */
enum { KIND_DEVICE, KIND_COHERENT, KIND_CACHED, KIND_DEVICE_MAPPED, KINDS };

typedef struct watched {
    fake_backend fake;
    quire_device *device;
    quire_memory *memory;
    quire_allocation allocation; /* made last */
    char log[8192];              /* warnings and errors, a line each */
    /* the lines are dropped, for threads that write at the same time */
    bool is_quiet;
} watched;

void watched_prepare(watched *w);
void watched_open(watched *w, const quire_memory_options *options);
void watched_make(watched *w, uint32_t kind); /* Opens both, with pages of 64 KiB. */

/* A test of a memory of each kind, `kind`, with the object `w`. */
#define UNIT_EACH_KIND(suite, name)                                                                \
    UNIT_EACH(suite, name, watched, w, kind, 0, KINDS, watched_make(w, kind), watched_end)

/* Destroys both and checks that the backend has no live objects. */
void watched_end(watched *w);

quire_allocation watched_allocate(watched *w, uint64_t size, const char *name);
quire_allocation_info watched_info(watched *w, quire_allocation allocation);

/* The address of an allocation, which stays usable after its free. */
quire_native watched_native(watched *w, quire_allocation allocation);

/* Changes, or returns, the byte at a distance from an allocation's first one. */
void watched_spoil(watched *w, const quire_native *native, int64_t at);
unsigned char watched_byte(watched *w, const quire_native *native, int64_t at);

/* Empties the quarantine and keeps the pages. */
void watched_settle(watched *w);

#endif
