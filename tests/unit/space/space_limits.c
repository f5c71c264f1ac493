/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * space_limits.c - spaces at the limits of their numbers: ranges, regions, slabs, classes, and
 * enough nodes that records are prefetched.
 */
#include <sys/mman.h>

#include "src/space/segregated/segregated.h"
#include "src/space/segregated/slabs.h"
#include "tests/support/shape.h"
#include "tests/support/defer.h"
#include "tests/support/space_steps.h"

static quire_space *make_space(quire_space_options options)
{
    options.fit.max_alignment = 256;
    return new_space(options);
}

/* ---- classes ------------------------------------------------------------------------------- */

/* With 16 buckets per class the last words of the bitmap mark the lists of such sizes. */
UNIT(space_limits, the_largest_free_range_is_reported_up_to_the_last_class)
{
    static const uint64_t sizes[] = {UINT64_C(1) << 26, UINT64_C(1) << 28, UINT64_C(1) << 30,
                                     UINT64_C(1) << 31, UINT32_MAX};
    for (int i = 0; i < 5; i++) {
        quire_space *space = make_space((quire_space_options){.size = sizes[i], .fit.granule = 1});
        for (int j = 0; j < 1000; j++)
            take_bytes(space, 1);
        CHECK_EQ(qi_segregated_of(space)->row_shift, 4);
        CHECK_EQ(largest_free_of(space), sizes[i] - 1000);
        CHECK_EQ(take_bytes(space, sizes[i] - 1000).offset, 1000);
        CHECK_EQ(largest_free_of(space), 0);
        end_space(space);
    }
}

/* With one bucket per class a bucket is as wide as the line. */
UNIT(space_limits, a_space_of_the_maximum_size_has_one_bucket_per_class)
{
    quire_space *space = make_space((quire_space_options){.size = UINT32_MAX, .fit.granule = 1});
    CHECK_EQ(qi_segregated_of(space)->bucket_shift, 32);
    CHECK_EQ(take_bytes(space, 1000).offset, 0);
    end_space(space);
}

/* ---- numbers ------------------------------------------------------------------------------- */

/* Pretends that records for so many ranges exist and are all taken. */
static qi_pool plant_full_pool(quire_space *space, uint32_t capacity)
{
    qi_pool kept = space->pool;
    space->pool.capacity = capacity;
    space->pool.spare = 0;
    return kept;
}

/* A request with failing host memory shows whether the fit requests any. */
static void expect_refusal(quire_space *space, uint32_t capacity, quire_result code)
{
    shape before = shape_of(space);
    qi_pool kept = plant_full_pool(space, capacity);
    quire_placement at;
    test_memory_fail(unit_memory_state(), 1, true);
    CHECK_FAILS(quire_space_allocate(space, 5000, 1, 0, &at), code);
    test_memory_fail(unit_memory_state(), 0, false);
    if (code == QUIRE_ERROR_TOO_MANY_ALLOCATIONS)
        CHECK_HAS(quire_last_error(), "as many as it can number");
    CHECK_EQ(at.range.id, 0);
    space->pool = kept;
    shape after = shape_of(space);
    shape_compare(&before, &after, true);
    shape_end(&before);
    shape_end(&after);
}

UNIT(space_limits, ranges_are_numbered_up_to_the_last_slot)
{
    static const quire_space_options fits[] = {
        {.fit.algorithm = QUIRE_FIT_FIRST}, {.fit = {.algorithm = QUIRE_FIT_BUDDY, .granule = 1}}};
    for (int i = 0; i < 2; i++) {
        quire_space_options options = fits[i];
        options.size = 1 << 20;
        quire_space *space = make_space(options);
        take_bytes(space, 100);
        expect_refusal(space, QI_SLOT_COUNT - 1, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        expect_refusal(space, QI_SLOT_COUNT, QUIRE_ERROR_TOO_MANY_ALLOCATIONS);
        end_space(space);
    }
}

/* The bitmap of free nodes has as many bits as there are records before the fit requests more. */
UNIT(space_limits, ranges_of_the_segregated_fit_are_numbered_up_to_the_last_slot)
{
    quire_space *space = make_space((quire_space_options){.size = 1 << 20});
    qi_segregated *s = qi_segregated_of(space);
    take_bytes(space, 100);
    uint32_t kept_capacity = s->free_capacity, kept_shift = s->row_shift;
    s->free_capacity = QI_SLOT_COUNT; /* the tables already have their buckets */
    s->row_shift = 4;
    qi_pool kept = plant_full_pool(space, QI_SLOT_COUNT);
    CHECK_FAILS(qi_segregated_reserve(s, 1), QUIRE_ERROR_TOO_MANY_ALLOCATIONS);
    CHECK_HAS(quire_last_error(), "the space has 67108864 ranges, as many as it can number");
    space->pool = kept;
    s->free_capacity = kept_capacity;
    s->row_shift = kept_shift;
    end_space(space);
}

/* With slabs the upper half of the slot numbers belongs to slots of slabs. */
UNIT(space_limits, with_slabs_ranges_are_numbered_up_to_the_first_slot_of_a_slab)
{
    quire_space *space = make_space((quire_space_options){.size = 1 << 20, .fit.slabs = true});
    take_bytes(space, 5000);
    uint32_t last = 1024; /* the last capacity that can grow */
    for (qi_pool pool = {.capacity = last}; qi_pool_next_capacity(&pool) <= QI_SLAB_SLOT;)
        last = pool.capacity, pool.capacity = qi_pool_next_capacity(&pool);
    expect_refusal(space, last, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    expect_refusal(space, QI_SLAB_SLOT, QUIRE_ERROR_TOO_MANY_ALLOCATIONS);
    expect_refusal(space, QI_SLAB_SLOT - 1, QUIRE_ERROR_TOO_MANY_ALLOCATIONS);
    end_space(space);
}

UNIT(space_limits, slabs_are_numbered_up_to_half_the_slots)
{
    quire_space *space = make_space((quire_space_options){.size = 1 << 20, .fit.slabs = true});
    qi_segregated *s = qi_segregated_of(space);
    take_bytes(space, 100);
    qi_slabs kept = *s->slabs;
    s->slabs->unused = 0;
    s->slabs->top = s->slabs->capacity = QI_MAX_SLABS - 1;
    test_memory_fail(unit_memory_state(), 1, true);
    CHECK_FAILS(qi_slabs_reserve_number(s), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_HAS(quire_last_error(), "no host memory for 524288 slabs");
    test_memory_fail(unit_memory_state(), 0, false);
    s->slabs->top = s->slabs->capacity = QI_MAX_SLABS;
    CHECK_EQ(qi_slabs_reserve_number(s), QUIRE_ERROR_NO_SPACE);
    s->slabs->top = QI_MAX_SLABS - 1; /* the last number is a valid one */
    CHECK_OK(qi_slabs_reserve_number(s));
    *s->slabs = kept;
    end_space(space);
}

/* ---- regions ------------------------------------------------------------------------------- */

/* Records of as many regions as a node can name take address space, of which two pages are used. */
UNIT(space_limits, regions_are_numbered_up_to_the_last_number_of_a_node)
{
    quire_space *space = make_space((quire_space_options){.size = 1 << 20});
    size_t bytes = (QI_MAX_REGIONS + UINT64_C(1)) * sizeof(qi_region);
    qi_region *many = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(many != MAP_FAILED);
    qi_region *kept = space->regions, added = {.start = 1 << 20, .size = 4096, .used = true};
    uint32_t last = QI_MAX_REGIONS - 1;
    many[0] = kept[0];
    many[last] = many[last + 1] = added;
    space->regions = many;
    uint32_t used = qi_pool_used(&space->pool);
    CHECK_FAILS(space->fit->add_region(space, last + 1), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_HAS(quire_last_error(), "a space has at most 8388608 regions");
    CHECK_EQ(qi_pool_used(&space->pool), used);
    CHECK_OK(space->fit->add_region(space, last));
    quire_placement at = take_bytes(space, 4096);
    CHECK_EQ(at.region, last);
    CHECK_OK(quire_space_free(space, at.range));
    space->fit->remove_region(space, last);
    space->regions = kept;
    CHECK_EQ(munmap(many, bytes), 0);
    end_space(space);
}

/* ---- many nodes ---------------------------------------------------------------------------- */

enum { MANY = QI_PREFETCH_MIN_NODES + 2000, SINGLE = 2000 };

static void expect_live(const quire_space *space, uint64_t count, uint64_t bytes)
{
    CHECK_EQ(stats_of(space).live_count, count);
    CHECK_EQ(stats_of(space).live_bytes, bytes);
}

/* Prefetching changes no result: freeing every other range and then the rest leaves one range. */
UNIT(space_limits, prefetching_records_changes_no_result)
{
    static quire_range ranges[2][MANY / 2];
    for (int deferred = 0; deferred < 2; deferred++) {
        quire_space *space =
            make_space((quire_space_options){.size = MANY * 256, .fit.granule = 256});
        if (!deferred)
            defer_frees(space, UINT32_MAX); /* by default a space of this size defers */
        for (uint64_t i = 0; i < MANY; i++)
            ranges[i % 2][i / 2] = take_bytes(space, 256).range;
        CHECK(space->pool.top >= QI_PREFETCH_MIN_NODES);
        CHECK_OK(quire_space_free_batch(space, ranges[0], MANY / 2));
        expect_live(space, MANY / 2, MANY / 2 * 256);
        CHECK_EQ(largest_free_of(space), 256);
        for (uint64_t i = 0; i < SINGLE; i++)
            CHECK_OK(quire_space_free(space, ranges[1][i]));
        expect_live(space, MANY / 2 - SINGLE, (MANY / 2 - SINGLE) * 256);
        CHECK_EQ(largest_free_of(space), (2 * SINGLE + 1) * 256);
        CHECK_OK(quire_space_free_batch(space, ranges[1] + SINGLE, MANY / 2 - SINGLE));
        CHECK_EQ(largest_free_of(space), MANY * 256);
        end_space(space);
    }
}
