/*
 * plugin.c - every call of a plugin's functions fails, at every index and with each status,
 * those that give something back among them; and every allocation of host memory of the device:
 * nothing is left behind in the plugin, no host memory is lost, the library's records stay whole,
 * and the plugin, which checks what it is asked, has nothing to say.
 */
#include <stdio.h>

#include "quire/transfer.h"
#include "tests/fault/fault.h"
#include "tests/support/plugin_bench.h"

#define MIB (UINT64_C(1) << 20)
#define SYNCHRONOUS_COPIES (TP_BIT(272) | TP_BIT(280) | TP_BIT(288) | TP_BIT(296))

typedef struct scenario {
    const char *name;
    tp_options options;
    void (*body)(plugin_bench *b);
} scenario;

static const quire_memory_options SMALL = {.pages = {.page_size = MIB}};

static unsigned char data[4096], back[4096];

/* ---- what is done --------------------------------------------------------------------------- */

static void open_alone(plugin_bench *b)
{
    const quire_plugin_options options = {.restores_device = true};
    quire_page_policy policy;
    quire_plugin_info info;
    if (!plugin_bench_open(b, 0, &options))
        return;
    STEP(b, quire_plugin_get_info(b->device, &info));
    STEP(b, quire_plugin_get_policy(b->device, QUIRE_PADDLE_AUTO_GROWTH, &policy));
}

static void range_of(plugin_bench *b, uint32_t kind)
{
    quire_allocation a;
    quire_memory *m =
        plugin_bench_open(b, 0, NULL) ? plugin_bench_memory(b, 0, kind, &SMALL) : NULL;
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000, .zero = true}, &a));
    STEP(b, quire_write(m, a, 0, data, 1000));
    memset(back, 0, 1000);
    STEP(b, quire_read(m, a, 0, back, 1000));
    CHECK(!memcmp(data, back, 1000));
    STEP(b, quire_free(m, a));
    STEP(b, quire_memory_trim(m, 0, NULL));
}

static void device(plugin_bench *b)
{
    range_of(b, 0);
}

static void host(plugin_bench *b)
{
    range_of(b, 1);
}

static void unified(plugin_bench *b)
{
    range_of(b, 2);
}

static void pages_come_and_go(plugin_bench *b)
{
    quire_allocation a[4];
    quire_memory *m = plugin_bench_open(b, 0, NULL) ? plugin_bench_memory(b, 0, 0, &SMALL) : NULL;
    for (int i = 0; m && i < 4; i++)
        STEP(b, quire_allocate(m, &(quire_allocation_options){.size = MIB / 2 + 1}, &a[i]));
    for (int i = 0; m && i < 4; i++)
        STEP(b, quire_free(m, a[i]));
    if (m)
        STEP(b, quire_memory_trim(m, 0, NULL));
}

static void copies(plugin_bench *b)
{
    quire_allocation a, target;
    if (!plugin_bench_open(b, 0, NULL) || !plugin_bench_open(b, 1, NULL))
        return;
    quire_memory *m = plugin_bench_memory(b, 0, 0, &SMALL);
    quire_memory *peer = m ? plugin_bench_memory(b, 1, 0, &SMALL) : NULL;
    if (!peer)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_allocate(peer, &(quire_allocation_options){.size = 1000}, &target));
    STEP(b, quire_write(m, a, 0, data, 500));
    STEP(b, quire_copy(&(quire_copy_options){.to = {.memory = m, .allocation = a, .offset = 500},
                                             .from = {.memory = m, .allocation = a},
                                             .size = 500},
                       NULL));
    STEP(b, quire_copy(&(quire_copy_options){.to = {.memory = peer, .allocation = target},
                                             .from = {.memory = m, .allocation = a},
                                             .size = 1000},
                       NULL));
    STEP(b, quire_read(peer, target, 500, back, 500));
    CHECK(!memcmp(data, back, 500));
    STEP(b, quire_fill(peer, target, &(quire_fill_options){.size = 1000, .value = 1}, NULL));
}

static void streams(plugin_bench *b)
{
    quire_allocation a;
    quire_point done, second;
    quire_memory *m = plugin_bench_open(b, 0, NULL) ? plugin_bench_memory(b, 0, 0, &SMALL) : NULL;
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_stream_create(b->device, NULL, &b->streams[0]));
    STEP(b, quire_stream_create(b->device, NULL, &b->streams[1]));
    STEP(b, quire_copy(&(quire_copy_options){.to = {.memory = m, .allocation = a},
                                             .host_from = data,
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
static void to_the_end(plugin_bench *b)
{
    quire_point done;
    quire_allocation a;
    quire_memory *m = plugin_bench_open(b, 0, NULL) ? plugin_bench_memory(b, 0, 0, &SMALL) : NULL;
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_stream_create(b->device, NULL, &b->streams[0]));
    STEP(b, quire_stream_mark(b->streams[0], &done));
    CHECK_OK(quire_stream_destroy(&b->streams[0]));
    quire_memory_destroy_all(&b->memories[--b->memory_count]);
    CHECK_OK(quire_device_destroy(&b->devices[0]));
}

/* ---- the sweep ------------------------------------------------------------------------------ */

static const scenario scenarios[] = {
    {"a device", {.renumber = 5}, open_alone},
    {"a page of device memory", {.base_offset = 16, .sizes = {512}}, device},
    {"the same without fills and budgets", {.absent = TP_BIT(232) | TP_BIT(416)}, device},
    {"the same with copies on streams alone", {.absent = SYNCHRONOUS_COPIES}, device},
    {"a page of host memory", {.base_offset = 16}, host},
    {"a page of unified memory", {.base_offset = 16}, unified},
    {"pages that come and go", {.sizes = {4096}}, pages_come_and_go},
    {"copies on a device and between two", {.device_count = 2}, copies},
    {"the same through the host",
     {.device_count = 2, .absent = TP_BIT(288) | TP_BIT(296) | TP_BIT(320) | TP_BIT(328)},
     copies},
    {"streams", {.base_offset = 0}, streams},
    {"everything to its end", {.absent = SYNCHRONOUS_COPIES}, to_the_end},
    {"streams without events", {.absent = TP_BIT(88)}, streams},
};

/* What fails: calls of the plugin with a status, or allocations of host memory. */
typedef struct target {
    const scenario *scenario;
    bool in_host_memory;
    tp_fault fault;
} target;

typedef struct counts {
    uint64_t calls;       /* of the plugin */
    uint64_t allocations; /* of host memory */
} counts;

/* Runs the scenario without a fault; returns the calls that can fail. */
static counts count(const scenario *s)
{
    plugin_bench b;
    plugin_bench_begin(&b, &s->options);
    b.tp->fail(NULL);
    test_memory_fail(&b.host_memory, 0, false);
    s->body(&b);
    counts found = {b.tp->calls(0), b.host_memory.calls};
    bool orders_streams = s->options.absent != TP_BIT(88);
    if (b.result != (orders_streams ? QUIRE_SUCCESS : QUIRE_ERROR_UNSUPPORTED))
        check_failed(__FILE__, __LINE__, "%s: %s", s->name, quire_last_error());
    CHECK(found.calls > 0 && found.allocations > 0);
    plugin_bench_end(&b);
    return found;
}

static bool run(void *context, uint64_t call)
{
    target *t = context;
    plugin_bench b;
    plugin_bench_begin(&b, &t->scenario->options);
    t->fault.call = call;
    b.tp->fail(t->in_host_memory ? NULL : &t->fault);
    test_memory_fail(&b.host_memory, t->in_host_memory ? call : 0, false);
    t->scenario->body(&b);
    bool is_reached = t->in_host_memory ? b.host_memory.calls >= call : b.tp->has_failed();
    test_memory_fail(&b.host_memory, 0, false);
    if (b.result)
        CHECK(*quire_last_error());
    plugin_bench_end(&b);
    return is_reached;
}

/* Memory that comes with a warning, and a success without any memory. */
static void sweep_takes(target *t)
{
    static const uint32_t TAKES[] = {216, 240, 256};
    for (size_t i = 0; i < sizeof TAKES / sizeof *TAKES; i++)
        for (int works = 0; works < 2; works++) {
            t->fault = (tp_fault){.offset = TAKES[i], .status = works ? TP_WARNING : TP_SUCCESS};
            t->fault.works = works;
            fault_sweep(run, t, FAULT_UNKNOWN);
        }
}

static void sweep(const void *scenario_)
{
    static const int32_t STATUSES[] = {TP_WARNING, TP_FAILED, TP_ERROR, TP_INTERNAL_ERROR};
    target t = {.scenario = scenario_};
    counts found = count(t.scenario);
    for (size_t i = 0; i < sizeof STATUSES / sizeof *STATUSES; i++) {
        t.fault = (tp_fault){.status = STATUSES[i]};
        fault_sweep(run, &t, found.calls);
    }
    sweep_takes(&t);
    t.in_host_memory = true;
    fault_sweep(run, &t, found.allocations);
}

int main(int argc, char **argv)
{
    fault_begin(argc, argv);
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7 + 3);
    FAULT_TABLE(scenarios, sweep);
    return fault_end();
}
