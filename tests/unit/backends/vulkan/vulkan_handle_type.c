/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_handle_type.c - handle types of external memory on the fake Vulkan driver: what buffers
 * and images in exportable and imported memory declare, and what the device must support. The
 * driver reports every object in memory that requires another declaration.
 */
#include "quire/vulkan_sparse.h"
#include "tests/support/unit.h"
#include "tests/support/vulkan_bench.h"
#include "tests/support/vulkan_native.h"

#define INVALID QUIRE_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED
#define OPAQUE VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT
#define DMA_BUF VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT
#define KIB UINT64_C(1024)

static const VkBufferCreateInfo BUFFER = VULKAN_BUFFER(1000, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);

static const VkImageCreateInfo IMAGE = VULKAN_IMAGE(16, VK_IMAGE_USAGE_SAMPLED_BIT);

static const quire_intent EXPORTABLE = QUIRE_INTENT_EXPORT;
static const quire_memory_options SHARED = {.kind.intent = EXPORTABLE,
                                            .pages = {.page_size = 256 * 1024}};

typedef struct bench {
    vulkan_bench b;
    quire_memory *memory; /* exportable */
    quire_vulkan_handles handles;
} bench;

/* Export types of 0 are the default: opaque descriptors. */
static void begin(bench *t, uint32_t flags, VkExternalMemoryHandleTypeFlags export_types)
{
    vulkan_bench_begin(&t->b, NULL, flags);
    CHECK(vulkan_bench_open(&t->b, &(quire_vulkan_settings){.export_types = export_types}));
    t->memory = vulkan_bench_memory(&t->b, &SHARED);
    CHECK(t->memory != NULL);
    CHECK_OK(quire_vulkan_get_handles(t->b.device, &t->handles));
}

static void end(bench *t)
{
    vulkan_bench_end(&t->b);
}

#define CASE(name, begin) UNIT_ON(vulkan_handle_type, name, bench, t, begin, end)

#define CALL(t, name) VULKAN_CALL((t)->handles, name)

/* ---- objects in exportable memory ------------------------------------------------------------ */

UNIT(vulkan_handle_type, objects_of_a_plain_create_info_declare_the_export_types)
{
    static const uint32_t flags[] = {0, FV_PREFER_DEDICATED, FV_REQUIRE_DEDICATED,
                                     FV_DEDICATED_ONLY};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        bench t;
        quire_buffer buffer;
        quire_image image;
        begin(&t, flags[i], 0);
        CHECK_OK(quire_vulkan_buffer_create(t.memory, &BUFFER, NULL, &buffer));
        CHECK_OK(quire_vulkan_image_create(t.memory, &IMAGE, NULL, &image));
        CHECK_OK(quire_free(t.memory, buffer.allocation));
        CHECK_OK(quire_free(t.memory, image.allocation));
        CHECK_OK(quire_buffer_create(t.memory, &(quire_buffer_options){.size = 9}, &buffer));
        CHECK_OK(quire_image_create(t.memory, &(quire_image_options){.width = 9}, &image));
        vulkan_bench_end(&t.b);
    }
}

CASE(a_declaration_of_the_caller_stays_and_must_fit, begin(t, 0, 0))
{
    quire_buffer buffer;
    quire_image image;
    VkExternalMemoryBufferCreateInfo of_buffer = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, .handleTypes = OPAQUE};
    VkExternalMemoryImageCreateInfo of_image = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMAGE_CREATE_INFO, .handleTypes = OPAQUE};
    VkBufferCreateInfo buffer_info = BUFFER;
    VkImageCreateInfo image_info = IMAGE;
    buffer_info.pNext = &of_buffer;
    image_info.pNext = &of_image;
    CHECK_OK(quire_vulkan_buffer_create(t->memory, &buffer_info, NULL, &buffer));
    CHECK_OK(quire_vulkan_image_create(t->memory, &image_info, NULL, &image));
    static const VkExternalMemoryHandleTypeFlags others[] = {0, DMA_BUF};
    for (int i = 0; i < 2; i++) {
        of_buffer.handleTypes = of_image.handleTypes = others[i];
        CHECK_FAILS(quire_vulkan_buffer_create(t->memory, &buffer_info, NULL, &buffer), INVALID);
        CHECK_HAS(quire_last_error(), "the memory has the types 0x1");
        CHECK_EQ(buffer.allocation.id, 0);
        CHECK_FAILS(quire_vulkan_image_create(t->memory, &image_info, NULL, &image), INVALID);
    }
    image_info = IMAGE;
    image_info.initialLayout = VK_IMAGE_LAYOUT_PREINITIALIZED;
    CHECK_FAILS(quire_vulkan_image_create(t->memory, &image_info, NULL, &image), INVALID);
    CHECK_HAS(quire_last_error(), "begins in layout UNDEFINED");
    CHECK_EQ(fv_live(t->b.driver, FV_BUFFER), 1);
    CHECK_EQ(fv_live(t->b.driver, FV_IMAGE), 1);
}

CASE(objects_of_the_caller_are_placed_if_their_create_info_says_the_types, begin(t, 0, 0))
{
    const VkExternalMemoryBufferCreateInfo declared = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, .handleTypes = OPAQUE};
    quire_buffer buffer;
    quire_image image;
    VkBuffer native;
    VkImage picture;
    VkBufferCreateInfo info = BUFFER;
    info.pNext = &declared;
    const quire_vulkan_object_options known = {.create_info = &info},
                                      other = {.create_info = &BUFFER},
                                      wrong = {.create_info = &IMAGE};
    CHECK_EQ(CALL(t, vkCreateBuffer)(t->handles.device, &info, NULL, &native), 0);
    CHECK_EQ(CALL(t, vkCreateImage)(t->handles.device, &IMAGE, NULL, &picture), 0);
    CHECK_FAILS(quire_vulkan_buffer_place(t->memory, native, NULL, &buffer), INVALID);
    CHECK_FAILS(quire_vulkan_buffer_place(t->memory, native, &other, &buffer), INVALID);
    CHECK_FAILS(quire_vulkan_buffer_place(t->memory, native, &wrong, &buffer), INVALID);
    CHECK_HAS(quire_last_error(), "has sType");
    CHECK_FAILS(quire_vulkan_image_place(t->memory, picture, NULL, &image), INVALID);
    CHECK_FAILS(quire_vulkan_image_place(t->memory, picture, &wrong, &image), INVALID);
    const quire_vulkan_object_options linear = {.create_info = &IMAGE,
                                                .tiling = QUIRE_TILING_LINEAR};
    CHECK_FAILS(quire_vulkan_image_place(t->memory, picture, &linear, &image), INVALID);
    CHECK_HAS(quire_last_error(), "tiling is linear, and that of the create info is not");
    CHECK_OK(quire_vulkan_buffer_place(t->memory, native, &known, &buffer));
    CHECK_OK(quire_free(t->memory, buffer.allocation));
    CALL(t, vkDestroyBuffer)(t->handles.device, native, NULL);
    CALL(t, vkDestroyImage)(t->handles.device, picture, NULL);
    CHECK_FAILS(quire_vulkan_buffer_create(t->memory, &BUFFER, &known, &buffer), INVALID);
    CHECK_FAILS(quire_vulkan_image_create(t->memory, &IMAGE, &wrong, &image), INVALID);
}

CASE(aliases_and_sparse_objects_declare_them, begin(t, 0, 0))
{
    quire_allocation range;
    quire_vulkan_alias *buffer = NULL, *image = NULL;
    quire_vulkan_sparse *sparse = NULL;
    VkBufferCreateInfo field = BUFFER;
    field.flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT;
    field.size = 128 * KIB;
    CHECK_OK(quire_allocate(
        t->memory, &(quire_allocation_options){.size = 8 * KIB, .alignment = 4 * KIB}, &range));
    CHECK_OK(quire_vulkan_alias_buffer_create(t->memory, range, &BUFFER, NULL, &buffer));
    CHECK_OK(quire_vulkan_alias_image_create(
        t->memory, range, &IMAGE, &(quire_vulkan_alias_options){.offset = 4 * KIB}, &image));
    CHECK_OK(quire_vulkan_alias_destroy(&buffer));
    CHECK_OK(quire_vulkan_alias_destroy(&image));
    CHECK_OK(quire_vulkan_sparse_buffer_create(t->memory, &field, NULL, &sparse));
    CHECK_OK(quire_vulkan_sparse_destroy(&sparse));
    CHECK_FAILS(
        quire_vulkan_sparse_buffer_create(
            t->memory, &field, &(quire_vulkan_object_options){.create_info = &field}, &sparse),
        INVALID);
}

CASE(an_alias_of_imported_memory_declares_the_type_of_the_import, begin(t, 0, 0))
{
    quire_allocation range, imported;
    quire_vulkan_alias *buffer = NULL;
    CHECK_OK(quire_allocate(t->memory, &(quire_allocation_options){.size = 8 * KIB}, &range));
    CHECK_OK(quire_vulkan_export_fd(t->memory, range, OPAQUE, &t->b.descriptor));
    const quire_vulkan_import import = {
        .type = OPAQUE, .descriptor = t->b.descriptor, .size = 256 * KIB};
    CHECK_OK(quire_vulkan_import_range(t->memory, &import, &imported));
    t->b.descriptor = -1;
    CHECK_OK(quire_vulkan_alias_buffer_create(t->memory, imported, &BUFFER, NULL, &buffer));
    CHECK_OK(quire_vulkan_alias_destroy(&buffer));
}

/* ---- what the device supports ---------------------------------------------------------------- */

CASE(a_range_is_not_exported_where_only_objects_can_be, begin(t, FV_DEDICATED_ONLY, 0))
{
    quire_allocation range;
    quire_buffer buffer;
    CHECK_FAILS(quire_allocate(t->memory, &(quire_allocation_options){.size = 1}, &range),
                UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "only from memory that is dedicated");
    CHECK_FAILS(quire_memory_preallocate(t->memory, 1), UNSUPPORTED);
    CHECK_EQ(fv_calls(t->b.driver, "vkAllocateMemory"), 0);
    CHECK_OK(quire_vulkan_buffer_create(t->memory, &BUFFER, NULL, &buffer));
    CHECK_OK(quire_vulkan_export_fd(t->memory, buffer.allocation, OPAQUE, &t->b.descriptor));
}

UNIT(vulkan_handle_type, unknown_types_and_types_that_do_not_go_together_are_refused)
{
    static const VkExternalMemoryHandleTypeFlags types[] = {
        VK_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP_BIT, OPAQUE | DMA_BUF};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        bench t;
        quire_allocation range;
        quire_buffer buffer;
        quire_image image;
        begin(&t, 0, types[i]);
        CHECK_FAILS(quire_allocate(t.memory, &(quire_allocation_options){.size = 1}, &range),
                    UNSUPPORTED);
        CHECK_FAILS(quire_vulkan_buffer_create(t.memory, &BUFFER, NULL, &buffer), UNSUPPORTED);
        CHECK_FAILS(quire_vulkan_image_create(t.memory, &IMAGE, NULL, &image), UNSUPPORTED);
        CHECK_EQ(fv_calls(t.b.driver, "vkAllocateMemory"), 0);
        CHECK_EQ(fv_live(t.b.driver, FV_BUFFER) + fv_live(t.b.driver, FV_IMAGE), 0);
        vulkan_bench_end(&t.b);
    }
}

/* ---- imports that are dedicated to an object ------------------------------------------------- */

/* Exports a buffer of a page of its own, and creates the same buffer for the import. Returns its
   size. */
static uint64_t export_buffer(bench *t, VkBuffer *twin)
{
    const VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, .handleTypes = OPAQUE};
    VkBufferCreateInfo info = BUFFER;
    VkMemoryRequirements needs;
    quire_buffer buffer;
    info.pNext = &external;
    CHECK_OK(quire_vulkan_buffer_create(t->memory, &info, NULL, &buffer));
    CHECK_OK(quire_vulkan_export_fd(t->memory, buffer.allocation, OPAQUE, &t->b.descriptor));
    CHECK_EQ(CALL(t, vkCreateBuffer)(t->handles.device, &info, NULL, twin), 0);
    CALL(t, vkGetBufferMemoryRequirements)(t->handles.device, *twin, &needs);
    return needs.size;
}

CASE(an_import_is_dedicated_to_the_object_of_the_caller, begin(t, FV_DEDICATED_ONLY, 0))
{
    VkBuffer twin;
    quire_allocation range;
    quire_vulkan_range place;
    quire_vulkan_alias *alias = NULL;
    fv_memory_info page;
    quire_vulkan_import import = {.type = OPAQUE, .size = export_buffer(t, &twin)};
    import.descriptor = t->b.descriptor;
    CHECK_FAILS(quire_vulkan_import_range(t->memory, &import, &range), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "see quire_vulkan_import.buffer");
    import.buffer = twin;
    CHECK_OK(quire_vulkan_import_range(t->memory, &import, &range));
    t->b.descriptor = -1;
    CHECK_OK(quire_vulkan_get_range(t->memory, range, &place));
    CHECK_EQ(place.memory_offset, 0);
    CHECK(fv_memory_of(t->b.driver, place.memory, &page));
    CHECK(page.dedicated && page.imported);
    CHECK_EQ(CALL(t, vkBindBufferMemory)(t->handles.device, twin, place.memory, 0), 0);
    CHECK_FAILS(quire_vulkan_alias_buffer_create(t->memory, range, &BUFFER, NULL, &alias),
                UNSUPPORTED);
    CHECK_FAILS(quire_write(t->memory, range, 0, "byte", 4), UNSUPPORTED);
    CALL(t, vkDestroyBuffer)(t->handles.device, twin, NULL);
}

CASE(a_dedicated_import_has_the_size_and_kind_of_its_object, begin(t, FV_FEW_TYPES, 0))
{
    VkBuffer twin;
    VkImage image;
    quire_allocation range;
    uint32_t mask = 0, all = 0;
    const uint64_t size = export_buffer(t, &twin);
    CHECK_EQ(CALL(t, vkCreateImage)(t->handles.device, &IMAGE, NULL, &image), 0);
    quire_vulkan_import import = {
        .type = OPAQUE, .descriptor = t->b.descriptor, .size = size, .buffer = twin};
    import.image = image;
    CHECK_FAILS(quire_vulkan_import_range(t->memory, &import, &range), INVALID);
    import.image = VK_NULL_HANDLE;
    import.size = size + 1;
    CHECK_FAILS(quire_vulkan_import_range(t->memory, &import, &range), INVALID);
    CHECK_HAS(quire_last_error(), "dedicated to needs");
    import.size = size;
    CHECK_OK(quire_vulkan_import_kinds(t->b.device, &import, &mask));
    import.buffer = VK_NULL_HANDLE;
    CHECK_OK(quire_vulkan_import_kinds(t->b.device, &import, &all));
    CHECK(mask && mask != all && !(mask & ~all));
    import.unused[0] = 1;
    CHECK_FAILS(quire_vulkan_import_range(t->memory, &import, &range), INVALID);
    CHECK_EQ(range.id, 0);
    CALL(t, vkDestroyBuffer)(t->handles.device, twin, NULL);
    CALL(t, vkDestroyImage)(t->handles.device, image, NULL);
}
