/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * packing.h - reads a static packing problem as a workload: a file with lines `id,lower,upper,size`
 * of ranges that live from time `lower` to time `upper`.
 */
#ifndef QUIRE_BENCH_PACKING_H
#define QUIRE_BENCH_PACKING_H

#include <stdbool.h>

#include "bench/workload.h"

/* Returns false if the file is unreadable or has no range. Free *out in any case. */
bool packing_read(const char *path, workload *out);

#endif
