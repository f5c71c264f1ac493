/*
 * bench_sweep.c - see bench_sweep.h.
 */
#include "tests/fault/bench_sweep.h"

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
