/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * captures.c - which calls of a CUDA driver are legal while a stream captures a graph, and which
 * end the capture: a cell for each call, mode of the capture, and caller.
 *
 *     captures [--items FROM SECONDS] [LIBRARY]     each cell is an item of items.h
 *
 * The stream captures in the thread of the program. The caller is that thread or another, with the
 * thread's usual capture mode or with the relaxed one (cuThreadExchangeStreamCaptureMode). A cell
 * is a line
 *
 *     cell|call|caller|mode|answer of the call|kept or lost
 *
 * Each cell has its own scene. After an error that the context keeps, the next cell needs a new
 * process.
 */
#include "tests/gpu/captures.h"

#include <pthread.h>
#include <stdio.h>

#include "tests/support/items.h"
#include "tests/support/plain.h"

static const char *const MODES[] = {"GLOBAL", "THREAD_LOCAL", "RELAXED"};
enum { MODE_COUNT = sizeof MODES / sizeof *MODES };

typedef struct caller {
    const char *name;
    bool is_other, is_relaxed;
} caller;

static const caller CALLERS[] = {
    {"same thread", false, false},
    {"same thread, relaxed", false, true},
    {"other thread", true, false},
    {"other thread, relaxed", true, true},
};
enum { CALLER_COUNT = sizeof CALLERS / sizeof *CALLERS };

typedef struct cell {
    const capture_call *call;
    const caller *caller;
    qi_cu_capture_mode mode;
    capture_scene scene;
    qi_cu_result answer;
} cell;

/* ---- one cell ------------------------------------------------------------------------------- */

static void call_in_mode(cell *c)
{
    qi_cu_capture_mode mode = QI_CU_STREAM_CAPTURE_MODE_RELAXED;
    if (c->caller->is_relaxed)
        MUST(cu.ThreadExchangeStreamCaptureMode(&mode));
    c->answer = c->call->run(&c->scene);
    if (c->caller->is_relaxed)
        MUST(cu.ThreadExchangeStreamCaptureMode(&mode));
}

static void *call_in_thread(void *user)
{
    MUST(cu.CtxPushCurrent(cuda_direct_context()));
    call_in_mode(user);
    MUST(cu.CtxPopCurrent(NULL));
    return NULL;
}

static void call_from_caller(cell *c)
{
    pthread_t thread;
    if (!c->caller->is_other)
        call_in_mode(c);
    else if (pthread_create(&thread, NULL, call_in_thread, c) || pthread_join(thread, NULL))
        check_failed(__FILE__, __LINE__, "no thread");
}

/* Returns the code that ends the capture: 0 if it survived the call. */
static qi_cu_result run_cell(cell *c)
{
    qi_cu_graph graph = NULL;
    capture_scene_open(&c->scene);
    MUST(cu.StreamBeginCapture(c->scene.captured, c->mode));
    call_from_caller(c);
    qi_cu_result end = cu.StreamEndCapture(c->scene.captured, &graph);
    cuda_direct_destroy_graph(graph);
    capture_scene_close(&c->scene);
    return end;
}

static void print_cell(const cell *c, qi_cu_result end)
{
    const char *answer = c->answer == CAPTURE_ABSENT ? "absent" : cuda_direct_name(c->answer);
    const char *ended = end ? cuda_direct_name(end) : "kept";
    printf("cell|%s|%s|%s|%s|%s\n", c->call->name, c->caller->name, MODES[c->mode], answer, ended);
    fflush(stdout);
}

/* ---- all ------------------------------------------------------------------------------------ */

static void begin_cell(const capture_call *call, const caller *by, qi_cu_capture_mode mode)
{
    static bool is_damaged;
    char name[128];
    cell c = {.call = call, .caller = by, .mode = mode};
    snprintf(name, sizeof name, "%s, %s, %s", call->name, by->name, MODES[mode]);
    if (is_damaged)
        items_renew();
    if (!items_begin(name))
        return;
    plain_begin(name);
    print_cell(&c, run_cell(&c));
    is_damaged = cu.CtxSynchronize() && items_ran();
}

int main(int argc, char **argv)
{
    argc = items_take(argc, argv);
    cuda_direct_open(argc > 1 ? argv[1] : "libcuda.so.1");
    if (!cu.StreamBeginCapture || !cu.StreamEndCapture || !cu.ThreadExchangeStreamCaptureMode) {
        printf("# SKIP the driver captures no graphs\n");
        return 0;
    }
    for (const capture_call *call = CAPTURE_CALLS; call->name; call++)
        for (size_t by = 0; by < CALLER_COUNT; by++)
            for (qi_cu_capture_mode mode = 0; mode < MODE_COUNT; mode++)
                begin_cell(call, &CALLERS[by], mode);
    return 0;
}
