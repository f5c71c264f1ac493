/*
 * vulkan_stream_end.c - destruction of streams that wait for a value that the caller has not
 * signalled: it takes at most a second, and destroys nothing that the device still uses.
 */
#include "src/base/system.h"
#include "src/core/device/device.h"
#include "tests/support/unit.h"
#include "tests/support/vulkan_bench.h"
#include "tests/support/vulkan_timeline.h"

#define KIB UINT64_C(1024)
#define SECOND UINT64_C(1000000000)

static vulkan_bench b;
static quire_device *device;
static quire_memory *memory;
static quire_vulkan_handles handles;

static void begin(void)
{
    vulkan_bench_start(&b, NULL, 0);
    device = b.device;
    memory = vulkan_bench_memory(&b, &(quire_memory_options){.pages = {.page_size = 64 * KIB}});
    CHECK_OK(quire_vulkan_get_handles(device, &handles));
}

static quire_stream *wrap(VkSemaphore semaphore)
{
    quire_stream *stream = NULL;
    CHECK_OK(quire_vulkan_stream_wrap(
        device, &(quire_vulkan_stream_options){.semaphore = semaphore}, &stream));
    return stream;
}

/* A stream with an own semaphore whose work waits for value 3 of the caller's semaphore. */
static quire_stream *make_stuck(quire_stream *theirs)
{
    quire_stream *stream = NULL;
    quire_point point;
    CHECK_OK(quire_stream_create(device, NULL, &stream));
    CHECK_OK(quire_stream_wait(stream, &(quire_point){theirs, 3}));
    CHECK_OK(quire_stream_mark(stream, &point));
    return stream;
}

/* Freeing a page also destroys deferred objects that are no longer in use. */
static void give_a_page_back(void)
{
    quire_allocation made;
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = KIB}, &made));
    CHECK_OK(quire_free(memory, made));
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
}

/* Its semaphore and the caller's exist until the value is signalled. */
UNIT(vulkan_stream_end, of_a_stream_that_cannot_go_on_does_not_sleep_for_ever)
{
    begin();
    VkSemaphore semaphore = timeline_make(&handles);
    quire_stream *theirs = wrap(semaphore), *stuck = make_stuck(theirs);
    uint64_t before = qi_clock();
    CHECK_OK(quire_stream_destroy(&stuck));
    CHECK(qi_clock() - before >= SECOND);
    CHECK_OK(quire_stream_destroy(&theirs));
    give_a_page_back();
    CHECK_EQ(fv_live(b.driver, FV_SEMAPHORE), 2); /* quire's, in use, and the caller's */
    timeline_signal(&handles, semaphore, 3);
    TIMELINE_CALL(&handles, vkDeviceWaitIdle)(handles.device);
    give_a_page_back();
    CHECK_EQ(fv_live(b.driver, FV_SEMAPHORE), 1);
    timeline_end(&handles, semaphore);
    vulkan_bench_end(&b);
}

UNIT(vulkan_stream_end, of_a_memory_does_not_sleep_for_ever_either)
{
    begin();
    VkSemaphore semaphore = timeline_make(&handles);
    quire_stream *theirs = wrap(semaphore), *stuck = make_stuck(theirs);
    quire_allocation made[2];
    quire_memory *ending = NULL;
    CHECK_OK(quire_memory_create(device, NULL, &ending));
    for (int i = 0; i < 2; i++)
        CHECK_OK(quire_allocate(ending, &(quire_allocation_options){.size = KIB}, &made[i]));
    CHECK_OK(quire_free_after_point(ending, made[0], &(quire_point){theirs, 5}));
    CHECK_OK(quire_free_on_stream(ending, made[1], stuck));
    device->stall_timeout = SECOND / 20;
    quire_memory_destroy_all(&ending);
    CHECK(!ending);
    CHECK_OK(quire_stream_destroy(&stuck)); /* it is destroyed with the device */
    CHECK_OK(quire_stream_destroy(&theirs));
    timeline_signal(&handles, semaphore, 3);
    TIMELINE_CALL(&handles, vkDeviceWaitIdle)(handles.device);
    timeline_end(&handles, semaphore);
    vulkan_bench_end(&b);
}
