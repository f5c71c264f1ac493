/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * icd.c - the fake driver as an installable driver, which the Vulkan loader finds by its manifest.
 * Its options are environment variables:
 *
 *   QUIRE_FAKE_LAYOUT    names of layouts, separated by commas, one for each physical device;
 *                        default: "amd-bar"
 *   QUIRE_FAKE_FLAGS     odd-sizes, prefer-dedicated, stale, late, dirty, sparse-apart; separated
 *                        by commas
 *   QUIRE_FAKE_FAIL      "function 3" fails its third call, "function 3+" that and all later ones,
 *                        "* 3" the third call that can fail; a code can follow: "function 1 -5"
 *   QUIRE_FAKE_CAPACITY  "heap bytes": available bytes of a heap of the first device
 *   QUIRE_FAKE_REPORT    a file for calls, peaks, live objects and messages, written at the end
 *
 * An invalid value aborts the program, so that no test runs with unexpected options. Messages are
 * written to stderr.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/settings.h"
#include "tests/support/vulkan/table.h"

#define EXPORTED __attribute__((visibility("default")))
#define INTERFACE_VERSION 5

static fv_driver *driver;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static _Noreturn void refuse(const char *name, const char *value)
{
    settings_refuse("fake vulkan", name, value);
}

/* ---- reading the environment -------------------------------------------------------------- */

static void each_part(const char *name, void (*take)(const char *part, void *state), void *state)
{
    settings_each("fake vulkan", name, take, state);
}

static void take_layout(const char *part, void *state)
{
    fv_options *options = state;
    uint32_t at = 0;
    while (at < FV_MAX_DEVICES && options->layouts[at])
        at++;
    if (at == FV_MAX_DEVICES || !fv_layout_named(part))
        refuse("QUIRE_FAKE_LAYOUT", part);
    options->layouts[at] = fv_layout_named(part);
}

static void take_flag(const char *part, void *state)
{
    static const struct {
        const char *name;
        uint32_t flag;
    } FLAGS[] = {
        {"odd-sizes", FV_ODD_SIZES}, {"prefer-dedicated", FV_PREFER_DEDICATED},
        {"stale", FV_STALE},         {"late", FV_LATE},
        {"dirty", FV_DIRTY},         {"sparse-apart", FV_SPARSE_APART},
    };
    fv_options *options = state;
    for (size_t i = 0; i < sizeof FLAGS / sizeof *FLAGS; i++)
        if (!strcmp(FLAGS[i].name, part)) {
            options->flags |= FLAGS[i].flag;
            return;
        }
    refuse("QUIRE_FAKE_FLAGS", part);
}

static void take_fault(const char *value)
{
    char function[FV_NAME_SIZE], plus = 0;
    unsigned long long call;
    int code = 0, fields = sscanf(value, "%79s %llu%c %d", function, &call, &plus, &code);
    fv_fault fault = {.function = strcmp(function, "*") ? function : NULL,
                      .call = call,
                      .from_then = plus == '+',
                      .result = (VkResult)code};
    if (fields < 2 || !call || (plus && plus != '+' && plus != ' ') || !fv_fail(driver, &fault))
        refuse("QUIRE_FAKE_FAIL", value);
}

static void take_capacity(const char *value)
{
    unsigned heap;
    unsigned long long bytes;
    if (sscanf(value, "%u %llu", &heap, &bytes) != 2 || heap >= driver->layouts[0].heap_count)
        refuse("QUIRE_FAKE_CAPACITY", value);
    fv_set_capacity(driver, 0, heap, bytes);
}

static void start(void)
{
    fv_options options = {.flags = FV_PRINT};
    each_part("QUIRE_FAKE_LAYOUT", take_layout, &options);
    each_part("QUIRE_FAKE_FLAGS", take_flag, &options);
    driver = fv_create(&options);
    (void)fv_door(driver);
    if (getenv("QUIRE_FAKE_FAIL"))
        take_fault(getenv("QUIRE_FAKE_FAIL"));
    if (getenv("QUIRE_FAKE_CAPACITY"))
        take_capacity(getenv("QUIRE_FAKE_CAPACITY"));
}

/* ---- the report --------------------------------------------------------------------------- */

static void write_report(FILE *file)
{
    for (uint32_t i = 0; i < FV_CALL_COUNT; i++)
        if (driver->calls[i])
            fprintf(file, "calls %s %" PRIu64 "\n", fv_call_name((fv_call)i), driver->calls[i]);
    for (uint32_t i = 0; i < driver->device_count; i++)
        for (uint32_t heap = 0; heap < driver->layouts[i].heap_count; heap++)
            fprintf(file, "peak %u %u %" PRIu64 "\n", i, heap,
                    driver->heaps[i][heap].usage.peak_bytes);
    for (uint32_t kind = 0; kind < FV_KINDS; kind++)
        if (driver->live[kind])
            fprintf(file, "live %" PRIu64 " %s\n", driver->live[kind], fv_kind_name((fv_kind)kind));
    for (uint32_t i = 0; fv_message(driver, i); i++)
        fprintf(file, "message %s\n", fv_message(driver, i));
}

/* Runs when the program exits, or when the loader unloads the driver. */
__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("QUIRE_FAKE_REPORT");
    FILE *file = driver && path ? fopen(path, "w") : NULL;
    if (file) {
        write_report(file);
        fclose(file);
    }
    if (driver && !driver->live[FV_INSTANCE])
        fv_destroy(driver);
    driver = NULL;
}

/* ---- what the loader looks for ------------------------------------------------------------ */

EXPORTED VkResult vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version)
{
    *version = *version < INTERFACE_VERSION ? *version : INTERFACE_VERSION;
    return VK_SUCCESS;
}

EXPORTED PFN_vkVoidFunction vk_icdGetInstanceProcAddr(VkInstance instance, const char *name)
{
    pthread_once(&once, start);
    return fv_instance_function(driver, (fv_instance *)instance, name);
}

EXPORTED PFN_vkVoidFunction vk_icdGetPhysicalDeviceProcAddr(VkInstance instance, const char *name)
{
    (void)instance;
    pthread_once(&once, start);
    return fv_physical_device_function(driver, name);
}
