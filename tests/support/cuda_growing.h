/*
 * cuda_growing.h - a page of the CUDA backend that grows, on the fake driver, with bytes in it that
 * tell where they lie.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_GROWING_H
#define QUIRE_TESTS_SUPPORT_CUDA_GROWING_H

#include "backends/cuda/page.h"
#include "tests/support/cuda_bench.h"

#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1) << 20)

/* A page that grows, asked of the backend's table as the core asks for it. */
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

quire_page_request growing_request(quire_device *device, quire_cuda_page_kind page_kind,
                                   uint64_t size, uint64_t most);

/* A device and a page of `size` bytes that may come to `most`; calls are counted from then on. */
void growing_begin_with(growing *g, const fc_options *driver, const quire_cuda_settings *settings,
                        quire_cuda_page_kind page_kind, uint64_t size, uint64_t most);

/* The same of device memory, on one "h200". */
void growing_begin(growing *g, const quire_cuda_settings *settings, uint64_t size, uint64_t most);

/* Ends page and device, and checks that the driver got everything back. */
void growing_end(growing *g);

const qi_cuda_page *growing_record(const growing *g);

/* To another size; checks that the address stays and that the record says what there is. */
quire_result growing_resize(growing *g, uint64_t to);

/* At the beginning and the end of each 64 KiB of a range, whose borders are multiples of that. */
void growing_write(growing *g, uint64_t from, uint64_t to);
void growing_check(growing *g, uint64_t from, uint64_t to);

/* So much is mapped, and what the driver has is what the page says. */
void growing_check_handles(growing *g, uint64_t padded, uint32_t count);

#endif
