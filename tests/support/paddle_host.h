/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * paddle_host.h - a host program that calls a CustomDevice runtime as PaddlePaddle does: it agrees
 * on a version, initialises, lists devices, and keeps a best-fit pool of chunks above the runtime's
 * memory (auto_growth). PADDLE_RUNTIME is the path of the runtime.
 */
#ifndef QUIRE_TESTS_SUPPORT_PADDLE_HOST_H
#define QUIRE_TESTS_SUPPORT_PADDLE_HOST_H

#include "tests/support/plugin_bench.h"

typedef struct host_device {
    int32_t id;
} host_device;

typedef int32_t (*plain_function)(void);
typedef int32_t (*of_device)(host_device *);
typedef int32_t (*of_list)(size_t *);
typedef int32_t (*taking)(host_device *, void **, size_t);
typedef int32_t (*giving)(host_device *, void *, size_t);
typedef int32_t (*copying)(host_device *, void *, const void *, size_t);
typedef int32_t (*two_sizes)(host_device *, size_t *, size_t *);
typedef int32_t (*one_size)(host_device *, size_t *);

typedef struct host_program {
    const tp_control *tp; /* of the test plugin below the runtime */
    void *library;
    unsigned char interface[4096];
    unsigned char params[1024];
    host_device devices[2];
} host_program;

/* The function at an offset of the interface. */
#define HOST_CALL(host, type, offset) (*(type *)(void *)((host)->interface + (offset)))

/* Loads the runtime as a version with these sizes does. Returns false if the runtime rejects it. */
bool host_load(host_program *h, size_t params_size, size_t interface_size);

/* Starts with a new test plugin, the loaded runtime and all its devices initialised; and the end of
   it. */
void host_begin(host_program *h, const tp_options *options);
void host_end(host_program *h);

void host_set(host_program *h, int device);
void *host_take(host_program *h, int device, size_t size);
void host_give(host_program *h, int device, void *pointer, size_t size);
size_t host_free_bytes(host_program *h, int device, size_t *total);

/* Random requests to a pool on a device, with checked contents; at the end the pool releases
   everything. */
void host_play(host_program *h, int device, uint64_t steps, uint64_t seed);

#endif
