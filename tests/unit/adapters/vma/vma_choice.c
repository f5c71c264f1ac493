/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_choice.c - the flags that each usage of VMA wishes, and the memory type that they choose.
 * tests/plain/vma_compare.c compares the choices with those of VMA itself.
 */
#include "src/adapters/vma/choice.h"

#include "tests/support/unit.h"
#include "tests/support/vma_fixture.h"

#define DL VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
#define HV VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT
#define CO VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
#define CA VK_MEMORY_PROPERTY_HOST_CACHED_BIT
#define LAZY VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT
#define AMD_CO VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD
#define AMD_UN VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD

#define WRITE VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT
#define RANDOM VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT
#define INSTEAD VMA_ALLOCATION_CREATE_HOST_ACCESS_ALLOW_TRANSFER_INSTEAD_BIT
#define MAPPED VMA_ALLOCATION_CREATE_MAPPED_BIT
#define DEDICATED VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT
#define NEVER VMA_ALLOCATION_CREATE_NEVER_ALLOCATE_BIT

#define AUTO VMA_MEMORY_USAGE_AUTO
#define AUTO_DEVICE VMA_MEMORY_USAGE_AUTO_PREFER_DEVICE
#define AUTO_HOST VMA_MEMORY_USAGE_AUTO_PREFER_HOST

#define ON_DEVICE QI_VMA_ACCESS_DEVICE
#define COPIED QI_VMA_ACCESS_TRANSFER
#define UNKNOWN QI_VMA_ACCESS_UNKNOWN

/* ---- access --------------------------------------------------------------------------------- */

UNIT(vma_choice, usage_tells_who_accesses)
{
    const VkBufferUsageFlags copies =
        VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    VkBufferCreateInfo buffer = {.usage = 0};
    CHECK_EQ(qi_vma_access_of_buffer(&buffer, false), UNKNOWN);
    buffer.usage = copies;
    CHECK_EQ(qi_vma_access_of_buffer(&buffer, false), COPIED);
    buffer.usage = copies | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT;
    CHECK_EQ(qi_vma_access_of_buffer(&buffer, false), ON_DEVICE);

    VkImageCreateInfo image = {.usage = 0};
    CHECK_EQ(qi_vma_access_of_image(&image), UNKNOWN);
    image.usage = VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT;
    CHECK_EQ(qi_vma_access_of_image(&image), COPIED);
    image.usage |= VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT;
    CHECK_EQ(qi_vma_access_of_image(&image), ON_DEVICE);
}

/* With maintenance5 the usage of the chain replaces that of the create info, also if it is 0. */
UNIT(vma_choice, usage_of_the_chain_counts_with_maintenance5)
{
    /* VkBufferUsageFlags2CreateInfo, which older headers lack */
    struct {
        VkStructureType sType;
        const void *pNext;
        uint64_t usage;
    } wide = {.sType = (VkStructureType)1000470006, .usage = UINT64_C(1) << 40};
    const VkExternalMemoryBufferCreateInfo first = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, .pNext = &wide};
    const VkBufferCreateInfo buffer = {.pNext = &first, .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT};
    CHECK_EQ(qi_vma_access_of_buffer(&buffer, true), ON_DEVICE);
    CHECK_EQ(qi_vma_access_of_buffer(&buffer, false), COPIED);
    wide.usage = 0;
    CHECK_EQ(qi_vma_access_of_buffer(&buffer, true), UNKNOWN);
}

/* ---- wish ----------------------------------------------------------------------------------- */

static qi_vma_wish wish_of(const VmaAllocationCreateInfo *options, qi_vma_access access,
                           bool is_integrated)
{
    qi_vma_wish wish = {.required = 99, .preferred = 99, .avoided = 99};
    CHECK_EQ(qi_vma_wish_of(options, access, is_integrated, &wish), VK_SUCCESS);
    return wish;
}

enum { ANY_GPU, DISCRETE, INTEGRATED };

/* AMD's uncached memory, which each of these wishes avoids, is left out. */
static const struct {
    VmaMemoryUsage usage;
    VmaAllocationCreateFlags flags;
    qi_vma_access access;
    int gpu;
    qi_vma_wish wish;
} wishes[] = {
    {VMA_MEMORY_USAGE_UNKNOWN, 0, UNKNOWN, ANY_GPU, {.required = 0}},
    {VMA_MEMORY_USAGE_UNKNOWN, WRITE, ON_DEVICE, ANY_GPU, {.required = 0}},
    {VMA_MEMORY_USAGE_GPU_ONLY, 0, UNKNOWN, ANY_GPU, {.preferred = DL}},
    {VMA_MEMORY_USAGE_GPU_ONLY, RANDOM, COPIED, ANY_GPU, {.preferred = DL}},
    {VMA_MEMORY_USAGE_CPU_ONLY, 0, UNKNOWN, ANY_GPU, {.required = HV | CO}},
    {VMA_MEMORY_USAGE_CPU_TO_GPU, 0, UNKNOWN, ANY_GPU, {.required = HV, .preferred = DL}},
    {VMA_MEMORY_USAGE_GPU_TO_CPU, 0, UNKNOWN, ANY_GPU, {.required = HV, .preferred = CA}},
    {VMA_MEMORY_USAGE_CPU_COPY, 0, UNKNOWN, ANY_GPU, {.avoided = DL}},
    {VMA_MEMORY_USAGE_GPU_LAZILY_ALLOCATED, 0, UNKNOWN, ANY_GPU, {.required = LAZY}},
    {AUTO, 0, ON_DEVICE, ANY_GPU, {.preferred = DL}},
    {AUTO, 0, COPIED, ANY_GPU, {.preferred = DL}},
    {AUTO_DEVICE, 0, ON_DEVICE, ANY_GPU, {.preferred = DL}},
    {AUTO_DEVICE, 0, COPIED, ANY_GPU, {.preferred = DL}},
    {AUTO_HOST, 0, ON_DEVICE, ANY_GPU, {.avoided = DL}},
    {AUTO_HOST, 0, COPIED, ANY_GPU, {.avoided = DL}},
    {AUTO, WRITE, ON_DEVICE, ANY_GPU, {.required = HV, .preferred = DL, .avoided = CA}},
    {AUTO, WRITE, COPIED, ANY_GPU, {.required = HV, .avoided = CA | DL}},
    {AUTO_DEVICE, WRITE, ON_DEVICE, ANY_GPU, {.required = HV, .preferred = DL, .avoided = CA}},
    {AUTO_DEVICE, WRITE, COPIED, ANY_GPU, {.required = HV, .preferred = DL, .avoided = CA}},
    {AUTO_HOST, WRITE, ON_DEVICE, ANY_GPU, {.required = HV, .avoided = CA | DL}},
    {AUTO_HOST, WRITE, COPIED, ANY_GPU, {.required = HV, .avoided = CA | DL}},
    {AUTO, RANDOM, ON_DEVICE, ANY_GPU, {.required = HV, .preferred = CA}},
    {AUTO, RANDOM, COPIED, ANY_GPU, {.required = HV, .preferred = CA}},
    {AUTO_DEVICE, RANDOM, ON_DEVICE, ANY_GPU, {.required = HV, .preferred = CA}},
    {AUTO_HOST, RANDOM, ON_DEVICE, ANY_GPU, {.required = HV, .preferred = CA}},
    /* which a search accepts: random access includes writes */
    {AUTO, RANDOM | WRITE, ON_DEVICE, ANY_GPU, {.required = HV, .preferred = CA}},
    /* a copy cannot replace these */
    {AUTO, WRITE | INSTEAD, COPIED, ANY_GPU, {.required = HV, .avoided = CA | DL}},
    {AUTO_DEVICE,
     WRITE | INSTEAD,
     COPIED,
     ANY_GPU,
     {.required = HV, .preferred = DL, .avoided = CA}},
    {AUTO_HOST, WRITE | INSTEAD, ON_DEVICE, ANY_GPU, {.required = HV, .avoided = CA | DL}},
    {AUTO, RANDOM | INSTEAD, COPIED, ANY_GPU, {.required = HV, .preferred = CA}},
    {AUTO_DEVICE, RANDOM | INSTEAD, COPIED, ANY_GPU, {.required = HV, .preferred = CA}},
    {AUTO_HOST, RANDOM | INSTEAD, ON_DEVICE, ANY_GPU, {.required = HV, .preferred = CA}},
    /* a discrete GPU may give memory that the host cannot map */
    {AUTO, WRITE | INSTEAD, ON_DEVICE, DISCRETE, {.preferred = HV | DL, .avoided = CA}},
    {AUTO_DEVICE, WRITE | INSTEAD, ON_DEVICE, DISCRETE, {.preferred = HV | DL, .avoided = CA}},
    {AUTO, RANDOM | INSTEAD, ON_DEVICE, DISCRETE, {.preferred = CA | DL}},
    {AUTO_DEVICE, RANDOM | INSTEAD, ON_DEVICE, DISCRETE, {.preferred = CA | DL}},
    {AUTO,
     WRITE | INSTEAD,
     ON_DEVICE,
     INTEGRATED,
     {.required = HV, .preferred = DL, .avoided = CA}},
    {AUTO, RANDOM | INSTEAD, ON_DEVICE, INTEGRATED, {.required = HV, .preferred = CA}},
};

UNIT(vma_choice, each_usage_has_its_wish)
{
    for (uint32_t i = 0; i < sizeof wishes / sizeof *wishes; i++)
        for (int gpu = DISCRETE; gpu <= INTEGRATED; gpu++) {
            const VmaAllocationCreateInfo options = {.usage = wishes[i].usage,
                                                     .flags = wishes[i].flags};
            if (wishes[i].gpu != ANY_GPU && wishes[i].gpu != gpu)
                continue;
            unit_note("row", i);
            qi_vma_wish wish = wish_of(&options, wishes[i].access, gpu == INTEGRATED);
            CHECK_EQ(wish.required, wishes[i].wish.required);
            CHECK_EQ(wish.preferred, wishes[i].wish.preferred);
            CHECK_EQ(wish.avoided, wishes[i].wish.avoided | AMD_UN);
        }
}

/* Only preferred visible memory replaces device-local memory, and only on an integrated GPU. */
UNIT(vma_choice, preferred_visible_memory_on_an_integrated_gpu)
{
    const VmaMemoryUsage usages[] = {VMA_MEMORY_USAGE_GPU_ONLY, VMA_MEMORY_USAGE_CPU_TO_GPU};
    for (size_t i = 0; i < 2; i++) {
        VmaAllocationCreateInfo options = {.usage = usages[i], .preferredFlags = HV};
        CHECK_EQ(wish_of(&options, UNKNOWN, false).preferred, HV | DL);
        CHECK_EQ(wish_of(&options, UNKNOWN, true).preferred, HV);
        options.preferredFlags = CA;
        CHECK_EQ(wish_of(&options, UNKNOWN, true).preferred, CA | DL);
        options.preferredFlags = HV | DL;
        CHECK_EQ(wish_of(&options, UNKNOWN, true).preferred, HV | DL);
    }
    const VmaAllocationCreateInfo readback = {.usage = VMA_MEMORY_USAGE_GPU_TO_CPU,
                                              .preferredFlags = HV};
    CHECK_EQ(wish_of(&readback, UNKNOWN, true).preferred, HV | CA);
}

UNIT(vma_choice, flags_of_the_options_join_those_of_the_usage)
{
    const VmaAllocationCreateInfo options = {
        .usage = VMA_MEMORY_USAGE_CPU_TO_GPU, .requiredFlags = CO, .preferredFlags = CA};
    qi_vma_wish wish = wish_of(&options, UNKNOWN, false);
    CHECK_EQ(wish.required, HV | CO);
    CHECK_EQ(wish.preferred, DL | CA);
}

/* Uncached memory of AMD is avoided until the options name a flag of AMD. */
UNIT(vma_choice, uncached_memory_is_avoided)
{
    const VkMemoryPropertyFlags flags[] = {AMD_CO, AMD_UN};
    for (size_t i = 0; i < 2; i++) {
        const VmaAllocationCreateInfo required = {.requiredFlags = flags[i]};
        const VmaAllocationCreateInfo preferred = {.preferredFlags = flags[i]};
        CHECK_EQ(wish_of(&required, UNKNOWN, false).avoided, 0);
        CHECK_EQ(wish_of(&preferred, UNKNOWN, false).avoided, 0);
    }
    const VmaAllocationCreateInfo other = {.requiredFlags = DL, .preferredFlags = HV};
    CHECK_EQ(wish_of(&other, UNKNOWN, false).avoided, AMD_UN);
}

/* ---- choice --------------------------------------------------------------------------------- */

static const VkPhysicalDeviceMemoryProperties TYPES = {
    .memoryTypeCount = 5,
    .memoryTypes = {{.propertyFlags = 0},
                    {.propertyFlags = DL},
                    {.propertyFlags = HV | CO},
                    {.propertyFlags = HV | CO | CA},
                    {.propertyFlags = DL | HV | CO}},
};

enum { NONE = -1 };

static void expect(int type, uint32_t mask, qi_vma_wish wish)
{
    uint32_t chosen = 99;
    CHECK_EQ(qi_vma_choose(&TYPES, &wish, mask, &chosen), type != NONE);
    CHECK_EQ(chosen, type == NONE ? 99 : (uint32_t)type);
}

UNIT(vma_choice, fewest_missing_and_avoided_flags_win)
{
    expect(0, 31, (qi_vma_wish){.required = 0});
    expect(1, 31, (qi_vma_wish){.preferred = DL});
    expect(4, 31, (qi_vma_wish){.preferred = DL | HV});
    expect(4, 31, (qi_vma_wish){.required = HV, .preferred = DL});
    expect(3, 31, (qi_vma_wish){.required = HV, .preferred = CA});
    expect(2, 31, (qi_vma_wish){.required = HV, .avoided = DL | CA});
    expect(0, 31, (qi_vma_wish){.avoided = DL});
    /* Two preferred flags outweigh one that is avoided. */
    expect(3, 31, (qi_vma_wish){.preferred = HV | CO, .avoided = DL | CA, .required = CA});
    expect(4, 31, (qi_vma_wish){.preferred = HV | CO, .avoided = DL, .required = DL});
}

UNIT(vma_choice, only_types_of_the_mask_that_exist)
{
    expect(2, 4, (qi_vma_wish){.preferred = DL});
    expect(NONE, 0, (qi_vma_wish){.required = 0});
    expect(NONE, 4, (qi_vma_wish){.required = DL});
    expect(NONE, 31, (qi_vma_wish){.required = LAZY});
    expect(NONE, UINT32_C(1) << 5, (qi_vma_wish){.required = 0});
    expect(NONE, UINT32_C(1) << 31, (qi_vma_wish){.required = 0});
}

/* ---- misuse --------------------------------------------------------------------------------- */

UNIT(vma_choice, auto_needs_an_object)
{
    const VmaMemoryUsage usages[] = {AUTO, AUTO_DEVICE, AUTO_HOST};
    for (size_t i = 0; i < 3; i++) {
        const VmaAllocationCreateInfo options = {.usage = usages[i]};
        qi_vma_wish wish = {.required = 99};
        CHECK_EQ(qi_vma_wish_of(&options, UNKNOWN, false, &wish), MISSING);
        CHECK_EQ(wish.required, 99);
        CHECK_HAS(quire_last_error(), "AUTO usage needs the usage of a buffer or an image");
    }
}

UNIT(vma_choice, unknown_usages)
{
    const int usages[] = {10, 1000, 0x7FFFFFFF, -1};
    for (size_t i = 0; i < 4; i++) {
        const VmaAllocationCreateInfo options = {.usage = (VmaMemoryUsage)usages[i]};
        qi_vma_wish wish = {.required = 99};
        CHECK_EQ(qi_vma_wish_of(&options, ON_DEVICE, false, &wish), INVALID);
        CHECK_EQ(wish.required, 99);
        CHECK_HAS(quire_last_error(), "does not exist");
    }
}

static void expect_check(VmaMemoryUsage usage, VmaAllocationCreateFlags flags, VkResult result,
                         const char *sentence)
{
    const VmaAllocationCreateInfo options = {.usage = usage, .flags = flags};
    CHECK_EQ(qi_vma_check_options(&options), result);
    if (result)
        CHECK_HAS(quire_last_error(), sentence);
}

UNIT(vma_choice, contradicting_flags)
{
    const VkResult invalid = INVALID;
    const VkResult missing = MISSING;
    const VmaMemoryUsage lazy = VMA_MEMORY_USAGE_GPU_LAZILY_ALLOCATED;
    expect_check(AUTO, WRITE | RANDOM, invalid, "both HOST_ACCESS_SEQUENTIAL_WRITE and");
    expect_check(VMA_MEMORY_USAGE_UNKNOWN, WRITE | RANDOM, invalid, "both");
    expect_check(AUTO, INSTEAD, invalid, "HOST_ACCESS_ALLOW_TRANSFER_INSTEAD needs");
    expect_check(VMA_MEMORY_USAGE_CPU_ONLY, INSTEAD, invalid, "needs");
    expect_check(AUTO, MAPPED, invalid, "MAPPED with an AUTO usage needs");
    expect_check(AUTO_DEVICE, MAPPED, invalid, "MAPPED with an AUTO usage needs");
    expect_check(AUTO_HOST, MAPPED, invalid, "MAPPED with an AUTO usage needs");
    expect_check(AUTO, DEDICATED | NEVER, missing, "NEVER_ALLOCATE contradicts DEDICATED_MEMORY");
    expect_check(lazy, NEVER, missing, "NEVER_ALLOCATE contradicts GPU_LAZILY_ALLOCATED");
}

UNIT(vma_choice, flags_without_contradiction)
{
    expect_check(AUTO, 0, VK_SUCCESS, NULL);
    expect_check(AUTO, MAPPED | WRITE, VK_SUCCESS, NULL);
    expect_check(AUTO, MAPPED | RANDOM | INSTEAD, VK_SUCCESS, NULL);
    expect_check(AUTO, WRITE | INSTEAD | DEDICATED, VK_SUCCESS, NULL);
    expect_check(AUTO, NEVER, VK_SUCCESS, NULL);
    expect_check(VMA_MEMORY_USAGE_CPU_ONLY, MAPPED, VK_SUCCESS, NULL);
    expect_check(VMA_MEMORY_USAGE_GPU_LAZILY_ALLOCATED, DEDICATED, VK_SUCCESS, NULL);
}

/* ---- what the choice means for the memory ---------------------------------------------------- */

UNIT(vma_choice, lazily_allocated_memory_is_dedicated)
{
    VmaAllocationCreateInfo options = {.usage = VMA_MEMORY_USAGE_GPU_LAZILY_ALLOCATED};
    CHECK(qi_vma_is_dedicated(&options));
    options.usage = AUTO;
    CHECK(!qi_vma_is_dedicated(&options));
    options.flags = DEDICATED;
    CHECK(qi_vma_is_dedicated(&options));

    vma_fixture v;
    vma_fixture_open(&v, "mobile-lazy", 0);
    VkImageCreateInfo info = vma_fixture_image_info(64, VK_IMAGE_TILING_OPTIMAL);
    info.usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSIENT_ATTACHMENT_BIT;
    options = (VmaAllocationCreateInfo){.usage = VMA_MEMORY_USAGE_GPU_LAZILY_ALLOCATED};
    VkImage image;
    VmaAllocation allocation;
    VmaAllocationInfo2 described;
    CHECK_VK(vmaCreateImage(v.allocator, &info, &options, &image, &allocation, NULL));
    vmaGetAllocationInfo2(v.allocator, allocation, &described);
    CHECK(described.dedicatedMemory);
    CHECK_EQ(described.allocationInfo.memoryType, fv_fixture_type(&v.vulkan, DL | LAZY));
    vmaDestroyImage(v.allocator, image, allocation);
    vma_fixture_close(&v);
}

/* Only where the mask leaves nothing else. */
UNIT(vma_choice, protected_memory_can_be_allocated)
{
    vma_fixture v;
    vma_fixture_open(&v, "mobile-lazy", 0);
    uint32_t guarded = fv_fixture_type(&v.vulkan, DL | VK_MEMORY_PROPERTY_PROTECTED_BIT);
    const VkMemoryRequirements needs = {
        .size = 4096, .alignment = 256, .memoryTypeBits = UINT32_C(1) << guarded};
    const VmaAllocationCreateInfo options = {.usage = VMA_MEMORY_USAGE_UNKNOWN};
    VmaAllocation allocation;
    VmaAllocationInfo info;
    CHECK_VK(vmaAllocateMemory(v.allocator, &needs, &options, &allocation, &info));
    CHECK_EQ(info.memoryType, guarded);
    vmaFreeMemory(v.allocator, allocation);
    vma_fixture_close(&v);
}
