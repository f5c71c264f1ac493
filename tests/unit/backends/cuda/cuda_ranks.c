/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_ranks.c - pages for registration on several devices, one for each rank of a program. The
 * same requests get the same page and offset on every rank, whatever other requests its device had,
 * so that windows into the pages are symmetric.
 */
#include "tests/support/cuda_bench.h"
#include "tests/support/random.h"
#include "tests/support/unit.h"

#define MIB (UINT64_C(1) << 20)

enum { RANKS = 3, STEPS = 600, HELD = 48 };

typedef struct rank {
    quire_device *device;
    quire_memory *memory, *other;
    quire_allocation held[HELD];
} rank;

static quire_memory *memory_of(quire_device *device, quire_cuda_page_kind page_kind)
{
    quire_memory *memory;
    uint32_t kind;
    CHECK_OK(quire_cuda_find_kind(device, page_kind, -1, &kind));
    const quire_memory_options options = {.kind.mask = UINT32_C(1) << kind,
                                          .pages = {.page_size = 8 * MIB}};
    CHECK_OK(quire_memory_create(device, &options, &memory));
    return memory;
}

/* A rank has its own device, which has served a different number of requests before. */
static void begin(rank *r, int number)
{
    const char *const ordinals[RANKS] = {"0", "1", "2"};
    const quire_cuda_options options = {
        .device = ordinals[number],
        .library = FAKE_CUDA_LIBRARY,
        .settings = {.kinds = CUDA_KIND(DEVICE) | CUDA_KIND(REGISTERED)}};
    CHECK_OK(quire_cuda_open(&options, &r->device));
    r->other = memory_of(r->device, QUIRE_CUDA_DEVICE);
    for (int i = 0; i < number * 7; i++) {
        quire_allocation a;
        CHECK_OK(quire_allocate(r->other, &(quire_allocation_options){.size = MIB}, &a));
    }
    r->memory = memory_of(r->device, QUIRE_CUDA_REGISTERED);
}

/* One step of the sequence that all ranks share. */
static void step(rank *r, uint64_t choice, uint64_t size)
{
    quire_allocation *a = &r->held[choice % HELD];
    if (a->id) {
        CHECK_OK(quire_free(r->memory, *a));
        a->id = 0;
        if (choice % 64 == 0)
            CHECK_OK(quire_memory_trim(r->memory, 0, NULL));
    } else {
        CHECK_OK(quire_allocate(r->memory,
                                &(quire_allocation_options){.size = size, .alignment = 256}, a));
    }
}

static void check_same(const rank *first, const rank *r, uint32_t index)
{
    quire_allocation_info a, b;
    quire_cuda_range there, here;
    CHECK_EQ(first->held[index].id != 0, r->held[index].id != 0);
    if (!r->held[index].id)
        return;
    CHECK_OK(quire_allocation_get_info(first->memory, first->held[index], &a));
    CHECK_OK(quire_allocation_get_info(r->memory, r->held[index], &b));
    CHECK_OK(quire_cuda_get_range(first->memory, first->held[index], &there));
    CHECK_OK(quire_cuda_get_range(r->memory, r->held[index], &here));
    CHECK_EQ(a.page, b.page);
    CHECK_EQ(a.offset, b.offset);
    CHECK_EQ(there.page_offset, here.page_offset);
    CHECK_EQ(there.padded_size, here.padded_size);
    CHECK(here.handle_count == 1 && here.is_rdma_capable);
}

UNIT(cuda_ranks, the_same_requests_lie_at_the_same_offsets_on_every_device)
{
    const fc_control *fc = cuda_bench_driver();
    fc_options options = cuda_bench_options("h200", FC_DIRTY);
    rank ranks[RANKS] = {{.device = NULL}};
    test_random r = {5};
    options.models[1] = options.models[2] = options.models[0];
    fc->reset(&options);
    for (int i = 0; i < RANKS; i++)
        begin(&ranks[i], i);
    for (int i = 0; i < STEPS; i++) {
        uint64_t choice = random_next(&r), size = random_size(&r, 12 * MIB);
        for (int k = 0; k < RANKS; k++)
            step(&ranks[k], choice, size);
    }
    for (int k = 0; k < RANKS; k++) {
        for (uint32_t i = 0; i < HELD; i++)
            check_same(&ranks[0], &ranks[k], i);
        CHECK_OK(quire_memory_check(ranks[k].memory));
    }
    for (int k = 0; k < RANKS; k++) {
        quire_memory_destroy_all(&ranks[k].memory);
        quire_memory_destroy_all(&ranks[k].other);
        CHECK_OK(quire_device_destroy(&ranks[k].device));
    }
    CHECK_EQ(fc->leaks(), 0);
    CHECK(!fc->message(0));
}
