/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * elastic.c - the contract: pages of elastic memories have memory in the chunks in use. Contents
 * and addresses stay while other memory of the page comes and goes. Each size
 * is checked before the new bytes are touched: a backend that did nothing fails the check, and the
 * program survives to report it. pages.c gives and takes memory through the table alone.
 */
#include "tests/contract/elastic.h"
#include "tests/support/state.h"

/* The pattern of an allocation has its number as the key. */
static void put(elastic *e, uint32_t number)
{
    quire_allocation made = e->made[number];
    elastic_size(e);
    e->places[number] = kit_native(e->memory, made);
    if (e->has_bytes)
        kit_write(e->memory, made, kit_info(e->memory, made).requested, 1 + number);
}

/* The allocation has the place and the contents that it got. */
static void look(const elastic *e, uint32_t number)
{
    const quire_native *was = &e->places[number];
    quire_native is = kit_native(e->memory, e->made[number]);
    CHECK_EQ(is.page.handle, was->page.handle);
    CHECK_EQ(is.page.address, was->page.address);
    CHECK_EQ(is.offset, was->offset);
    CHECK(is.host == was->host);
    if (e->has_bytes)
        kit_read(e->memory, e->made[number], kit_info(e->memory, e->made[number]).requested,
                 1 + number);
}

static void look_at(const elastic *e, uint32_t first, uint32_t count, uint32_t step)
{
    for (uint32_t i = first; i < count; i += step)
        look(e, i);
}

static void allocate(elastic *e, uint32_t number, uint64_t size)
{
    e->made[number] = ALLOCATE(e->memory, .size = size);
    put(e, number);
}

static void drop(const elastic *e, uint32_t first, uint32_t count, uint32_t step)
{
    for (uint32_t i = first; i < count; i += step) {
        look(e, i);
        CHECK_OK(quire_free(e->memory, e->made[i]));
    }
}

/* Refused for lack of memory, without an effect on the allocations. */
static void expect_refusal(const elastic *e, uint64_t size)
{
    quire_allocation none;
    const quire_memory_stats before = kit_stats(e->memory);
    quire_result result =
        quire_allocate(e->memory, &(quire_allocation_options){.size = size}, &none);
    CHECK(result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY || result == QUIRE_ERROR_OVER_BUDGET);
    CHECK_FAILS(result, result);
    CHECK(!none.id);
    const quire_memory_stats after = kit_stats(e->memory);
    CHECK_EQ(after.allocation_count, before.allocation_count);
    CHECK_EQ(after.live_bytes, before.live_bytes);
    CHECK_EQ(after.page_count, before.page_count);
    CHECK(after.reserved_bytes <= before.reserved_bytes); /* free chunks may lose their memory */
    CHECK_EQ(elastic_size(e), after.reserved_bytes);
}

/* Fills `count` chunks, one allocation each. */
static void fill_chunks(elastic *e, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        allocate(e, i, e->chunk);
    CHECK_EQ(elastic_size(e), count * e->chunk);
}

/* ---- borders --------------------------------------------------------------------------------- */

enum { PART = 4096 };

/* The border of two chunks within an allocation. The chunks got memory in different calls. */
typedef struct border {
    elastic e;
    quire_allocation low, across;
    uint64_t start; /* PART bytes before the border, as an offset in the allocation */
} border;

static void write_across(const border *m)
{
    unsigned char bytes[2 * PART];
    kit_fill(3, 0, bytes, sizeof bytes);
    CHECK_OK(quire_write(m->e.memory, m->across, m->start, bytes, sizeof bytes));
    memset(bytes, 0, sizeof bytes);
    CHECK_OK(quire_read(m->e.memory, m->across, m->start, bytes, sizeof bytes));
    kit_expect(3, 0, bytes, sizeof bytes);
    CHECK_OK(quire_fill(
        m->e.memory, m->across,
        &(quire_fill_options){.offset = m->start + PART - 100, .size = 200, .value = 0x3c}, NULL));
    CHECK_OK(quire_read(m->e.memory, m->across, m->start, bytes, sizeof bytes));
    for (int i = PART - 100; i < PART + 100; i++)
        CHECK_EQ(bytes[i], 0x3c);
    kit_expect(3, 0, bytes, PART - 100);
    kit_expect(3, PART + 100, bytes + PART + 100, PART - 100);
}

static void map_across(const border *m)
{
    void *pointer = NULL;
    unsigned char bytes[2 * PART];
    quire_native native = kit_native(m->e.memory, m->across);
    CHECK_OK(quire_map_range(m->e.memory, m->across, m->start, sizeof bytes, &pointer));
    kit_fill(4, 0, pointer, sizeof bytes);
    CHECK_OK(quire_flush(m->e.memory, m->across, m->start, sizeof bytes));
    if (kit_look(m->e.w, &native.page, native.offset + m->start, bytes, sizeof bytes))
        kit_expect(4, 0, bytes, sizeof bytes);
    CHECK_OK(quire_unmap(m->e.memory, m->across));
}

/* From the first chunk to the border, and back. */
static void copy_across(const border *m)
{
    quire_copy_path path;
    unsigned char bytes[2 * PART];
    quire_memory *memory = m->e.memory;
    CHECK_OK(quire_copy_get_path(memory, memory, &path));
    if (path == QUIRE_COPY_UNSUPPORTED || !m->e.has_bytes)
        return;
    quire_copy_options there = {.to = {memory, m->across, m->start, 0, 0},
                                .from = {memory, m->low, 0, 0, 0},
                                .size = sizeof bytes};
    quire_copy_options back = {
        .to = {memory, m->low, sizeof bytes, 0, 0}, .from = there.to, .size = sizeof bytes};
    CHECK_OK(quire_copy(&there, NULL));
    CHECK_OK(quire_read(memory, m->across, m->start, bytes, sizeof bytes));
    kit_expect(1, 0, bytes, sizeof bytes);
    CHECK_OK(quire_copy(&back, NULL));
    CHECK_OK(quire_read(memory, m->low, sizeof bytes, bytes, sizeof bytes));
    kit_expect(1, 0, bytes, sizeof bytes);
}

/* The first two chunks keep `low`, the fourth and fifth get memory before the third. */
static void chunks_have_no_borders(contract_world *w, uint32_t kind)
{
    if (!is_elastic(w, kind))
        return;
    border m = {.e = begin_elastic(w, kind, 0)};
    elastic *e = &m.e;
    fill_chunks(e, 4);
    drop(e, 2, 3, 1);
    CHECK_OK(quire_memory_trim(e->memory, 0, NULL));
    CHECK_EQ(elastic_size(e), 3 * e->chunk);
    drop(e, 3, 4, 1);
    m.low = e->made[0];
    m.across = ALLOCATE(e->memory, .size = 2 * e->chunk);
    CHECK_EQ(elastic_size(e), 4 * e->chunk);
    CHECK_EQ(kit_info(e->memory, m.across).offset, 2 * e->chunk);
    m.start = e->chunk - PART;
    if (e->has_bytes)
        write_across(&m);
    if (kit_maps_elastic(w, kind))
        map_across(&m);
    copy_across(&m);
    drop(e, 1, 2, 1);
    CHECK_OK(quire_free(e->memory, m.low));
    CHECK_OK(quire_free(e->memory, m.across));
    kit_end(&e->memory);
}

/* ---- memory comes and goes ------------------------------------------------------------------ */

static void neighbours_come_and_go(contract_world *w, uint32_t kind)
{
    if (!is_elastic(w, kind))
        return;
    elastic e = begin_elastic(w, kind, 0);
    fill_chunks(&e, COUNT);
    for (uint32_t round = 0; round < 6; round++) {
        const uint32_t first = round % 2;
        drop(&e, first, COUNT, 2);
        look_at(&e, !first, COUNT, 2);
        if (round % 3 != 2)
            CHECK_OK(quire_memory_trim(e.memory, round * e.chunk, NULL));
        CHECK(elastic_size(&e) >= COUNT / 2 * e.chunk);
        look_at(&e, !first, COUNT, 2);
        for (uint32_t i = first; i < COUNT; i += 2)
            allocate(&e, i, e.chunk - round * 1000);
        look_at(&e, 0, COUNT, 1);
    }
    drop(&e, 0, COUNT, 1);
    kit_end(&e.memory);
}

static void usage_falls(contract_world *w, uint32_t kind)
{
    uint64_t released = 0;
    if (!is_elastic(w, kind))
        return;
    elastic e = begin_elastic(w, kind, 0);
    allocate(&e, 0, e.chunk / 2);
    allocate(&e, 1, 4 * e.chunk);
    const uint64_t usage = elastic_budget(&e).usage, size = elastic_size(&e);
    drop(&e, 1, 2, 1);
    CHECK_OK(quire_memory_trim(e.memory, 0, &released));
    CHECK_EQ(elastic_size(&e), size - released);
    CHECK(released >= 3 * e.chunk);
    CHECK(w->subject->is_shared || elastic_budget(&e).usage < usage);
    drop(&e, 0, 1, 1);
    kit_end(&e.memory);
}

/* Chunks 1, 3 and 5 lose their memory, and a request of five chunks gets them and 2 and 4. */
static void trim_returns_memory(contract_world *w, uint32_t kind)
{
    uint64_t released = 0;
    if (!is_elastic(w, kind))
        return;
    elastic e = begin_elastic(w, kind, 0);
    fill_chunks(&e, COUNT);
    const uint64_t usage = elastic_budget(&e).usage;
    drop(&e, 1, COUNT, 2);
    CHECK_OK(quire_memory_trim(e.memory, 0, &released));
    CHECK_EQ(released, COUNT / 2 * e.chunk);
    CHECK_EQ(elastic_size(&e), COUNT / 2 * e.chunk);
    CHECK(w->subject->is_shared || elastic_budget(&e).usage < usage);
    look_at(&e, 0, COUNT, 2);
    drop(&e, 2, 5, 2);
    allocate(&e, 1, 5 * e.chunk);
    CHECK_EQ(elastic_size(&e), (COUNT / 2 + 3) * e.chunk);
    look(&e, 1);
    look(&e, 0);
    look_at(&e, 6, COUNT, 2);
    drop(&e, 0, 2, 1);
    drop(&e, 6, COUNT, 2);
    CHECK_OK(quire_memory_trim(e.memory, 0, NULL));
    CHECK_EQ(kit_stats(e.memory).reserved_bytes, 0);
    CHECK_EQ(elastic_budget(&e).reserved, 0);
    CHECK(w->subject->is_shared || elastic_budget(&e).usage - e.usage < e.chunk);
    allocate(&e, 0, COUNT * e.chunk); /* all of it has memory again */
    drop(&e, 0, 1, 1);
    kit_end(&e.memory);
}

/* ---- exhaustion ----------------------------------------------------------------------------- */

/*
 * `count` allocations of `size` bytes fill the memory. Every second one is freed, and one request
 * gets what they had.
 */
static void expect_free_chunks_to_serve(elastic *e, uint32_t count, uint64_t size)
{
    const uint64_t full = elastic_size(e);
    drop(e, 1, count, 2);
    expect_refusal(e, (count / 2 + 2) * size);
    look_at(e, 0, count, 2);
    allocate(e, 1, count / 2 * size);
    CHECK(elastic_size(e) <= full);
    look(e, 1);
    look_at(e, 0, count, 2);
    drop(e, 1, 2, 1);
    drop(e, 0, count, 2);
}

static void free_chunks_serve_within_a_limit(contract_world *w, uint32_t kind)
{
    if (!is_elastic(w, kind))
        return;
    const uint32_t heap = w->info.kinds[kind].heap;
    elastic e = begin_elastic(w, kind, 0);
    const uint64_t chunk = e.chunk;
    kit_end(&e.memory);
    e = begin_elastic(w, kind, 4 * COUNT * chunk);
    CHECK_OK(quire_device_set_heap_limit(w->device, heap, COUNT * chunk));
    fill_chunks(&e, COUNT);
    const uint64_t before = state_of_memory(e.memory);
    expect_refusal(&e, 1);
    CHECK_EQ(state_of_memory(e.memory), before);
    look_at(&e, 0, COUNT, 1);
    expect_free_chunks_to_serve(&e, COUNT, chunk);
    CHECK_OK(quire_device_set_heap_limit(w->device, heap, 0));
    kit_end(&e.memory);
}

/* Allocates until the heap is exhausted. */
static uint32_t fill_heap(elastic *e, uint64_t size)
{
    for (uint32_t count = 0; count < MAX_COUNT; count++) {
        const uint64_t before = state_of_memory(e->memory);
        quire_result result =
            quire_allocate(e->memory, &(quire_allocation_options){.size = size}, &e->made[count]);
        if (!result) {
            put(e, count);
            continue;
        }
        CHECK(result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY || result == QUIRE_ERROR_OVER_BUDGET);
        CHECK_EQ(state_of_memory(e->memory), before);
        return count;
    }
    check_failed(__FILE__, __LINE__, "%d allocations and no end", MAX_COUNT);
}

/* A page with more addresses than a small heap has bytes. *size: that of allocations to fill it.
   Returns false if the heap is too large, or the kind is not elastic. */
static bool begin_in_heap(const contract_world *w, uint32_t kind, elastic *e, uint64_t *size)
{
    const uint64_t heap = w->info.heaps[w->info.kinds[kind].heap].size;
    const uint64_t most = w->subject->max_fill ? w->subject->max_fill : 64 * MIB;
    if (!is_elastic(w, kind) || heap > most)
        return false;
    *e = begin_elastic(w, kind, 4 * heap);
    *size = kit_round_up(heap / 40, e->chunk);
    return true;
}

static void free_chunks_serve_in_a_full_heap(contract_world *w, uint32_t kind)
{
    elastic e;
    uint64_t size = 0;
    if (!begin_in_heap(w, kind, &e, &size))
        return;
    const uint32_t count = fill_heap(&e, size);
    CHECK(count > 4);
    expect_free_chunks_to_serve(&e, count, size);
    kit_end(&e.memory);
}

static void a_heap_is_full_at_the_same_size(contract_world *w, uint32_t kind)
{
    elastic e;
    uint64_t size = 0;
    if (!begin_in_heap(w, kind, &e, &size))
        return;
    const uint32_t count = fill_heap(&e, size);
    CHECK(count > 4);
    drop(&e, 0, count, 1);
    CHECK_OK(quire_memory_trim(e.memory, 0, NULL));
    CHECK_EQ(kit_stats(e.memory).reserved_bytes, 0);
    const uint32_t again = fill_heap(&e, size);
    CHECK(w->subject->is_shared || again == count);
    drop(&e, 0, again, 1);
    kit_end(&e.memory);
}

static void addresses_end(contract_world *w, uint32_t kind)
{
    if (!is_elastic(w, kind))
        return;
    elastic e = begin_elastic(w, kind, 0);
    fill_chunks(&e, COUNT);
    const uint64_t before = state_of_memory(e.memory);
    expect_refusal(&e, 1);
    CHECK_EQ(state_of_memory(e.memory), before);
    drop(&e, 1, COUNT, 2);
    expect_refusal(&e, e.chunk + 1); /* only single chunks have addresses */
    look_at(&e, 0, COUNT, 2);
    allocate(&e, 1, e.chunk);
    drop(&e, 0, 1, 1);
    drop(&e, 1, 2, 1);
    drop(&e, 2, COUNT, 2);
    kit_end(&e.memory);
}

static void kinds_that_cannot_are_refused(contract_world *w, uint32_t kind)
{
    quire_memory_info info;
    quire_memory *memory = (quire_memory *)w;
    quire_memory_options options = {.elastic = true, .kind.mask = UINT32_C(1) << kind};
    quire_result result = quire_memory_create(w->device, &options, &memory);
    if (kit_grows(w, kind)) {
        CHECK_OK(result);
        CHECK_OK(quire_memory_get_info(memory, &info));
        CHECK(info.address_space >= info.page_size);
        kit_end(&memory);
        return;
    }
    CHECK_FAILS(result, QUIRE_ERROR_UNSUPPORTED);
    CHECK(!memory);
}

const contract_scenario contract_elastic[] = {
    {.name = "an allocation crosses chunks that got their memory in different calls",
     .of_kind = chunks_have_no_borders,
     .applies = kit_has_growth,
     .is_exact = true},
    {.name = "chunks keep address and contents while others come and go",
     .of_kind = neighbours_come_and_go,
     .applies = kit_has_growth,
     .is_exact = true},
    {.name = "memory that a page loses is no longer used",
     .of_kind = usage_falls,
     .applies = kit_has_growth},
    {.name = "a trim takes the memory of free chunks, which can have it again",
     .of_kind = trim_returns_memory,
     .applies = kit_has_growth,
     .is_exact = true},
    {.name = "free chunks serve a large request within a limit",
     .of_kind = free_chunks_serve_within_a_limit,
     .applies = kit_has_growth,
     .is_exact = true},
    {.name = "free chunks serve a large request in a full heap",
     .of_kind = free_chunks_serve_in_a_full_heap,
     .applies = kit_has_growth,
     .is_exact = true},
    {.name = "a heap is full at the same size of a page each time",
     .of_kind = a_heap_is_full_at_the_same_size,
     .applies = kit_has_growth},
    {.name = "a refusal for lack of addresses changes nothing",
     .of_kind = addresses_end,
     .applies = kit_has_growth,
     .is_exact = true},
    {.name = "kinds that cannot be elastic make no elastic memory",
     .of_kind = kinds_that_cannot_are_refused,
     .by_core = true},
    {0},
};
