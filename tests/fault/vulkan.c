/*
 * vulkan.c - every call of Vulkan fails, at every index and with each code that it may fail
 * with, and every allocation of host memory, in scenarios that between them make every call of the
 * backend: nothing is left behind in the driver, no host memory is lost, the library's records stay
 * whole, and the driver, which checks what it is asked, has nothing to say.
 */
#include <stdio.h>
#include <stdlib.h>

#include "quire/vulkan_sparse.h"
#include "tests/fault/fault.h"
#include "tests/support/vulkan_bench.h"
#include "tests/support/vulkan_native.h"

#define KIB UINT64_C(1024)

typedef struct scenario {
    const char *name;
    const char *layout; /* NULL: "amd-bar" */
    uint32_t flags;     /* FV_ */
    void (*body)(vulkan_bench *b);
} scenario;

static const quire_memory_options LOCAL = {.kind.required = QUIRE_DEVICE_LOCAL,
                                           .pages = {.page_size = 256 * KIB}};
static const quire_memory_options VISIBLE = {
    .kind.required = QUIRE_HOST_VISIBLE, .name = "visible", .pages = {.page_size = 256 * KIB}};

static const VkBufferCreateInfo BUFFER = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                          .size = 1000,
                                          .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                                   VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                                   VK_BUFFER_USAGE_TRANSFER_DST_BIT};

static const VkImageCreateInfo IMAGE = {
    .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
    .imageType = VK_IMAGE_TYPE_2D,
    .format = VK_FORMAT_R8G8B8A8_UNORM,
    .extent = {16, 16, 1},
    .mipLevels = 1,
    .arrayLayers = 1,
    .samples = VK_SAMPLE_COUNT_1_BIT,
    .usage = VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT,
};

static unsigned char data[64 * 1024], back[64 * 1024];

/* A device and a memory; NULL: one of them failed. */
static quire_memory *start(vulkan_bench *b, const quire_memory_options *options)
{
    const quire_vulkan_settings settings = {.staging_size = 8 * KIB};
    return vulkan_bench_open(b, &settings) ? vulkan_bench_memory(b, options) : NULL;
}

/* ---- raw ranges ----------------------------------------------------------------------------- */

static void open_alone(vulkan_bench *b)
{
    vulkan_bench_open(b, NULL);
}

/* Everything that the program can add. The chain is on the stack: a failure must not use it. */
static void open_with_additions(vulkan_bench *b)
{
    static const char *const of_device[] = {"VK_AMD_device_coherent_memory"};
    static const char *const of_instance[] = {"VK_EXT_debug_utils"};
    static const VkQueueFlags queues[] = {VK_QUEUE_TRANSFER_BIT, VK_QUEUE_GRAPHICS_BIT};
    VkPhysicalDeviceFeatures2 core = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    VkPhysicalDeviceVulkan12Features later = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .pNext = &core};
    const quire_vulkan_options options = {
        .instance_extensions = of_instance,
        .instance_extension_count = 1,
        .device_extensions = of_device,
        .device_extension_count = 1,
        .chain = &later,
        .queue_flags = VK_QUEUE_GRAPHICS_BIT,
        .queues = queues,
        .queue_count = 2,
    };
    if (!vulkan_bench_open_with(b, options)) {
        CHECK(!core.features.sparseBinding && !later.timelineSemaphore);
        return;
    }
    STEP(b, quire_vulkan_queue_lock(b->device));
    STEP(b, quire_vulkan_queue_unlock(b->device));
}

static void range(vulkan_bench *b)
{
    quire_allocation a;
    quire_memory *m = start(b, &LOCAL);
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_free(m, a));
}

static void chained(vulkan_bench *b)
{
    static const VkMemoryOpaqueCaptureAddressAllocateInfo captured = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_OPAQUE_CAPTURE_ADDRESS_ALLOCATE_INFO};
    const quire_vulkan_memory_options own = {.next = &captured};
    quire_allocation a;
    quire_memory *m = NULL;
    if (!vulkan_bench_open(b, NULL))
        return;
    STEP(b, quire_vulkan_memory_create(b->device, &LOCAL, &own, &m));
    b->memories[b->memory_count++] = m;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
}

static void mapped_range(vulkan_bench *b)
{
    quire_allocation a;
    void *p;
    quire_memory *m = start(b, &VISIBLE);
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000, .zero = true}, &a));
    STEP(b, quire_map(m, a, &p));
    STEP(b, quire_flush(m, a, 0, 0));
    STEP(b, quire_invalidate(m, a, 100, 200));
    STEP(b, quire_unmap(m, a));
    STEP(b, quire_free(m, a));
}

static void lists_of_ranges(vulkan_bench *b)
{
    enum { PARTS = 70 }; /* two lists */
    quire_allocation all[PARTS];
    quire_view views[PARTS];
    quire_memory *m = start(b, &VISIBLE);
    if (!m)
        return;
    STEP(b, quire_allocate_batch(m, &(quire_allocation_options){.size = 1000}, all, PARTS));
    for (int i = 0; i < PARTS; i++)
        views[i] = (quire_view){all[i], 0, 1};
    STEP(b, quire_flush_batch(m, views, PARTS));
    STEP(b, quire_invalidate_batch(m, views, PARTS));
    STEP(b, quire_free_batch(m, all, PARTS));
}

static void written_and_read(vulkan_bench *b, const quire_memory_options *options, uint64_t size)
{
    quire_allocation a;
    quire_memory *m = start(b, options);
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = size}, &a));
    STEP(b, quire_write(m, a, 0, data, size));
    memset(back, 0, size);
    STEP(b, quire_read(m, a, 0, back, size));
    CHECK(!memcmp(data, back, size));
    STEP(b, quire_free(m, a));
}

static void staged(vulkan_bench *b)
{
    written_and_read(b, &LOCAL, 1000);
}

static void staged_in_pieces(vulkan_bench *b)
{
    written_and_read(b, &LOCAL, sizeof data);
}

static void copied_by_mapping(vulkan_bench *b)
{
    written_and_read(b, &VISIBLE, 1000);
}

/* From page to page, and rows to and from the host, in several submissions each. */
static void copied(vulkan_bench *b)
{
    quire_allocation to, from;
    quire_memory *m = start(b, &LOCAL);
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 60 * KIB}, &to));
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 60 * KIB}, &from));
    const quire_copy_end target = {.memory = m, .allocation = to, .row_pitch = 100};
    const quire_copy_end source = {.memory = m, .allocation = from, .row_pitch = 90};
    STEP(b,
         quire_copy(&(quire_copy_options){.to = source, .host_from = data, .size = 80, .rows = 400},
                    NULL));
    STEP(b, quire_copy(&(quire_copy_options){.to = target, .from = source, .size = 80, .rows = 400},
                       NULL));
    memset(back, 0, sizeof back);
    STEP(b,
         quire_copy(&(quire_copy_options){.from = target, .host_to = back, .size = 80, .rows = 400},
                    NULL));
    CHECK(!memcmp(back, data, 80 * 400));
    STEP(b, quire_fill(m, to, &(quire_fill_options){.offset = 3, .size = 1000, .value = 9}, NULL));
    STEP(b, quire_free(m, to));
    STEP(b, quire_free(m, from));
}

static void zeroed_of(vulkan_bench *b, uint64_t size)
{
    quire_allocation a;
    quire_memory *m = start(b, &LOCAL);
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = size, .zero = true}, &a));
    STEP(b, quire_free(m, a));
}

static void zeroed(vulkan_bench *b)
{
    zeroed_of(b, 4096);
}

static void zeroed_odd(vulkan_bench *b)
{
    zeroed_of(b, 1003);
}

static void many_pages(vulkan_bench *b)
{
    quire_allocation a[6];
    quire_memory *m = start(b, &LOCAL);
    for (int i = 0; m && i < 6; i++)
        STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 100 * KIB}, &a[i]));
    for (int i = 0; m && i < 6; i++)
        STEP(b, quire_free(m, a[i]));
    if (m)
        STEP(b, quire_memory_trim(m, 0, NULL));
}

static void batch(vulkan_bench *b)
{
    quire_allocation a[20];
    quire_memory *m = start(b, &LOCAL);
    if (!m)
        return;
    STEP(b, quire_allocate_batch(m, &(quire_allocation_options){.size = 50 * KIB}, a, 20));
    STEP(b, quire_free_batch(m, a, 20));
}

static void dedicated_range(vulkan_bench *b)
{
    quire_allocation a;
    quire_memory *m = start(b, &VISIBLE);
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000, .dedicated = true}, &a));
    STEP(b, quire_free(m, a));
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000, .dedicated = true}, &a));
}

static void reserved_ahead(vulkan_bench *b)
{
    quire_memory *m = start(b, &VISIBLE);
    if (!m)
        return;
    STEP(b, quire_memory_preallocate(m, 1024 * KIB));
    STEP(b, quire_memory_preallocate(m, 0));
}

static void shards(vulkan_bench *b)
{
    quire_allocation a;
    quire_memory *m = start(b, &(quire_memory_options){.shards = 4, .pages = LOCAL.pages});
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_free(m, a));
}

static void linear_fit(vulkan_bench *b)
{
    quire_allocation a[3];
    quire_memory *m =
        start(b, &(quire_memory_options){.fit.algorithm = QUIRE_FIT_LINEAR, .pages = LOCAL.pages});
    for (int i = 0; m && i < 3; i++)
        STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a[i]));
}

static void budget(vulkan_bench *b)
{
    quire_budget_info info;
    quire_memory *m = start(b, &LOCAL);
    if (!m)
        return;
    STEP(b, quire_device_get_budget(b->device, 0, &info));
    CHECK(info.budget > 0);
}

static void page_buffer(vulkan_bench *b)
{
    quire_allocation a, c;
    quire_vulkan_range r;
    quire_memory *m = start(b, &LOCAL);
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &c));
    STEP(b, quire_vulkan_page_buffer(m, a, &r));
    STEP(b, quire_vulkan_page_buffer(m, c, &r));
    CHECK(r.buffer != VK_NULL_HANDLE && r.address);
    STEP(b, quire_free(m, a));
}

/* Asked once, or 0, and the step succeeds. */
static void page_address(vulkan_bench *b)
{
    quire_allocation a;
    quire_allocation_info info;
    quire_memory *m = start(b, &LOCAL);
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    bool has_failed = fv_failed(b->driver).times != 0;
    CHECK_OK(quire_allocation_get_info(m, a, &info));
    CHECK(info.address || has_failed || fv_failed(b->driver).times);
    STEP(b, quire_free(m, a));
}

/* ---- buffers -------------------------------------------------------------------------------- */

static void buffer_of(vulkan_bench *b, const quire_memory_options *options,
                      const quire_buffer_options *asked)
{
    quire_buffer buffer;
    quire_memory *m = start(b, options);
    if (!m)
        return;
    STEP(b, quire_buffer_create(m, asked, &buffer));
    vulkan_buffer_of(m, buffer);
    STEP(b, quire_write(m, buffer.allocation, 0, data, asked->size));
    STEP(b, quire_free(m, buffer.allocation));
}

static void buffer(vulkan_bench *b)
{
    buffer_of(b, &LOCAL, &(quire_buffer_options){.size = 1000, .name = "named"});
}

static void visible_buffer(vulkan_bench *b)
{
    buffer_of(b, &VISIBLE, &(quire_buffer_options){.size = 1000, .host_write = true});
}

static void zeroed_buffer(vulkan_bench *b)
{
    buffer_of(b, &LOCAL, &(quire_buffer_options){.size = 1000, .zero = true});
}

static void dedicated_buffer(vulkan_bench *b)
{
    buffer_of(b, &LOCAL, &(quire_buffer_options){.size = 1000, .dedicated = true});
}

static void exportable_buffer(vulkan_bench *b)
{
    const quire_intent intent = QUIRE_INTENT_EXPORT;
    buffer_of(b, &(quire_memory_options){.kind.intent = intent, .pages = LOCAL.pages},
              &(quire_buffer_options){.size = 1000});
}

static void own_buffer(vulkan_bench *b)
{
    quire_buffer made;
    quire_memory *m = start(b, &LOCAL);
    if (!m)
        return;
    STEP(b, quire_vulkan_buffer_create(
                m, &BUFFER, &(quire_vulkan_object_options){.zero = true, .name = "mine"}, &made));
    STEP(b, quire_free(m, made.allocation));
}

static void buffer_needs(vulkan_bench *b)
{
    quire_requirements needs;
    if (vulkan_bench_open(b, NULL))
        STEP(b, quire_vulkan_buffer_requirements(b->device, &BUFFER, &needs));
}

/* The buffer is the caller's, whatever happens. */
static void place_buffer(vulkan_bench *b, const quire_vulkan_object_options *options)
{
    quire_vulkan_handles h;
    quire_buffer made;
    VkBuffer native;
    quire_memory *m = start(b, &LOCAL);
    if (!m)
        return;
    STEP(b, quire_vulkan_get_handles(b->device, &h));
    PFN_vkCreateBuffer create =
        (PFN_vkCreateBuffer)h.get_instance_proc_addr(h.instance, "vkCreateBuffer");
    PFN_vkDestroyBuffer destroy =
        (PFN_vkDestroyBuffer)h.get_instance_proc_addr(h.instance, "vkDestroyBuffer");
    if (create(h.device, &BUFFER, NULL, &native))
        return;
    bool is_placed = vulkan_bench_step(b, quire_vulkan_buffer_place(m, native, options, &made));
    destroy(h.device, native, NULL);
    if (is_placed)
        vulkan_bench_step(b, quire_free(m, made.allocation));
}

static void placed_buffer(vulkan_bench *b)
{
    place_buffer(b, &(quire_vulkan_object_options){.create_info = &BUFFER});
}

static void unbound_buffer(vulkan_bench *b)
{
    place_buffer(b, &(quire_vulkan_object_options){
                        .create_info = &BUFFER, .unbound = true, .name = "unbound"});
}

/* ---- images --------------------------------------------------------------------------------- */

static void image_of(vulkan_bench *b, const quire_image_options *asked)
{
    quire_image made;
    quire_memory *m = start(b, &LOCAL);
    if (!m)
        return;
    STEP(b, quire_image_create(m, asked, &made));
    vulkan_image_of(m, made);
    STEP(b, quire_free(m, made.allocation));
}

static void image(vulkan_bench *b)
{
    image_of(b, &(quire_image_options){.width = 16, .height = 16, .name = "picture"});
}

static void image_of_depth(vulkan_bench *b)
{
    image_of(b, &(quire_image_options){.width = 8, .height = 8, .depth = 8});
}

static void linear_image(vulkan_bench *b)
{
    image_of(b, &(quire_image_options){.width = 16,
                                       .height = 16,
                                       .tiling = QUIRE_TILING_LINEAR,
                                       .usage = QUIRE_USAGE_TRANSFER_SOURCE |
                                                QUIRE_USAGE_TRANSFER_TARGET});
}

static void image_needs_of(vulkan_bench *b, quire_tiling tiling)
{
    quire_requirements needs;
    const quire_image_options options = {
        .width = 16, .height = 16, .tiling = tiling, .usage = QUIRE_USAGE_TRANSFER_TARGET};
    if (vulkan_bench_open(b, NULL))
        STEP(b, quire_image_get_requirements(b->device, &options, &needs));
}

static void image_needs(vulkan_bench *b)
{
    image_needs_of(b, QUIRE_TILING_OPTIMAL);
}

static void linear_image_needs(vulkan_bench *b)
{
    image_needs_of(b, QUIRE_TILING_LINEAR);
}

/* ---- in one of several memories ------------------------------------------------------------- */

/* In a default memory. With `is_full` the best kind has no room. */
static void default_buffer_of(vulkan_bench *b, bool is_full)
{
    quire_memory *m = NULL;
    quire_buffer made;
    uint32_t kind = 0;
    const quire_kind_request choice = {.preferred = QUIRE_DEVICE_LOCAL};
    b->has_defaults = true;
    if (!vulkan_bench_open(b, &(quire_vulkan_settings){.staging_size = 8 * KIB}))
        return;
    CHECK_OK(quire_device_choose_kind(b->device, &choice, &kind));
    if (is_full) {
        STEP(b, quire_device_default_memory(b->device, kind, &m));
        STEP(b, quire_memory_set_limit(m, 1));
    }
    STEP(b, quire_vulkan_device_buffer_create(
                b->device, &choice, &BUFFER,
                &(quire_vulkan_object_options){.zero = true, .name = "mine"}, &m, &made));
    vulkan_buffer_of(m, made);
    STEP(b, quire_free(m, made.allocation));
}

static void default_buffer(vulkan_bench *b)
{
    default_buffer_of(b, false);
}

static void full_default_buffer(vulkan_bench *b)
{
    default_buffer_of(b, true);
}

static void default_image(vulkan_bench *b)
{
    quire_memory *m = NULL;
    quire_image made;
    b->has_defaults = true;
    if (!vulkan_bench_open(b, NULL))
        return;
    STEP(b, quire_vulkan_device_image_create(b->device, NULL, &IMAGE, NULL, &m, &made));
    vulkan_image_of(m, made);
    STEP(b, quire_free(m, made.allocation));
}

static void buffer_in_the_second_memory(vulkan_bench *b)
{
    uint32_t chosen = 0;
    quire_buffer made;
    quire_memory *both[2] = {start(b, &LOCAL), NULL};
    both[1] = both[0] ? vulkan_bench_memory(b, &VISIBLE) : NULL;
    if (!both[1])
        return;
    STEP(b, quire_memory_set_limit(both[0], 1));
    STEP(b, quire_vulkan_buffer_create_fallback(both, 2, &BUFFER, NULL, &chosen, &made));
    CHECK_EQ(chosen, 1);
    STEP(b, quire_free(both[chosen], made.allocation));
}

static void own_image(vulkan_bench *b)
{
    quire_image made;
    quire_memory *m = start(b, &LOCAL);
    if (!m)
        return;
    STEP(b, quire_vulkan_image_create(m, &IMAGE, NULL, &made));
    STEP(b, quire_free(m, made.allocation));
}

static void texels(vulkan_bench *b, uint32_t width, uint32_t height)
{
    const VkImageLayout before = VK_IMAGE_LAYOUT_UNDEFINED, general = VK_IMAGE_LAYOUT_GENERAL;
    quire_image made;
    quire_memory *m = start(b, &LOCAL);
    if (!m)
        return;
    uint64_t size = (uint64_t)width * height;
    STEP(b, quire_image_create(m, &(quire_image_options){.width = width, .height = height}, &made));
    STEP(b, quire_lluvia_image_write(m, made, before, general, data, size));
    memset(back, 0, size);
    STEP(b, quire_lluvia_image_read(m, made, general, back, size));
    CHECK(!memcmp(data, back, size));
    STEP(b, quire_free(m, made.allocation));
}

static void image_contents(vulkan_bench *b)
{
    texels(b, 16, 16);
}

static void image_contents_in_pieces(vulkan_bench *b)
{
    texels(b, 100, 100);
}

static void layout(vulkan_bench *b)
{
    quire_image made;
    quire_memory *m = start(b, &LOCAL);
    if (!m)
        return;
    STEP(b, quire_image_create(m, &(quire_image_options){.width = 16}, &made));
    STEP(b, quire_lluvia_image_set_layout(m, made, VK_IMAGE_LAYOUT_UNDEFINED,
                                          VK_IMAGE_LAYOUT_GENERAL));
}

static void view(vulkan_bench *b)
{
    quire_image made;
    quire_memory *m = start(b, &LOCAL);
    if (!m)
        return;
    STEP(b, quire_image_create(m, &(quire_image_options){.width = 16, .height = 4}, &made));
    STEP(b, quire_lluvia_view_create(m, made, &(quire_lluvia_view_options){.sampled = true},
                                     &b->view));
}

/* ---- sparse objects ------------------------------------------------------------------------- */

static const VkBufferCreateInfo SPARSE = {
    .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
    .flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT,
    .size = 700 * KIB,
    .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT,
};

static void sparse_buffer(vulkan_bench *b)
{
    quire_vulkan_sparse *sparse;
    quire_memory *m = start(b, &LOCAL);
    if (!m)
        return;
    STEP(b, quire_vulkan_sparse_buffer_create(
                m, &SPARSE, &(quire_vulkan_object_options){.name = "field"}, &sparse));
    STEP(b, quire_vulkan_sparse_destroy(&sparse));
}

/* It is left to the memory's end. */
static void sparse_image(vulkan_bench *b)
{
    quire_vulkan_sparse *sparse;
    VkImageCreateInfo info = IMAGE;
    quire_memory *m = start(b, &LOCAL);
    if (!m)
        return;
    info.flags = VK_IMAGE_CREATE_SPARSE_BINDING_BIT;
    info.extent.width = info.extent.height = 300;
    STEP(b, quire_vulkan_sparse_image_create(m, &info, NULL, &sparse));
}

/* Bytes that are bound, which no failure may change. */
static void bound_bytes(vulkan_bench *b, quire_vulkan_sparse *sparse, quire_result result,
                        uint64_t before, uint64_t after)
{
    quire_vulkan_sparse_info info;
    quire_memory_stats stats;
    CHECK_OK(quire_vulkan_sparse_get_info(sparse, &info));
    CHECK_OK(quire_memory_get_stats(info.memory, &stats));
    CHECK_EQ(info.bound, result ? before : after);
    CHECK_EQ(stats.live_bytes, info.bound);
    vulkan_bench_step(b, result);
}

static void sparse_blocks(vulkan_bench *b)
{
    const uint64_t block = 64 * KIB;
    quire_vulkan_sparse *sparse;
    VkBufferCreateInfo info = SPARSE;
    quire_memory *m = start(b, &LOCAL);
    if (!m)
        return;
    info.flags |= VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT;
    STEP(b, quire_vulkan_sparse_buffer_create(m, &info, NULL, &sparse));
    bound_bytes(b, sparse, quire_vulkan_sparse_bind(sparse, block, 6 * block), 0, 6 * block);
    if (!b->result)
        bound_bytes(b, sparse, quire_vulkan_sparse_unbind(sparse, 0, 3 * block), 6 * block,
                    4 * block);
    if (!b->result)
        bound_bytes(b, sparse, quire_vulkan_sparse_bind(sparse, 0, 0), 4 * block, 11 * block);
    quire_result failed = b->result;
    CHECK_OK(quire_vulkan_sparse_destroy(&sparse));
    b->result = failed;
}

static void sparse_tiles(vulkan_bench *b)
{
    const quire_vulkan_region region = {.offset = {128, 0, 0}, .extent = {0, 128, 0}};
    const uint64_t block = 64 * KIB;
    quire_vulkan_sparse *sparse;
    VkImageCreateInfo info = IMAGE;
    quire_memory *m = start(b, &LOCAL);
    if (!m)
        return;
    info.flags = VK_IMAGE_CREATE_SPARSE_BINDING_BIT | VK_IMAGE_CREATE_SPARSE_RESIDENCY_BIT;
    info.extent.width = info.extent.height = 300;
    info.mipLevels = 9;
    STEP(b, quire_vulkan_sparse_image_create(m, &info, NULL, &sparse));
    bound_bytes(b, sparse, quire_vulkan_sparse_bind_region(sparse, &region), 0, 2 * block);
    if (!b->result)
        bound_bytes(b, sparse, quire_vulkan_sparse_bind(sparse, 0, 0), 2 * block, 14 * block);
    if (!b->result)
        bound_bytes(b, sparse, quire_vulkan_sparse_unbind_region(sparse, &region), 14 * block,
                    12 * block);
    quire_result failed = b->result;
    CHECK_OK(quire_vulkan_sparse_destroy(&sparse));
    b->result = failed;
}

/* Two aspects, each with a tail for all layers, and metadata. */
static void sparse_aspects(vulkan_bench *b)
{
    const quire_vulkan_region region = {.offset = {256, 0, 0}};
    const uint64_t block = 64 * KIB;
    quire_vulkan_sparse *sparse;
    VkImageCreateInfo info = IMAGE;
    quire_memory *m = start(b, &LOCAL);
    if (!m)
        return;
    info.flags = VK_IMAGE_CREATE_SPARSE_BINDING_BIT | VK_IMAGE_CREATE_SPARSE_RESIDENCY_BIT;
    info.format = VK_FORMAT_D32_SFLOAT_S8_UINT;
    info.usage = VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT;
    info.extent.width = info.extent.height = 300;
    info.mipLevels = 9;
    info.arrayLayers = 2;
    STEP(b, quire_vulkan_sparse_image_create(m, &info, NULL, &sparse));
    /* the last column: 3 tiles of depth, 2 of stencil, a block of metadata */
    bound_bytes(b, sparse, quire_vulkan_sparse_bind_region(sparse, &region), 0, 6 * block);
    if (!b->result)
        bound_bytes(b, sparse, quire_vulkan_sparse_unbind_region(sparse, &region), 6 * block, 0);
    quire_result failed = b->result;
    CHECK_OK(quire_vulkan_sparse_destroy(&sparse));
    b->result = failed;
}

/* ---- objects that share memory -------------------------------------------------------------- */

/* The second one is left to the memory's end. */
static void aliases(vulkan_bench *b)
{
    const quire_vulkan_alias_options options = {.offset = 4 * KIB, .name = "other"};
    quire_vulkan_alias *one, *other;
    quire_allocation a;
    quire_memory *m = start(b, &LOCAL);
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 16 * KIB, .alignment = KIB}, &a));
    STEP(b, quire_vulkan_alias_buffer_create(m, a, &BUFFER, NULL, &one));
    quire_result result = quire_vulkan_alias_image_create(m, a, &IMAGE, &options, &other);
    CHECK_OK(quire_vulkan_alias_destroy(&one));
    STEP(b, result);
    CHECK_FAILS(quire_free(m, a), QUIRE_ERROR_BUSY);
}

/* ---- other APIs ----------------------------------------------------------------------------- */

static void exported(vulkan_bench *b)
{
    const VkExternalMemoryHandleTypeFlagBits type = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    const quire_intent intent = QUIRE_INTENT_EXPORT;
    quire_allocation a, imported;
    quire_memory *m =
        start(b, &(quire_memory_options){.kind.intent = intent, .pages = LOCAL.pages});
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_vulkan_export_fd(m, a, type, &b->descriptor));
    const quire_vulkan_import import = {
        .type = type, .descriptor = b->descriptor, .size = 256 * KIB};
    STEP(b, quire_vulkan_import_range(m, &import, &imported));
    b->descriptor = -1; /* taken over */
    STEP(b, quire_free(m, imported));
}

static void shared_objects(vulkan_bench *b)
{
    const quire_intent intent = QUIRE_INTENT_EXPORT;
    quire_buffer of_bytes;
    quire_image of_texels;
    quire_memory *m =
        start(b, &(quire_memory_options){.kind.intent = intent, .pages = LOCAL.pages});
    if (!m)
        return;
    STEP(b, quire_vulkan_buffer_create(m, &BUFFER, NULL, &of_bytes));
    STEP(b, quire_vulkan_image_create(m, &IMAGE, NULL, &of_texels));
    STEP(b, quire_free(m, of_bytes.allocation));
    STEP(b, quire_free(m, of_texels.allocation));
}

/* The descriptor of the page of one buffer is imported for a second one, which is the caller's. */
static void dedicated_import(vulkan_bench *b)
{
    const VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
        .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    const quire_intent intent = QUIRE_INTENT_EXPORT;
    quire_vulkan_import import = {.type = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    VkBufferCreateInfo info = BUFFER;
    quire_vulkan_handles h;
    quire_requirements needs;
    quire_buffer made;
    quire_allocation imported;
    quire_memory *m =
        start(b, &(quire_memory_options){.kind.intent = intent, .pages = LOCAL.pages});
    if (!m)
        return;
    info.pNext = &external;
    STEP(b, quire_vulkan_get_handles(b->device, &h));
    STEP(b, quire_vulkan_buffer_create(m, &info, NULL, &made));
    STEP(b, quire_vulkan_buffer_requirements(b->device, &info, &needs));
    STEP(b, quire_vulkan_export_fd(m, made.allocation, import.type, &b->descriptor));
    PFN_vkCreateBuffer create =
        (PFN_vkCreateBuffer)h.get_instance_proc_addr(h.instance, "vkCreateBuffer");
    PFN_vkDestroyBuffer destroy =
        (PFN_vkDestroyBuffer)h.get_instance_proc_addr(h.instance, "vkDestroyBuffer");
    if (create(h.device, &info, NULL, &import.buffer))
        return;
    import.descriptor = b->descriptor;
    import.size = needs.size;
    if (vulkan_bench_step(b, quire_vulkan_import_range(m, &import, &imported))) {
        b->descriptor = -1; /* taken over */
        vulkan_bench_step(b, quire_free(m, imported));
    }
    destroy(h.device, import.buffer, NULL);
}

static void imported_pointer(vulkan_bench *b)
{
    static _Alignas(4096) char bytes[8192];
    quire_allocation a;
    uint32_t mask;
    const quire_vulkan_import import = {.type =
                                            VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
                                        .pointer = bytes,
                                        .size = sizeof bytes};
    if (!vulkan_bench_open(b, NULL))
        return;
    STEP(b, quire_vulkan_import_kinds(b->device, &import, &mask));
    quire_memory *m = vulkan_bench_memory(
        b, &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE, .kind.mask = mask});
    if (!m)
        return;
    STEP(b, quire_vulkan_import_range(m, &import, &a));
    STEP(b, quire_free(m, a));
}

/* ---- streams -------------------------------------------------------------------------------- */

/* While calls fail it may not be known that what was freed on it has passed. */
static void end_stream(vulkan_bench *b, quire_stream *stream)
{
    quire_result failed = b->result;
    if (quire_stream_destroy(&stream)) {
        fv_heal(b->driver);
        CHECK_OK(quire_stream_destroy(&stream));
    }
    b->result = failed;
}

static bool submit_work(vulkan_bench *b, quire_stream *stream, const quire_native *page)
{
    const quire_backend *table = quire_device_backend(b->device);
    void *state = quire_device_state(b->device);
    uint64_t native = quire_stream_native(stream);
    const quire_copy_job job = {.to = &page->page,
                                .to_offset = page->offset,
                                .from = &page->page,
                                .from_offset = page->offset + 1024,
                                .size = 100,
                                .rows = 4,
                                .slices = 1,
                                .to_row = 200,
                                .from_row = 200};
    return vulkan_bench_step(
               b, table->stream_fill(state, native, &page->page, page->offset, 2048, 7)) &&
           vulkan_bench_step(b, table->stream_copy(state, native, &job));
}

static void use_streams(vulkan_bench *b, quire_memory *m, quire_stream *first, quire_stream *second)
{
    quire_allocation a, freed;
    quire_native page;
    quire_point point, last;
    bool has_passed;
    const quire_allocation_options words = {.size = 2048, .alignment = 4};
    STEP(b, quire_allocate(m, &words, &a));
    STEP(b, quire_allocate(m, &words, &freed));
    STEP(b, quire_allocation_get_native(m, a, &page));
    for (int i = 0; i < 2; i++) { /* the second time with what was used before */
        if (!submit_work(b, first, &page))
            return;
        STEP(b, quire_stream_mark(first, &point));
        STEP(b, quire_stream_wait(second, &point));
        if (!submit_work(b, second, &page))
            return;
        if (!i)
            STEP(b, quire_free_on_stream(m, freed, second));
        STEP(b, quire_stream_mark(second, &last));
        STEP(b, quire_point_has_passed(&point, &has_passed));
        STEP(b, quire_point_await(&last, QUIRE_FOREVER));
    }
    STEP(b, quire_collect(m, NULL));
}

/* More bytes than the ring of a stream has, in single copies and in batches. */
static void write_on_stream(vulkan_bench *b, quire_memory *m, quire_stream *stream)
{
    enum { ITEMS = 80, LENGTH = 150 };
    quire_write_item writes[ITEMS];
    quire_read_item reads[ITEMS];
    quire_allocation a;
    quire_point done;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 20 * KIB}, &a));
    for (uint64_t i = 0; i < ITEMS; i++) {
        writes[i] = (quire_write_item){a, i * 200, data + i * LENGTH, LENGTH};
        reads[i] = (quire_read_item){a, i * 200, back + i * LENGTH, LENGTH};
    }
    const quire_copy_options copy = {.to = {.memory = m, .allocation = a, .row_pitch = 200},
                                     .host_from = data,
                                     .size = 100,
                                     .rows = 100,
                                     .stream = stream};
    STEP(b, quire_copy(&copy, NULL));
    STEP(b, quire_write_batch(m, writes, ITEMS, stream, &done));
    STEP(b, quire_point_await(&done, QUIRE_FOREVER));
    memset(back, 0, sizeof back);
    STEP(b, quire_read_batch(m, reads, ITEMS));
    CHECK(!memcmp(back, data, (size_t)ITEMS * LENGTH));
    STEP(b, quire_write_batch(m, writes, ITEMS, NULL, NULL));
    STEP(b, quire_free(m, a));
}

static void batches(vulkan_bench *b)
{
    quire_stream *stream = NULL;
    quire_memory *m = start(b, &LOCAL);
    if (m && vulkan_bench_step(b, quire_stream_create(b->device, NULL, &stream)))
        write_on_stream(b, m, stream);
    end_stream(b, stream);
}

static void streams(vulkan_bench *b)
{
    quire_stream *first = NULL, *second = NULL;
    quire_memory *m = NULL;
    if (!vulkan_bench_open(b, NULL) || !(m = vulkan_bench_memory(b, NULL)))
        return;
    if (vulkan_bench_step(b, quire_stream_create(b->device, NULL, &first)) &&
        vulkan_bench_step(
            b, quire_vulkan_stream_wrap(b->device, &(quire_vulkan_stream_options){.name = "second"},
                                        &second)))
        use_streams(b, m, first, second);
    end_stream(b, first);
    end_stream(b, second);
}

/* ---- the sweep ------------------------------------------------------------------------------ */

static const scenario scenarios[] = {
    {"a device", NULL, 0, open_alone},
    {"a device of many heaps", "amd-apu", 0, open_alone},
    {"a device of little", "mobile-lazy", 0, open_alone},
    {"a device with the program's additions", NULL, FV_SPARSE_APART, open_with_additions},
    {"a range", NULL, 0, range},
    {"a range, one kind for all", "lavapipe", 0, range},
    {"a range in a page with a chain of the caller's", NULL, 0, chained},
    {"a mapped range", NULL, 0, mapped_range},
    {"a mapped range that is not coherent", "incoherent", 0, mapped_range},
    {"the same with stale bytes", "incoherent", FV_STALE, mapped_range},
    {"many ranges that are not coherent", "incoherent", FV_STALE, lists_of_ranges},
    {"copies through the mapping", NULL, 0, copied_by_mapping},
    {"copies that must be flushed", "incoherent", FV_STALE, copied_by_mapping},
    {"staged copies", NULL, 0, staged},
    {"staged copies, done late", NULL, FV_LATE, staged},
    {"staged copies in pieces", NULL, FV_LATE, staged_in_pieces},
    {"copies of rows and between pages", NULL, FV_LATE, copied},
    {"staged copies through a ring that is flushed", "incoherent", FV_STALE, staged_in_pieces},
    {"an image's contents, likewise", "incoherent", FV_STALE, image_contents},
    {"batches and copies on a stream", NULL, FV_LATE, batches},
    {"zeros", NULL, FV_DIRTY, zeroed},
    {"zeros with odd ends", NULL, FV_DIRTY, zeroed_odd},
    {"pages that come and go", NULL, 0, many_pages},
    {"a batch over several pages", NULL, 0, batch},
    {"a dedicated range", NULL, 0, dedicated_range},
    {"pages made ahead", NULL, 0, reserved_ahead},
    {"shards", NULL, 0, shards},
    {"the linear fit", NULL, 0, linear_fit},
    {"a budget", NULL, 0, budget},
    {"the buffer over a page", NULL, 0, page_buffer},
    {"the address of a page", NULL, 0, page_address},
    {"the buffer over a page, odd sizes", NULL, FV_ODD_SIZES, page_buffer},
    {"a buffer", NULL, 0, buffer},
    {"a buffer, large alignments", NULL, FV_LARGE_ALIGNMENTS, buffer},
    {"a buffer that prefers a page", NULL, FV_PREFER_DEDICATED | FV_DEDICATED_BUFFERS, buffer},
    {"a buffer that requires a page", NULL, FV_REQUIRE_DEDICATED | FV_DEDICATED_BUFFERS, buffer},
    {"a visible buffer", NULL, 0, visible_buffer},
    {"a visible buffer, stale bytes", "incoherent", FV_STALE, visible_buffer},
    {"a zeroed buffer", NULL, FV_DIRTY, zeroed_buffer},
    {"a zeroed buffer that requires a page", NULL,
     FV_DIRTY | FV_REQUIRE_DEDICATED | FV_DEDICATED_BUFFERS, zeroed_buffer},
    {"a dedicated buffer", NULL, 0, dedicated_buffer},
    {"an exportable buffer", NULL, 0, exportable_buffer},
    {"an exportable buffer that prefers a page", NULL, FV_PREFER_DEDICATED, exportable_buffer},
    {"the caller's description of a buffer", NULL, 0, own_buffer},
    {"a buffer in a default memory", NULL, FV_DIRTY, default_buffer},
    {"a buffer in a default memory, few types", NULL, FV_FEW_TYPES, default_buffer},
    {"a buffer in the next default memory", NULL, FV_PREFER_DEDICATED, full_default_buffer},
    {"the same that requires a page", "nvidia-11", FV_REQUIRE_DEDICATED, full_default_buffer},
    {"an image in a default memory", NULL, FV_PREFER_DEDICATED, default_image},
    {"a buffer in the second memory", NULL, 0, buffer_in_the_second_memory},
    {"what a buffer needs", NULL, 0, buffer_needs},
    {"what a buffer needs, of an old driver", "intel-2017", 0, buffer_needs},
    {"the caller's buffer", NULL, 0, placed_buffer},
    {"the caller's buffer that requires a page", NULL, FV_REQUIRE_DEDICATED | FV_DEDICATED_BUFFERS,
     placed_buffer},
    {"a buffer that the caller binds", NULL, FV_REQUIRE_DEDICATED | FV_DEDICATED_BUFFERS,
     unbound_buffer},
    {"an image", NULL, 0, image},
    {"an image that prefers a page", NULL, FV_PREFER_DEDICATED, image},
    {"an image that requires a page", NULL, FV_REQUIRE_DEDICATED, image},
    {"an image of three dimensions", "nvidia-11", 0, image_of_depth},
    {"a linear image", NULL, 0, linear_image},
    {"what an image needs", NULL, 0, image_needs},
    {"what an image needs, of an old driver", "intel-2017", 0, image_needs},
    {"what a linear image needs", NULL, 0, linear_image_needs},
    {"the caller's description of an image", NULL, 0, own_image},
    {"an image's contents", NULL, 0, image_contents},
    {"an image's contents in pieces, done late", NULL, FV_LATE, image_contents_in_pieces},
    {"a layout", NULL, 0, layout},
    {"a view with a sampler", NULL, 0, view},
    {"a sparse buffer", NULL, 0, sparse_buffer},
    {"a sparse buffer, bound late", NULL, FV_LATE, sparse_buffer},
    {"a sparse buffer, bound by a queue of its own", NULL, FV_SPARSE_APART, sparse_buffer},
    {"a sparse image", NULL, 0, sparse_image},
    {"blocks of a sparse buffer", NULL, FV_LATE, sparse_blocks},
    {"tiles of a sparse image", NULL, 0, sparse_tiles},
    {"aspects of a sparse image", NULL, FV_METADATA | FV_SINGLE_TAIL, sparse_aspects},
    {"objects that share memory", NULL, 0, aliases},
    {"a page exported and imported", NULL, 0, exported},
    {"objects in exportable memory", NULL, 0, shared_objects},
    {"objects of exportable memory of their own", NULL, FV_DEDICATED_ONLY, shared_objects},
    {"an import that is dedicated to a buffer", NULL, FV_DEDICATED_ONLY, dedicated_import},
    {"a host pointer imported", NULL, 0, imported_pointer},
    {"streams", NULL, 0, streams},
    {"streams whose work is done late", NULL, FV_LATE, streams},
};

/* ---- the sweep ------------------------------------------------------------------------------ */

/* Nothing waits for the work of a lost device, neither now nor when the device ends. */
static void forgive_haste(fv_driver *driver)
{
    const char *message = NULL;
    uint32_t count = 0;
    while ((message = fv_message(driver, count)) && strstr(message, "not done"))
        count++;
    if (!message)
        fv_forget(driver);
    fv_allow(driver, "not done");
}

/* What fails: calls of Vulkan with one of their codes, or allocations of host memory. */
typedef struct target {
    const scenario *scenario;
    bool in_host_memory;
    uint32_t code;
} target;

typedef struct counts {
    uint64_t fallible;    /* calls of Vulkan */
    uint64_t allocations; /* of host memory */
} counts;

/* Runs the scenario without a fault; returns the calls that can fail. */
static counts count(const scenario *s)
{
    vulkan_bench b;
    vulkan_bench_begin(&b, s->layout, s->flags);
    test_memory_fail(&b.host_memory, 0, false);
    s->body(&b);
    if (b.result)
        check_failed(__FILE__, __LINE__, "%s: %s", s->name, quire_last_error());
    counts found = {fv_fallible_calls(b.driver), b.host_memory.calls};
    CHECK(found.fallible > 0 && found.allocations > 0);
    vulkan_bench_end(&b);
    return found;
}

static bool run(void *context, uint64_t call)
{
    const target *t = context;
    vulkan_bench b;
    vulkan_bench_begin(&b, t->scenario->layout, t->scenario->flags);
    if (!t->in_host_memory)
        CHECK(fv_fail(b.driver, &(fv_fault){.call = call, .code_index = t->code}));
    test_memory_fail(&b.host_memory, t->in_host_memory ? call : 0, false);
    t->scenario->body(&b);
    fv_failure failed = fv_failed(b.driver);
    bool is_reached = t->in_host_memory ? b.host_memory.calls >= call : failed.times > 0;
    test_memory_fail(&b.host_memory, 0, false);
    if (b.result)
        CHECK(*quire_last_error());
    if (failed.result == VK_ERROR_DEVICE_LOST)
        forgive_haste(b.driver);
    vulkan_bench_end(&b);
    return is_reached;
}

/* Each call has a few codes: the sweeps end with the code that none has. */
static void sweep(const void *scenario_)
{
    target t = {.scenario = scenario_};
    counts found = count(t.scenario);
    while (fault_sweep(run, &t, found.fallible))
        t.code++;
    t.in_host_memory = true;
    fault_sweep(run, &t, found.allocations);
}

int main(int argc, char **argv)
{
    fault_begin(argc, argv);
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7 + i / 256);
    FAULT_TABLE(scenarios, sweep);
    return fault_end();
}
