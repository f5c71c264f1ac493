/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* cuda_copy.c - copies between pages of the CUDA backend on the fake driver: the driver function
   that copies, within a device and between two, boxes of rows, and missing functions. */
#include "tests/support/cuda_bench.h"
#include "tests/support/unit.h"

#define MIB (UINT64_C(1) << 20)

enum { SIZE = 20000 };

static const quire_memory_options SMALL = {.pages = {.page_size = 2 * MIB}};

/* An allocation on a device; closing the bench frees it. */
typedef struct place {
    quire_memory *memory;
    quire_allocation allocation;
    unsigned char model[SIZE];
} place;

static void make_place(place *p, quire_memory *memory, unsigned char seed)
{
    p->memory = memory;
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = SIZE}, &p->allocation));
    for (int i = 0; i < SIZE; i++)
        p->model[i] = (unsigned char)(seed + i * 7 + i / 251);
    CHECK_OK(quire_write(memory, p->allocation, 0, p->model, SIZE));
}

static void expect_model(const place *p)
{
    unsigned char found[SIZE];
    CHECK_OK(quire_read(p->memory, p->allocation, 0, found, SIZE));
    CHECK(!memcmp(found, p->model, SIZE));
}

/* Copies in the backend and in the model. */
static void copy(place *to, place *from, quire_copy_options o)
{
    o.to.memory = to->memory;
    o.to.allocation = to->allocation;
    o.from.memory = from->memory;
    o.from.allocation = from->allocation;
    CHECK_OK(quire_copy(&o, NULL));
    o.rows += !o.rows;
    o.slices += !o.slices;
    for (uint64_t k = 0; k < o.slices; k++)
        for (uint64_t i = 0; i < o.rows; i++)
            memcpy(to->model + o.to.offset + k * o.to.slice_pitch + i * o.to.row_pitch,
                   from->model + o.from.offset + k * o.from.slice_pitch + i * o.from.row_pitch,
                   o.size);
    expect_model(to);
    expect_model(from);
}

static const quire_copy_options WHOLE = {.size = SIZE};

/* The slices of the first box are whole rows apart; those of the second are not. */
static const quire_copy_options BOX = {.size = 100,
                                       .rows = 9,
                                       .slices = 4,
                                       .to = {.offset = 5, .row_pitch = 120, .slice_pitch = 1200},
                                       .from = {.row_pitch = 128, .slice_pitch = 1280}};
static const quire_copy_options ODD_BOX = {.size = 100,
                                           .rows = 9,
                                           .slices = 4,
                                           .to = {.row_pitch = 120, .slice_pitch = 1201},
                                           .from = {.row_pitch = 128, .slice_pitch = 1280}};

static quire_memory *begin(cuda_bench *b, const fc_options *driver, uint32_t kinds)
{
    cuda_bench_begin(b, driver);
    CHECK(cuda_bench_open(b, &(quire_cuda_settings){.kinds = kinds}));
    return cuda_bench_memory(b, QUIRE_CUDA_DEVICE, &SMALL);
}

static quire_copy_path path_of(quire_memory *to, quire_memory *from)
{
    quire_copy_path path;
    CHECK_OK(quire_copy_get_path(to, from, &path));
    return path;
}

CUDA_UNIT_IN(cuda_copy, one_call_copies_within_a_device, begin(b, NULL, CUDA_KIND(DEVICE)))
{
    static place to, from;
    make_place(&to, memory, 1);
    make_place(&from, memory, 2);
    CHECK_EQ(path_of(memory, memory), QUIRE_COPY_DIRECT);
    b->fc->reset_counters();
    copy(&to, &from, WHOLE);
    CHECK_EQ(b->fc->calls("cuMemcpyDtoD"), 1);
    b->fc->reset_counters();
    copy(&to, &from, BOX);
    CHECK_EQ(b->fc->calls("cuMemcpy3D"), 1);
    b->fc->reset_counters();
    copy(&to, &from, ODD_BOX); /* one call per row */
    CHECK_EQ(b->fc->calls("cuMemcpyDtoD"), 36);
}

CUDA_UNIT_IN(cuda_copy, boxes_go_to_the_host_and_come_from_it_in_one_call,
             begin(b, NULL, CUDA_KIND(DEVICE)))
{
    static place inside;
    static unsigned char bytes[SIZE], back[SIZE];
    make_place(&inside, memory, 1);
    for (int i = 0; i < SIZE; i++)
        bytes[i] = (unsigned char)(i * 3);
    quire_copy_options o = BOX;
    o.to.memory = memory;
    o.to.allocation = inside.allocation;
    o.host_from = bytes;
    b->fc->reset_counters();
    CHECK_OK(quire_copy(&o, NULL));
    CHECK_EQ(b->fc->calls("cuMemcpy3D"), 1);
    o.from = o.to;
    o.to = BOX.from;
    o.host_from = NULL;
    o.host_to = back;
    CHECK_OK(quire_copy(&o, NULL));
    CHECK_EQ(b->fc->calls("cuMemcpy3D"), 2);
    for (uint64_t k = 0; k < 4; k++)
        for (uint64_t i = 0; i < 9; i++) {
            CHECK(!memcmp(back + k * 1280 + i * 128, bytes + k * 1280 + i * 128, 100));
            CHECK_EQ(back[k * 1280 + i * 128 + 100], 0);
        }
}

CUDA_UNIT_IN(cuda_copy, pinned_pages_are_reached_from_both_sides,
             begin(b, NULL, CUDA_KIND(DEVICE) | CUDA_KIND(PINNED)))
{
    static place device, pinned, other;
    quire_memory *host = cuda_bench_memory(b, QUIRE_CUDA_PINNED, &SMALL);
    make_place(&device, memory, 1);
    make_place(&pinned, host, 2);
    make_place(&other, host, 3);
    copy(&device, &pinned, WHOLE);
    copy(&pinned, &device, BOX);
    copy(&device, &pinned, ODD_BOX);
    copy(&other, &pinned, BOX);
    copy(&pinned, &other, ODD_BOX);
}

/* ---- two devices ---------------------------------------------------------------------------- */

static void between_devices(bool are_peers, uint32_t flags)
{
    static place near, far;
    cuda_bench b;
    fc_options driver = cuda_bench_options("h200", flags);
    driver.models[1] = driver.models[0];
    if (are_peers) {
        driver.peers[0] = 2;
        driver.peers[1] = 1;
    }
    quire_memory *memory = begin(&b, &driver, CUDA_KIND(DEVICE));
    quire_memory *other = cuda_bench_open_peer(&b, &SMALL);
    make_place(&near, memory, 1);
    make_place(&far, other, 2);
    CHECK_EQ(path_of(memory, other), QUIRE_COPY_DIRECT);
    b.fc->reset_counters();
    copy(&near, &far, WHOLE);
    CHECK_EQ(b.fc->calls("cuMemcpyPeer"), 1);
    copy(&far, &near, BOX);
    copy(&near, &far, ODD_BOX);
    CHECK_EQ(b.fc->calls("cuMemcpyPeer"), 1 + 36 + 36);
    cuda_bench_end(&b);
}

UNIT(cuda_copy, the_driver_copies_between_devices)
{
    between_devices(true, 0);
    between_devices(false, 0);
    between_devices(true, FC_LATE);
}
