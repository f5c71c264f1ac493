/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * plugin_bench.c - see plugin_bench.h.
 */
#include "tests/support/plugin_bench.h"

#include <dlfcn.h>

const tp_control *plugin_bench_control(void)
{
    static const tp_control *control;
    tp_entry entry = NULL;
    if (control)
        return control;
    void *library = dlopen(TEST_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        check_failed(__FILE__, __LINE__, "%s", dlerror());
    void *found = dlsym(library, "test_plugin");
    CHECK(found);
    memcpy(&entry, &found, sizeof entry);
    control = entry();
    return control;
}

void plugin_bench_begin(plugin_bench *b, const tp_options *options)
{
    *b = (plugin_bench){.tp = plugin_bench_control()};
    driver_bench_begin(&b->common);
    b->tp->reset(options);
}

bool plugin_bench_open(plugin_bench *b, uint32_t index, const quire_plugin_options *asked)
{
    quire_plugin_options options = asked ? *asked : (quire_plugin_options){.path = NULL};
    options.path = options.path ? options.path : TEST_PLUGIN;
    options.device = index;
    options.device_options.host_memory = &b->host_memory.callbacks;
    bool opened = driver_bench_step(&b->common, quire_plugin_open(&options, &b->devices[index]));
    b->device = b->devices[0];
    return opened;
}

quire_memory *plugin_bench_memory(plugin_bench *b, uint32_t index, uint32_t kind,
                                  const quire_memory_options *options)
{
    quire_memory_options all = options ? *options : (quire_memory_options){.name = NULL};
    all.kind.mask = UINT32_C(1) << kind;
    return driver_bench_memory(&b->common, b->devices[index], &all);
}

static void check_plugin(plugin_bench *b)
{
    const char *message = b->tp->message();
    if (message)
        check_failed(__FILE__, __LINE__, "%s", message);
    CHECK_EQ(b->tp->blocks(), 0);
    CHECK_EQ(b->tp->objects(), 0);
}

/* Submitted work finishes before the memory it uses is destroyed. */
static void settle(quire_stream *stream)
{
    quire_point point;
    if (!stream)
        return;
    CHECK_OK(quire_stream_mark(stream, &point));
    CHECK_OK(quire_point_await(&point, QUIRE_FOREVER));
}

void plugin_bench_end(plugin_bench *b)
{
    b->tp->fail(NULL);
    b->tp->hold(false);
    for (int i = 0; i < 2; i++)
        settle(b->streams[i]);
    driver_bench_end_memories(&b->common);
    for (int i = 0; i < 2; i++)
        CHECK_OK(b->streams[i] ? quire_stream_destroy(&b->streams[i]) : QUIRE_SUCCESS);
    b->device = NULL;
    for (int i = 1; i >= 0; i--)
        CHECK_OK(quire_device_destroy(&b->devices[i]));
    driver_bench_end(&b->common);
    check_plugin(b);
}
