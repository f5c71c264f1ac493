/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * count.h - one run of a workload under an instruction counter.
 */
#ifndef QUIRE_BENCH_COUNT_H
#define QUIRE_BENCH_COUNT_H

#include "bench/subjects.h"
#include "bench/workload.h"

/* Runs a workload once on the subject of this name. Returns the exit code of the program. */
int count_calls(const subject_list *list, const char *workload_name, const char *subject_name);

#endif
