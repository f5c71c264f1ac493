/*
 * queue.h - work of the fake CUDA driver: pieces that wait in streams for the logical clock.
 *
 * When a piece is queued it is known when it will be done: after what lies before it in its stream,
 * after the events that the stream waits for, and, in default streams and those that wait for them,
 * after each other. Pieces are done in the order of these times.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_QUEUE_H
#define QUIRE_TESTS_SUPPORT_CUDA_QUEUE_H

#include "tests/support/cuda/context.h"

typedef struct fc_stream {
    fc_object object;
    uint64_t context;
    unsigned flags;
    uint64_t end;                 /* of the clock: all its work is done then */
    bool is_capturing, is_broken; /* a capture, and it cannot come to a graph any more */
    qi_cu_capture_mode mode;
    const void *thread; /* that began it */
} fc_stream;

typedef struct fc_event {
    fc_object object;
    uint64_t context;
    unsigned flags;
    uint64_t finish; /* of what was recorded last; 0: nothing was */
} fc_event;

typedef struct fc_fill {
    uint64_t to, count;
    uint32_t value, width; /* bytes of an element: 1 or 4 */
} fc_fill;

typedef struct fc_work {
    struct fc_work *next;
    uint64_t finish, sequence;
    uint64_t context;
    int device; /* of the context */
    fc_call call;
    /* false: it touched what it may not, and its device is lost */
    bool (*run)(struct fc_work *work);
    qi_cu_memcpy3d copy;
    int from_device, to_device;
    unsigned char *staged; /* a copy of what a program may change after the call */
    fc_fill fill;
    qi_cu_host_function function;
    void *user;
    uint64_t address; /* to be freed */
    qi_cu_array_map_info tiles;
} fc_work;

/* Queues a copy of it, for a context and one of its streams; INVALID_HANDLE: it is none of its. */
qi_cu_result fc_queue(fc_context *context, qi_cu_stream stream, const fc_work *work);

/* Does all work whose time comes until then. */
void fc_run_until(uint64_t time);

/* Waits; what the device answers from then on, if it was lost. */
qi_cu_result fc_finish_stream(fc_context *context, qi_cu_stream stream);
qi_cu_result fc_finish_context(fc_context *context);
void fc_finish_device(int device);

/* Work that is not done copies or fills something in the range of addresses. */
bool fc_work_touches(uint64_t base, uint64_t size);

/* The end of the stream, NULL: it is none of the context's, after a message. */
uint64_t *fc_line_of(fc_call call, fc_context *context, qi_cu_stream stream);

/* Forgets all work. */
void fc_work_end(void);

#endif
