/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_layer_settings.c - the layer's settings, statistics and trace, and its place in the chain.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "quire/trace.h"
#include "tests/support/layer_fixture.h"
#include "tests/support/unit.h"

/* ---- settings, statistics, trace ------------------------------------------------------------- */

UNIT_ALONE(vulkan_layer_settings, settings_change_pages_and_thresholds)
{
    fv_fixture f;
    const char *path = lf_name_file("QUIRE_LAYER_STATS_FILE");
    setenv("QUIRE_LAYER_PAGE_SIZE", "1M", 1);
    setenv("QUIRE_LAYER_THRESHOLD", "100K", 1);
    setenv("QUIRE_LAYER_FIT", "buddy", 1);
    setenv("QUIRE_LAYER_RETAIN", "8M", 1);
    setenv("QUIRE_LAYER_STATS", "json", 1);
    VkDeviceMemory memories[40];
    lf_open_named(&f, "amd-bar");
    for (int i = 0; i < 40; i++)
        memories[i] = lf_allocate(&f, 99 * KIB, 0, NULL);
    CHECK_EQ(lf_driver_allocations(&f), 5); /* blocks of 128 KiB, eight per page */
    lf_expect_passed(&f, 100 * KIB, 0, NULL);
    for (int i = 0; i < 40; i++)
        lf_release(&f, memories[i]);
    CHECK_EQ(fv_live(f.driver, FV_MEMORY), 5); /* retained */
    fv_fixture_close(&f);
    const char *text = lf_read(path);
    CHECK_HAS(text, "\"client_allocations\":41");
    CHECK_HAS(text, "\"driver_allocations\":6");
    CHECK_HAS(text, "\"never_freed\":0");
    remove(path);
}

/* The layout has atoms of 64 bytes or more, of which the rest behind a range is no request. */
UNIT_ALONE(vulkan_layer_settings, statistics_count_the_bytes_that_the_program_requested)
{
    enum { COUNT = 100 };
    fv_fixture f;
    const char *path = lf_name_file("QUIRE_LAYER_STATS_FILE");
    VkDeviceMemory memories[COUNT];
    setenv("QUIRE_LAYER_STATS", "json", 1);
    lf_open_named(&f, "amd-bar");
    for (int i = 0; i < COUNT; i++)
        memories[i] = lf_allocate(&f, 2001, 0, NULL);
    for (int i = 0; i < COUNT; i++)
        lf_release(&f, memories[i]);
    fv_fixture_close(&f);
    const char *text = lf_read(path);
    CHECK_HAS(text, "\"peak_requested_bytes\":200100,\n\"outcomes\"");
    CHECK_HAS(text, "\"peak_requested_bytes\":200100,\"peak_reserved_bytes\"");
    remove(path);
}

UNIT_ALONE(vulkan_layer_settings, a_page_size_applies_to_the_first_page)
{
    enum { COUNT = 200 };
    fv_fixture f;
    VkDeviceMemory memories[COUNT];
    setenv("QUIRE_LAYER_PAGE_SIZE", "32M", 1);
    lf_open_named(&f, "amd-bar");
    for (int i = 0; i < COUNT; i++)
        memories[i] = lf_allocate(&f, 64 * KIB, 0, NULL);
    CHECK_EQ(lf_driver_allocations(&f), 1);
    for (int i = 0; i < COUNT; i++)
        lf_release(&f, memories[i]);
    fv_fixture_close(&f);
}

UNIT_ALONE(vulkan_layer_settings, no_empty_page_is_kept_if_0_bytes_are_retained)
{
    static const char *const NONE[] = {"0", "0K"};
    for (int i = 0; i < 2; i++) {
        fv_fixture f;
        setenv("QUIRE_LAYER_RETAIN", NONE[i], 1);
        lf_open_named(&f, "amd-bar");
        VkDeviceMemory memory = lf_allocate(&f, 1000, 0, NULL);
        CHECK_EQ(fv_live(f.driver, FV_MEMORY), 1);
        lf_release(&f, memory);
        CHECK_EQ(fv_live(f.driver, FV_MEMORY), 0);
        fv_fixture_close(&f);
    }
}

/* A file without a form gets text. */
UNIT_ALONE(vulkan_layer_settings, a_file_for_statistics_requests_them)
{
    fv_fixture f;
    const char *path = lf_name_file("QUIRE_LAYER_STATS_FILE");
    lf_open_named(&f, "amd-bar");
    lf_release(&f, lf_allocate(&f, 1000, 0, NULL));
    fv_fixture_close(&f);
    CHECK_HAS(lf_read(path), "\n  1 allocation of the program, 1 of the driver: 1 page and 0");
    remove(path);
}

UNIT_ALONE(vulkan_layer_settings, an_invalid_setting_refuses_the_device)
{
    static const char *const BAD[][2] = {
        {"QUIRE_LAYER_PAGE_SIZE", "0"},  {"QUIRE_LAYER_PAGE_SIZE", "1X"},
        {"QUIRE_LAYER_THRESHOLD", "-5"}, {"QUIRE_LAYER_RETAIN", "99999999999999999999"},
        {"QUIRE_LAYER_FIT", "linear"},   {"QUIRE_LAYER_DEDICATED", "yes"},
        {"QUIRE_LAYER_STATS", "1"},      {"QUIRE_LAYER_ZERO", "1"},
        {"QUIRE_LAYER_THRESHOLD", "0"},  {"QUIRE_LAYER_RETAIN", "-1"},
    };
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        setenv(BAD[i][0], BAD[i][1], 1);
        CHECK_EQ((uint32_t)lf_try(), (uint32_t)VK_ERROR_INITIALIZATION_FAILED);
        unsetenv(BAD[i][0]);
    }
}

UNIT_ALONE(vulkan_layer_settings, the_trace_of_a_program_can_be_replayed)
{
    fv_fixture f;
    quire_trace *trace = NULL;
    quire_trace_info info;
    const char *path = lf_name_file("QUIRE_LAYER_TRACE");
    lf_open_named(&f, "amd-bar");
    VkDeviceMemory a = lf_allocate(&f, 1000, 0, NULL), b = lf_allocate(&f, 70000, 2, NULL);
    lf_expect_passed(&f, 16 * MIB, 0, NULL);
    lf_release(&f, a);
    lf_release(&f, b);
    lf_allocate(&f, 10, 0, NULL);
    fv_fixture_close(&f);
    const char *text = lf_read(path);
    CHECK_OK(quire_trace_parse(path, text, strlen(text), unit_memory(), &trace));
    CHECK_OK(quire_trace_get_info(trace, &info));
    CHECK_EQ(info.alloc_count, 3);
    CHECK_EQ(info.free_count, 2);
    CHECK_EQ(info.peak_bytes, 71000);
    CHECK_EQ(info.left_bytes, 10);
    quire_trace_destroy(&trace);
    remove(path);
}

#define CASE(name, layout) LAYER_CASE(vulkan_layer_settings, name, layout)

/* ---- the chain ------------------------------------------------------------------------------- */

CASE(functions_that_the_next_layer_lacks_are_not_offered, "amd-bar")
{
    CHECK(f->get_of_device(f->device, "vkAllocateMemory") != NULL);
    CHECK(f->get_of_device(f->device, "vkBindBufferMemory2KHR") != NULL);
    CHECK(f->get_of_device(f->device, "vkMapMemory2KHR") == NULL);
    CHECK(f->get_of_device(f->device, "vkBindVideoSessionMemoryKHR") == NULL);
    CHECK(f->get_of_device(f->device, "vkNoSuchThing") == NULL);
    CHECK(f->get(f->instance, "vkAllocateMemory") ==
          f->get_of_device(f->device, "vkAllocateMemory"));
    CHECK(f->get(f->instance, "vkNoSuchThing") == NULL);
}

/* Functions and structs of later versions: what the layer does not know is the driver's. */
CASE(functions_and_structs_that_the_layer_does_not_know_are_the_drivers, "amd-bar")
{
    static const char *const FUNCTIONS[] = {"vkCreateSampler", "vkCreateBuffer", "vkQueueSubmit"};
    PFN_vkGetInstanceProcAddr driver = fv_door(f->driver);
    PFN_vkGetDeviceProcAddr of_device =
        (PFN_vkGetDeviceProcAddr)driver(f->instance, "vkGetDeviceProcAddr");
    for (size_t i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++)
        CHECK(f->get_of_device(f->device, FUNCTIONS[i]) == of_device(f->device, FUNCTIONS[i]));
    const VkBaseInStructure unknown = {.sType = (VkStructureType)1999999999};
    fv_allow(f->driver, "fv-chain");
    lf_expect_passed(f, 1000, 0, &unknown);
}

/* quire needs 1.1: the layer requests it. If a function of 1.1 is missing the layer is not
   active. */
UNIT(vulkan_layer_settings, programs_of_vulkan_1_0_and_devices_without_quire_work)
{
    for (int hidden = 0; hidden < 2; hidden++) {
        fv_fixture f;
        lf_open_bare(&f, hidden ? "vkGetBufferMemoryRequirements2" : NULL);
        VkDeviceMemory memory = lf_allocate(&f, 1000, 0, NULL);
        CHECK_EQ(lf_is_passed(&f, memory), hidden);
        lf_release(&f, memory);
        fv_fixture_close(&f);
    }
}
