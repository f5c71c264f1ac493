/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * plugin.c - every call of a plugin's functions fails, at every index and with each status, those
 * that give something back among them. So does every allocation of host memory of the device. Then
 * nothing is left in the plugin, no host memory is lost, the library's records are whole, and the
 * plugin, which checks its callers, has no message.
 */
#include "quire/transfer.h"
#include "tests/fault/driver.h"
#include "tests/support/plugin_bench.h"

#define MIB (UINT64_C(1) << 20)
#define SYNCHRONOUS_COPIES (TP_BIT(272) | TP_BIT(280) | TP_BIT(288) | TP_BIT(296))

typedef struct scenario {
    const char *name;
    tp_options options;
    void (*body)(plugin_bench *b, quire_memory *m);
    uint32_t kind; /* of the memory */
    bool alone;    /* the body opens the device */
} scenario;

static const quire_memory_options SMALL = {.pages = {.page_size = MIB}};

static plugin_bench bench;

/* ---- what is done --------------------------------------------------------------------------- */

static void open_alone(plugin_bench *b, quire_memory *none)
{
    (void)none;
    const quire_plugin_options options = {.restores_device = true};
    quire_page_policy policy;
    quire_plugin_info info;
    if (!plugin_bench_open(b, 0, &options))
        return;
    STEP(b, quire_plugin_get_info(b->device, &info));
    STEP(b, quire_plugin_get_policy(b->device, QUIRE_PADDLE_AUTO_GROWTH, &policy));
}

static void range(plugin_bench *b, quire_memory *m)
{
    fault_range(&b->common, m, 1000, true);
}

static void pages_come_and_go(plugin_bench *b, quire_memory *m)
{
    fault_pages(&b->common, m, MIB / 2 + 1, 4);
}

static void copies(plugin_bench *b, quire_memory *m)
{
    quire_allocation a, target;
    quire_memory *peer =
        plugin_bench_open(b, 1, NULL) ? plugin_bench_memory(b, 1, 0, &SMALL) : NULL;
    if (!peer)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_allocate(peer, &(quire_allocation_options){.size = 1000}, &target));
    STEP(b, quire_write(m, a, 0, fault_data, 500));
    STEP(b, quire_copy(&(quire_copy_options){.to = {.memory = m, .allocation = a, .offset = 500},
                                             .from = {.memory = m, .allocation = a},
                                             .size = 500},
                       NULL));
    STEP(b, quire_copy(&(quire_copy_options){.to = {.memory = peer, .allocation = target},
                                             .from = {.memory = m, .allocation = a},
                                             .size = 1000},
                       NULL));
    STEP(b, quire_read(peer, target, 500, fault_back, 500));
    CHECK(!memcmp(fault_data, fault_back, 500));
    STEP(b, quire_fill(peer, target, &(quire_fill_options){.size = 1000, .value = 1}, NULL));
}

static void streams(plugin_bench *b, quire_memory *m)
{
    quire_allocation a;
    quire_point done, second;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_stream_create(b->device, NULL, &b->streams[0]));
    STEP(b, quire_stream_create(b->device, NULL, &b->streams[1]));
    STEP(b, quire_copy(&(quire_copy_options){.to = {.memory = m, .allocation = a},
                                             .host_from = fault_data,
                                             .size = 1000,
                                             .stream = b->streams[0]},
                       &done));
    STEP(b, quire_stream_wait(b->streams[1], &done));
    STEP(b, quire_stream_mark(b->streams[1], &second));
    STEP(b, quire_free_on_stream(m, a, b->streams[1]));
    STEP(b, quire_point_await(&second, QUIRE_FOREVER));
    STEP(b, quire_point_await(&done, QUIRE_FOREVER));
    STEP(b, quire_collect(m, NULL));
}

/* Ends cannot fail, whatever the plugin answers to them. */
static void to_the_end(plugin_bench *b, quire_memory *m)
{
    quire_point done;
    quire_allocation a;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_stream_create(b->device, NULL, &b->streams[0]));
    STEP(b, quire_stream_mark(b->streams[0], &done));
    CHECK_OK(quire_stream_destroy(&b->streams[0]));
    quire_memory_destroy_all(&b->memories[--b->memory_count]);
    CHECK_OK(quire_device_destroy(&b->devices[0]));
}

/* ---- the sweep ------------------------------------------------------------------------------ */

static const scenario scenarios[] = {
    {"a device", {.renumber = 5}, open_alone, 0, true},
    {"a page of device memory", {.base_offset = 16, .sizes = {512}}, range, 0, false},
    {"the same without fills and budgets", {.absent = TP_BIT(232) | TP_BIT(416)}, range, 0, false},
    {"the same with copies on streams alone", {.absent = SYNCHRONOUS_COPIES}, range, 0, false},
    {"a page of host memory", {.base_offset = 16}, range, 1, false},
    {"a page of unified memory", {.base_offset = 16}, range, 2, false},
    {"pages that come and go", {.sizes = {4096}}, pages_come_and_go, 0, false},
    {"copies on a device and between two", {.device_count = 2}, copies, 0, false},
    {"the same through the host",
     {.device_count = 2, .absent = TP_BIT(288) | TP_BIT(296) | TP_BIT(320) | TP_BIT(328)},
     copies,
     0,
     false},
    {"streams", {.base_offset = 0}, streams, 0, false},
    {"everything to its end", {.absent = SYNCHRONOUS_COPIES}, to_the_end, 0, false},
    {"streams without events", {.absent = TP_BIT(88)}, streams, 0, false},
};

static void begin(const void *scenario_)
{
    plugin_bench_begin(&bench, &((const scenario *)scenario_)->options);
    bench.tp->fail(NULL);
}

static void run(const void *scenario_)
{
    const scenario *s = scenario_;
    quire_memory *m = NULL;
    if (!s->alone && plugin_bench_open(&bench, 0, NULL))
        m = plugin_bench_memory(&bench, 0, s->kind, &SMALL);
    if (m || s->alone)
        s->body(&bench, m);
}

static void end(void)
{
    plugin_bench_end(&bench);
}

/* What fails: calls of the plugin, or of one of its functions, with a status. */
static tp_fault fault;

static uint64_t calls(void)
{
    return bench.tp->calls(0);
}

static bool fail(uint64_t call)
{
    fault.call = call;
    bench.tp->fail(&fault);
    return true;
}

static bool has_failed(void)
{
    return bench.tp->has_failed();
}

static void heal(void)
{
    bench.tp->fail(NULL);
}

static const fault_driver driver = {&bench.common, begin,      run,  end, calls,
                                    fail,          has_failed, heal, NULL};

static void sweep(const void *scenario_)
{
    static const int32_t STATUSES[] = {TP_WARNING, TP_FAILED, TP_ERROR, TP_INTERNAL_ERROR};
    static const uint32_t TAKES[] = {216, 240, 256};
    bool has_events = ((const scenario *)scenario_)->options.absent != TP_BIT(88);
    uint64_t fallible =
        fault_driver_calls(scenario_, has_events ? QUIRE_SUCCESS : QUIRE_ERROR_UNSUPPORTED);
    for (size_t i = 0; i < sizeof STATUSES / sizeof *STATUSES; i++) {
        fault = (tp_fault){.status = STATUSES[i]};
        fault_driver_sweep(fallible);
    }
    /* Memory that comes with a warning, and a success without any memory. */
    for (size_t i = 0; i < 2 * (sizeof TAKES / sizeof *TAKES); i++) {
        bool works = i % 2 != 0;
        fault = (tp_fault){
            .offset = TAKES[i / 2], .status = works ? TP_WARNING : TP_SUCCESS, .works = works};
        fault_driver_sweep(FAULT_UNKNOWN);
    }
    fault_driver_sweep_memory();
}

int main(int argc, char **argv)
{
    fault_driver_begin(&driver, argc, argv);
    FAULT_TABLE(scenarios, sweep);
    return fault_end();
}
