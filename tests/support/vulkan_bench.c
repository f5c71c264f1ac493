/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_bench.c - see vulkan_bench.h.
 */
#include "tests/support/vulkan_bench.h"

#include "tests/support/check.h"

void vulkan_bench_begin(vulkan_bench *b, const char *layout, uint32_t flags)
{
    const fv_options options = {.layouts = {fv_layout_named(layout ? layout : "amd-bar")},
                                .flags = flags};
    CHECK(options.layouts[0] != NULL);
    vulkan_bench_begin_with(b, &options);
}

void vulkan_bench_begin_with(vulkan_bench *b, const fv_options *options)
{
    *b = (vulkan_bench){.driver = fv_create(options)};
    driver_bench_begin(&b->common);
}

/* With a log, debug names are given. */
static void ignore(void *user, quire_log_level level, const char *line)
{
    (void)user;
    (void)level;
    (void)line;
}

bool vulkan_bench_open(vulkan_bench *b, const quire_vulkan_settings *settings)
{
    quire_vulkan_options options = {.device = NULL};
    if (settings)
        options.settings = *settings;
    return vulkan_bench_open_with(b, options);
}

bool vulkan_bench_open_with(vulkan_bench *b, quire_vulkan_options options)
{
    options.device = "0";
    options.get_instance_proc_addr = fv_door(b->driver);
    options.settings.device.host_memory = &b->host_memory.callbacks;
    if (!options.settings.device.log.write)
        options.settings.device.log.write = ignore;
    return driver_bench_step(&b->common, quire_vulkan_open(&options, &b->device));
}

void vulkan_bench_start(vulkan_bench *b, const char *layout, uint32_t flags)
{
    vulkan_bench_begin(b, layout, flags);
    CHECK(vulkan_bench_open(b, NULL));
}

void vulkan_bench_start_with(vulkan_bench *b, const fv_options *options)
{
    vulkan_bench_begin_with(b, options);
    CHECK(vulkan_bench_open(b, NULL));
}

quire_vulkan_handles vulkan_bench_handles(const vulkan_bench *b)
{
    quire_vulkan_handles handles;
    CHECK_OK(quire_vulkan_get_handles(b->device, &handles));
    return handles;
}

quire_vulkan_wrap_options vulkan_bench_wrap(const vulkan_bench *b)
{
    const quire_vulkan_handles h = vulkan_bench_handles(b);
    return (quire_vulkan_wrap_options){
        .instance = h.instance,
        .physical_device = h.physical_device,
        .device = h.device,
        .get_instance_proc_addr = h.get_instance_proc_addr,
    };
}

quire_memory *vulkan_bench_memory(vulkan_bench *b, const quire_memory_options *options)
{
    return driver_bench_memory(&b->common, b->device, options);
}

void vulkan_bench_stop_waits(vulkan_bench *b)
{
    const fv_fault fault = {.function = "vkWaitForFences",
                            .call = 1,
                            .from_then = true,
                            .result = VK_ERROR_OUT_OF_HOST_MEMORY};
    CHECK(fv_fail(b->driver, &fault));
}

fv_memory_info vulkan_bench_page(vulkan_bench *b, quire_memory *memory, quire_allocation allocation)
{
    quire_vulkan_range range;
    fv_memory_info info;
    CHECK_OK(quire_vulkan_get_range(memory, allocation, &range));
    CHECK(fv_memory_of(b->driver, range.memory, &info));
    return info;
}

static void end_defaults(vulkan_bench *b)
{
    quire_device_info info;
    CHECK_OK(quire_device_get_info(b->device, &info));
    for (uint32_t kind = 0; kind < info.kind_count; kind++) {
        quire_memory *memory = NULL;
        CHECK_OK(quire_device_default_memory(b->device, kind, &memory));
        CHECK_OK(quire_memory_check(memory));
        quire_memory_destroy_all(&memory);
    }
}

void vulkan_bench_end(vulkan_bench *b)
{
    fv_heal(b->driver);
    if (b->device && b->has_defaults)
        end_defaults(b);
    if (b->device)
        CHECK_OK(quire_lluvia_view_destroy(b->device, &b->view));
    driver_bench_end_memories(&b->common);
    driver_bench_end(&b->common);
    for (int kind = 0; kind < FV_KINDS; kind++)
        if (kind != FV_PHYSICAL_DEVICE && kind != FV_QUEUE && fv_live(b->driver, (fv_kind)kind))
            check_failed(__FILE__, __LINE__, "%" PRIu64 " of kind %s are left",
                         fv_live(b->driver, (fv_kind)kind), fv_kind_name((fv_kind)kind));
    const char *message = fv_message(b->driver, 0);
    if (message)
        check_failed(__FILE__, __LINE__, "%s", message);
    fv_destroy(b->driver);
}
