/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stream.h - streams of a Vulkan device: a timeline semaphore that the caller signals, or a
 * semaphore of quire's own with a queue.
 *
 * A point is a value of the semaphore. On a stream with an own semaphore each submission (a mark, a
 * wait for another stream, a copy, a fill) signals the next value, so that points have the order
 * of the submissions. A submission that has commands, or refers to another stream, has a record
 * until its value has passed. The records are reused. So is the memory through which copies from
 * host memory go: each stream has its own, because its parts return in the order of the stream.
 */
#ifndef QUIRE_BACKENDS_VULKAN_STREAM_H
#define QUIRE_BACKENDS_VULKAN_STREAM_H

#include <pthread.h>

#include "backends/vulkan/staging.h"
#include "quire/backend.h"

/* The description that stream_create receives. NULL: an own semaphore on the device's queue. */
typedef struct qi_vulkan_stream_description {
    VkSemaphore semaphore; /* the caller's, or VK_NULL_HANDLE */
    quire_vulkan_queue queue;
    const char *name;
} qi_vulkan_stream_description;

typedef struct qi_vulkan_stream qi_vulkan_stream;

typedef struct qi_vulkan_submission {
    struct qi_vulkan_submission *next;
    VkCommandPool pool; /* holds one command buffer; created when a submission first has commands */
    VkCommandBuffer commands;
    uint64_t value;            /* that the submission signals */
    uint64_t staged_to;        /* end of its part of the stream's staging memory; 0: it has none */
    qi_vulkan_stream *earlier; /* the submission waits for its semaphore; NULL: for none */
    uint64_t until;            /* the value of `earlier` that it waits for */
} qi_vulkan_submission;

struct qi_vulkan_stream {
    VkSemaphore semaphore;
    bool is_own;                     /* the semaphore is quire's */
    qi_vulkan_stream *next_deferred; /* in the list of destroyed streams with running work */
    quire_vulkan_queue queue;        /* of a stream with an own semaphore */
    /* one for the owner, and one for each submission that waits for the semaphore */
    qi_atomic_u64 references;
    pthread_mutex_t mutex; /* protects the members below; the queue is locked while it is held */
    uint64_t marked;       /* the last value that a submission signals */
    qi_vulkan_submission *first, *last; /* not known to have passed, in the order of values */
    qi_vulkan_submission *spare;        /* records to reuse */
    qi_vulkan_staging_memory staging;   /* for copies from host memory; made for the first one */
    uint64_t head, tail;                /* of the ring in it */
};

static inline qi_vulkan_stream *qi_vulkan_stream_of(uint64_t stream)
{
    return (qi_vulkan_stream *)(uintptr_t)stream;
}

/* ---- entries of the backend table --------------------------------------------------------- */

quire_result qi_vulkan_stream_create(void *state, const void *description, uint64_t *stream);
void qi_vulkan_stream_destroy(void *state, uint64_t stream);
quire_result qi_vulkan_stream_mark(void *state, uint64_t stream, uint64_t *value);
quire_result qi_vulkan_stream_passed(void *state, uint64_t stream, uint64_t *value);
quire_result qi_vulkan_stream_await(void *state, uint64_t stream, uint64_t value,
                                    uint64_t nanoseconds, bool *has_passed);
quire_result qi_vulkan_stream_order(void *state, uint64_t later, uint64_t earlier, uint64_t value);
quire_result qi_vulkan_stream_copy(void *state, uint64_t stream, const quire_copy_job *job);
quire_result qi_vulkan_stream_fill(void *state, uint64_t stream, const quire_native_page *page,
                                   uint64_t offset, uint64_t size, uint8_t value);
quire_result qi_vulkan_stream_write_many(void *state, uint64_t stream,
                                         const quire_page_copy *copies, uint64_t count);

/* ---- streams ------------------------------------------------------------------------------ */

/* Destroys the records of a stream on which nothing is running, and releases the owner's
   reference. */
void qi_vulkan_stream_destroy_now(qi_vulkan *vulkan, qi_vulkan_stream *stream);

/* Reads the current value of the semaphore. Does not wait. */
QUIRE_MUST_USE quire_result qi_vulkan_stream_counter(const qi_vulkan *vulkan,
                                                     const qi_vulkan_stream *stream,
                                                     uint64_t *value);

#endif
