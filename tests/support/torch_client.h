/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * torch_client.h - what torch does around its allocator, on the fake CUDA driver: the primary
 * contexts, streams, work, captures of graphs, and the filter that torch gives with a pool.
 */
#ifndef QUIRE_TESTS_SUPPORT_TORCH_CLIENT_H
#define QUIRE_TESTS_SUPPORT_TORCH_CLIENT_H

#include "src/adapters/torch/calls.h"
#include "tests/support/cuda_bench.h"

enum { TORCH_STREAMS = 4 };

typedef struct torch_client {
    cuda_bench b;
    uint32_t device_count;
    qi_cu_context contexts[2];
    qi_cu_stream streams[TORCH_STREAMS]; /* of device 0, non-blocking as torch's */
    bool joins; /* every stream that captures belongs to the graph that is begun */
} torch_client;

/* A driver with one or two devices, on which work waits until a thread waits for it, and on which
   every call counts as unsafe during a capture that may be. */
void torch_client_begin(torch_client *c, uint32_t device_count);

/* Two devices, with the access that torch lets its contexts have if they can reach each other. */
void torch_client_begin_two(torch_client *c, bool are_peers);

/* Closes the adapter; checks that nothing is left and that the driver saw no misuse. */
void torch_client_end(torch_client *c);

/* Each fails the test on an error. */
void *torch_client_allocate(int64_t size, void *stream);
void torch_client_free(void *pointer, void *stream);

/* Submits work that writes the memory. */
void torch_client_work(torch_client *c, void *pointer, uint64_t size, void *stream);

/* Begins a pool and a capture as torch::cuda::CUDAGraph does, in this order; ends them. */
void torch_client_begin_graph(torch_client *c, torch_pool_id id, qi_cu_stream stream);
void torch_client_end_graph(torch_client *c, torch_pool_id id, qi_cu_stream stream);

/* The capture alone. */
void torch_client_begin_capture(torch_client *c, qi_cu_stream stream);
bool torch_client_end_capture(torch_client *c, qi_cu_stream stream);

/* A filter that selects a stream while it captures; NULL: every stream that does. */
torch_filter torch_client_filter(torch_client *c, qi_cu_stream stream);

/* Filters that are not destroyed yet. */
uint32_t torch_client_filters(void);

/* Bytes of device memory that the driver has given out. */
uint64_t torch_client_bytes(torch_client *c);

/* A unit test of the client `c` of the file with a number of devices. */
#define TORCH_CASE(suite, name, devices)                                                           \
    UNIT_WITHIN(suite, name, torch_client_begin(&c, devices), torch_client_end(&c))

#endif
