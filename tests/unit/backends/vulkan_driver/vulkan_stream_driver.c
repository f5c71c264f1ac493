/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_stream_driver.c - streams on a driver of this machine under the validation layer, which
 * also checks their synchronization: work of quire and of the caller in the order of points.
 */
#include "tests/support/random.h"
#include "tests/support/real_vulkan.h"
#include "tests/support/stream_steps.h"
#include "tests/support/vulkan_timeline.h"

#define KIB UINT64_C(1024)
#define BUSY QUIRE_ERROR_BUSY
#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED

enum { SIZE = 64 * 1024 };

static real_vulkan r;
static quire_memory *memory;
static unsigned char in[SIZE], out[SIZE];

static void begin(void)
{
    real_begin_strict(&r);
    if (!r.timeline.timelineSemaphore) {
        real_end(&r);
        unit_skip("the driver has no timeline semaphores");
    }
    real_wrap(&r);
    memory = real_memory(&r, &(quire_memory_options){.pages = {.page_size = 1024 * KIB}});
    for (size_t i = 0; i < SIZE; i++)
        in[i] = (unsigned char)(i * 7 + i / 256);
    memset(out, 0, SIZE);
}

static void end(void)
{
    quire_memory_destroy_all(&memory);
    real_end(&r);
}

#define CASE(name, begin) UNIT_WITHIN(vulkan_stream_driver, name, begin, end())

static quire_stream *make(void)
{
    quire_stream *stream = NULL;
    CHECK_OK(quire_stream_create(r.quire, &(quire_stream_options){.name = "own"}, &stream));
    return stream;
}

static quire_allocation allocate(void)
{
    quire_allocation made;
    CHECK_OK(
        quire_allocate(memory, &(quire_allocation_options){.size = SIZE, .alignment = 16}, &made));
    return made;
}

static quire_result fill(quire_stream *stream, quire_allocation to, uint8_t value)
{
    const quire_native native = place_of(memory, to);
    return fill_range(r.quire, stream, &native, SIZE, value);
}

static quire_result copy(quire_stream *stream, quire_allocation to, quire_allocation from,
                         uint64_t rows)
{
    quire_native target = place_of(memory, to), source = place_of(memory, from);
    const quire_copy_job job = {
        .to = &target.page,
        .to_offset = target.offset,
        .from = &source.page,
        .from_offset = source.offset,
        .size = SIZE / rows,
        .rows = rows,
        .to_row = SIZE / rows,
        .from_row = SIZE / rows,
    };
    return copy_job(r.quire, stream, job);
}

static void expect(quire_allocation a, const unsigned char *bytes)
{
    CHECK_OK(quire_read(memory, a, 0, out, SIZE));
    CHECK(!memcmp(out, bytes, SIZE));
}

/* ---- quire's own ---------------------------------------------------------------------------- */

CASE(copies_and_fills_are_done_in_order, begin())
{
    quire_stream *stream = make();
    quire_allocation a = allocate(), c = allocate();
    for (uint64_t rows = 1; rows <= 1024; rows *= 32) {
        CHECK_OK(quire_write(memory, a, 0, in, SIZE));
        CHECK_OK(fill(stream, c, 0xff));
        CHECK_OK(copy(stream, c, a, rows));
        CHECK_OK(fill(stream, a, 0x21));
        finish(stream);
        expect(c, in);
        CHECK_OK(quire_read(memory, a, 0, out, SIZE));
        CHECK_EQ(out[SIZE - 1], 0x21);
    }
    CHECK_OK(quire_stream_destroy(&stream));
}

/* Batches and copies from the host without a wait between them, more than the stream's staging
   memory holds. Half of the items share bytes with others. */
CASE(host_bytes_are_written_in_order, begin())
{
    enum { ITEMS = 300 };
    static quire_write_item items[ITEMS];
    static unsigned char model[SIZE];
    test_random random = {7};
    quire_stream *stream = make();
    quire_allocation to = allocate();
    memset(model, 0, SIZE);
    CHECK_OK(fill(stream, to, 0));
    for (int round = 0; round < 60; round++) {
        for (int i = 0; i < ITEMS; i++) {
            uint64_t size = 1 + random_below(&random, 300);
            uint64_t at = random_below(&random, SIZE - size), from = random_below(&random, 999);
            items[i] = (quire_write_item){to, at, in + from, size};
            memcpy(model + at, in + from, size);
        }
        CHECK_OK(quire_write_batch(memory, items, ITEMS, stream, NULL));
        CHECK_OK(quire_copy(
            &(quire_copy_options){
                .to = {.memory = memory, .allocation = to, .offset = 100, .row_pitch = 200},
                .host_from = in,
                .size = 150,
                .rows = 300,
                .stream = stream},
            NULL));
        for (int i = 0; i < 300; i++)
            memcpy(model + 100 + i * 200, in + i * 150, 150);
    }
    finish(stream);
    expect(to, model);
    CHECK_OK(quire_stream_destroy(&stream));
}

/* Copies values between ranges on several streams. Each copy follows the point of the previous
   one. */
CASE(streams_come_after_each_others_points, begin())
{
    enum { STREAMS = 3, STEPS = 60 };
    quire_stream *streams[STREAMS];
    quire_allocation ranges[STREAMS];
    test_random random = {7};
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = make();
        ranges[i] = allocate();
    }
    CHECK_OK(quire_write(memory, ranges[0], 0, in, SIZE));
    uint64_t at = 0;
    for (int step = 0; step < STEPS; step++) {
        uint64_t next = random_below(&random, STREAMS);
        if (next == at)
            continue;
        quire_point point = mark(streams[at]);
        CHECK_OK(quire_stream_wait(streams[next], &point));
        CHECK_OK(copy(streams[next], ranges[next], ranges[at], 1));
        CHECK_OK(fill(streams[next], ranges[at], (uint8_t)step));
        at = next;
    }
    finish(streams[at]);
    expect(ranges[at], in);
    for (int i = 0; i < STREAMS; i++)
        CHECK_OK(quire_stream_destroy(&streams[i]));
}

CASE(what_is_freed_on_a_stream_is_used_again_in_its_order, begin())
{
    quire_stream *stream = make();
    for (int i = 0; i < 40; i++) {
        quire_allocation made;
        CHECK_OK(quire_allocate(
            memory, &(quire_allocation_options){.size = SIZE, .alignment = 16, .stream = stream},
            &made));
        CHECK_OK(fill(stream, made, (uint8_t)i));
        CHECK_OK(quire_free_on_stream(memory, made, stream));
    }
    finish(stream);
    CHECK_OK(quire_collect(memory, NULL));
    CHECK_OK(quire_stream_destroy(&stream));
}

/* ---- the caller's --------------------------------------------------------------------------- */

/* Submits nothing but a signal of a value and a wait for a value (0: no wait). */
static void submit(VkSemaphore signals, uint64_t value, VkSemaphore waits, uint64_t until)
{
    const VkPipelineStageFlags all = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    const VkTimelineSemaphoreSubmitInfo values = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = until ? 1 : 0,
        .pWaitSemaphoreValues = until ? &until : NULL,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &value,
    };
    const VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &values,
        .waitSemaphoreCount = until ? 1 : 0,
        .pWaitSemaphores = until ? &waits : NULL,
        .pWaitDstStageMask = until ? &all : NULL,
        .signalSemaphoreCount = 1,
        .pSignalSemaphores = &signals,
    };
    pthread_mutex_lock(&r.queue_mutex);
    CHECK_EQ(REAL(&r, vkQueueSubmit)(r.queue, 1, &info, VK_NULL_HANDLE), 0);
    pthread_mutex_unlock(&r.queue_mutex);
}

CASE(a_timeline_of_the_callers, begin())
{
    quire_stream *theirs = NULL;
    VkSemaphore own_semaphore = VK_NULL_HANDLE;
    bool passed = true;
    quire_vulkan_handles handles;
    CHECK_OK(quire_vulkan_get_handles(r.quire, &handles));
    VkSemaphore semaphore = timeline_make(&handles);
    CHECK_OK(quire_vulkan_stream_wrap(
        r.quire, &(quire_vulkan_stream_options){.semaphore = semaphore}, &theirs));
    quire_stream *own = make();
    quire_allocation a = allocate(), freed = allocate();
    CHECK_OK(quire_vulkan_stream_get(own, &own_semaphore));
    CHECK_OK(quire_stream_announce(theirs, 1));
    quire_point first = mark(theirs);
    CHECK_OK(quire_point_has_passed(&first, &passed));
    CHECK(!passed);
    CHECK_FAILS(quire_point_await(&first, 1000000), BUSY);
    CHECK_OK(quire_free_on_stream(memory, freed, theirs));
    submit(semaphore, 1, VK_NULL_HANDLE, 0);
    CHECK_OK(quire_stream_wait(own, &first)); /* quire's work follows the caller's */
    CHECK_OK(fill(own, a, 0x66));
    quire_point filled = mark(own);
    CHECK_OK(quire_stream_announce(theirs, 2));
    submit(semaphore, 2, own_semaphore, filled.value); /* the caller's work follows quire's */
    quire_point last = mark(theirs);
    CHECK_EQ(last.value, 2);
    CHECK_OK(quire_point_await(&last, QUIRE_FOREVER));
    CHECK_OK(quire_point_has_passed(&filled, &passed));
    CHECK(passed);
    CHECK_OK(quire_collect(memory, NULL));
    CHECK_OK(quire_read(memory, a, 0, out, SIZE));
    CHECK_EQ(out[77], 0x66);
    CHECK_OK(quire_stream_destroy(&own));
    CHECK_OK(quire_stream_destroy(&theirs));
    timeline_end(&handles, semaphore);
}
