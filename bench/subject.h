/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * subject.h - a table of functions that workloads run on: a space or memory of quire, or a peer.
 *
 * You can add a peer: build a shared object that includes only this header and defines
 * `const subject bench_subject`, and pass it to bench_space with --peer. All functions of a subject
 * are called from one thread. Several states can exist at the same time.
 */
#ifndef QUIRE_BENCH_SUBJECT_H
#define QUIRE_BENCH_SUBJECT_H

#include <stddef.h>
#include <stdint.h>

typedef enum subject_kind {
    SUBJECT_SPACE,     /* a space of quire */
    SUBJECT_PEER,      /* another allocator for the same task */
    SUBJECT_REFERENCE, /* a reference for fragmentation, not for speed */
    SUBJECT_HEAP,      /* a malloc: a lower bound of the cost; its ranges have no offset */
    SUBJECT_FLOOR,     /* does nothing: the cost of the harness */
    SUBJECT_MEMORY     /* a memory of quire; see bench/memories.h */
} subject_kind;

typedef struct subject_arena {
    uint64_t size;   /* bytes */
    uint64_t unit;   /* smallest useful size, a power of two */
    uint64_t ranges; /* maximum number of live ranges */
} subject_arena;

typedef struct subject {
    const char *name;
    subject_kind kind;
    const void *how; /* options for create, private to the subject */

    /*
     * Returns NULL, or the reason why the subject is unavailable, valid until the next call. If the
     * function is NULL, the subject is always available.
     */
    const char *(*absent)(const struct subject *self);

    /* Creates an empty arena. Returns NULL if host memory is exhausted. */
    void *(*create)(const struct subject *self, const subject_arena *arena);
    void (*destroy)(void *state);

    /* Returns a handle other than 0 and sets *offset, or returns 0 if the arena is full. */
    uint64_t (*allocate)(void *state, uint64_t size, uint64_t alignment, uint64_t *offset);
    void (*free)(void *state, uint64_t handle);

    /* Frees several ranges in one call. If NULL, they are freed one by one. */
    void (*free_batch)(void *state, const uint64_t *handles, size_t count);

    /* Current host bytes of metadata. If NULL, the bytes that malloc handed out since create. */
    uint64_t (*metadata)(void *state);
} subject;

#endif
