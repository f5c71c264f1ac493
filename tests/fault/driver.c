/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * driver.c - see driver.h.
 */
#include "tests/fault/driver.h"

unsigned char fault_data[FAULT_DATA], fault_back[FAULT_DATA];

static const fault_driver *driver;

static struct {
    const void *scenario;
    uint64_t allocations; /* of host memory, without a fault */
    bool in_host_memory;  /* what fails */
} swept;

void fault_driver_begin(const fault_driver *used, int argc, char **argv)
{
    driver = used;
    for (size_t i = 0; i < FAULT_DATA; i++)
        fault_data[i] = (unsigned char)(i * 7 + i / 256);
    fault_begin(argc, argv);
}

uint64_t fault_driver_calls(const void *scenario, quire_result expected)
{
    driver_bench *b = driver->bench;
    driver->begin(scenario);
    test_memory_fail(&b->host_memory, 0, false);
    driver->run(scenario);
    if (b->result != expected)
        check_failed(__FILE__, __LINE__, "%s: %s", *(const char *const *)scenario,
                     quire_last_error());
    uint64_t calls = driver->calls();
    swept.scenario = scenario;
    swept.allocations = b->host_memory.calls;
    CHECK(calls > 0 && swept.allocations > 0);
    driver->end();
    return calls;
}

static bool run(void *context, uint64_t call)
{
    driver_bench *b = driver->bench;
    (void)context;
    driver->begin(swept.scenario);
    if (!swept.in_host_memory && !driver->fail(call))
        return false;
    test_memory_fail(&b->host_memory, swept.in_host_memory ? call : 0, false);
    driver->run(swept.scenario);
    bool is_reached = swept.in_host_memory ? b->host_memory.calls >= call : driver->has_failed();
    test_memory_fail(&b->host_memory, 0, false);
    if (b->result)
        CHECK(*quire_last_error());
    driver->end();
    return is_reached;
}

uint64_t fault_driver_sweep(uint64_t calls)
{
    swept.in_host_memory = false;
    return fault_sweep(run, NULL, calls);
}

void fault_driver_sweep_memory(void)
{
    swept.in_host_memory = true;
    fault_sweep(run, NULL, swept.allocations);
}

/* ---- scenarios ------------------------------------------------------------------------------ */

void fault_range(driver_bench *b, quire_memory *m, uint64_t size, bool zero)
{
    quire_allocation a;
    DRIVER_STEP(b, quire_allocate(m, &(quire_allocation_options){.size = size, .zero = zero}, &a));
    DRIVER_STEP(b, quire_write(m, a, 0, fault_data, size));
    memset(fault_back, 0, size);
    DRIVER_STEP(b, quire_read(m, a, 0, fault_back, size));
    CHECK(!memcmp(fault_data, fault_back, size));
    DRIVER_STEP(b, quire_free(m, a));
    DRIVER_STEP(b, quire_memory_trim(m, 0, NULL));
}

void fault_pages(driver_bench *b, quire_memory *m, uint64_t size, int count)
{
    quire_allocation a[8];
    for (int i = 0; i < count; i++)
        DRIVER_STEP(b, quire_allocate(m, &(quire_allocation_options){.size = size}, &a[i]));
    for (int i = 0; i < count; i++)
        DRIVER_STEP(b, quire_free(m, a[i]));
    DRIVER_STEP(b, quire_memory_trim(m, 0, NULL));
}

void fault_rows(driver_bench *b, quire_memory *to, quire_memory *from, uint32_t rows)
{
    const quire_allocation_options options = {.size = rows * UINT64_C(150)};
    quire_allocation target, source;
    DRIVER_STEP(b, quire_allocate(to, &options, &target));
    DRIVER_STEP(b, quire_allocate(from, &options, &source));
    const quire_copy_end there = {.memory = to, .allocation = target, .row_pitch = 100};
    const quire_copy_end here = {.memory = from, .allocation = source, .row_pitch = 90};
    const quire_copy_options ways[] = {
        {.to = here, .host_from = fault_data, .size = 80, .rows = rows},
        {.to = there, .from = here, .size = 80, .rows = rows},
        {.host_to = fault_back, .from = there, .size = 80, .rows = rows},
    };
    memset(fault_back, 0, FAULT_DATA);
    for (int i = 0; i < 3; i++)
        DRIVER_STEP(b, quire_copy(&ways[i], NULL));
    CHECK(!memcmp(fault_back, fault_data, rows * UINT64_C(80)));
    DRIVER_STEP(b, quire_fill(to, target,
                              &(quire_fill_options){.offset = 3, .size = 1000, .value = 9}, NULL));
    DRIVER_STEP(b, quire_free(to, target));
    DRIVER_STEP(b, quire_free(from, source));
}

static bool submit(driver_bench *b, quire_stream *stream, const quire_native *page,
                   const void *host)
{
    const quire_backend *table = quire_device_backend(b->device);
    void *state = quire_device_state(b->device);
    uint64_t native = quire_stream_native(stream);
    quire_copy_job job = {.to = &page->page,
                          .to_offset = page->offset,
                          .size = 100,
                          .rows = 4,
                          .slices = 1,
                          .to_row = 200,
                          .from_row = 200};
    if (host) {
        job.host_from = host;
    } else {
        job.from = &page->page;
        job.from_offset = page->offset + 1024;
    }
    return driver_bench_step(
               b, table->stream_fill(state, native, &page->page, page->offset, 2048, 7)) &&
           driver_bench_step(b, table->stream_copy(state, native, &job));
}

void fault_streams(driver_bench *b, quire_memory *m, quire_stream *first, quire_stream *second,
                   const void *host)
{
    const quire_allocation_options words = {.size = 2048, .alignment = 4};
    quire_allocation a, freed;
    quire_native page;
    quire_point point, last;
    bool has_passed;
    DRIVER_STEP(b, quire_allocate(m, &words, &a));
    DRIVER_STEP(b, quire_allocate(m, &words, &freed));
    DRIVER_STEP(b, quire_allocation_get_native(m, a, &page));
    for (int i = 0; i < 2; i++) { /* the second time with what was used before */
        if (!submit(b, first, &page, host))
            return;
        DRIVER_STEP(b, quire_stream_mark(first, &point));
        DRIVER_STEP(b, quire_stream_wait(second, &point));
        if (!submit(b, second, &page, host))
            return;
        if (!i)
            DRIVER_STEP(b, quire_free_on_stream(m, freed, second));
        DRIVER_STEP(b, quire_stream_mark(second, &last));
        DRIVER_STEP(b, quire_point_has_passed(&point, &has_passed));
        if (driver->advance && driver_bench_step(b, quire_point_await(&point, 1000)))
            check_failed(__FILE__, __LINE__, "the clock went on by itself");
        if (driver->advance && b->result != QUIRE_ERROR_BUSY)
            return;
        DRIVER_STEP(b, quire_point_await(&last, QUIRE_FOREVER));
    }
    DRIVER_STEP(b, quire_collect(m, NULL));
}

void fault_end_stream(driver_bench *b, quire_stream *stream)
{
    quire_result failed = b->result;
    if (driver->advance)
        driver->advance();
    if (quire_stream_destroy(&stream)) {
        driver->heal();
        CHECK_OK(quire_stream_destroy(&stream));
    }
    b->result = failed;
}
