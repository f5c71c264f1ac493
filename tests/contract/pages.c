/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * pages.c - the contract: pages created through the table's functions, without the core.
 */
#include "tests/contract/kit.h"

enum { PAGES = 12, PART = 4096 };

/* ---- size, alignment, place --------------------------------------------------------------- */

static void page_is_as_requested(contract_world *w, uint32_t kind)
{
    static const uint64_t sizes[] = {1, 3 * KIB, 64 * KIB, MIB + 1};
    const quire_limits *limits = &w->info.limits;
    for (int i = 0; i < 4; i++) {
        for (uint64_t alignment = 1; alignment <= kit_largest_alignment(w, kind); alignment *= 8) {
            kit_page page;
            quire_page_request request = {
                .kind = kind,
                .dedicated = i % 2 == 1,
                .size = kit_round_up(sizes[i], limits->page_granularity),
                .alignment = alignment,
                .label = "contract",
            };
            CHECK_OK(kit_page_try(w, &request, &page));
            CHECK(page.native.size >= request.size);
            uint64_t promised = limits->page_alignment ? limits->page_alignment : alignment;
            CHECK_EQ(page.native.address % promised, 0);
            kit_page_end(w, &page);
        }
    }
}

static bool are_apart(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
    return !a || !b || a + a_size <= b || b + b_size <= a;
}

static void pages_are_apart(contract_world *w, uint32_t kind)
{
    kit_page pages[PAGES];
    uint64_t addresses[PAGES];
    unsigned char bytes[PART];
    for (uint64_t i = 0; i < PAGES; i++) {
        pages[i] = kit_page_make(w, kind, 2 * PART * (1 + i % 3));
        addresses[i] = kit_device_address(w, &pages[i].native);
        const quire_native_page *native = &pages[i].native;
        for (uint64_t j = 0; j < i; j++) {
            const quire_native_page *other = &pages[j].native;
            CHECK(are_apart(native->address, native->size, other->address, other->size));
            CHECK(are_apart(addresses[i], native->size, addresses[j], other->size));
            CHECK(are_apart((uintptr_t)pages[i].pointer, native->size, (uintptr_t)pages[j].pointer,
                            other->size));
        }
    }
    bool reached = true;
    for (uint64_t i = 0; i < PAGES && reached; i++) {
        kit_fill(i, 0, bytes, PART);
        reached = kit_page_write(w, &pages[i], 0, bytes, PART);
    }
    for (uint64_t i = 0; i < PAGES; i++) {
        if (reached && kit_page_read(w, &pages[i], 0, bytes, PART))
            kit_expect(i, 0, bytes, PART);
        kit_page_end(w, &pages[i]);
    }
}

/* ---- contents ----------------------------------------------------------------------------- */

/* Ranges at odd offsets of a page and at its end: offset and size. */
static uint32_t odd_ranges(uint64_t size, uint64_t ranges[][2])
{
    const uint64_t all[][2] = {{0, 1},         {1, 2},
                               {7, 13},        {63, 66},
                               {255, 258},     {size / 2 - 1, 3},
                               {size - 1, 1},  {size - 101, 101},
                               {513, size / 2}};
    memcpy(ranges, all, sizeof all);
    return sizeof all / sizeof *all;
}

/* Gives one range after the other its own pattern: no other byte of the page changes. */
static void copies_are_exact(contract_world *w, uint32_t kind)
{
    kit_page page = kit_page_make(w, kind, 2 * PART);
    unsigned char mine[2 * PART], found[2 * PART];
    uint64_t ranges[16][2], size = 2 * PART;
    uint32_t count = odd_ranges(size, ranges);
    kit_fill(1, 0, mine, size);
    bool copied = kit_put(w, &page.native, 0, mine, size);
    for (uint32_t i = 0; copied && i < count; i++) {
        kit_fill(2 + i, 0, mine + ranges[i][0], ranges[i][1]);
        CHECK(kit_put(w, &page.native, ranges[i][0], mine + ranges[i][0], ranges[i][1]));
        memset(found, 0x5a, size);
        if (!kit_look(w, &page.native, 0, found, size))
            break;
        CHECK(!memcmp(found, mine, size));
    }
    for (uint32_t i = 0; copied && i < count; i++) {
        memset(found, 0x5a, size);
        if (!kit_look(w, &page.native, ranges[i][0], found + 1, ranges[i][1]))
            break;
        CHECK(!memcmp(found + 1, mine + ranges[i][0], ranges[i][1]));
        CHECK(found[0] == 0x5a && found[1 + ranges[i][1]] == 0x5a);
    }
    kit_page_end(w, &page);
}

static void mapping_and_device_agree(contract_world *w, uint32_t kind)
{
    if (!kit_is_visible(w, kind))
        return;
    kit_page page = kit_page_make(w, kind, 2 * PART);
    unsigned char bytes[2 * PART];
    uint64_t ranges[16][2], size = 2 * PART;
    uint32_t count = odd_ranges(size, ranges);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t offset = ranges[i][0], length = ranges[i][1];
        kit_fill(i, 0, page.pointer + offset, length);
        kit_page_flush(w, &page, offset, length);
        if (kit_look(w, &page.native, offset, bytes, length))
            kit_expect(i, 0, bytes, length);
        kit_fill(100 + i, 0, bytes, length);
        if (!kit_put(w, &page.native, offset, bytes, length))
            continue;
        kit_page_invalidate(w, &page, offset, length);
        kit_expect(100 + i, 0, page.pointer + offset, length);
    }
    kit_page_end(w, &page);
}

/* Flushes and invalidates, or invalidates after a flush, in pieces of any size: no byte is lost. */
static void sync_takes_whole_atoms(contract_world *w, uint32_t kind)
{
    if (!kit_is_visible(w, kind) || kit_is_coherent(w, kind))
        return;
    uint64_t atom = w->info.limits.non_coherent_atom;
    kit_page page = kit_page_make(w, kind, 8 * atom > PART ? 8 * atom : PART);
    uint64_t size = page.native.size, filled = size < KIT_LONGEST ? size : KIT_LONGEST;
    kit_fill(9, 0, page.pointer, filled);
    CHECK_OK(w->table->flush(w->state, &page.native, 0, size));
    CHECK_OK(w->table->invalidate(w->state, &page.native, 0, size));
    kit_expect(9, 0, page.pointer, filled);
    for (uint64_t at = 0; at < size && at < 16 * atom; at += atom) {
        uint64_t left = size - at, one = left < atom ? left : atom;
        CHECK_OK(w->table->flush(w->state, &page.native, at, one));
        CHECK_OK(w->table->invalidate(w->state, &page.native, at, left));
    }
    kit_expect(9, 0, page.pointer, filled);
    kit_page_end(w, &page);
}

/*
 * The host has read all bytes. Then the device writes an atom, and the host flushes the one before.
 */
static void flush_leaves_the_rest(contract_world *w, uint32_t kind)
{
    uint64_t atom = w->info.limits.non_coherent_atom;
    if (!kit_is_visible(w, kind) || kit_is_coherent(w, kind) || atom > PART)
        return;
    kit_page page = kit_page_make(w, kind, 8 * atom);
    unsigned char bytes[PART];
    for (uint64_t i = 0; i < 7; i++) {
        kit_page_invalidate(w, &page, 0, 8 * atom);
        kit_fill(i, 0, bytes, atom);
        kit_fill(100 + i, 0, page.pointer + i * atom, atom);
        bool is_written = kit_put(w, &page.native, (i + 1) * atom, bytes, atom);
        CHECK_OK(w->table->flush(w->state, &page.native, i * atom, atom));
        if (is_written && kit_look(w, &page.native, (i + 1) * atom, bytes, atom))
            kit_expect(i, 0, bytes, atom);
        if (kit_look(w, &page.native, i * atom, bytes, atom))
            kit_expect(100 + i, 0, bytes, atom);
    }
    kit_page_end(w, &page);
}

/* ---- backing ------------------------------------------------------------------------------ */

static void expect_bytes(const contract_world *w, const kit_page *page, uint64_t key, uint64_t at)
{
    unsigned char bytes[PART];
    if (kit_page_read(w, page, at, bytes, PART))
        kit_expect(key, 0, bytes, PART);
}

static void put_bytes(const contract_world *w, const kit_page *page, uint64_t key, uint64_t at)
{
    unsigned char bytes[PART];
    kit_fill(key, 0, bytes, PART);
    if (kit_page_write(w, page, at, bytes, PART))
        expect_bytes(w, page, key, at);
}

/*
 * Bytes in use of a heap if the backend reports them and no other program uses the heap, otherwise
 * UINT64_MAX.
 */
static uint64_t usage_of(const contract_world *w, uint32_t kind)
{
    quire_heap_budget reported = {0};
    if (!kit_offers(w, QUIRE_BACKEND_BUDGET) || w->subject->is_shared)
        return UINT64_MAX;
    CHECK_OK(w->table->heap_budget(w->state, w->info.kinds[kind].heap, &reported));
    return reported.usage ? reported.usage : UINT64_MAX;
}

enum { CHUNKS = 8 };

/* Lists the chunks of `set`, one bit each, as spans of chunks side by side. */
static uint32_t list_spans(uint32_t set, uint64_t chunk, quire_span spans[CHUNKS])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < CHUNKS; i++) {
        if (!(set >> i & 1))
            continue;
        if (i && set >> (i - 1) & 1)
            spans[count - 1].size += chunk;
        else
            spans[count++] = (quire_span){i * chunk, chunk};
    }
    return count;
}

/* Gives and takes memory, so that the chunks of `to` have some where those of `from` had. */
static void change_backing(const contract_world *w, const kit_page *page, uint64_t chunk,
                           uint32_t from, uint32_t to)
{
    quire_span spans[CHUNKS];
    uint32_t count = list_spans(from & ~to, chunk, spans);
    if (count)
        w->table->page_unback(w->state, &page->native, spans, count, false);
    count = list_spans(to & ~from, chunk, spans);
    if (count)
        CHECK_OK(w->table->page_back(w->state, &page->native, spans, count));
}

/* Each chunk that has memory has a pattern at its start and its end, which stays as long as it has
   memory. */
static void chunks_come_and_go(contract_world *w, uint32_t kind)
{
    static const uint32_t sets[] = {0x01, 0x07, 0xff, 0x55, 0x99, 0xe7, 0x01, 0xd5, 0x2b, 0x03};
    const uint64_t granularity = w->info.limits.elastic_granularity;
    const uint64_t chunk = granularity > 64 * KIB ? granularity : 64 * KIB;
    uint32_t is = 1, written = 0;
    kit_page page;
    if (!kit_grows(w, kind))
        return;
    quire_page_request request = {.kind = kind,
                                  .size = chunk,
                                  .max_size = CHUNKS * chunk,
                                  .chunk = chunk,
                                  .alignment = w->info.limits.non_coherent_atom,
                                  .label = "contract"};
    CHECK_OK(kit_page_try(w, &request, &page));
    CHECK_EQ(page.native.size, request.max_size);
    for (size_t i = 0; i < sizeof sets / sizeof *sets; is = sets[i++]) {
        change_backing(w, &page, chunk, is, sets[i]);
        /* without this check an access to missing bytes would end the program */
        CHECK(usage_of(w, kind) >= (uint64_t)__builtin_popcount(sets[i]) * chunk);
        written &= sets[i];
        for (uint32_t c = 0; c < CHUNKS; c++) {
            if (!(sets[i] >> c & 1))
                continue;
            if (!(written >> c & 1) && kit_can_both(w, kind)) {
                put_bytes(w, &page, c, c * chunk);
                put_bytes(w, &page, CHUNKS + c, (c + 1) * chunk - PART);
                written |= UINT32_C(1) << c;
            }
        }
        for (uint32_t c = 0; c < CHUNKS; c++)
            if (written >> c & 1) {
                expect_bytes(w, &page, c, c * chunk);
                expect_bytes(w, &page, CHUNKS + c, (c + 1) * chunk - PART);
            }
    }
    kit_page_end(w, &page);
}

/* ---- refusals and reuse ------------------------------------------------------------------- */

static void too_large_is_refused(contract_world *w, uint32_t kind)
{
    uint64_t heap = w->info.heaps[w->info.kinds[kind].heap].size;
    uint64_t granularity = w->info.limits.page_granularity;
    const uint64_t sizes[] = {kit_round_up(heap + 1, granularity),
                              UINT64_MAX / granularity * granularity};
    for (int i = 0; i < 2; i++) {
        kit_page page;
        quire_page_request request = {
            .kind = kind, .size = sizes[i], .alignment = 1, .label = "contract"};
        CHECK_FAILS(kit_page_try(w, &request, &page), QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    }
    kit_page page = kit_page_make(w, kind, PART);
    kit_page_end(w, &page);
}

/*
 * Allocates six times a small heap, one page after the other: the memory of destroyed pages is
 * available again.
 */
static void pages_come_back(contract_world *w, uint32_t kind)
{
    uint64_t heap = w->info.heaps[w->info.kinds[kind].heap].size;
    uint64_t largest = w->info.limits.max_page, size = heap / 4;
    size = size > 4 * MIB ? 4 * MIB : size;
    size = largest && size > largest ? largest : size;
    size = size / w->info.limits.page_granularity * w->info.limits.page_granularity;
    quire_budget_info before, after;
    CHECK_OK(quire_device_get_budget(w->device, w->info.kinds[kind].heap, &before));
    for (int i = 0; i < 24; i++) {
        kit_page page = kit_page_make(w, kind, size);
        kit_page_end(w, &page);
    }
    CHECK_OK(quire_device_get_budget(w->device, w->info.kinds[kind].heap, &after));
    CHECK(w->subject->is_shared || after.usage == before.usage);
}

const contract_scenario contract_pages[] = {
    {.name = "a page has the requested size and alignment", .of_kind = page_is_as_requested},
    {.name = "live pages share no byte", .of_kind = pages_are_apart},
    {.name = "copies reach exactly the bytes they name", .of_kind = copies_are_exact},
    {.name = "mapping and device see the same bytes", .of_kind = mapping_and_device_agree},
    {.name = "flush and invalidate accept every range of whole atoms",
     .of_kind = sync_takes_whole_atoms},
    {.name = "a flush keeps bytes that the device wrote beside it",
     .of_kind = flush_leaves_the_rest},
    {.name = "a page larger than its heap is out of device memory",
     .of_kind = too_large_is_refused},
    {.name = "the memory of a destroyed page can be allocated again", .of_kind = pages_come_back},
    {.name = "a page accepts every size up to its maximum",
     .of_kind = chunks_come_and_go,
     .applies = kit_has_growth},
    {0},
};
