/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_stream_copy.c - copies from host memory on streams of the Vulkan backend, on the fake
 * driver: without waiting, through the stream's own staging memory, in order, and what failures
 * leave.
 */
#include <pthread.h>

#include "tests/support/random.h"
#include "tests/support/stream_steps.h"
#include "tests/support/unit.h"
#include "tests/support/vulkan_bench.h"
#include "tests/support/vulkan_timeline.h"

#define KIB UINT64_C(1024)

enum { SIZE = 20000, ITEMS = 1000 };

static const quire_memory_options LOCAL = {.kind.required = QUIRE_DEVICE_LOCAL,
                                           .pages = {.page_size = 64 * KIB}};

static vulkan_bench b;
static quire_memory *memory;
static quire_stream *stream;
static quire_allocation made;
static unsigned char in[SIZE], out[SIZE];

/* The ring of each stream has 8 KiB. */
static void begin_on(const char *layout)
{
    vulkan_bench_begin(&b, layout, FV_LATE | FV_STALE);
    CHECK(vulkan_bench_open(&b, &(quire_vulkan_settings){.staging_size = 8 * KIB}));
    memory = vulkan_bench_memory(&b, &LOCAL);
    CHECK_OK(quire_stream_create(b.device, NULL, &stream));
    CHECK_OK(
        quire_allocate(memory, &(quire_allocation_options){.size = SIZE, .alignment = 4}, &made));
    for (uint64_t i = 0; i < SIZE; i++)
        in[i] = (unsigned char)(i * 7 + i / 300);
    memset(out, 0, SIZE);
    fv_reset_counters(b.driver);
}

static void begin(void)
{
    begin_on(NULL);
}

static void end(void)
{
    CHECK_OK(quire_stream_destroy(&stream));
    vulkan_bench_end(&b);
}

static quire_copy_options from_host(uint64_t offset, const unsigned char *bytes, uint64_t size)
{
    return (quire_copy_options){
        .to = {.memory = memory, .allocation = made, .offset = offset},
        .host_from = bytes,
        .size = size,
        .stream = stream,
    };
}

static quire_result copy(uint64_t offset, const unsigned char *bytes, uint64_t size,
                         quire_point *done)
{
    const quire_copy_options options = from_host(offset, bytes, size);
    return quire_copy(&options, done);
}

static void expect(const unsigned char *model, uint64_t size)
{
    CHECK_OK(quire_read(memory, made, 0, out, size));
    CHECK(!memcmp(out, model, size));
}

static uint64_t waits(void)
{
    return fv_calls(b.driver, "vkWaitForFences") + fv_calls(b.driver, "vkWaitSemaphores");
}

#define CASE(name, begin) UNIT_WITHIN(vulkan_stream_copy, name, begin, end())

/* ---- without waiting ------------------------------------------------------------------------- */

CASE(host_bytes_are_submitted_and_not_waited_for, begin())
{
    quire_point done;
    CHECK_OK(copy(7, in, 1000, &done));
    CHECK_EQ(waits(), 0);
    CHECK_EQ(fv_calls(b.driver, "vkQueueSubmit"), 2); /* the copy and the point */
    CHECK(done.stream == stream && done.value > 0);
    CHECK(!has_passed(done));
    CHECK_OK(quire_point_await(&done, QUIRE_FOREVER));
    CHECK_OK(quire_read(memory, made, 7, out, 1000));
    CHECK(!memcmp(in, out, 1000));
}

/* Rows are packed into the ring; the gaps between them stay. */
CASE(rows_are_submitted_at_once, begin())
{
    static unsigned char model[SIZE];
    CHECK_OK(quire_fill(memory, made, &(quire_fill_options){.value = 1}, NULL));
    fv_reset_counters(b.driver);
    quire_copy_options o = from_host(3, in, 20);
    o.rows = 50, o.slices = 3, o.to.row_pitch = 31, o.to.slice_pitch = 2000, o.from.row_pitch = 25;
    CHECK_OK(quire_copy(&o, NULL));
    CHECK_EQ(fv_calls(b.driver, "vkQueueSubmit"), 1);
    CHECK_EQ(waits(), 0);
    memset(model, 1, SIZE);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 50; i++)
            memcpy(model + 3 + k * 2000 + i * 31, in + k * 1250 + i * 25, 20);
    finish(stream);
    expect(model, SIZE);
}

/* A copy that is larger than the ring waits for its own first parts, and keeps two in flight. */
CASE(it_waits_only_while_all_staging_memory_is_in_use, begin())
{
    CHECK_OK(copy(0, in, 8000, NULL));
    CHECK_EQ(waits(), 0);
    CHECK_OK(copy(0, in, SIZE, NULL));
    CHECK(waits() > 0);
    CHECK(fv_most_pending(b.driver) >= 2);
    finish(stream);
    expect(in, SIZE);
    uint64_t memories = fv_live(b.driver, FV_MEMORY);
    CHECK_OK(copy(0, in, SIZE, NULL)); /* the same memory again */
    finish(stream);
    CHECK_EQ(fv_live(b.driver, FV_MEMORY), memories);
}

CASE(a_thousand_writes_are_one_submission_without_a_wait, begin())
{
    static quire_write_item items[ITEMS];
    quire_point done;
    for (uint64_t i = 0; i < ITEMS; i++)
        items[i] = (quire_write_item){made, i * 5, in + i * 5, 4};
    CHECK_OK(quire_fill(memory, made, &(quire_fill_options){.value = 0}, NULL));
    fv_reset_counters(b.driver);
    CHECK_OK(quire_write_batch(memory, items, ITEMS, stream, &done));
    CHECK_EQ(waits(), 0);
    CHECK_EQ(fv_calls(b.driver, "vkQueueSubmit"), 2); /* the writes and the point */
    CHECK_OK(quire_point_await(&done, QUIRE_FOREVER));
    for (uint64_t i = 4; i < ITEMS * 5; i += 5)
        in[i] = 0;
    expect(in, (uint64_t)ITEMS * 5);
}

/* ---- in order -------------------------------------------------------------------------------- */

/* Random copies, batches, fills and copies within the page, on one stream. */
UNIT(vulkan_stream_copy, random_work_leaves_the_bytes_of_the_model)
{
    static const char *const layouts[] = {"amd-bar", "nvidia-bar"};
    static unsigned char model[SIZE];
    for (size_t n = 0; n < sizeof layouts / sizeof *layouts; n++) {
        test_random r = {n + 5};
        begin_on(layouts[n]);
        CHECK_OK(quire_fill(memory, made, &(quire_fill_options){.value = 0}, NULL));
        memset(model, 0, SIZE);
        for (int step = 0; step < 400; step++) {
            uint64_t size = random_size(&r, step % 20 ? 3000 : SIZE - 1);
            uint64_t to = random_below(&r, SIZE - size), from = random_below(&r, SIZE - size);
            quire_write_item items[2] = {{made, to, in + from, size}, {made, from, in + to, size}};
            switch (random_below(&r, 5)) {
            case 0:
                CHECK_OK(quire_write_batch(memory, items, 2, stream, NULL));
                memcpy(model + to, in + from, size);
                memcpy(model + from, in + to, size);
                break;
            case 1:
                to -= to % 4, size += -size % 4;
                size = size > SIZE - to ? SIZE - to : size;
                CHECK_OK(quire_fill(
                    memory, made,
                    &(quire_fill_options){
                        .offset = to, .size = size, .value = (uint8_t)step, .stream = stream},
                    NULL));
                memset(model + to, (uint8_t)step, size);
                break;
            case 2:
                finish(stream);
                expect(model, SIZE);
                break;
            default:
                CHECK_OK(copy(to, in + from, size, NULL));
                memcpy(model + to, in + from, size);
                break;
            }
        }
        finish(stream);
        expect(model, SIZE);
        end();
    }
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Without memory for the stream's ring the call waits, and copies through the device's ring. */
CASE(without_memory_for_the_ring_the_call_waits, begin())
{
    quire_point done = {.value = 1};
    CHECK_OK(quire_write(memory, made, 0, in, 1)); /* the device's ring exists */
    fv_reset_counters(b.driver);
    const fv_fault fault = {.function = "vkAllocateMemory", .call = 1, .from_then = true};
    CHECK(fv_fail(b.driver, &fault));
    CHECK_OK(copy(0, in, SIZE, &done));
    CHECK(!done.stream);
    CHECK(waits() > 0);
    fv_heal(b.driver);
    expect(in, SIZE);
    CHECK_OK(copy(0, in + 100, 100, &done));
    CHECK(done.stream == stream);
    finish(stream);
    expect(in + 100, 100);
}

/* A failing copy leaves nothing in flight that the caller's pages are still used by. */
UNIT(vulkan_stream_copy, a_failing_copy_waits_for_what_it_has_submitted)
{
    static const char *const functions[] = {"vkQueueSubmit", "vkBeginCommandBuffer",
                                            "vkEndCommandBuffer"};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        begin();
        const fv_fault fault = {.function = functions[i], .call = 3, .from_then = true};
        CHECK(fv_fail(b.driver, &fault));
        CHECK(copy(0, in, SIZE, NULL) != QUIRE_SUCCESS);
        CHECK_HAS(quire_last_error(), functions[i]);
        CHECK_OK(quire_free(memory, made)); /* the driver reports a page in use */
        CHECK_OK(quire_memory_trim(memory, 0, NULL));
        fv_heal(b.driver);
        end();
    }
}

/* A batch of more items than one call of the backend takes. The call for the last ones fails. */
CASE(a_failing_batch_waits_for_its_earlier_calls, begin())
{
    enum { MANY_ITEMS = 4096 + 100 };
    static quire_write_item items[MANY_ITEMS];
    for (uint64_t i = 0; i < MANY_ITEMS; i++)
        items[i] = (quire_write_item){made, i, in + i, 1};
    const fv_fault fault = {.function = "vkQueueSubmit", .call = 2};
    CHECK(fv_fail(b.driver, &fault));
    CHECK(quire_write_batch(memory, items, MANY_ITEMS, stream, NULL) != QUIRE_SUCCESS);
    CHECK_HAS(quire_last_error(), "vkQueueSubmit");
    CHECK_OK(quire_free(memory, made)); /* the driver reports a page in use */
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    fv_heal(b.driver);
}

CASE(a_failed_wait_for_staging_memory_is_an_error, begin())
{
    CHECK_OK(copy(0, in, 8000, NULL));
    const fv_fault fault = {.function = "vkWaitSemaphores", .call = 1};
    CHECK(fv_fail(b.driver, &fault));
    CHECK_FAILS(copy(0, in, 8000, NULL), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    fv_heal(b.driver);
    CHECK_OK(copy(0, in + 8000, 8000, NULL));
    finish(stream);
    expect(in + 8000, 8000);
}

CASE(a_device_lost_in_the_middle_gives_everything_back, begin())
{
    CHECK_OK(copy(0, in, 8000, NULL));
    fv_lose_devices(b.driver);
    fv_allow(b.driver, "not done"); /* a lost device is not waited for */
    CHECK_FAILS(copy(0, in, 8000, NULL), QUIRE_ERROR_DEVICE_LOST);
    CHECK_FAILS(quire_write_batch(memory, &(quire_write_item){made, 0, in, 8000}, 1, stream, NULL),
                QUIRE_ERROR_DEVICE_LOST);
}

/* The stream is destroyed while its work waits for a value of the caller's: its ring stays. */
UNIT(vulkan_stream_copy, a_stream_is_busy_until_its_copy_is_done)
{
    quire_stream *theirs = NULL;
    begin();
    const quire_vulkan_handles handles = vulkan_bench_handles(&b);
    VkSemaphore semaphore = timeline_make(&handles);
    CHECK_OK(quire_vulkan_stream_wrap(
        b.device, &(quire_vulkan_stream_options){.semaphore = semaphore}, &theirs));
    CHECK_OK(quire_stream_announce(theirs, 1));
    quire_point gate = mark(theirs);
    CHECK_OK(quire_stream_wait(stream, &gate));
    CHECK_OK(copy(0, in, 1000, NULL));
    uint64_t memories = fv_live(b.driver, FV_MEMORY);
    CHECK_FAILS(quire_stream_destroy(&stream), QUIRE_ERROR_BUSY);
    CHECK_EQ(fv_live(b.driver, FV_MEMORY), memories); /* the ring stays */
    timeline_signal(&handles, semaphore, 1);
    CHECK_OK(quire_stream_destroy(&stream));
    CHECK_EQ(fv_live(b.driver, FV_MEMORY), memories - 1);
    CHECK_OK(quire_read(memory, made, 0, out, 1000));
    CHECK(!memcmp(in, out, 1000));
    CHECK_OK(quire_stream_destroy(&theirs));
    timeline_end(&handles, semaphore);
    vulkan_bench_end(&b);
}

/* ---- threads --------------------------------------------------------------------------------- */

enum { THREADS = 4, SHARE = SIZE / THREADS };

/* Each thread writes its own share on the common stream, more than the ring holds. */
static void *write_share(void *user)
{
    const uint64_t begin_at = (uintptr_t)user * SHARE;
    for (int round = 0; round < 20; round++) {
        quire_write_item items[2] = {{made, begin_at, in + begin_at, SHARE / 2},
                                     {made, begin_at + 1, in + begin_at + 1, SHARE - 1}};
        CHECK_OK(copy(begin_at, in + begin_at, SHARE, NULL));
        CHECK_OK(quire_write_batch(memory, items, 2, stream, NULL));
    }
    return NULL;
}

CASE(many_threads_copy_on_one_stream, begin())
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&threads[i], NULL, write_share, (void *)i));
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_join(threads[i], NULL));
    finish(stream);
    expect(in, SIZE);
}
