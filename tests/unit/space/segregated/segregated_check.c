/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * segregated_check.c - the check finds every kind of damage to the records of the segregated fit,
 * with the right message, and every changed bit of a range; it reads nothing that it has not
 * verified. (The records of slabs: slabs_check.c.)
 */
#include "src/space/segregated/lists.h"

#include "tests/support/damage.h"
#include "tests/support/space_steps.h"

enum { GRANULE = 16 };

/*
 * Two regions, in granules. The first: live A, free B of 50, live C, free D of 50, live E, free F
 * up to the end. D was freed last, so it precedes B in their list. The second: live G, free H.
 */
typedef struct bench {
    quire_space *space;
    qi_segregated *s;
    qi_node *nodes;
    uint32_t own, A, B, C, D, E, F, other, G, H;
} bench;

static quire_range take(bench *b, uint64_t size)
{
    quire_placement at;
    CHECK_OK(quire_space_allocate(b->space, size * GRANULE, 1, 0, &at));
    return at.range;
}

/* Names the ranges of the first region in the order of the ring. */
static void name_ranges(bench *b)
{
    uint32_t *const names[] = {&b->A, &b->B, &b->C, &b->D, &b->E, &b->F};
    b->own = b->space->regions[0].node;
    uint32_t number = b->own;
    for (int i = 0; i < 6; i++)
        *names[i] = number = b->nodes[number].after;
    b->other = b->space->regions[1].node;
    b->G = b->nodes[b->other].after;
    b->H = b->nodes[b->G].after;
}

static bench make_bench(void)
{
    bench b = {0};
    uint32_t region = 0;
    quire_space_options options = {.fit = {.granule = GRANULE, .max_alignment = 1}};
    b.space = new_space(options);
    b.s = qi_segregated_of(b.space);
    CHECK_OK(qi_segregated_reserve(b.s, 600)); /* 16 buckets a class */
    CHECK_OK(quire_space_add_region(b.space, 4096 * GRANULE, 0, &region));
    const uint64_t sizes[] = {100, 50, 10, 50, 1};
    quire_range ranges[5];
    for (int i = 0; i < 5; i++)
        ranges[i] = take(&b, sizes[i]);
    CHECK_OK(quire_space_add_region(b.space, 1000 * GRANULE, 0, &region));
    take(&b, 10); /* the second region, because its class is smaller */
    CHECK_OK(quire_space_free(b.space, ranges[1]));
    CHECK_OK(quire_space_free(b.space, ranges[3]));
    b.nodes = b.s->nodes;
    name_ranges(&b);
    CHECK_EQ(b.nodes[b.F].after, b.own);
    CHECK_EQ(b.nodes[b.H].after, b.other);
    CHECK_EQ(b.nodes[b.D].next, b.B);
    return b;
}

static uint32_t list_of(const bench *b, uint32_t node)
{
    return qi_list_for(b->s, b->nodes[node].offset, b->nodes[node].size).number;
}

#define DAMAGE_FREE_BIT(node, words)                                                               \
    DAMAGE(b.s->is_free[(node) / 64], b.s->is_free[(node) / 64] ^ UINT64_C(1) << (node) % 64, words)

/* ---- rings --------------------------------------------------------------------------------- */

UNIT(segregated_check, links_and_regions_of_ranges)
{
    bench b = make_bench();
    const char *const back = "a neighbour does not point back";
    const char *const other = "a range is in the ring of another region";
    const char *const kinds = "ranges of different kinds share a stretch";
    const uint32_t top = b.space->pool.top, capacity = b.space->pool.capacity;
    const uint32_t wrong[] = {0, b.A, b.F, top, capacity, UINT32_MAX},
                   wrong_own[] = {0, b.A, top, capacity, UINT32_MAX},
                   wrong_first[] = {0, b.B, b.F, b.other, UINT32_MAX};
    DAMAGE_BY_EACH(b.nodes[b.C].before, wrong, back);
    DAMAGE_BY_EACH(b.nodes[b.own].before, wrong_own, back);
    DAMAGE_BY_EACH(b.nodes[b.C].after, wrong, back);
    DAMAGE_BY_EACH(b.nodes[b.A].before, wrong_first, back);
    DAMAGE(b.nodes[b.A].owner, 1, other);
    DAMAGE(b.nodes[b.F].owner, UINT32_MAX, other);
    DAMAGE(b.nodes[b.G].owner, 0, other);
    DAMAGE(b.nodes[b.A].owner, 1u << 24, other);
    DAMAGE(b.nodes[b.A].owner, QI_OPTIMAL_MARK, kinds);
    DAMAGE(b.nodes[b.B].owner, b.nodes[b.B].owner | QI_OPTIMAL_MARK, kinds);
    end_space(b.space);
}

UNIT(segregated_check, states_of_ranges_and_nodes_of_regions)
{
    bench b = make_bench();
    const char *const both = "a range is neither free nor live, or both";
    const char *const own = "the node of a region is damaged";
    DAMAGE_FREE_BIT(b.A, both);
    DAMAGE_FREE_BIT(b.D, both);
    DAMAGE(b.nodes[b.C].generation, b.nodes[b.C].generation + 1, both);
    DAMAGE(b.nodes[b.F].generation, b.nodes[b.F].generation + 1, both);
    DAMAGE(b.nodes[b.E].size, 0, both);
    DAMAGE(b.nodes[b.H].size, 0, both);
    DAMAGE_FREE_BIT(b.C, "two free neighbours touch");
    DAMAGE_FREE_BIT(b.E, "two free neighbours touch");
    DAMAGE(b.space->regions[0].node, 0, own);
    DAMAGE(b.space->regions[0].node, b.A, own);
    DAMAGE(b.space->regions[1].node, b.space->pool.top, own);
    DAMAGE(b.space->regions[1].node, UINT32_MAX, own);
    DAMAGE(b.nodes[b.own].size, 1, own);
    DAMAGE(b.nodes[b.own].owner, 1, own);
    DAMAGE_FREE_BIT(b.other, own);
    end_space(b.space);
}

UNIT(segregated_check, places_of_ranges)
{
    bench b = make_bench();
    const char *const start = "a range does not begin where its neighbour ends";
    const char *const fill = "the ranges of a region do not fill it";
    DAMAGE(b.nodes[b.A].offset, 1, start);
    DAMAGE(b.nodes[b.D].offset, b.nodes[b.D].offset - 1, start);
    DAMAGE(b.nodes[b.C].size, 11, start);
    DAMAGE(b.space->regions[1].start, 4097 * GRANULE, start);
    DAMAGE(b.space->region_hint, 3, "an unused region number is below the lowest unused one");
    DAMAGE(b.space->regions[1].node, b.own, "space:"); /* an own node, but not the region's */
    DAMAGE(b.nodes[b.own].after, b.B, start);
    DAMAGE(b.nodes[b.own].after, 0, start);
    DAMAGE(b.nodes[b.own].after, UINT32_MAX, start);
    DAMAGE(b.nodes[b.F].size, b.nodes[b.F].size - 1, fill);
    DAMAGE(b.nodes[b.H].size, b.nodes[b.H].size + 1, fill);
    DAMAGE(b.space->regions[0].size, 4096 * GRANULE - 1, fill);
    DAMAGE(b.nodes[b.own].after, b.own, fill);
    /* a sound range in a record that was never taken */
    uint32_t top = b.space->pool.top, after = b.nodes[b.A].after;
    CHECK(top < b.space->pool.capacity);
    qi_node kept = b.nodes[top];
    b.nodes[top] = b.nodes[b.A];
    b.nodes[b.own].after = b.nodes[after].before = top;
    EXPECT_REPORT(start);
    b.nodes[top] = kept;
    b.nodes[b.own].after = b.nodes[after].before = b.A;
    end_space(b.space);
}

/* ---- lists and tables ----------------------------------------------------------------------- */

UNIT(segregated_check, lists_and_fractions)
{
    bench b = make_bench();
    const char *const list = "a list holds a range that is not free or not linked back";
    const char *const fraction = "a fraction does not match the size of its range";
    const uint32_t wrong[] = {b.A, b.B, b.own, b.space->pool.top, UINT32_MAX};
    uint8_t *of_f = &b.s->fractions[list_of(&b, b.F)];
    DAMAGE_BY_EACH(b.s->heads[list_of(&b, b.D)], wrong, list);
    DAMAGE_BY_EACH(b.nodes[b.B].next, wrong, list);
    DAMAGE(b.nodes[b.B].next, b.D, list); /* a circle */
    DAMAGE(b.nodes[b.B].back, b.H, list);
    DAMAGE(b.nodes[b.D].back, b.nodes[b.D].back + 1, list);
    DAMAGE(b.nodes[b.D].back, b.nodes[b.D].back & ~QI_AT_HEAD, list);
    DAMAGE(b.s->bucket_shift, b.s->bucket_shift + 1,
           "a free range is in the list of another size or address");
    b.nodes[b.C].offset++; /* a consistent ring again, if B is one larger */
    b.nodes[b.C].size--;
    b.nodes[b.B].size++;
    EXPECT_REPORT(fraction);
    b.nodes[b.C].offset--;
    b.nodes[b.C].size++;
    b.nodes[b.B].size--;
    CHECK(*of_f > 0); /* otherwise the test would miss a lost range */
    DAMAGE(*of_f, 0, fraction);
    DAMAGE(*of_f, *of_f + 1, fraction);
    DAMAGE(b.s->fractions[list_of(&b, b.D)], 1, fraction);
    DAMAGE(b.nodes[b.F].owner, b.nodes[b.F].owner + (1u << 24), fraction);
    DAMAGE(b.nodes[b.B].owner, b.nodes[b.B].owner ^ (1u << 31), fraction);
    end_space(b.space);
}

/* A search would follow such a bit to a word, or a list, that does not exist. */
UNIT(segregated_check, marks_of_words_lists_and_numbers)
{
    bench b = make_bench();
    const char *const list = "the bit of a list is wrong";
    const char *const none = "a number that names no free range is marked free";
    DAMAGE_EACH_BIT(b.s->bits[list_of(&b, b.D) / 64], list);
    DAMAGE(b.s->bits[b.s->list_count / 64 - 1], 1, list);
    DAMAGE(b.s->heads[list_of(&b, b.H)], 0, list);
    for (size_t i = 0; i < sizeof b.s->bit_words / sizeof *b.s->bit_words; i++)
        DAMAGE_EACH_BIT(b.s->bit_words[i], "the bit of a word of lists is wrong");
    for (uint32_t i = b.s->list_count % 64; i < 64; i++) {
        uint64_t *last = &b.s->bits[b.s->list_count / 64];
        DAMAGE(*last, *last | UINT64_C(1) << i, "a bit above the last list is set");
    }
    DAMAGE_FREE_BIT(0, none);
    DAMAGE_FREE_BIT(b.s->free_capacity - 1, none);
    end_space(b.space);
}

/* Sizes and shifts that would send the check itself outside the tables. */
UNIT(segregated_check, the_sizes_and_shifts_of_the_tables)
{
    bench b = make_bench();
    const char *const tables = "the tables have a wrong size";
    const uint32_t shifts[] = {33, 64, UINT32_MAX};
    DAMAGE_BY_EACH(b.s->bucket_shift, shifts, tables);
    DAMAGE_BY_EACH(b.s->granule_shift, shifts, tables);
    DAMAGE(b.s->granule_shift, b.s->granule_shift + 1, tables);
    DAMAGE(b.s->list_count, (uint32_t)QI_CLASS_LIMIT * 16 + 64, tables);
    DAMAGE(b.s->list_count, b.s->list_count - 1, tables);
    DAMAGE(b.s->row_shift, 1, tables);
    DAMAGE(b.s->row_shift, 3, tables);
    DAMAGE(b.s->row_mask, 3, tables);
    DAMAGE(b.s->kind_mask, 3, tables);
    DAMAGE(b.s->free_capacity, b.space->pool.capacity - 1, tables);
    DAMAGE(b.s->nodes, (uintptr_t)(b.nodes + 1), tables);
    DAMAGE(b.space->pool.top, b.space->pool.capacity + 1, "more numbers are in use");
    DAMAGE(b.s->bucket_shift, b.s->bucket_shift - 1, "above the last address bucket");
    end_space(b.space);
    /* on some processors a shift by 64 gives 1 again, the value of this granule */
    quire_space_options options = {.size = 100, .fit.granule = 1};
    b.space = new_space(options);
    b.s = qi_segregated_of(b.space);
    DAMAGE(b.s->granule_shift, 64, tables);
    end_space(b.space);
}

UNIT(segregated_check, counts_and_sums)
{
    bench b = make_bench();
    const char *const once = "the lists do not hold every free range exactly once";
    const char *const live = "the live statistics do not match";
    DAMAGE(b.nodes[b.D].next, 0, once); /* loses B */
    DAMAGE(b.space->pool.spare, b.space->pool.spare + 1, once);
    DAMAGE(b.space->pool.retired, 1, once);
    DAMAGE(b.space->live_count, 5, once);
    DAMAGE(b.space->region_count, 1, once);
    DAMAGE(b.space->live_bytes, b.space->live_bytes - 1, live);
    DAMAGE(b.space->padding_bytes, 1, "space:"); /* which this fit does not have */
    DAMAGE(b.space->region_bytes, 5096 * GRANULE - 1,
           "the sums of live and free bytes are not the size of the regions");
    /* the check derives the expected count of free ranges from the numbers in use */
    b.space->live_count++;
    b.space->pool.spare--;
    EXPECT_REPORT(live);
    b.space->live_count--;
    b.space->pool.spare++;
    end_space(b.space);
}

/* ---- many ranges ---------------------------------------------------------------------------- */

enum { RANGES = 60 };

/* Every other range is free; some numbers were used and are spare. */
static bench make_many(void)
{
    bench b = {0};
    quire_space_options options = {.size = 40000, .fit.granule = 1};
    b.space = new_space(options);
    quire_placement at[RANGES];
    for (uint64_t i = 0; i < RANGES; i++)
        CHECK_OK(quire_space_allocate(b.space, 1 + i * i % 700, 1, i, &at[i]));
    for (int i = 10; i < RANGES; i += 2)
        CHECK_OK(quire_space_free(b.space, at[i].range));
    CHECK_OK(quire_space_free(b.space, at[21].range));
    CHECK_OK(quire_space_free(b.space, at[41].range));
    CHECK(b.space->pool.unused != 0);
    b.s = qi_segregated_of(b.space);
    b.nodes = b.s->nodes;
    b.own = b.space->regions[0].node;
    return b;
}

UNIT(segregated_check, every_bit_of_every_range_and_list_is_found)
{
    bench b = make_many();
    DAMAGE_EACH_BIT(b.nodes[b.own].before, "space:");
    for (uint32_t i = b.nodes[b.own].after; i != b.own; i = b.nodes[i].after) {
        DAMAGE_EACH_BIT(b.nodes[i].offset, "space:");
        DAMAGE_EACH_BIT(b.nodes[i].size, "space:");
        DAMAGE_EACH_BIT(b.nodes[i].after, "space:");
        DAMAGE_EACH_BIT(b.nodes[i].before, "space:");
        DAMAGE_EACH_BIT(b.nodes[i].owner, "space:");
    }
    for (uint32_t i = 1; i < b.space->pool.top; i++)
        if (qi_node_is_free(b.s, i)) {
            DAMAGE_EACH_BIT(b.nodes[i].next, "space:");
            DAMAGE_EACH_BIT(b.nodes[i].back, "space:");
        }
    for (uint32_t list = 0; list < b.s->list_count; list++)
        DAMAGE_EACH_BIT(b.s->heads[list], "space:");
    end_space(b.space);
}

/* A handle would pass for that of a live range; the next region would be placed over this one. */
UNIT(segregated_check, numbers_without_a_range_and_places_on_the_line)
{
    bench b = make_many();
    qi_stretch *stretch = b.space->line.stretches;
    uint32_t spare = b.space->pool.unused, live = b.nodes[b.own].after;
    const uint32_t wrong[] = {0, live, b.space->pool.top, UINT32_MAX};
    DAMAGE_FREE_BIT(spare, "space:");
    DAMAGE_FREE_BIT(b.space->pool.top, "space:");
    DAMAGE(b.nodes[spare].generation, b.nodes[spare].generation ^ 1, "space:");
    DAMAGE(b.nodes[b.own].generation, b.nodes[b.own].generation ^ 1, "space:");
    DAMAGE(b.nodes[b.own].owner, b.nodes[b.own].owner ^ 1, "space:");
    DAMAGE_BY_EACH(b.space->pool.unused, wrong, "space:");
    DAMAGE(b.nodes[spare].next, spare, "space:"); /* a circle */
    DAMAGE(stretch->end, stretch->end - 256, "space:");
    DAMAGE(stretch->start, 256, "space:");
    DAMAGE(stretch->end, stretch->end + 256, "space:");
    DAMAGE(b.space->line.count, 0, "space:");
    end_space(b.space);
}

UNIT(segregated_check, the_checker_survives_random_damage)
{
    bench b = make_many();
    qi_segregated *s = b.s;
    quire_space *space = b.space;
    const damage_target targets[] = {
        {s->nodes, space->pool.top * sizeof *s->nodes, 0, 0},
        {s->is_free, s->free_capacity / 8, 0, 0},
        {s->heads, s->list_count * sizeof *s->heads, 0, 0},
        {s->fractions, s->list_count, 0, 0},
        {s->bits, (s->list_count / 64 + 1) * sizeof *s->bits, 0, 0},
        {s->bit_words, sizeof s->bit_words, 0, 0},
        {&s->list_count, sizeof s->list_count, 0, 0},
        {&s->row_shift, sizeof s->row_shift, 0, 0},
        {&space->regions[0].start, sizeof space->regions[0].start, 0, 0},
        {&space->regions[0].size, sizeof space->regions[0].size, 0, 0},
        {&space->regions[0].node, sizeof space->regions[0].node, 0, 0},
        {&space->pool.top, sizeof space->pool.top, 0, 0},
        {&space->pool.unused, sizeof space->pool.unused, 0, 0},
        {&space->pool.spare, sizeof space->pool.spare, 0, 0},
        {space->line.stretches, sizeof *space->line.stretches, 0, 0},
        {&space->line.count, sizeof space->line.count, 0, 0},
        {&s->granule_shift, sizeof s->granule_shift, 0, 0},
        {&s->bucket_shift, sizeof s->bucket_shift, 0, 0},
    };
    SURVIVE_RANDOM_DAMAGE(targets, 25000);
    end_space(b.space);
}

/* ---- kinds ---------------------------------------------------------------------------------- */

UNIT(segregated_check, kinds_of_ranges)
{
    for (uint64_t granularity = 0; granularity <= 4096; granularity += 4096) {
        bench b = {0};
        quire_space_options options = {.size = 1 << 16, .buffer_image_granularity = granularity};
        b.space = new_space(options);
        for (int i = 0; i < 8; i++) {
            quire_range_options wanted = {.size = 3000, .optimal = i > 3};
            CHECK_OK(quire_space_allocate_with(b.space, &wanted, &(quire_placement){0}));
        }
        qi_node *nodes = qi_segregated_of(b.space)->nodes;
        uint32_t i = b.space->regions[0].node, own = i;
        int count = 0;
        do {
            DAMAGE(nodes[i].owner, nodes[i].owner ^ QI_OPTIMAL_MARK, "space:");
            count++;
        } while ((i = nodes[i].after) != own);
        CHECK(granularity ? count > 9 : count == 10); /* free ones, too */
        end_space(b.space);
    }
}
