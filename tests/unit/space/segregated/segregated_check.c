/*
 * segregated_check.c - the check finds every kind of damage to the records of the segregated fit,
 * with the right message, and reads nothing that it has not verified.
 */
#include "src/space/segregated/lists.h"

#include "src/base/bits.h"
#include "tests/support/random.h"
#include "tests/support/unit.h"

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
    options.host_memory = unit_memory();
    CHECK_OK(quire_space_create(&options, &b.space));
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

static void end_bench(bench *b)
{
    CHECK_OK(quire_space_check(b->space));
    quire_space_destroy(&b->space);
}

static void store(void *field, size_t size, uint64_t value)
{
    switch (size) {
    case 1:
        *(uint8_t *)field = (uint8_t)value;
        break;
    case 2:
        *(uint16_t *)field = (uint16_t)value;
        break;
    case 4:
        *(uint32_t *)field = (uint32_t)value;
        break;
    default:
        *(uint64_t *)field = value;
    }
}

static void expect_found(const bench *b, void *field, size_t size, uint64_t value,
                         const char *message)
{
    char kept[8];
    memcpy(kept, field, size);
    store(field, size, value);
    CHECK_FAILS(quire_space_check(b->space), QUIRE_ERROR_CORRUPTED);
    CHECK_HAS(quire_last_error(), message);
    memcpy(field, kept, size);
    CHECK_OK(quire_space_check(b->space));
}

/* Sets a field for one check, then restores it. */
#define DAMAGE(b, field, value, message)                                                           \
    expect_found((b), &(field), sizeof(field), (uint64_t)(value), (message))

static uint32_t list_of(const bench *b, uint32_t node)
{
    return qi_list_for(b->s, b->nodes[node].offset, b->nodes[node].size).number;
}

static uint64_t flipped(const bench *b, uint32_t node)
{
    return b->s->is_free[node / 64] ^ UINT64_C(1) << node % 64;
}

#define DAMAGE_FREE_BIT(b, node, message)                                                          \
    DAMAGE((b), (b)->s->is_free[(node) / 64], flipped((b), (node)), (message))

/* ---- rings --------------------------------------------------------------------------------- */

UNIT(segregated_check, links_of_neighbours)
{
    bench b = make_bench();
    const char *const message = "a neighbour does not point back";
    const uint32_t wrong[] = {0, b.A, b.F, b.space->pool.top, b.space->pool.capacity, UINT32_MAX};
    for (int i = 0; i < 6; i++) {
        DAMAGE(&b, b.nodes[b.C].before, wrong[i], message);
        DAMAGE(&b, b.nodes[b.own].before, wrong[i == 2 ? 0 : i], message);
        DAMAGE(&b, b.nodes[b.C].after, wrong[i], message);
    }
    end_bench(&b);
}

UNIT(segregated_check, the_link_of_the_first_range_to_its_region)
{
    bench b = make_bench();
    const uint32_t wrong[] = {0, b.B, b.F, b.other, UINT32_MAX};
    for (int i = 0; i < 5; i++)
        DAMAGE(&b, b.nodes[b.A].before, wrong[i], "does not point back");
    end_bench(&b);
}

UNIT(segregated_check, the_region_of_a_range)
{
    bench b = make_bench();
    DAMAGE(&b, b.nodes[b.A].owner, 1, "a range is in the ring of another region");
    DAMAGE(&b, b.nodes[b.F].owner, UINT32_MAX, "a range is in the ring of another region");
    DAMAGE(&b, b.nodes[b.G].owner, 0, "a range is in the ring of another region");
    DAMAGE(&b, b.nodes[b.A].owner, 1u << 24, "a range is in the ring of another region");
    DAMAGE(&b, b.nodes[b.A].owner, QI_OPTIMAL_MARK, "ranges of different kinds share a stretch");
    DAMAGE(&b, b.nodes[b.B].owner, b.nodes[b.B].owner | QI_OPTIMAL_MARK,
           "ranges of different kinds share a stretch");
    end_bench(&b);
}

UNIT(segregated_check, a_range_that_is_neither_free_nor_live_or_both)
{
    bench b = make_bench();
    const char *const message = "a range is neither free nor live, or both";
    DAMAGE_FREE_BIT(&b, b.A, message);
    DAMAGE_FREE_BIT(&b, b.D, message);
    DAMAGE(&b, b.nodes[b.C].generation, b.nodes[b.C].generation + 1, message);
    DAMAGE(&b, b.nodes[b.F].generation, b.nodes[b.F].generation + 1, message);
    DAMAGE(&b, b.nodes[b.E].size, 0, message);
    DAMAGE(&b, b.nodes[b.H].size, 0, message);
    end_bench(&b);
}

UNIT(segregated_check, free_neighbours_that_did_not_merge)
{
    bench b = make_bench();
    DAMAGE_FREE_BIT(&b, b.C, "two free neighbours touch");
    DAMAGE_FREE_BIT(&b, b.E, "two free neighbours touch");
    end_bench(&b);
}

UNIT(segregated_check, the_node_of_a_region)
{
    bench b = make_bench();
    const char *const message = "the node of a region is damaged";
    DAMAGE(&b, b.space->regions[0].node, 0, message);
    DAMAGE(&b, b.space->regions[0].node, b.A, message);
    DAMAGE(&b, b.space->regions[1].node, b.space->pool.top, message);
    DAMAGE(&b, b.space->regions[1].node, UINT32_MAX, message);
    DAMAGE(&b, b.nodes[b.own].size, 1, message);
    DAMAGE(&b, b.nodes[b.own].owner, 1, message);
    DAMAGE_FREE_BIT(&b, b.other, message);
    end_bench(&b);
}

UNIT(segregated_check, the_start_of_a_range)
{
    bench b = make_bench();
    const char *const message = "a range does not begin where its neighbour ends";
    DAMAGE(&b, b.nodes[b.A].offset, 1, message);
    DAMAGE(&b, b.nodes[b.D].offset, b.nodes[b.D].offset - 1, message);
    DAMAGE(&b, b.nodes[b.C].size, 11, message);
    DAMAGE(&b, b.space->regions[1].start, 4097 * GRANULE, message);
    DAMAGE(&b, b.space->regions[1].node, b.own, "space:"); /* an own node, but not the region's */
    DAMAGE(&b, b.nodes[b.own].after, b.B, message);
    DAMAGE(&b, b.nodes[b.own].after, 0, message);
    DAMAGE(&b, b.nodes[b.own].after, UINT32_MAX, message);
    end_bench(&b);
}

UNIT(segregated_check, the_end_of_a_region)
{
    bench b = make_bench();
    const char *const message = "the ranges of a region do not fill it";
    DAMAGE(&b, b.nodes[b.F].size, b.nodes[b.F].size - 1, message);
    DAMAGE(&b, b.nodes[b.H].size, b.nodes[b.H].size + 1, message);
    DAMAGE(&b, b.space->regions[0].size, 4096 * GRANULE - 1, message);
    DAMAGE(&b, b.nodes[b.own].after, b.own, message);
    end_bench(&b);
}

/* ---- lists --------------------------------------------------------------------------------- */

UNIT(segregated_check, links_of_lists)
{
    bench b = make_bench();
    const char *const message = "a list holds a range that is not free or not linked back";
    uint32_t *head = &b.s->heads[list_of(&b, b.D)];
    const uint32_t wrong[] = {b.A, b.B, b.own, b.space->pool.top, UINT32_MAX};
    for (int i = 0; i < 5; i++) {
        DAMAGE(&b, *head, wrong[i], message);
        DAMAGE(&b, b.nodes[b.B].next, wrong[i], message);
    }
    DAMAGE(&b, b.nodes[b.B].next, b.D, message); /* a circle */
    DAMAGE(&b, b.nodes[b.B].back, b.H, message);
    DAMAGE(&b, b.nodes[b.D].back, b.nodes[b.D].back + 1, message);
    DAMAGE(&b, b.nodes[b.D].back, b.nodes[b.D].back & ~QI_AT_HEAD, message);
    end_bench(&b);
}

UNIT(segregated_check, ranges_in_the_list_of_another_bucket)
{
    bench b = make_bench();
    DAMAGE(&b, b.s->bucket_shift, b.s->bucket_shift + 1,
           "a free range is in the list of another size or address");
    end_bench(&b);
}

UNIT(segregated_check, ranges_in_the_list_of_another_size)
{
    bench b = make_bench();
    b.nodes[b.C].offset++; /* a consistent ring again, if B is one larger */
    b.nodes[b.C].size--;
    b.nodes[b.B].size++;
    CHECK_FAILS(quire_space_check(b.space), QUIRE_ERROR_CORRUPTED);
    CHECK_HAS(quire_last_error(), "a fraction does not match the size of its range");
    b.nodes[b.C].offset--;
    b.nodes[b.C].size++;
    b.nodes[b.B].size--;
    end_bench(&b);
}

UNIT(segregated_check, fractions)
{
    bench b = make_bench();
    const char *const message = "a fraction does not match the size of its range";
    uint8_t *of_f = &b.s->fractions[list_of(&b, b.F)];
    CHECK(*of_f > 0); /* otherwise the test would miss a lost range */
    DAMAGE(&b, *of_f, 0, message);
    DAMAGE(&b, *of_f, *of_f + 1, message);
    DAMAGE(&b, b.s->fractions[list_of(&b, b.D)], 1, message);
    DAMAGE(&b, b.nodes[b.F].owner, b.nodes[b.F].owner + (1u << 24), message);
    DAMAGE(&b, b.nodes[b.B].owner, b.nodes[b.B].owner ^ (1u << 31), message);
    end_bench(&b);
}

UNIT(segregated_check, marks_of_lists)
{
    bench b = make_bench();
    const char *const message = "the bit of a list is wrong";
    uint64_t *word = &b.s->bits[list_of(&b, b.D) / 64];
    for (uint32_t list = 0; list < 64; list++)
        DAMAGE(&b, *word, *word ^ UINT64_C(1) << list, message);
    DAMAGE(&b, b.s->bits[b.s->list_count / 64 - 1], 1, message);
    DAMAGE(&b, b.s->heads[list_of(&b, b.H)], 0, message);
    end_bench(&b);
}

/* A search would follow such a bit to a word, or a list, that does not exist. */
UNIT(segregated_check, marks_of_words_and_lists_that_do_not_exist)
{
    bench b = make_bench();
    enum { GROUPS = sizeof b.s->bit_words / sizeof *b.s->bit_words };
    for (uint32_t i = 0; i < GROUPS * 64; i++)
        DAMAGE(&b, b.s->bit_words[i / 64], b.s->bit_words[i / 64] ^ UINT64_C(1) << i % 64,
               "the bit of a word of lists is wrong");
    for (uint32_t i = b.s->list_count % 64; i < 64; i++) {
        uint64_t *last = &b.s->bits[b.s->list_count / 64];
        DAMAGE(&b, *last, *last | UINT64_C(1) << i, "a bit above the last list is set");
    }
    end_bench(&b);
}

/* A sound range in a record that was never taken. */
UNIT(segregated_check, a_number_at_the_top)
{
    bench b = make_bench();
    uint32_t top = b.space->pool.top, after = b.nodes[b.A].after;
    CHECK(top < b.space->pool.capacity);
    qi_node kept = b.nodes[top];
    b.nodes[top] = b.nodes[b.A];
    b.nodes[b.own].after = b.nodes[after].before = top;
    CHECK_FAILS(quire_space_check(b.space), QUIRE_ERROR_CORRUPTED);
    CHECK_HAS(quire_last_error(), "a range does not begin where its neighbour ends");
    b.nodes[top] = kept;
    b.nodes[b.own].after = b.nodes[after].before = b.A;
    end_bench(&b);
}

/* On some processors a shift by 64 gives 1 again, the value of this granule. */
UNIT(segregated_check, the_shift_of_granules_of_one_byte)
{
    quire_space *space = NULL;
    quire_space_options options = {.size = 100, .fit.granule = 1, .host_memory = unit_memory()};
    CHECK_OK(quire_space_create(&options, &space));
    bench b = {.space = space, .s = qi_segregated_of(space)};
    DAMAGE(&b, b.s->granule_shift, 64, "the tables have a wrong size");
    end_bench(&b);
}

/* Sizes and shifts that would send the check itself outside the tables. */
UNIT(segregated_check, the_sizes_and_shifts_of_the_tables)
{
    bench b = make_bench();
    const char *const message = "the tables have a wrong size";
    const uint32_t shifts[] = {33, 64, UINT32_MAX};
    for (int i = 0; i < 3; i++) {
        DAMAGE(&b, b.s->bucket_shift, shifts[i], message);
        DAMAGE(&b, b.s->granule_shift, shifts[i], message);
    }
    DAMAGE(&b, b.s->granule_shift, b.s->granule_shift + 1, message);
    DAMAGE(&b, b.s->list_count, (uint32_t)QI_CLASS_LIMIT * 16 + 64, message);
    DAMAGE(&b, b.s->list_count, b.s->list_count - 1, message);
    DAMAGE(&b, b.s->row_shift, 1, message);
    DAMAGE(&b, b.s->row_shift, 3, message);
    DAMAGE(&b, b.s->row_mask, 3, message);
    DAMAGE(&b, b.s->kind_mask, 3, message);
    DAMAGE(&b, b.s->free_capacity, b.space->pool.capacity - 1, message);
    DAMAGE(&b, b.s->nodes, (uintptr_t)(b.nodes + 1), message);
    DAMAGE(&b, b.space->pool.top, b.space->pool.capacity + 1, "more numbers are in use");
    DAMAGE(&b, b.s->bucket_shift, b.s->bucket_shift - 1, "above the last address bucket");
    end_bench(&b);
}

UNIT(segregated_check, marks_of_numbers_without_a_record)
{
    bench b = make_bench();
    DAMAGE_FREE_BIT(&b, 0, "a number that names no free range is marked free");
    DAMAGE_FREE_BIT(&b, b.s->free_capacity - 1, "a number that names no free range is marked free");
    end_bench(&b);
}

/* ---- counts and sums ----------------------------------------------------------------------- */

UNIT(segregated_check, counts_of_free_ranges)
{
    bench b = make_bench();
    const char *const message = "the lists do not hold every free range exactly once";
    DAMAGE(&b, b.nodes[b.D].next, 0, message); /* loses B */
    DAMAGE(&b, b.space->pool.spare, b.space->pool.spare + 1, message);
    DAMAGE(&b, b.space->pool.retired, 1, message);
    DAMAGE(&b, b.space->live_count, 5, message);
    DAMAGE(&b, b.space->region_count, 1, message);
    end_bench(&b);
}

UNIT(segregated_check, live_counts)
{
    bench b = make_bench();
    DAMAGE(&b, b.space->live_bytes, b.space->live_bytes - 1, "the live statistics do not match");
    /* the check derives the expected count of free ranges from the numbers in use */
    b.space->live_count++;
    b.space->pool.spare--;
    CHECK_FAILS(quire_space_check(b.space), QUIRE_ERROR_CORRUPTED);
    CHECK_HAS(quire_last_error(), "the live statistics do not match");
    b.space->live_count--;
    b.space->pool.spare++;
    end_bench(&b);
}

UNIT(segregated_check, sums)
{
    bench b = make_bench();
    DAMAGE(&b, b.space->region_bytes, 5096 * GRANULE - 1,
           "the sums of live and free bytes are not the size of the regions");
    end_bench(&b);
}

UNIT(segregated_check, padding_that_this_fit_does_not_store)
{
    bench b = make_bench();
    DAMAGE(&b, b.space->padding_bytes, 1, "space:");
    end_bench(&b);
}
