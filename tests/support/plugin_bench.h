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
#include "quire/quire.h"
#include "tests/support/check.h"
#include "tests/support/host_memory.h"
#include "tests/support/plugin/test_plugin.h"

typedef struct plugin_bench {
    const tp_control *tp;
    test_memory host_memory;
    quire_device *devices[2];
    quire_device *device; /* the first */
    quire_memory *memories[4];
    uint32_t memory_count;
    quire_stream *streams[2];
    quire_result result; /* of the step that failed; 0 means none failed */
} plugin_bench;

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

/* Records the result of a step; returns true if it succeeded. */
bool plugin_bench_step(plugin_bench *b, quire_result result);

#define STEP(b, call)                                                                              \
    do {                                                                                           \
        if (!plugin_bench_step((b), (call)))                                                       \
            return;                                                                                \
    } while (0)

#endif
