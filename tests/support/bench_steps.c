/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * bench_steps.c - the steps of the bench of state.h.
 */
#include "quire/elastic.h"
#include "tests/support/state.h"

bool bench_open(bench *t)
{
    quire_device *device;
    const quire_host_memory *host = &t->host.callbacks;
    quire_host_options options = {.device.host_memory = host};
    TRY_OUT(t, device,
            t->on_fake ? fake_open(&t->fake, host, &device) : quire_host_open(&options, &device));
    t->device = device;
    return true;
}

bool bench_memory(bench *t, const quire_memory_options *options)
{
    quire_memory *memory;
    TRY_OUT(t, memory, quire_memory_create(t->device, options, &memory));
    int i = 0;
    while (t->memories[i])
        i++;
    CHECK(i < BENCH_MAX_MEMORIES);
    t->memories[i] = t->memory = memory;
    return true;
}

static bool hold(bench *t, quire_allocation allocation, uint64_t size, bool reserved)
{
    CHECK(t->held_count < BENCH_MAX_HELD);
    t->held[t->held_count++] = (bench_held){t->memory, allocation, size, 0, reserved};
    return true;
}

bool bench_allocate(bench *t, uint32_t count, const quire_allocation_options *options)
{
    for (; count; count--) {
        quire_allocation made;
        TRY_OUT(t, made, quire_allocate(t->memory, options, &made));
        hold(t, made, options->size, false);
    }
    return true;
}

bool bench_reserve(bench *t, const quire_allocation_options *options)
{
    quire_allocation made;
    TRY_OUT(t, made, quire_reserve(t->memory, options, &made));
    return hold(t, made, options->size, true);
}

bool bench_buffer(bench *t, uint32_t count, const quire_buffer_options *options)
{
    for (; count; count--) {
        quire_buffer made;
        TRY_OUT(t, made, quire_buffer_create(t->memory, options, &made));
        hold(t, made.allocation, options->size, false);
    }
    return true;
}

bool bench_image(bench *t, uint32_t count, const quire_image_options *options)
{
    for (; count; count--) {
        quire_image made;
        quire_image_info info;
        TRY_OUT(t, made, quire_image_create(t->memory, options, &made));
        CHECK_OK(quire_image_get_info(t->memory, made, &info));
        hold(t, made.allocation, info.minimum_size, false);
    }
    return true;
}

bool bench_ordered_objects(bench *t, quire_stream *stream)
{
    enum { COUNT = 4 };
    const quire_buffer_options options = {
        .size = 9000, .name = "ordered", .user_data = 7, .stream = stream};
    quire_buffer made[COUNT];
    quire_allocation raw;
    quire_image image;
    t->objects_wait = true;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COUNT; i++)
            TRY_OUT(t, made[i], quire_buffer_create(t->memory, &options, &made[i]));
        for (int i = 0; i < COUNT; i++)
            TRY(t, quire_free_on_stream(t->memory, made[i].allocation, stream));
    }
    TRY_OUT(t, raw,
            quire_allocate(
                t->memory,
                &(quire_allocation_options){.size = 9000, .name = "raw", .stream = stream}, &raw));
    TRY_OUT(t, image,
            quire_image_create(t->memory,
                               &(quire_image_options){
                                   .width = 2250, .tiling = QUIRE_TILING_LINEAR, .stream = stream},
                               &image));
    return true;
}

/* The four below can neither fail nor ask for host memory. */
static bool never_fails(const bench *t, quire_result result, uint64_t calls)
{
    CHECK_OK(result);
    CHECK(t->host.calls == calls || t->does_without);
    return true;
}

bool bench_commit(bench *t, uint32_t index)
{
    bench_held *h = &t->held[index];
    uint64_t calls = t->host.calls;
    h->reserved = false;
    return never_fails(t, quire_commit(h->memory, h->allocation), calls);
}

bool bench_abort(bench *t, uint32_t index)
{
    bench_held *h = &t->held[index];
    uint64_t calls = t->host.calls;
    quire_allocation allocation = h->allocation;
    h->allocation.id = 0;
    return never_fails(t, quire_abort(h->memory, allocation), calls);
}

bool bench_free(bench *t, uint32_t index)
{
    bench_held *h = &t->held[index];
    uint64_t calls = t->host.calls;
    quire_allocation allocation = h->allocation;
    h->allocation.id = 0;
    return never_fails(t, quire_free(h->memory, allocation), calls);
}

bool bench_unmap(bench *t, uint32_t index)
{
    bench_held *h = &t->held[index];
    uint64_t calls = t->host.calls;
    h->maps--;
    return never_fails(t, quire_unmap(h->memory, h->allocation), calls);
}

bool bench_free_every(bench *t, uint32_t nth)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; i < t->held_count; i++)
        if (t->held[i].allocation.id && !t->held[i].maps && !t->held[i].reserved)
            if (seen++ % nth == 0)
                bench_free(t, i);
    return true;
}

bool bench_map(bench *t, uint32_t index)
{
    bench_held *h = &t->held[index];
    void *pointer;
    TRY_OUT(t, pointer, quire_map(h->memory, h->allocation, &pointer));
    memset(pointer, 0x5a, h->size);
    h->maps++;
    return true;
}

static bool is_mappable(quire_memory *memory)
{
    quire_memory_info info;
    CHECK_OK(quire_memory_get_info(memory, &info));
    return info.mappable;
}

bool bench_write(bench *t, uint32_t index)
{
    const bench_held *h = &t->held[index];
    static const char bytes[64] = "what the fault tests write";
    uint64_t size = h->size < sizeof bytes ? h->size : sizeof bytes;
    TRY(t, quire_write(h->memory, h->allocation, h->size - size, bytes, size));
    if (is_mappable(h->memory))
        TRY(t, quire_flush(h->memory, h->allocation, 0, 0));
    return true;
}

bool bench_read(bench *t, uint32_t index)
{
    const bench_held *h = &t->held[index];
    char bytes[64];
    uint64_t size = h->size < sizeof bytes ? h->size : sizeof bytes;
    TRY(t, quire_read(h->memory, h->allocation, h->size - size, bytes, size));
    if (is_mappable(h->memory))
        TRY(t, quire_invalidate(h->memory, h->allocation, 0, 0));
    return true;
}

bool bench_name(bench *t, uint32_t index, const char *name)
{
    TRY(t, quire_allocation_set_name(t->held[index].memory, t->held[index].allocation, name));
    return true;
}

static bool drop_text(void *user, const char *text, size_t size)
{
    (void)user;
    (void)text;
    (void)size;
    return true;
}

static bool drop_item(void *user, const quire_item *item)
{
    *(uint64_t *)user += item->size;
    return true;
}

bool bench_look(bench *t)
{
    uint64_t bytes = 0;
    quire_memory_stats stats;
    quire_device_stats device;
    TRY(t, quire_memory_walk(t->memory, drop_item, &bytes));
    TRY(t, quire_memory_write_json(t->memory, drop_text, NULL));
    TRY(t, quire_memory_write_svg(t->memory, drop_text, NULL));
    TRY(t, quire_memory_write_report(t->memory, drop_text, NULL));
    TRY_OUT(t, stats, quire_memory_get_stats(t->memory, &stats));
    TRY_OUT(t, device, quire_device_get_stats(t->device, &device));
    return true;
}

enum { BENCH_MAX_RANGES = 256 };

static uint64_t list_chunks(const bench *t, uint64_t chunk, uint32_t first, quire_view *ranges)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < t->held_count; i++)
        for (uint64_t at = first * chunk; at < t->held[i].size; at += 2 * chunk) {
            CHECK(count < BENCH_MAX_RANGES);
            ranges[count++] = (quire_view){t->held[i].allocation, at, chunk};
        }
    return count;
}

bool bench_back_chunks(bench *t, uint64_t chunk, uint32_t first)
{
    quire_view ranges[BENCH_MAX_RANGES];
    const uint64_t count = list_chunks(t, chunk, first, ranges);
    TRY(t, quire_back_range(t->memory, ranges, count));
    return true;
}

bool bench_unback_chunks(bench *t, uint64_t chunk, uint32_t first)
{
    quire_view ranges[BENCH_MAX_RANGES];
    const uint64_t count = list_chunks(t, chunk, first, ranges);
    TRY(t, quire_unback_range(t->memory, ranges, count, NULL));
    return true;
}

bool bench_sleep(bench *t, const char *prefix, bool discards)
{
    uint64_t bytes;
    TRY_OUT(t, bytes,
            quire_memory_sleep(t->memory, prefix, discards ? QUIRE_SLEEP_DISCARD : QUIRE_SLEEP_KEEP,
                               NULL, &bytes));
    return true;
}

bool bench_wake(bench *t, const char *prefix)
{
    uint64_t bytes;
    TRY_OUT(t, bytes, quire_memory_wake(t->memory, prefix, &bytes));
    return true;
}

bool bench_trim(bench *t)
{
    uint64_t released;
    t->tolerance = BENCH_NEVER_FAILS;
    TRY_OUT(t, released, quire_memory_trim(t->memory, 0, &released));
    return true;
}

bool bench_keep(bench *t, uint64_t bytes)
{
    t->tolerance = BENCH_MAY_SUCCEED; /* pages that it gives back may ask for memory, not need it */
    TRY(t, quire_memory_preallocate(t->memory, bytes));
    return true;
}
