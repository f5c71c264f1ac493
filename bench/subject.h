/*
 * subject.h - what a workload can run on: a space of this project or a peer, behind one table.
 *
 * A peer of your own: a shared object that defines `const subject bench_subject`, built with this
 * header alone and handed to bench_space with --peer. All functions of a subject are called from
 * one thread; several states may live at a time.
 */
#ifndef QUIRE_BENCH_SUBJECT_H
#define QUIRE_BENCH_SUBJECT_H

#include <stddef.h>
#include <stdint.h>

typedef enum subject_kind {
    SUBJECT_SPACE,     /* of this project */
    SUBJECT_PEER,      /* does the same job */
    SUBJECT_REFERENCE, /* for fragmentation: speed is not its aim */
    SUBJECT_HEAP,  /* host memory: a floor of cost, not the same job; its ranges have no offset */
    SUBJECT_FLOOR, /* nothing at all: what the harness itself costs */
    SUBJECT_MEMORY /* of this project; see bench/memories.h */
} subject_kind;

typedef struct subject_arena {
    uint64_t size;   /* bytes */
    uint64_t unit;   /* smallest unit worth having, a power of two */
    uint64_t ranges; /* most that will be live */
} subject_arena;

typedef struct subject {
    const char *name;
    subject_kind kind;
    const void *how; /* the subject's own, for create */

    /*
     * Why it cannot be had here, or NULL when it can. The text lives until the next call. NULL
     * function: it always can.
     */
    const char *(*absent)(const struct subject *self);

    /* An empty arena; NULL when there is no memory for it. */
    void *(*create)(const struct subject *self, const subject_arena *arena);
    void (*destroy)(void *state);

    /* A handle other than 0 and the offset, or 0 when there is no room. */
    uint64_t (*allocate)(void *state, uint64_t size, uint64_t alignment, uint64_t *offset);
    void (*free)(void *state, uint64_t handle);

    /* Frees several at once; NULL: one by one. */
    void (*free_batch)(void *state, const uint64_t *handles, size_t count);

    /* Host bytes of its records now; NULL: what malloc handed out since create. */
    uint64_t (*metadata)(void *state);
} subject;

#endif
