/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * linear_check.c - the check of the linear fit finds every kind of damage to its records, with the
 * right message, and reads nothing that it has not verified.
 */
#include "src/space/linear/linear.h"

#include "tests/support/damage.h"
#include "tests/support/space_steps.h"

/* A ring that has wrapped: new A, new B, gap, old C, old D, gap, upper E, gap, upper F, gap. */
typedef struct bench {
    quire_space *space;
    qi_linear *l;
    qi_linear_record *r;
    uint32_t A, B, C, D, E, F;
} bench;

static uint32_t take(bench *b, uint64_t size, uint64_t alignment, bool upper)
{
    quire_placement at;
    quire_range_options options = {.size = size, .alignment = alignment, .upper = upper};
    CHECK_OK(quire_space_allocate_with(b->space, &options, &at));
    return qi_handle_slot(at.range.id);
}

static void release(bench *b, uint32_t number)
{
    quire_range range = {qi_handle(b->space->tag, b->l->records[number].generation, number)};
    CHECK_OK(quire_space_free(b->space, range));
}

/* Not wrapped: C and D alone. */
static bench make_straight(void)
{
    bench b = {0};
    quire_space_options options = {.fit = {.algorithm = QUIRE_FIT_LINEAR, .max_alignment = 256},
                                   .size = 4096};
    b.space = new_space(options);
    b.l = (qi_linear *)(void *)b.space;
    b.r = b.l->records;
    uint32_t front = take(&b, 1001, 1, false);
    b.C = take(&b, 1000, 256, false);
    b.D = take(&b, 1900, 1, false);
    release(&b, front);
    CHECK_EQ(b.r[b.C].left_padding, 23);
    return b;
}

static bench make_bench(void)
{
    bench b = make_straight();
    b.A = take(&b, 800, 1, false);
    b.B = take(&b, 100, 1, false);
    b.F = take(&b, 10, 16, true);
    b.E = take(&b, 10, 64, true);
    CHECK_EQ(b.r[0].next, b.A);
    CHECK_EQ(b.r[b.B].next, b.C);
    CHECK_EQ(b.r[b.D].next, b.E);
    CHECK_EQ(b.l->gaps, 4);
    return b;
}

UNIT(linear_check, ranges_and_the_ring)
{
    bench b = make_bench();
    const char *const place = "a range does not lie above the one below it";
    const char *const extent = "a range has size 0 or too much padding";
    const char *const back = "a neighbour does not point back";
    const char *const outside = "the ring leads outside the records";
    const char *const dead = "a range in the ring is not live";
    DAMAGE(b.r[b.B].offset, 799, place);
    DAMAGE(b.r[b.A].size, 801, place);
    DAMAGE(b.r[b.C].offset, 922, place);
    DAMAGE(b.r[b.F].size, 17, place);
    DAMAGE(b.r[b.F].offset, 4097, place);
    DAMAGE(b.r[b.F].offset, UINT64_MAX, place);
    DAMAGE(b.r[b.A].size, UINT64_MAX, place);
    DAMAGE(b.r[b.A].size, 0, extent);
    DAMAGE(b.r[b.C].left_padding, 256, extent);
    DAMAGE(b.r[b.B].before, b.C, back);
    DAMAGE(b.r[0].before, b.E, back);
    DAMAGE(b.r[b.A].next, b.C, back);
    DAMAGE(b.r[b.A].next, b.A, back);
    DAMAGE(b.r[b.A].next, 0, back);
    DAMAGE(b.r[b.A].next, b.space->pool.top, outside);
    DAMAGE(b.r[0].next, UINT32_MAX, outside);
    DAMAGE(b.r[b.D].epoch, 0, dead);
    DAMAGE(b.r[b.D].epoch, b.l->epoch + 1, dead);
    DAMAGE(b.r[b.D].generation, 0, dead);
    DAMAGE(b.r[b.D].generation, QI_LAST_GENERATION + 1, dead);
    uint32_t kept_generation = b.r[b.D].generation;
    b.r[b.D].generation = QI_LAST_GENERATION; /* which a live range may have */
    CHECK_OK(quire_space_check(b.space));
    b.r[b.D].generation = kept_generation;
    DAMAGE(b.l->epoch, 0, "the epoch is 0, the mark of freed ranges");
    release(&b, b.F);
    DAMAGE(b.r[b.F].epoch, b.l->epoch, "the chain of unused numbers is broken");
    end_space(b.space);
}

UNIT(linear_check, the_ends)
{
    const char *const order = "the oldest range does not follow the newest";
    const char *const lost = "the oldest or newest lower range is not in the ring";
    const char *const above = "the oldest or newest lower range is an upper one";
    const char *const lost_upper = "the newest upper range is not in the ring";
    const char *const none = "no lower range exists, but an oldest or newest one is set";
    bench b = make_bench();
    DAMAGE(b.l->oldest, b.D, order);
    DAMAGE(b.l->oldest, b.A, order);
    DAMAGE(b.l->newest, b.A, order);
    DAMAGE(b.l->newest, b.D, order);
    DAMAGE(b.l->newest, b.E, above);
    DAMAGE(b.l->oldest, b.F, above);
    DAMAGE(b.l->upper, b.C, above);
    DAMAGE(b.l->oldest, 0, lost);
    DAMAGE(b.l->newest, 0, lost);
    DAMAGE(b.l->newest, b.space->pool.top, lost);
    DAMAGE(b.l->upper, b.space->pool.top, lost_upper);
    end_space(b.space);
    b = make_straight();
    DAMAGE(b.l->newest, b.C, order);
    DAMAGE(b.l->oldest, b.D, order);
    DAMAGE(b.l->upper, b.D, above);
    b.F = take(&b, 10, 1, true);
    DAMAGE(b.l->upper, 0, order);
    release(&b, b.F);
    release(&b, b.C);
    release(&b, b.D);
    DAMAGE(b.l->newest, b.D, none);
    DAMAGE(b.l->oldest, b.D, none);
    DAMAGE(b.l->upper, b.D, lost_upper);
    end_space(b.space);
}

UNIT(linear_check, the_region_and_the_counts)
{
    bench b = make_bench();
    const char *const own = "the record of the region does not match the region";
    const char *const live = "the live statistics do not match the ranges";
    const char *const pool = "the records are not those of the pool";
    DAMAGE(b.r[0].offset, 4095, own);
    DAMAGE(b.r[0].size, 0, own);
    DAMAGE(b.r[0].left_padding, 1, own);
    DAMAGE(b.r[0].epoch, b.l->epoch, own);
    DAMAGE(b.space->regions[0].start, 256, own);
    DAMAGE(b.space->regions[0].used, false, "the region is not the first one");
    DAMAGE(b.space->region_count, 2, "more than one region is in use");
    DAMAGE(b.space->region_count, 0, own);
    DAMAGE(b.space->live_count, 5, live);
    DAMAGE(b.space->live_bytes, b.space->live_bytes + 1, live);
    DAMAGE(b.space->padding_bytes, 0, live);
    DAMAGE(b.l->gaps, 3, "the number of gaps is wrong");
    DAMAGE(b.space->region_bytes, 4095, "the sums of live and free bytes are not the size");
    DAMAGE(b.space->pool.spare, 1, "not every number in use names a range");
    DAMAGE(b.l->records, 0, pool);
    DAMAGE(b.l->records, (uintptr_t)(b.r + 1), pool);
    CHECK_EQ(b.space->pool.capacity, 32);
    DAMAGE(b.l->window, QI_SLOT_COUNT - 31, "numbers would name slots beyond the last");
    uint32_t kept_window = b.l->window;
    b.l->window = QI_SLOT_COUNT - 32; /* up to the last */
    CHECK_OK(quire_space_check(b.space));
    b.l->window = kept_window;
    end_space(b.space);
}

UNIT(linear_check, the_checker_survives_random_damage)
{
    bench b = make_bench();
    const damage_target targets[] = {{b.r, b.space->pool.top * sizeof *b.r, 0, 0}};
    SURVIVE_RANDOM_DAMAGE(targets, 25000);
    end_space(b.space);
}
