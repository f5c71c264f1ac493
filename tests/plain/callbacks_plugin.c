/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * callbacks_plugin.c - callbacks that use the memory they are called for
 * (tests/support/callbacks.h), on the plugin backend and the test plugin.
 */
#include "tests/support/callbacks.h"
#include "tests/support/plain.h"
#include "tests/support/plugin_bench.h"

static plugin_bench bench;

static void open_device(quire_log log, quire_device **device)
{
    plugin_bench_begin(&bench, NULL);
    CHECK_OK(quire_plugin_open(
        &(quire_plugin_options){
            .path = TEST_PLUGIN,
            .device_options = {.host_memory = &bench.host_memory.callbacks, .log = log}},
        device));
}

static void close_device(void)
{
    plugin_bench_end(&bench);
}

static void with_kind(uint32_t kind)
{
    callbacks_try(&(callbacks_subject){1 << 20, kind, open_device, close_device});
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
    plain_case("callbacks on the plugin backend, device memory", device_memory);
    plain_case("callbacks on the plugin backend, host memory", host_memory);
    return plain_end();
}
