/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_memories.c - the subjects of bench_vulkan (see vulkan_memories.h), and quire's functions:
 * raw ranges, buffers by quire's options and by Vulkan's create info, images, and uploads, which
 * are buffers that are mapped, written and flushed.
 */
#include "bench/vulkan_memories.h"

#include <stdlib.h>
#include <string.h>

#include "bench/mock_device.h"
#include "bench/mock_driver.h"
#include "quire/vulkan.h"
#include "src/base/result.h"

bool vulkan_is_mocked;

quire_result vulkan_open(quire_device **device)
{
    static const quire_vulkan_options mock = {.get_instance_proc_addr =
                                                  mock_get_instance_proc_addr};
    return quire_vulkan_open(vulkan_is_mocked ? &mock : NULL, device);
}

const char *vulkan_absent(const subject *self)
{
    quire_device *device = NULL;
    (void)self;
    if (vulkan_open(&device))
        return quire_last_error();
    quire_device_destroy(&device);
    return NULL;
}

/* ---- what both projects are asked for ------------------------------------------------------- */

quire_intent vulkan_intent(const subject *self)
{
    bool upload = ((const vulkan_how *)self->how)->upload;
    return upload ? QUIRE_INTENT_UPLOAD : QUIRE_INTENT_DEVICE;
}

/* The usage is quire's default. */
VkBufferCreateInfo vulkan_buffer_info(uint64_t size)
{
    return (VkBufferCreateInfo){
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = size,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT,
    };
}

VkImageCreateInfo vulkan_image_info(uint64_t size)
{
    const uint32_t row = IMAGE_WIDTH * TEXEL_SIZE;
    return (VkImageCreateInfo){
        .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
        .imageType = VK_IMAGE_TYPE_2D,
        .format = VK_FORMAT_R8G8B8A8_UNORM,
        .extent = {IMAGE_WIDTH, (uint32_t)((size + row - 1) / row), 1},
        .mipLevels = 1,
        .arrayLayers = 1,
        .samples = VK_SAMPLE_COUNT_1_BIT,
        .usage = VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT,
    };
}

/* ---- quire ---------------------------------------------------------------------------------- */

typedef struct quire_state {
    quire_device *device;
    quire_memory *memory;
} quire_state;

static void destroy_quire(void *user)
{
    quire_state *state = user;
    quire_memory_destroy_all(&state->memory);
    quire_device_destroy(&state->device);
    free(state);
}

/* Counts pages in the_driver, where the mock driver counts its blocks. */
static void count_page(void *user, quire_memory *memory, const quire_event *event)
{
    (void)user;
    (void)memory;
    qi_atomic_add_u64(event->kind == QUIRE_EVENT_PAGE_MADE ? &the_driver.made : &the_driver.given,
                      1);
}

static void *create_quire(const subject *self, const subject_arena *arena)
{
    static const quire_hook hook = {.event = count_page,
                                    .kinds = QUIRE_EVENT_PAGE_MADE | QUIRE_EVENT_PAGE_GONE};
    const quire_intent intent = vulkan_intent(self);
    const quire_memory_options options = {
        .kind.intent = intent, .fit.granule = arena->unit, .pages.page_size = arena->size};
    quire_state *state = calloc(1, sizeof *state);
    if (!state)
        return NULL;
    if (!vulkan_open(&state->device) &&
        !quire_memory_create(state->device, &options, &state->memory) &&
        (vulkan_is_mocked || !quire_memory_set_hook(state->memory, &hook)))
        return state;
    destroy_quire(state);
    return NULL;
}

static uint64_t allocate_range(void *user, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    const quire_state *state = user;
    quire_allocation_options options = {.size = size, .alignment = alignment};
    quire_allocation allocation;
    *offset = 0; /* unused by these benchmarks */
    qi_ignore(quire_allocate(state->memory, &options, &allocation));
    return allocation.id; /* 0 on failure */
}

static uint64_t create_buffer(void *user, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    const quire_state *state = user;
    quire_buffer_options options = {.size = size, .alignment = alignment};
    quire_buffer buffer;
    *offset = 0;
    qi_ignore(quire_buffer_create(state->memory, &options, &buffer));
    return buffer.allocation.id;
}

static uint64_t create_by_info(void *user, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    const quire_state *state = user;
    const VkBufferCreateInfo info = vulkan_buffer_info(size);
    const quire_vulkan_object_options options = {.alignment = alignment};
    quire_buffer buffer;
    *offset = 0;
    qi_ignore(quire_vulkan_buffer_create(state->memory, &info, &options, &buffer));
    return buffer.allocation.id;
}

static uint64_t create_image(void *user, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    const quire_state *state = user;
    const VkImageCreateInfo info = vulkan_image_info(size);
    const quire_vulkan_object_options options = {.alignment = alignment};
    quire_image image;
    *offset = 0;
    qi_ignore(quire_vulkan_image_create(state->memory, &info, &options, &image));
    return image.allocation.id;
}

static void release_quire(void *user, uint64_t handle)
{
    const quire_state *state = user;
    quire_free(state->memory, (quire_allocation){handle});
}

/* Returns 0 on any failure, which the harness reports. */
static uint64_t create_upload(void *user, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    const quire_state *state = user;
    uint64_t made = create_by_info(user, size, alignment, offset);
    quire_allocation allocation = {made};
    void *bytes = NULL;
    if (!made || quire_map(state->memory, allocation, &bytes))
        return 0;
    memset(bytes, 1, UPLOADED);
    return quire_flush(state->memory, allocation, 0, UPLOADED) ? 0 : made;
}

static void release_upload(void *user, uint64_t handle)
{
    const quire_state *state = user;
    quire_unmap(state->memory, (quire_allocation){handle});
    release_quire(user, handle);
}

/* ---- subjects ------------------------------------------------------------------------------- */

static const char *vma_absent(const subject *self)
{
#ifdef BENCH_HAS_VMA
    return vulkan_absent(self);
#else
    (void)self;
    return "vk_mem_alloc.h was not found when bench_vulkan was built";
#endif
}

#define QUIRE(title, is_upload, make, end)                                                         \
    {                                                                                              \
        .name = (title), .kind = SUBJECT_MEMORY,                                                   \
        .how = &(const vulkan_how){.upload = (is_upload)}, .absent = vulkan_absent,                \
        .create = create_quire, .destroy = destroy_quire, .allocate = (make), .free = (end)        \
    }
#define VMA(title, flag, is_upload, make, end)                                                     \
    {                                                                                              \
        .name = (title), .kind = SUBJECT_PEER,                                                     \
        .how = &(const vulkan_how){.memory.strategy = (flag), .upload = (is_upload)},              \
        .absent = vma_absent, .create = create_vma, .destroy = destroy_vma, .allocate = (make),    \
        .free = (end)                                                                              \
    }
/* VMA with its default strategy and with the faster one */
#define VMA_TWICE(is_upload, make, end)                                                            \
    VMA("VMA", 0, is_upload, make, end), VMA("VMA, min time", VMA_MIN_TIME, is_upload, make, end)

static const subject RANGES[] = {
    QUIRE("quire", false, allocate_range, release_quire),
    VMA_TWICE(false, allocate_vma, release_vma),
};

static const subject BUFFERS[] = {
    QUIRE("quire", false, create_buffer, release_quire),
    QUIRE("quire, create info", false, create_by_info, release_quire),
    VMA_TWICE(false, create_vma_buffer, destroy_vma_buffer),
};

static const subject IMAGES[] = {
    QUIRE("quire", false, create_image, release_quire),
    VMA_TWICE(false, create_vma_image, destroy_vma_image),
};

static const subject UPLOADS[] = {
    QUIRE("quire", true, create_upload, release_upload),
    VMA_TWICE(true, create_vma_upload, destroy_vma_buffer),
};

#define PART(title, list)                                                                          \
    {                                                                                              \
        .name = (title), .subjects = (list), .count = sizeof(list) / sizeof *(list)                \
    }

const vulkan_part VULKAN_PARTS[] = {
    PART("ranges", RANGES),
    PART("buffers", BUFFERS),
    PART("images", IMAGES),
    PART("uploads", UPLOADS),
};

const size_t VULKAN_PART_COUNT = sizeof VULKAN_PARTS / sizeof *VULKAN_PARTS, VULKAN_BUFFERS = 1;
