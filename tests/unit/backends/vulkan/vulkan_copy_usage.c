/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_copy_usage.c - the usage of the buffers that copies go through on the fake Vulkan driver,
 * which reports every copy with a buffer that was created without the transfer usage. The results
 * do not depend on whether the driver prefers dedicated memory.
 */
#include "tests/support/unit.h"
#include "tests/support/vulkan_bench.h"
#include "tests/support/vulkan_native.h"

#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED
#define STORAGE VK_BUFFER_USAGE_STORAGE_BUFFER_BIT
#define SOURCE VK_BUFFER_USAGE_TRANSFER_SRC_BIT
#define TARGET VK_BUFFER_USAGE_TRANSFER_DST_BIT

static const quire_memory_options LOCAL = {.kind.required = QUIRE_DEVICE_LOCAL,
                                           .pages = {.page_size = 64 * 1024}};

static const uint32_t PREFERENCES[] = {0, FV_PREFER_DEDICATED | FV_DEDICATED_BUFFERS,
                                       FV_REQUIRE_DEDICATED | FV_DEDICATED_BUFFERS};
enum { PREFERENCE_COUNT = 3, REQUIRES = 2 };

static quire_memory *begin(vulkan_bench *b, uint32_t flags, VkBufferUsageFlags page_usage)
{
    vulkan_bench_begin(b, "nvidia-11", flags);
    CHECK(vulkan_bench_open(b, &(quire_vulkan_settings){.page_usage = page_usage}));
    quire_memory *memory = vulkan_bench_memory(b, &LOCAL);
    CHECK(memory != NULL);
    return memory;
}

/* Writes, fills, reads, and copies to another buffer, all on the device. */
static void use(quire_memory *memory, quire_allocation a)
{
    char in[128], out[128] = {0};
    quire_buffer buffer;
    memset(in, 'x', sizeof in);
    CHECK_OK(quire_buffer_create(memory, &(quire_buffer_options){.size = 128}, &buffer));
    quire_allocation other = buffer.allocation;
    CHECK_OK(quire_write(memory, a, 0, in, sizeof in));
    CHECK_OK(quire_copy(&(quire_copy_options){.to = {.memory = memory, .allocation = other},
                                              .from = {.memory = memory, .allocation = a},
                                              .size = sizeof in},
                        NULL));
    CHECK_OK(quire_read(memory, other, 0, out, sizeof out));
    CHECK(!memcmp(in, out, sizeof in));
    CHECK_OK(quire_fill(memory, a, &(quire_fill_options){.size = 64, .value = 'y'}, NULL));
    CHECK_OK(quire_read(memory, a, 0, out, sizeof out));
    CHECK(out[0] == 'y' && out[64] == 'x');
    CHECK_OK(quire_free(memory, other));
}

VULKAN_UNIT_IN(vulkan_copy_usage, the_buffer_over_a_page_has_the_transfer_usages,
               begin(b, 0, STORAGE))
{
    quire_allocation a;
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 128}, &a));
    use(memory, a);
}

VULKAN_UNIT_EACH(vulkan_copy_usage, buffers_of_quire_can_be_copied_whatever_their_usage, i,
                 PREFERENCE_COUNT * 2)
{
    static const quire_usage usages[] = {QUIRE_USAGE_STORAGE,
                                         QUIRE_USAGE_STORAGE | QUIRE_USAGE_TRANSFER_SOURCE};
    quire_buffer buffer;
    quire_buffer_info info;
    quire_memory *memory = begin(b, PREFERENCES[i / 2], 0);
    CHECK_OK(quire_buffer_create(
        memory, &(quire_buffer_options){.size = 128, .usage = usages[i % 2], .zero = true},
        &buffer));
    CHECK_OK(quire_buffer_get_info(memory, buffer, &info));
    CHECK_EQ(info.place.dedicated, i / 2 > 0);
    CHECK_EQ(info.usage, usages[i % 2]);
    use(memory, buffer.allocation);
}

VULKAN_UNIT_EACH(vulkan_copy_usage, so_can_buffers_of_a_create_info, i, PREFERENCE_COUNT)
{
    const VkBufferCreateInfo info = VULKAN_BUFFER(128, STORAGE);
    quire_buffer buffer;
    quire_memory *memory = begin(b, PREFERENCES[i], 0);
    CHECK_OK(quire_vulkan_buffer_create(memory, &info, &(quire_vulkan_object_options){.zero = true},
                                        &buffer));
    use(memory, buffer.allocation);
}

/* VkBufferUsageFlags2CreateInfo, which older headers lack. */
typedef struct usage2 {
    VkStructureType sType;
    const void *pNext;
    uint64_t usage;
} usage2;

/* quire does not change the chain of a create info. */
VULKAN_UNIT_EACH(vulkan_copy_usage, a_usage_in_the_chain_stays_and_a_preference_is_not_followed, i,
                 PREFERENCE_COUNT)
{
    const usage2 wide = {.sType = (VkStructureType)1000470006, .usage = STORAGE};
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .pNext = &wide, .size = 128};
    quire_buffer buffer;
    quire_memory *memory = begin(b, PREFERENCES[i], 0);
    CHECK_OK(quire_vulkan_buffer_create(memory, &info, NULL, &buffer));
    if (i < REQUIRES)
        use(memory, buffer.allocation);
    else
        CHECK_FAILS(quire_write(memory, buffer.allocation, 0, "byte", 4), UNSUPPORTED);
}

/* Places a buffer of the caller's, whose create info is given or not, and tries a write and a read.
   Its size is no multiple of what it needs. */
static void place(VkBufferUsageFlags usage, bool is_known, int preference)
{
    const VkBufferCreateInfo info = VULKAN_BUFFER(126, usage);
    const VkBufferUsageFlags known = is_known ? usage : 0;
    const quire_vulkan_object_options options = {.create_info = is_known ? &info : NULL};
    const bool requires = preference == REQUIRES;
    char bytes[4] = {0};
    vulkan_bench b;
    VkBuffer native;
    quire_buffer buffer;
    quire_memory *memory = begin(&b, PREFERENCES[preference], 0);
    const quire_vulkan_handles h = vulkan_bench_handles(&b);
    PFN_vkCreateBuffer create = VULKAN_CALL(h, vkCreateBuffer);
    PFN_vkDestroyBuffer destroy = VULKAN_CALL(h, vkDestroyBuffer);
    CHECK_EQ(create(h.device, &info, NULL, &native), 0);
    CHECK_OK(quire_vulkan_buffer_place(memory, native, &options, &buffer));
    CHECK_EQ(quire_write(memory, buffer.allocation, 0, "byte", 4),
             requires && !(known & TARGET) ? UNSUPPORTED : QUIRE_SUCCESS);
    if (requires && !(known & TARGET))
        CHECK_HAS(quire_last_error(), "VK_BUFFER_USAGE_TRANSFER_DST_BIT");
    else
        CHECK_OK(quire_fill(memory, buffer.allocation, &(quire_fill_options){0}, NULL));
    CHECK_EQ(quire_read(memory, buffer.allocation, 0, bytes, 4),
             requires && !(known & SOURCE) ? UNSUPPORTED : QUIRE_SUCCESS);
    if (requires && !(known & SOURCE))
        CHECK_HAS(quire_last_error(), "VK_BUFFER_USAGE_TRANSFER_SRC_BIT");
    destroy(h.device, native, NULL);
    CHECK_OK(quire_free(memory, buffer.allocation));
    vulkan_bench_end(&b);
}

UNIT(vulkan_copy_usage, a_placed_buffer_is_copied_where_its_usage_is_known_or_not_needed)
{
    for (int i = 0; i < PREFERENCE_COUNT; i++) {
        place(STORAGE, false, i);
        place(STORAGE, true, i);
        place(STORAGE | TARGET, true, i);
        place(STORAGE | TARGET | SOURCE, true, i);
        place(STORAGE | TARGET | SOURCE, false, i);
    }
}

/* The page is larger than the buffer: a fill ends with the buffer. */
VULKAN_UNIT(vulkan_copy_usage, zeros_end_with_the_buffer_of_a_dedicated_page)
{
    const VkBufferCreateInfo info = VULKAN_BUFFER(126, STORAGE);
    quire_buffer buffer;
    quire_memory *memory = begin(b, PREFERENCES[REQUIRES] | FV_DIRTY, 0);
    CHECK_OK(quire_buffer_create(
        memory, &(quire_buffer_options){.size = 1001, .usage = QUIRE_USAGE_STORAGE, .zero = true},
        &buffer));
    CHECK_OK(quire_vulkan_buffer_create(memory, &info, &(quire_vulkan_object_options){.zero = true},
                                        &buffer));
}

/* The bytes of a linear image are copied through the buffer over its page. */
VULKAN_UNIT_IN(vulkan_copy_usage, a_linear_image_of_a_create_info_is_in_a_shared_page,
               begin(b, FV_PREFER_DEDICATED, 0))
{
    const VkImageCreateInfo info = {
        VULKAN_IMAGE_2D(VK_FORMAT_R8G8B8A8_UNORM, 16, 16, 1, 1),
        .tiling = VK_IMAGE_TILING_LINEAR,
        .usage = VK_IMAGE_USAGE_SAMPLED_BIT,
    };
    quire_image image;
    CHECK_OK(quire_vulkan_image_create(memory, &info, NULL, &image));
    use(memory, image.allocation);
}
