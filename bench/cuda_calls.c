/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_calls.c - the cost of single driver calls that quire makes often, and of reserving
 * addresses.
 */
#include <stdio.h>

#include "bench/cuda_driver.h"
#include "bench/cuda_parts.h"
#include "bench/ticks.h"
#include "src/base/result.h"

/* Calls timed together: fewer of a call that takes more than SLOW_NS. */
enum { TIMES = 1000, SLOW_TIMES = 20, SLOW_NS = 50000 };

#define GIB (UINT64_C(1) << 30)

static qi_cu_event event;
static qi_cu_ptr block;

static qi_cu_result push_and_pop(void)
{
    qi_cu_context popped;
    qi_cu_result code = the_cuda.f.CtxPushCurrent(the_cuda.info.context);
    return code ? code : the_cuda.f.CtxPopCurrent(&popped);
}

static qi_cu_result get_current(void)
{
    qi_cu_context context;
    return the_cuda.f.CtxGetCurrent(&context);
}

static qi_cu_result is_capturing(void)
{
    qi_cu_capture_status status;
    return the_cuda.f.StreamIsCapturing(the_cuda.stream, &status);
}

static qi_cu_result is_null_capturing(void)
{
    qi_cu_capture_status status;
    return the_cuda.f.StreamIsCapturing(NULL, &status);
}

static qi_cu_result exchange_twice(void)
{
    qi_cu_capture_mode mode = QI_CU_STREAM_CAPTURE_MODE_RELAXED;
    qi_cu_result code = the_cuda.f.ThreadExchangeStreamCaptureMode(&mode);
    return code ? code : the_cuda.f.ThreadExchangeStreamCaptureMode(&mode);
}

static qi_cu_result record(void)
{
    return the_cuda.f.EventRecord(event, the_cuda.stream);
}

static qi_cu_result query(void)
{
    qi_cu_result code = the_cuda.f.EventQuery(event);
    return code == QI_CUDA_ERROR_NOT_READY ? QI_CUDA_SUCCESS : code;
}

static qi_cu_result query_stream(void)
{
    qi_cu_result code = the_cuda.f.StreamQuery(the_cuda.stream);
    return code == QI_CUDA_ERROR_NOT_READY ? QI_CUDA_SUCCESS : code;
}

static qi_cu_result make_event(void)
{
    qi_cu_event made;
    qi_cu_result code = the_cuda.f.EventCreate(&made, QI_CU_EVENT_DISABLE_TIMING);
    return code ? code : the_cuda.f.EventDestroy(made);
}

static qi_cu_result get_info(void)
{
    size_t free_bytes, total;
    return the_cuda.f.MemGetInfo(&free_bytes, &total);
}

static qi_cu_result get_attribute(void)
{
    unsigned type;
    return the_cuda.f.PointerGetAttribute(&type, QI_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block);
}

static qi_cu_result synchronize(void)
{
    return the_cuda.f.CtxSynchronize();
}

typedef struct call {
    const char *name;
    qi_cu_result (*run)(void);
} call;

static const call CALLS[] = {
    {"cuCtxPushCurrent, cuCtxPopCurrent", push_and_pop},
    {"cuCtxGetCurrent", get_current},
    {"cuStreamIsCapturing", is_capturing},
    {"cuStreamIsCapturing of NULL", is_null_capturing},
    {"cuThreadExchangeStreamCaptureMode, twice", exchange_twice},
    {"cuEventRecord", record},
    {"cuEventQuery", query},
    {"cuStreamQuery, idle", query_stream},
    {"cuEventCreate, cuEventDestroy", make_event},
    {"cuMemGetInfo", get_info},
    {"cuPointerGetAttribute", get_attribute},
    {"cuCtxSynchronize, idle", synchronize},
};

/* ---- rows ----------------------------------------------------------------------------------- */

/* A row without figures has the driver's name of the error. */
static void report(memory_bench *b, const char *name, qi_cu_result refused, double *ns)
{
    qi_json *json = &b->out.json;
    qi_json_object(json, NULL);
    qi_json_text(json, "call", name);
    qi_json_text(json, "refused", refused ? cuda_driver_error(refused) : NULL);
    if (refused) {
        printf("  %-44s %s\n", name, cuda_driver_error(refused));
    } else {
        spread s = spread_of(ns, b->reps);
        write_spread(json, "ns", s);
        printf("  %-44s %10.1f %10.1f\n", name, s.min, s.median);
    }
    fflush(stdout);
    qi_json_end_object(json);
}

static void measure_call(memory_bench *b, const call *c)
{
    double ns[MAX_REPS];
    qi_cu_result code = c->run(); /* warm */
    uint64_t since = ticks_now();
    if (!code)
        code = c->run();
    int times = (double)ticks_spent(since) * the_clock.ns > (double)SLOW_NS ? SLOW_TIMES : TIMES;
    for (uint64_t rep = 0; rep < b->reps && !code; rep++) {
        since = ticks_now();
        for (int i = 0; i < times && !code; i++)
            code = c->run();
        ns[rep] = (double)ticks_spent(since) * the_clock.ns / times;
        if (!code)
            code = cuda_driver_wait(); /* for recorded events */
    }
    report(b, c->name, code, ns);
}

static void measure_reservation(memory_bench *b, uint64_t size)
{
    double reserve[MAX_REPS], give[MAX_REPS];
    qi_cu_result code = 0;
    char name[64];
    for (uint64_t rep = 0; rep < b->reps && !code; rep++) {
        qi_cu_ptr address;
        uint64_t since = ticks_now();
        code = the_cuda.f.MemAddressReserve(&address, size, 0, 0, 0);
        reserve[rep] = (double)ticks_spent(since) * the_clock.ns;
        since = ticks_now();
        if (!code)
            code = the_cuda.f.MemAddressFree(address, size);
        give[rep] = (double)ticks_spent(since) * the_clock.ns;
    }
    snprintf(name, sizeof name, "cuMemAddressReserve of %s", qi_bytes(size).text);
    report(b, name, code, reserve);
    snprintf(name, sizeof name, "cuMemAddressFree of %s", qi_bytes(size).text);
    report(b, name, code, give);
}

void measure_calls(memory_bench *b)
{
    static const uint64_t sizes[] = {GIB, 141 * GIB, 1024 * GIB};
    const qi_cuda_functions *f = &the_cuda.f;
    printf("\ncalls: ns, least and median\n");
    qi_json_array(&b->out.json, "calls");
    bool good =
        !f->EventCreate(&event, QI_CU_EVENT_DISABLE_TIMING) && !f->MemAlloc(&block, GIB / 1024);
    for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS && good; i++)
        measure_call(b, &CALLS[i]);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && the_cuda.info.has_virtual_memory; i++)
        measure_reservation(b, sizes[i]);
    if (block)
        (void)f->MemFree(block);
    if (event)
        (void)f->EventDestroy(event);
    qi_json_end_array(&b->out.json);
}
