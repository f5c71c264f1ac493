/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_driver.h - the driver below bench_vma: the one without a device, or a real one whose memory
 * objects are counted in the_driver like those of the other.
 */
#ifndef QUIRE_BENCH_VMA_DRIVER_H
#define QUIRE_BENCH_VMA_DRIVER_H

#include "bench/mock_driver.h"
#include "bench/vma_program.h"

/* Opens a driver for the rest of the process. Prints the error and returns false on failure. */
bool vma_driver_open(bool is_real, vma_driver *driver);

/* The name of the device; "none" if there is none. Valid until the next call. */
const char *vma_driver_name(bool is_real);

#endif
