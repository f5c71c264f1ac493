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
    REFUSED(&b, INVALID, quire_vulkan_open(NULL, NULL));
    for (int i = 0; i < 4; i++) {
        quire_vulkan_options own = {.device = NULL}, inner = {.device = NULL};
        quire_vulkan_wrap_options wrap = {.instance = NULL};
        own.unused[i] = inner.settings.unused[i] = wrap.unused[i] = 1;
        REFUSED_OUT(&b, INVALID, device, quire_vulkan_open(&own, &device));
        REFUSED_OUT(&b, INVALID, device, quire_vulkan_open(&inner, &device));
        REFUSED_OUT(&b, INVALID, device, quire_vulkan_wrap(&wrap, &device));
    }
    const uint64_t sizes[] = {1, 4095, (UINT64_C(1) << 30) + 1, UINT64_MAX};
    for (int i = 0; i < 4; i++) {
        const quire_vulkan_options options = {.settings = {.staging_size = sizes[i]}};
        REFUSED_OUT(&b, INVALID, device, quire_vulkan_open(&options, &device));
    }
    /* a loader without functions */
    const quire_vulkan_options empty = {.get_instance_proc_addr = no_function};
    REFUSED_OUT(&b, UNSUPPORTED, device, quire_vulkan_open(&empty, &device));
    REFUSED_OUT(&b, INVALID, device, quire_vulkan_wrap(NULL, &device));
    REFUSED(&b, INVALID, quire_vulkan_wrap(&(quire_vulkan_wrap_options){.instance = NULL}, NULL));
    REFUSED_OUT(&b, INVALID, handles, quire_vulkan_get_handles(NULL, &handles));
    REFUSED_OUT(&b, INVALID, handles, quire_vulkan_get_handles(b.device, &handles));
    REFUSED(&b, INVALID, quire_vulkan_get_handles(b.device, NULL));
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
        REFUSED_OUT(&b, INVALID, device, quire_vulkan_open(&wrong[i], &device));
}

static void queues(void)
{
    quire_vulkan_queue queue;
    quire_vulkan_features features;
    REFUSED_OUT(&b, INVALID, queue, quire_vulkan_get_queue(NULL, 0, &queue));
    REFUSED_OUT(&b, INVALID, queue, quire_vulkan_get_queue(b.device, 0, &queue));
    REFUSED(&b, INVALID, quire_vulkan_get_queue(b.device, 0, NULL));
    REFUSED(&b, INVALID, quire_vulkan_queue_lock(NULL));
    REFUSED(&b, INVALID, quire_vulkan_queue_lock(b.device));
    REFUSED(&b, INVALID, quire_vulkan_queue_unlock(NULL));
    REFUSED(&b, INVALID, quire_vulkan_queue_unlock(b.device));
    REFUSED_OUT(&b, INVALID, features, quire_vulkan_get_features(NULL, &features));
    REFUSED_OUT(&b, INVALID, features, quire_vulkan_get_features(b.device, &features));
    REFUSED(&b, INVALID, quire_vulkan_get_features(b.device, NULL));
}

static void memories(void)
{
    quire_memory *made;
    REFUSED_OUT(&b, INVALID, made, quire_vulkan_memory_create(b.device, NULL, NULL, &made));
    REFUSED_OUT(&b, INVALID, made, quire_vulkan_memory_create(NULL, NULL, NULL, &made));
    REFUSED(&b, INVALID, quire_vulkan_memory_create(b.device, NULL, NULL, NULL));
}

static void needs(void)
{
    quire_requirements out;
    quire_allocation_options options = {.size = 7};
    const VkMemoryRequirements2 asked = {.memoryRequirements = {1, 1, 1}};
    REFUSED_OUT(&b, INVALID, out, quire_vulkan_buffer_requirements(b.device, &BUFFER, &out));
    REFUSED_OUT(&b, INVALID, out, quire_vulkan_buffer_requirements(NULL, &BUFFER, &out));
    REFUSED(&b, INVALID, quire_vulkan_buffer_requirements(b.device, &BUFFER, NULL));
    REFUSED_OUT(&b, INVALID, out, quire_vulkan_image_requirements(b.device, &IMAGE, &out));
    REFUSED_OUT(&b, INVALID, out, quire_vulkan_image_requirements(NULL, &IMAGE, &out));
    REFUSED(&b, INVALID, quire_vulkan_image_requirements(b.device, &IMAGE, NULL));
    REFUSED(&b, INVALID, quire_vulkan_range_options(memory, &asked, QUIRE_TILING_LINEAR, &options));
    REFUSED(&b, INVALID, quire_vulkan_range_options(NULL, &asked, QUIRE_TILING_LINEAR, &options));
    REFUSED(&b, INVALID, quire_vulkan_range_options(memory, NULL, QUIRE_TILING_LINEAR, &options));
    REFUSED(&b, INVALID, quire_vulkan_range_options(memory, &asked, QUIRE_TILING_LINEAR, NULL));
    CHECK_EQ(options.size, 7);
}

/* In one of several memories, and in a default memory. */
static void several(void)
{
    quire_memory *none = NULL, *place = memory;
    quire_buffer made;
    quire_image picture;
    uint32_t at = 77;
    REFUSED_OUT(&b, INVALID, made,
                quire_vulkan_buffer_create_fallback(&memory, 1, &BUFFER, NULL, &at, &made));
    REFUSED_OUT(&b, INVALID, made,
                quire_vulkan_buffer_create_fallback(&none, 1, &BUFFER, NULL, &at, &made));
    REFUSED_OUT(&b, INVALID, made,
                quire_vulkan_buffer_create_fallback(&memory, 0, &BUFFER, NULL, &at, &made));
    REFUSED_OUT(&b, INVALID, made,
                quire_vulkan_buffer_create_fallback(&memory, 1, NULL, NULL, &at, &made));
    REFUSED(&b, INVALID, quire_vulkan_buffer_create_fallback(&memory, 1, &BUFFER, NULL, &at, NULL));
    REFUSED_OUT(&b, INVALID, picture,
                quire_vulkan_image_create_fallback(&memory, 1, &IMAGE, NULL, &at, &picture));
    REFUSED_OUT(&b, INVALID, picture,
                quire_vulkan_image_create_fallback(&none, 1, &IMAGE, NULL, &at, &picture));
    REFUSED_OUT(&b, INVALID, picture,
                quire_vulkan_image_create_fallback(&memory, 1, NULL, NULL, &at, &picture));
    REFUSED(&b, INVALID, quire_vulkan_image_create_fallback(&memory, 1, &IMAGE, NULL, &at, NULL));
    CHECK_EQ(at, 0);
    REFUSED_OUT(&b, INVALID, made,
                quire_vulkan_device_buffer_create(b.device, NULL, &BUFFER, NULL, &place, &made));
    CHECK(!place);
    REFUSED_OUT(&b, INVALID, made,
                quire_vulkan_device_buffer_create(NULL, NULL, &BUFFER, NULL, &place, &made));
    REFUSED_OUT(&b, INVALID, made,
                quire_vulkan_device_buffer_create(b.device, NULL, NULL, NULL, &place, &made));
    REFUSED_OUT(&b, INVALID, made,
                quire_vulkan_device_buffer_create(b.device, NULL, &BUFFER, NULL, NULL, &made));
    REFUSED_OUT(&b, INVALID, place,
                quire_vulkan_device_buffer_create(b.device, NULL, &BUFFER, NULL, &place, NULL));
    REFUSED_OUT(&b, INVALID, picture,
                quire_vulkan_device_image_create(b.device, NULL, &IMAGE, NULL, &place, &picture));
    REFUSED_OUT(&b, INVALID, picture,
                quire_vulkan_device_image_create(NULL, NULL, &IMAGE, NULL, &place, &picture));
    REFUSED_OUT(&b, INVALID, picture,
                quire_vulkan_device_image_create(b.device, NULL, NULL, NULL, &place, &picture));
    REFUSED_OUT(&b, INVALID, picture,
                quire_vulkan_device_image_create(b.device, NULL, &IMAGE, NULL, NULL, &picture));
    REFUSED_OUT(&b, INVALID, place,
                quire_vulkan_device_image_create(b.device, NULL, &IMAGE, NULL, &place, NULL));
}

static void objects(void)
{
    quire_buffer made;
    quire_image picture;
    REFUSED_OUT(&b, INVALID, made, quire_vulkan_buffer_create(memory, &BUFFER, NULL, &made));
    REFUSED_OUT(&b, INVALID, made, quire_vulkan_buffer_create(NULL, &BUFFER, NULL, &made));
    REFUSED_OUT(&b, INVALID, made, quire_vulkan_buffer_create(memory, NULL, NULL, &made));
    REFUSED(&b, INVALID, quire_vulkan_buffer_create(memory, &BUFFER, NULL, NULL));
    several();
    REFUSED_OUT(&b, INVALID, picture, quire_vulkan_image_create(memory, &IMAGE, NULL, &picture));
    REFUSED_OUT(&b, INVALID, picture, quire_vulkan_image_create(NULL, &IMAGE, NULL, &picture));
    REFUSED(&b, INVALID, quire_vulkan_image_create(memory, &IMAGE, NULL, NULL));
    VkBuffer native = (VkBuffer)(uintptr_t)64;
    VkImage texels = (VkImage)(uintptr_t)64;
    REFUSED_OUT(&b, INVALID, made, quire_vulkan_buffer_place(memory, native, NULL, &made));
    REFUSED_OUT(&b, INVALID, made, quire_vulkan_buffer_place(memory, VK_NULL_HANDLE, NULL, &made));
    REFUSED(&b, INVALID, quire_vulkan_buffer_place(memory, native, NULL, NULL));
    REFUSED_OUT(&b, INVALID, picture, quire_vulkan_image_place(memory, texels, NULL, &picture));
    REFUSED(&b, INVALID, quire_vulkan_image_place(memory, texels, NULL, NULL));
    quire_memory *chosen;
    REFUSED_OUT(&b, INVALID, chosen,
                quire_vulkan_device_buffer_place(b.device, NULL, native, NULL, &chosen, &made));
    REFUSED_OUT(&b, INVALID, made,
                quire_vulkan_device_buffer_place(NULL, NULL, native, NULL, &chosen, &made));
    REFUSED(&b, INVALID,
            quire_vulkan_device_buffer_place(b.device, NULL, native, NULL, NULL, &made));
    REFUSED_OUT(&b, INVALID, chosen,
                quire_vulkan_device_image_place(b.device, NULL, texels, NULL, &chosen, &picture));
    REFUSED(&b, INVALID,
            quire_vulkan_device_image_place(b.device, NULL, texels, NULL, &chosen, NULL));
    const quire_vulkan_object_options known = {.create_info = &BUFFER}, unknown = {.unused = {1}};
    REFUSED_OUT(&b, INVALID, made, quire_vulkan_buffer_place(memory, native, &unknown, &made));
    REFUSED_OUT(&b, INVALID, picture, quire_vulkan_image_place(memory, texels, &known, &picture));
    REFUSED_OUT(&b, INVALID, made, quire_vulkan_buffer_create(memory, &BUFFER, &known, &made));
    REFUSED_OUT(&b, INVALID, native, quire_vulkan_buffer_get(memory, buffer, &native));
    REFUSED_OUT(&b, INVALID, native, quire_vulkan_buffer_get(NULL, buffer, &native));
    REFUSED(&b, INVALID, quire_vulkan_buffer_get(memory, buffer, NULL));
    REFUSED_OUT(&b, INVALID, texels, quire_vulkan_image_get(memory, image, &texels));
    REFUSED_OUT(&b, INVALID, texels, quire_vulkan_image_get(NULL, image, &texels));
    REFUSED(&b, INVALID, quire_vulkan_image_get(memory, image, NULL));
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
    REFUSED_OUT(&b, INVALID, sparse,
                quire_vulkan_sparse_buffer_create(memory, &info, NULL, &sparse));
    REFUSED_OUT(&b, INVALID, sparse, quire_vulkan_sparse_buffer_create(NULL, &info, NULL, &sparse));
    REFUSED_OUT(&b, INVALID, sparse,
                quire_vulkan_sparse_buffer_create(memory, NULL, NULL, &sparse));
    REFUSED(&b, INVALID, quire_vulkan_sparse_buffer_create(memory, &info, NULL, NULL));
    REFUSED_OUT(&b, INVALID, sparse,
                quire_vulkan_sparse_image_create(memory, &texels, NULL, &sparse));
    REFUSED_OUT(&b, INVALID, sparse,
                quire_vulkan_sparse_image_create(NULL, &texels, NULL, &sparse));
    REFUSED_OUT(&b, INVALID, sparse, quire_vulkan_sparse_image_create(memory, NULL, NULL, &sparse));
    REFUSED(&b, INVALID, quire_vulkan_sparse_image_create(memory, &texels, NULL, NULL));
    REFUSED(&b, INVALID, quire_vulkan_sparse_destroy(NULL));
    REFUSED_OUT(&b, INVALID, sparse_info, quire_vulkan_sparse_get_info(NULL, &sparse_info));
    REFUSED_OUT(&b, INVALID, part, quire_vulkan_sparse_get_part(NULL, 0, &part));
    REFUSED(&b, INVALID, quire_vulkan_sparse_bind(NULL, 0, 0));
    REFUSED(&b, INVALID, quire_vulkan_sparse_unbind(NULL, 0, 0));
    REFUSED(&b, INVALID, quire_vulkan_sparse_bind_region(NULL, &region));
    REFUSED(&b, INVALID, quire_vulkan_sparse_unbind_region(NULL, &region));
    REFUSED_OUT(&b, INVALID, offset, quire_vulkan_sparse_find(NULL, &region, &offset));
    REFUSED(&b, INVALID, quire_vulkan_sparse_find(NULL, &region, NULL));
}

static void aliases(void)
{
    quire_vulkan_alias *alias;
    quire_vulkan_alias_info alias_info;
    quire_allocation place = buffer.allocation;
    REFUSED_OUT(&b, INVALID, alias,
                quire_vulkan_alias_buffer_create(memory, place, &BUFFER, NULL, &alias));
    REFUSED_OUT(&b, INVALID, alias,
                quire_vulkan_alias_buffer_create(NULL, place, &BUFFER, NULL, &alias));
    REFUSED_OUT(&b, INVALID, alias,
                quire_vulkan_alias_buffer_create(memory, place, NULL, NULL, &alias));
    REFUSED(&b, INVALID, quire_vulkan_alias_buffer_create(memory, place, &BUFFER, NULL, NULL));
    REFUSED_OUT(&b, INVALID, alias,
                quire_vulkan_alias_image_create(memory, place, &IMAGE, NULL, &alias));
    REFUSED_OUT(&b, INVALID, alias,
                quire_vulkan_alias_image_create(NULL, place, &IMAGE, NULL, &alias));
    REFUSED_OUT(&b, INVALID, alias,
                quire_vulkan_alias_image_create(memory, place, NULL, NULL, &alias));
    REFUSED(&b, INVALID, quire_vulkan_alias_image_create(memory, place, &IMAGE, NULL, NULL));
    REFUSED(&b, INVALID, quire_vulkan_alias_destroy(NULL));
    REFUSED_OUT(&b, INVALID, alias_info, quire_vulkan_alias_get_info(NULL, &alias_info));
}

static void ranges(void)
{
    quire_vulkan_range range;
    REFUSED_OUT(&b, INVALID, range, quire_vulkan_get_range(memory, buffer.allocation, &range));
    REFUSED_OUT(&b, INVALID, range, quire_vulkan_get_range(NULL, buffer.allocation, &range));
    REFUSED_OUT(&b, INVALID, range, quire_vulkan_get_range(memory, (quire_allocation){0}, &range));
    REFUSED(&b, INVALID, quire_vulkan_get_range(memory, buffer.allocation, NULL));
    REFUSED(&b, INVALID, quire_vulkan_set_priority(memory, buffer.allocation, 1));
    REFUSED(&b, INVALID, quire_vulkan_set_priority(NULL, buffer.allocation, 1));
    REFUSED(&b, INVALID, quire_vulkan_set_priority(memory, (quire_allocation){0}, 1));
    REFUSED_OUT(&b, INVALID, range, quire_vulkan_page_buffer(memory, buffer.allocation, &range));
    REFUSED_OUT(&b, INVALID, range, quire_vulkan_page_buffer(NULL, buffer.allocation, &range));
    REFUSED(&b, INVALID, quire_vulkan_page_buffer(memory, buffer.allocation, NULL));
}

static void images(void)
{
    quire_lluvia_view view;
    char texels[10];
    const VkImageLayout any = VK_IMAGE_LAYOUT_UNDEFINED, general = VK_IMAGE_LAYOUT_GENERAL;
    REFUSED_OUT(&b, INVALID, view, quire_lluvia_view_create(memory, image, NULL, &view));
    REFUSED_OUT(&b, INVALID, view, quire_lluvia_view_create(NULL, image, NULL, &view));
    REFUSED(&b, INVALID, quire_lluvia_view_create(memory, image, NULL, NULL));
    REFUSED(&b, INVALID, quire_lluvia_view_destroy(b.device, NULL));
    REFUSED(&b, INVALID, quire_lluvia_view_destroy(b.device, &view));
    REFUSED(&b, INVALID, quire_lluvia_view_destroy(NULL, &view));
    REFUSED(&b, INVALID, quire_lluvia_image_set_layout(memory, image, any, general));
    REFUSED(&b, INVALID, quire_lluvia_image_set_layout(NULL, image, any, general));
    REFUSED(&b, INVALID, quire_lluvia_image_write(memory, image, any, general, texels, 10));
    REFUSED(&b, INVALID, quire_lluvia_image_write(NULL, image, any, general, texels, 10));
    REFUSED(&b, INVALID, quire_lluvia_image_read(memory, image, general, texels, 10));
    REFUSED(&b, INVALID, quire_lluvia_image_read(NULL, image, general, texels, 10));
}

static void other_apis(void)
{
    const VkExternalMemoryHandleTypeFlagBits type = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    const quire_vulkan_import import = {.type = type, .size = 4096};
    quire_allocation made;
    uint32_t mask;
    int descriptor = 5;
    REFUSED(&b, INVALID, quire_vulkan_export_fd(memory, buffer.allocation, type, &descriptor));
    CHECK_EQ(descriptor, -1);
    REFUSED(&b, INVALID, quire_vulkan_export_fd(memory, buffer.allocation, type, NULL));
    REFUSED(&b, INVALID, quire_vulkan_export_fd(NULL, buffer.allocation, type, &descriptor));
    REFUSED_OUT(&b, INVALID, made, quire_vulkan_import_range(memory, &import, &made));
    REFUSED_OUT(&b, INVALID, made, quire_vulkan_import_range(NULL, &import, &made));
    REFUSED_OUT(&b, INVALID, made, quire_vulkan_import_range(memory, NULL, &made));
    REFUSED(&b, INVALID, quire_vulkan_import_range(memory, &import, NULL));
    REFUSED_OUT(&b, INVALID, mask, quire_vulkan_import_kinds(b.device, &import, &mask));
    REFUSED_OUT(&b, INVALID, mask, quire_vulkan_import_kinds(NULL, &import, &mask));
    REFUSED_OUT(&b, INVALID, mask, quire_vulkan_import_kinds(b.device, NULL, &mask));
    REFUSED(&b, INVALID, quire_vulkan_import_kinds(b.device, &import, NULL));
}

static void streams(void)
{
    const quire_vulkan_stream_options options = {.name = NULL}, reserved = {.unused = {1}};
    quire_stream *made, *held = NULL;
    VkSemaphore semaphore;
    REFUSED_OUT(&b, INVALID, made, quire_vulkan_stream_wrap(NULL, &options, &made));
    REFUSED_OUT(&b, INVALID, made, quire_vulkan_stream_wrap(b.device, &options, &made));
    REFUSED_OUT(&b, INVALID, made, quire_vulkan_stream_wrap(b.device, NULL, &made));
    REFUSED_OUT(&b, INVALID, made, quire_vulkan_stream_wrap(b.device, &reserved, &made));
    REFUSED(&b, INVALID, quire_vulkan_stream_wrap(b.device, &options, NULL));
    CHECK_OK(quire_stream_create(b.device, &(quire_stream_options){.capture = true}, &held));
    REFUSED_OUT(&b, INVALID, semaphore, quire_vulkan_stream_get(NULL, &semaphore));
    REFUSED_OUT(&b, INVALID, semaphore, quire_vulkan_stream_get(held, &semaphore));
    REFUSED(&b, INVALID, quire_vulkan_stream_get(held, NULL));
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
