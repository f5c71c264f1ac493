/*
 * vulkan_bench.h - a quire device on the fake Vulkan driver, and steps that may fail on it, for the
 * fault sweeps and the unit tests of the Vulkan backend.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_BENCH_H
#define QUIRE_TESTS_SUPPORT_VULKAN_BENCH_H

#include "quire/quire.h"
#include "quire/lluvia.h"
#include "tests/support/host_memory.h"
#include "tests/support/vulkan/fake_vulkan.h"

typedef struct vulkan_bench {
    fv_driver *driver;
    test_memory host_memory;
    quire_device *device;
    quire_result result;    /* of the step that failed; 0 means none failed */
    quire_lluvia_view view; /* destroyed at the end */
    int descriptor;         /* closed at the end; -1 means none */
    quire_memory *memories[4];
    uint32_t memory_count;
    bool has_defaults; /* the end also destroys the default memories with everything in them */
} vulkan_bench;

/* A new driver with this layout (NULL means "amd-bar") and FV_ flags, without a device. */
void vulkan_bench_begin(vulkan_bench *b, const char *layout, uint32_t flags);

/* A new driver with these options, without a device. */
void vulkan_bench_begin_with(vulkan_bench *b, const fv_options *options);

/* Opens quire's own device on it. NULL means no further settings. Returns false on failure. */
bool vulkan_bench_open(vulkan_bench *b, const quire_vulkan_settings *settings);

/* The same with all options; the bench sets driver, device, host memory and log. */
bool vulkan_bench_open_with(vulkan_bench *b, quire_vulkan_options options);

/* Creates a memory, kept until the end. Returns NULL on failure. */
quire_memory *vulkan_bench_memory(vulkan_bench *b, const quire_memory_options *options);

/* Destroys everything and checks that the driver and the host memory have no live objects. */
void vulkan_bench_end(vulkan_bench *b);

/* Records a failure; returns true if the step succeeded. */
bool vulkan_bench_step(vulkan_bench *b, quire_result result);

/* A step that ends the scenario if it fails. */
#define STEP(b, call)                                                                              \
    do {                                                                                           \
        if (!vulkan_bench_step((b), (call)))                                                       \
            return;                                                                                \
    } while (0)

#endif
