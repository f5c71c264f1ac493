/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* plugin_open.c - loading plugins: interface versions, every malformed plugin by name, devices and
   their ids, the current device of a thread, the order of destruction, and forks. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/plugin_bench.h"
#include "tests/support/unit.h"

#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED
#define DENIED QUIRE_ERROR_NOT_PERMITTED

static quire_plugin_info info_of(quire_device *device)
{
    quire_plugin_info info;
    CHECK_OK(quire_plugin_get_info(device, &info));
    return info;
}

static void can_open(const tp_options *options)
{
    plugin_bench b;
    plugin_bench_begin(&b, options);
    CHECK(plugin_bench_open(&b, 0, NULL));
    quire_plugin_info info = info_of(b.device);
    CHECK_STR(info.device_type, "test_device");
    CHECK_STR(info.sub_device_type, "memory");
    CHECK_EQ(info.device_count, 1);
    quire_memory *m = plugin_bench_memory(&b, 0, 0, NULL);
    quire_allocation a;
    CHECK_OK(quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    CHECK_OK(quire_free(m, a));
    plugin_bench_end(&b);
}

/* A plugin that could not be opened leaves nothing behind and can be opened later. */
static void cannot_open(const tp_options *options, quire_result code, const char *part)
{
    plugin_bench b;
    plugin_bench_begin(&b, options);
    CHECK(!plugin_bench_open(&b, 0, NULL));
    CHECK_EQ(b.result, code);
    CHECK_HAS(quire_last_error(), part);
    CHECK(!b.device);
    plugin_bench_end(&b);
    can_open(NULL);
}

/* ---- versions ------------------------------------------------------------------------------- */

UNIT(plugin_open, every_published_version_of_the_interface)
{
    can_open(NULL);
    can_open(&(tp_options){.params_size = 88, .interface_size = 904});
    can_open(&(tp_options){.params_size = 88, .interface_size = 912});
    can_open(&(tp_options){.params_size = 96, .interface_size = 1032});
    can_open(&(tp_options){.params_size = 96, .interface_size = 4096});
    can_open(&(tp_options){.version = {0, 2, 0}});
    can_open(&(tp_options){.version = {3, 0, 0}});
}

UNIT(plugin_open, versions_that_are_not_known)
{
    cannot_open(&(tp_options){.params_size = 104}, UNSUPPORTED, "names no device type");
    cannot_open(&(tp_options){.has_no_type = true}, UNSUPPORTED, "names no device type");
    cannot_open(&(tp_options){.is_old = true}, UNSUPPORTED, "version 0.1.0: 0.1.1 is the minimum");
    cannot_open(&(tp_options){.version = {0, 0, 9}}, UNSUPPORTED, "version 0.0.9");
}

/* ---- malformed ------------------------------------------------------------------------------ */

UNIT(plugin_open, files_that_are_no_plugins)
{
    quire_device *none = NULL;
    CHECK_FAILS(quire_plugin_open(&(quire_plugin_options){.path = NO_PLUGIN}, &none), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "has no InitPlugin");
    CHECK_FAILS(quire_plugin_open(&(quire_plugin_options){.path = "/nonexistent/p.so"}, &none),
                UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "cannot be loaded");
    CHECK_FAILS(quire_plugin_open(&(quire_plugin_options){.path = __FILE__}, &none), UNSUPPORTED);
    CHECK(!none);
}

UNIT(plugin_open, functions_that_are_required)
{
    static const struct {
        uint32_t offset;
        const char *name;
    } REQUIRED[] = {{216, "device_memory_allocate"},
                    {224, "device_memory_deallocate"},
                    {400, "get_device_count"},
                    {408, "get_device_list"},
                    {32, "set_device"}};
    for (size_t i = 0; i < sizeof REQUIRED / sizeof *REQUIRED; i++) {
        char part[64];
        snprintf(part, sizeof part, "has no %s", REQUIRED[i].name);
        cannot_open(&(tp_options){.absent = TP_BIT(REQUIRED[i].offset)}, UNSUPPORTED, part);
    }
}

/* All other functions may be missing, one by one and together. */
UNIT(plugin_open, functions_that_are_not_required)
{
    const uint64_t required = TP_BIT(216) | TP_BIT(224) | TP_BIT(400) | TP_BIT(408) | TP_BIT(32);
    uint64_t known = 0;
    for (uint32_t bit = 0; bit < 64; bit++)
        known |= quire_plugin_function_name(bit) ? UINT64_C(1) << bit : 0;
    CHECK_EQ(__builtin_popcountll(known), 42);
    for (uint32_t bit = 0; bit < 64; bit++)
        if (known & ~required & UINT64_C(1) << bit)
            can_open(&(tp_options){.absent = UINT64_C(1) << bit});
    can_open(&(tp_options){.absent = ~required});
}

PLUGIN_UNIT(plugin_open, functions_are_told_by_name)
{
    plugin_bench_begin(b, &(tp_options){.absent = TP_BIT(232) | TP_BIT(464)});
    CHECK(plugin_bench_open(b, 0, NULL));
    uint64_t functions = info_of(b->device).functions;
    CHECK(!(functions & TP_BIT(232)) && !(functions & TP_BIT(464)));
    CHECK(functions & TP_BIT(216) && functions & TP_BIT(8) && functions & TP_BIT(456));
    CHECK_STR(quire_plugin_function_name(0), "initialize");
    CHECK_STR(quire_plugin_function_name(28), "device_memory_set");
    CHECK_STR(quire_plugin_function_name(57), "device_realloc_size");
    CHECK(!quire_plugin_function_name(18) && !quire_plugin_function_name(58));
    CHECK(!quire_plugin_function_name(64) && !quire_plugin_function_name(UINT32_MAX));
}

static void fails_at(uint32_t offset, int32_t status, quire_result code, const char *part)
{
    plugin_bench b;
    plugin_bench_begin(&b, NULL);
    b.tp->fail(&(tp_fault){.offset = offset, .call = 1, .status = status});
    CHECK(!plugin_bench_open(&b, 0, NULL));
    CHECK(b.tp->has_failed());
    CHECK_EQ(b.result, code);
    CHECK_HAS(quire_last_error(), part);
    CHECK_EQ(quire_last_native_code(), status);
    plugin_bench_end(&b);
    can_open(NULL);
}

UNIT(plugin_open, a_plugin_that_fails_to_begin)
{
    fails_at(8, TP_INTERNAL_ERROR, QUIRE_ERROR_BACKEND_FAILURE,
             "initialize of plugin 'test_device' answers C_INTERNAL_ERROR (4)");
    fails_at(8, 77, QUIRE_ERROR_BACKEND_FAILURE, "answers a status (77)");
    fails_at(400, TP_FAILED, QUIRE_ERROR_BACKEND_FAILURE, "get_device_count");
    fails_at(408, TP_WARNING, QUIRE_ERROR_BACKEND_FAILURE, "get_device_list");
    fails_at(24, TP_ERROR, QUIRE_ERROR_INVALID_ARGUMENT, "init_device");
    fails_at(32, TP_FAILED, QUIRE_ERROR_BACKEND_FAILURE, "set_device");
    fails_at(416, TP_FAILED, QUIRE_ERROR_BACKEND_FAILURE, "device_memory_stats");
    fails_at(448, TP_FAILED, QUIRE_ERROR_BACKEND_FAILURE, "device_extra_padding_size");
    cannot_open(&(tp_options){.has_no_devices = true}, UNSUPPORTED, "has 0 devices");
}

/* ---- devices -------------------------------------------------------------------------------- */

UNIT(plugin_open, devices_by_their_place_in_the_list)
{
    plugin_bench b;
    plugin_bench_begin(&b, &(tp_options){.device_count = 2});
    CHECK(plugin_bench_open(&b, 0, NULL) && plugin_bench_open(&b, 1, NULL));
    quire_device *again = NULL, *none = NULL;
    CHECK_OK(quire_plugin_open(&(quire_plugin_options){.path = TEST_PLUGIN, .device = 1}, &again));
    CHECK_EQ(info_of(b.devices[0]).id, 3);
    CHECK_EQ(info_of(b.devices[1]).id, 4);
    CHECK_EQ(info_of(again).device, 1);
    CHECK_EQ(b.tp->calls(8), 1);  /* initialize */
    CHECK_EQ(b.tp->calls(24), 2); /* init_device */
    CHECK_FAILS(quire_plugin_open(&(quire_plugin_options){.path = TEST_PLUGIN, .device = 2}, &none),
                QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_HAS(quire_last_error(), "has 2 devices, there is no device 2");
    CHECK_OK(quire_device_destroy(&again));
    CHECK_EQ(b.tp->calls(48), 0); /* another user still has the device */
    CHECK_EQ(b.tp->calls(16), 0);
    const tp_control *tp = b.tp;
    plugin_bench_end(&b);
    CHECK_EQ(tp->calls(48), 2);
    CHECK_EQ(tp->calls(16), 1);
}

/* init_device turns logical numbers into physical ones; the next initialisation starts from the
   listed numbers. */
PLUGIN_UNIT(plugin_open, init_device_may_renumber)
{
    plugin_bench_begin(b, &(tp_options){.device_count = 2, .renumber = 100});
    for (int i = 0; i < 2; i++) {
        quire_device *device = NULL;
        CHECK_OK(quire_plugin_open(&(quire_plugin_options){.path = TEST_PLUGIN}, &device));
        CHECK_EQ(info_of(device).id, 103);
        CHECK_OK(quire_device_destroy(&device));
    }
    CHECK(plugin_bench_open(b, 1, NULL));
    CHECK_EQ(info_of(b->devices[1]).id, 104);
    quire_memory *m = plugin_bench_memory(b, 1, 0, NULL);
    quire_allocation a;
    CHECK_OK(quire_allocate(m, &(quire_allocation_options){.size = 1, .zero = true}, &a));
}

UNIT(plugin_open, kinds_are_those_with_both_functions)
{
    static const struct {
        uint64_t absent;
        uint32_t host, unified, count;
    } CASES[] = {{0, 1, 2, 3},
                 {TP_BIT(240), UINT32_MAX, 1, 2},
                 {TP_BIT(248), UINT32_MAX, 1, 2},
                 {TP_BIT(256), 1, UINT32_MAX, 2},
                 {TP_BIT(264) | TP_BIT(240), UINT32_MAX, UINT32_MAX, 1}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        plugin_bench b;
        quire_device_info all;
        plugin_bench_begin(&b, &(tp_options){.absent = CASES[i].absent});
        CHECK(plugin_bench_open(&b, 0, NULL));
        quire_plugin_info info = info_of(b.device);
        CHECK_OK(quire_device_get_info(b.device, &all));
        CHECK_EQ(info.host_kind, CASES[i].host);
        CHECK_EQ(info.unified_kind, CASES[i].unified);
        CHECK_EQ(all.kind_count, CASES[i].count);
        CHECK_STR(all.backend, "plugin");
        CHECK_STR(all.name, "test_device 3");
        CHECK_EQ(all.kinds[0].flags, QUIRE_DEVICE_LOCAL);
        CHECK_EQ(all.heaps[0].size, UINT64_C(1) << 30);
        plugin_bench_end(&b);
    }
}

/* ---- threads -------------------------------------------------------------------------------- */

static void *use(void *memory)
{
    quire_allocation a;
    char in[100], out[100] = {0};
    memset(in, 7, sizeof in);
    for (int i = 0; i < 50; i++) {
        CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 100, .dedicated = true},
                                &a));
        CHECK_OK(quire_write(memory, a, 0, in, sizeof in));
        CHECK_OK(quire_read(memory, a, 0, out, sizeof out));
        CHECK(!memcmp(in, out, sizeof in));
        CHECK_OK(quire_free(memory, a));
        CHECK_OK(quire_memory_trim(memory, 0, NULL));
    }
    return NULL;
}

/* The plugin records every call on a thread with another current device; bench_end checks that. */
PLUGIN_UNIT(plugin_open, the_device_is_current_on_every_thread_that_calls)
{
    pthread_t threads[4];
    plugin_bench_begin(b, &(tp_options){.device_count = 2});
    CHECK(plugin_bench_open(b, 0, NULL) && plugin_bench_open(b, 1, NULL));
    for (uint32_t i = 0; i < 4; i++) {
        quire_memory *m = plugin_bench_memory(b, i % 2, 0, NULL);
        CHECK_EQ(pthread_create(&threads[i], NULL, use, m), 0);
    }
    use(b->memories[0]);
    use(b->memories[1]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

/* With two devices each call saves and restores the thread's device. */
UNIT(plugin_open, the_threads_device_is_restored_where_that_is_asked)
{
    plugin_bench b;
    const quire_plugin_options restores = {.restores_device = true};
    quire_budget_info budget;
    plugin_bench_begin(&b, &(tp_options){.device_count = 2});
    CHECK(plugin_bench_open(&b, 0, NULL) && plugin_bench_open(&b, 1, &restores));
    CHECK_OK(quire_device_get_budget(b.devices[0], 0, &budget));
    uint64_t before = b.tp->calls(32);
    CHECK_OK(quire_device_get_budget(b.devices[1], 0, &budget));
    CHECK_EQ(b.tp->calls(32), before + 2); /* set, then restored */
    CHECK_OK(quire_device_get_budget(b.devices[0], 0, &budget));
    CHECK_OK(quire_device_get_budget(b.devices[0], 0, &budget));
    CHECK_EQ(b.tp->calls(32), before + 4);
    plugin_bench_end(&b);

    plugin_bench_begin(&b, &(tp_options){.absent = TP_BIT(40)});
    CHECK(!plugin_bench_open(&b, 0, &restores));
    CHECK_EQ(b.result, UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "get_device");
    plugin_bench_end(&b);
}

/* ---- forks ----------------------------------------------------------------------------------- */

static bool is_refused(plugin_bench *b, quire_allocation held)
{
    quire_allocation a;
    quire_plugin_info info;
    quire_device *again = NULL;
    char byte = 0;
    const quire_plugin_options options = {.path = TEST_PLUGIN};
    quire_memory *m = b->memories[0];
    return quire_allocate(m, &(quire_allocation_options){.size = 1 << 20}, &a) == DENIED &&
           quire_read(m, held, 0, &byte, 1) == DENIED && quire_free(m, held) == DENIED &&
           quire_plugin_get_info(b->device, &info) == DENIED &&
           quire_plugin_open(&options, &again) == DENIED && !again;
}

static bool is_ended(plugin_bench *b)
{
    return !quire_stream_destroy(&b->streams[0]) && !quire_memory_destroy(&b->memories[0]) &&
           !quire_device_destroy(&b->devices[0]) && !b->host_memory.blocks;
}

static bool child(plugin_bench *b, quire_allocation held)
{
    uint64_t calls = b->tp->calls(0);
    alarm(20);
    return is_refused(b, held) && is_ended(b) && b->tp->calls(0) == calls;
}

/* Every call of a forked child is refused, except destroying, which releases the records and does
   not call the plugin. */
PLUGIN_UNIT_ON(plugin_open, a_forked_child_is_refused_and_can_end_everything,
               plugin_bench_begin(b, NULL))
{
    quire_allocation held;
    CHECK(plugin_bench_open(b, 0, NULL));
    quire_memory *memory = plugin_bench_memory(b, 0, 0, NULL);
    CHECK(memory != NULL);
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 100}, &held));
    CHECK_OK(quire_stream_create(b->device, NULL, &b->streams[0]));
    CHECK_OK(quire_free_on_stream(memory, held, b->streams[0]));
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 100}, &held));
    pid_t made = fork();
    CHECK(made >= 0);
    if (!made)
        child_end(child(b, held));
    CHECK(child_was_well(made));
    CHECK_OK(quire_free(memory, held));
}
