/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * offer.c - moves that the caller executes: what is offered, what accepting and declining change,
 * allocations that are freed or in use meanwhile, points, maps, and compactions that end.
 */
#include <string.h>

#include "quire/compact.h"
#include "src/core/checked.h"
#include "tests/support/deferred_free.h"
#include "tests/support/random.h"

enum { MANY = 64, HERD = 1500 };

static void begin_kind(bench *w, quire_memory_flags required)
{
    if (QI_IS_CHECKED)
        unit_skip("checked builds move nothing");
    begin_with(w, &(quire_memory_options){.name = "m",
                                          .kind.required = required,
                                          .shards = 1,
                                          .movable = true,
                                          .find_by_address = true,
                                          .pages.page_size = PAGE});
}

#define CASE(name) UNIT_ON(offer, name, bench, w, begin_kind(w, 0), end)
#define ON_HOST(name) UNIT_ON(offer, name, bench, w, begin_kind(w, QUIRE_HOST_VISIBLE), end)

static quire_compaction *compaction(bench *w)
{
    quire_compaction *c = NULL;
    CHECK_OK(quire_compact_begin(w->f.memory, &c));
    return c;
}

static bool is_complete; /* what the last call of `offer` said */

static uint64_t offer(quire_compaction *c, uint64_t room, quire_compact_move *moves)
{
    uint64_t count = 99;
    CHECK_OK(quire_compact_offer(c, NULL, moves, room, &count, &is_complete));
    CHECK(count <= room && (!is_complete || !count));
    return count;
}

/* There is nothing to offer. */
static void expect_complete(quire_compaction *c)
{
    quire_compact_move move;
    CHECK_EQ(offer(c, 1, &move), 0);
    CHECK(is_complete);
}

static uint64_t pages(bench *w)
{
    CHECK_OK(quire_memory_check(w->f.memory));
    return fixture_stats(&w->f).page_count;
}

/* Two pages of eight; every second allocation of both is left. */
static void put_two_pages(bench *w, quire_allocation made[8])
{
    quire_allocation all[16];
    for (uint64_t i = 0; i < 16; i++) {
        all[i] = ALLOCATE(&w->f, .size = PAGE / 8, .name = "n", .user_data = i);
        CHECK_OK(quire_write(w->f.memory, all[i], 0, &i, sizeof i));
    }
    for (int i = 0; i < 16; i++)
        if (i % 2)
            made[i / 2] = all[i];
        else
            CHECK_OK(quire_free(w->f.memory, all[i]));
    CHECK_EQ(pages(w), 2);
}

static void copy(bench *w, const quire_compact_move *move)
{
    CHECK_EQ(fixture_info(&w->f, move->target).requested, move->size);
    CHECK_OK(quire_copy(
        &(quire_copy_options){.to = {.memory = w->f.memory, .allocation = move->target},
                              .from = {.memory = w->f.memory, .allocation = move->source}},
        NULL));
}

static void expect_contents(bench *w, const quire_allocation made[8])
{
    for (uint64_t i = 0; i < 8; i++) {
        uint64_t number = 99;
        CHECK_OK(quire_read(w->f.memory, made[i], 0, &number, sizeof number));
        CHECK_EQ(number, 2 * i + 1);
        CHECK_EQ(fixture_info(&w->f, made[i]).user_data, number);
    }
}

/* ---- offers that are accepted ------------------------------------------------------------- */

CASE(an_accepted_move_gives_the_source_the_place_of_the_target)
{
    quire_allocation made[8], found;
    quire_compact_move moves[MANY];
    put_two_pages(w, made);
    quire_compaction *c = compaction(w);
    CHECK_EQ(offer(c, MANY, moves), 4);
    const quire_memory_stats before = fixture_stats(&w->f);
    CHECK_EQ(before.allocation_count, 8 + 4);
    for (int i = 0; i < 4; i++) {
        const quire_allocation_info from = fixture_info(&w->f, moves[i].source);
        const quire_allocation_info to = fixture_info(&w->f, moves[i].target);
        CHECK(from.page != to.page && to.size == from.size && moves[i].size == PAGE / 8);
        copy(w, &moves[i]);
        CHECK_OK(quire_compact_accept(c, &moves[i], NULL));
        const quire_allocation_info now = fixture_info(&w->f, moves[i].source);
        CHECK(now.page == to.page && now.offset == to.offset && now.user_data == from.user_data);
        CHECK_FAILS(quire_free(w->f.memory, moves[i].target), QUIRE_ERROR_STALE_HANDLE);
        CHECK_OK(quire_memory_find(w->f.memory, to.address, &found));
        CHECK_EQ(found.id, moves[i].source.id);
        CHECK_FAILS(quire_memory_find(w->f.memory, from.address, &found), QUIRE_ERROR_OUT_OF_RANGE);
        CHECK_FAILS(quire_compact_accept(c, &moves[i], NULL), QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_EQ(pages(w), i == 3 ? 1 : 2);
    }
    expect_complete(c);
    quire_compact_end(&c);
    expect_contents(w, made);
    CHECK_EQ(fixture_stats(&w->f).allocation_count, 8);
}

/* One move per call, of two pages half full: four moves. */
CASE(moves_are_offered_one_by_one)
{
    quire_allocation made[8];
    quire_compact_move move;
    put_two_pages(w, made);
    quire_compaction *c = compaction(w);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(offer(c, 1, &move), 1);
        copy(w, &move);
        CHECK_OK(quire_compact_accept(c, &move, NULL));
    }
    expect_complete(c);
    CHECK_EQ(pages(w), 1);
    quire_compact_end(&c);
    expect_contents(w, made);
}

CASE(the_old_place_waits_for_the_point)
{
    quire_allocation made[8];
    quire_compact_move moves[MANY];
    put_two_pages(w, made);
    quire_compaction *c = compaction(w);
    CHECK_EQ(offer(c, MANY, moves), 4);
    const quire_point point = mark(w->a);
    for (int i = 0; i < 4; i++) {
        copy(w, &moves[i]);
        CHECK_OK(quire_compact_accept(c, &moves[i], &point));
    }
    CHECK_EQ(pages(w), 2);
    CHECK_EQ(fixture_stats(&w->f).deferred_count, 4);
    expect_complete(c);
    streams_pass(w->a);
    CHECK_OK(quire_memory_trim(w->f.memory, 0, NULL));
    CHECK_EQ(pages(w), 1);
    quire_compact_end(&c);
    expect_contents(w, made);
}

ON_HOST(maps_move_with_their_allocation)
{
    void *first, *pointer;
    quire_compact_move moves[2];
    quire_allocation other = ALLOCATE(&w->f, .size = PAGE / 2),
                     gone = ALLOCATE(&w->f, .size = PAGE / 2);
    quire_allocation mapped = ALLOCATE(&w->f, .size = KIB);
    quire_allocation lasting = ALLOCATE(&w->f, .size = KIB, .mapped = true);
    CHECK_OK(quire_free(w->f.memory, gone));
    CHECK_OK(quire_map(w->f.memory, mapped, &first));
    CHECK_OK(quire_map(w->f.memory, mapped, &first));
    memcpy(first, "mapped", 7);
    memcpy(fixture_info(&w->f, lasting).host, "lasting", 8);
    quire_compaction *c = compaction(w);
    CHECK_EQ(offer(c, 2, moves), 2);
    for (int i = 0; i < 2; i++) {
        copy(w, &moves[i]);
        CHECK((fixture_info(&w->f, moves[i].target).host != NULL) ==
              (moves[i].source.id == lasting.id));
        CHECK_OK(quire_map(w->f.memory, moves[i].target, &pointer));
        CHECK_FAILS(quire_compact_accept(c, &moves[i], NULL), QUIRE_ERROR_BUSY);
        CHECK_OK(quire_unmap(w->f.memory, moves[i].target));
        CHECK_OK(quire_compact_accept(c, &moves[i], NULL));
    }
    quire_compact_end(&c);
    CHECK_EQ(pages(w), 1);
    CHECK_EQ(fixture_info(&w->f, mapped).page, fixture_info(&w->f, other).page);
    CHECK_EQ(fixture_info(&w->f, mapped).map_count, 2);
    CHECK_OK(quire_map(w->f.memory, mapped, &pointer));
    CHECK(pointer != first && !strcmp(pointer, "mapped"));
    CHECK(!strcmp(fixture_info(&w->f, lasting).host, "lasting"));
    for (int i = 0; i < 3; i++)
        CHECK_OK(quire_unmap(w->f.memory, mapped));
    CHECK_FAILS(quire_unmap(w->f.memory, mapped), QUIRE_ERROR_NOT_MAPPED);
}

/* ---- offers that end otherwise ------------------------------------------------------------ */

CASE(declined_moves_change_nothing_and_offers_end)
{
    quire_allocation made[8];
    quire_compact_move moves[MANY];
    put_two_pages(w, made);
    quire_compaction *c = compaction(w);
    for (uint64_t count, calls = 0; (count = offer(c, MANY, moves)) != 0; calls++) {
        CHECK(calls < 2); /* each page once */
        for (uint64_t i = 0; i < count; i++) {
            CHECK_OK(quire_compact_decline(c, &moves[i]));
            CHECK_FAILS(quire_compact_decline(c, &moves[i]), QUIRE_ERROR_INVALID_ARGUMENT);
        }
    }
    CHECK(is_complete);
    quire_compact_end(&c);
    CHECK_EQ(pages(w), 2);
    CHECK_EQ(fixture_stats(&w->f).allocation_count, 8);
    expect_contents(w, made);
}

/* Pages of eight allocations, of which a mask says which are left. They are freed in turns, so that
   holes of all pages follow each other where a search finds them. */
static void put_pages(bench *w, const int *masks, int count)
{
    quire_allocation all[MANY];
    for (int i = 0; i < 8 * count; i++)
        all[i] = ALLOCATE(&w->f, .size = PAGE / 8);
    for (int i = 0; i < 8; i++)
        for (int page = 0; page < count; page++)
            if (!(masks[page] >> i & 1))
                CHECK_OK(quire_free(w->f.memory, all[8 * page + i]));
    CHECK_EQ(pages(w), (uint64_t)count);
}

/* What is offered together leaves pages that become free, and goes to pages that stay. */
CASE(no_place_is_in_a_page_that_is_being_emptied)
{
    quire_compact_move moves[MANY];
    const int masks[] = {0x10, 0x11, 0x15, 0x55, 0xaa, 0xd5, 0x6b};
    put_pages(w, masks, 7);
    quire_compaction *c = compaction(w);
    for (uint64_t count; (count = offer(c, MANY, moves)) != 0;) {
        uint64_t number;
        bool leaves[MANY] = {false};
        uint64_t leaving = 0, before = pages(w);
        for (uint64_t i = 0; i < count; i++) {
            number = fixture_info(&w->f, moves[i].source).page;
            leaving += !leaves[number];
            leaves[number] = true;
        }
        for (uint64_t i = 0; i < count; i++)
            CHECK(!leaves[fixture_info(&w->f, moves[i].target).page]);
        for (uint64_t i = 0; i < count; i++)
            CHECK_OK(quire_compact_accept(c, &moves[i], NULL));
        CHECK_EQ(pages(w), before - leaving);
    }
    CHECK(is_complete);
    quire_compact_end(&c);
    CHECK_EQ(pages(w), 3); /* 24 of 24 */
}

/* Four pages, half full: the contents of two go to the two others, whichever hole comes first. */
CASE(the_fuller_pages_get_what_leaves_the_others)
{
    quire_compact_move moves[MANY];
    const int masks[] = {0x15, 0x6b, 0x2a, 0xb5};
    put_pages(w, masks, 4);
    quire_compaction *c = compaction(w);
    CHECK_EQ(offer(c, MANY, moves), 6);
    for (int i = 0; i < 6; i++)
        CHECK_OK(quire_compact_accept(c, &moves[i], NULL));
    expect_complete(c);
    quire_compact_end(&c);
    CHECK_EQ(pages(w), 2);
}

/* A page that a declined move keeps offers nothing else, and is a place for others. */
CASE(a_declined_move_keeps_its_page)
{
    quire_compact_move move;
    const int masks[] = {0x15, 0x55};
    put_pages(w, masks, 2);
    quire_compaction *c = compaction(w);
    CHECK_EQ(offer(c, 1, &move), 1);
    const uint64_t kept = fixture_info(&w->f, move.source).page;
    CHECK_OK(quire_compact_decline(c, &move));
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(offer(c, 1, &move), 1);
        CHECK_EQ(fixture_info(&w->f, move.target).page, kept);
        CHECK_OK(quire_compact_accept(c, &move, NULL));
    }
    CHECK_EQ(offer(c, 1, &move), 0);
    quire_compact_end(&c);
    CHECK_EQ(pages(w), 1);
}

/* A page that was declined comes last in the next round, though it is the emptiest. */
CASE(a_declined_page_gives_way_to_others)
{
    quire_compact_move moves[MANY];
    const int masks[] = {0x01, 0x03, 0x03, 0x03, 0x03, 0x03, 0x03, 0x03};
    put_pages(w, masks, 8);
    quire_compaction *c = compaction(w);
    const uint64_t count = offer(c, MANY, moves);
    const uint64_t kept = fixture_info(&w->f, moves[0].source).page;
    CHECK_OK(quire_compact_decline(c, &moves[0]));
    for (uint64_t i = 1; i < count; i++)
        CHECK_OK(quire_compact_accept(c, &moves[i], NULL));
    CHECK(pages(w) > 2); /* 15 of 16 */
    CHECK_EQ(offer(c, 1, moves), 1);
    CHECK(fixture_info(&w->f, moves[0].source).page != kept);
    quire_compact_end(&c);
}

CASE(what_was_freed_meanwhile_ends_the_move)
{
    quire_allocation made[8];
    quire_compact_move moves[MANY];
    put_two_pages(w, made);
    quire_compaction *c = compaction(w);
    CHECK_EQ(offer(c, MANY, moves), 4);
    CHECK_OK(quire_free(w->f.memory, moves[0].source));
    CHECK_FAILS(quire_compact_accept(c, &moves[0], NULL), QUIRE_ERROR_STALE_HANDLE);
    CHECK_FAILS(quire_free(w->f.memory, moves[0].target), QUIRE_ERROR_STALE_HANDLE);
    CHECK_OK(quire_free(w->f.memory, moves[1].target));
    CHECK_FAILS(quire_compact_accept(c, &moves[1], NULL), QUIRE_ERROR_STALE_HANDLE);
    CHECK_OK(quire_free(w->f.memory, moves[2].target));
    CHECK_FAILS(quire_compact_decline(c, &moves[2]), QUIRE_ERROR_STALE_HANDLE);
    CHECK_FAILS(quire_compact_decline(c, &moves[2]), QUIRE_ERROR_INVALID_ARGUMENT);
    quire_compact_end(&c); /* declines the last one */
    CHECK_FAILS(quire_free(w->f.memory, moves[3].target), QUIRE_ERROR_STALE_HANDLE);
    CHECK_EQ(fixture_stats(&w->f).allocation_count, 7);
    CHECK_EQ(pages(w), 2);
}

CASE(what_is_in_use_is_busy_and_the_move_goes_on)
{
    quire_allocation made[8];
    quire_compact_move moves[MANY];
    put_two_pages(w, made);
    quire_compaction *c = compaction(w);
    CHECK_EQ(offer(c, 3, moves), 3);
    CHECK_OK(quire_allocation_hold(w->f.memory, moves[0].source));
    CHECK_FAILS(quire_compact_accept(c, &moves[0], NULL), QUIRE_ERROR_BUSY);
    CHECK_OK(quire_allocation_release(w->f.memory, moves[0].source));
    CHECK_OK(quire_allocation_hold(w->f.memory, moves[1].target));
    CHECK_FAILS(quire_compact_accept(c, &moves[1], NULL), QUIRE_ERROR_BUSY);
    CHECK_FAILS(quire_compact_decline(c, &moves[1]), QUIRE_ERROR_BUSY);
    CHECK_OK(quire_allocation_release(w->f.memory, moves[1].target));
    CHECK_OK(quire_record_use(w->f.memory, moves[2].source, w->a));
    CHECK_FAILS(quire_compact_accept(c, &moves[2], NULL), QUIRE_ERROR_BUSY);
    for (int i = 0; i < 2; i++) {
        copy(w, &moves[i]);
        CHECK_OK(quire_compact_accept(c, &moves[i], NULL));
    }
    CHECK_OK(quire_compact_decline(c, &moves[2]));
    quire_compact_end(&c);
    expect_contents(w, made);
    CHECK_EQ(pages(w), 2);
}

/* Steps of quire and offers may alternate. */
CASE(a_step_leaves_offers_as_they_are)
{
    quire_allocation made[8];
    quire_compact_move move;
    quire_compact_stats done;
    put_two_pages(w, made);
    quire_compaction *c = compaction(w);
    CHECK_EQ(offer(c, 1, &move), 1);
    CHECK_OK(quire_compact_step(c, NULL, &done));
    copy(w, &move);
    CHECK_OK(quire_compact_accept(c, &move, NULL));
    CHECK_OK(quire_compact_step(c, NULL, &done));
    CHECK(done.is_complete);
    quire_compact_end(&c);
    CHECK_EQ(pages(w), 1);
    expect_contents(w, made);
}

CASE(destroying_the_memory_ends_offers)
{
    quire_allocation made[8];
    quire_compact_move moves[MANY];
    put_two_pages(w, made);
    CHECK_EQ(offer(compaction(w), MANY, moves), 4);
}

/* ---- failures ----------------------------------------------------------------------------- */

CASE(without_host_memory_nothing_is_offered_or_lost)
{
    quire_allocation made[8];
    quire_compact_move moves[MANY];
    put_two_pages(w, made);
    quire_compaction *c = compaction(w);
    uint64_t offered = 0;
    for (uint64_t at = 1, count; offered < 4; at++) {
        test_memory_fail(unit_memory_state(), at % 7 + 1, true);
        const quire_result result =
            quire_compact_offer(c, NULL, &moves[offered], MANY - offered, &count, NULL);
        test_memory_fail(unit_memory_state(), 0, false);
        CHECK(!result || result == QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        offered += count;
        CHECK_EQ(fixture_stats(&w->f).allocation_count, 8 + offered);
        CHECK(at < 200);
    }
    for (uint64_t i = 0, at = 1; i < offered; at++) {
        copy(w, &moves[i]);
        test_memory_fail(unit_memory_state(), at % 3 + 1, true);
        const quire_result result = quire_compact_accept(c, &moves[i], NULL);
        test_memory_fail(unit_memory_state(), 0, false);
        CHECK(!result || result == QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        i += !result;
    }
    quire_compact_end(&c);
    expect_contents(w, made);
    CHECK_EQ(pages(w), 1);
}

/* ---- many --------------------------------------------------------------------------------- */

typedef struct herd {
    quire_allocation made[HERD];
    uint32_t count;
    test_random random;
} herd;

static void add(bench *w, herd *h)
{
    const uint64_t size = 16 + random_below(&h->random, PAGE / 16);
    const quire_allocation made =
        ALLOCATE(&w->f, .size = size, .alignment = 1u << random_below(&h->random, 9));
    CHECK_OK(quire_write(w->f.memory, made, size - 8, &made.id, 8));
    h->made[h->count++] = made;
}

static void check(bench *w, quire_allocation made)
{
    uint64_t id = 0;
    CHECK_OK(quire_read(w->f.memory, made, fixture_info(&w->f, made).requested - 8, &id, 8));
    CHECK_EQ(id, made.id);
}

static void drop(bench *w, herd *h)
{
    const uint64_t i = random_below(&h->random, h->count);
    check(w, h->made[i]);
    CHECK_OK(quire_free(w->f.memory, h->made[i]));
    h->made[i] = h->made[--h->count];
}

/* Ends a move in one of three ways; the source may have been freed. */
static void end_move(bench *w, herd *h, quire_compaction *c, const quire_compact_move *move)
{
    if (random_below(&h->random, 20) == 0) {
        CHECK_OK(quire_compact_decline(c, move));
        return;
    }
    quire_allocation_info info;
    if (!quire_allocation_get_info(w->f.memory, move->source, &info)) {
        copy(w, move);
        CHECK_OK(quire_compact_accept(c, move, NULL));
    } else {
        CHECK_FAILS(quire_compact_accept(c, move, NULL), QUIRE_ERROR_STALE_HANDLE);
    }
}

CASE(offers_converge_beside_other_calls)
{
    static herd h;
    quire_compact_move moves[16];
    h = (herd){.random = {3}};
    while (h.count < HERD)
        add(w, &h);
    while (h.count > HERD / 2)
        drop(w, &h);
    const uint64_t before = pages(w);
    quire_compaction *c = compaction(w);
    uint64_t calls = 0;
    for (uint64_t count; (count = offer(c, 16, moves)) != 0; calls++) {
        for (uint64_t i = 0; calls < 60 && i < 3; i++) {
            drop(w, &h);
            add(w, &h);
        }
        for (uint64_t i = 0; i < count; i++)
            end_move(w, &h, c, &moves[i]);
        CHECK(calls < 2000);
    }
    CHECK(is_complete);
    quire_compact_end(&c);
    CHECK(pages(w) < before * 2 / 3);
    for (uint32_t i = 0; i < h.count; i++)
        check(w, h.made[i]);
}
