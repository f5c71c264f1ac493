/*
 * vulkan_place.c - where objects of create infos are placed: options that restrict the pages of one
 * object.
 */
#include "quire/vulkan_sparse.h"
#include "tests/support/unit.h"
#include "tests/support/vulkan_bench.h"

#define KIB UINT64_C(1024)
#define NO_ROOM QUIRE_ERROR_OUT_OF_DEVICE_MEMORY

static const VkBufferCreateInfo BUFFER = {
    .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
    .size = 64 * KIB,
    .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
             VK_BUFFER_USAGE_TRANSFER_DST_BIT,
};
static const VkImageCreateInfo IMAGE = {
    .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
    .imageType = VK_IMAGE_TYPE_2D,
    .format = VK_FORMAT_R8G8B8A8_UNORM,
    .extent = {64, 64, 1},
    .mipLevels = 1,
    .arrayLayers = 1,
    .samples = VK_SAMPLE_COUNT_1_BIT,
    .usage = VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT,
};

static quire_memory *begin(vulkan_bench *b, const char *layout, uint32_t flags)
{
    vulkan_bench_begin(b, layout, flags);
    CHECK(vulkan_bench_open(b, NULL));
    quire_memory *memory =
        vulkan_bench_memory(b, &(quire_memory_options){.flags = QUIRE_DEVICE_LOCAL});
    fv_reset_counters(b->driver);
    return memory;
}

static uint64_t pages_made(vulkan_bench *b)
{
    return fv_calls(b->driver, "vkAllocateMemory");
}

/* ---- existing pages ------------------------------------------------------------------------- */

UNIT(vulkan_place, objects_take_only_existing_pages_on_request)
{
    vulkan_bench b;
    quire_buffer buffer;
    quire_image image;
    quire_memory *memory = begin(&b, NULL, 0), *own = NULL;
    const quire_vulkan_object_options options = {.existing_pages = true};
    CHECK_FAILS(quire_vulkan_buffer_create(memory, &BUFFER, &options, &buffer), NO_ROOM);
    CHECK_FAILS(quire_vulkan_image_create(memory, &IMAGE, &options, &image), NO_ROOM);
    CHECK_HAS(quire_last_error(), "existing_pages is set");
    CHECK_FAILS(quire_vulkan_device_buffer_create(b.device, NULL, &BUFFER, &options, &own, &buffer),
                NO_ROOM);
    CHECK(own == NULL);
    b.has_defaults = true;
    CHECK_EQ(pages_made(&b), 0);
    CHECK_OK(quire_memory_preallocate(memory, 1));
    CHECK_OK(quire_vulkan_buffer_create(memory, &BUFFER, &options, &buffer));
    CHECK_OK(quire_vulkan_image_create(memory, &IMAGE, &options, &image));
    CHECK_EQ(pages_made(&b), 1);
    vulkan_bench_end(&b);
}

UNIT(vulkan_place, an_object_that_requires_a_page_is_refused_an_existing_one)
{
    vulkan_bench b;
    quire_buffer buffer;
    quire_memory *memory = begin(&b, NULL, FV_REQUIRE_DEDICATED | FV_DEDICATED_BUFFERS);
    CHECK_OK(quire_memory_preallocate(memory, 1));
    CHECK_FAILS(quire_vulkan_buffer_create(memory, &BUFFER,
                                           &(quire_vulkan_object_options){.existing_pages = true},
                                           &buffer),
                NO_ROOM);
    CHECK_EQ(pages_made(&b), 1);
    CHECK_EQ(fv_live(b.driver, FV_BUFFER), 0);
    vulkan_bench_end(&b);
}

/* The parts become smaller until they fit into the free ranges. */
UNIT(vulkan_place, the_parts_of_a_sparse_object_take_only_existing_pages_on_request)
{
    vulkan_bench b;
    quire_allocation filler;
    quire_vulkan_sparse *sparse = NULL;
    VkBufferCreateInfo info = BUFFER;
    const quire_vulkan_object_options options = {.existing_pages = true};
    info.flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT;
    info.size = 512 * KIB;
    quire_memory *memory = begin(&b, NULL, 0);
    CHECK_FAILS(quire_vulkan_sparse_buffer_create(memory, &info, &options, &sparse), NO_ROOM);
    CHECK_OK(quire_memory_preallocate(memory, 1));
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 256 * KIB}, &filler));
    CHECK_OK(quire_vulkan_sparse_buffer_create(memory, &info, &options, &sparse));
    CHECK_EQ(pages_made(&b), 1);
    vulkan_bench_end(&b);
}

/* ---- budgets -------------------------------------------------------------------------------- */

UNIT(vulkan_place, objects_stay_within_the_budget_on_request)
{
    vulkan_bench b;
    quire_buffer buffer;
    quire_image image;
    quire_vulkan_sparse *sparse = NULL;
    VkBufferCreateInfo info = BUFFER;
    const quire_vulkan_object_options options = {.within_budget = true};
    info.flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT;
    quire_memory *memory = begin(&b, NULL, 0);
    quire_memory_info memory_info;
    quire_device_info device_info;
    CHECK_OK(quire_memory_get_info(memory, &memory_info));
    CHECK_OK(quire_device_get_info(b.device, &device_info));
    fv_set_budget(b.driver, 0, device_info.kinds[memory_info.kind].heap, 1, 0);
    CHECK_FAILS(quire_vulkan_buffer_create(memory, &BUFFER, &options, &buffer),
                QUIRE_ERROR_OVER_BUDGET);
    CHECK_FAILS(quire_vulkan_image_create(memory, &IMAGE, &options, &image),
                QUIRE_ERROR_OVER_BUDGET);
    CHECK_FAILS(quire_vulkan_sparse_buffer_create(memory, &info, &options, &sparse),
                QUIRE_ERROR_OVER_BUDGET);
    CHECK_EQ(pages_made(&b), 0);
    CHECK_OK(quire_vulkan_buffer_create(memory, &BUFFER, NULL, &buffer));
    CHECK_EQ(pages_made(&b), 1);
    vulkan_bench_end(&b);
}
