/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * plugin.c - the plugin backend under the contract: on the test plugin, with more or fewer
 * functions and with memory at various places.
 */
#include <stdlib.h>

#include "tests/contract/contract.h"
#include "tests/support/plugin_bench.h"

#define MIB (UINT64_C(1) << 20)

#define REQUIRED (TP_BIT(216) | TP_BIT(224) | TP_BIT(400) | TP_BIT(408) | TP_BIT(32))
#define HOST_KINDS (TP_BIT(240) | TP_BIT(248) | TP_BIT(256) | TP_BIT(264))
#define SYNCHRONOUS_COPIES (TP_BIT(272) | TP_BIT(280) | TP_BIT(288) | TP_BIT(296))
#define EVENTS (TP_BIT(88) | TP_BIT(96) | TP_BIT(104) | TP_BIT(112) | TP_BIT(136))

/* A plugin and the options of its caller. */
typedef struct pose {
    tp_options plugin;
    uint64_t alignment;
    bool restores;
    /* quire runs above it as the memory of a runtime (src/adapters/paddle_runtime). */
    bool is_stacked;
} pose;

/*
 * All devices of a process share one plugin. It is reset with the first device and checked after
 * the last.
 */
static int open_devices;

static quire_result open_plugin(const contract_subject *subject, const quire_host_memory *host,
                                contract_opened *opened)
{
    const pose *p = subject->options;
    const tp_control *tp = plugin_bench_control();
    if (!open_devices)
        tp->reset(&p->plugin);
    setenv("QUIRE_PADDLE_PLUGIN", TEST_PLUGIN, 1);
    const quire_plugin_options options = {.path = p->is_stacked ? PADDLE_RUNTIME : TEST_PLUGIN,
                                          .alignment = p->alignment,
                                          .restores_device = p->restores,
                                          .device_options = {.host_memory = host}};
    quire_result result = quire_plugin_open(&options, &opened->device);
    open_devices += !result;
    return result;
}

static void close_plugin(void *own)
{
    const tp_control *tp = plugin_bench_control();
    (void)own;
    const char *message = tp->message();
    if (message)
        check_failed(__FILE__, __LINE__, "%s", message);
    if (--open_devices)
        return;
    CHECK_EQ(tp->blocks(), 0);
    CHECK_EQ(tp->objects(), 0);
}

/* Reads without any callback. The host can access memory that is not the device's own. */
static bool look(void *own, const quire_native_page *page, uint64_t offset, void *data,
                 uint64_t size)
{
    (void)own;
    if (!plugin_bench_control()->look(page->address + offset, data, size))
        memcpy(data, (const char *)(uintptr_t)page->address + offset, size);
    return true;
}

static quire_result set_budget(void *own, uint32_t heap, uint64_t bytes)
{
    (void)own;
    CHECK_EQ(heap, 0);
    plugin_bench_control()->tell(bytes);
    return QUIRE_SUCCESS;
}

#define POSE(what, ...)                                                                            \
    .name = "plugin, " what, .options = &(const pose){__VA_ARGS__}, .open = open_plugin,           \
    .close = close_plugin, .look = look

static const contract_subject poses[] = {
    {POSE("all functions", .plugin = {.sizes = {512}})},
    {POSE("addresses anywhere", .plugin = {.sizes = {512}, .base_offset = 16}, .restores = true)},
    {POSE("addresses that are odd, chunks of 1000 bytes",
          .plugin = {.sizes = {1000}, .base_offset = 1})},
    {POSE("an alignment that is known", .plugin = {.sizes = {65536}}, .alignment = 4096)},
    {POSE("required functions alone", .plugin = {.absent = ~REQUIRED})},
    {POSE("copies on streams alone", .plugin = {.absent = SYNCHRONOUS_COPIES})},
    {POSE("no copy on the device, no events", .plugin = {.absent = TP_BIT(288) | EVENTS})},
    {POSE("streams and events that are null", .plugin = {.gives_no_streams = true})},
    {POSE("a device of 48 MiB that tells its budget",
          .plugin = {.bytes = 48 * MIB, .sizes = {4096}, .absent = HOST_KINDS}),
     .set_budget = set_budget},
    {POSE("a device of 48 MiB that tells nothing",
          .plugin = {.bytes = 48 * MIB, .absent = HOST_KINDS | TP_BIT(416)})},
    {POSE("on quire's own runtime", .plugin = {.bytes = 512 * MIB, .base_offset = 16},
          .is_stacked = true),
     .is_shared = true}, /* the memory of the runtime itself counts as in use */
};

const contract_subject *const plugin_subjects[] = {
    &poses[0], &poses[1], &poses[2], &poses[3], &poses[4],  &poses[5],
    &poses[6], &poses[7], &poses[8], &poses[9], &poses[10], NULL,
};
