/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_stages.c - see cuda_stages.h.
 */
#include "bench/cuda_stages.h"

#include <stdio.h>

#include "backends/cuda/cuda.h"
#include "bench/report.h"
#include "src/base/result.h"

const char *const CUDA_STAGE_NAMES[STAGE_COUNT] = {
#define X(stage, name) name,
    CUDA_STAGES(X)
#undef X
};

static qi_cuda_functions real;
static cuda_stages sums;
static uint64_t begun;

/* X(function, stage, parameters, arguments): the functions that quire calls for a page. */
#define WATCHED(X)                                                                                 \
    X(CtxPushCurrent, ENTER, (qi_cu_context c), (c))                                               \
    X(CtxPopCurrent, ENTER, (qi_cu_context * c), (c))                                              \
    X(CtxGetCurrent, ENTER, (qi_cu_context * c), (c))                                              \
    X(StreamIsCapturing, ENTER, (qi_cu_stream s, qi_cu_capture_status * t), (s, t))                \
    X(ThreadExchangeStreamCaptureMode, ENTER, (qi_cu_capture_mode * m), (m))                       \
    X(MemGetInfo, INFO, (size_t * f, size_t * t), (f, t))                                          \
    X(MemAddressReserve, RESERVE,                                                                  \
      (qi_cu_ptr * p, size_t s, size_t a, qi_cu_ptr h, unsigned long long f), (p, s, a, h, f))     \
    X(MemCreate, CREATE,                                                                           \
      (qi_cu_handle * h, size_t s, const qi_cu_allocation_prop *p, unsigned long long f),          \
      (h, s, p, f))                                                                                \
    X(MemMap, MAP, (qi_cu_ptr p, size_t s, size_t o, qi_cu_handle h, unsigned long long f),        \
      (p, s, o, h, f))                                                                             \
    X(MemSetAccess, ACCESS, (qi_cu_ptr p, size_t s, const qi_cu_access_desc *d, size_t c),         \
      (p, s, d, c))                                                                                \
    X(CtxSynchronize, SYNCHRONIZE, (void), ())                                                     \
    X(MemUnmap, UNMAP, (qi_cu_ptr p, size_t s), (p, s))                                            \
    X(MemRelease, RELEASE, (qi_cu_handle h), (h))                                                  \
    X(MemAddressFree, RETURN, (qi_cu_ptr p, size_t s), (p, s))                                     \
    X(MemAlloc, CREATE, (qi_cu_ptr * p, size_t s), (p, s))                                         \
    X(MemFree, RELEASE, (qi_cu_ptr p), (p))

#define X(function, stage, parameters, arguments)                                                  \
    static qi_cu_result timed_##function parameters                                                \
    {                                                                                              \
        uint64_t since = ticks_now();                                                              \
        qi_cu_result code = real.function arguments;                                               \
        sums.ns[STAGE_##stage] += (double)ticks_spent(since) * the_clock.ns;                       \
        return code;                                                                               \
    }
WATCHED(X)
#undef X

void stages_watch(quire_device *device)
{
    qi_cuda *cuda = quire_device_state(device);
    real = cuda->f;
#define X(function, stage, parameters, arguments)                                                  \
    if (real.function)                                                                             \
        cuda->f.function = timed_##function;
    WATCHED(X)
#undef X
}

void stages_begin(void)
{
    sums = (cuda_stages){{0}};
    begun = ticks_now();
}

cuda_stages stages_end(void)
{
    double total = (double)ticks_spent(begun) * the_clock.ns;
    double driver = 0;
    for (int i = 0; i < STAGE_QUIRE; i++)
        driver += sums.ns[i];
    sums.ns[STAGE_QUIRE] = total > driver ? total - driver : 0;
    sums.ns[STAGE_TOTAL] = total;
    return sums;
}

/* ---- tables --------------------------------------------------------------------------------- */

void stage_row_add(stage_row *row, cuda_stages stages)
{
    if (row->reps < STAGE_MAX_REPS)
        row->of[row->reps++] = stages;
}

void stage_table_head(const char *title)
{
    printf("\n%s; us, medians\n  %-30s", title, "");
    for (int i = 0; i < STAGE_COUNT; i++)
        printf(" %9s", CUDA_STAGE_NAMES[i]);
    printf("\n");
}

static void report_stage(const stage_row *row, cuda_stage stage, qi_json *json)
{
    double values[STAGE_MAX_REPS];
    for (uint64_t i = 0; i < row->reps; i++)
        values[i] = row->of[i].ns[stage];
    spread s = spread_of(values, row->reps);
    write_spread(json, CUDA_STAGE_NAMES[stage], s);
    printf(" %9.2f", s.median / 1000);
}

void stage_row_report(stage_row *row, qi_json *json)
{
    char title[64];
    snprintf(title, sizeof title, "%s %s, %s", row->what, qi_bytes(row->size).text, row->state);
    printf("  %-30s", title);
    qi_json_object(json, NULL);
    qi_json_text(json, "what", row->what);
    qi_json_number(json, "size", row->size);
    qi_json_text(json, "state", row->state);
    qi_json_text(json, "refused", row->refused[0] ? row->refused : NULL);
    for (int i = 0; i < STAGE_COUNT && row->reps; i++)
        report_stage(row, (cuda_stage)i, json);
    printf("%s%s\n", row->refused[0] ? " " : "", row->refused);
    fflush(stdout);
    qi_json_end_object(json);
}
