/*
 * vulkan_open_queues.c - the queues of a device of quire's own: those that the program wishes, and
 * those of quire. The fake driver has two queues in each of three families, and with
 * FV_SPARSE_APART in a fourth one that only binds sparse objects.
 */
#include "tests/support/unit.h"
#include "tests/support/vulkan_bench.h"
#include "tests/support/vulkan_native.h"

#define INVALID QUIRE_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof *(array)))

static void submit_nothing(quire_device *device, VkQueue queue)
{
    quire_vulkan_handles h;
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO};
    CHECK_OK(quire_vulkan_get_handles(device, &h));
    PFN_vkQueueSubmit submit = VULKAN_CALL(h, vkQueueSubmit);
    CHECK_EQ(submit(queue, 1, &info, VK_NULL_HANDLE), 0);
}

UNIT(vulkan_open_queues, further_queues_are_of_the_smallest_family)
{
    static const VkQueueFlags wishes[] = {VK_QUEUE_TRANSFER_BIT, VK_QUEUE_GRAPHICS_BIT, 0,
                                          VK_QUEUE_COMPUTE_BIT, VK_QUEUE_TRANSFER_BIT};
    static const uint32_t families[] = {2, 0, 2, 1, 1};
    vulkan_bench b;
    quire_vulkan_queue queues[COUNT(wishes)], none;
    quire_vulkan_handles h;
    vulkan_bench_begin(&b, NULL, 0);
    CHECK(vulkan_bench_open_with(
        &b, (quire_vulkan_options){.queues = wishes, .queue_count = COUNT(wishes)}));
    CHECK_OK(quire_vulkan_get_handles(b.device, &h));
    for (uint32_t i = 0; i < COUNT(wishes); i++) {
        CHECK_OK(quire_vulkan_get_queue(b.device, i, &queues[i]));
        CHECK_EQ(queues[i].family, families[i]);
        CHECK(queues[i].queue && queues[i].queue != h.queue);
        CHECK(!queues[i].lock && !queues[i].unlock);
        for (uint32_t k = 0; k < i; k++)
            CHECK(queues[i].queue != queues[k].queue);
        submit_nothing(b.device, queues[i].queue);
    }
    CHECK_FAILS(quire_vulkan_get_queue(b.device, COUNT(wishes), &none), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK(!none.queue);
    CHECK_FAILS(quire_vulkan_get_queue(b.device, UINT32_MAX, &none), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_FAILS(quire_vulkan_get_queue(b.device, 0, NULL), INVALID);
    /* a stream of quire on one of them */
    quire_stream *stream = NULL;
    quire_point point;
    CHECK_OK(quire_vulkan_stream_wrap(b.device, &(quire_vulkan_stream_options){.queue = queues[0]},
                                      &stream));
    CHECK_OK(quire_stream_mark(stream, &point));
    CHECK_OK(quire_stream_destroy(&stream));
    vulkan_bench_end(&b);
}

static void expect_refused(vulkan_bench *b, quire_vulkan_options options, quire_result result,
                           const char *part)
{
    CHECK(!vulkan_bench_open_with(b, options));
    CHECK_EQ(b->result, result);
    CHECK_HAS(quire_last_error(), part);
    CHECK_EQ(fv_live(b->driver, FV_INSTANCE), 0);
}

UNIT(vulkan_open_queues, a_queue_that_does_not_exist_is_named)
{
    const VkQueueFlags video = 0x20; /* VK_QUEUE_VIDEO_DECODE_BIT_KHR */
    const VkQueueFlags graphics[] = {VK_QUEUE_GRAPHICS_BIT, VK_QUEUE_GRAPHICS_BIT,
                                     VK_QUEUE_GRAPHICS_BIT};
    static const VkQueueFlags many[QUIRE_VULKAN_MAX_QUEUES + 1];
    vulkan_bench b;
    vulkan_bench_begin(&b, NULL, 0);
    expect_refused(&b, (quire_vulkan_options){.queue_flags = video}, UNSUPPORTED,
                   "queue_flags 0x20");
    expect_refused(&b, (quire_vulkan_options){.queues = &video, .queue_count = 1}, UNSUPPORTED,
                   "queues[0]: none with the flags 0x20");
    /* the family has two */
    expect_refused(&b, (quire_vulkan_options){.queues = graphics, .queue_count = 3}, UNSUPPORTED,
                   "queues[2]");
    expect_refused(&b,
                   (quire_vulkan_options){
                       .queue_flags = VK_QUEUE_GRAPHICS_BIT, .queues = graphics, .queue_count = 2},
                   UNSUPPORTED, "queues[1]");
    expect_refused(&b, (quire_vulkan_options){.queue_count = 1}, INVALID, "queues is null");
    expect_refused(
        &b, (quire_vulkan_options){.queues = many, .queue_count = QUIRE_VULKAN_MAX_QUEUES + 1},
        INVALID, "queue_count is 17: 16 at most");
    CHECK(vulkan_bench_open_with(&b, (quire_vulkan_options){.queue_flags = VK_QUEUE_GRAPHICS_BIT,
                                                            .queues = graphics,
                                                            .queue_count = 1}));
    vulkan_bench_end(&b);
}

UNIT(vulkan_open_queues, sparse_queue_and_wishes_share_a_family)
{
    static const VkQueueFlags wishes[] = {VK_QUEUE_SPARSE_BINDING_BIT};
    vulkan_bench b;
    quire_vulkan_queue queue;
    vulkan_bench_begin(&b, NULL, FV_SPARSE_APART);
    CHECK(vulkan_bench_open_with(&b, (quire_vulkan_options){.queues = wishes, .queue_count = 1}));
    const quire_vulkan_handles h = vulkan_bench_handles(&b);
    CHECK_OK(quire_vulkan_get_queue(b.device, 0, &queue));
    CHECK_EQ(queue.family, h.sparse_family);
    CHECK(queue.queue != h.sparse_queue);
    vulkan_bench_end(&b);
}

/* ---- a family that only one wish can use ----------------------------------------------------- */

/* Opens a device with these queues, and checks their families. */
static void open_with_queues(vulkan_bench *b, const VkQueueFlags *wishes, const uint32_t *families,
                             uint32_t count, quire_vulkan_handles *h)
{
    vulkan_bench_begin(b, NULL, FV_SPARSE_APART);
    CHECK(
        vulkan_bench_open_with(b, (quire_vulkan_options){.queues = wishes, .queue_count = count}));
    CHECK_OK(quire_vulkan_get_handles(b->device, h));
    for (uint32_t i = 0; i < count; i++) {
        quire_vulkan_queue queue;
        CHECK_OK(quire_vulkan_get_queue(b->device, i, &queue));
        CHECK_EQ(queue.family, families[i]);
        CHECK(queue.queue && queue.queue != h->queue && queue.queue != h->sparse_queue);
        submit_nothing(b->device, queue.queue);
    }
    submit_nothing(b->device, h->queue);
}

UNIT(vulkan_open_queues, a_wish_that_has_a_choice_leaves_the_only_family_to_another)
{
    static const VkQueueFlags wishes[] = {0, 0, 0, 0, VK_QUEUE_SPARSE_BINDING_BIT};
    static const uint32_t families[] = {2, 2, 1, 1, 3};
    vulkan_bench b;
    quire_vulkan_handles h;
    open_with_queues(&b, wishes, families, COUNT(wishes), &h);
    CHECK_EQ(h.queue_family, 0);
    CHECK_EQ(h.sparse_family, 3);
    CHECK(h.sparse_queue != NULL);
    vulkan_bench_end(&b);
}

/* The device's queue only needs to compute. */
UNIT(vulkan_open_queues, the_queue_of_the_device_leaves_the_only_family_to_a_wish)
{
    static const VkQueueFlags wishes[] = {VK_QUEUE_GRAPHICS_BIT, VK_QUEUE_GRAPHICS_BIT};
    static const uint32_t families[] = {0, 0};
    vulkan_bench b;
    quire_vulkan_handles h;
    open_with_queues(&b, wishes, families, COUNT(wishes), &h);
    CHECK_EQ(h.queue_family, 1);
    CHECK_EQ(h.sparse_family, 3);
    CHECK(h.sparse_queue != NULL);
    vulkan_bench_end(&b);
}

UNIT(vulkan_open_queues, wishes_come_before_the_sparse_queue)
{
    static const VkQueueFlags wishes[] = {VK_QUEUE_SPARSE_BINDING_BIT, VK_QUEUE_SPARSE_BINDING_BIT};
    static const uint32_t families[] = {3, 3};
    vulkan_bench b;
    quire_vulkan_handles h;
    open_with_queues(&b, wishes, families, COUNT(wishes), &h);
    CHECK(h.sparse_queue == NULL);
    vulkan_bench_end(&b);
}
