/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_bench.h - a quire device on the fake Vulkan driver, and steps that may fail on it, for the
 * fault sweeps and the unit tests of the Vulkan backend.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_BENCH_H
#define QUIRE_TESTS_SUPPORT_VULKAN_BENCH_H

#include "quire/lluvia.h"
#include "tests/support/driver_bench.h"
#include "tests/support/vulkan/fake_vulkan.h"

typedef struct vulkan_bench {
    DRIVER_BENCH;
    fv_driver *driver;
    quire_lluvia_view view; /* destroyed at the end */
    bool has_defaults;      /* the end also destroys the default memories with everything in them */
} vulkan_bench;

#define VULKAN_UNIT(suite, name) BENCH_UNIT(vulkan_bench, suite, name)
#define VULKAN_UNIT_ON(suite, name, begin) BENCH_UNIT_ON(vulkan_bench, suite, name, begin)
#define VULKAN_UNIT_IN(suite, name, begin) BENCH_UNIT_IN(vulkan_bench, suite, name, begin)

#define VULKAN_UNIT_EACH(suite, name, number, to)                                                  \
    BENCH_UNIT_EACH(vulkan_bench, suite, name, number, to)

/* A new driver with this layout (NULL means "amd-bar") and FV_ flags, without a device. */
void vulkan_bench_begin(vulkan_bench *b, const char *layout, uint32_t flags);

/* A new driver with these options, without a device. */
void vulkan_bench_begin_with(vulkan_bench *b, const fv_options *options);

/* Opens quire's own device on it. NULL means no further settings. Returns false on failure. */
bool vulkan_bench_open(vulkan_bench *b, const quire_vulkan_settings *settings);

/* The same with all options; the bench sets driver, device, host memory and log. */
bool vulkan_bench_open_with(vulkan_bench *b, quire_vulkan_options options);

/* A new driver with this layout and FV_ flags, and quire's own device on it, which must open. */
void vulkan_bench_start(vulkan_bench *b, const char *layout, uint32_t flags);

/* The same with these options. */
void vulkan_bench_start_with(vulkan_bench *b, const fv_options *options);

/* The Vulkan objects of the device, and the options that wrap them again, without a queue. */
quire_vulkan_handles vulkan_bench_handles(const vulkan_bench *b);
quire_vulkan_wrap_options vulkan_bench_wrap(const vulkan_bench *b);

/* Creates a memory, kept until the end. Returns NULL on failure. */
quire_memory *vulkan_bench_memory(vulkan_bench *b, const quire_memory_options *options);

/* From now on waits for the driver's work fail. */
void vulkan_bench_stop_waits(vulkan_bench *b);

/* The driver's record of the page of an allocation. */
fv_memory_info vulkan_bench_page(vulkan_bench *b, quire_memory *memory,
                                 quire_allocation allocation);

/* Destroys everything and checks that the driver and the host memory have no live objects. */
void vulkan_bench_end(vulkan_bench *b);

#endif
