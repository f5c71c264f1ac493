/*
 * vulkan_layer.c - VK_LAYER_QUIRE_suballocate between a program and the fake driver, which checks every
 * call: what lies in pages, what is passed on, and that memory and offset are right everywhere.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "quire/trace.h"
#include "tests/support/mini_loader.h"
#include "tests/support/unit.h"
#include "tests/support/vulkan/fixture.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define VISIBLE_FLAGS (VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)
#define COPIES (VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT)

static void open_layout(fv_fixture *f, const fv_layout *layout, uint32_t flags)
{
    fv_fixture_open_over(f, &(fv_options){.layouts = {layout}, .flags = flags}, mini_loader_over);
}

static void open_named(fv_fixture *f, const char *layout)
{
    open_layout(f, fv_layout_named(layout), 0);
}

static uint64_t driver_allocations(fv_fixture *f)
{
    return fv_calls(f->driver, "vkAllocateMemory");
}

static VkDeviceMemory allocate(fv_fixture *f, uint64_t size, uint32_t type, const void *chain)
{
    const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                       .pNext = chain,
                                       .allocationSize = size,
                                       .memoryTypeIndex = type};
    VkDeviceMemory memory = VK_NULL_HANDLE;
    CHECK_VK(FV(f, vkAllocateMemory)(f->device, &info, NULL, &memory));
    return memory;
}

static void release(fv_fixture *f, VkDeviceMemory memory)
{
    FV(f, vkFreeMemory)(f->device, memory, NULL);
}

/* Whether the driver knows the handle: it was passed on. */
static bool is_passed(fv_fixture *f, VkDeviceMemory memory)
{
    fv_memory_info info;
    return fv_memory_of(f->driver, memory, &info);
}

/* A buffer with memory of its own, as the simplest of programs has them. */
typedef struct piece {
    VkBuffer buffer;
    VkDeviceMemory memory;
    uint64_t size, needed;
} piece;

static piece make_piece(fv_fixture *f, uint64_t size, uint32_t type)
{
    piece p = {.buffer = fv_fixture_buffer(f, size, COPIES), .size = size};
    VkMemoryRequirements needs = fv_fixture_needs(f, p.buffer);
    CHECK(needs.memoryTypeBits >> type & 1);
    p.needed = needs.size;
    p.memory = allocate(f, needs.size, type, NULL);
    CHECK_VK(FV(f, vkBindBufferMemory)(f->device, p.buffer, p.memory, 0));
    return p;
}

static void end_piece(fv_fixture *f, const piece *p)
{
    FV(f, vkDestroyBuffer)(f->device, p->buffer, NULL);
    release(f, p->memory);
}

/* Commands that are recorded by the caller between the two. */
static VkCommandBuffer begin_commands(fv_fixture *f, VkCommandPool *pool)
{
    VkCommandBuffer commands = NULL;
    const VkCommandPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    CHECK_VK(FV(f, vkCreateCommandPool)(f->device, &info, NULL, pool));
    const VkCommandBufferAllocateInfo allocate_info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = *pool,
        .commandBufferCount = 1};
    CHECK_VK(FV(f, vkAllocateCommandBuffers)(f->device, &allocate_info, &commands));
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    CHECK_VK(FV(f, vkBeginCommandBuffer)(commands, &begin));
    return commands;
}

static void run_commands(fv_fixture *f, VkCommandBuffer commands, VkCommandPool pool)
{
    CHECK_VK(FV(f, vkEndCommandBuffer)(commands));
    const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                 .commandBufferCount = 1,
                                 .pCommandBuffers = &commands};
    CHECK_VK(FV(f, vkQueueSubmit)(f->queue, 1, &submit, VK_NULL_HANDLE));
    CHECK_VK(FV(f, vkQueueWaitIdle)(f->queue));
    FV(f, vkDestroyCommandPool)(f->device, pool, NULL);
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* ---- in pages --------------------------------------------------------------------------------- */

UNIT(vulkan_layer, five_hundred_allocations_are_one_of_the_driver)
{
    enum { COUNT = 500 };
    fv_fixture f;
    piece pieces[COUNT];
    fv_place places[COUNT];
    uint64_t random = 1;
    open_named(&f, "amd-bar");
    for (int i = 0; i < COUNT; i++)
        pieces[i] = make_piece(&f, 1 + next_random(&random) % (40 * KIB), 0);
    CHECK_EQ(driver_allocations(&f), 1);
    for (int i = 0; i < COUNT; i++) {
        places[i] = fv_place_of(f.driver, (uint64_t)(uintptr_t)pieces[i].buffer);
        CHECK(places[i].memory != VK_NULL_HANDLE && places[i].memory != pieces[i].memory);
        for (int k = 0; k < i; k++)
            CHECK(places[i].offset + places[i].size <= places[k].offset ||
                  places[k].offset + places[k].size <= places[i].offset);
    }
    for (int i = 0; i < COUNT; i++)
        end_piece(&f, &pieces[i]);
    fv_fixture_close(&f);
}

/* Random bytes up, through the device, and down again, between memory of two types. */
static void round_trip(fv_fixture *f, uint32_t up, uint32_t down, uint64_t *random)
{
    enum { PAIRS = 6, MOST = 5000 };
    piece from[PAIRS], to[PAIRS];
    VkCommandPool pool;
    static unsigned char bytes[PAIRS][MOST];
    for (int i = 0; i < PAIRS; i++) {
        void *pointer = NULL;
        from[i] = make_piece(f, 4 * (1 + next_random(random) % (MOST / 4)), up);
        to[i] = make_piece(f, from[i].size, down);
        for (uint64_t k = 0; k < from[i].size; k++)
            bytes[i][k] = (unsigned char)next_random(random);
        CHECK_VK(FV(f, vkMapMemory)(f->device, from[i].memory, 0, VK_WHOLE_SIZE, 0, &pointer));
        memcpy(pointer, bytes[i], from[i].size);
        VkMappedMemoryRange range = {.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
                                     .memory = from[i].memory,
                                     .size = i & 1 ? VK_WHOLE_SIZE : from[i].needed};
        CHECK_VK(FV(f, vkFlushMappedMemoryRanges)(f->device, 1, &range));
    }
    VkCommandBuffer commands = begin_commands(f, &pool);
    for (int i = 0; i < PAIRS; i++)
        FV(f, vkCmdCopyBuffer)
        (commands, from[i].buffer, to[i].buffer, 1, &(VkBufferCopy){.size = from[i].size});
    run_commands(f, commands, pool);
    for (int i = 0; i < PAIRS; i++) {
        void *pointer = NULL;
        CHECK_VK(FV(f, vkMapMemory)(f->device, to[i].memory, 0, to[i].needed, 0, &pointer));
        VkMappedMemoryRange range = {.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
                                     .memory = to[i].memory,
                                     .size = i & 1 ? to[i].needed : VK_WHOLE_SIZE};
        CHECK_VK(FV(f, vkInvalidateMappedMemoryRanges)(f->device, 1, &range));
        CHECK(!memcmp(pointer, bytes[i], to[i].size));
        FV(f, vkUnmapMemory)(f->device, to[i].memory);
        end_piece(f, &from[i]); /* mapped: freed all the same */
        end_piece(f, &to[i]);
    }
}

/* Caches that nothing keeps coherent, odd sizes and large alignments: atoms and stretches matter. */
UNIT(vulkan_layer, bytes_come_and_go_on_every_layout)
{
    static const uint32_t FLAGS[] = {0, FV_STALE | FV_DIRTY | FV_ODD_SIZES,
                                     FV_STALE | FV_LARGE_ALIGNMENTS | FV_LATE};
    uint64_t random = 7;
    for (uint32_t i = 0; i < fv_layout_count; i++)
        for (size_t k = 0; k < sizeof FLAGS / sizeof *FLAGS; k++) {
            fv_fixture f;
            VkPhysicalDeviceMemoryProperties all;
            uint32_t previous = UINT32_MAX;
            open_layout(&f, &fv_layouts[i], FLAGS[k]);
            FV(&f, vkGetPhysicalDeviceMemoryProperties)(f.physical, &all);
            for (uint32_t type = 0; type < all.memoryTypeCount; type++) {
                VkMemoryPropertyFlags flags = all.memoryTypes[type].propertyFlags;
                if (!(flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) ||
                    flags & VK_MEMORY_PROPERTY_PROTECTED_BIT)
                    continue;
                round_trip(&f, type, previous == UINT32_MAX ? type : previous, &random);
                previous = type;
            }
            CHECK(driver_allocations(&f) <= all.memoryTypeCount);
            fv_fixture_close(&f);
        }
}

static VkImage make_image(fv_fixture *f, VkImageTiling tiling)
{
    VkImage image = VK_NULL_HANDLE;
    const VkImageCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
        .imageType = VK_IMAGE_TYPE_2D,
        .format = VK_FORMAT_R8G8B8A8_UNORM,
        .extent = {33, 17, 1},
        .mipLevels = 1,
        .arrayLayers = 1,
        .samples = VK_SAMPLE_COUNT_1_BIT,
        .tiling = tiling,
        .usage = VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT,
        .initialLayout = VK_IMAGE_LAYOUT_UNDEFINED,
    };
    CHECK_VK(FV(f, vkCreateImage)(f->device, &info, NULL, &image));
    return image;
}

/* Linear and optimal ones in turns: whatever lies beside them, the driver has nothing to say. */
UNIT(vulkan_layer, images_and_buffers_lie_beside_each_other_on_every_layout)
{
    enum { COUNT = 24 };
    for (uint32_t i = 0; i < fv_layout_count; i++) {
        fv_fixture f;
        VkImage images[COUNT];
        VkDeviceMemory memories[COUNT];
        piece pieces[COUNT];
        open_layout(&f, &fv_layouts[i], i & 1 ? FV_LARGE_ALIGNMENTS : FV_ODD_SIZES);
        for (int k = 0; k < COUNT; k++) {
            VkMemoryRequirements needs;
            images[k] = make_image(&f, k & 1 ? VK_IMAGE_TILING_LINEAR : VK_IMAGE_TILING_OPTIMAL);
            FV(&f, vkGetImageMemoryRequirements)(f.device, images[k], &needs);
            uint32_t type = (uint32_t)__builtin_ctz(needs.memoryTypeBits);
            memories[k] = allocate(&f, needs.size, type, NULL);
            const VkBindImageMemoryInfo bind = {.sType = VK_STRUCTURE_TYPE_BIND_IMAGE_MEMORY_INFO,
                                                .image = images[k],
                                                .memory = memories[k]};
            if (k % 3)
                CHECK_VK(FV(&f, vkBindImageMemory2)(f.device, 1, &bind));
            else
                CHECK_VK(FV(&f, vkBindImageMemory)(f.device, images[k], memories[k], 0));
            pieces[k] = make_piece(&f, 100 + (unsigned)k, type);
        }
        for (int k = 0; k < COUNT; k++) {
            FV(&f, vkDestroyImage)(f.device, images[k], NULL);
            release(&f, memories[k]);
            end_piece(&f, &pieces[k]);
        }
        fv_fixture_close(&f);
    }
}

/* One memory object that the program itself divides. */
UNIT(vulkan_layer, offsets_of_the_program_are_added_to_those_of_the_range)
{
    enum { PARTS = 40 };
    fv_fixture f;
    VkBuffer parts[PARTS];
    VkBindBufferMemoryInfo binds[PARTS];
    open_named(&f, "amd-bar");
    VkDeviceMemory first = allocate(&f, 100, 0, NULL);
    VkDeviceMemory memory = allocate(&f, PARTS * 4 * KIB, 0, NULL);
    for (unsigned i = 0; i < PARTS; i++) {
        parts[i] = fv_fixture_buffer(&f, KIB, COPIES);
        fv_fixture_needs(&f, parts[i]);
        binds[i] = (VkBindBufferMemoryInfo){.sType = VK_STRUCTURE_TYPE_BIND_BUFFER_MEMORY_INFO,
                                            .buffer = parts[i],
                                            .memory = memory,
                                            .memoryOffset = 4 * KIB * i};
    }
    CHECK_VK(FV(&f, vkBindBufferMemory2)(f.device, PARTS, binds));
    fv_place start = fv_place_of(f.driver, (uint64_t)(uintptr_t)parts[0]);
    CHECK(start.offset >= 4 * KIB);
    for (unsigned i = 1; i < PARTS; i++) {
        fv_place place = fv_place_of(f.driver, (uint64_t)(uintptr_t)parts[i]);
        CHECK(place.memory == start.memory);
        CHECK_EQ(place.offset, start.offset + 4 * KIB * i);
    }
    for (unsigned i = 0; i < PARTS; i++)
        FV(&f, vkDestroyBuffer)(f.device, parts[i], NULL);
    release(&f, memory);
    release(&f, first);
    fv_fixture_close(&f);
}

UNIT(vulkan_layer, priorities_have_pages_of_their_own)
{
    static const float PRIORITIES[] = {0.0f, 0.25f, 1.0f};
    fv_fixture f;
    piece pieces[3];
    open_named(&f, "amd-bar");
    for (int i = 0; i < 3; i++) {
        const VkMemoryPriorityAllocateInfoEXT priority = {
            .sType = VK_STRUCTURE_TYPE_MEMORY_PRIORITY_ALLOCATE_INFO_EXT,
            .priority = PRIORITIES[i]};
        fv_memory_info info;
        pieces[i].buffer = fv_fixture_buffer(&f, 64, COPIES);
        pieces[i].memory = allocate(&f, fv_fixture_needs(&f, pieces[i].buffer).size, 0, &priority);
        CHECK_VK(FV(&f, vkBindBufferMemory)(f.device, pieces[i].buffer, pieces[i].memory, 0));
        CHECK(fv_memory_of(
            f.driver, fv_place_of(f.driver, (uint64_t)(uintptr_t)pieces[i].buffer).memory, &info));
        CHECK(info.priority >= PRIORITIES[i] && info.priority <= PRIORITIES[i] + 0.001f);
        CHECK(info.addressed);
    }
    CHECK_EQ(driver_allocations(&f), 3);
    for (int i = 0; i < 3; i++)
        end_piece(&f, &pieces[i]);
    fv_fixture_close(&f);
}

/* ---- passed on ---------------------------------------------------------------------------------- */

static void expect_passed(fv_fixture *f, uint64_t size, uint32_t type, const void *chain)
{
    VkDeviceMemory memory = allocate(f, size, type, chain);
    CHECK(is_passed(f, memory));
    release(f, memory);
}

UNIT(vulkan_layer, what_is_dedicated_external_or_large_is_the_drivers)
{
    fv_fixture f;
    open_named(&f, "amd-bar");
    VkBuffer buffer = fv_fixture_buffer(&f, 1000, COPIES);
    VkMemoryRequirements needs = fv_fixture_needs(&f, buffer);
    expect_passed(&f, needs.size, 0,
                  &(VkMemoryDedicatedAllocateInfo){
                      .sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO, .buffer = buffer});
    expect_passed(
        &f, 4096, 0,
        &(VkExportMemoryAllocateInfo){.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                      .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT});
    expect_passed(&f, 16 * MIB, 0, NULL);
    void *pointer = aligned_alloc(4096, 8192);
    expect_passed(&f, 8192, fv_fixture_type(&f, VISIBLE_FLAGS),
                  &(VkImportMemoryHostPointerInfoEXT){
                      .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
                      .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
                      .pHostPointer = pointer});
    free(pointer);
    /* these ask for nothing */
    const VkMemoryDedicatedAllocateInfo nobody = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO};
    const VkExportMemoryAllocateInfo nothing = {
        .sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO, .pNext = &nobody};
    const VkMemoryAllocateFlagsInfo address = {.sType =
                                                   VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                               .pNext = &nothing,
                                               .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    VkDeviceMemory memory = allocate(&f, 4096, 0, &address);
    CHECK(!is_passed(&f, memory));
    release(&f, memory);
    FV(&f, vkDestroyBuffer)(f.device, buffer, NULL);
    fv_fixture_close(&f);
}

UNIT(vulkan_layer, dedicated_ones_lie_in_pages_where_the_settings_say_so_and_the_driver_lets)
{
    static const uint32_t FLAGS[] = {FV_PREFER_DEDICATED, FV_REQUIRE_DEDICATED};
    setenv("QUIRE_LAYER_DEDICATED", "suballocate", 1);
    for (int i = 0; i < 2; i++) {
        fv_fixture f;
        VkMemoryRequirements needs;
        open_layout(&f, fv_layout_named("amd-bar"), FLAGS[i]);
        VkImage image = make_image(&f, VK_IMAGE_TILING_OPTIMAL);
        FV(&f, vkGetImageMemoryRequirements)(f.device, image, &needs);
        const VkMemoryDedicatedAllocateInfo dedicated = {
            .sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO, .image = image};
        VkDeviceMemory memory = allocate(&f, needs.size, 0, &dedicated);
        CHECK_EQ(is_passed(&f, memory), FLAGS[i] == FV_REQUIRE_DEDICATED);
        CHECK_VK(FV(&f, vkBindImageMemory)(f.device, image, memory, 0));
        FV(&f, vkDestroyImage)(f.device, image, NULL);
        release(&f, memory);
        fv_fixture_close(&f);
    }
}

UNIT(vulkan_layer, lazily_allocated_kinds_are_the_drivers)
{
    fv_fixture f;
    VkDeviceSize committed = 0;
    open_named(&f, "mobile-lazy");
    VkPhysicalDeviceMemoryProperties all;
    FV(&f, vkGetPhysicalDeviceMemoryProperties)(f.physical, &all);
    for (uint32_t i = 0; i < all.memoryTypeCount; i++) {
        bool is_lazy = all.memoryTypes[i].propertyFlags & VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT;
        if (all.memoryTypes[i].propertyFlags & VK_MEMORY_PROPERTY_PROTECTED_BIT)
            continue;
        VkDeviceMemory memory = allocate(&f, 4096, i, NULL);
        CHECK_EQ(is_passed(&f, memory), is_lazy);
        if (is_lazy)
            FV(&f, vkGetDeviceMemoryCommitment)(f.device, memory, &committed);
        release(&f, memory);
    }
    fv_fixture_close(&f);
}

/* ---- maps, names, sparse ------------------------------------------------------------------------ */

UNIT(vulkan_layer, each_memory_is_mapped_once_and_the_page_stays_mapped)
{
    fv_fixture f;
    void *one = NULL, *other = NULL, *again = NULL;
    open_named(&f, "adreno");
    uint32_t type = 2; /* not coherent */
    VkDeviceMemory a = allocate(&f, 1000, type, NULL), b = allocate(&f, 1000, type, NULL);
    CHECK_VK(FV(&f, vkMapMemory)(f.device, a, 0, VK_WHOLE_SIZE, 0, &one));
    CHECK_VK(FV(&f, vkMapMemory)(f.device, b, 128, 256, 0, &other));
    CHECK_EQ((uint32_t)FV(&f, vkMapMemory)(f.device, b, 0, 1, 0, &again),
             (uint32_t)VK_ERROR_MEMORY_MAP_FAILED);
    CHECK_EQ((uintptr_t)one % 4096, 0);
    CHECK_EQ((uintptr_t)other % 4096, 128);
    CHECK_EQ(fv_calls(f.driver, "vkMapMemory"), 1);
    /* of both at once; to the end of a memory that is no multiple of the atom, and of a map */
    memset(one, 1, 1000);
    memset(other, 2, 256);
    const VkMappedMemoryRange ranges[] = {
        {.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, .memory = a, .offset = 960, .size = 40},
        {.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
         .memory = b,
         .offset = 128,
         .size = VK_WHOLE_SIZE},
        {.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, .memory = a, .size = VK_WHOLE_SIZE},
    };
    CHECK_VK(FV(&f, vkFlushMappedMemoryRanges)(f.device, 3, ranges));
    CHECK_VK(FV(&f, vkInvalidateMappedMemoryRanges)(f.device, 3, ranges));
    FV(&f, vkUnmapMemory)(f.device, b);
    CHECK_VK(FV(&f, vkMapMemory)(f.device, b, 0, VK_WHOLE_SIZE, 0, &again));
    CHECK(again == (char *)other - 128);
    CHECK_EQ(fv_calls(f.driver, "vkMapMemory"), 1);
    CHECK_EQ(fv_calls(f.driver, "vkUnmapMemory"), 0);
    release(&f, a);
    release(&f, b);
    fv_fixture_close(&f);
}

UNIT(vulkan_layer, names_of_ranges_do_not_reach_the_driver_and_others_do)
{
    fv_fixture f;
    char name[64];
    open_named(&f, "amd-bar");
    piece p = make_piece(&f, 100, 0);
    VkDebugUtilsObjectNameInfoEXT info = {.sType =
                                              VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
                                          .objectType = VK_OBJECT_TYPE_DEVICE_MEMORY,
                                          .objectHandle = (uint64_t)(uintptr_t)p.memory,
                                          .pObjectName = "weights"};
    const VkDebugUtilsObjectTagInfoEXT tag = {.sType =
                                                  VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_TAG_INFO_EXT,
                                              .objectType = VK_OBJECT_TYPE_DEVICE_MEMORY,
                                              .objectHandle = (uint64_t)(uintptr_t)p.memory,
                                              .tagName = 1,
                                              .tagSize = 1,
                                              .pTag = "x"};
    uint64_t before = fv_calls(f.driver, "vkSetDebugUtilsObjectNameEXT");
    CHECK_VK(FV(&f, vkSetDebugUtilsObjectNameEXT)(f.device, &info));
    CHECK_VK(FV(&f, vkSetDebugUtilsObjectTagEXT)(f.device, &tag));
    CHECK_EQ(fv_calls(f.driver, "vkSetDebugUtilsObjectNameEXT"), before);
    info.objectType = VK_OBJECT_TYPE_BUFFER;
    info.objectHandle = (uint64_t)(uintptr_t)p.buffer;
    CHECK_VK(FV(&f, vkSetDebugUtilsObjectNameEXT)(f.device, &info));
    fv_name_of(f.driver, (uint64_t)(uintptr_t)p.buffer, name, sizeof name);
    CHECK_STR(name, "weights");
    end_piece(&f, &p);
    fv_fixture_close(&f);
}

UNIT(vulkan_layer, questions_about_a_range_are_answered)
{
    fv_fixture f;
    VkDeviceSize committed = 0;
    open_named(&f, "amd-bar");
    const VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                             .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    VkDeviceMemory one = allocate(&f, 5000, 0, &flags), other = allocate(&f, 5000, 0, &flags);
    FV(&f, vkGetDeviceMemoryCommitment)(f.device, one, &committed);
    CHECK_EQ(committed, 5000);
    VkDeviceMemoryOpaqueCaptureAddressInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_MEMORY_OPAQUE_CAPTURE_ADDRESS_INFO, .memory = one};
    uint64_t first = FV(&f, vkGetDeviceMemoryOpaqueCaptureAddress)(f.device, &info);
    info.memory = other;
    CHECK(first && FV(&f, vkGetDeviceMemoryOpaqueCaptureAddress)(f.device, &info) != first);
    release(&f, one);
    release(&f, other);
    fv_fixture_close(&f);
}

UNIT(vulkan_layer, sparse_binds_find_their_page)
{
    enum { BLOCK = 64 * 1024 };
    fv_fixture f;
    VkBuffer buffer = VK_NULL_HANDLE;
    VkMemoryRequirements needs;
    VkCommandPool pool;
    void *pointer = NULL;
    open_named(&f, "amd-bar");
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT,
                                     .size = 2 * BLOCK,
                                     .usage = COPIES};
    CHECK_VK(FV(&f, vkCreateBuffer)(f.device, &info, NULL, &buffer));
    FV(&f, vkGetBufferMemoryRequirements)(f.device, buffer, &needs);
    VkDeviceMemory first = allocate(&f, 100, 0, NULL);
    VkDeviceMemory memory = allocate(&f, needs.size, 0, NULL);
    const VkSparseMemoryBind binds[] = {
        /* the halves change places */
        {.size = needs.size / 2, .memory = memory, .memoryOffset = needs.size / 2},
        {.resourceOffset = needs.size / 2, .size = needs.size / 2, .memory = memory}};
    const VkSparseBufferMemoryBindInfo of_buffer = {
        .buffer = buffer, .bindCount = 2, .pBinds = binds};
    const VkBindSparseInfo sparse = {.sType = VK_STRUCTURE_TYPE_BIND_SPARSE_INFO,
                                     .bufferBindCount = 1,
                                     .pBufferBinds = &of_buffer};
    CHECK_VK(FV(&f, vkQueueBindSparse)(f.queue, 1, &sparse, VK_NULL_HANDLE));
    CHECK_VK(FV(&f, vkQueueWaitIdle)(f.queue));
    piece back = make_piece(&f, 2 * BLOCK, fv_fixture_type(&f, VISIBLE_FLAGS));
    VkCommandBuffer commands = begin_commands(&f, &pool);
    FV(&f, vkCmdFillBuffer)(commands, buffer, 0, BLOCK, 0x11111111);
    FV(&f, vkCmdFillBuffer)(commands, buffer, BLOCK, BLOCK, 0x22222222);
    const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                     .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                     .dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT};
    FV(&f, vkCmdPipelineBarrier)
    (commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &barrier, 0,
     NULL, 0, NULL);
    FV(&f, vkCmdCopyBuffer)(commands, buffer, back.buffer, 1, &(VkBufferCopy){.size = 2 * BLOCK});
    run_commands(&f, commands, pool);
    CHECK_VK(FV(&f, vkMapMemory)(f.device, back.memory, 0, VK_WHOLE_SIZE, 0, &pointer));
    CHECK_EQ(*(uint32_t *)pointer, 0x11111111);
    CHECK_EQ(*(uint32_t *)((char *)pointer + BLOCK), 0x22222222);
    FV(&f, vkDestroyBuffer)(f.device, buffer, NULL);
    end_piece(&f, &back);
    release(&f, memory);
    release(&f, first);
    fv_fixture_close(&f);
}

/* ---- trouble -------------------------------------------------------------------------------------- */

UNIT(vulkan_layer, when_no_page_can_be_had_the_driver_answers)
{
    fv_fixture f;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    open_named(&f, "amd-bar");
    fv_set_capacity(f.driver, 0, 0, MIB);
    VkDeviceMemory small = allocate(&f, 100 * KIB, 0, NULL);
    const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                       .allocationSize = 4 * MIB};
    CHECK_EQ((uint32_t)FV(&f, vkAllocateMemory)(f.device, &info, NULL, &memory),
             (uint32_t)VK_ERROR_OUT_OF_DEVICE_MEMORY);
    release(&f, small);
    /* the empty page is given back for what the driver must find room for */
    fv_set_capacity(f.driver, 0, 0, 33 * MIB);
    release(&f, allocate(&f, 100 * KIB, 0, NULL));
    expect_passed(&f, 32 * MIB, 0, NULL);
    fv_fixture_close(&f);
}

UNIT(vulkan_layer, each_failing_driver_call_leaves_the_program_what_it_had)
{
    static const char *const CALLS[] = {"vkAllocateMemory", "vkMapMemory"};
    for (int i = 0; i < 2; i++) {
        fv_fixture f;
        open_named(&f, "amd-bar");
        uint32_t type = fv_fixture_type(&f, VISIBLE_FLAGS);
        piece kept = make_piece(&f, 1000, type);
        const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                           .allocationSize = 1000,
                                           .memoryTypeIndex = 0};
        VkDeviceMemory memory = VK_NULL_HANDLE;
        CHECK(fv_fail(f.driver, &(fv_fault){.function = CALLS[i], .call = 1, .from_then = true}));
        VkResult code = FV(&f, vkAllocateMemory)(f.device, &info, NULL, &memory);
        CHECK_EQ(code != VK_SUCCESS, i == 0);
        fv_heal(f.driver);
        if (!code)
            release(&f, memory);
        release(&f, allocate(&f, 1000, 0, NULL));
        end_piece(&f, &kept);
        fv_fixture_close(&f);
    }
}

typedef struct crew {
    fv_fixture *f;
    uint64_t seed;
} crew;

static void *work(void *state)
{
    crew *c = state;
    fv_fixture *f = c->f;
    uint32_t type = fv_fixture_type(f, VISIBLE_FLAGS);
    for (int i = 0; i < 200; i++) {
        piece pieces[5];
        unsigned char *pointers[5];
        for (unsigned k = 0; k < 5; k++) {
            void *pointer = NULL;
            pieces[k] = make_piece(f, 1 + next_random(&c->seed) % 20000, type);
            CHECK_VK(
                FV(f, vkMapMemory)(f->device, pieces[k].memory, 0, VK_WHOLE_SIZE, 0, &pointer));
            pointers[k] = pointer;
            memset(pointer, (int)(c->seed & 0xff), pieces[k].size);
            pointers[k][0] = (unsigned char)k;
        }
        for (unsigned k = 0; k < 5; k++) {
            CHECK_EQ(pointers[k][0], k);
            end_piece(f, &pieces[k]);
        }
    }
    return NULL;
}

UNIT(vulkan_layer, threads_share_a_device)
{
    enum { THREADS = 4 };
    fv_fixture f;
    pthread_t threads[THREADS];
    crew crews[THREADS];
    open_named(&f, "amd-bar");
    for (unsigned i = 0; i < THREADS; i++) {
        crews[i] = (crew){.f = &f, .seed = i};
        CHECK_EQ(pthread_create(&threads[i], NULL, work, &crews[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK(driver_allocations(&f) <= 2);
    fv_fixture_close(&f);
}

UNIT(vulkan_layer, a_program_that_leaks_leaves_the_driver_nothing)
{
    fv_fixture f;
    open_named(&f, "amd-bar");
    for (int i = 0; i < 10; i++)
        allocate(&f, 1000, 0, NULL);
    fv_fixture_close(&f);
}

/* ---- settings, statistics, trace ------------------------------------------------------------------ */

static char *read_all(const char *path)
{
    static char text[16384];
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = 0;
    return text;
}

UNIT(vulkan_layer, settings_change_pages_and_thresholds)
{
    fv_fixture f;
    char path[] = "/tmp/quire-layer-XXXXXX";
    CHECK(mkstemp(path) >= 0);
    setenv("QUIRE_LAYER_PAGE_SIZE", "1M", 1);
    setenv("QUIRE_LAYER_THRESHOLD", "100K", 1);
    setenv("QUIRE_LAYER_FIT", "buddy", 1);
    setenv("QUIRE_LAYER_RETAIN", "8M", 1);
    setenv("QUIRE_LAYER_STATS", "json", 1);
    setenv("QUIRE_LAYER_STATS_FILE", path, 1);
    VkDeviceMemory memories[40];
    open_named(&f, "amd-bar");
    for (int i = 0; i < 40; i++)
        memories[i] = allocate(&f, 99 * KIB, 0, NULL);
    CHECK_EQ(driver_allocations(&f), 5); /* blocks of 128 KiB, eight a page */
    expect_passed(&f, 100 * KIB, 0, NULL);
    for (int i = 0; i < 40; i++)
        release(&f, memories[i]);
    CHECK_EQ(fv_live(f.driver, FV_MEMORY), 5); /* kept */
    fv_fixture_close(&f);
    const char *text = read_all(path);
    CHECK_HAS(text, "\"client_allocations\":41");
    CHECK_HAS(text, "\"driver_allocations\":6");
    CHECK_HAS(text, "\"never_freed\":0");
    remove(path);
}

UNIT(vulkan_layer, a_setting_that_cannot_be_read_refuses_the_device)
{
    static const char *const BAD[][2] = {
        {"QUIRE_LAYER_PAGE_SIZE", "0"},  {"QUIRE_LAYER_PAGE_SIZE", "1X"},
        {"QUIRE_LAYER_THRESHOLD", "-5"}, {"QUIRE_LAYER_RETAIN", "99999999999999999999"},
        {"QUIRE_LAYER_FIT", "linear"},   {"QUIRE_LAYER_DEDICATED", "yes"},
        {"QUIRE_LAYER_STATS", "1"},
    };
    const fv_layout *layout = fv_layout_named("amd-bar");
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        fv_driver *driver = fv_create(&(fv_options){.layouts = {layout}});
        PFN_vkGetInstanceProcAddr get = mini_loader_over(fv_door(driver));
        const VkInstanceCreateInfo none = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
        const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
        VkInstance instance = NULL;
        VkPhysicalDevice physical = NULL;
        VkDevice device = NULL;
        uint32_t one = 1;
        CHECK_VK(((PFN_vkCreateInstance)get(NULL, "vkCreateInstance"))(&none, NULL, &instance));
        ((PFN_vkEnumeratePhysicalDevices)get(instance, "vkEnumeratePhysicalDevices"))(
            instance, &one, &physical);
        setenv(BAD[i][0], BAD[i][1], 1);
        CHECK_EQ((uint32_t)((PFN_vkCreateDevice)get(instance, "vkCreateDevice"))(physical, &info,
                                                                                 NULL, &device),
                 (uint32_t)VK_ERROR_INITIALIZATION_FAILED);
        unsetenv(BAD[i][0]);
        ((PFN_vkDestroyInstance)get(instance, "vkDestroyInstance"))(instance, NULL);
        CHECK_EQ(fv_live(driver, FV_DEVICE), 0);
        fv_destroy(driver);
    }
}

UNIT(vulkan_layer, the_trace_of_a_program_can_be_replayed)
{
    fv_fixture f;
    quire_trace *trace = NULL;
    quire_trace_info info;
    char path[] = "/tmp/quire-layer-XXXXXX";
    CHECK(mkstemp(path) >= 0);
    setenv("QUIRE_LAYER_TRACE", path, 1);
    open_named(&f, "amd-bar");
    VkDeviceMemory a = allocate(&f, 1000, 0, NULL), b = allocate(&f, 70000, 2, NULL);
    expect_passed(&f, 16 * MIB, 0, NULL);
    release(&f, a);
    release(&f, b);
    allocate(&f, 10, 0, NULL);
    fv_fixture_close(&f);
    const char *text = read_all(path);
    CHECK_OK(quire_trace_parse(path, text, strlen(text), unit_memory(), &trace));
    CHECK_OK(quire_trace_get_info(trace, &info));
    CHECK_EQ(info.alloc_count, 3);
    CHECK_EQ(info.free_count, 2);
    CHECK_EQ(info.peak_bytes, 71000);
    CHECK_EQ(info.left_bytes, 10);
    quire_trace_destroy(&trace);
    remove(path);
}

/* ---- the chain -------------------------------------------------------------------------------------- */

UNIT(vulkan_layer, what_the_next_layer_lacks_the_program_does_not_get)
{
    fv_fixture f;
    open_named(&f, "amd-bar");
    CHECK(f.get_of_device(f.device, "vkAllocateMemory") != NULL);
    CHECK(f.get_of_device(f.device, "vkBindBufferMemory2KHR") != NULL);
    CHECK(f.get_of_device(f.device, "vkMapMemory2KHR") == NULL);
    CHECK(f.get_of_device(f.device, "vkBindVideoSessionMemoryKHR") == NULL);
    CHECK(f.get_of_device(f.device, "vkNoSuchThing") == NULL);
    CHECK(f.get(f.instance, "vkAllocateMemory") == f.get_of_device(f.device, "vkAllocateMemory"));
    CHECK(f.get(f.instance, "vkNoSuchThing") == NULL);
    fv_fixture_close(&f);
}

/* quire needs 1.1: the layer asks for it, and where a function of it is missing it stays out. */
UNIT(vulkan_layer, programs_of_vulkan_1_0_and_devices_without_quire_work)
{
    const fv_layout *layout = fv_layout_named("amd-bar");
    for (int hidden = 0; hidden < 2; hidden++) {
        fv_driver *driver = fv_create(&(fv_options){.layouts = {layout}});
        PFN_vkGetInstanceProcAddr get = mini_loader_over(fv_door(driver));
        const VkInstanceCreateInfo none = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
        const float priority = 1;
        const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                               .queueCount = 1,
                                               .pQueuePriorities = &priority};
        const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                         .queueCreateInfoCount = 1,
                                         .pQueueCreateInfos = &queue};
        fv_fixture f = {.driver = driver, .get = get};
        uint32_t one = 1;
        CHECK_VK(FV(&f, vkCreateInstance)(&none, NULL, &f.instance));
        CHECK_VK(FV(&f, vkEnumeratePhysicalDevices)(f.instance, &one, &f.physical) < 0);
        f.get_of_device = FV(&f, vkGetDeviceProcAddr);
        if (hidden)
            fv_hide(driver, "vkGetBufferMemoryRequirements2");
        CHECK_VK(FV(&f, vkCreateDevice)(f.physical, &info, NULL, &f.device));
        VkDeviceMemory memory = allocate(&f, 1000, 0, NULL);
        CHECK_EQ(is_passed(&f, memory), hidden);
        release(&f, memory);
        fv_fixture_close(&f);
    }
}
