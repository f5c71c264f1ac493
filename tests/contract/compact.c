/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * compact.c - the contract: compaction of a memory moves contents from page to page by the copies
 * of the backend, and what cannot move keeps place and contents.
 */
#include "tests/contract/kit.h"

enum {
    PAGES = 5,  /* of the memory before half of the allocations are freed */
    MOST = 600, /* allocations */
    MOVES = 7,  /* a step */
    CHURN = 12  /* steps with other calls between them */
};

typedef struct item {
    quire_allocation handle;
    uint64_t size, alignment, key;
} item;

typedef struct herd {
    const contract_world *w;
    quire_memory *memory;
    test_random random;
    item items[MOST];
    uint32_t count;
    uint64_t last_key;
} herd;

/* ---- allocations -------------------------------------------------------------------------- */

static void add(herd *h)
{
    item *i = &h->items[h->count++];
    const uint64_t most = kit_page_size(h->w) / 20;
    *i = (item){.size = random_below(&h->random, 4) ? 1 + random_below(&h->random, most)
                                                    : random_size(&h->random, most),
                .alignment = UINT64_C(1) << random_below(&h->random, 10),
                .key = ++h->last_key};
    i->handle = ALLOCATE(h->memory, .size = i->size, .alignment = i->alignment, .movable = true);
    kit_write(h->memory, i->handle, i->size, i->key);
}

/* As quire reads it, and as the device sees it. */
static void expect(herd *h, const item *i)
{
    static unsigned char bytes[KIT_LONGEST];
    const quire_allocation_info info = kit_info(h->memory, i->handle);
    const quire_native native = kit_native(h->memory, i->handle);
    CHECK_EQ(info.requested, i->size);
    CHECK_EQ(info.address % i->alignment, 0);
    CHECK(kit_is_aligned(&native, i->alignment));
    kit_read(h->memory, i->handle, i->size, i->key);
    if (i->size <= KIT_LONGEST && kit_look(h->w, &native.page, native.offset, bytes, i->size))
        kit_expect(i->key, 0, bytes, i->size);
}

static void drop(herd *h)
{
    const uint64_t at = random_below(&h->random, h->count);
    expect(h, &h->items[at]);
    CHECK_OK(quire_free(h->memory, h->items[at].handle));
    h->items[at] = h->items[--h->count];
}

static quire_memory_stats check(herd *h)
{
    CHECK_OK(quire_memory_check(h->memory));
    const quire_memory_stats stats = kit_stats(h->memory);
    CHECK_EQ(stats.allocation_count, h->count);
    for (uint32_t i = 0; i < h->count; i++)
        expect(h, &h->items[i]);
    return stats;
}

/* ---- contents ----------------------------------------------------------------------------- */

/* Without copies quire moves nothing. */
static bool begins(const contract_world *w, uint32_t kind, quire_memory *memory,
                   quire_compaction **c)
{
    CHECK_OK(quire_compact_begin(memory, c));
    quire_result result = quire_compact_step(*c, NULL, NULL);
    CHECK_EQ(result, kit_can_both(w, kind) ? QUIRE_SUCCESS : QUIRE_ERROR_UNSUPPORTED);
    if (result)
        quire_compact_end(c);
    return !result;
}

/* In steps, between the first of which others allocate and free. */
static quire_compact_stats compact(herd *h, uint32_t churn)
{
    quire_compaction *c = NULL;
    quire_compact_stats done = {.moves = 0};
    CHECK_OK(quire_compact_begin(h->memory, &c));
    for (uint64_t steps = 0, moves = 0; !done.is_complete; steps++, moves = done.moves) {
        CHECK_OK(quire_compact_step(c, &(quire_compact_limits){.moves = MOVES}, &done));
        CHECK(done.moves - moves <= MOVES);
        CHECK(steps < MOST);
        for (int i = 0; i < 3 && steps < churn; i++) {
            drop(h);
            add(h);
        }
    }
    quire_compact_end(&c);
    CHECK(!c);
    return done;
}

static void fill_and_thin_out(herd *h)
{
    while (h->count < MOST && kit_stats(h->memory).page_count < PAGES)
        add(h);
    for (uint32_t left = h->count / 2; h->count > left;)
        drop(h);
}

/* What is reserved is at most 1 / 0.9 of what lives, and two pages. */
static void expect_compact(herd *h, const quire_memory_stats *stats)
{
    quire_page_info page;
    uint64_t largest = 0;
    for (uint32_t i = 0; i < 2 * PAGES; i++)
        if (!quire_page_get_info(h->memory, i, &page) && page.size > largest)
            largest = page.size;
    CHECK(stats->reserved_bytes <= stats->live_bytes * 10 / 9 + 2 * largest);
}

static void run_herd(herd *h)
{
    fill_and_thin_out(h);
    const uint64_t pages = kit_stats(h->memory).page_count;
    const quire_compact_stats first = compact(h, CHURN);
    CHECK(first.moves && first.bytes_moved);
    check(h);
    CHECK_OK(quire_memory_trim(h->memory, 0, NULL)); /* of pages that frees have left empty */
    const quire_compact_stats second = compact(h, 0);
    const quire_memory_stats after = check(h);
    expect_compact(h, &after);
    CHECK(after.page_count < pages && first.pages_freed + second.pages_freed > 0);
    CHECK_EQ(compact(h, 0).moves, 0);
    CHECK_EQ(kit_stats(h->memory).reserved_bytes, after.reserved_bytes);
    CHECK_EQ(after.empty_bytes, 0);
    while (h->count)
        drop(h);
}

/* Pages are mapped all the time, or on demand. */
static void contents_move(contract_world *w, uint32_t kind)
{
    static herd h;
    quire_compaction *c = NULL;
    for (int on_demand = 0; on_demand <= kit_is_visible(w, kind); on_demand++) {
        h = (herd){.w = w, .random = {kind + 1}};
        h.memory = kit_memory(
            w, kind, &(quire_memory_options){.shards = 1, .map_on_demand = on_demand != 0});
        if (begins(w, kind, h.memory, &c)) {
            quire_compact_end(&c);
            run_herd(&h);
        }
        kit_end(&h.memory);
    }
}

/* ---- what stays --------------------------------------------------------------------------- */

typedef enum role { PLAIN, MAPPED, HELD, LASTING, NOT_MOVABLE, ROLES } role;

enum { SIZE = 5000, FILLERS = 400 };

/* The only allocation of a page that is left. */
typedef struct stayer {
    role why;
    quire_allocation handle;
    quire_native place; /* when it was made */
    void *pointer;      /* of its map; NULL without one */
    uint64_t key;
} stayer;

/* Kinds without pointers have other reasons to stay. */
static role role_on(const contract_world *w, uint32_t kind, role why)
{
    if (kit_is_visible(w, kind))
        return why;
    return why == MAPPED ? HELD : why == LASTING ? NOT_MOVABLE : why;
}

static quire_allocation make(const contract_world *w, quire_memory *memory, role why)
{
    return ALLOCATE(memory, .size = kit_page_size(w) / 16 + SIZE, .movable = why != NOT_MOVABLE,
                    .mapped = why == LASTING);
}

static bool shares_page(quire_memory *memory, const stayer *others, int count, quire_allocation a)
{
    for (int i = 0; i < count; i++)
        if (kit_info(memory, others[i].handle).page == kit_info(memory, a).page)
            return true;
    return false;
}

static void stay(quire_memory *memory, stayer *s)
{
    s->place = kit_native(memory, s->handle);
    s->key = s->why + UINT64_C(1);
    kit_write(memory, s->handle, SIZE, s->key);
    if (s->why == MAPPED)
        CHECK_OK(quire_map(memory, s->handle, &s->pointer));
    if (s->why == LASTING)
        s->pointer = kit_info(memory, s->handle).host;
    if (s->why == HELD)
        CHECK_OK(quire_allocation_hold(memory, s->handle));
}

/* One allocation for each role, alone on its page. */
static void put_stayers(const contract_world *w, uint32_t kind, quire_memory *memory,
                        stayer stayers[ROLES])
{
    quire_allocation fillers[FILLERS];
    int count = 0;
    for (int i = 0; i < ROLES; i++) {
        stayer *s = &stayers[i];
        *s = (stayer){.why = role_on(w, kind, (role)i)};
        while (shares_page(memory, stayers, i, s->handle = make(w, memory, s->why))) {
            CHECK(count < FILLERS);
            fillers[count++] = s->handle;
        }
    }
    for (int i = 0; i < count; i++)
        CHECK_OK(quire_free(memory, fillers[i]));
    for (int i = 0; i < ROLES; i++)
        stay(memory, &stayers[i]);
}

/* What the host writes through its pointer meanwhile is in the allocation. */
static void use_pointer(quire_memory *memory, stayer *s)
{
    CHECK_OK(quire_invalidate(memory, s->handle, 0, 0));
    kit_expect(s->key, 0, s->pointer, SIZE);
    s->key += ROLES;
    kit_fill(s->key, 0, s->pointer, SIZE);
    CHECK_OK(quire_flush(memory, s->handle, 0, 0));
}

static void expect_stayed(quire_memory *memory, stayer *s)
{
    const quire_native now = kit_native(memory, s->handle);
    CHECK_EQ(now.page.handle, s->place.page.handle);
    CHECK_EQ(now.page.address, s->place.page.address);
    CHECK_EQ(now.offset, s->place.offset);
    CHECK(now.host == s->place.host);
    if (s->pointer)
        use_pointer(memory, s);
    kit_read(memory, s->handle, SIZE, s->key);
}

static void expect_freed(quire_memory *memory, uint64_t pages)
{
    quire_compaction *c = NULL;
    quire_compact_stats done;
    const uint64_t before = kit_stats(memory).page_count;
    CHECK_OK(quire_compact_begin(memory, &c));
    CHECK_OK(quire_compact_step(c, NULL, &done));
    quire_compact_end(&c);
    CHECK(done.is_complete);
    CHECK_EQ(done.pages_freed, pages);
    CHECK_EQ(kit_stats(memory).page_count, before - pages);
    CHECK_OK(quire_memory_check(memory));
}

static void end_stay(quire_memory *memory, stayer *s)
{
    if (s->why == MAPPED)
        CHECK_OK(quire_unmap(memory, s->handle));
    if (s->why == HELD)
        CHECK_OK(quire_allocation_release(memory, s->handle));
}

static void some_stay(contract_world *w, uint32_t kind)
{
    stayer stayers[ROLES];
    if (!kit_can_both(w, kind))
        return;
    quire_memory *memory = kit_memory(w, kind, &(quire_memory_options){.shards = 1});
    put_stayers(w, kind, memory, stayers);
    CHECK_EQ(kit_stats(memory).page_count, ROLES);
    expect_freed(memory, 1);
    for (int i = MAPPED; i < ROLES; i++)
        expect_stayed(memory, &stayers[i]);
    for (int i = MAPPED; i < LASTING; i++)
        end_stay(memory, &stayers[i]);
    expect_freed(memory, 2);
    for (int i = LASTING; i < ROLES; i++)
        expect_stayed(memory, &stayers[i]);
    for (int i = PLAIN; i < ROLES; i++) {
        kit_read(memory, stayers[i].handle, SIZE, stayers[i].key);
        CHECK_OK(quire_free(memory, stayers[i].handle));
    }
    kit_end(&memory);
}

const contract_scenario contract_compact[] = {
    {.name = "compaction moves contents and leaves few pages, or is UNSUPPORTED without copies",
     .of_kind = contents_move,
     .is_exact = true},
    {.name = "allocations that are mapped, held or not movable stay where they are",
     .of_kind = some_stay,
     .is_exact = true},
    {0},
};
