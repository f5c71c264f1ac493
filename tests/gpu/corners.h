/*
 * corners.h - what the cases of corners.c share, and those of corner_captures.c.
 */
#ifndef QUIRE_TESTS_GPU_CORNERS_H
#define QUIRE_TESTS_GPU_CORNERS_H

#include "quire/cuda.h"
#include "quire/quire.h"

/* A device with one memory, as most programs have. */
typedef struct corner {
    quire_device *device;
    quire_cuda_info info;
    quire_memory *memory;
} corner;

/* NULL settings and options mean {0}. */
void corner_open(corner *c, const quire_cuda_settings *settings,
                 const quire_memory_options *options);
void corner_close(corner *c);
quire_allocation corner_allocate(corner *c, uint64_t size);

/* corner_captures.c: a stream captures in each mode, while quire creates, fills and destroys pages
   in the thread that captures, or in another one. */
void capture_in_the_same_thread_survives(void);
void capture_in_another_thread_survives(void);

#endif
