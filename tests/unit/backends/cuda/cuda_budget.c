/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_budget.c - how often the CUDA backend is asked for its budget: an answer serves further
 * pages for a limited time and for a limited number of bytes.
 */
#include <time.h>
#include <unistd.h>

#include "src/base/system.h"
#include "tests/support/cuda_bench.h"
#include "tests/support/unit.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static const quire_memory_options SMALL = {.pages = {.page_size = 2 * MIB}};

/* A device of some bytes, with a memory; calls are counted from then on. */
static quire_memory *begin(cuda_bench *b, uint64_t bytes, const quire_memory_options *options)
{
    fc_model model = *fc_model_named("a100");
    model.bytes = bytes;
    cuda_bench_start(b, &(fc_options){.models = {&model}});
    b->fc->reset_counters();
    return cuda_bench_memory(b, QUIRE_CUDA_DEVICE, options);
}

/* Makes a page for one allocation. */
static void make_page(quire_memory *memory, uint64_t size)
{
    quire_allocation a;
    CHECK_OK(
        quire_allocate(memory, &(quire_allocation_options){.size = size, .dedicated = true}, &a));
}

static void make_pages(quire_memory *memory, int count, uint64_t size)
{
    for (int i = 0; i < count; i++)
        make_page(memory, size);
}

static uint64_t asked(cuda_bench *b)
{
    return b->fc->calls("cuMemGetInfo");
}

/* The most calls since `start`: one at first, and one after each tenth of a second. */
static uint64_t most_since(uint64_t start)
{
    return 1 + (qi_clock() - start) / 100000000;
}

CUDA_UNIT_IN(cuda_budget, an_answer_serves_the_pages_of_a_tenth_of_a_second,
             begin(b, 80 * GIB, &SMALL))
{
    uint64_t start = qi_clock();
    make_pages(memory, 5, 2 * MIB);
    CHECK(asked(b) <= most_since(start));
    uint64_t before = asked(b);
    nanosleep(&(struct timespec){.tv_nsec = 110000000}, NULL);
    make_page(memory, 2 * MIB);
    CHECK_EQ(asked(b), before + 1);
}

/* Of 1 GiB the first answer serves 64 MiB, the page that it was for included. */
CUDA_UNIT_IN(cuda_budget, an_answer_serves_a_sixteenth_of_what_was_free, begin(b, GIB, &SMALL))
{
    uint64_t start = qi_clock();
    make_page(memory, 2 * MIB);
    make_page(memory, 62 * MIB);
    CHECK(asked(b) <= most_since(start));
    uint64_t before = asked(b);
    make_page(memory, 64 * MIB); /* more than an answer serves now */
    CHECK_EQ(asked(b), before + 1);
}

/* With little memory left each page asks. */
CUDA_UNIT_IN(cuda_budget, a_device_that_is_almost_full_is_asked_before_each_page,
             begin(b, 64 * MIB, &SMALL))
{
    make_page(memory, 48 * MIB);
    uint64_t before = asked(b);
    make_pages(memory, 4, 2 * MIB);
    CHECK_EQ(asked(b), before + 4);
}

CUDA_UNIT_IN(cuda_budget, a_page_that_the_driver_refuses_asks_anew, begin(b, 80 * GIB, &SMALL))
{
    quire_allocation a;
    make_page(memory, 2 * MIB);
    uint64_t before = asked(b);
    CHECK(b->fc->fail(
        &(fc_fault){.function = "cuMemCreate", .call = 1, .result = QI_CUDA_ERROR_OUT_OF_MEMORY}));
    const quire_allocation_options dedicated = {.size = 2 * MIB, .dedicated = true};
    quire_result result = quire_allocate(memory, &dedicated, &a);
    if (result) /* the ladder did not repeat the request */
        make_page(memory, 2 * MIB);
    CHECK(asked(b) > before);
}

CUDA_UNIT(cuda_budget, a_memory_that_stays_within_the_budget_asks_before_each_page)
{
    quire_memory_options strict = SMALL;
    strict.within_budget = true;
    quire_memory *memory = begin(b, 80 * GIB, &strict);
    make_pages(memory, 5, 2 * MIB);
    CHECK_EQ(asked(b), 5);
}

CUDA_UNIT_IN(cuda_budget, a_query_of_the_caller_is_always_asked, begin(b, 80 * GIB, &SMALL))
{
    quire_budget_info info;
    make_page(memory, 2 * MIB);
    for (int i = 0; i < 3; i++) {
        uint64_t before = asked(b);
        b->fc->set_others(0, (uint64_t)(i + 1) * GIB);
        CHECK_OK(quire_device_get_budget(b->device, 0, &info));
        CHECK_EQ(info.usage, (uint64_t)(i + 1) * GIB + 2 * MIB);
        CHECK_EQ(asked(b), before + 1);
    }
}

/* The host's RAM is read anew, because a virtual machine may have more than when it was opened. */
CUDA_UNIT(cuda_budget, the_host_heap_has_the_memory_that_the_system_reports_now)
{
    quire_heap_budget budget = {0};
    (void)begin(b, 80 * GIB, &SMALL);
    const quire_backend *table = quire_device_backend(b->device);
    CHECK_OK(table->heap_budget(quire_device_state(b->device), 1, &budget));
    CHECK_EQ(budget.budget, (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
    CHECK_EQ(budget.usage, 0);
    CHECK_EQ(asked(b), 0);
}
