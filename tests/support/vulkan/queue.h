/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * queue.h - submitted work, and the fences and semaphores that it signals.
 *
 * A submission stays in its queue until the semaphores that it waits for are signalled. Then the
 * thread that signalled the last one executes it. With FV_LATE it is executed only when a call
 * waits for it. The driver's lock protects everything.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_QUEUE_H
#define QUIRE_TESTS_SUPPORT_VULKAN_QUEUE_H

#include "tests/support/vulkan/command.h"

typedef struct fv_fence {
    fv_object object;
    bool signalled;
} fv_fence;

typedef struct fv_semaphore {
    fv_object object;
    bool timeline;
    uint64_t value; /* of a binary semaphore: 1 if it is signalled */
} fv_semaphore;

/* A semaphore and the value to wait for or to signal; 1 for a binary one. */
typedef struct fv_point {
    uint64_t semaphore;
    uint64_t value;
} fv_point;

/* A change of sparse binding. */
typedef struct fv_sparse_change {
    uint64_t resource;
    fv_piece piece;
} fv_sparse_change;

struct fv_submission {
    fv_submission *next;
    fv_call call;
    uint64_t fence; /* 0: none */
    fv_point *waits, *signals;
    fv_command_buffer **buffers;
    fv_sparse_change *changes;
    uint64_t *used; /* handles of the objects that it uses */
    uint32_t wait_count, signal_count, buffer_count, change_count, used_count, used_room;
};

/* queue.c: executes what is ready. Returns whether anything was. */
bool fv_progress(fv_device *device);

/* Called when a call waits: also executes what FV_LATE deferred. */
static inline void fv_catch_up(fv_device *device)
{
    while (fv_progress(device))
        ;
}

/* Called after a change that may make work ready: executes it, except with FV_LATE. */
static inline void fv_go_on(fv_device *device)
{
    if (!(fv_driver_of(device)->options.flags & FV_LATE))
        fv_catch_up(device);
    pthread_cond_broadcast(&fv_driver_of(device)->changed);
}

/* Drops all work of a device that is lost or destroyed. */
void fv_drop_work(fv_device *device);
bool fv_has_work(const fv_device *device);

void fv_queue_append(fv_queue *queue, fv_submission *work);

/* A fence belongs to the last of several submissions, or to an empty one if there are none. */
void fv_queue_fence(fv_queue *queue, fv_call call, fv_submission *last, VkFence fence);

/* sparse.c */
void fv_sparse_bind(fv_device *device, const fv_sparse_change *change);

/* submission.c */
fv_submission *fv_submission_new(fv_call call);
void fv_submission_end(fv_driver *driver, fv_submission *work);
void fv_submission_use(fv_submission *work, fv_object *object);
void fv_submission_take(fv_queue *queue, fv_submission *work, VkCommandBuffer buffer);
void fv_submission_wait(fv_device *device, fv_submission *work, VkSemaphore semaphore,
                        uint64_t value);
void fv_submission_signal(fv_device *device, fv_submission *work, VkSemaphore semaphore,
                          uint64_t value);
void fv_submission_fence(fv_device *device, fv_submission *work, VkFence fence);

/* sync.c: waits until a point in time. Requires the driver's lock. Returns false after that time.
   UINT64_MAX: no timeout. */
bool fv_wait_until(fv_driver *driver, uint64_t deadline);
uint64_t fv_deadline(uint64_t timeout);

#endif
