/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_stages.h - what the driver's calls take while quire makes and releases pages: the functions
 * of an open device are replaced by functions that add up the time of each stage.
 *
 * One measured device at a time, used by one thread.
 */
#ifndef QUIRE_BENCH_CUDA_STAGES_H
#define QUIRE_BENCH_CUDA_STAGES_H

#include "bench/spread.h"
#include "bench/ticks.h"
#include "quire/cuda.h"
#include "src/base/json.h"

/* Enter: the context and the capture modes. Info: the budget. Quire: what is not in the driver. */
#define CUDA_STAGES(X)                                                                             \
    X(ENTER, "enter")                                                                              \
    X(INFO, "info")                                                                                \
    X(RESERVE, "reserve")                                                                          \
    X(CREATE, "create")                                                                            \
    X(MAP, "map")                                                                                  \
    X(ACCESS, "access")                                                                            \
    X(SYNCHRONIZE, "sync")                                                                         \
    X(UNMAP, "unmap")                                                                              \
    X(RELEASE, "release")                                                                          \
    X(RETURN, "return")                                                                            \
    X(QUIRE, "quire")                                                                              \
    X(TOTAL, "total")

typedef enum cuda_stage {
#define X(stage, name) STAGE_##stage,
    CUDA_STAGES(X)
#undef X
        STAGE_COUNT
} cuda_stage;

extern const char *const CUDA_STAGE_NAMES[STAGE_COUNT];

/* Nanoseconds of each stage since stages_begin. */
typedef struct cuda_stages {
    double ns[STAGE_COUNT];
} cuda_stages;

/* Replaces the functions of a device until it is destroyed. */
void stages_watch(quire_device *device);

void stages_begin(void);
cuda_stages stages_end(void);

enum { STAGE_MAX_REPS = 99 };

/* A row of a table of stages. */
typedef struct stage_row {
    const char *what;  /* what is measured */
    uint64_t size;     /* bytes */
    const char *state; /* of the device, or of the handles */
    uint64_t reps;
    cuda_stages of[STAGE_MAX_REPS];
    char refused[128]; /* why there are no figures; empty if there are */
} stage_row;

void stage_row_add(stage_row *row, cuda_stages stages);

/* Prints a head and rows, and writes each row as an object of the array that is open. */
void stage_table_head(const char *title);
void stage_row_report(stage_row *row, qi_json *json);

#endif
