/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * plugin_bench.h - quire devices on the test plugin, which the backend loads as any other plugin,
 * and steps that may fail on it.
 *
 * TEST_PLUGIN is the path of the plugin. It stays loaded, so that its controls can be queried after
 * the backend has unloaded it.
 */
#ifndef QUIRE_TESTS_SUPPORT_PLUGIN_BENCH_H
#define QUIRE_TESTS_SUPPORT_PLUGIN_BENCH_H

#include "quire/plugin.h"
#include "tests/support/check.h"
#include "tests/support/driver_bench.h"
#include "tests/support/plugin/test_plugin.h"

typedef struct plugin_bench {
    DRIVER_BENCH; /* its device is the first one */
    const tp_control *tp;
    quire_device *devices[2];
    quire_stream *streams[2];
} plugin_bench;

#define PLUGIN_UNIT(suite, name) BENCH_UNIT(plugin_bench, suite, name)
#define PLUGIN_UNIT_ON(suite, name, begin) BENCH_UNIT_ON(plugin_bench, suite, name, begin)

/* The controls of the test plugin, which is loaded on the first call. */
const tp_control *plugin_bench_control(void);

/* A new plugin without a device. NULL means {0}. */
void plugin_bench_begin(plugin_bench *b, const tp_options *options);

/* Opens its device `index` as devices[index]. NULL means no further options. Returns false on
   failure. */
bool plugin_bench_open(plugin_bench *b, uint32_t index, const quire_plugin_options *options);

/* Creates a memory of a kind, kept until the end. NULL means no further options. Returns NULL on
   failure. */
quire_memory *plugin_bench_memory(plugin_bench *b, uint32_t index, uint32_t kind,
                                  const quire_memory_options *options);

/* Destroys everything and checks that the plugin and the host memory have no live objects. */
void plugin_bench_end(plugin_bench *b);

#endif
