/*
 * plugin_bench.h - quire devices on the test plugin, which the backend loads as it loads any other;
 * and steps that may fail on it.
 *
 * TEST_PLUGIN is where the plugin lies. It stays loaded, so that its controls can be asked when the
 * backend has let go of it.
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
    quire_result result; /* of the step that failed; 0: none did */
} plugin_bench;

/* The controls of the test plugin, which is loaded when somebody asks first. */
const tp_control *plugin_bench_control(void);

/* A plugin made anew; no device yet. NULL: {0}. */
void plugin_bench_begin(plugin_bench *b, const tp_options *options);

/* Opens its device `index` as devices[index]. Further options: NULL. False: it failed. */
bool plugin_bench_open(plugin_bench *b, uint32_t index, const quire_plugin_options *options);

/* Makes a memory of a kind, kept until the end; further options: NULL. NULL: it failed. */
quire_memory *plugin_bench_memory(plugin_bench *b, uint32_t index, uint32_t kind,
                                  const quire_memory_options *options);

/* Ends all there is and checks that the plugin and the host memory got everything back. */
void plugin_bench_end(plugin_bench *b);

/* Notes the result of a step; true: it succeeded. */
bool plugin_bench_step(plugin_bench *b, quire_result result);

#define STEP(b, call)                                                                              \
    do {                                                                                           \
        if (!plugin_bench_step((b), (call)))                                                       \
            return;                                                                                \
    } while (0)

#endif
