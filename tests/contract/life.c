/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * life.c - the contract: handles, destruction, devices side by side, and statistics that add up.
 */
#include "tests/contract/kit.h"

enum { MADE = 20 };

/* ---- destruction -------------------------------------------------------------------------- */

static void children_keep_their_parents(contract_world *w, uint32_t kind)
{
    quire_memory *memory = kit_memory(w, kind, NULL);
    quire_allocation made = ALLOCATE(memory, .size = 500, .name = "still here");
    if (kit_can_both(w, kind))
        kit_write(memory, made, 500, 3);
    CHECK_FAILS(quire_memory_destroy(&memory), QUIRE_ERROR_BUSY);
    CHECK_HAS(quire_last_error(), "still here");
    CHECK_FAILS(quire_device_destroy(&w->device), QUIRE_ERROR_BUSY);
    CHECK(memory && w->device);
    if (kit_can_both(w, kind))
        kit_read(memory, made, 500, 3);
    CHECK_OK(quire_free(memory, made));
    kit_end(&memory);
}

static void destroy_all_ends_everything(contract_world *w, uint32_t kind)
{
    quire_memory *memory = kit_memory(w, kind, NULL);
    quire_budget_info budget;
    quire_allocation reserved;
    quire_buffer buffer;
    void *pointer;
    quire_allocation mapped = ALLOCATE(memory, .size = 100);
    if (kit_is_visible(w, kind))
        CHECK_OK(quire_map(memory, mapped, &pointer));
    CHECK_OK(quire_reserve(memory, &(quire_allocation_options){.size = 7}, &reserved));
    (void)ALLOCATE(memory, .size = 1000, .dedicated = true);
    quire_result result =
        quire_buffer_create(memory, &(quire_buffer_options){.size = 300}, &buffer);
    CHECK(!result || result == QUIRE_ERROR_UNSUPPORTED);
    quire_memory_destroy_all(&memory);
    CHECK(!memory);
    CHECK_OK(quire_device_get_budget(w->device, w->info.kinds[kind].heap, &budget));
    CHECK_EQ(budget.reserved, 0);
}

static void handles_are_known(contract_world *w, uint32_t kind)
{
    quire_memory *memory = kit_memory(w, kind, NULL), *other = kit_memory(w, kind, NULL);
    quire_allocation_info info;
    quire_native native;
    char byte = 0;
    quire_allocation made = ALLOCATE(memory, .size = 10);
    CHECK_FAILS(quire_allocation_get_native(other, made, &native), QUIRE_ERROR_FOREIGN_HANDLE);
    CHECK_FAILS(quire_write(other, made, 0, &byte, 1), QUIRE_ERROR_FOREIGN_HANDLE);
    CHECK_FAILS(quire_free(other, made), QUIRE_ERROR_FOREIGN_HANDLE);
    CHECK_OK(quire_free(memory, made));
    for (int i = 0; i < 3; i++) {
        quire_allocation next = ALLOCATE(memory, .size = 10); /* at the place of the first one */
        CHECK(next.id != made.id);
        CHECK_FAILS(quire_free(memory, made), QUIRE_ERROR_STALE_HANDLE);
        CHECK_FAILS(quire_allocation_get_native(memory, made, &native), QUIRE_ERROR_STALE_HANDLE);
        CHECK_FAILS(quire_allocation_get_info(memory, made, &info), QUIRE_ERROR_STALE_HANDLE);
        CHECK_FAILS(quire_read(memory, made, 0, &byte, 1), QUIRE_ERROR_STALE_HANDLE);
        CHECK_OK(quire_free(memory, next));
    }
    kit_end(&memory);
    kit_end(&other);
}

/* ---- two devices -------------------------------------------------------------------------- */

static void fill_with(const contract_world *w, quire_memory *memory, uint32_t kind,
                      quire_allocation *made, uint64_t key)
{
    for (uint64_t i = 0; i < MADE; i++) {
        made[i] = ALLOCATE(memory, .size = 200 + 50 * i, .dedicated = i % 8 == 0);
        if (kit_can_both(w, kind))
            kit_write(memory, made[i], 200 + 50 * i, key + i);
    }
}

static void check_and_free(const contract_world *w, quire_memory *memory, uint32_t kind,
                           quire_allocation *made, uint64_t key)
{
    for (uint64_t i = 0; i < MADE; i++) {
        if (kit_can_both(w, kind))
            kit_read(memory, made[i], 200 + 50 * i, key + i);
        CHECK_OK(quire_free(memory, made[i]));
    }
    kit_end(&memory);
}

static void devices_do_not_meet(contract_world *w, uint32_t kind)
{
    contract_world other;
    quire_allocation here[MADE], there[MADE];
    CHECK_OK(world_open(&other, w->subject));
    quire_memory *mine = kit_memory(w, kind, NULL), *its = kit_memory(&other, kind, NULL);
    fill_with(w, mine, kind, here, 100);
    fill_with(&other, its, kind, there, 200);
    CHECK_FAILS(quire_free(mine, there[0]), QUIRE_ERROR_FOREIGN_HANDLE);
    check_and_free(&other, its, kind, there, 200);
    world_close(&other);
    check_and_free(w, mine, kind, here, 100);
}

/* ---- statistics --------------------------------------------------------------------------- */

typedef struct sums {
    uint64_t live, free, requested, count, pages, page_bytes;
    /* Bytes of pages whose address or size is no multiple of the granule; they are in no range. */
    uint64_t edges;
    uint64_t granule;
    quire_item last;
} sums;

static void end_page(sums *s)
{
    uint64_t edge = s->last.page_size - s->last.offset - s->last.size;
    CHECK(edge < s->granule);
    s->edges += edge;
}

static void begin_page(sums *s, const quire_item *item)
{
    uint64_t edge = item->offset - item->left_padding;
    if (s->pages)
        end_page(s);
    CHECK(edge < s->granule);
    s->edges += edge;
    s->pages++;
    s->page_bytes += item->page_size;
}

static bool add_item(void *user, const quire_item *item)
{
    sums *s = user;
    if (!s->pages || s->last.page != item->page)
        begin_page(s, item);
    else
        CHECK_EQ(item->offset - item->left_padding, s->last.offset + s->last.size);
    s->last = *item;
    if (item->is_free)
        s->free += item->size;
    else
        s->live += item->size + item->left_padding;
    s->requested += item->requested;
    s->count += !item->is_free;
    return true;
}

static void check_statistics(const contract_world *w, quire_memory *memory)
{
    quire_memory_info info;
    quire_device_stats device;
    quire_memory_stats stats = kit_stats(memory);
    CHECK_OK(quire_memory_get_info(memory, &info));
    sums s = {.granule = info.granule};
    CHECK_OK(quire_memory_walk(memory, add_item, &s));
    if (s.pages)
        end_page(&s);
    CHECK_OK(quire_memory_check(memory));
    CHECK_OK(quire_device_get_stats(w->device, &device));
    CHECK_EQ(s.live, stats.live_bytes);
    CHECK_EQ(s.free + s.edges, stats.free_bytes);
    CHECK_EQ(s.live + s.free + s.edges, s.page_bytes);
    CHECK_EQ(s.page_bytes, stats.reserved_bytes);
    CHECK_EQ(s.requested, stats.requested_bytes);
    CHECK_EQ(s.count, stats.allocation_count);
    CHECK_EQ(s.pages, stats.page_count);
    CHECK_EQ(stats.pages_created - stats.pages_destroyed, stats.page_count);
    CHECK_EQ(stats.allocations - stats.frees, stats.allocation_count);
    CHECK_EQ(device.reserved_bytes, stats.reserved_bytes);
    CHECK_EQ(device.page_count, stats.page_count);
    CHECK_EQ(device.live_bytes, stats.live_bytes);
}

static void statistics_add_up(contract_world *w, uint32_t kind)
{
    quire_memory *memory = kit_memory(w, kind, NULL);
    test_random r = {kind + 11};
    quire_allocation live[MADE] = {0};
    for (int step = 0; step < 20 * MADE; step++) {
        quire_allocation *a = &live[random_below(&r, MADE)];
        if (a->id) {
            CHECK_OK(quire_free(memory, *a));
            a->id = 0;
        } else {
            *a = ALLOCATE(memory, .size = random_size(&r, 40 * KIB),
                          .alignment = UINT64_C(1) << random_below(&r, 13),
                          .dedicated = random_below(&r, 10) == 0);
        }
        if (step % 40 == 39)
            check_statistics(w, memory);
        if (step % 150 == 149)
            CHECK_OK(quire_memory_trim(memory, 0, NULL));
    }
    for (int i = 0; i < MADE; i++)
        if (live[i].id)
            CHECK_OK(quire_free(memory, live[i]));
    check_statistics(w, memory);
    kit_end(&memory);
}

const contract_scenario contract_life[] = {
    {.name = "memory and device are BUSY while a child is live, and nothing changes",
     .of_kind = children_keep_their_parents},
    {.name = "destroy_all frees mapped, reserved and dedicated allocations",
     .of_kind = destroy_all_ends_everything},
    {.name = "stale and foreign handles are recognized", .of_kind = handles_are_known},
    {.name = "two devices are independent", .of_kind = devices_do_not_meet},
    {.name = "the statistics are the sums of the walk", .of_kind = statistics_add_up},
    {0},
};
