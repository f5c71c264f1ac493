/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_families.c - buffers that several queue families use: quire_vulkan_settings.queue_families
 * on the fake driver, which has three families and knows who may read what another has written.
 */
#include "tests/support/unit.h"
#include "tests/support/vulkan_bench.h"

#define INVALID QUIRE_ERROR_INVALID_ARGUMENT

enum { SIZE = 4096 };

static const VkQueueFlags TRANSFER = VK_QUEUE_TRANSFER_BIT;

/* A device with a queue of quire's in family 1, and one of the program's in family 2. */
static bool open_two(vulkan_bench *b, const uint32_t *families, uint32_t count)
{
    vulkan_bench_begin(b, NULL, 0);
    return vulkan_bench_open_with(
        b, (quire_vulkan_options){
               .queues = &TRANSFER,
               .queue_count = 1,
               .settings = {.queue_families = families, .queue_family_count = count}});
}

/* Quire's queue writes a range, and a stream on the program's queue reads it: through the buffer
   over the page, or through a dedicated buffer of quire's options. */
static void write_and_read_elsewhere(vulkan_bench *b, bool dedicated)
{
    const quire_buffer_options of_buffer = {.size = SIZE, .dedicated = true};
    quire_buffer buffer;
    quire_vulkan_queue queue;
    quire_stream *stream = NULL;
    quire_allocation from, to;
    quire_memory *memory =
        vulkan_bench_memory(b, &(quire_memory_options){.kind.intent = QUIRE_INTENT_DEVICE});
    const quire_allocation_options options = {.size = SIZE};
    CHECK_OK(quire_vulkan_get_queue(b->device, 0, &queue));
    CHECK_OK(quire_vulkan_stream_wrap(b->device, &(quire_vulkan_stream_options){.queue = queue},
                                      &stream));
    CHECK_OK(quire_allocate(memory, &options, &from));
    CHECK_OK(quire_allocate(memory, &options, &to));
    if (dedicated) {
        CHECK_OK(quire_free(memory, from));
        CHECK_OK(quire_buffer_create(memory, &of_buffer, &buffer));
        from = buffer.allocation;
    }
    CHECK_OK(quire_fill(memory, from, &(quire_fill_options){.value = 7}, NULL));
    CHECK_OK(quire_copy(&(quire_copy_options){.from = {.memory = memory, .allocation = from},
                                              .to = {.memory = memory, .allocation = to},
                                              .size = SIZE,
                                              .stream = stream},
                        NULL));
    CHECK_OK(quire_stream_destroy(&stream));
    CHECK_OK(quire_free(memory, from));
    CHECK_OK(quire_free(memory, to));
}

VULKAN_UNIT(vulkan_families, exclusive_buffers_need_a_transfer_of_ownership)
{
    CHECK(open_two(b, NULL, 0));
    write_and_read_elsewhere(b, false);
    CHECK_EQ(fv_message_count(b->driver, FV_ERROR), 1);
    CHECK_HAS(fv_message(b->driver, 0), "belongs to family");
    fv_forget(b->driver);
}

VULKAN_UNIT_EACH(vulkan_families, shared_buffers_need_none, i, 3)
{
    static const uint32_t other[] = {2}, both[] = {2, 0, 1};
    const struct {
        const uint32_t *families;
        uint32_t count;
    } settings[] = {{NULL, QUIRE_VULKAN_ALL_FAMILIES}, {other, 1}, {both, 3}};
    CHECK(open_two(b, settings[i].families, settings[i].count));
    write_and_read_elsewhere(b, false);
    write_and_read_elsewhere(b, true);
}

/* One family stays exclusive: Vulkan forbids to share with one alone. */
VULKAN_UNIT_ON(vulkan_families, one_family_is_exclusive, vulkan_bench_begin(b, NULL, 0))
{
    static const uint32_t zero[] = {0};
    quire_buffer buffer;
    quire_memory *memory = NULL;
    CHECK(vulkan_bench_open_with(
        b, (quire_vulkan_options){.queue_flags = VK_QUEUE_GRAPHICS_BIT,
                                  .settings = {.queue_families = zero, .queue_family_count = 1}}));
    CHECK_OK(quire_device_buffer_create(b->device, NULL, &(quire_buffer_options){.size = SIZE},
                                        &memory, &buffer));
    CHECK_OK(quire_device_free(b->device, buffer.allocation));
}

VULKAN_UNIT_EACH(vulkan_families, families_that_cannot_be_are_refused, i, 4)
{
    static const uint32_t absent[] = {0, 3}, twice[] = {1, 2, 1};
    static const uint32_t many[QUIRE_VULKAN_MAX_FAMILIES + 1];
    const struct {
        const uint32_t *families;
        uint32_t count;
        const char *says;
    } wrong[] = {
        {absent, 2,
         "one of queue_families is queue family 3: the families of the device are below 3"},
        {twice, 3, "queue_families has 1 twice"},
        {many, QUIRE_VULKAN_MAX_FAMILIES + 1, "queue_family_count is 17"},
        {NULL, 2, "listed in queue_families"},
    };
    CHECK(!open_two(b, wrong[i].families, wrong[i].count));
    CHECK_EQ(b->result, INVALID);
    CHECK_HAS(quire_last_error(), wrong[i].says);
}

/* A wrapped device has the list of its queues only in the create info. */
VULKAN_UNIT_ON(vulkan_families, all_families_of_a_wrapped_device_need_its_create_info,
               vulkan_bench_start(b, NULL, 0))
{
    quire_device *device;
    const quire_vulkan_handles h = vulkan_bench_handles(b);
    quire_vulkan_wrap_options options = vulkan_bench_wrap(b);
    options.queue = (quire_vulkan_queue){.queue = h.queue, .family = 3};
    options.settings.queue_family_count = QUIRE_VULKAN_ALL_FAMILIES;
    CHECK_FAILS(quire_vulkan_wrap(&options, &device), INVALID);
    CHECK_HAS(quire_last_error(), "queue.family is queue family 3: the families of the device are");
    options.queue.family = h.queue_family;
    options.sparse_queue = (quire_vulkan_queue){.queue = h.queue, .family = 7};
    CHECK_FAILS(quire_vulkan_wrap(&options, &device), INVALID);
    CHECK_HAS(quire_last_error(), "sparse_queue.family is queue family 7:");
    options.sparse_queue = (quire_vulkan_queue){0};
    CHECK_FAILS(quire_vulkan_wrap(&options, &device), INVALID);
    CHECK_HAS(quire_last_error(), "QUIRE_VULKAN_ALL_FAMILIES needs the queues of device_info");
    const float priority = 1.0F;
    const VkDeviceQueueCreateInfo queues[] = {
        {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
         .queueFamilyIndex = 0,
         .queueCount = 1,
         .pQueuePriorities = &priority},
        {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
         .queueFamilyIndex = 2,
         .queueCount = 1,
         .pQueuePriorities = &priority},
    };
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .queueCreateInfoCount = 2,
                                     .pQueueCreateInfos = queues};
    options.device_info = &info;
    quire_buffer buffer;
    quire_memory *memory = NULL;
    CHECK_OK(quire_vulkan_wrap(&options, &device));
    CHECK_OK(quire_device_buffer_create(device, NULL, &(quire_buffer_options){.size = SIZE},
                                        &memory, &buffer));
    CHECK_OK(quire_device_free(device, buffer.allocation));
    CHECK_OK(quire_device_destroy(&device));
}
