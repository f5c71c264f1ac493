/*
 * stream.h - streams of a Vulkan device: a timeline semaphore that the caller signals, or one of
 * quire's own together with a queue.
 *
 * A point is a value of the semaphore. On a stream of quire's own every submission, a mark, a wait
 * for another stream, a copy, signals the next value, so that the points follow each other as the
 * submissions do. What has commands, or refers to another stream, has a record until its value has
 * passed; the records are used again.
 */
#ifndef QUIRE_BACKENDS_VULKAN_STREAM_H
#define QUIRE_BACKENDS_VULKAN_STREAM_H

#include <pthread.h>

#include "backends/vulkan/vulkan.h"

/* What stream_create is given; NULL: a stream of quire's own on the device's queue. */
typedef struct qi_vulkan_stream_description {
    VkSemaphore semaphore; /* the caller's, or VK_NULL_HANDLE */
    quire_vulkan_queue queue;
    const char *name;
} qi_vulkan_stream_description;

typedef struct qi_vulkan_stream qi_vulkan_stream;

typedef struct qi_vulkan_submission {
    struct qi_vulkan_submission *next;
    VkCommandPool pool; /* made when it is first wanted, with one command buffer */
    VkCommandBuffer commands;
    uint64_t value;
    qi_vulkan_stream *earlier; /* whose semaphore it waits for; NULL: for none */
    uint64_t until;            /* of that */
} qi_vulkan_submission;

struct qi_vulkan_stream {
    VkSemaphore semaphore;
    bool is_own;
    qi_vulkan_stream *next_late; /* of those that have ended and on which something still runs */
    quire_vulkan_queue queue;    /* of one of quire's own */
    /* the owner's, and one of each submission that waits for the semaphore */
    qi_atomic_u64 references;
    pthread_mutex_t mutex;              /* of the following; the queue's lock is taken under it */
    uint64_t marked;                    /* signalled by what was submitted */
    qi_vulkan_submission *first, *last; /* not known to have passed, by value */
    qi_vulkan_submission *spare;
};

static inline qi_vulkan_stream *qi_vulkan_stream_of(uint64_t stream)
{
    return (qi_vulkan_stream *)(uintptr_t)stream;
}

/* Gives up a reference; with the last one the record goes, and the semaphore if it is quire's. */
void qi_vulkan_stream_drop(qi_vulkan *vulkan, qi_vulkan_stream *stream);

/* Ends a stream of which nothing runs any more. */
void qi_vulkan_stream_finish(qi_vulkan *vulkan, qi_vulkan_stream *stream);

/* late.c: the same, once nothing runs any more. */
void qi_vulkan_late_end(qi_vulkan *vulkan, qi_vulkan_stream *stream);

/* How far the stream is. Does not wait. */
QUIRE_MUST_USE quire_result qi_vulkan_stream_counter(const qi_vulkan *vulkan,
                                                     const qi_vulkan_stream *stream,
                                                     uint64_t *value);

/* UNSUPPORTED where the owner submits. */
QUIRE_MUST_USE quire_result qi_vulkan_stream_check_own(const qi_vulkan_stream *stream);

/* ---- stream_submit.c: under the stream's mutex ----------------------------------------------- */

/* Gives the records of what has passed, up to this value, back for further submissions. */
void qi_vulkan_stream_recycle(qi_vulkan *vulkan, qi_vulkan_stream *stream, uint64_t passed);

/* A record without commands, one that was used before where there is any. */
QUIRE_MUST_USE quire_result qi_vulkan_stream_take(qi_vulkan *vulkan, qi_vulkan_stream *stream,
                                                  qi_vulkan_submission **submission);

/* Begins its commands, behind a barrier; ends them with one. */
QUIRE_MUST_USE quire_result qi_vulkan_stream_begin(qi_vulkan *vulkan,
                                                   const qi_vulkan_stream *stream,
                                                   qi_vulkan_submission *submission);
QUIRE_MUST_USE quire_result qi_vulkan_stream_end(qi_vulkan *vulkan,
                                                 const qi_vulkan_submission *submission);

/*
 * Submits what the record tells of, NULL: nothing, and signals the next value. The record is the
 * stream's again in any case.
 */
QUIRE_MUST_USE quire_result qi_vulkan_stream_submit(qi_vulkan *vulkan, qi_vulkan_stream *stream,
                                                    qi_vulkan_submission *submission);

/* Puts a record back that was taken and not submitted. */
void qi_vulkan_stream_put(qi_vulkan_stream *stream, qi_vulkan_submission *submission);

/* Ends all records of a stream of which nothing runs any more. */
void qi_vulkan_stream_clear(qi_vulkan *vulkan, qi_vulkan_stream *stream);

#endif
