/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * contents.c - the contract: written bytes stay, for every kind and every way to write and read
 * them.
 */
#include "tests/contract/kit.h"

enum { NEIGHBOURS = 8, LIVE = 40, STEPS = 400 };

/* ---- write and read ----------------------------------------------------------------------- */

static void copies_at_odd_places(quire_memory *memory, quire_allocation made, uint64_t size)
{
    static unsigned char mine[20000], found[20000];
    test_random r = {size};
    kit_fill(7, 0, mine, size);
    CHECK_OK(quire_write(memory, made, 0, mine, size));
    for (uint64_t i = 0; i < 40; i++) {
        uint64_t offset = random_below(&r, size), length = random_size(&r, size - offset);
        kit_fill(100 + i, 0, mine + offset, length);
        CHECK_OK(quire_write(memory, made, offset, mine + offset, length));
        offset = random_below(&r, size);
        length = random_size(&r, size - offset);
        CHECK_OK(quire_read(memory, made, offset, found, length));
        CHECK(!memcmp(found, mine + offset, length));
    }
    CHECK_OK(quire_read(memory, made, 0, found, size));
    CHECK(!memcmp(found, mine, size));
    CHECK_FAILS(quire_write(memory, made, 1, mine, size), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_FAILS(quire_read(memory, made, size, found, 1), QUIRE_ERROR_OUT_OF_RANGE);
}

static void round_trips(contract_world *w, uint32_t kind)
{
    quire_memory *memory = kit_memory(w, kind, NULL);
    for (uint64_t size = 3; size < 20000; size = size * 3 + 1) {
        quire_allocation before = ALLOCATE(memory, .size = 77);
        quire_allocation made = ALLOCATE(memory, .size = size);
        quire_allocation behind = ALLOCATE(memory, .size = 77);
        char bytes[77] = {0};
        quire_result written = quire_write(memory, before, 0, bytes, sizeof bytes);
        quire_result read = quire_read(memory, before, 0, bytes, sizeof bytes);
        CHECK_EQ(written, kit_can_write(w, kind) ? QUIRE_SUCCESS : QUIRE_ERROR_UNSUPPORTED);
        CHECK_EQ(read, kit_can_read(w, kind) ? QUIRE_SUCCESS : QUIRE_ERROR_UNSUPPORTED);
        if (kit_can_both(w, kind)) {
            kit_write(memory, before, 77, 1);
            kit_write(memory, behind, 77, 2);
            copies_at_odd_places(memory, made, size);
            kit_read(memory, before, 77, 1);
            kit_read(memory, behind, 77, 2);
        }
        CHECK_OK(quire_free(memory, before));
        CHECK_OK(quire_free(memory, made));
        CHECK_OK(quire_free(memory, behind));
    }
    kit_end(&memory);
}

/* ---- map ---------------------------------------------------------------------------------- */

static void refuses_pointers(quire_memory *memory)
{
    void *pointer = &pointer;
    quire_allocation made = ALLOCATE(memory, .size = 100), none;
    quire_allocation_options by_host = {.size = 100, .host_write = true};
    CHECK_FAILS(quire_map(memory, made, &pointer), QUIRE_ERROR_NOT_HOST_VISIBLE);
    CHECK(!pointer);
    CHECK_FAILS(quire_flush(memory, made, 0, 0), QUIRE_ERROR_NOT_HOST_VISIBLE);
    CHECK_FAILS(quire_invalidate(memory, made, 0, 0), QUIRE_ERROR_NOT_HOST_VISIBLE);
    CHECK_FAILS(quire_allocate(memory, &by_host, &none), QUIRE_ERROR_NOT_HOST_VISIBLE);
    CHECK(!kit_native(memory, made).host);
    CHECK_OK(quire_free(memory, made));
}

static void check_neighbour(quire_memory *memory, quire_allocation made, unsigned char *pointer,
                            uint64_t size, uint64_t key)
{
    kit_read(memory, made, size, key);
    kit_write(memory, made, size, key + 100);
    CHECK_OK(quire_invalidate(memory, made, 0, 0));
    kit_expect(key + 100, 0, pointer, size);
    CHECK_FAILS(quire_free(memory, made), QUIRE_ERROR_BUSY);
    CHECK_OK(quire_unmap(memory, made));
    CHECK_FAILS(quire_unmap(memory, made), QUIRE_ERROR_NOT_MAPPED);
}

static void neighbours_are_mapped(contract_world *w, uint32_t kind)
{
    quire_memory *memory = kit_memory(w, kind, NULL);
    quire_allocation made[NEIGHBOURS];
    quire_view views[NEIGHBOURS];
    void *pointers[NEIGHBOURS];
    if (!kit_is_visible(w, kind))
        refuses_pointers(memory);
    for (uint64_t i = 0; kit_is_visible(w, kind) && i < NEIGHBOURS; i++) {
        made[i] = ALLOCATE(memory, .size = 101 + i, .host_write = true, .host_read = true);
        CHECK_OK(quire_map(memory, made[i], &pointers[i]));
        CHECK(pointers[i] == kit_native(memory, made[i]).host);
        kit_fill(i, 0, pointers[i], 101 + i);
        views[i] = (quire_view){made[i], 0, 0};
    }
    for (uint64_t i = 0; kit_is_visible(w, kind) && i < NEIGHBOURS; i += 2)
        CHECK_OK(quire_flush(memory, made[i], 0, 0));
    if (kit_is_visible(w, kind))
        CHECK_OK(quire_flush_batch(memory, views, NEIGHBOURS));
    for (uint64_t i = 0; kit_is_visible(w, kind) && i < NEIGHBOURS; i++) {
        check_neighbour(memory, made[i], pointers[i], 101 + i, i);
        CHECK_OK(quire_free(memory, made[i]));
    }
    kit_end(&memory);
}

/* ---- map on demand ------------------------------------------------------------------------ */

/* Pages that are mapped and unmapped again and again keep their bytes, and lasting maps theirs. */
static void maps_on_demand_keep_contents(contract_world *w, uint32_t kind)
{
    const uint64_t size = 1000;
    quire_memory *memory = kit_memory(w, kind, &(quire_memory_options){.map_on_demand = true});
    if (!kit_is_visible(w, kind))
        refuses_pointers(memory);
    for (uint64_t round = 0; kit_is_visible(w, kind) && round < 3; round++) {
        void *pointer = NULL;
        quire_allocation lasting =
            ALLOCATE(memory, .size = size, .mapped = true, .dedicated = round == 1);
        quire_allocation made =
            ALLOCATE(memory, .size = size, .zero = true, .dedicated = round > 0);
        kit_fill(1, 0, kit_info(memory, lasting).host, size);
        CHECK_OK(quire_flush(memory, lasting, 0, 0));
        kit_write(memory, made, size, 2);
        CHECK_OK(quire_map(memory, made, &pointer));
        CHECK_OK(quire_invalidate(memory, made, 0, 0));
        kit_expect(2, 0, pointer, size);
        kit_fill(3, 0, pointer, size);
        CHECK_OK(quire_flush(memory, made, 0, 0));
        CHECK_OK(quire_unmap(memory, made));
        kit_read(memory, made, size, 3);
        CHECK_OK(quire_free(memory, made));
        kit_read(memory, lasting, size, 1);
        CHECK_OK(quire_free(memory, lasting));
    }
    kit_end(&memory);
}

/* ---- batches ------------------------------------------------------------------------------- */

enum { BATCH = 150, PIECE = 40 };

/* Writes that share bytes, of odd sizes and offsets, and reads of single pieces. */
static void batches_round_trip(contract_world *w, uint32_t kind)
{
    static unsigned char source[BATCH + PIECE], model[3][KIB], found[BATCH][PIECE];
    quire_allocation made[3];
    quire_write_item writes[BATCH];
    quire_read_item reads[BATCH];
    test_random r = {kind + 5};
    quire_memory *memory = kit_memory(w, kind, NULL);
    kit_fill(3, 0, source, sizeof source);
    memset(model, 0, sizeof model);
    for (int i = 0; i < 3; i++)
        made[i] = ALLOCATE(memory, .size = KIB, .zero = kit_can_write(w, kind));
    for (int i = 0; i < BATCH; i++) {
        uint64_t k = random_below(&r, 3), size = random_below(&r, PIECE + 1);
        uint64_t at = random_below(&r, KIB - size + 1);
        writes[i] = (quire_write_item){made[k], at, source + i, size};
        memcpy(model[k] + at, source + i, size);
        reads[i] = (quire_read_item){made[i % 3], (uint64_t)i * 6, found[i], PIECE};
    }
    quire_result written = quire_write_batch(memory, writes, BATCH, NULL, NULL);
    CHECK_EQ(written, kit_can_write(w, kind) ? QUIRE_SUCCESS : QUIRE_ERROR_UNSUPPORTED);
    quire_result result = quire_read_batch(memory, reads, BATCH);
    CHECK_EQ(result, kit_can_read(w, kind) ? QUIRE_SUCCESS : QUIRE_ERROR_UNSUPPORTED);
    for (int i = 0; i < BATCH && !written && !result; i++)
        CHECK(!memcmp(found[i], model[i % 3] + i * 6, PIECE));
    for (int i = 0; i < 3; i++)
        CHECK_OK(quire_free(memory, made[i]));
    kit_end(&memory);
}

/* ---- host and device ---------------------------------------------------------------------- */

/*
 * The device writes the allocations before and after. The host, which has not read them since,
 * writes and flushes the middle one in parts.
 */
static void flush_keeps_to_its_own(contract_world *w, quire_memory *memory, uint64_t size)
{
    quire_allocation made[3];
    quire_native native[3];
    unsigned char bytes[1000];
    void *pointer = NULL;
    bool seen = true;
    for (uint64_t i = 0; i < 3; i++) {
        made[i] = ALLOCATE(memory, .size = size);
        native[i] = kit_native(memory, made[i]);
        kit_fill(i, 0, bytes, size);
        seen = seen && kit_put(w, &native[i].page, native[i].offset, bytes, size);
    }
    CHECK_OK(quire_map(memory, made[1], &pointer));
    kit_fill(9, 0, pointer, size);
    for (uint64_t i = 0; i < size; i += 33)
        CHECK_OK(quire_flush(memory, made[1], i, size - i < 33 ? size - i : 33));
    CHECK_OK(quire_unmap(memory, made[1]));
    for (uint64_t i = 0; i < 3; i++) {
        if (seen && kit_look(w, &native[i].page, native[i].offset, bytes, size))
            kit_expect(i == 1 ? 9 : i, 0, bytes, size);
        if (seen)
            kit_read(memory, made[i], size, i == 1 ? 9 : i);
        CHECK_OK(quire_free(memory, made[i]));
    }
}

static void host_and_device_agree(contract_world *w, uint32_t kind)
{
    quire_memory *memory = kit_memory(w, kind, NULL);
    for (uint64_t size = 1; size <= 1000; size = size * 4 + 3) {
        unsigned char bytes[1000];
        quire_allocation made = ALLOCATE(memory, .size = size);
        quire_native native = kit_native(memory, made);
        if (kit_can_write(w, kind))
            kit_write(memory, made, size, 1);
        if (kit_can_write(w, kind) && kit_look(w, &native.page, native.offset, bytes, size))
            kit_expect(1, 0, bytes, size);
        kit_fill(2, 0, bytes, size);
        if (kit_put(w, &native.page, native.offset, bytes, size) && kit_can_read(w, kind))
            kit_read(memory, made, size, 2);
        CHECK_OK(quire_free(memory, made));
        if (kit_is_visible(w, kind))
            flush_keeps_to_its_own(w, memory, size);
    }
    kit_end(&memory);
}

/* ---- churn -------------------------------------------------------------------------------- */

typedef struct kept {
    quire_allocation allocation;
    uint64_t size, key;
} kept;

static void churn_keeps_patterns(contract_world *w, uint32_t kind)
{
    if (!kit_can_both(w, kind))
        return;
    quire_memory *memory = kit_memory(w, kind, NULL);
    test_random r = {kind + 77};
    kept live[LIVE] = {0};
    for (uint64_t step = 0; step < STEPS + LIVE; step++) {
        kept *k = &live[step < STEPS ? random_below(&r, LIVE) : step - STEPS];
        if (k->allocation.id) {
            kit_read(memory, k->allocation, k->size, k->key);
            CHECK_OK(quire_free(memory, k->allocation));
            *k = (kept){0};
        } else if (step < STEPS) {
            *k = (kept){.size = random_size(&r, 12 * KIB), .key = step};
            k->allocation =
                ALLOCATE(memory, .size = k->size, .alignment = UINT64_C(1) << random_below(&r, 10),
                         .dedicated = random_below(&r, 24) == 0);
            kit_write(memory, k->allocation, k->size, k->key);
        }
        if (random_below(&r, 50) == 0)
            CHECK_OK(quire_memory_trim(memory, 0, NULL));
        for (int i = 0; step % 100 == 99 && i < LIVE; i++)
            if (live[i].allocation.id)
                kit_read(memory, live[i].allocation, live[i].size, live[i].key);
    }
    kit_end(&memory);
}

/* ---- zeros -------------------------------------------------------------------------------- */

static void expect_zeros(quire_memory *memory, quire_allocation made, uint64_t size)
{
    static unsigned char bytes[KIT_LONGEST];
    CHECK(size <= sizeof bytes);
    memset(bytes, 0x5a, size);
    CHECK_OK(quire_read(memory, made, 0, bytes, size));
    for (uint64_t i = 0; i < size; i++)
        CHECK_EQ(bytes[i], 0);
}

/* Zeroes fresh pages and, after a round that wrote every byte, used pages; shared and dedicated. */
static void zero_is_zero(contract_world *w, uint32_t kind)
{
    if (!kit_can_both(w, kind))
        return;
    quire_memory *memory = kit_memory(w, kind, NULL);
    for (uint64_t round = 0; round < 3; round++) {
        quire_allocation made[6];
        for (uint64_t i = 0; i < 6; i++) {
            uint64_t size = 61 + i * 10007;
            made[i] = ALLOCATE(memory, .size = size, .zero = true, .dedicated = i == 3);
            expect_zeros(memory, made[i], size);
            kit_write(memory, made[i], size, i + 1);
        }
        for (uint64_t i = 0; i < 6; i++) {
            kit_read(memory, made[i], 61 + i * 10007, i + 1);
            CHECK_OK(quire_free(memory, made[i]));
        }
        if (round)
            CHECK_OK(quire_memory_trim(memory, 0, NULL));
    }
    kit_end(&memory);
}

const contract_scenario contract_contents[] = {
    {.name = "bytes at odd offsets are read back, or UNSUPPORTED without copies",
     .of_kind = round_trips},
    {.name = "batches write in order and read back, or UNSUPPORTED without copies",
     .of_kind = batches_round_trip},
    {.name = "neighbours are mapped to their own bytes, or not at all",
     .of_kind = neighbours_are_mapped},
    {.name = "pages that are mapped on demand keep their bytes",
     .of_kind = maps_on_demand_keep_contents},
    {.name = "host and device see each other's bytes, and no other byte changes",
     .of_kind = host_and_device_agree},
    {.name = "random allocations keep their patterns until they are freed",
     .of_kind = churn_keeps_patterns},
    {.name = "zeroed allocations are zero on pages that were used", .of_kind = zero_is_zero},
    {0},
};
