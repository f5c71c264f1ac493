/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * queue.h - work of the fake CUDA driver: pieces that wait in streams for the logical clock.
 *
 * The end of a piece is known when it is queued: after the earlier work of its stream, after the
 * events that the stream waits for, and, in default streams and streams that wait for them, after
 * each other's work. Pieces run in the order of these times.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_QUEUE_H
#define QUIRE_TESTS_SUPPORT_CUDA_QUEUE_H

#include "tests/support/cuda/context.h"

typedef struct fc_stream {
    fc_object object;
    uint64_t context;
    unsigned flags;
    uint64_t end;                 /* when all its work is done */
    uint64_t owner;               /* the thread whose default stream it is; 0: it was created */
    bool is_capturing, is_broken; /* whether it captures, and whether the capture is invalid */
    qi_cu_capture_mode mode;
    uint64_t thread;       /* the thread that began the capture */
    struct fc_work *nodes; /* of the graph that it captures */
} fc_stream;

typedef struct fc_event {
    fc_object object;
    uint64_t context;
    unsigned flags;
    uint64_t finish;  /* when the work before the last record is done; 0: never recorded */
    bool is_captured; /* the last record is part of a graph */
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
    /* returns false if it accessed forbidden memory: its device is then lost */
    bool (*run)(struct fc_work *work);
    qi_cu_memcpy3d copy;
    int from_device, to_device;
    unsigned char *staged; /* a copy of memory that the program may change after the call */
    fc_fill fill;
    qi_cu_host_function function;
    void *user;
    uint64_t address; /* address to free */
    qi_cu_array_map_info tiles;
} fc_work;

/* Queues a copy of the work for a stream of a context. INVALID_HANDLE if the stream is not one of
   its streams. Work of a graph keeps the context that it was captured in. */
qi_cu_result fc_queue(fc_context *context, qi_cu_stream stream, const fc_work *work);

/* Runs all work whose time has come. */
void fc_run_until(uint64_t time);

/* Waits. Returns the error of the device if it is lost. */
qi_cu_result fc_finish_stream(fc_context *context, qi_cu_stream stream);
qi_cu_result fc_finish_context(fc_context *context);
void fc_finish_device(int device);

/* Returns true if queued work copies or fills something in the range. */
bool fc_work_touches(uint64_t base, uint64_t size);

/* Returns true for the legacy default stream, which has no fc_stream. */
bool fc_is_legacy(qi_cu_stream stream);

/* Finds a stream other than the legacy one. CU_STREAM_PER_THREAD is that of the calling thread in
   the context, which may be NULL for other streams. NULL and a message if there is none. */
fc_stream *fc_stream_find(fc_call call, const fc_context *context, qi_cu_stream stream);

/* The end time of a stream; NULL and a message if the stream does not belong to the context. */
uint64_t *fc_line_of(fc_call call, fc_context *context, qi_cu_stream stream);

/* When work that is queued now begins, which is when all work before it is done. The stream belongs
   to the context. */
uint64_t fc_start_of(fc_call call, fc_context *context, qi_cu_stream stream);

/* Drops all work. */
void fc_work_end(void);

#endif
