/*
 * packing.h - static packing problems as workloads: files of `id,lower,upper,size`, one range a
 * line that lives from time `lower` to time `upper`.
 */
#ifndef QUIRE_BENCH_PACKING_H
#define QUIRE_BENCH_PACKING_H

#include <stdbool.h>

#include "src/cli/workload.h"

/* False when the file cannot be read or holds no range. Free it in any case. */
bool packing_read(const char *path, workload *out);

#endif
