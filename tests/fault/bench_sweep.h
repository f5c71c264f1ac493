/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * bench_sweep.h - fault sweeps over scenarios of the bench of tests/support/state.h.
 */
#ifndef QUIRE_TESTS_FAULT_BENCH_SWEEP_H
#define QUIRE_TESTS_FAULT_BENCH_SWEEP_H

#include "tests/fault/fault.h"
#include "tests/support/state.h"

/*
 * Lets each call of the host memory, or of the fake backend, fail with `code`: first this call
 * alone, then this call and all later ones.
 */
void bench_sweep(bench *t, bench_scenario scenario, bool on_fake, bool in_backend,
                 quire_result code);

/* A step of a scenario: parses a trace and replays it on the memory. */
bool bench_replay(bench *t, const char *text, size_t size);

/*
 * Steps of a scenario: movable allocations, of which each of five pages keeps three of four, are
 * compacted by a move at a time, so that one page becomes free. Each has its contents after each
 * step, also after one that failed. Adds what the options leave open.
 */
bool bench_compact(bench *t, const quire_memory_options *options);

#endif
