/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_layer.c - VK_LAYER_QUIRE_suballocate between a program and the fake driver, which checks
 * every call: suballocation on every layout, and failures of the driver.
 */
#include <pthread.h>

#include "tests/support/layer_fixture.h"
#include "tests/support/unit.h"

#define CASE(name, layout) LAYER_CASE(vulkan_layer, name, layout)

/* ---- in pages -------------------------------------------------------------------------------- */

CASE(five_hundred_allocations_are_few_of_the_driver, "amd-bar")
{
    enum { COUNT = 500 };
    lf_piece pieces[COUNT];
    fv_place places[COUNT];
    uint64_t random = 1;
    for (int i = 0; i < COUNT; i++)
        pieces[i] = lf_make_piece(f, 1 + lf_random(&random) % (40 * KIB), 0);
    CHECK(lf_driver_allocations(f) <= 16); /* 10 MiB in pages of 1 MiB */
    for (int i = 0; i < COUNT; i++) {
        places[i] = fv_place_of(f->driver, (uint64_t)(uintptr_t)pieces[i].buffer);
        CHECK(places[i].memory != VK_NULL_HANDLE && places[i].memory != pieces[i].memory);
        for (int k = 0; k < i; k++)
            CHECK(places[i].memory != places[k].memory ||
                  places[i].offset + places[i].size <= places[k].offset ||
                  places[k].offset + places[k].size <= places[i].offset);
    }
    for (int i = 0; i < COUNT; i++)
        lf_end_piece(f, &pieces[i]);
}

/* Pages of a memory type start small and grow with use. A layout has units of 128 KiB of
   bufferImageGranularity, which each range has for itself. */
UNIT(vulkan_layer, a_small_program_reserves_a_mebibyte_on_every_layout)
{
    enum { COUNT = 20 };
    for (uint32_t i = 0; i < fv_layout_count; i++) {
        fv_fixture f;
        VkDeviceMemory memories[COUNT];
        uint64_t reserved = 0;
        if (fv_layouts[i].granularity > 16 * KIB)
            continue;
        lf_open(&f, &fv_layouts[i], 0);
        uint32_t type = 0;
        while (fv_layouts[i].types[type].propertyFlags & VK_MEMORY_PROPERTY_PROTECTED_BIT ||
               !(fv_layouts[i].types[type].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT))
            type++;
        for (int k = 0; k < COUNT; k++)
            memories[k] = lf_allocate(&f, 16 * KIB, type, NULL);
        for (uint32_t heap = 0; heap < fv_layouts[i].heap_count; heap++)
            reserved += fv_usage(f.driver, 0, heap).bytes;
        CHECK_EQ(reserved, MIB);
        for (int k = 0; k < COUNT; k++)
            lf_release(&f, memories[k]);
        fv_fixture_close(&f);
    }
}

/* Copies random bytes to the device and back, between memory of two types. */
static void round_trip(fv_fixture *f, uint32_t up, uint32_t down, uint64_t *random)
{
    enum { PAIRS = 6, MAX_COUNT = 5000 };
    lf_piece from[PAIRS], to[PAIRS];
    VkCommandPool pool;
    static unsigned char bytes[PAIRS][MAX_COUNT];
    for (int i = 0; i < PAIRS; i++) {
        void *pointer = NULL;
        from[i] = lf_make_piece(f, 4 * (1 + lf_random(random) % (MAX_COUNT / 4)), up);
        to[i] = lf_make_piece(f, from[i].size, down);
        for (uint64_t k = 0; k < from[i].size; k++)
            bytes[i][k] = (unsigned char)lf_random(random);
        CHECK_VK(FV(f, vkMapMemory)(f->device, from[i].memory, 0, VK_WHOLE_SIZE, 0, &pointer));
        memcpy(pointer, bytes[i], from[i].size);
        VkMappedMemoryRange range = {.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
                                     .memory = from[i].memory,
                                     .size = i & 1 ? VK_WHOLE_SIZE : from[i].needed};
        CHECK_VK(FV(f, vkFlushMappedMemoryRanges)(f->device, 1, &range));
    }
    VkCommandBuffer commands = lf_begin_commands(f, &pool);
    for (int i = 0; i < PAIRS; i++)
        FV(f, vkCmdCopyBuffer)
    (commands, from[i].buffer, to[i].buffer, 1, &(VkBufferCopy){.size = from[i].size});
    lf_run_commands(f, commands, pool);
    for (int i = 0; i < PAIRS; i++) {
        void *pointer = NULL;
        CHECK_VK(FV(f, vkMapMemory)(f->device, to[i].memory, 0, to[i].needed, 0, &pointer));
        VkMappedMemoryRange range = {.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
                                     .memory = to[i].memory,
                                     .size = i & 1 ? to[i].needed : VK_WHOLE_SIZE};
        CHECK_VK(FV(f, vkInvalidateMappedMemoryRanges)(f->device, 1, &range));
        CHECK(!memcmp(pointer, bytes[i], to[i].size));
        FV(f, vkUnmapMemory)(f->device, to[i].memory);
        lf_end_piece(f, &from[i]); /* freeing mapped memory is allowed */
        lf_end_piece(f, &to[i]);
    }
}

/* Non-coherent caches, odd sizes, large alignments: atoms and bufferImageGranularity matter. */
UNIT(vulkan_layer, bytes_are_written_and_read_back_on_every_layout)
{
    static const uint32_t FLAGS[] = {0, FV_STALE | FV_DIRTY | FV_ODD_SIZES,
                                     FV_STALE | FV_LARGE_ALIGNMENTS | FV_LATE};
    uint64_t random = 7;
    for (uint32_t i = 0; i < fv_layout_count; i++)
        for (size_t k = 0; k < sizeof FLAGS / sizeof *FLAGS; k++) {
            fv_fixture f;
            VkPhysicalDeviceMemoryProperties all;
            uint32_t previous = UINT32_MAX;
            lf_open(&f, &fv_layouts[i], FLAGS[k]);
            FV(&f, vkGetPhysicalDeviceMemoryProperties)(f.physical, &all);
            for (uint32_t type = 0; type < all.memoryTypeCount; type++) {
                VkMemoryPropertyFlags flags = all.memoryTypes[type].propertyFlags;
                if (!(flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) ||
                    flags & VK_MEMORY_PROPERTY_PROTECTED_BIT)
                    continue;
                round_trip(&f, type, previous == UINT32_MAX ? type : previous, &random);
                previous = type;
            }
            CHECK(lf_driver_allocations(&f) <= all.memoryTypeCount);
            fv_fixture_close(&f);
        }
}

/* Linear and optimal images alternate. The driver must not report any neighbour. */
UNIT(vulkan_layer, images_and_buffers_are_neighbours_on_every_layout)
{
    enum { COUNT = 24 };
    for (uint32_t i = 0; i < fv_layout_count; i++) {
        fv_fixture f;
        VkImage images[COUNT];
        VkDeviceMemory memories[COUNT];
        lf_piece pieces[COUNT];
        lf_open(&f, &fv_layouts[i], i & 1 ? FV_LARGE_ALIGNMENTS : FV_ODD_SIZES);
        for (int k = 0; k < COUNT; k++) {
            VkMemoryRequirements needs;
            images[k] = lf_make_image(&f, k & 1 ? VK_IMAGE_TILING_LINEAR : VK_IMAGE_TILING_OPTIMAL);
            FV(&f, vkGetImageMemoryRequirements)(f.device, images[k], &needs);
            uint32_t type = (uint32_t)__builtin_ctz(needs.memoryTypeBits);
            memories[k] = lf_allocate(&f, needs.size, type, NULL);
            const VkBindImageMemoryInfo bind = {.sType = VK_STRUCTURE_TYPE_BIND_IMAGE_MEMORY_INFO,
                                                .image = images[k],
                                                .memory = memories[k]};
            if (k % 3)
                CHECK_VK(FV(&f, vkBindImageMemory2)(f.device, 1, &bind));
            else
                CHECK_VK(FV(&f, vkBindImageMemory)(f.device, images[k], memories[k], 0));
            pieces[k] = lf_make_piece(&f, 100 + (unsigned)k, type);
        }
        for (int k = 0; k < COUNT; k++) {
            FV(&f, vkDestroyImage)(f.device, images[k], NULL);
            lf_release(&f, memories[k]);
            lf_end_piece(&f, &pieces[k]);
        }
        fv_fixture_close(&f);
    }
}

CASE(each_priority_has_separate_pages, "amd-bar")
{
    static const float PRIORITIES[] = {0.0f, 0.25f, 1.0f};
    lf_piece pieces[3];
    for (int i = 0; i < 3; i++) {
        const VkMemoryPriorityAllocateInfoEXT priority = {
            .sType = VK_STRUCTURE_TYPE_MEMORY_PRIORITY_ALLOCATE_INFO_EXT,
            .priority = PRIORITIES[i]};
        fv_memory_info info;
        pieces[i].buffer = fv_fixture_buffer(f, 64, COPIES);
        pieces[i].memory = lf_allocate(f, fv_fixture_needs(f, pieces[i].buffer).size, 0, &priority);
        CHECK_VK(FV(f, vkBindBufferMemory)(f->device, pieces[i].buffer, pieces[i].memory, 0));
        CHECK(fv_memory_of(f->driver,
                           fv_place_of(f->driver, (uint64_t)(uintptr_t)pieces[i].buffer).memory,
                           &info));
        CHECK(info.priority >= PRIORITIES[i] && info.priority <= PRIORITIES[i] + 0.001f);
        CHECK(info.addressed);
    }
    CHECK_EQ(lf_driver_allocations(f), 3);
    for (int i = 0; i < 3; i++)
        lf_end_piece(f, &pieces[i]);
}

/* ---- trouble --------------------------------------------------------------------------------- */

/* A program that continues after failures. Returns false if a call failed. */
static bool go_on(fv_fixture *f, uint32_t type)
{
    VkBuffer buffers[4] = {0};
    VkDeviceMemory memories[4] = {0};
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = 3000, .usage = COPIES};
    bool all = true;
    for (uint32_t i = 0; i < 4; i++) {
        void *pointer = NULL;
        VkMemoryRequirements needs;
        VkDevice device = f->device;
        if (FV(f, vkCreateBuffer)(device, &info, NULL, &buffers[i])) {
            buffers[i] = VK_NULL_HANDLE; /* undefined after a failure */
            all = false;
            continue;
        }
        FV(f, vkGetBufferMemoryRequirements)(device, buffers[i], &needs);
        const VkMemoryAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                               .allocationSize = i == 3 ? 20 * MIB : needs.size,
                                               .memoryTypeIndex = i == 1 ? 0 : type};
        if (FV(f, vkAllocateMemory)(device, &allocate, NULL, &memories[i])) {
            memories[i] = VK_NULL_HANDLE;
            all = false;
            continue;
        }
        all &= !FV(f, vkBindBufferMemory)(device, buffers[i], memories[i], 0);
        if (i == 1 || FV(f, vkMapMemory)(device, memories[i], 0, VK_WHOLE_SIZE, 0, &pointer)) {
            all &= i == 1;
            continue;
        }
        memset(pointer, 1, 3000);
        const VkMappedMemoryRange range = {.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
                                           .memory = memories[i],
                                           .size = VK_WHOLE_SIZE};
        all &= !FV(f, vkFlushMappedMemoryRanges)(device, 1, &range);
    }
    for (uint32_t i = 0; i < 4; i++) {
        FV(f, vkDestroyBuffer)(f->device, buffers[i], NULL);
        if (memories[i])
            lf_release(f, memories[i]);
    }
    return all;
}

/* Each call of the driver that can fail does so, once and permanently, with each of its codes. */
UNIT(vulkan_layer, a_failure_of_any_call_of_the_driver_leaves_nothing)
{
    uint64_t calls = UINT64_MAX, seen = 0;
    for (uint64_t call = 1; call <= calls; call++)
        for (uint32_t way = 0; way < 4; way++) {
            fv_fixture f;
            lf_open_named(&f, "adreno");
            lf_piece kept = lf_make_piece(&f, 1000, 2);
            fv_reset_counters(f.driver);
            if (calls == UINT64_MAX) {
                CHECK(go_on(&f, 2));
                calls = fv_fallible_calls(f.driver);
            }
            CHECK(fv_fail(f.driver,
                          &(fv_fault){.call = call, .from_then = way & 1, .code_index = way >> 1}));
            bool all = go_on(&f, 2);
            seen += fv_failed(f.driver).times > 0;
            /* if a page cannot be created or mapped, the allocation may still be passed on */
            CHECK(all || fv_failed(f.driver).times > 0);
            fv_heal(f.driver);
            CHECK(go_on(&f, 2));
            lf_end_piece(&f, &kept);
            fv_fixture_close(&f);
        }
    CHECK(calls >= 10 && seen >= 2 * calls);
}

typedef struct crew {
    fv_fixture *f;
    uint64_t seed;
} crew;

static void *work(void *state)
{
    crew *c = state;
    fv_fixture *f = c->f;
    uint32_t type = fv_fixture_type(f, COHERENT_FLAGS);
    for (int i = 0; i < 200; i++) {
        lf_piece pieces[5];
        unsigned char *pointers[5];
        for (unsigned k = 0; k < 5; k++) {
            void *pointer = NULL;
            pieces[k] = lf_make_piece(f, 1 + lf_random(&c->seed) % 20000, type);
            CHECK_VK(
                FV(f, vkMapMemory)(f->device, pieces[k].memory, 0, VK_WHOLE_SIZE, 0, &pointer));
            pointers[k] = pointer;
            memset(pointer, (int)(c->seed & 0xff), pieces[k].size);
            pointers[k][0] = (unsigned char)k;
        }
        for (unsigned k = 0; k < 5; k++) {
            CHECK_EQ(pointers[k][0], k);
            lf_end_piece(f, &pieces[k]);
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
    lf_open_named(&f, "amd-bar");
    for (unsigned i = 0; i < THREADS; i++) {
        crews[i] = (crew){.f = &f, .seed = i};
        CHECK_EQ(pthread_create(&threads[i], NULL, work, &crews[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK(lf_driver_allocations(&f) <= 2);
    fv_fixture_close(&f);
}

CASE(a_program_that_leaks_leaves_the_driver_no_memory, "amd-bar")
{
    for (int i = 0; i < 10; i++)
        lf_allocate(f, 1000, 0, NULL);
}
