/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_stream.c - streams of the Vulkan backend on the fake driver: points, order, work, the
 * caller's semaphores and queues, destruction, and the loss of the device.
 */
#include <pthread.h>

#include "src/base/system.h"
#include "src/core/device/device.h"
#include "tests/support/stream_steps.h"
#include "tests/support/unit.h"
#include "tests/support/vulkan/fixture.h"
#include "tests/support/vulkan_bench.h"
#include "tests/support/vulkan_timeline.h"

#define INVALID QUIRE_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED
#define BUSY QUIRE_ERROR_BUSY
#define KIB UINT64_C(1024)
#define SECOND UINT64_C(1000000000)

static vulkan_bench b;
static quire_device *device;
static quire_memory *memory;
static quire_vulkan_handles handles;
static unsigned char in[1000], out[1000];

static void begin_with(const char *layout, uint32_t flags)
{
    vulkan_bench_start(&b, layout, flags);
    device = b.device;
    memory = vulkan_bench_memory(&b, &(quire_memory_options){.pages = {.page_size = 64 * KIB}});
    CHECK_OK(quire_vulkan_get_handles(device, &handles));
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (unsigned char)(i * 7 + 3);
    memset(out, 0, sizeof out);
}

static void begin(void)
{
    begin_with(NULL, 0);
}

#define CASE(name, begin) UNIT_WITHIN(vulkan_stream, name, begin, vulkan_bench_end(&b))

static quire_stream *make(void)
{
    quire_stream *stream = NULL;
    CHECK_OK(quire_stream_create(device, NULL, &stream));
    return stream;
}

static quire_allocation allocate(uint64_t size)
{
    quire_allocation made;
    CHECK_OK(
        quire_allocate(memory, &(quire_allocation_options){.size = size, .alignment = 4}, &made));
    return made;
}

static quire_copy_job job_of(const quire_native *to, const quire_native *from, uint64_t size)
{
    return (quire_copy_job){.to = &to->page,
                            .to_offset = to->offset,
                            .from = &from->page,
                            .from_offset = from->offset,
                            .size = size};
}

CASE(what_it_cannot_do_on_a_stream_is_unsupported, begin())
{
    quire_stream *stream = make();
    quire_allocation first = allocate(1000);
    quire_native one = place_of(memory, first);
    quire_copy_job to_host = job_of(&one, &one, 10), to_other = to_host;
    to_host.to = NULL, to_host.host_to = out;
    to_other.from_state = &b; /* of another device */
    CHECK_FAILS(copy_job(device, stream, to_host), UNSUPPORTED);
    CHECK_FAILS(copy_job(device, stream, to_other), UNSUPPORTED);
    CHECK_FAILS(fill_range(device, stream, &one, 10, 1), UNSUPPORTED);
    one.offset++;
    CHECK_FAILS(fill_range(device, stream, &one, 8, 1), UNSUPPORTED);
    CHECK_EQ(fv_calls(b.driver, "vkQueueSubmit"), 0);
    CHECK_OK(quire_stream_destroy(&stream));
}

CASE(points_follow_each_other_and_commands_are_used_again, begin())
{
    quire_point last = {0};
    quire_stream *stream = make();
    quire_native page = range_of(memory, 1000);
    for (int i = 0; i < 100; i++) {
        CHECK_OK(fill_range(device, stream, &page, 1000, (uint8_t)i));
        quire_point point = mark(stream);
        CHECK(point.value > last.value);
        CHECK_OK(quire_point_await(&point, QUIRE_FOREVER));
        CHECK(has_passed(point) && has_passed(last));
        last = point;
    }
    CHECK_EQ(fv_live(b.driver, FV_COMMAND_POOL), 1);
    CHECK_OK(quire_stream_destroy(&stream));
    CHECK_EQ(fv_live(b.driver, FV_COMMAND_POOL), 0);
}

/* ---- the caller's semaphore ----------------------------------------------------------------- */

static quire_stream *wrap(VkSemaphore semaphore)
{
    quire_stream *stream = NULL;
    CHECK_OK(quire_vulkan_stream_wrap(
        device, &(quire_vulkan_stream_options){.semaphore = semaphore, .name = "theirs"}, &stream));
    return stream;
}

CASE(a_semaphore_of_the_callers_is_announced_to, begin())
{
    quire_point point;
    VkSemaphore told = VK_NULL_HANDLE;
    uint64_t released = 0;
    VkSemaphore semaphore = timeline_make(&handles);
    quire_stream *stream = wrap(semaphore), *own = make();
    quire_allocation live = allocate(4096);
    quire_native page = place_of(memory, live);
    CHECK_OK(quire_vulkan_stream_get(stream, &told));
    CHECK(told == semaphore);
    CHECK_FAILS(quire_stream_mark(stream, &point), UNSUPPORTED);
    CHECK_OK(quire_stream_announce(stream, 5));
    point = mark(stream);
    CHECK_EQ(point.value, 5);
    CHECK_FAILS(quire_point_await(&point, SECOND / 100), BUSY);
    CHECK_EQ(fill_range(device, stream, &page, 1000, 1), UNSUPPORTED);
    CHECK_EQ(copy_job(device, stream, job_of(&page, &page, 4)), UNSUPPORTED);
    CHECK_OK(fill_range(device, own, &page, 4096, 1));
    quire_point other = mark(own);
    CHECK_OK(quire_stream_wait(stream, &(quire_point){0}));
    if (!has_passed(other))
        CHECK_FAILS(quire_stream_wait(stream, &other), UNSUPPORTED);
    CHECK_OK(quire_free_on_stream(memory, live, stream));
    CHECK_OK(quire_collect(memory, &released));
    CHECK_EQ(released, 0);
    timeline_signal(&handles, semaphore, 4);
    CHECK(!has_passed(point));
    timeline_signal(&handles, semaphore, 7);
    CHECK(has_passed(point));
    CHECK_OK(quire_collect(memory, &released));
    CHECK_EQ(released, 4096);
    CHECK_OK(quire_stream_destroy(&stream));
    CHECK_OK(quire_stream_destroy(&own));
    timeline_end(&handles, semaphore);
}

CASE(own_work_waits_for_the_callers_value, begin())
{
    VkSemaphore semaphore = timeline_make(&handles);
    quire_stream *theirs = wrap(semaphore), *stream = make();
    quire_allocation first = allocate(1000);
    quire_native page = place_of(memory, first);
    CHECK_OK(quire_stream_announce(theirs, 3));
    quire_point awaited = mark(theirs);
    CHECK_OK(quire_stream_wait(stream, &awaited));
    CHECK_OK(fill_range(device, stream, &page, 1000, 0x77));
    quire_point point = mark(stream);
    CHECK(!has_passed(point));
    uint64_t before = qi_clock();
    CHECK_FAILS(quire_point_await(&point, SECOND / 50), BUSY);
    CHECK(qi_clock() - before >= SECOND / 50);
    timeline_signal(&handles, semaphore, 3);
    CHECK_OK(quire_point_await(&point, QUIRE_FOREVER));
    CHECK_OK(quire_read(memory, first, 0, out, 1000));
    CHECK_EQ(out[500], 0x77);
    uint64_t submits = fv_calls(b.driver, "vkQueueSubmit");
    CHECK_OK(quire_stream_wait(stream, &awaited)); /* it has passed */
    CHECK_EQ(fv_calls(b.driver, "vkQueueSubmit"), submits);
    CHECK_OK(quire_stream_destroy(&stream));
    CHECK_OK(quire_stream_destroy(&theirs));
    timeline_end(&handles, semaphore);
}

/* A submission that waits for a stream keeps the semaphore alive until it is complete, in any order
   of destruction. */
UNIT(vulkan_stream, a_stream_can_end_before_those_that_were_ordered_behind_it)
{
    for (int i = 0; i < 2; i++) {
        begin();
        VkSemaphore semaphore = timeline_make(&handles);
        quire_stream *theirs = wrap(semaphore), *first = make(), *second = make();
        CHECK_OK(quire_stream_announce(theirs, 1));
        quire_point gate = mark(theirs);
        CHECK_OK(quire_stream_wait(first, &gate));
        quire_point point = mark(first);
        CHECK_OK(quire_stream_wait(second, &point));
        CHECK(!has_passed(point));
        timeline_signal(&handles, semaphore, 1);
        CHECK_OK(quire_stream_destroy(i ? &first : &second));
        CHECK_EQ(fv_live(b.driver, FV_SEMAPHORE), i ? 3 : 2); /* `second` has not polled yet */
        CHECK_OK(quire_stream_destroy(i ? &second : &first));
        CHECK_EQ(fv_live(b.driver, FV_SEMAPHORE), 1);
        CHECK_OK(quire_stream_destroy(&theirs));
        timeline_end(&handles, semaphore);
        vulkan_bench_end(&b);
    }
}

/* ---- the end of a stream that waits for a value that is not signalled ------------------------ */

/* A stream with an own semaphore whose work waits for value 3 of the caller's semaphore. */
static quire_stream *make_stuck(quire_stream *theirs)
{
    quire_stream *stream = make();
    quire_point point;
    CHECK_OK(quire_stream_wait(stream, &(quire_point){theirs, 3}));
    CHECK_OK(quire_stream_mark(stream, &point));
    return stream;
}

/* Freeing a page also destroys deferred objects that are no longer in use. */
static void give_a_page_back(void)
{
    CHECK_OK(quire_free(memory, allocate(KIB)));
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
}

/* Its semaphore and the caller's exist until the value is signalled. */
CASE(the_end_of_a_stream_that_cannot_go_on_does_not_sleep_for_ever, begin())
{
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
}

CASE(the_end_of_its_memory_does_not_either, begin())
{
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
}

/* ---- the caller's queues -------------------------------------------------------------------- */

typedef struct counted {
    pthread_mutex_t mutex;
    uint64_t times;
} counted;

static void take(void *user)
{
    counted *c = user;
    pthread_mutex_lock(&c->mutex);
    c->times++;
}

static void give(void *user)
{
    pthread_mutex_unlock(&((counted *)user)->mutex);
}

static void wrap_fixture(const fv_fixture *f, quire_vulkan_queue queue, bool has_timeline)
{
    const VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
        .timelineSemaphore = VK_TRUE,
    };
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .apiVersion = VK_API_VERSION_1_3};
    const VkInstanceCreateInfo instance = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                           .pApplicationInfo = &application};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = has_timeline ? &timeline : NULL};
    const quire_vulkan_wrap_options options = {
        .instance = f->instance,
        .physical_device = f->physical,
        .device = f->device,
        .get_instance_proc_addr = f->get,
        .instance_info = &instance,
        .device_info = &info,
        .queue = queue,
        .settings = {.device = {.host_memory = unit_memory()}},
    };
    CHECK_OK(quire_vulkan_wrap(&options, &device));
    CHECK_OK(quire_memory_create(device, &(quire_memory_options){.pages = {.page_size = 64 * KIB}},
                                 &memory));
}

static void unwrap_fixture(fv_fixture *f)
{
    quire_memory_destroy_all(&memory);
    CHECK_OK(quire_device_destroy(&device));
    fv_fixture_close(f);
}

UNIT(vulkan_stream, a_stream_on_another_queue_takes_its_lock)
{
    static counted main = {PTHREAD_MUTEX_INITIALIZER, 0}, other = {PTHREAD_MUTEX_INITIALIZER, 0};
    fv_fixture f;
    quire_stream *streams[3] = {NULL};
    fv_fixture_open(&f, NULL, 0);
    quire_vulkan_stream_options options = {.queue = {.lock = take, .unlock = give, .user = &other}};
    FV(&f, vkGetDeviceQueue)(f.device, 0, 1, &options.queue.queue);
    const quire_vulkan_queue first = {
        .queue = f.queue, .lock = take, .unlock = give, .user = &main};
    wrap_fixture(&f, first, true);
    quire_native page = range_of(memory, 1000);
    CHECK_OK(quire_vulkan_stream_wrap(device, &options, &streams[0]));
    CHECK_OK(fill_range(device, streams[0], &page, 1000, 1));
    finish(streams[0]);
    CHECK_EQ(other.times, 2);
    CHECK_EQ(main.times, 0);
    options.queue = (quire_vulkan_queue){.queue = f.queue};
    CHECK_OK(quire_vulkan_stream_wrap(device, &options, &streams[1]));
    CHECK_OK(quire_stream_create(device, NULL, &streams[2]));
    finish(streams[1]);
    finish(streams[2]);
    CHECK_EQ(main.times, 2);
    for (int i = 0; i < 3; i++)
        CHECK_OK(quire_stream_destroy(&streams[i]));
    unwrap_fixture(&f);
}

/* ---- where there are no streams ------------------------------------------------------------- */

UNIT(vulkan_stream, without_timeline_semaphores_there_are_none)
{
    quire_stream *stream = NULL;
    begin_with("intel-2017", 0);
    CHECK_FAILS(quire_stream_create(device, NULL, &stream), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "timelineSemaphore");
    CHECK_OK(quire_stream_create(device, &(quire_stream_options){.capture = true}, &stream));
    CHECK_OK(quire_stream_destroy(&stream));
    vulkan_bench_end(&b);
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    wrap_fixture(&f, (quire_vulkan_queue){.queue = f.queue}, false);
    CHECK_FAILS(quire_stream_create(device, NULL, &stream), UNSUPPORTED);
    unwrap_fixture(&f);
}

CASE(the_extension_of_an_older_version_serves, begin_with("nvidia-11", 0))
{
    CHECK(handles.api_version < VK_API_VERSION_1_2);
    quire_stream *stream = make();
    finish(stream);
    CHECK_OK(quire_stream_destroy(&stream));
}

UNIT(vulkan_stream, without_a_queue_the_callers_semaphore_serves_alone)
{
    fv_fixture f;
    quire_stream *stream = NULL;
    fv_fixture_open(&f, NULL, 0);
    wrap_fixture(&f, (quire_vulkan_queue){.queue = NULL}, true);
    handles.device = f.device;
    CHECK_OK(quire_vulkan_get_handles(device, &handles));
    CHECK_FAILS(quire_stream_create(device, NULL, &stream), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "without a queue");
    VkSemaphore semaphore = timeline_make(&handles);
    stream = wrap(semaphore);
    CHECK_OK(quire_stream_announce(stream, 1));
    timeline_signal(&handles, semaphore, 1);
    CHECK(has_passed(mark(stream)));
    CHECK_OK(quire_stream_destroy(&stream));
    timeline_end(&handles, semaphore);
    unwrap_fixture(&f);
}

/* ---- loss and wrong use --------------------------------------------------------------------- */

CASE(a_lost_device_answers_so_and_gives_everything_back, begin())
{
    VkSemaphore semaphore = timeline_make(&handles);
    quire_stream *theirs = wrap(semaphore), *stream = make();
    quire_native page = range_of(memory, 1000);
    CHECK_OK(quire_stream_announce(theirs, 3));
    quire_point gate = mark(theirs), point;
    CHECK_OK(quire_stream_wait(stream, &gate));
    CHECK_OK(fill_range(device, stream, &page, 1000, 1));
    fv_lose_devices(b.driver);
    fv_allow(b.driver, "not done"); /* a lost device is not waited for */
    CHECK_FAILS(quire_stream_mark(stream, &point), QUIRE_ERROR_DEVICE_LOST);
    CHECK_EQ(fill_range(device, stream, &page, 1000, 1), QUIRE_ERROR_DEVICE_LOST);
    CHECK_OK(quire_stream_destroy(&stream));
    CHECK_OK(quire_stream_destroy(&theirs));
    timeline_end(&handles, semaphore);
}

CASE(wrong_use_is_refused, begin())
{
    quire_stream *stream = NULL;
    VkSemaphore semaphore = timeline_make(&handles);
    const quire_vulkan_queue queue = {.queue = handles.queue};
    const quire_vulkan_stream_options wrong[] = {
        {.unused = {1}},
        {.queue = {.queue = handles.queue, .lock = take}},
        {.queue = {.lock = take, .unlock = give}},
        {.queue = queue, .semaphore = semaphore},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_FAILS(quire_vulkan_stream_wrap(device, &wrong[i], &stream), INVALID);
    CHECK(!stream);
    timeline_end(&handles, semaphore);
}
