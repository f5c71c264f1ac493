/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_result.c - the translation of VkResult into messages and result codes, and the number of
 * repetitions of a failed wait.
 */
#include <stdio.h>

#include "backends/vulkan/functions.h"
#include "tests/support/unit.h"
#include "tests/support/vulkan_bench.h"

/* The table of docs/vulkan.md. */
static const struct {
    VkResult code;
    quire_result result;
    const char *name;
} ANSWERS[] = {
    {VK_ERROR_OUT_OF_HOST_MEMORY, QUIRE_ERROR_OUT_OF_HOST_MEMORY, "VK_ERROR_OUT_OF_HOST_MEMORY"},
    {VK_ERROR_MEMORY_MAP_FAILED, QUIRE_ERROR_OUT_OF_HOST_MEMORY, "VK_ERROR_MEMORY_MAP_FAILED"},
    {VK_ERROR_OUT_OF_DEVICE_MEMORY, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
     "VK_ERROR_OUT_OF_DEVICE_MEMORY"},
    {VK_ERROR_OUT_OF_POOL_MEMORY, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, "VK_ERROR_OUT_OF_POOL_MEMORY"},
    {VK_ERROR_FRAGMENTED_POOL, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, "VK_ERROR_FRAGMENTED_POOL"},
    {VK_ERROR_FRAGMENTATION, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, "VK_ERROR_FRAGMENTATION"},
    {VK_ERROR_TOO_MANY_OBJECTS, QUIRE_ERROR_TOO_MANY_PAGES, "VK_ERROR_TOO_MANY_OBJECTS"},
    {VK_ERROR_DEVICE_LOST, QUIRE_ERROR_DEVICE_LOST, "VK_ERROR_DEVICE_LOST"},
    {VK_ERROR_NOT_PERMITTED_KHR, QUIRE_ERROR_NOT_PERMITTED, "VK_ERROR_NOT_PERMITTED_KHR"},
    {VK_ERROR_INVALID_EXTERNAL_HANDLE, QUIRE_ERROR_INVALID_ARGUMENT,
     "VK_ERROR_INVALID_EXTERNAL_HANDLE"},
    {VK_ERROR_FEATURE_NOT_PRESENT, QUIRE_ERROR_UNSUPPORTED, "VK_ERROR_FEATURE_NOT_PRESENT"},
    {VK_ERROR_FORMAT_NOT_SUPPORTED, QUIRE_ERROR_UNSUPPORTED, "VK_ERROR_FORMAT_NOT_SUPPORTED"},
    {VK_ERROR_EXTENSION_NOT_PRESENT, QUIRE_ERROR_UNSUPPORTED, "VK_ERROR_EXTENSION_NOT_PRESENT"},
    {VK_ERROR_LAYER_NOT_PRESENT, QUIRE_ERROR_UNSUPPORTED, "VK_ERROR_LAYER_NOT_PRESENT"},
    {VK_ERROR_INCOMPATIBLE_DRIVER, QUIRE_ERROR_UNSUPPORTED, "VK_ERROR_INCOMPATIBLE_DRIVER"},
    {VK_TIMEOUT, QUIRE_ERROR_BACKEND_FAILURE, "VK_TIMEOUT"},
    {VK_ERROR_INITIALIZATION_FAILED, QUIRE_ERROR_BACKEND_FAILURE, "VK_ERROR_INITIALIZATION_FAILED"},
    {VK_ERROR_UNKNOWN, QUIRE_ERROR_BACKEND_FAILURE, "VK_ERROR_UNKNOWN"},
    {(VkResult)-77, QUIRE_ERROR_BACKEND_FAILURE, "VkResult -77"},
};

UNIT(vulkan_result, each_answer_has_its_code_its_name_and_its_number)
{
    char expected[128];
    for (size_t i = 0; i < sizeof ANSWERS / sizeof *ANSWERS; i++) {
        CHECK_EQ(qi_vulkan_result(ANSWERS[i].code), ANSWERS[i].result);
        CHECK_FAILS(qi_vulkan_fail(ANSWERS[i].code, "vkCall of %d", 3), ANSWERS[i].result);
        snprintf(expected, sizeof expected, "vkCall of 3: %s", ANSWERS[i].name);
        CHECK_STR(quire_last_error(), expected);
        CHECK_EQ(quire_last_native_code(), ANSWERS[i].code);
    }
}

/* The first `times` waits fail. */
static void fail_waits(vulkan_bench *b, unsigned times)
{
    for (unsigned i = 1; i <= times; i++) {
        const fv_fault fault = {
            .function = "vkWaitForFences", .call = i, .result = VK_ERROR_OUT_OF_HOST_MEMORY};
        CHECK(fv_fail(b->driver, &fault));
    }
}

UNIT(vulkan_result, a_failed_wait_is_tried_eight_times)
{
    for (unsigned times = 7; times <= 8; times++) {
        const char bytes[100] = "staged";
        quire_allocation made;
        vulkan_bench b;
        vulkan_bench_start(&b, NULL, 0);
        quire_memory *memory =
            vulkan_bench_memory(&b, &(quire_memory_options){.kind.required = QUIRE_DEVICE_LOCAL});
        CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 100}, &made));
        fv_reset_counters(b.driver);
        fail_waits(&b, times);
        quire_result result = quire_write(memory, made, 0, bytes, sizeof bytes);
        CHECK_EQ(result, times < 8 ? QUIRE_SUCCESS : QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        CHECK_EQ(fv_calls(b.driver, "vkWaitForFences"), 8);
        vulkan_bench_end(&b);
    }
}
