/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fault.c - see fault.h.
 */
#include "tests/fault/fault.h"

#include <stdio.h>

static struct {
    uint64_t scenario, stride, first, last; /* the options */
    uint64_t turn;                          /* of the sweep within its scenario */
    uint64_t reached;
    size_t tables;               /* scenarios of the tables before */
    const void *running;         /* the scenario, */
    void (*sweep)(const void *); /* and what sweeps it */
} fault;

void fault_begin(int argc, char **argv)
{
    fault.scenario = plain_option(argc, argv, "scenario", UINT64_MAX);
    fault.stride = plain_option(argc, argv, "stride", 1);
    fault.first = plain_option(argc, argv, "first", 1);
    fault.last = plain_option(argc, argv, "last", UINT64_MAX);
    CHECK(fault.stride && fault.first);
    if (!fault_is_complete())
        printf("# --stride %" PRIu64 " --first %" PRIu64 " --last %" PRIu64 "\n", fault.stride,
               fault.first, fault.last);
}

bool fault_is_complete(void)
{
    return fault.stride == 1 && fault.first == 1 && fault.last == UINT64_MAX;
}

bool fault_runs_all(void)
{
    return fault.scenario == UINT64_MAX;
}

static void run_scenario(void)
{
    fault.sweep(fault.running);
}

void fault_table(const void *scenarios, size_t count, size_t size, void (*sweep)(const void *))
{
    const unsigned char *at = scenarios;
    fault.sweep = sweep;
    for (size_t i = 0; i < count; i++, at += size) {
        fault.turn = fault.tables + i;
        fault.running = at;
        if (fault_runs_all() || fault.scenario == fault.tables + i)
            plain_case(*(const char *const *)fault.running, run_scenario);
    }
    fault.tables += count;
}

uint64_t fault_sweep(fault_run *run, void *context, uint64_t calls)
{
    uint64_t reached = 0;
    uint64_t last = calls < fault.last ? calls : fault.last;
    uint64_t call = fault.first + fault.turn++ % fault.stride;
    for (; call <= last; call += fault.stride) {
        bool is_reached = run(context, call);
        reached += is_reached;
        if (!is_reached && calls == FAULT_UNKNOWN)
            break;
    }
    fault.reached += reached;
    return reached;
}

int fault_end(void)
{
    printf("# %zu scenarios, %" PRIu64 " calls failed\n", fault.tables, fault.reached);
    return plain_end();
}
