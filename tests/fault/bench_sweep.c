/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * bench_sweep.c - see bench_sweep.h.
 */
#include "tests/fault/bench_sweep.h"

#include "quire/trace.h"

typedef struct target {
    bench *bench;
    bench_scenario scenario;
    bool on_fake;
} target;

static bool run(void *context, uint64_t call)
{
    const target *t = context;
    CHECK(bench_run(t->bench, t->scenario, t->on_fake, call));
    return true;
}

void bench_sweep(bench *t, bench_scenario scenario, bool on_fake, bool in_backend,
                 quire_result code)
{
    target swept = {t, scenario, on_fake};
    t->in_backend = in_backend;
    t->code = code;
    for (int from_then = 0; from_then < 2; from_then++) {
        t->from_then = from_then != 0;
        CHECK(!bench_run(t, scenario, on_fake, 0));
        uint64_t calls = t->calls_before[t->step];
        fault_sweep(run, &swept, calls);
        if (fault_is_complete())
            CHECK(!bench_run(t, scenario, on_fake, calls + 1)); /* no call was left out */
    }
}

static bool replay_once(bench *t, const quire_trace *trace)
{
    quire_replay_report report;
    t->tolerance = BENCH_MAY_SUCCEED; /* a refused allocation is counted */
    TRY_OUT(t, report,
            quire_trace_replay(trace, t->memory, &(quire_replay_options){.name = true}, &report));
    CHECK_EQ(report.left_at_end + report.frees, report.allocations);
    return true;
}

bool bench_replay(bench *t, const char *text, size_t size)
{
    quire_trace *trace;
    TRY_OUT(t, trace, quire_trace_parse("trace", text, size, &t->host.callbacks, &trace));
    bool done = replay_once(t, trace);
    uint64_t calls = t->host.calls;
    quire_trace_destroy(&trace);
    CHECK_EQ(t->host.calls, calls);
    return done;
}
