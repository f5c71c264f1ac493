/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * callbacks_vulkan.c - callbacks that use the memory they are called for
 * (tests/support/callbacks.h), on the Vulkan backend and the fake driver.
 */
#include "tests/support/callbacks.h"
#include "tests/support/plain.h"
#include "tests/support/vulkan_bench.h"

static vulkan_bench bench;

static void open_device(quire_log log, quire_device **device)
{
    vulkan_bench_begin(&bench, NULL, 0);
    quire_vulkan_options options = {.device = "0", .get_instance_proc_addr = fv_door(bench.driver)};
    options.settings.device.host_memory = &bench.host_memory.callbacks;
    options.settings.device.log = log;
    CHECK_OK(quire_vulkan_open(&options, device));
}

static void close_device(void)
{
    vulkan_bench_end(&bench);
}

static void with_kind(uint32_t kind)
{
    callbacks_try(&(callbacks_subject){256 * 1024, kind, open_device, close_device});
}

static void device_memory(void)
{
    with_kind(0);
}

static void host_memory(void)
{
    with_kind(1);
}

int main(void)
{
    plain_case("callbacks on the Vulkan backend, memory kind 0", device_memory);
    plain_case("callbacks on the Vulkan backend, memory kind 1", host_memory);
    return plain_end();
}
