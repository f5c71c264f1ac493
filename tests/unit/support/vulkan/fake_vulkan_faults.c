/*
 * fake_vulkan_faults.c - the fake Vulkan driver: every call fails where a test requests it.
 */
#include "tests/support/unit.h"
#include "tests/support/vulkan/fixture.h"

#include <time.h>

UNIT(fake_vulkan_faults, codes_are_those_of_the_specification)
{
    VkResult codes[8];
    CHECK_EQ(fv_codes("vkMapMemory", codes, 8), 3);
    CHECK_EQ((uint32_t)codes[0], (uint32_t)VK_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_EQ((uint32_t)codes[1], (uint32_t)VK_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_EQ((uint32_t)codes[2], (uint32_t)VK_ERROR_MEMORY_MAP_FAILED);
    CHECK_EQ(fv_codes("vkResetFences", codes, 8), 1);
    CHECK_EQ((uint32_t)codes[0], (uint32_t)VK_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_EQ(fv_codes("vkFreeMemory", codes, 8), 0);
    CHECK_EQ(fv_codes("vkNoSuchFunction", codes, 8), 0);
    CHECK_EQ(fv_codes("vkCreateDevice", codes, 1), 7); /* more than the array can hold */
    CHECK_EQ(fv_codes("vkBindBufferMemory2KHR", codes, 8), 3);
}

static VkResult allocate(fv_fixture *f)
{
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                 .allocationSize = 1000};
    VkDeviceMemory memory;
    VkResult result = FV(f, vkAllocateMemory)(f->device, &info, NULL, &memory);
    if (!result)
        FV(f, vkFreeMemory)(f->device, memory, NULL);
    return result;
}

UNIT(fake_vulkan_faults, the_nth_call_of_a_function_fails_once_or_from_then_on)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    CHECK(fv_fail(f.driver, &(fv_fault){.function = "vkAllocateMemory",
                                        .call = 2,
                                        .result = VK_ERROR_OUT_OF_DEVICE_MEMORY}));
    CHECK_VK(allocate(&f));
    CHECK_EQ(allocate(&f), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_VK(allocate(&f));
    CHECK_EQ(fv_failed(f.driver).times, 1);
    CHECK_STR(fv_failed(f.driver).function, "vkAllocateMemory");
    fv_heal(f.driver);
    CHECK_EQ(fv_failed(f.driver).times, 0);
    CHECK(fv_fail(f.driver,
                  &(fv_fault){.function = "vkAllocateMemory", .call = 2, .from_then = true}));
    CHECK_VK(allocate(&f));
    CHECK_EQ(allocate(&f), VK_ERROR_OUT_OF_HOST_MEMORY); /* its first code */
    CHECK_EQ(allocate(&f), VK_ERROR_OUT_OF_HOST_MEMORY);
    fv_heal(f.driver);
    CHECK_VK(allocate(&f));
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_faults, impossible_faults_are_refused)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    CHECK(!fv_fail(f.driver, &(fv_fault){.function = "vkNoSuchFunction", .call = 1}));
    CHECK(!fv_fail(f.driver, &(fv_fault){.function = "vkFreeMemory", .call = 1}));
    CHECK(!fv_fail(
        f.driver,
        &(fv_fault){.function = "vkAllocateMemory", .call = 1, .result = VK_ERROR_DEVICE_LOST}));
    CHECK(!fv_fail(f.driver, &(fv_fault){.function = "vkResetFences", .call = 1, .code_index = 1}));
    CHECK_VK(allocate(&f));
    for (uint32_t i = 0; i < 8; i++)
        CHECK(fv_fail(f.driver, &(fv_fault){.call = 1000000}));
    CHECK(!fv_fail(f.driver, &(fv_fault){.call = 1000000}));
    fv_fixture_close(&f);
}

/* Makes one call of each kind that can fail, and destroys the objects. Returns the first
   failure. */
static VkResult scenario(fv_fixture *f)
{
    VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                               .size = 1000,
                               .usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    VkFenceCreateInfo fence_info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkMemoryAllocateInfo memory_info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .allocationSize = 4096,
        .memoryTypeIndex = fv_fixture_type(f, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                                  VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)};
    VkBuffer buffer = VK_NULL_HANDLE, made_buffer;
    VkDeviceMemory memory = VK_NULL_HANDLE, made_memory;
    VkFence fence = VK_NULL_HANDLE, made_fence;
    VkMemoryRequirements needs;
    void *data;
    VkResult result = FV(f, vkCreateBuffer)(f->device, &info, NULL, &made_buffer);
    if (!result) {
        buffer = made_buffer;
        FV(f, vkGetBufferMemoryRequirements)(f->device, buffer, &needs);
        result = FV(f, vkAllocateMemory)(f->device, &memory_info, NULL, &made_memory);
        memory = result ? memory : made_memory;
    }
    if (!result)
        result = FV(f, vkBindBufferMemory)(f->device, buffer, memory, 0);
    if (!result)
        result = FV(f, vkMapMemory)(f->device, memory, 0, 100, 0, &data);
    if (!result)
        result = FV(f, vkCreateFence)(f->device, &fence_info, NULL, &made_fence);
    fence = result ? fence : made_fence;
    if (!result)
        result = FV(f, vkQueueSubmit)(f->queue, 0, NULL, fence);
    if (!result)
        result = FV(f, vkWaitForFences)(f->device, 1, &fence, VK_TRUE, UINT64_MAX);
    FV(f, vkDestroyFence)(f->device, fence, NULL);
    FV(f, vkDestroyBuffer)(f->device, buffer, NULL);
    FV(f, vkFreeMemory)(f->device, memory, NULL);
    return result;
}

UNIT(fake_vulkan_faults, every_call_fails_with_every_code)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    fv_reset_counters(f.driver);
    CHECK_VK(scenario(&f));
    uint64_t calls = fv_fallible_calls(f.driver), failures = 0;
    CHECK_EQ(calls, 7);
    for (uint64_t call = 1; call <= calls; call++)
        for (uint32_t code = 0;; code++) {
            fv_heal(f.driver);
            CHECK(fv_fail(f.driver, &(fv_fault){.call = call, .code_index = code}));
            VkResult result = scenario(&f);
            fv_failure failure = fv_failed(f.driver);
            if (!failure.times) /* this function has fewer codes */
                break;
            CHECK_EQ((uint32_t)result, (uint32_t)failure.result);
            VkResult codes[8];
            CHECK(code < fv_codes(failure.function, codes, 8) && codes[code] == result);
            failures++;
        }
    /* vkCreateBuffer 3, vkAllocateMemory 4, vkBindBufferMemory 3, vkMapMemory 3, vkCreateFence 2,
     * vkQueueSubmit 3, vkWaitForFences 3 */
    CHECK_EQ(failures, 21);
    fv_heal(f.driver);
    CHECK_VK(scenario(&f));
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_faults, a_lost_device_stays_lost)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, FV_LATE);
    VkFenceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkFence fence;
    CHECK_VK(FV(&f, vkCreateFence)(f.device, &info, NULL, &fence));
    CHECK_VK(FV(&f, vkQueueSubmit)(f.queue, 0, NULL, fence));
    fv_lose_devices(f.driver);
    CHECK_EQ(FV(&f, vkQueueSubmit)(f.queue, 0, NULL, VK_NULL_HANDLE), VK_ERROR_DEVICE_LOST);
    CHECK_EQ(FV(&f, vkWaitForFences)(f.device, 1, &fence, VK_TRUE, UINT64_MAX),
             VK_ERROR_DEVICE_LOST);
    CHECK_EQ(FV(&f, vkDeviceWaitIdle)(f.device), VK_ERROR_DEVICE_LOST);
    CHECK_VK(allocate(&f)); /* which must not return that code */
    FV(&f, vkDestroyFence)(f.device, fence, NULL);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_faults, calls_are_counted_by_function)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    fv_reset_counters(f.driver);
    CHECK_VK(allocate(&f));
    CHECK_VK(allocate(&f));
    CHECK_EQ(fv_calls(f.driver, "vkAllocateMemory"), 2);
    CHECK_EQ(fv_calls(f.driver, "vkFreeMemory"), 2);
    CHECK_EQ(fv_calls(f.driver, "vkNoSuchFunction"), 0);
    CHECK_EQ(fv_calls(f.driver, NULL), 4);
    CHECK_EQ(fv_fallible_calls(f.driver), 2);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_faults, allocating_can_be_slow)
{
    fv_fixture f;
    struct timespec before, after;
    fv_fixture_open(&f, NULL, 0);
    fv_slow(f.driver, 20);
    clock_gettime(CLOCK_MONOTONIC, &before);
    CHECK_VK(allocate(&f)); /* allocates and frees */
    clock_gettime(CLOCK_MONOTONIC, &after);
    int64_t ms = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
    CHECK(ms >= 39);
    fv_fixture_close(&f);
}
