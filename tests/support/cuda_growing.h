/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_growing.h - an elastic page of the CUDA backend on the fake driver, filled with bytes that
 * identify their position.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_GROWING_H
#define QUIRE_TESTS_SUPPORT_CUDA_GROWING_H

#include "backends/cuda/cuda.h"
#include "tests/support/cuda_bench.h"

#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1) << 20)

/* An elastic page, requested from the backend's table as the core requests it. */
typedef struct growing {
    cuda_bench b;
    const fc_control *fc;
    const quire_backend *table;
    qi_cuda *cuda;
    quire_native_page page;
    uint64_t size;
} growing;

/* A device alone. */
void growing_open(growing *g, const fc_options *driver, const quire_cuda_settings *settings);

/* With chunks of the granularity of the kind. */
quire_page_request growing_request(quire_device *device, quire_cuda_page_kind page_kind,
                                   uint64_t size, uint64_t max);

/* A device and a page of `size` bytes that can grow to `max`; calls are counted from then on. The
   chunk size of the settings is that of the page. */
void growing_begin_with(growing *g, const fc_options *driver, const quire_cuda_settings *settings,
                        quire_cuda_page_kind page_kind, uint64_t size, uint64_t max);

/* The same for device memory, on one "h200". */
void growing_begin(growing *g, const quire_cuda_settings *settings, uint64_t size, uint64_t max);

/* Unit tests of a page `g`, which the body or the statement `begin` makes (see UNIT_ON). */
#define GROWING_UNIT(suite, name) UNIT_ON(suite, name, growing, g, (void)g, growing_end)
#define GROWING_UNIT_ON(suite, name, begin) UNIT_ON(suite, name, growing, g, begin, growing_end)

#define GROWING_UNIT_EACH(suite, name, number, to)                                                 \
    UNIT_EACH(suite, name, growing, g, number, 0, to, (void)g, growing_end)

/* Destroys page and device, and checks that the driver has no live objects. */
void growing_end(growing *g);

const qi_cuda_page *growing_record(const growing *g);

/* Backs or unbacks the end of the page, which has no holes. Checks that the address stays and that
   the record matches the page. */
quire_result growing_resize(growing *g, uint64_t to);

/* Writes or checks the first and last bytes of each 64 KiB of a range, whose bounds are multiples
   of that. */
void growing_write(growing *g, uint64_t from, uint64_t to);
void growing_check(growing *g, uint64_t from, uint64_t to);

/* Checks that this many bytes are mapped, and that the driver's memory matches the page. */
void growing_check_handles(growing *g, uint64_t padded, uint32_t count);

#endif
