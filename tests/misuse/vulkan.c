/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan.c - every function of quire/vulkan.h and quire/vulkan_sparse.h with nulls, unknown
 * values and memories of another backend: the documented code, a sentence, zeroed outputs, nothing
 * changed. Misuse within a Vulkan memory is in tests/unit/backends/vulkan_driver/vulkan_object.c.
 */
#include <stdio.h>

#include "quire/lluvia.h"
#include "quire/vulkan_sparse.h"
#include "tests/misuse/misuse.h"
#include "tests/support/state.h"

#define INVALID QUIRE_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED

static bench b;
static quire_memory *memory; /* of the fake backend */
static quire_buffer buffer;
static quire_image image;

static const VkBufferCreateInfo BUFFER = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = 1};
static const VkImageCreateInfo IMAGE = {.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                                        .extent = {1, 1, 1}};

static bool build(void)
{
    bench_begin(&b, true);
    return bench_open(&b) && bench_memory(&b, &(quire_memory_options){.kind.mask = 2}) &&
           bench_buffer(&b, 1, &(quire_buffer_options){.size = 100}) &&
           bench_image(&b, 1, &(quire_image_options){.width = 10});
}

static void begin(void)
{
    CHECK(build());
    memory = b.memories[0];
    buffer.allocation = b.held[0].allocation;
    image.allocation = b.held[1].allocation;
    refusal_begin(&b);
}

static void end(void)
{
    bench_end(&b);
}

static PFN_vkVoidFunction VKAPI_CALL no_function(VkInstance instance, const char *name)
{
    (void)instance;
    (void)name;
    return NULL;
}

static void opening(void)
{
    quire_device *device;
    quire_vulkan_handles handles;
    REFUSE(INVALID, quire_vulkan_open(NULL, NULL));
    for (int i = 0; i < 4; i++) {
        quire_vulkan_options own = {.device = NULL}, inner = {.device = NULL};
        quire_vulkan_wrap_options wrap = {.instance = NULL};
        own.unused[i] = inner.settings.unused[i] = wrap.unused[i] = 1;
        REFUSE_OUT(INVALID, device, quire_vulkan_open(&own, &device));
        REFUSE_OUT(INVALID, device, quire_vulkan_open(&inner, &device));
        REFUSE_OUT(INVALID, device, quire_vulkan_wrap(&wrap, &device));
    }
    const uint64_t sizes[] = {1, 4095, (UINT64_C(1) << 30) + 1, UINT64_MAX};
    for (int i = 0; i < 4; i++) {
        const quire_vulkan_options options = {.settings = {.staging_size = sizes[i]}};
        REFUSE_OUT(INVALID, device, quire_vulkan_open(&options, &device));
    }
    /* a loader without functions */
    const quire_vulkan_options empty = {.get_instance_proc_addr = no_function};
    REFUSE_OUT(UNSUPPORTED, device, quire_vulkan_open(&empty, &device));
    REFUSE_OUT(INVALID, device, quire_vulkan_wrap(NULL, &device));
    REFUSE(INVALID, quire_vulkan_wrap(&(quire_vulkan_wrap_options){.instance = NULL}, NULL));
    REFUSE_OUT(INVALID, handles, quire_vulkan_get_handles(NULL, &handles));
    REFUSE_OUT(INVALID, handles, quire_vulkan_get_handles(b.device, &handles));
    REFUSE(INVALID, quire_vulkan_get_handles(b.device, NULL));
}

/* A count without an array, an array with a hole, one struct twice. */
static void additions(void)
{
    static const char *const hole[] = {"VK_EXT_memory_budget", NULL};
    VkPhysicalDeviceFeatures2 last = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    VkPhysicalDeviceFeatures2 first = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                       .pNext = &last};
    static const VkQueueFlags flags[QUIRE_VULKAN_MAX_QUEUES + 1];
    const quire_vulkan_options wrong[] = {
        {.instance_extension_count = 1},
        {.instance_extensions = hole, .instance_extension_count = 2},
        {.device_extension_count = UINT32_MAX},
        {.device_extensions = hole, .device_extension_count = 2},
        {.chain = &first},
        {.queue_count = 1},
        {.queues = flags, .queue_count = QUIRE_VULKAN_MAX_QUEUES + 1},
        {.queues = flags, .queue_count = UINT32_MAX},
    };
    quire_device *device;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        REFUSE_OUT(INVALID, device, quire_vulkan_open(&wrong[i], &device));
}

static void queues(void)
{
    quire_vulkan_queue queue;
    quire_vulkan_features features;
    REFUSE_OUT(INVALID, queue, quire_vulkan_get_queue(NULL, 0, &queue));
    REFUSE_OUT(INVALID, queue, quire_vulkan_get_queue(b.device, 0, &queue));
    REFUSE(INVALID, quire_vulkan_get_queue(b.device, 0, NULL));
    REFUSE(INVALID, quire_vulkan_queue_lock(NULL));
    REFUSE(INVALID, quire_vulkan_queue_lock(b.device));
    REFUSE(INVALID, quire_vulkan_queue_unlock(NULL));
    REFUSE(INVALID, quire_vulkan_queue_unlock(b.device));
    REFUSE_OUT(INVALID, features, quire_vulkan_get_features(NULL, &features));
    REFUSE_OUT(INVALID, features, quire_vulkan_get_features(b.device, &features));
    REFUSE(INVALID, quire_vulkan_get_features(b.device, NULL));
}

static void memories(void)
{
    quire_memory *made;
    REFUSE_OUT(INVALID, made, quire_vulkan_memory_create(b.device, NULL, NULL, &made));
    REFUSE_OUT(INVALID, made, quire_vulkan_memory_create(NULL, NULL, NULL, &made));
    REFUSE(INVALID, quire_vulkan_memory_create(b.device, NULL, NULL, NULL));
}

static void needs(void)
{
    quire_requirements out;
    quire_allocation_options options = {.size = 7};
    const VkMemoryRequirements2 asked = {.memoryRequirements = {1, 1, 1}};
    REFUSE_OUT(INVALID, out, quire_vulkan_buffer_requirements(b.device, &BUFFER, &out));
    REFUSE_OUT(INVALID, out, quire_vulkan_buffer_requirements(NULL, &BUFFER, &out));
    REFUSE(INVALID, quire_vulkan_buffer_requirements(b.device, &BUFFER, NULL));
    REFUSE_OUT(INVALID, out, quire_vulkan_image_requirements(b.device, &IMAGE, &out));
    REFUSE_OUT(INVALID, out, quire_vulkan_image_requirements(NULL, &IMAGE, &out));
    REFUSE(INVALID, quire_vulkan_image_requirements(b.device, &IMAGE, NULL));
    REFUSE(INVALID, quire_vulkan_range_options(memory, &asked, QUIRE_TILING_LINEAR, &options));
    REFUSE(INVALID, quire_vulkan_range_options(NULL, &asked, QUIRE_TILING_LINEAR, &options));
    REFUSE(INVALID, quire_vulkan_range_options(memory, NULL, QUIRE_TILING_LINEAR, &options));
    REFUSE(INVALID, quire_vulkan_range_options(memory, &asked, QUIRE_TILING_LINEAR, NULL));
    CHECK_EQ(options.size, 7);
}

/* In one of several memories, and in a default memory. */
static void several(void)
{
    quire_memory *none = NULL, *place = memory;
    quire_buffer made;
    quire_image picture;
    uint32_t at = 77;
    REFUSE_OUT(INVALID, made,
               quire_vulkan_buffer_create_fallback(&memory, 1, &BUFFER, NULL, &at, &made));
    REFUSE_OUT(INVALID, made,
               quire_vulkan_buffer_create_fallback(&none, 1, &BUFFER, NULL, &at, &made));
    REFUSE_OUT(INVALID, made,
               quire_vulkan_buffer_create_fallback(&memory, 0, &BUFFER, NULL, &at, &made));
    REFUSE_OUT(INVALID, made,
               quire_vulkan_buffer_create_fallback(&memory, 1, NULL, NULL, &at, &made));
    REFUSE(INVALID, quire_vulkan_buffer_create_fallback(&memory, 1, &BUFFER, NULL, &at, NULL));
    REFUSE_OUT(INVALID, picture,
               quire_vulkan_image_create_fallback(&memory, 1, &IMAGE, NULL, &at, &picture));
    REFUSE_OUT(INVALID, picture,
               quire_vulkan_image_create_fallback(&none, 1, &IMAGE, NULL, &at, &picture));
    REFUSE_OUT(INVALID, picture,
               quire_vulkan_image_create_fallback(&memory, 1, NULL, NULL, &at, &picture));
    REFUSE(INVALID, quire_vulkan_image_create_fallback(&memory, 1, &IMAGE, NULL, &at, NULL));
    CHECK_EQ(at, 0);
    REFUSE_OUT(INVALID, made,
               quire_vulkan_device_buffer_create(b.device, NULL, &BUFFER, NULL, &place, &made));
    CHECK(!place);
    REFUSE_OUT(INVALID, made,
               quire_vulkan_device_buffer_create(NULL, NULL, &BUFFER, NULL, &place, &made));
    REFUSE_OUT(INVALID, made,
               quire_vulkan_device_buffer_create(b.device, NULL, NULL, NULL, &place, &made));
    REFUSE_OUT(INVALID, made,
               quire_vulkan_device_buffer_create(b.device, NULL, &BUFFER, NULL, NULL, &made));
    REFUSE_OUT(INVALID, place,
               quire_vulkan_device_buffer_create(b.device, NULL, &BUFFER, NULL, &place, NULL));
    REFUSE_OUT(INVALID, picture,
               quire_vulkan_device_image_create(b.device, NULL, &IMAGE, NULL, &place, &picture));
    REFUSE_OUT(INVALID, picture,
               quire_vulkan_device_image_create(NULL, NULL, &IMAGE, NULL, &place, &picture));
    REFUSE_OUT(INVALID, picture,
               quire_vulkan_device_image_create(b.device, NULL, NULL, NULL, &place, &picture));
    REFUSE_OUT(INVALID, picture,
               quire_vulkan_device_image_create(b.device, NULL, &IMAGE, NULL, NULL, &picture));
    REFUSE_OUT(INVALID, place,
               quire_vulkan_device_image_create(b.device, NULL, &IMAGE, NULL, &place, NULL));
}

static void objects(void)
{
    quire_buffer made;
    quire_image picture;
    REFUSE_OUT(INVALID, made, quire_vulkan_buffer_create(memory, &BUFFER, NULL, &made));
    REFUSE_OUT(INVALID, made, quire_vulkan_buffer_create(NULL, &BUFFER, NULL, &made));
    REFUSE_OUT(INVALID, made, quire_vulkan_buffer_create(memory, NULL, NULL, &made));
    REFUSE(INVALID, quire_vulkan_buffer_create(memory, &BUFFER, NULL, NULL));
    several();
    REFUSE_OUT(INVALID, picture, quire_vulkan_image_create(memory, &IMAGE, NULL, &picture));
    REFUSE_OUT(INVALID, picture, quire_vulkan_image_create(NULL, &IMAGE, NULL, &picture));
    REFUSE(INVALID, quire_vulkan_image_create(memory, &IMAGE, NULL, NULL));
    VkBuffer native = (VkBuffer)(uintptr_t)64;
    VkImage texels = (VkImage)(uintptr_t)64;
    REFUSE_OUT(INVALID, made, quire_vulkan_buffer_place(memory, native, NULL, &made));
    REFUSE_OUT(INVALID, made, quire_vulkan_buffer_place(memory, VK_NULL_HANDLE, NULL, &made));
    REFUSE(INVALID, quire_vulkan_buffer_place(memory, native, NULL, NULL));
    REFUSE_OUT(INVALID, picture, quire_vulkan_image_place(memory, texels, NULL, &picture));
    REFUSE(INVALID, quire_vulkan_image_place(memory, texels, NULL, NULL));
    quire_memory *chosen;
    REFUSE_OUT(INVALID, chosen,
               quire_vulkan_device_buffer_place(b.device, NULL, native, NULL, &chosen, &made));
    REFUSE_OUT(INVALID, made,
               quire_vulkan_device_buffer_place(NULL, NULL, native, NULL, &chosen, &made));
    REFUSE(INVALID, quire_vulkan_device_buffer_place(b.device, NULL, native, NULL, NULL, &made));
    REFUSE_OUT(INVALID, chosen,
               quire_vulkan_device_image_place(b.device, NULL, texels, NULL, &chosen, &picture));
    REFUSE(INVALID, quire_vulkan_device_image_place(b.device, NULL, texels, NULL, &chosen, NULL));
    const quire_vulkan_object_options known = {.create_info = &BUFFER}, unknown = {.unused = {1}};
    REFUSE_OUT(INVALID, made, quire_vulkan_buffer_place(memory, native, &unknown, &made));
    REFUSE_OUT(INVALID, picture, quire_vulkan_image_place(memory, texels, &known, &picture));
    REFUSE_OUT(INVALID, made, quire_vulkan_buffer_create(memory, &BUFFER, &known, &made));
    REFUSE_OUT(INVALID, native, quire_vulkan_buffer_get(memory, buffer, &native));
    REFUSE_OUT(INVALID, native, quire_vulkan_buffer_get(NULL, buffer, &native));
    REFUSE(INVALID, quire_vulkan_buffer_get(memory, buffer, NULL));
    REFUSE_OUT(INVALID, texels, quire_vulkan_image_get(memory, image, &texels));
    REFUSE_OUT(INVALID, texels, quire_vulkan_image_get(NULL, image, &texels));
    REFUSE(INVALID, quire_vulkan_image_get(memory, image, NULL));
    HARMLESS(&b, CHECK(quire_vulkan_format((quire_channel_type)11, 1) == VK_FORMAT_UNDEFINED));
    HARMLESS(&b, CHECK(quire_vulkan_format(QUIRE_UINT8, 0) == VK_FORMAT_UNDEFINED));
    HARMLESS(&b, CHECK(quire_vulkan_format(QUIRE_UINT8, 5) == VK_FORMAT_UNDEFINED));
}

static void sparse_objects(void)
{
    VkBufferCreateInfo info = BUFFER;
    VkImageCreateInfo texels = IMAGE;
    quire_vulkan_sparse *sparse;
    quire_vulkan_sparse_info sparse_info;
    quire_vulkan_part part;
    const quire_vulkan_region region = {.level = 0};
    uint64_t offset;
    info.flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT;
    texels.flags = VK_IMAGE_CREATE_SPARSE_BINDING_BIT;
    REFUSE_OUT(INVALID, sparse, quire_vulkan_sparse_buffer_create(memory, &info, NULL, &sparse));
    REFUSE_OUT(INVALID, sparse, quire_vulkan_sparse_buffer_create(NULL, &info, NULL, &sparse));
    REFUSE_OUT(INVALID, sparse, quire_vulkan_sparse_buffer_create(memory, NULL, NULL, &sparse));
    REFUSE(INVALID, quire_vulkan_sparse_buffer_create(memory, &info, NULL, NULL));
    REFUSE_OUT(INVALID, sparse, quire_vulkan_sparse_image_create(memory, &texels, NULL, &sparse));
    REFUSE_OUT(INVALID, sparse, quire_vulkan_sparse_image_create(NULL, &texels, NULL, &sparse));
    REFUSE_OUT(INVALID, sparse, quire_vulkan_sparse_image_create(memory, NULL, NULL, &sparse));
    REFUSE(INVALID, quire_vulkan_sparse_image_create(memory, &texels, NULL, NULL));
    REFUSE(INVALID, quire_vulkan_sparse_destroy(NULL));
    REFUSE_OUT(INVALID, sparse_info, quire_vulkan_sparse_get_info(NULL, &sparse_info));
    REFUSE_OUT(INVALID, part, quire_vulkan_sparse_get_part(NULL, 0, &part));
    REFUSE(INVALID, quire_vulkan_sparse_bind(NULL, 0, 0));
    REFUSE(INVALID, quire_vulkan_sparse_unbind(NULL, 0, 0));
    REFUSE(INVALID, quire_vulkan_sparse_bind_region(NULL, &region));
    REFUSE(INVALID, quire_vulkan_sparse_unbind_region(NULL, &region));
    REFUSE_OUT(INVALID, offset, quire_vulkan_sparse_find(NULL, &region, &offset));
    REFUSE(INVALID, quire_vulkan_sparse_find(NULL, &region, NULL));
}

static void aliases(void)
{
    quire_vulkan_alias *alias;
    quire_vulkan_alias_info alias_info;
    quire_allocation place = buffer.allocation;
    REFUSE_OUT(INVALID, alias,
               quire_vulkan_alias_buffer_create(memory, place, &BUFFER, NULL, &alias));
    REFUSE_OUT(INVALID, alias,
               quire_vulkan_alias_buffer_create(NULL, place, &BUFFER, NULL, &alias));
    REFUSE_OUT(INVALID, alias, quire_vulkan_alias_buffer_create(memory, place, NULL, NULL, &alias));
    REFUSE(INVALID, quire_vulkan_alias_buffer_create(memory, place, &BUFFER, NULL, NULL));
    REFUSE_OUT(INVALID, alias,
               quire_vulkan_alias_image_create(memory, place, &IMAGE, NULL, &alias));
    REFUSE_OUT(INVALID, alias, quire_vulkan_alias_image_create(NULL, place, &IMAGE, NULL, &alias));
    REFUSE_OUT(INVALID, alias, quire_vulkan_alias_image_create(memory, place, NULL, NULL, &alias));
    REFUSE(INVALID, quire_vulkan_alias_image_create(memory, place, &IMAGE, NULL, NULL));
    REFUSE(INVALID, quire_vulkan_alias_destroy(NULL));
    REFUSE_OUT(INVALID, alias_info, quire_vulkan_alias_get_info(NULL, &alias_info));
}

static void ranges(void)
{
    quire_vulkan_range range;
    REFUSE_OUT(INVALID, range, quire_vulkan_get_range(memory, buffer.allocation, &range));
    REFUSE_OUT(INVALID, range, quire_vulkan_get_range(NULL, buffer.allocation, &range));
    REFUSE_OUT(INVALID, range, quire_vulkan_get_range(memory, (quire_allocation){0}, &range));
    REFUSE(INVALID, quire_vulkan_get_range(memory, buffer.allocation, NULL));
    REFUSE(INVALID, quire_vulkan_set_priority(memory, buffer.allocation, 1));
    REFUSE(INVALID, quire_vulkan_set_priority(NULL, buffer.allocation, 1));
    REFUSE(INVALID, quire_vulkan_set_priority(memory, (quire_allocation){0}, 1));
    REFUSE_OUT(INVALID, range, quire_vulkan_page_buffer(memory, buffer.allocation, &range));
    REFUSE_OUT(INVALID, range, quire_vulkan_page_buffer(NULL, buffer.allocation, &range));
    REFUSE(INVALID, quire_vulkan_page_buffer(memory, buffer.allocation, NULL));
}

static void images(void)
{
    quire_lluvia_view view;
    char texels[10];
    const VkImageLayout any = VK_IMAGE_LAYOUT_UNDEFINED, general = VK_IMAGE_LAYOUT_GENERAL;
    REFUSE_OUT(INVALID, view, quire_lluvia_view_create(memory, image, NULL, &view));
    REFUSE_OUT(INVALID, view, quire_lluvia_view_create(NULL, image, NULL, &view));
    REFUSE(INVALID, quire_lluvia_view_create(memory, image, NULL, NULL));
    REFUSE(INVALID, quire_lluvia_view_destroy(b.device, NULL));
    REFUSE(INVALID, quire_lluvia_view_destroy(b.device, &view));
    REFUSE(INVALID, quire_lluvia_view_destroy(NULL, &view));
    REFUSE(INVALID, quire_lluvia_image_set_layout(memory, image, any, general));
    REFUSE(INVALID, quire_lluvia_image_set_layout(NULL, image, any, general));
    REFUSE(INVALID, quire_lluvia_image_write(memory, image, any, general, texels, 10));
    REFUSE(INVALID, quire_lluvia_image_write(NULL, image, any, general, texels, 10));
    REFUSE(INVALID, quire_lluvia_image_read(memory, image, general, texels, 10));
    REFUSE(INVALID, quire_lluvia_image_read(NULL, image, general, texels, 10));
}

static void other_apis(void)
{
    const VkExternalMemoryHandleTypeFlagBits type = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    const quire_vulkan_import import = {.type = type, .size = 4096};
    quire_allocation made;
    uint32_t mask;
    int descriptor = 5;
    REFUSE(INVALID, quire_vulkan_export_fd(memory, buffer.allocation, type, &descriptor));
    CHECK_EQ(descriptor, -1);
    REFUSE(INVALID, quire_vulkan_export_fd(memory, buffer.allocation, type, NULL));
    REFUSE(INVALID, quire_vulkan_export_fd(NULL, buffer.allocation, type, &descriptor));
    REFUSE_OUT(INVALID, made, quire_vulkan_import_range(memory, &import, &made));
    REFUSE_OUT(INVALID, made, quire_vulkan_import_range(NULL, &import, &made));
    REFUSE_OUT(INVALID, made, quire_vulkan_import_range(memory, NULL, &made));
    REFUSE(INVALID, quire_vulkan_import_range(memory, &import, NULL));
    REFUSE_OUT(INVALID, mask, quire_vulkan_import_kinds(b.device, &import, &mask));
    REFUSE_OUT(INVALID, mask, quire_vulkan_import_kinds(NULL, &import, &mask));
    REFUSE_OUT(INVALID, mask, quire_vulkan_import_kinds(b.device, NULL, &mask));
    REFUSE(INVALID, quire_vulkan_import_kinds(b.device, &import, NULL));
}

static void streams(void)
{
    const quire_vulkan_stream_options options = {.name = NULL}, reserved = {.unused = {1}};
    quire_stream *made, *held = NULL;
    VkSemaphore semaphore;
    REFUSE_OUT(INVALID, made, quire_vulkan_stream_wrap(NULL, &options, &made));
    REFUSE_OUT(INVALID, made, quire_vulkan_stream_wrap(b.device, &options, &made));
    REFUSE_OUT(INVALID, made, quire_vulkan_stream_wrap(b.device, NULL, &made));
    REFUSE_OUT(INVALID, made, quire_vulkan_stream_wrap(b.device, &reserved, &made));
    REFUSE(INVALID, quire_vulkan_stream_wrap(b.device, &options, NULL));
    CHECK_OK(quire_stream_create(b.device, &(quire_stream_options){.capture = true}, &held));
    REFUSE_OUT(INVALID, semaphore, quire_vulkan_stream_get(NULL, &semaphore));
    REFUSE_OUT(INVALID, semaphore, quire_vulkan_stream_get(held, &semaphore));
    REFUSE(INVALID, quire_vulkan_stream_get(held, NULL));
    CHECK_OK(quire_stream_destroy(&held));
}

/* ---- the area ------------------------------------------------------------------------------- */

static const misuse_case cases[] = {
    {"opening", opening},
    {"what is added to a device", additions},
    {"queues and features", queues},
    {"memories", memories},
    {"what objects need", needs},
    {"objects", objects},
    {"sparse objects", sparse_objects},
    {"objects that share memory", aliases},
    {"ranges", ranges},
    {"images", images},
    {"other APIs and processes", other_apis},
    {"streams", streams},
    {NULL, NULL},
};

static const char *const headers[] = {"vulkan.h",        "vulkan_device.h", "vulkan_share.h",
                                      "vulkan_sparse.h", "lluvia.h",        NULL};

const misuse_area misuse_vulkan = {"vulkan", begin, end, cases, headers};
