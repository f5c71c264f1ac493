/*
 * growth.c - the contract: pages of contiguous memories grow and shrink in place. Each size is
 * checked before the new bytes are touched: a backend that did nothing fails the check, and the
 * program survives to report it. pages.c resizes pages through the table alone.
 */
#include "tests/contract/kit.h"
#include "tests/support/state.h"

/* PAGES: the number of pages for which addresses are reserved. */
enum { MAX_COUNT = 600, PAGES = 16, PART = 4096 };

/* ---- a contiguous memory ------------------------------------------------------------------ */

typedef struct single {
    const contract_world *w;
    uint32_t kind;
    quire_memory *memory;
    bool has_bytes; /* quire_write and quire_read are supported */
    uint64_t usage; /* of the heap, without this page */
} single;

static quire_budget_info budget_of(const single *s)
{
    quire_budget_info info;
    CHECK_OK(quire_device_get_budget(s->w->device, s->w->info.kinds[s->kind].heap, &info));
    return info;
}

static single begin(const contract_world *w, uint32_t kind, uint64_t reservation)
{
    single s = {.w = w, .kind = kind, .has_bytes = kit_can_both(w, kind)};
    s.usage = budget_of(&s).usage;
    s.memory = kit_memory(
        w, kind, &(quire_memory_options){.contiguous = true, .address_space = reservation});
    return s;
}

/* Bytes in use of its only page. Backends may keep more from before it shrank. */
static uint64_t size_of(const single *s)
{
    quire_page_info page;
    quire_memory_stats stats = kit_stats(s->memory);
    quire_budget_info budget = budget_of(s);
    CHECK_EQ(stats.page_count, 1);
    CHECK_OK(quire_page_get_info(s->memory, 0, &page));
    CHECK_EQ(stats.reserved_bytes, page.size);
    CHECK_EQ(budget.reserved, page.size);
    CHECK(s->w->subject->is_shared || budget.usage - s->usage >= page.size);
    return page.size;
}

static void put(const single *s, quire_allocation allocation, uint64_t key)
{
    size_of(s);
    if (s->has_bytes)
        kit_write(s->memory, allocation, kit_info(s->memory, allocation).requested, key);
}

static void look(const single *s, quire_allocation allocation, uint64_t key)
{
    if (s->has_bytes)
        kit_read(s->memory, allocation, kit_info(s->memory, allocation).requested, key);
}

/* The first allocation: more than half of a page. */
static quire_allocation half(const single *s)
{
    quire_allocation made = ALLOCATE(s->memory, .size = kit_page_size(s->w) / 2 + 1000);
    put(s, made, 1);
    return made;
}

/* ---- growing ------------------------------------------------------------------------------ */

static void expect_same_place(const quire_native *was, const quire_native *is)
{
    CHECK_EQ(is->page.handle, was->page.handle);
    CHECK_EQ(is->page.address, was->page.address);
    CHECK(is->host == was->host);
    CHECK_EQ(is->offset, was->offset);
}

static void everything_stays(contract_world *w, uint32_t kind)
{
    enum { COUNT = 5 };
    if (!kit_grows(w, kind))
        return;
    uint64_t page = kit_page_size(w);
    single s = begin(w, kind, PAGES * page);
    quire_allocation first = half(&s), made[COUNT];
    quire_native was = kit_native(s.memory, first);
    uint64_t size = size_of(&s);
    for (uint64_t i = 0; i < COUNT; i++) {
        uint64_t alignment = UINT64_C(1) << 3 * i;
        made[i] = ALLOCATE(s.memory, .size = page * 3 / 4 + i, .alignment = alignment);
        put(&s, made[i], 2 + i);
        quire_native is = kit_native(s.memory, first), native = kit_native(s.memory, made[i]);
        expect_same_place(&was, &is);
        CHECK_EQ(native.page.handle, was.page.handle);
        CHECK(native.offset + native.size <= size_of(&s));
        CHECK(kit_is_aligned(&native, alignment));
    }
    CHECK(size_of(&s) > size);
    look(&s, first, 1);
    CHECK_OK(quire_free(s.memory, first));
    for (uint64_t i = 0; i < COUNT; i++) {
        look(&s, made[i], 2 + i);
        CHECK_OK(quire_free(s.memory, made[i]));
    }
    kit_end(&s.memory);
}

/*
 * Requests that need more than the policy adds, after ends with various alignments: the page grows
 * by as much as is needed.
 */
static void growth_reaches_aligned_places(contract_world *w, uint32_t kind)
{
    if (!kit_grows(w, kind))
        return;
    uint64_t page = kit_page_size(w), most = kit_largest_alignment(w, kind);
    single s = begin(w, kind, PAGES * page + 3 * most);
    quire_allocation first = half(&s);
    for (uint64_t i = 0; i < 12; i++) {
        uint64_t alignment = i % 4 ? 8 * KIB : most;
        quire_allocation before = ALLOCATE(s.memory, .size = 1 + 1024 * i);
        quire_allocation made = ALLOCATE(s.memory, .size = 4 * page, .alignment = alignment);
        quire_native native = kit_native(s.memory, made);
        put(&s, made, 2 + i);
        CHECK(kit_is_aligned(&native, alignment));
        CHECK(native.offset + native.size <= size_of(&s));
        look(&s, made, 2 + i);
        CHECK_OK(quire_free(s.memory, made));
        CHECK_OK(quire_memory_trim(s.memory, 0, NULL));
        CHECK_OK(quire_free(s.memory, before));
    }
    look(&s, first, 1);
    CHECK_OK(quire_free(s.memory, first));
    kit_end(&s.memory);
}

/* The place within an allocation where the page ended before it grew. */
typedef struct old_end {
    single s;
    quire_allocation low, across;
    uint64_t start; /* PART bytes before the old end, as an offset in the allocation */
} old_end;

static void write_across(const old_end *m)
{
    unsigned char bytes[2 * PART];
    kit_fill(3, 0, bytes, sizeof bytes);
    CHECK_OK(quire_write(m->s.memory, m->across, m->start, bytes, sizeof bytes));
    memset(bytes, 0, sizeof bytes);
    CHECK_OK(quire_read(m->s.memory, m->across, m->start, bytes, sizeof bytes));
    kit_expect(3, 0, bytes, sizeof bytes);
    CHECK_OK(quire_fill(
        m->s.memory, m->across,
        &(quire_fill_options){.offset = m->start + PART - 100, .size = 200, .value = 0x3c}, NULL));
    CHECK_OK(quire_read(m->s.memory, m->across, m->start, bytes, sizeof bytes));
    for (int i = PART - 100; i < PART + 100; i++)
        CHECK_EQ(bytes[i], 0x3c);
    kit_expect(3, 0, bytes, PART - 100);
    kit_expect(3, PART + 100, bytes + PART + 100, PART - 100);
}

static void map_across(const old_end *m)
{
    void *pointer = NULL;
    unsigned char bytes[2 * PART];
    quire_native native = kit_native(m->s.memory, m->across);
    CHECK_OK(quire_map_range(m->s.memory, m->across, m->start, sizeof bytes, &pointer));
    kit_fill(4, 0, pointer, sizeof bytes);
    CHECK_OK(quire_flush(m->s.memory, m->across, m->start, sizeof bytes));
    if (kit_look(m->s.w, &native.page, native.offset + m->start, bytes, sizeof bytes))
        kit_expect(4, 0, bytes, sizeof bytes);
    CHECK_OK(quire_unmap(m->s.memory, m->across));
}

/* From the old part of the page to the place, and back. */
static void copy_across(const old_end *m)
{
    quire_copy_path path;
    unsigned char bytes[2 * PART];
    quire_memory *memory = m->s.memory;
    CHECK_OK(quire_copy_get_path(memory, memory, &path));
    if (path == QUIRE_COPY_UNSUPPORTED || !m->s.has_bytes)
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

static void old_end_is_no_border(contract_world *w, uint32_t kind)
{
    if (!kit_grows(w, kind))
        return;
    old_end m = {.s = begin(w, kind, PAGES * kit_page_size(w))};
    m.low = half(&m.s);
    uint64_t end = size_of(&m.s);
    m.across = ALLOCATE(m.s.memory, .size = end);
    quire_allocation_info info = kit_info(m.s.memory, m.across);
    CHECK(info.offset + PART <= end && info.offset + info.size >= end + PART);
    CHECK(size_of(&m.s) > end);
    m.start = end - PART - info.offset;
    if (m.s.has_bytes)
        write_across(&m);
    if (kit_is_visible(w, kind))
        map_across(&m);
    copy_across(&m);
    CHECK_OK(quire_free(m.s.memory, m.low));
    CHECK_OK(quire_free(m.s.memory, m.across));
    kit_end(&m.s.memory);
}

/* ---- shrinking ---------------------------------------------------------------------------- */

static void what_is_trimmed_comes_back(contract_world *w, uint32_t kind)
{
    if (!kit_grows(w, kind))
        return;
    single s = begin(w, kind, PAGES * kit_page_size(w));
    quire_allocation keeps = half(&s);
    uint64_t released = 0, place = 0;
    CHECK_OK(quire_memory_trim(s.memory, 0, NULL));
    uint64_t low = size_of(&s);
    for (uint64_t i = 0; i < 4; i++) {
        quire_allocation made = ALLOCATE(s.memory, .size = 4 * kit_page_size(w));
        uint64_t size = size_of(&s), offset = kit_info(s.memory, made).offset;
        CHECK(size > low);
        CHECK(!i || offset == place);
        place = offset;
        put(&s, made, 10 + i);
        look(&s, made, 10 + i);
        CHECK_OK(quire_free(s.memory, made));
        uint64_t usage = budget_of(&s).usage;
        CHECK_OK(quire_memory_trim(s.memory, 0, &released));
        CHECK_EQ(size_of(&s), low);
        CHECK(w->subject->is_shared || budget_of(&s).usage < usage);
        CHECK_EQ(released, size - low);
        look(&s, keeps, 1);
    }
    CHECK_OK(quire_free(s.memory, keeps));
    CHECK_OK(quire_memory_trim(s.memory, 0, NULL));
    CHECK_EQ(kit_stats(s.memory).page_count, 0);
    CHECK_EQ(budget_of(&s).reserved, 0);
    CHECK(w->subject->is_shared || budget_of(&s).usage == s.usage);
    kit_end(&s.memory);
}

/* ---- refusals ----------------------------------------------------------------------------- */

/* Allocates until memory is exhausted. The refused request changes nothing. */
static uint32_t fill(const single *s, uint64_t size, quire_allocation *made)
{
    for (uint32_t count = 0; count < MAX_COUNT; count++) {
        uint64_t before = state_of_memory(s->memory);
        uint64_t bytes = kit_stats(s->memory).reserved_bytes;
        quire_result result =
            quire_allocate(s->memory, &(quire_allocation_options){.size = size}, &made[count]);
        if (result) {
            CHECK(result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY || result == QUIRE_ERROR_OVER_BUDGET);
            CHECK_EQ(quire_last_result(), result);
            CHECK(!made[count].id);
            CHECK_EQ(state_of_memory(s->memory), before);
            CHECK_EQ(size_of(s), bytes);
            return count;
        }
        put(s, made[count], 100 + count);
    }
    check_failed(__FILE__, __LINE__, "%d allocations and no end", MAX_COUNT);
}

static void drain(const single *s, const quire_allocation *made, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        look(s, made[i], 100 + i);
        CHECK_OK(quire_free(s->memory, made[i]));
    }
    CHECK_OK(quire_memory_trim(s->memory, 0, NULL));
    CHECK_EQ(kit_stats(s->memory).page_count, 0);
}

static void limit_holds(contract_world *w, uint32_t kind)
{
    if (!kit_grows(w, kind))
        return;
    uint64_t page = kit_page_size(w), limit = 3 * page + page / 2;
    single s = begin(w, kind, PAGES * page);
    quire_allocation made[MAX_COUNT];
    CHECK_OK(quire_device_set_heap_limit(w->device, w->info.kinds[kind].heap, limit));
    uint32_t count = fill(&s, page / 2, made);
    CHECK(count >= 2);
    uint64_t full = size_of(&s);
    CHECK(full <= limit);
    CHECK_OK(quire_device_set_heap_limit(w->device, w->info.kinds[kind].heap, 0));
    made[count] = ALLOCATE(s.memory, .size = page / 2);
    put(&s, made[count], 100 + count);
    CHECK(size_of(&s) > full);
    drain(&s, made, count + 1);
    kit_end(&s.memory);
}

/* A small heap is exhausted before the addresses are, at the same size each time. */
static void a_heap_that_is_full(contract_world *w, uint32_t kind)
{
    uint64_t heap = w->info.heaps[w->info.kinds[kind].heap].size, page = kit_page_size(w);
    uint64_t most = w->subject->max_fill ? w->subject->max_fill : 64 * MIB;
    if (!kit_grows(w, kind) || heap > most)
        return;
    single s = begin(w, kind, 4 * heap);
    quire_allocation made[MAX_COUNT];
    uint32_t first = fill(&s, heap / 40 > page ? heap / 40 : page, made);
    CHECK(first > 1);
    drain(&s, made, first);
    for (int i = 0; i < 3; i++) {
        uint32_t again = fill(&s, heap / 40 > page ? heap / 40 : page, made);
        CHECK(w->subject->is_shared || again == first);
        drain(&s, made, again);
    }
    kit_end(&s.memory);
}

static void pages_that_cannot_grow_are_refused(contract_world *w, uint32_t kind)
{
    quire_memory_info info;
    quire_memory *memory = (quire_memory *)w;
    quire_memory_options options = {.contiguous = true, .kind.mask = UINT32_C(1) << kind};
    quire_result result = quire_memory_create(w->device, &options, &memory);
    if (kit_grows(w, kind)) {
        CHECK_OK(result);
        CHECK_OK(quire_memory_get_info(memory, &info));
        CHECK(info.address_space > 0);
        kit_end(&memory);
        return;
    }
    CHECK_FAILS(result, QUIRE_ERROR_UNSUPPORTED);
    CHECK(strstr(quire_last_error(), "cannot grow"));
    CHECK(!memory);
}

const contract_scenario contract_growth[] = {
    {.name = "a page grows in place and keeps its contents",
     .of_kind = everything_stays,
     .applies = kit_has_growth},
    {.name = "a page grows as far as a large and aligned request needs",
     .of_kind = growth_reaches_aligned_places,
     .applies = kit_has_growth},
    {.name = "an allocation spans the old end of a page",
     .of_kind = old_end_is_no_border,
     .applies = kit_has_growth},
    {.name = "a trimmed end of a page can be allocated again",
     .of_kind = what_is_trimmed_comes_back,
     .applies = kit_has_growth},
    {.name = "a heap's limit refuses growth without a change",
     .of_kind = limit_holds,
     .applies = kit_has_growth},
    {.name = "a heap is full at the same size of a page each time",
     .of_kind = a_heap_that_is_full,
     .applies = kit_has_growth},
    {.name = "pages that cannot grow make no contiguous memory",
     .of_kind = pages_that_cannot_grow_are_refused,
     .by_core = true},
    {0},
};
