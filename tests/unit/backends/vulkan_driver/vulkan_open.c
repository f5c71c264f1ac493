/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_open.c - opened and wrapped devices, on a driver of this machine.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/real_vulkan.h"
#include "tests/support/valgrind.h"

#define INVALID QUIRE_ERROR_INVALID_ARGUMENT

/* The messages of a log. */
typedef struct heard {
    uint64_t lines, troubles;
    char first[1024];
} heard;

static void hear(void *user, quire_log_level level, const char *line)
{
    heard *h = user;
    h->lines++;
    if (level <= QUIRE_LOG_WARNING && !h->troubles++)
        strncpy(h->first, line, sizeof h->first - 1);
}

static quire_vulkan_options options_of(heard *h)
{
    return (quire_vulkan_options){
        .settings = {.device = {.host_memory = unit_memory(),
                                .log = {.write = hear, .user = h, .level = QUIRE_LOG_INFO}}}};
}

/* Returns false, and prints the reason, if no driver is installed. */
static void need_a_driver(void)
{
    quire_device *device = NULL;
    if (under_valgrind())
        unit_skip("valgrind finds what drivers and layers leak");
    if (quire_vulkan_open(NULL, &device)) {
        unit_skip("%s", quire_last_error());
    }
    CHECK_OK(quire_device_destroy(&device));
}

/* ---- which device --------------------------------------------------------------------------- */

static void expect_found(const char *name)
{
    quire_device *device = NULL;
    CHECK_OK(quire_vulkan_open(&(quire_vulkan_options){.device = name}, &device));
    CHECK_OK(quire_device_destroy(&device));
}

UNIT(vulkan_open, a_device_is_named_by_index_or_part_of_its_name)
{
    quire_device *device = NULL;
    quire_device_info info;
    char part[8] = {0};
    need_a_driver();
    unsetenv("QUIRE_VULKAN_DEVICE");
    CHECK_OK(quire_vulkan_open(NULL, &device));
    CHECK_OK(quire_device_get_info(device, &info));
    CHECK_STR(info.backend, "vulkan");
    CHECK_OK(quire_device_destroy(&device));
    memcpy(part, info.name + 1, 5);
    for (int i = 0; part[i]; i++) /* case-insensitive */
        part[i] = (char)(part[i] >= 'a' && part[i] <= 'z' ? part[i] - 'a' + 'A' : part[i]);
    expect_found("0");
    expect_found(part);
    expect_found(info.name);
    expect_found("");
    CHECK_FAILS(quire_vulkan_open(&(quire_vulkan_options){.device = "no such device"}, &device),
                QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), info.name);
    CHECK_FAILS(quire_vulkan_open(&(quire_vulkan_options){.device = "99"}, &device),
                QUIRE_ERROR_UNSUPPORTED);
    CHECK(device == NULL);
}

UNIT_ALONE(vulkan_open, without_a_name_the_environment_decides)
{
    quire_device *device = NULL;
    need_a_driver();
    setenv("QUIRE_VULKAN_DEVICE", "no such device", 1);
    CHECK_FAILS(quire_vulkan_open(NULL, &device), QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "'no such device'");
    expect_found("0");
    setenv("QUIRE_VULKAN_DEVICE", "0", 1);
    CHECK_OK(quire_vulkan_open(NULL, &device));
    CHECK_OK(quire_device_destroy(&device));
}

/* ---- wrapping ------------------------------------------------------------------------------- */

/* Host callbacks of the caller for the driver. They mark their blocks, so that a foreign block is
   detected. */
typedef struct counted {
    int64_t live;
    uint64_t all;
} counted;

enum { HEADER = 64, MARK = 0x51 };

static void *VKAPI_CALL give(void *user, size_t size, size_t alignment,
                             VkSystemAllocationScope scope)
{
    counted *c = user;
    (void)scope;
    CHECK(alignment <= HEADER);
    size_t *block = aligned_alloc(HEADER, HEADER + (size + HEADER - 1) / HEADER * HEADER);
    CHECK(block != NULL);
    block[0] = MARK;
    block[1] = size;
    __atomic_add_fetch(&c->live, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&c->all, 1, __ATOMIC_RELAXED);
    return (char *)block + HEADER;
}

static void VKAPI_CALL take_back(void *user, void *pointer)
{
    counted *c = user;
    if (!pointer)
        return;
    size_t *block = (size_t *)(void *)((char *)pointer - HEADER);
    CHECK_EQ(block[0], MARK);
    __atomic_sub_fetch(&c->live, 1, __ATOMIC_RELAXED);
    free(block);
}

static void *VKAPI_CALL give_again(void *user, void *pointer, size_t size, size_t alignment,
                                   VkSystemAllocationScope scope)
{
    void *moved = size ? give(user, size, alignment, scope) : NULL;
    if (moved && pointer) {
        size_t old = ((size_t *)(void *)((char *)pointer - HEADER))[1];
        memcpy(moved, pointer, old < size ? old : size);
    }
    take_back(user, pointer);
    return moved;
}

REAL_UNIT_ON(vulkan_open, the_driver_gets_host_memory_by_the_callers_callbacks, real_begin(r))
{
    counted c = {.live = 0};
    VkAllocationCallbacks callbacks = {.pUserData = &c,
                                       .pfnAllocation = give,
                                       .pfnReallocation = give_again,
                                       .pfnFree = take_back};
    quire_buffer buffer;
    r->wrap.settings.callbacks = &callbacks;
    real_wrap(r);
    memset(&callbacks, 0, sizeof callbacks); /* quire has copied them */
    quire_memory *memory = real_memory(r, NULL);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(quire_buffer_create(memory, &(quire_buffer_options){.size = 1000, .zero = true},
                                     &buffer));
        CHECK_OK(quire_free(memory, buffer.allocation));
    }
    CHECK_OK(quire_memory_destroy(&memory));
    CHECK_OK(quire_device_destroy(&r->quire));
    CHECK_EQ(c.live, 0);
    if (strstr(r->properties.deviceName, "llvmpipe"))
        CHECK(c.all > 0); /* other drivers, and some layers, may not use them */
}

/* Otherwise the absence of messages would prove nothing. */
REAL_UNIT_ON(vulkan_open, the_layer_is_heard, real_begin_wrapped(r))
{
    VkBuffer buffer = VK_NULL_HANDLE;
    const VkBufferCreateInfo wrong = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                      .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT};
    REAL(r, vkCreateBuffer)(r->device, &wrong, NULL, &buffer);
    CHECK(r->messages > 0);
    CHECK_HAS(r->first, "VUID-VkBufferCreateInfo-size-00912");
    REAL(r, vkDestroyBuffer)(r->device, buffer, NULL);
    r->messages = 0;
}

/* Exercises the whole backend except for an instance of its own. */
REAL_UNIT_ON(vulkan_open, best_practices_are_kept, real_begin_strict(r))
{
    quire_image image;
    quire_buffer buffers[20];
    quire_allocation zeroed;
    quire_vulkan_range range;
    static unsigned char data[64 * 64];
    const VkImageLayout any = VK_IMAGE_LAYOUT_UNDEFINED, general = VK_IMAGE_LAYOUT_GENERAL;
    r->messages = 0; /* messages of the creation of instance and device */
    r->first[0] = '\0';
    real_wrap(r);
    quire_memory *memory = real_memory(r, NULL);
    for (int i = 0; i < 20; i++)
        CHECK_OK(quire_buffer_create(memory, &(quire_buffer_options){.size = 1000}, &buffers[i]));
    CHECK_OK(quire_image_create(memory, &(quire_image_options){.width = 64, .height = 64}, &image));
    CHECK_OK(quire_lluvia_image_write(memory, image, any, general, data, sizeof data));
    CHECK_OK(quire_lluvia_image_read(memory, image, general, data, sizeof data));
    CHECK_OK(
        quire_allocate(memory, &(quire_allocation_options){.size = 999, .zero = true}, &zeroed));
    CHECK_OK(quire_vulkan_page_buffer(memory, zeroed, &range));
    for (int i = 0; i < 20; i++)
        CHECK_OK(quire_free(memory, buffers[i].allocation));
    CHECK_OK(quire_free(memory, image.allocation));
    CHECK_OK(quire_free(memory, zeroed));
    real_memory_end(memory);
    CHECK_STR(r->first, "");
}

/* Layers put the id into the text, into its own field, or both. */
UNIT(vulkan_open, a_message_is_logged_with_its_id_once)
{
    static const struct {
        const char *id, *text, *line;
    } told[] = {
        {"VUID-1", "text", "vulkan: VUID-1: text"},
        {"VUID-2", "Error: [ VUID-2 ] text", "vulkan: Error: [ VUID-2 ] text"},
        {"", "text", "vulkan: text"},
        {NULL, "text", "vulkan: text"},
    };
    heard h = {0};
    quire_vulkan_options options = options_of(&h);
    quire_device *device = NULL;
    quire_vulkan_handles handles;
    need_a_driver();
    CHECK_OK(quire_vulkan_open(&options, &device));
    CHECK_OK(quire_vulkan_get_handles(device, &handles));
    PFN_vkSubmitDebugUtilsMessageEXT submit =
        (PFN_vkSubmitDebugUtilsMessageEXT)handles.get_instance_proc_addr(
            handles.instance, "vkSubmitDebugUtilsMessageEXT");
    for (size_t i = 0; submit && i < sizeof told / sizeof *told; i++) {
        const VkDebugUtilsMessengerCallbackDataEXT data = {
            .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CALLBACK_DATA_EXT,
            .pMessageIdName = told[i].id,
            .pMessage = told[i].text};
        h = (heard){0};
        submit(handles.instance, VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
               VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT, &data);
        CHECK_STR(h.first, told[i].line);
        CHECK_EQ(h.lines, 1);
    }
    CHECK_OK(quire_device_destroy(&device));
    if (!submit)
        unit_skip("the loader has no VK_EXT_debug_utils");
}

REAL_UNIT_ON(vulkan_open, without_a_queue_nothing_is_staged, real_begin(r))
{
    quire_image image;
    r->wrap.queue = (quire_vulkan_queue){.queue = NULL};
    real_wrap(r);
    quire_memory *memory = real_memory(r, NULL);
    CHECK_OK(quire_image_create(memory, &(quire_image_options){.width = 8, .height = 8}, &image));
    CHECK_FAILS(quire_lluvia_image_set_layout(memory, image, VK_IMAGE_LAYOUT_UNDEFINED,
                                              VK_IMAGE_LAYOUT_GENERAL),
                QUIRE_ERROR_UNSUPPORTED);
    CHECK_OK(quire_free(memory, image.allocation));
    real_memory_end(memory);
}

static PFN_vkVoidFunction VKAPI_CALL nothing(VkInstance instance, const char *name)
{
    (void)instance;
    (void)name;
    return NULL;
}

REAL_UNIT_ON(vulkan_open, what_cannot_be_wrapped_is_refused, real_begin(r))
{
    quire_device *device = NULL;
    const quire_vulkan_wrap_options good = r->wrap;
    quire_vulkan_wrap_options bad[] = {good, good, good, good, good, good, good, good, good};
    bad[0].instance = NULL;
    bad[1].physical_device = NULL;
    bad[2].device = NULL;
    bad[3].get_instance_proc_addr = NULL;
    bad[4].queue.lock = NULL;
    bad[5].queue.queue = NULL; /* a lock without a queue */
    bad[6].settings.staging_size = 1;
    bad[7].unused[2] = 1;
    bad[8].settings.unused[3] = 1;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_FAILS(quire_vulkan_wrap(&bad[i], &device), INVALID);
    quire_vulkan_wrap_options empty = good;
    empty.get_instance_proc_addr = nothing;
    CHECK_FAILS(quire_vulkan_wrap(&empty, &device), INVALID);
    CHECK_HAS(quire_last_error(), "vkGetDeviceProcAddr");
    CHECK(device == NULL);
    real_wrap(r);
}

REAL_UNIT_ON(vulkan_open, no_host_memory_is_an_error_at_every_point, real_begin(r))
{
    test_memory *memory = unit_memory_state();
    quire_result result = QUIRE_ERROR_OUT_OF_HOST_MEMORY;
    for (uint64_t at = 1; result; at++) {
        memory->fail_at = memory->calls + at;
        result = quire_vulkan_wrap(&r->wrap, &r->quire);
        CHECK(!result || result == QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        CHECK(at < 100);
    }
    memory->fail_at = 0;
}

/* ---- what the program adds ------------------------------------------------------------------- */

/* The core structs that the driver knows. Nothing is set in them: quire sets what it uses. */
typedef struct chain {
    VkPhysicalDeviceFeatures2 core;
    VkPhysicalDeviceVulkan11Features of_1_1;
    VkPhysicalDeviceVulkan12Features of_1_2;
    VkPhysicalDeviceVulkan13Features of_1_3;
} chain;

static void chain_init(chain *c, uint32_t version)
{
    *c = (chain){.core = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2}};
    c->of_1_1.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    c->of_1_2.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    c->of_1_3.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
    if (version < VK_API_VERSION_1_2)
        return;
    c->core.pNext = &c->of_1_1;
    c->of_1_1.pNext = &c->of_1_2;
    if (version >= VK_API_VERSION_1_3)
        c->of_1_2.pNext = &c->of_1_3;
}

/* Opens a device without additions and reads its version and what it uses. */
static uint32_t probe(quire_vulkan_features *features)
{
    quire_device *device = NULL;
    quire_vulkan_handles handles;
    CHECK_OK(quire_vulkan_open(NULL, &device));
    CHECK_OK(quire_vulkan_get_handles(device, &handles));
    CHECK_OK(quire_vulkan_get_features(device, features));
    CHECK_OK(quire_device_destroy(&device));
    return handles.api_version;
}

/* Surfaces and swapchains: what a program that draws adds. The layer checks the chain. */
UNIT_ALONE(vulkan_open, extensions_chain_and_queue_flags_are_enabled_in_silence)
{
    static const char *const of_instance[] = {"VK_KHR_surface"};
    static const char *const of_device[] = {"VK_KHR_swapchain"};
    heard h = {0};
    chain c;
    quire_vulkan_features plain, f;
    quire_vulkan_handles handles;
    quire_vulkan_options options = options_of(&h);
    quire_device *device = NULL;
    need_a_driver();
    chain_init(&c, probe(&plain));
    setenv("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation", 1);
    options.instance_extensions = of_instance;
    options.instance_extension_count = 1;
    options.device_extensions = of_device;
    options.device_extension_count = 1;
    options.queue_flags = VK_QUEUE_GRAPHICS_BIT;
    options.chain = &c.core;
    quire_result result = quire_vulkan_open(&options, &device);
    if (result == QUIRE_ERROR_UNSUPPORTED && strstr(quire_last_error(), "VK_KHR_")) {
        options.instance_extension_count = options.device_extension_count = 0;
        result = quire_vulkan_open(&options, &device); /* a driver that does not draw */
    }
    if (result == QUIRE_ERROR_UNSUPPORTED && strstr(quire_last_error(), "queue_flags")) {
        options.queue_flags = 0;
        result = quire_vulkan_open(&options, &device);
    }
    CHECK_OK(result);
    CHECK_OK(quire_vulkan_get_features(device, &f));
    CHECK_EQ(f.timeline_semaphore, plain.timeline_semaphore);
    CHECK_EQ(f.buffer_device_address, plain.buffer_device_address);
    CHECK_EQ(f.maintenance4, plain.maintenance4);
    CHECK_EQ(f.sparse_binding, plain.sparse_binding);
    CHECK_EQ(c.core.features.sparseBinding, plain.sparse_binding);
    CHECK_OK(quire_vulkan_get_handles(device, &handles));
    if (options.device_extension_count)
        CHECK(handles.get_instance_proc_addr(handles.instance, "vkCreateSwapchainKHR") != NULL);
    CHECK_OK(quire_device_destroy(&device));
    CHECK_STR(h.first, "");
}
