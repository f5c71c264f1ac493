/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_vulkan.c - Vulkan and CUDA on one GPU: both APIs share a page, with the same bytes at the
 * same offsets. Runs on this machine's drivers, or on others by the environment (VK_ICD_FILENAMES)
 * and the option. Skipped with a message if one of them has no device or they have no GPU in
 * common.
 *
 *     cuda_vulkan [--must] [--cuda LIBRARY]
 *
 *     --must: a skip is a failure
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "quire/cuda.h"
#include "quire/quire.h"
#include "quire/vulkan.h"
#include "tests/support/plain.h"

#define MIB (UINT64_C(1) << 20)

static const quire_intent EXPORTABLE = QUIRE_INTENT_EXPORT;

static struct {
    quire_device *cuda, *vulkan;
    uint8_t uuid[QUIRE_CUDA_UUID_SIZE];
} gpu;

/* ---- one GPU ------------------------------------------------------------------------------ */

static bool is_same(quire_device *vulkan)
{
    quire_vulkan_handles handles;
    CHECK_OK(quire_vulkan_get_handles(vulkan, &handles));
    PFN_vkVoidFunction found =
        handles.get_instance_proc_addr(handles.instance, "vkGetPhysicalDeviceProperties2");
    VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                       .pNext = &id};
    CHECK(found);
    ((PFN_vkGetPhysicalDeviceProperties2)found)(handles.physical_device, &all);
    return !memcmp(id.deviceUUID, gpu.uuid, sizeof gpu.uuid);
}

/* The Vulkan device that is the GPU of the CUDA device. */
static bool find_vulkan(void)
{
    for (int i = 0; i < 64; i++) {
        char index[12];
        snprintf(index, sizeof index, "%d", i);
        if (quire_vulkan_open(&(quire_vulkan_options){.device = index}, &gpu.vulkan))
            return false;
        if (is_same(gpu.vulkan))
            return true;
        CHECK_OK(quire_device_destroy(&gpu.vulkan));
    }
    return false;
}

/* Returns NULL if both are open, otherwise the reason. */
static const char *open_both(const char *library)
{
    static char reason[512];
    quire_cuda_info info;
    if (quire_cuda_open(&(quire_cuda_options){.library = library}, &gpu.cuda)) {
        snprintf(reason, sizeof reason, "no CUDA: %s", quire_last_error());
        return reason;
    }
    CHECK_OK(quire_cuda_get_info(gpu.cuda, &info));
    memcpy(gpu.uuid, info.uuid, sizeof gpu.uuid);
    if (find_vulkan())
        return NULL;
    snprintf(reason, sizeof reason, "no Vulkan device is the GPU of CUDA's device 0: %s",
             quire_last_error());
    CHECK_OK(quire_device_destroy(&gpu.cuda));
    return reason;
}

/* ---- bytes -------------------------------------------------------------------------------- */

enum { MOST = 100000 };

static unsigned char bytes[MOST], back[MOST];

static void fill(uint32_t key)
{
    for (uint32_t i = 0; i < MOST; i++)
        bytes[i] = (unsigned char)(key * 31 + i + i / 253);
}

static void put(quire_memory *memory, quire_allocation a, uint64_t offset, uint64_t size,
                uint32_t key)
{
    fill(key);
    CHECK_OK(quire_write(memory, a, offset, bytes, size));
}

static void expect(quire_memory *memory, quire_allocation a, uint64_t offset, uint64_t size,
                   uint32_t key)
{
    fill(key);
    memset(back, 0xee, sizeof back);
    CHECK_OK(quire_read(memory, a, offset, back, size));
    CHECK(!memcmp(bytes, back, size));
}

static quire_memory *memory_of(quire_device *device, quire_intent intent)
{
    quire_memory *memory;
    const quire_memory_options options = {.kind.intent = intent, .pages = {.page_size = 4 * MIB}};
    CHECK_OK(quire_memory_create(device, &options, &memory));
    return memory;
}

/* ---- from Vulkan to CUDA -------------------------------------------------------------------- */

enum { BUFFERS = 5 };

static uint64_t page_size(quire_memory *memory, uint32_t page)
{
    quire_page_info info;
    CHECK_OK(quire_page_get_info(memory, page, &info));
    return info.size;
}

static quire_result import_page(quire_memory *memory, int descriptor, uint64_t size, bool dedicated,
                                const uint8_t *uuid, quire_allocation *page)
{
    const quire_cuda_import import = {.type = QUIRE_CUDA_IMPORT_EXTERNAL_FD,
                                      .descriptor = descriptor,
                                      .size = size,
                                      .is_dedicated = dedicated,
                                      .device_uuid = uuid};
    return quire_cuda_import_range(memory, &import, page);
}

/* One buffer's page in CUDA: CUDA reads what Vulkan wrote, and the reverse. */
static void same_bytes(quire_memory *vulkan, quire_buffer buffer, uint64_t size, uint32_t key)
{
    quire_buffer_info info;
    quire_vulkan_range range;
    quire_cuda_range seen;
    quire_allocation page;
    int descriptor;
    quire_memory *cuda = memory_of(gpu.cuda, 0);
    CHECK_OK(quire_buffer_get_info(vulkan, buffer, &info));
    CHECK_OK(quire_vulkan_get_range(vulkan, buffer.allocation, &range));
    CHECK_EQ(range.memory_offset, info.place.offset);
    CHECK_OK(quire_vulkan_export_fd(vulkan, buffer.allocation,
                                    VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT, &descriptor));
    CHECK_OK(import_page(cuda, descriptor, page_size(vulkan, info.place.page), info.place.dedicated,
                         gpu.uuid, &page));
    CHECK_EQ(close(descriptor), 0); /* the handle stayed ours */
    CHECK_OK(quire_cuda_get_range(cuda, page, &seen));
    CHECK(seen.size == page_size(vulkan, info.place.page) && !seen.page_offset && seen.address);
    expect(cuda, page, info.place.offset, size, key);
    put(cuda, page, info.place.offset, size, key + 100);
    expect(vulkan, buffer.allocation, 0, size, key + 100);
    put(vulkan, buffer.allocation, 0, size, key);
    CHECK_OK(quire_free(cuda, page));
    CHECK_OK(quire_memory_destroy(&cuda));
}

static void vulkan_in_cuda(void)
{
    quire_buffer buffers[BUFFERS];
    quire_memory *vulkan = memory_of(gpu.vulkan, EXPORTABLE);
    for (uint32_t i = 0; i < BUFFERS; i++) {
        const quire_buffer_options options = {.size = 1000 + i * 12345};
        CHECK_OK(quire_buffer_create(vulkan, &options, &buffers[i]));
        put(vulkan, buffers[i].allocation, 0, options.size, i);
    }
    for (uint32_t i = 0; i < BUFFERS; i++)
        same_bytes(vulkan, buffers[i], 1000 + i * 12345, i);
    for (uint32_t i = 0; i < BUFFERS; i++) {
        expect(vulkan, buffers[i].allocation, 0, 1000 + i * 12345, i);
        CHECK_OK(quire_free(vulkan, buffers[i].allocation));
    }
    CHECK_OK(quire_memory_destroy(&vulkan));
}

/* It would be the memory of another GPU, or none: rejected before the driver is called. */
static void another_gpu(void)
{
    quire_buffer buffer;
    quire_buffer_info info;
    quire_allocation page;
    uint8_t other[QUIRE_CUDA_UUID_SIZE];
    int descriptor;
    quire_memory *vulkan = memory_of(gpu.vulkan, EXPORTABLE);
    quire_memory *cuda = memory_of(gpu.cuda, 0);
    CHECK_OK(quire_buffer_create(vulkan, &(quire_buffer_options){.size = 1000}, &buffer));
    CHECK_OK(quire_buffer_get_info(vulkan, buffer, &info));
    CHECK_OK(quire_vulkan_export_fd(vulkan, buffer.allocation,
                                    VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT, &descriptor));
    memcpy(other, gpu.uuid, sizeof other);
    other[15] ^= 0x40;
    CHECK_FAILS(import_page(cuda, descriptor, page_size(vulkan, info.place.page),
                            info.place.dedicated, other, &page),
                QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "the memory is of GPU ");
    CHECK_EQ(page.id, 0);
    CHECK_EQ(close(descriptor), 0);
    CHECK_OK(quire_free(vulkan, buffer.allocation));
    CHECK_OK(quire_memory_destroy(&vulkan));
    CHECK_OK(quire_memory_destroy(&cuda));
}

/* ---- and back ------------------------------------------------------------------------------- */

static void cuda_in_vulkan(void)
{
    quire_allocation first, second, page;
    quire_cuda_range range;
    quire_vulkan_range seen;
    int descriptor;
    quire_memory *cuda = memory_of(gpu.cuda, EXPORTABLE);
    quire_memory *vulkan = memory_of(gpu.vulkan, 0);
    const quire_allocation_options options = {.size = 30000, .alignment = 4096};
    CHECK_OK(quire_allocate(cuda, &options, &first));
    CHECK_OK(quire_allocate(cuda, &options, &second));
    put(cuda, first, 0, 30000, 1);
    put(cuda, second, 0, 30000, 2);
    CHECK_OK(quire_cuda_get_range(cuda, second, &range));
    CHECK(range.page_offset);
    CHECK_OK(quire_cuda_export_fd(cuda, second, &descriptor));
    const quire_vulkan_import import = {.type = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
                                        .descriptor = descriptor, /* owned by Vulkan from then on */
                                        .size = range.padded_size};
    CHECK_OK(quire_vulkan_import_range(vulkan, &import, &page));
    CHECK_OK(quire_vulkan_get_range(vulkan, page, &seen));
    CHECK(seen.size == range.padded_size && !seen.memory_offset);
    expect(vulkan, page, 0, 30000, 1);
    expect(vulkan, page, range.page_offset, 30000, 2);
    put(vulkan, page, range.page_offset, 30000, 3);
    expect(cuda, second, 0, 30000, 3);
    expect(cuda, first, 0, 30000, 1);
    CHECK_OK(quire_free(vulkan, page));
    expect(cuda, second, 0, 30000, 3);
    CHECK_OK(quire_free(cuda, first));
    CHECK_OK(quire_free(cuda, second));
    CHECK_OK(quire_memory_destroy(&cuda));
    CHECK_OK(quire_memory_destroy(&vulkan));
}

int main(int argc, char **argv)
{
    const char *library = NULL;
    bool must = false;
    for (int i = 1; i < argc; i++) {
        must |= !strcmp(argv[i], "--must");
        if (!strcmp(argv[i], "--cuda") && i + 1 < argc)
            library = argv[i + 1];
    }
    const char *reason = open_both(library);
    if (reason && must)
        check_failed(__FILE__, __LINE__, "%s", reason);
    if (reason) {
        plain_skip("Vulkan and CUDA on one GPU", reason);
        return plain_end();
    }
    plain_case("buffers of Vulkan are seen and written by CUDA at the same offsets",
               vulkan_in_cuda);
    plain_case("memory of another GPU is refused by name", another_gpu);
    plain_case("ranges of CUDA are seen and written by Vulkan at the same offsets", cuda_in_vulkan);
    CHECK_OK(quire_device_destroy(&gpu.cuda));
    CHECK_OK(quire_device_destroy(&gpu.vulkan));
    return plain_end();
}
