/*
 * vulkan_bench.h - a quire device on the fake Vulkan driver, and steps that may fail on it: what
 * the fault sweeps and the unit tests of the Vulkan backend are made of.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_BENCH_H
#define QUIRE_TESTS_SUPPORT_VULKAN_BENCH_H

#include "quire/quire.h"
#include "quire/vulkan.h"
#include "tests/support/host_memory.h"
#include "tests/support/vulkan/fake_vulkan.h"

typedef struct vulkan_bench {
    fv_driver *driver;
    test_memory host_memory;
    quire_device *device;
    quire_result result;    /* of the step that failed; 0: none did */
    quire_vulkan_view view; /* to be destroyed at the end */
    int descriptor;         /* likewise to be closed; -1: none */
    quire_memory *memories[4];
    uint32_t memory_count;
} vulkan_bench;

/* A driver with this layout (NULL: "amd-bar") and FV_ flags; no device yet. */
void vulkan_bench_begin(vulkan_bench *b, const char *layout, uint32_t flags);

/* Opens quire's own device on it. Further settings: NULL. False: it failed. */
bool vulkan_bench_open(vulkan_bench *b, const quire_vulkan_settings *settings);

/* Makes a memory, kept until the end; NULL: it failed. */
quire_memory *vulkan_bench_memory(vulkan_bench *b, const quire_memory_options *options);

/* Ends all there is and checks that the driver and the host memory got everything back. */
void vulkan_bench_end(vulkan_bench *b);

/* Remembers a failure; true where the step succeeded. */
bool vulkan_bench_step(vulkan_bench *b, quire_result result);

/* A step that ends the scenario where it fails. */
#define STEP(b, call)                                                                              \
    do {                                                                                           \
        if (!vulkan_bench_step((b), (call)))                                                       \
            return;                                                                                \
    } while (0)

#endif
