/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * driver_bench.h - what the benches of the emulated drivers have in common (cuda_bench.h,
 * plugin_bench.h, vulkan_bench.h): a device, its memories, host memory that is counted, and steps
 * that may fail. Not thread-safe.
 */
#ifndef QUIRE_TESTS_SUPPORT_DRIVER_BENCH_H
#define QUIRE_TESTS_SUPPORT_DRIVER_BENCH_H

#include "quire/quire.h"
#include "tests/support/host_memory.h"

#define DRIVER_BENCH_MEMBERS                                                                       \
    test_memory host_memory;                                                                       \
    quire_device *device;                                                                          \
    quire_result result; /* of the step that failed; 0 means none failed */                        \
    int descriptor;      /* closed at the end; -1 means none */                                    \
    quire_memory *memories[5];                                                                     \
    uint32_t memory_count;

typedef struct driver_bench {
    DRIVER_BENCH_MEMBERS
} driver_bench;

/* The first member of a bench, whose own members these are as well. */
#define DRIVER_BENCH                                                                               \
    union {                                                                                        \
        driver_bench common;                                                                       \
        struct {                                                                                   \
            DRIVER_BENCH_MEMBERS                                                                   \
        };                                                                                         \
    }

/* No device, no memory, and host memory that does not fail. */
void driver_bench_begin(driver_bench *b);

/* Records the result of a step; returns true if it succeeded. */
bool driver_bench_step(driver_bench *b, quire_result result);

/* Creates a memory, kept until the end. Returns NULL on failure. */
quire_memory *driver_bench_memory(driver_bench *b, quire_device *device,
                                  const quire_memory_options *options);

/* Checks the memories and destroys them with everything in them. */
void driver_bench_end_memories(driver_bench *b);

/* Destroys the device, closes the descriptor and checks that all host memory was returned. */
void driver_bench_end(driver_bench *b);

/*
 * Unit tests of a bench `b` of a type, whose end is checked (see UNIT_ON): the body begins it, or
 * the statement `begin` does, whose result is the memory of the body.
 */
#define BENCH_UNIT(type, suite, name) UNIT_ON(suite, name, type, b, (void)b, type##_end)
#define BENCH_UNIT_ON(type, suite, name, begin) UNIT_ON(suite, name, type, b, begin, type##_end)
/* A test for each number below `to`, which begins the bench (see UNIT_EACH). */
#define BENCH_UNIT_EACH(type, suite, name, number, to)                                             \
    UNIT_EACH(suite, name, type, b, number, 0, to, (void)b, type##_end)
#define BENCH_UNIT_IN(type, suite, name, begin)                                                    \
    static void suite##_##name##_in(type *b, quire_memory *memory);                                \
    UNIT_ON(suite, name, type, b, (void)b, type##_end)                                             \
    {                                                                                              \
        suite##_##name##_in(b, begin);                                                             \
    }                                                                                              \
    static void suite##_##name##_in(__attribute__((unused)) type *b,                               \
                                    __attribute__((unused)) quire_memory *memory)

/* A step that ends the scenario if it fails: on a bench, and on what benches have in common. */
#define STEP(b, call) DRIVER_STEP(&(b)->common, call)
#define DRIVER_STEP(b, call)                                                                       \
    do {                                                                                           \
        if (!driver_bench_step((b), (call)))                                                       \
            return;                                                                                \
    } while (0)

#endif
