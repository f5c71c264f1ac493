/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_answers.h - the scene of a row of cuda_answers.c. cuda_answers_scene.c makes it.
 */
#ifndef QUIRE_TESTS_PLAIN_CUDA_ANSWERS_H
#define QUIRE_TESTS_PLAIN_CUDA_ANSWERS_H

#include <stdbool.h>

#include "tests/support/cuda_direct.h"

enum { ANSWER_BLOCK_SIZE = 4096 };

typedef struct answer_scene {
    qi_cu_context context; /* the primary one, which is current */
    qi_cu_ptr block;       /* of cuMemAlloc */
    void *pinned;          /* of cuMemHostAlloc */
    qi_cu_stream stream, blocking;
    qi_cu_event event; /* without timing, never recorded */
    /* Memory of two granules, mapped at `range` with access, if the device has virtual memory. */
    size_t piece;
    qi_cu_allocation_prop prop;
    qi_cu_handle handle;
    qi_cu_ptr range;
    /* What rows make; close_scene releases it. */
    qi_cu_context second;
    qi_cu_event made_event;
    qi_cu_stream capturing;
    qi_cu_ptr made, reserved;
    qi_cu_handle made_handle;
    int shared; /* a file descriptor if has_shared */
    bool has_shared;
    /* Outputs without a meaning of their own. */
    int number;
    size_t size, total;
    qi_cu_ptr address;
    qi_cu_pool pool, other_pool;
    qi_cu_stream other_stream;
    qi_cu_graph graph;
    qi_cu_capture_status status;
    qi_cu_ipc_handle ipc;
} answer_scene;

/* Two pages, which a row may register. */
enum { ANSWER_AREA_SIZE = 2 * 4096 };
extern char answer_area[ANSWER_AREA_SIZE];

void answer_scene_open(answer_scene *s);

/* Releases what the row left. Memory that the row released already cannot be released twice, so
   errors are ignored. */
void answer_scene_close(answer_scene *s);

/* Ends the capture of the scene. */
qi_cu_result answer_end_capture(answer_scene *s);

#endif
