/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * placement.c - the contract: places of allocations, for every kind.
 */
#include "tests/contract/kit.h"

enum { LIVE = 64 };

/* An allocation, its page and its native side report the same place. */
static void check_place(const contract_world *w, quire_memory *memory, quire_allocation allocation)
{
    quire_allocation_info info = kit_info(memory, allocation);
    quire_native native = kit_native(memory, allocation);
    quire_page_info page;
    CHECK_OK(quire_page_get_info(memory, info.page, &page));
    CHECK(info.left_padding <= info.offset);
    CHECK(info.requested <= info.size);
    CHECK(info.offset + info.size <= page.size);
    CHECK_EQ(page.size, native.page.size);
    CHECK_EQ(page.size % w->info.limits.page_granularity, 0);
    CHECK_EQ(page.address, native.page.address);
    CHECK_EQ(page.dedicated, info.dedicated);
    CHECK_EQ(page.mappable, native.host != NULL);
    CHECK_EQ(info.offset, native.offset);
    CHECK_EQ(info.size, native.size);
    uint64_t base = page.address ? page.address : kit_device_address(w, &native.page);
    CHECK_EQ(info.address, base ? base + info.offset : 0);
    CHECK(native.device == w->device);
    CHECK(!page.address || page.live_bytes + page.free_bytes == page.size);
}

static void info_is_within_the_page(contract_world *w, uint32_t kind)
{
    uint64_t page = kit_page_size(w);
    const uint64_t sizes[] = {1, 255, 4097, page, page + 1, 3 * page + 5};
    quire_memory *memory = kit_memory(w, kind, NULL);
    quire_allocation made[12];
    for (uint64_t i = 0; i < 12; i++) {
        uint64_t size = sizes[i / 2];
        made[i] = ALLOCATE(memory, .size = size, .dedicated = i % 2 == 1, .user_data = i);
        check_place(w, memory, made[i]);
        quire_allocation_info info = kit_info(memory, made[i]);
        CHECK_EQ(info.requested, size);
        CHECK_EQ(info.user_data, i);
        CHECK(info.dedicated || i % 2 == 0);
        CHECK(info.committed && !info.map_count && info.object == QUIRE_OBJECT_NONE);
        if (kit_can_both(w, kind)) {
            kit_write(memory, made[i], size, i);
            kit_read(memory, made[i], size, i);
        }
    }
    for (uint64_t i = 0; i < 12; i++) {
        if (kit_can_both(w, kind))
            kit_read(memory, made[i], sizes[i / 2], i);
        CHECK_OK(quire_free(memory, made[i]));
    }
    kit_end(&memory);
}

static void alignments_hold(contract_world *w, uint32_t kind)
{
    uint64_t largest = kit_largest_alignment(w, kind);
    for (int dedicated = 0; dedicated < 2; dedicated++) {
        quire_memory_options options = {.fit.algorithm =
                                            dedicated ? QUIRE_FIT_FIRST : QUIRE_FIT_SEGREGATED};
        quire_memory *memory = kit_memory(w, kind, &options);
        quire_allocation made[64], none;
        int count = 0;
        for (uint64_t alignment = 1; alignment <= largest; alignment *= 2) {
            for (int i = 0; i < 2; i++) {
                uint64_t size = 1 + alignment % 1000 + (uint64_t)i;
                made[count] = ALLOCATE(memory, .size = size, .alignment = alignment,
                                       .dedicated = dedicated && alignment % 8 == 0);
                quire_native native = kit_native(memory, made[count++]);
                CHECK(kit_is_aligned(&native, alignment));
                if (alignment >= 4096 && i) /* only a few at a time: some heaps are small */
                    CHECK_OK(quire_free(memory, made[--count]));
            }
        }
        while (count)
            CHECK_OK(quire_free(memory, made[--count]));
        quire_allocation_options beyond = {.size = 1, .alignment = 2 * largest};
        CHECK_FAILS(quire_allocate(memory, &beyond, &none), QUIRE_ERROR_INVALID_ARGUMENT);
        kit_end(&memory);
    }
}

/* ---- live ranges are disjoint ------------------------------------------------------------- */

typedef struct placed {
    quire_allocation allocation;
    quire_allocation_info info;
} placed;

static void check_apart(const placed *a, const placed *b)
{
    uint64_t a_begin = a->info.offset - a->info.left_padding, a_end = a->info.offset + a->info.size;
    uint64_t b_begin = b->info.offset - b->info.left_padding, b_end = b->info.offset + b->info.size;
    if (a->info.page == b->info.page)
        CHECK(a_end <= b_begin || b_end <= a_begin);
    if (a->info.page == b->info.page)
        CHECK(!a->info.dedicated && !b->info.dedicated);
    if (a->info.address && b->info.address)
        CHECK(a->info.address + a->info.size <= b->info.address ||
              b->info.address + b->info.size <= a->info.address);
}

static void ranges_are_apart(contract_world *w, uint32_t kind)
{
    quire_memory *memory = kit_memory(w, kind, NULL);
    test_random r = {kind + 1};
    placed live[LIVE] = {0};
    for (int step = 0; step < 6 * LIVE; step++) {
        placed *p = &live[random_below(&r, LIVE)];
        if (p->allocation.id) {
            CHECK_OK(quire_free(memory, p->allocation));
            *p = (placed){0};
            continue;
        }
        p->allocation = ALLOCATE(memory, .size = random_size(&r, 16 * KIB),
                                 .alignment = UINT64_C(1) << random_below(&r, 12),
                                 .dedicated = random_below(&r, 16) == 0);
        p->info = kit_info(memory, p->allocation);
        for (int i = 0; i < LIVE; i++)
            if (&live[i] != p && live[i].allocation.id)
                check_apart(p, &live[i]);
    }
    for (int i = 0; i < LIVE; i++)
        if (live[i].allocation.id)
            CHECK_OK(quire_free(memory, live[i].allocation));
    kit_end(&memory);
}

static void addresses_find_their_owner(contract_world *w, uint32_t kind)
{
    quire_memory *memory = kit_memory(w, kind, &(quire_memory_options){.find_by_address = true});
    quire_memory *found = NULL;
    quire_allocation allocation;
    for (uint64_t size = 1; size < kit_page_size(w); size = size * 5 + 3) {
        quire_allocation made = ALLOCATE(memory, .size = size, .alignment = 64);
        quire_native native = kit_native(memory, made);
        uint64_t places[] = {native.page.address ? native.page.address + native.offset : 0,
                             (uintptr_t)native.host};
        for (int i = 0; i < 2; i++) {
            if (!places[i])
                continue;
            CHECK_OK(quire_device_find(w->device, places[i] + size - 1, &found, &allocation));
            CHECK(found == memory);
            CHECK_EQ(allocation.id, made.id);
            CHECK_OK(quire_memory_find(memory, places[i], &allocation));
            CHECK_EQ(allocation.id, made.id);
        }
        CHECK_OK(quire_free(memory, made));
    }
    kit_end(&memory);
}

/* ---- export ------------------------------------------------------------------------------- */

static void export_is_as_reported(contract_world *w)
{
    quire_intent intent = QUIRE_INTENT_HOST_WRITE | QUIRE_INTENT_EXPORT;
    uint32_t kind = 0;
    if (!w->info.exportable) {
        CHECK_FAILS(
            quire_device_choose_kind(w->device, &(quire_kind_request){.intent = intent}, &kind),
            QUIRE_ERROR_UNSUPPORTED);
        return;
    }
    quire_result result =
        quire_device_choose_kind(w->device, &(quire_kind_request){.intent = intent}, &kind);
    if (result) { /* the device has no memory that the host can access */
        intent = QUIRE_INTENT_EXPORT;
        CHECK_OK(
            quire_device_choose_kind(w->device, &(quire_kind_request){.intent = intent}, &kind));
    }
    quire_memory *memory = NULL;
    quire_memory_options options = {.kind.intent = intent, .pages.page_size = kit_page_size(w)};
    CHECK_OK(quire_memory_create(w->device, &options, &memory));
    quire_allocation made = ALLOCATE(memory, .size = 1000),
                     own = ALLOCATE(memory, .size = 1000, .dedicated = true);
    if (kit_can_both(w, kind)) {
        kit_write(memory, made, 1000, 1);
        kit_write(memory, own, 1000, 2);
        kit_read(memory, made, 1000, 1);
        kit_read(memory, own, 1000, 2);
    }
    CHECK_OK(quire_free(memory, made));
    CHECK_OK(quire_free(memory, own));
    kit_end(&memory);
}

const contract_scenario contract_placement[] = {
    {.name = "allocations of 1 byte to 3 pages report one place and keep their contents",
     .of_kind = info_is_within_the_page},
    {.name = "alignments hold at the native address, up to the memory's largest",
     .of_kind = alignments_hold},
    {.name = "live ranges share no byte, by page and by native address",
     .of_kind = ranges_are_apart},
    {.name = "native addresses and host pointers find their owner",
     .of_kind = addresses_find_their_owner},
    {.name = "memory is exportable exactly if the device reports it",
     .body = export_is_as_reported},
    {0},
};
