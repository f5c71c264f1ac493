/*
 * queue.h - work given to queues, and the fences and semaphores that tell of it.
 *
 * A submission waits in its queue until the semaphores it waits for allow it, and is then done at
 * once, in the thread that made that so; with FV_LATE only when somebody waits for it. Everything
 * runs under the driver's lock.
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
    uint64_t value; /* of a binary one: 1 where it is signalled */
} fv_semaphore;

/* A semaphore with the value to wait for or to set; 1 for a binary one. */
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
    uint64_t *used; /* handles of objects that are pending because of it */
    uint32_t wait_count, signal_count, buffer_count, change_count, used_count, used_room;
};

/* queue.c: does what can be done; whether anything was. */
bool fv_progress(fv_device *device);

/* Work is waited for: also does what FV_LATE put off. */
static inline void fv_catch_up(fv_device *device)
{
    while (fv_progress(device))
        ;
}

/* Something changed by which work may go on: does it, unless it is put off. */
static inline void fv_go_on(fv_device *device)
{
    if (!(fv_driver_of(device)->options.flags & FV_LATE))
        fv_catch_up(device);
    pthread_cond_broadcast(&fv_driver_of(device)->changed);
}

/* Gives up all work of a device: it is lost or destroyed. */
void fv_drop_work(fv_device *device);
bool fv_has_work(const fv_device *device);

void fv_queue_append(fv_queue *queue, fv_submission *work);

/* A fence belongs to the last of several submissions, or to an empty one where there is none. */
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

/* sync.c: waits until the time, with the driver's lock; false: it is over. UINT64_MAX: for ever. */
bool fv_wait_until(fv_driver *driver, uint64_t deadline);
uint64_t fv_deadline(uint64_t timeout);

#endif
