/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan.c - every call of Vulkan fails, at every index and with each code that it may fail with,
 * and so does every allocation of host memory, in scenarios that between them make every call of
 * the backend. Then nothing is left in the driver, no host memory is lost, the library's records
 * are whole, and the driver, which checks its callers, has no message.
 */
#include "quire/vulkan_sparse.h"
#include "tests/fault/driver.h"
#include "tests/fault/vulkan_sparse.h"
#include "tests/support/vulkan_bench.h"
#include "tests/support/vulkan_native.h"

#define KIB UINT64_C(1024)

typedef struct scenario {
    const char *name;
    const char *layout;                 /* NULL: "amd-bar" */
    uint32_t flags;                     /* FV_ */
    const quire_memory_options *memory; /* NULL: the body opens the device */
    void (*body)(vulkan_bench *b, quire_memory *m);
    const void *asked; /* the options of what it makes */
} scenario;

static vulkan_bench bench;
static const scenario *running;

static const quire_memory_options LOCAL = {.kind.required = QUIRE_DEVICE_LOCAL,
                                           .pages = {.page_size = 256 * KIB}};
static const quire_memory_options VISIBLE = {
    .kind.required = QUIRE_HOST_VISIBLE, .name = "visible", .pages = {.page_size = 256 * KIB}};

static const quire_memory_options EXPORTED = {.kind.intent = QUIRE_INTENT_EXPORT,
                                              .pages = {.page_size = 256 * KIB}};
static const quire_memory_options SHARDED = {.shards = 4, .pages = {.page_size = 256 * KIB}};
static const quire_memory_options LINEAR = {.fit.algorithm = QUIRE_FIT_LINEAR,
                                            .pages = {.page_size = 256 * KIB}};

static const VkBufferCreateInfo BUFFER = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                          .size = 1000,
                                          .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                                   VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                                   VK_BUFFER_USAGE_TRANSFER_DST_BIT};

static const VkImageCreateInfo IMAGE = {
    VULKAN_IMAGE_2D(VK_FORMAT_R8G8B8A8_UNORM, 16, 16, 1, 1),
    .usage = VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT,
};

/* The device of a scenario and its memory; NULL: one of them failed. */
static quire_memory *start(vulkan_bench *b, const quire_memory_options *options)
{
    const quire_vulkan_settings settings = {.staging_size = 8 * KIB};
    return vulkan_bench_open(b, &settings) ? vulkan_bench_memory(b, options) : NULL;
}

/* ---- raw ranges ----------------------------------------------------------------------------- */

static void open_alone(vulkan_bench *b, quire_memory *none)
{
    (void)none;
    vulkan_bench_open(b, NULL);
}

/* Everything that the program can add. The chain is on the stack: a failure must not use it. */
static void open_with_additions(vulkan_bench *b, quire_memory *none)
{
    (void)none;
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

static const quire_allocation_options THOUSAND = {.size = 1000}, ALL_DATA = {.size = FAULT_DATA};
static const quire_allocation_options ZEROS = {.size = 4096, .zero = true},
                                      ODD_ZEROS = {.size = 1003, .zero = true};

static void allocated(vulkan_bench *b, quire_memory *m)
{
    quire_allocation a;
    STEP(b, quire_allocate(m, running->asked, &a));
    STEP(b, quire_free(m, a));
}

static void chained(vulkan_bench *b, quire_memory *m)
{
    static const VkMemoryOpaqueCaptureAddressAllocateInfo captured = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_OPAQUE_CAPTURE_ADDRESS_ALLOCATE_INFO};
    const quire_vulkan_memory_options own = {.next = &captured};
    quire_allocation a;
    if (!vulkan_bench_open(b, NULL))
        return;
    STEP(b, quire_vulkan_memory_create(b->device, &LOCAL, &own, &m));
    b->memories[b->memory_count++] = m;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
}

static void mapped_range(vulkan_bench *b, quire_memory *m)
{
    quire_allocation a;
    void *p;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000, .zero = true}, &a));
    STEP(b, quire_map(m, a, &p));
    STEP(b, quire_flush(m, a, 0, 0));
    STEP(b, quire_invalidate(m, a, 100, 200));
    STEP(b, quire_unmap(m, a));
    STEP(b, quire_free(m, a));
}

static void lists_of_ranges(vulkan_bench *b, quire_memory *m)
{
    enum { PARTS = 70 }; /* two lists */
    quire_allocation all[PARTS];
    quire_view views[PARTS];
    STEP(b, quire_allocate_batch(m, &(quire_allocation_options){.size = 1000}, all, PARTS));
    for (int i = 0; i < PARTS; i++)
        views[i] = (quire_view){all[i], 0, 1};
    STEP(b, quire_flush_batch(m, views, PARTS));
    STEP(b, quire_invalidate_batch(m, views, PARTS));
    STEP(b, quire_free_batch(m, all, PARTS));
}

static void written_and_read(vulkan_bench *b, quire_memory *m)
{
    const quire_allocation_options *asked = running->asked;
    fault_range(&b->common, m, asked->size, asked->zero);
}

/* From page to page, and rows to and from the host, in several submissions each. */
static void copied(vulkan_bench *b, quire_memory *m)
{
    fault_rows(&b->common, m, m, 400);
}

static void many_pages(vulkan_bench *b, quire_memory *m)
{
    fault_pages(&b->common, m, 100 * KIB, 6);
}

static void batch(vulkan_bench *b, quire_memory *m)
{
    quire_allocation a[20];
    STEP(b, quire_allocate_batch(m, &(quire_allocation_options){.size = 50 * KIB}, a, 20));
    STEP(b, quire_free_batch(m, a, 20));
}

static void dedicated_range(vulkan_bench *b, quire_memory *m)
{
    quire_allocation a;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000, .dedicated = true}, &a));
    STEP(b, quire_free(m, a));
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000, .dedicated = true}, &a));
}

static void reserved_ahead(vulkan_bench *b, quire_memory *m)
{
    STEP(b, quire_memory_preallocate(m, 1024 * KIB));
    STEP(b, quire_memory_preallocate(m, 0));
}

static void budget(vulkan_bench *b, quire_memory *m)
{
    (void)m;
    quire_budget_info info;
    STEP(b, quire_device_get_budget(b->device, 0, &info));
    CHECK(info.budget > 0);
}

static void page_buffer(vulkan_bench *b, quire_memory *m)
{
    quire_allocation a, c;
    quire_vulkan_range r;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &c));
    STEP(b, quire_vulkan_page_buffer(m, a, &r));
    STEP(b, quire_vulkan_page_buffer(m, c, &r));
    CHECK(r.buffer != VK_NULL_HANDLE && r.address);
    STEP(b, quire_free(m, a));
}

/* Asked once, or 0, and the step succeeds. */
static void page_address(vulkan_bench *b, quire_memory *m)
{
    quire_allocation a;
    quire_allocation_info info;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    bool has_failed = fv_failed(b->driver).times != 0;
    CHECK_OK(quire_allocation_get_info(m, a, &info));
    CHECK(info.address || has_failed || fv_failed(b->driver).times);
    STEP(b, quire_free(m, a));
}

/* ---- buffers -------------------------------------------------------------------------------- */

static void buffer(vulkan_bench *b, quire_memory *m)
{
    const quire_buffer_options *asked = running->asked;
    quire_buffer made;
    STEP(b, quire_buffer_create(m, asked, &made));
    vulkan_buffer_of(m, made);
    STEP(b, quire_write(m, made.allocation, 0, fault_data, asked->size));
    STEP(b, quire_free(m, made.allocation));
}

static const quire_buffer_options NAMED = {.size = 1000, .name = "named"};
static const quire_buffer_options WRITTEN = {.size = 1000, .host_write = true};
static const quire_buffer_options ZEROED = {.size = 1000, .zero = true};
static const quire_buffer_options DEDICATED = {.size = 1000, .dedicated = true};
static const quire_buffer_options PLAIN = {.size = 1000};

static void own_buffer(vulkan_bench *b, quire_memory *m)
{
    quire_buffer made;
    STEP(b, quire_vulkan_buffer_create(
                m, &BUFFER, &(quire_vulkan_object_options){.zero = true, .name = "mine"}, &made));
    STEP(b, quire_free(m, made.allocation));
}

static void buffer_needs(vulkan_bench *b, quire_memory *none)
{
    (void)none;
    quire_requirements needs;
    if (vulkan_bench_open(b, NULL))
        STEP(b, quire_vulkan_buffer_requirements(b->device, &BUFFER, &needs));
}

/* A function of the driver, called directly. */
#define CALL(h, name) ((PFN_##name)(h).get_instance_proc_addr((h).instance, #name))

/* The buffer is the caller's, whatever happens. */
static void placed_buffer(vulkan_bench *b, quire_memory *m)
{
    quire_vulkan_handles h;
    quire_buffer made;
    VkBuffer native;
    STEP(b, quire_vulkan_get_handles(b->device, &h));
    if (CALL(h, vkCreateBuffer)(h.device, &BUFFER, NULL, &native))
        return;
    bool is_placed =
        driver_bench_step(&b->common, quire_vulkan_buffer_place(m, native, running->asked, &made));
    CALL(h, vkDestroyBuffer)(h.device, native, NULL);
    if (is_placed)
        driver_bench_step(&b->common, quire_free(m, made.allocation));
}

static const quire_vulkan_object_options OF_CALLER = {.create_info = &BUFFER};
static const quire_vulkan_object_options UNBOUND = {
    .create_info = &BUFFER, .unbound = true, .name = "unbound"};

/* ---- images --------------------------------------------------------------------------------- */

static void image(vulkan_bench *b, quire_memory *m)
{
    quire_image made;
    STEP(b, quire_image_create(m, running->asked, &made));
    vulkan_image_of(m, made);
    STEP(b, quire_free(m, made.allocation));
}

static void image_needs(vulkan_bench *b, quire_memory *none)
{
    quire_requirements needs;
    (void)none;
    if (vulkan_bench_open(b, NULL))
        STEP(b, quire_image_get_requirements(b->device, running->asked, &needs));
}

static const quire_image_options PICTURE = {.width = 16, .height = 16, .name = "picture"};
static const quire_image_options DEEP = {.width = 8, .height = 8, .depth = 8};
static const quire_image_options ROWS = {.width = 16,
                                         .height = 16,
                                         .tiling = QUIRE_TILING_LINEAR,
                                         .usage = QUIRE_USAGE_TRANSFER_SOURCE |
                                                  QUIRE_USAGE_TRANSFER_TARGET};
static const quire_image_options TARGET = {
    .width = 16, .height = 16, .usage = QUIRE_USAGE_TRANSFER_TARGET};
static const quire_image_options LINEAR_TARGET = {
    .width = 16, .height = 16, .tiling = QUIRE_TILING_LINEAR, .usage = QUIRE_USAGE_TRANSFER_TARGET};

/* ---- in one of several memories ------------------------------------------------------------- */

/* In a default memory; that of the best kind may have a limit. */
static const uint64_t NO_ROOM = 1;

static void default_buffer(vulkan_bench *b, quire_memory *m)
{
    quire_buffer made;
    uint32_t kind = 0;
    const quire_kind_request choice = {.preferred = QUIRE_DEVICE_LOCAL};
    b->has_defaults = true;
    if (!vulkan_bench_open(b, &(quire_vulkan_settings){.staging_size = 8 * KIB}))
        return;
    CHECK_OK(quire_device_choose_kind(b->device, &choice, &kind));
    if (running->asked) {
        STEP(b, quire_device_default_memory(b->device, kind, &m));
        STEP(b, quire_memory_set_limit(m, *(const uint64_t *)running->asked));
    }
    STEP(b, quire_vulkan_device_buffer_create(
                b->device, &choice, &BUFFER,
                &(quire_vulkan_object_options){.zero = true, .name = "mine"}, &m, &made));
    vulkan_buffer_of(m, made);
    STEP(b, quire_free(m, made.allocation));
}

static void default_image(vulkan_bench *b, quire_memory *m)
{
    quire_image made;
    b->has_defaults = true;
    if (!vulkan_bench_open(b, NULL))
        return;
    STEP(b, quire_vulkan_device_image_create(b->device, NULL, &IMAGE, NULL, &m, &made));
    vulkan_image_of(m, made);
    STEP(b, quire_free(m, made.allocation));
}

static void buffer_in_the_second_memory(vulkan_bench *b, quire_memory *m)
{
    uint32_t chosen = 0;
    quire_buffer made;
    quire_memory *both[2] = {m, vulkan_bench_memory(b, &VISIBLE)};
    if (!both[1])
        return;
    STEP(b, quire_memory_set_limit(both[0], 1));
    STEP(b, quire_vulkan_buffer_create_fallback(both, 2, &BUFFER, NULL, &chosen, &made));
    CHECK_EQ(chosen, 1);
    STEP(b, quire_free(both[chosen], made.allocation));
}

static void own_image(vulkan_bench *b, quire_memory *m)
{
    quire_image made;
    STEP(b, quire_vulkan_image_create(m, &IMAGE, NULL, &made));
    STEP(b, quire_free(m, made.allocation));
}

static void texels(vulkan_bench *b, quire_memory *m)
{
    const VkImageLayout before = VK_IMAGE_LAYOUT_UNDEFINED, general = VK_IMAGE_LAYOUT_GENERAL;
    const quire_image_options *asked = running->asked;
    uint64_t size = (uint64_t)asked->width * asked->height;
    quire_image made;
    STEP(b, quire_image_create(m, asked, &made));
    STEP(b, quire_lluvia_image_write(m, made, before, general, fault_data, size));
    memset(fault_back, 0, size);
    STEP(b, quire_lluvia_image_read(m, made, general, fault_back, size));
    CHECK(!memcmp(fault_data, fault_back, size));
    STEP(b, quire_free(m, made.allocation));
}

static const quire_image_options SQUARE = {.width = 16, .height = 16};
static const quire_image_options LARGE = {.width = 100, .height = 100};

static void layout(vulkan_bench *b, quire_memory *m)
{
    quire_image made;
    STEP(b, quire_image_create(m, &(quire_image_options){.width = 16}, &made));
    STEP(b, quire_lluvia_image_set_layout(m, made, VK_IMAGE_LAYOUT_UNDEFINED,
                                          VK_IMAGE_LAYOUT_GENERAL));
}

static void view(vulkan_bench *b, quire_memory *m)
{
    quire_image made;
    STEP(b, quire_image_create(m, &(quire_image_options){.width = 16, .height = 4}, &made));
    STEP(b, quire_lluvia_view_create(m, made, &(quire_lluvia_view_options){.sampled = true},
                                     &b->view));
}

/* ---- objects that share memory -------------------------------------------------------------- */

/* The second one is left to the memory's end. */
static void aliases(vulkan_bench *b, quire_memory *m)
{
    const quire_vulkan_alias_options options = {.offset = 4 * KIB, .name = "other"};
    quire_vulkan_alias *one, *other;
    quire_allocation a;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 16 * KIB, .alignment = KIB}, &a));
    STEP(b, quire_vulkan_alias_buffer_create(m, a, &BUFFER, NULL, &one));
    quire_result result = quire_vulkan_alias_image_create(m, a, &IMAGE, &options, &other);
    CHECK_OK(quire_vulkan_alias_destroy(&one));
    STEP(b, result);
    CHECK_FAILS(quire_free(m, a), QUIRE_ERROR_BUSY);
}

/* ---- other APIs ----------------------------------------------------------------------------- */

static void exported(vulkan_bench *b, quire_memory *m)
{
    const VkExternalMemoryHandleTypeFlagBits type = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    quire_allocation a, imported;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_vulkan_export_fd(m, a, type, &b->descriptor));
    const quire_vulkan_import import = {
        .type = type, .descriptor = b->descriptor, .size = 256 * KIB};
    STEP(b, quire_vulkan_import_range(m, &import, &imported));
    b->descriptor = -1; /* taken over */
    STEP(b, quire_free(m, imported));
}

static void shared_objects(vulkan_bench *b, quire_memory *m)
{
    quire_buffer of_bytes;
    quire_image of_texels;
    STEP(b, quire_vulkan_buffer_create(m, &BUFFER, NULL, &of_bytes));
    STEP(b, quire_vulkan_image_create(m, &IMAGE, NULL, &of_texels));
    STEP(b, quire_free(m, of_bytes.allocation));
    STEP(b, quire_free(m, of_texels.allocation));
}

/* The descriptor of the page of one buffer is imported for a second one, which is the caller's. */
static void dedicated_import(vulkan_bench *b, quire_memory *m)
{
    const VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
        .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    quire_vulkan_import import = {.type = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    VkBufferCreateInfo info = BUFFER;
    quire_vulkan_handles h;
    quire_requirements needs;
    quire_buffer made;
    quire_allocation imported;
    info.pNext = &external;
    STEP(b, quire_vulkan_get_handles(b->device, &h));
    STEP(b, quire_vulkan_buffer_create(m, &info, NULL, &made));
    STEP(b, quire_vulkan_buffer_requirements(b->device, &info, &needs));
    STEP(b, quire_vulkan_export_fd(m, made.allocation, import.type, &b->descriptor));
    if (CALL(h, vkCreateBuffer)(h.device, &info, NULL, &import.buffer))
        return;
    import.descriptor = b->descriptor;
    import.size = needs.size;
    if (driver_bench_step(&b->common, quire_vulkan_import_range(m, &import, &imported))) {
        b->descriptor = -1; /* taken over */
        driver_bench_step(&b->common, quire_free(m, imported));
    }
    CALL(h, vkDestroyBuffer)(h.device, import.buffer, NULL);
}

static void imported_pointer(vulkan_bench *b, quire_memory *m)
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
    m = vulkan_bench_memory(
        b, &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE, .kind.mask = mask});
    if (!m)
        return;
    STEP(b, quire_vulkan_import_range(m, &import, &a));
    STEP(b, quire_free(m, a));
}

/* ---- streams -------------------------------------------------------------------------------- */

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
        writes[i] = (quire_write_item){a, i * 200, fault_data + i * LENGTH, LENGTH};
        reads[i] = (quire_read_item){a, i * 200, fault_back + i * LENGTH, LENGTH};
    }
    const quire_copy_options copy = {.to = {.memory = m, .allocation = a, .row_pitch = 200},
                                     .host_from = fault_data,
                                     .size = 100,
                                     .rows = 100,
                                     .stream = stream};
    STEP(b, quire_copy(&copy, NULL));
    STEP(b, quire_write_batch(m, writes, ITEMS, stream, &done));
    STEP(b, quire_point_await(&done, QUIRE_FOREVER));
    memset(fault_back, 0, FAULT_DATA);
    STEP(b, quire_read_batch(m, reads, ITEMS));
    CHECK(!memcmp(fault_back, fault_data, (size_t)ITEMS * LENGTH));
    STEP(b, quire_write_batch(m, writes, ITEMS, NULL, NULL));
    STEP(b, quire_free(m, a));
}

static void batches(vulkan_bench *b, quire_memory *m)
{
    quire_stream *stream = NULL;
    if (driver_bench_step(&b->common, quire_stream_create(b->device, NULL, &stream)))
        write_on_stream(b, m, stream);
    fault_end_stream(&b->common, stream);
}

static void streams(vulkan_bench *b, quire_memory *m)
{
    const quire_vulkan_stream_options options = {.name = "second"};
    quire_stream *first = NULL, *second = NULL;
    if (!vulkan_bench_open(b, NULL) || !(m = vulkan_bench_memory(b, NULL)))
        return;
    if (driver_bench_step(&b->common, quire_stream_create(b->device, NULL, &first)) &&
        driver_bench_step(&b->common, quire_vulkan_stream_wrap(b->device, &options, &second)))
        fault_streams(&b->common, m, first, second, NULL);
    fault_end_stream(&b->common, first);
    fault_end_stream(&b->common, second);
}

/* ---- the sweep ------------------------------------------------------------------------------ */

static const scenario scenarios[] = {
    {"a device", NULL, 0, NULL, open_alone, NULL},
    {"a device of many heaps", "amd-apu", 0, NULL, open_alone, NULL},
    {"a device of little", "mobile-lazy", 0, NULL, open_alone, NULL},
    {"a device with the program's additions", NULL, FV_SPARSE_APART, NULL, open_with_additions,
     NULL},
    {"a range", NULL, 0, &LOCAL, allocated, &THOUSAND},
    {"a range, one kind for all", "lavapipe", 0, &LOCAL, allocated, &THOUSAND},
    {"a range in a page with a chain of the caller's", NULL, 0, NULL, chained, NULL},
    {"a mapped range", NULL, 0, &VISIBLE, mapped_range, NULL},
    {"a mapped range that is not coherent", "incoherent", 0, &VISIBLE, mapped_range, NULL},
    {"the same with stale bytes", "incoherent", FV_STALE, &VISIBLE, mapped_range, NULL},
    {"many ranges that are not coherent", "incoherent", FV_STALE, &VISIBLE, lists_of_ranges, NULL},
    {"copies through the mapping", NULL, 0, &VISIBLE, written_and_read, &THOUSAND},
    {"copies that must be flushed", "incoherent", FV_STALE, &VISIBLE, written_and_read, &THOUSAND},
    {"staged copies", NULL, 0, &LOCAL, written_and_read, &THOUSAND},
    {"staged copies, done late", NULL, FV_LATE, &LOCAL, written_and_read, &THOUSAND},
    {"staged copies in pieces", NULL, FV_LATE, &LOCAL, written_and_read, &ALL_DATA},
    {"copies of rows and between pages", NULL, FV_LATE, &LOCAL, copied, NULL},
    {"staged copies through a ring that is flushed", "incoherent", FV_STALE, &LOCAL,
     written_and_read, &ALL_DATA},
    {"an image's contents, likewise", "incoherent", FV_STALE, &LOCAL, texels, &SQUARE},
    {"batches and copies on a stream", NULL, FV_LATE, &LOCAL, batches, NULL},
    {"zeros", NULL, FV_DIRTY, &LOCAL, allocated, &ZEROS},
    {"zeros with odd ends", NULL, FV_DIRTY, &LOCAL, allocated, &ODD_ZEROS},
    {"pages that come and go", NULL, 0, &LOCAL, many_pages, NULL},
    {"a batch over several pages", NULL, 0, &LOCAL, batch, NULL},
    {"a dedicated range", NULL, 0, &VISIBLE, dedicated_range, NULL},
    {"pages made ahead", NULL, 0, &VISIBLE, reserved_ahead, NULL},
    {"shards", NULL, 0, &SHARDED, allocated, &THOUSAND},
    {"the linear fit", NULL, 0, &LINEAR, copied, NULL},
    {"a budget", NULL, 0, &LOCAL, budget, NULL},
    {"the buffer over a page", NULL, 0, &LOCAL, page_buffer, NULL},
    {"the address of a page", NULL, 0, &LOCAL, page_address, NULL},
    {"the buffer over a page, odd sizes", NULL, FV_ODD_SIZES, &LOCAL, page_buffer, NULL},
    {"a buffer", NULL, 0, &LOCAL, buffer, &NAMED},
    {"a buffer, large alignments", NULL, FV_LARGE_ALIGNMENTS, &LOCAL, buffer, &NAMED},
    {"a buffer that prefers a page", NULL, FV_PREFER_DEDICATED | FV_DEDICATED_BUFFERS, &LOCAL,
     buffer, &NAMED},
    {"a buffer that requires a page", NULL, FV_REQUIRE_DEDICATED | FV_DEDICATED_BUFFERS, &LOCAL,
     buffer, &NAMED},
    {"a visible buffer", NULL, 0, &VISIBLE, buffer, &WRITTEN},
    {"a visible buffer, stale bytes", "incoherent", FV_STALE, &VISIBLE, buffer, &WRITTEN},
    {"a zeroed buffer", NULL, FV_DIRTY, &LOCAL, buffer, &ZEROED},
    {"a zeroed buffer that requires a page", NULL,
     FV_DIRTY | FV_REQUIRE_DEDICATED | FV_DEDICATED_BUFFERS, &LOCAL, buffer, &ZEROED},
    {"a dedicated buffer", NULL, 0, &LOCAL, buffer, &DEDICATED},
    {"an exportable buffer", NULL, 0, &EXPORTED, buffer, &PLAIN},
    {"an exportable buffer that prefers a page", NULL, FV_PREFER_DEDICATED, &EXPORTED, buffer,
     &PLAIN},
    {"the caller's description of a buffer", NULL, 0, &LOCAL, own_buffer, NULL},
    {"a buffer in a default memory", NULL, FV_DIRTY, NULL, default_buffer, NULL},
    {"a buffer in a default memory, few types", NULL, FV_FEW_TYPES, NULL, default_buffer, NULL},
    {"a buffer in the next default memory", NULL, FV_PREFER_DEDICATED, NULL, default_buffer,
     &NO_ROOM},
    {"the same that requires a page", "nvidia-11", FV_REQUIRE_DEDICATED, NULL, default_buffer,
     &NO_ROOM},
    {"an image in a default memory", NULL, FV_PREFER_DEDICATED, NULL, default_image, NULL},
    {"a buffer in the second memory", NULL, 0, &LOCAL, buffer_in_the_second_memory, NULL},
    {"what a buffer needs", NULL, 0, NULL, buffer_needs, NULL},
    {"what a buffer needs, of an old driver", "intel-2017", 0, NULL, buffer_needs, NULL},
    {"the caller's buffer", NULL, 0, &LOCAL, placed_buffer, &OF_CALLER},
    {"the caller's buffer that requires a page", NULL, FV_REQUIRE_DEDICATED | FV_DEDICATED_BUFFERS,
     &LOCAL, placed_buffer, &OF_CALLER},
    {"a buffer that the caller binds", NULL, FV_REQUIRE_DEDICATED | FV_DEDICATED_BUFFERS, &LOCAL,
     placed_buffer, &UNBOUND},
    {"an image", NULL, 0, &LOCAL, image, &PICTURE},
    {"an image that prefers a page", NULL, FV_PREFER_DEDICATED, &LOCAL, image, &PICTURE},
    {"an image that requires a page", NULL, FV_REQUIRE_DEDICATED, &LOCAL, image, &PICTURE},
    {"an image of three dimensions", "nvidia-11", 0, &LOCAL, image, &DEEP},
    {"a linear image", NULL, 0, &LOCAL, image, &ROWS},
    {"what an image needs", NULL, 0, NULL, image_needs, &TARGET},
    {"what an image needs, of an old driver", "intel-2017", 0, NULL, image_needs, &TARGET},
    {"what a linear image needs", NULL, 0, NULL, image_needs, &LINEAR_TARGET},
    {"the caller's description of an image", NULL, 0, &LOCAL, own_image, NULL},
    {"an image's contents", NULL, 0, &LOCAL, texels, &SQUARE},
    {"an image's contents in pieces, done late", NULL, FV_LATE, &LOCAL, texels, &LARGE},
    {"a layout", NULL, 0, &LOCAL, layout, NULL},
    {"a view with a sampler", NULL, 0, &LOCAL, view, NULL},
    {"a sparse buffer", NULL, 0, &LOCAL, sparse_buffer, NULL},
    {"a sparse buffer, bound late", NULL, FV_LATE, &LOCAL, sparse_buffer, NULL},
    {"a sparse buffer, bound by a queue of its own", NULL, FV_SPARSE_APART, &LOCAL, sparse_buffer,
     NULL},
    {"a sparse image", NULL, 0, &LOCAL, sparse_image, NULL},
    {"blocks of a sparse buffer", NULL, FV_LATE, &LOCAL, sparse_blocks, NULL},
    {"tiles of a sparse image", NULL, 0, &LOCAL, sparse_tiles, NULL},
    {"aspects of a sparse image", NULL, FV_METADATA | FV_SINGLE_TAIL, &LOCAL, sparse_aspects, NULL},
    {"an elastic memory", NULL, 0, &FAULT_ELASTIC, elastic_growth, NULL},
    {"an elastic memory, bound late by a queue of its own", NULL, FV_LATE | FV_SPARSE_APART,
     &FAULT_ELASTIC, elastic_growth, NULL},
    {"lazy allocations", NULL, FV_DIRTY | FV_LATE, &FAULT_ELASTIC, elastic_lazies, NULL},
    {"allocations that sleep", NULL, FV_DIRTY, NULL, elastic_sleep, NULL},
    {"objects that share memory", NULL, 0, &LOCAL, aliases, NULL},
    {"a page exported and imported", NULL, 0, &EXPORTED, exported, NULL},
    {"objects in exportable memory", NULL, 0, &EXPORTED, shared_objects, NULL},
    {"objects of exportable memory of their own", NULL, FV_DEDICATED_ONLY, &EXPORTED,
     shared_objects, NULL},
    {"an import that is dedicated to a buffer", NULL, FV_DEDICATED_ONLY, &EXPORTED,
     dedicated_import, NULL},
    {"a host pointer imported", NULL, 0, NULL, imported_pointer, NULL},
    {"streams", NULL, 0, NULL, streams, NULL},
    {"streams whose work is done late", NULL, FV_LATE, NULL, streams, NULL},
};

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

static void begin(const void *scenario_)
{
    running = scenario_;
    vulkan_bench_begin(&bench, running->layout, running->flags);
}

static void run(const void *scenario_)
{
    const scenario *s = scenario_;
    quire_memory *m = s->memory ? start(&bench, s->memory) : NULL;
    if (m || !s->memory)
        s->body(&bench, m);
}

static void end(void)
{
    if (fv_failed(bench.driver).result == VK_ERROR_DEVICE_LOST)
        forgive_haste(bench.driver);
    vulkan_bench_end(&bench);
}

/* What fails: calls of Vulkan with one of their codes. */
static fv_fault fault;

static uint64_t calls(void)
{
    return fv_fallible_calls(bench.driver);
}

static bool fail(uint64_t call)
{
    fault.call = call;
    CHECK(fv_fail(bench.driver, &fault));
    return true;
}

static bool has_failed(void)
{
    return fv_failed(bench.driver).times > 0;
}

static void heal(void)
{
    fv_heal(bench.driver);
}

static const fault_driver driver = {&bench.common, begin,      run,  end, calls,
                                    fail,          has_failed, heal, NULL};

/* Each call has a few codes: the sweeps end with the code that none has. The library repeats waits,
   so that they fail if all later ones fail as well. */
static void sweep(const void *scenario_)
{
    uint64_t fallible = fault_driver_calls(scenario_, QUIRE_SUCCESS);
    for (fault.code_index = 0; fault_driver_sweep(fallible);)
        fault.code_index++;
    fault = (fv_fault){
        .function = "vkWaitForFences", .result = VK_ERROR_OUT_OF_HOST_MEMORY, .from_then = true};
    fault_driver_sweep(FAULT_UNKNOWN);
    fault = (fv_fault){0};
    fault_driver_sweep_memory();
}

int main(int argc, char **argv)
{
    fault_driver_begin(&driver, argc, argv);
    FAULT_TABLE(scenarios, sweep);
    return fault_end();
}
