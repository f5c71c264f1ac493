/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * driver_bench.c - see driver_bench.h.
 */
#include "tests/support/driver_bench.h"

#include <unistd.h>

#include "tests/support/check.h"

void driver_bench_begin(driver_bench *b)
{
    *b = (driver_bench){.descriptor = -1};
    test_memory_init(&b->host_memory);
}

bool driver_bench_step(driver_bench *b, quire_result result)
{
    b->result = result;
    return !result;
}

quire_memory *driver_bench_memory(driver_bench *b, quire_device *device,
                                  const quire_memory_options *options)
{
    quire_memory *memory = NULL;
    if (driver_bench_step(b, quire_memory_create(device, options, &memory)))
        b->memories[b->memory_count++] = memory;
    return memory;
}

void driver_bench_end_memories(driver_bench *b)
{
    for (uint32_t i = 0; i < b->memory_count; i++) {
        CHECK_OK(quire_memory_check(b->memories[i]));
        quire_memory_destroy_all(&b->memories[i]);
    }
}

void driver_bench_end(driver_bench *b)
{
    CHECK_OK(quire_device_destroy(&b->device));
    if (b->descriptor >= 0)
        close(b->descriptor);
    CHECK_EQ(b->host_memory.blocks, 0);
    CHECK_EQ(b->host_memory.bytes, 0);
}
