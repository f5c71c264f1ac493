/*
 * segregated_damage.c - damage to the segregated fit in bulk: the check survives any damage, finds
 * every changed bit of a range, and verifies numbers without a range.
 */
#include "src/base/handle.h"
#include "src/space/segregated/segregated.h"
#include "tests/support/random.h"
#include "tests/support/space_steps.h"
#include "tests/support/unit.h"

enum { RANGES = 60 };

/* Every other range is free; some numbers were used and are spare. */
static quire_space *make_space(void)
{
    quire_space *space = NULL;
    quire_space_options options = {.size = 40000, .fit.granule = 1, .host_memory = unit_memory()};
    CHECK_OK(quire_space_create(&options, &space));
    quire_placement at[RANGES];
    for (uint64_t i = 0; i < RANGES; i++)
        CHECK_OK(quire_space_allocate(space, 1 + i * i % 700, 1, i, &at[i]));
    for (int i = 10; i < RANGES; i += 2)
        CHECK_OK(quire_space_free(space, at[i].range));
    CHECK_OK(quire_space_free(space, at[21].range));
    CHECK_OK(quire_space_free(space, at[41].range));
    CHECK(space->pool.unused != 0);
    return space;
}

/* A number that lies in the chain of unused ones. */
static uint32_t spare_number(const quire_space *space)
{
    return space->pool.unused;
}

/* ---- single bits --------------------------------------------------------------------------- */

static void expect_bit_found(const quire_space *space, uint32_t *field, uint32_t bit)
{
    *field ^= UINT32_C(1) << bit;
    CHECK_FAILS(quire_space_check(space), QUIRE_ERROR_CORRUPTED);
    *field ^= UINT32_C(1) << bit;
}

UNIT(segregated_damage, every_bit_of_the_place_and_the_upper_link_of_every_range_is_found)
{
    quire_space *space = make_space();
    qi_node *nodes = qi_segregated_of(space)->nodes;
    uint32_t own = space->regions[0].node;
    for (uint32_t i = nodes[own].after; i != own; i = nodes[i].after) {
        for (uint32_t bit = 0; bit < 32; bit++) {
            expect_bit_found(space, &nodes[i].offset, bit);
            expect_bit_found(space, &nodes[i].size, bit);
            expect_bit_found(space, &nodes[i].after, bit);
            expect_bit_found(space, &nodes[i].owner, bit);
        }
    }
    end_space(space);
}

UNIT(segregated_damage, every_bit_of_the_lower_link_of_every_range_is_found)
{
    quire_space *space = make_space();
    qi_node *nodes = qi_segregated_of(space)->nodes;
    uint32_t own = space->regions[0].node, i = own;
    do {
        i = nodes[i].after;
        for (uint32_t bit = 0; bit < 32; bit++)
            expect_bit_found(space, &nodes[i].before, bit);
    } while (i != own);
    end_space(space);
}

UNIT(segregated_damage, every_bit_of_the_lists_is_found)
{
    quire_space *space = make_space();
    qi_segregated *s = qi_segregated_of(space);
    for (uint32_t i = 1; i < space->pool.top; i++) {
        for (uint32_t bit = 0; bit < 32 && qi_node_is_free(s, i); bit++) {
            expect_bit_found(space, &s->nodes[i].next, bit);
            expect_bit_found(space, &s->nodes[i].back, bit);
        }
    }
    for (uint32_t list = 0; list < s->list_count; list++)
        for (uint32_t bit = 0; bit < 32; bit++)
            expect_bit_found(space, &s->heads[list], bit);
    end_space(space);
}

/* ---- random damage ------------------------------------------------------------------------- */

typedef struct target {
    void *bytes;
    size_t size;
} target;

/* Writes random bytes to a few places of the records, checks, and restores them. */
static void damage_at_random(const quire_space *space, const target *targets, size_t count,
                             test_random *r)
{
    struct {
        unsigned char *place, kept;
    } changes[8];
    for (int i = 0; i < 8; i++) {
        const target *t = &targets[random_below(r, count)];
        changes[i].place = (unsigned char *)t->bytes + random_below(r, t->size);
        changes[i].kept = *changes[i].place;
        *changes[i].place = (unsigned char)(random_next(r) & random_next(r));
    }
    quire_result result = quire_space_check(space);
    CHECK(result == QUIRE_SUCCESS || result == QUIRE_ERROR_CORRUPTED);
    for (int i = 8; i-- > 0;)
        *changes[i].place = changes[i].kept;
}

UNIT(segregated_damage, the_checker_survives_random_damage)
{
    quire_space *space = make_space();
    qi_segregated *s = qi_segregated_of(space);
    const target targets[] = {
        {s->nodes, space->pool.top * sizeof *s->nodes},
        {s->is_free, s->free_capacity / 8},
        {s->heads, s->list_count * sizeof *s->heads},
        {s->fractions, s->list_count},
        {s->bits, (s->list_count / 64 + 1) * sizeof *s->bits},
        {s->bit_words, sizeof s->bit_words},
        {&s->list_count, sizeof s->list_count},
        {&s->row_shift, sizeof s->row_shift},
        {&space->regions[0].start, sizeof space->regions[0].start},
        {&space->regions[0].size, sizeof space->regions[0].size},
        {&space->regions[0].node, sizeof space->regions[0].node},
        {&space->pool.top, sizeof space->pool.top},
        {&space->pool.unused, sizeof space->pool.unused},
        {&space->pool.spare, sizeof space->pool.spare},
        {space->line.stretches, sizeof *space->line.stretches},
        {&space->line.count, sizeof space->line.count},
        {&s->granule_shift, sizeof s->granule_shift},
        {&s->bucket_shift, sizeof s->bucket_shift},
    };
    test_random r = {12};
    for (int i = 0; i < 50000; i++)
        damage_at_random(space, targets, sizeof targets / sizeof *targets, &r);
    end_space(space);
}

/* ---- numbers without a range --------------------------------------------------------------- */

UNIT(segregated_damage, a_spare_number_marked_free)
{
    quire_space *space = make_space();
    qi_segregated *s = qi_segregated_of(space);
    uint32_t spare = spare_number(space), fresh = space->pool.top;
    const uint32_t numbers[] = {spare, fresh};
    for (int i = 0; i < 2; i++) {
        uint64_t bit = UINT64_C(1) << numbers[i] % 64;
        s->is_free[numbers[i] / 64] ^= bit;
        CHECK_FAILS(quire_space_check(space), QUIRE_ERROR_CORRUPTED);
        s->is_free[numbers[i] / 64] ^= bit;
    }
    end_space(space);
}

/* Its handle would pass for that of a live range. */
UNIT(segregated_damage, a_spare_number_or_a_region_with_the_generation_of_a_live_range)
{
    quire_space *space = make_space();
    qi_node *nodes = qi_segregated_of(space)->nodes;
    expect_bit_found(space, &nodes[spare_number(space)].generation, 0);
    expect_bit_found(space, &nodes[space->regions[0].node].generation, 0);
    end_space(space);
}

/* Ranges before the region's first range take their region from there. */
UNIT(segregated_damage, the_region_in_the_node_of_a_region)
{
    quire_space *space = make_space();
    expect_bit_found(space, &qi_segregated_of(space)->nodes[space->regions[0].node].owner, 0);
    end_space(space);
}

UNIT(segregated_damage, the_chain_of_spare_numbers)
{
    quire_space *space = make_space();
    qi_node *nodes = qi_segregated_of(space)->nodes;
    uint32_t first = space->pool.unused, live = nodes[space->regions[0].node].after;
    const uint32_t wrong[] = {0, live, space->pool.top, UINT32_MAX};
    for (int i = 0; i < 4; i++) {
        space->pool.unused = wrong[i];
        CHECK_FAILS(quire_space_check(space), QUIRE_ERROR_CORRUPTED);
        space->pool.unused = first;
    }
    uint32_t next = nodes[first].next;
    nodes[first].next = first; /* a circle */
    CHECK_FAILS(quire_space_check(space), QUIRE_ERROR_CORRUPTED);
    nodes[first].next = next;
    end_space(space);
}

/* ---- the line ------------------------------------------------------------------------------ */

/* The next region would be placed over this one. */
UNIT(segregated_damage, the_address_of_a_region_on_the_line)
{
    quire_space *space = make_space();
    qi_stretch *stretch = space->line.stretches, kept = *stretch;
    const qi_stretch wrong[] = {{0, kept.end - 256}, {256, kept.end}, {0, kept.end + 256}};
    for (int i = 0; i < 3; i++) {
        *stretch = wrong[i];
        CHECK_FAILS(quire_space_check(space), QUIRE_ERROR_CORRUPTED);
        *stretch = kept;
    }
    space->line.count = 0;
    CHECK_FAILS(quire_space_check(space), QUIRE_ERROR_CORRUPTED);
    space->line.count = 1;
    end_space(space);
}
