/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * host_allocator.c - malloc and free by pointer: sizes, alignments, refusals, statistics, and wrong
 * arguments.
 */
#include "src/adapters/host_allocator/host_allocator.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/random.h"
#include "tests/support/unit.h"

enum { SMALL = 32 << 10, LARGE = SMALL + 1 };

static host_allocator *make(host_allocator_options options)
{
    host_allocator *allocator = NULL;
    CHECK_OK(host_allocator_create(&options, &allocator));
    return allocator;
}

static host_allocator_stats stats_of(host_allocator *allocator)
{
    host_allocator_stats stats;
    CHECK_OK(host_allocator_get_stats(allocator, &stats));
    return stats;
}

static void *must_allocate(host_allocator *allocator, uint64_t size)
{
    void *pointer = host_allocator_allocate(allocator, size, 0);
    CHECK(pointer != NULL);
    return pointer;
}

UNIT(host_allocator, every_size_and_alignment_is_kept)
{
    const uint64_t sizes[] = {1,    64,   65,        192,   193,   1024,    1088,
                              1089, 4096, SMALL - 1, SMALL, LARGE, 1 << 20, 3 << 20};
    const uint64_t alignments[] = {0, 1, 8, 64, 128, 4096};
    host_allocator *a = make((host_allocator_options){0});
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t j = 0; j < sizeof alignments / sizeof *alignments; j++) {
            uint64_t expected = alignments[j] < 64 ? 64 : alignments[j];
            unsigned char *p = host_allocator_allocate(a, sizes[i], alignments[j]);
            CHECK(p != NULL);
            CHECK_EQ((uintptr_t)p % expected, 0);
            memset(p, 0xff,
                   sizes[i]); /* over neither a neighbour nor a header: the frees succeed */
            CHECK_EQ(stats_of(a).requested_bytes, sizes[i]);
            CHECK_OK(host_allocator_free(a, p));
        }
    host_allocator_stats stats = stats_of(a);
    CHECK_EQ(stats.requested_bytes, 0);
    CHECK_EQ(stats.allocation_count, 0);
    CHECK_EQ(stats.allocations, stats.frees);
    host_allocator_destroy(&a);
    CHECK(!a);
}

/* Contents survive a random sequence; each byte belongs to one live allocation. */
UNIT(host_allocator, random_calls_agree_with_a_model)
{
    enum { SLOTS = 300, STEPS = 20000 };
    static struct {
        unsigned char *bytes;
        uint64_t size;
    } slots[SLOTS];
    test_random random = {7};
    uint64_t live = 0, count = 0;
    host_allocator *a = make((host_allocator_options){0});
    for (int step = 0; step < STEPS; step++) {
        uint64_t i = random_below(&random, SLOTS);
        if (slots[i].bytes) {
            CHECK_EQ(slots[i].bytes[0], (unsigned char)i);
            CHECK_EQ(slots[i].bytes[slots[i].size - 1], (unsigned char)i);
            CHECK_OK(host_allocator_free(a, slots[i].bytes));
            live -= slots[i].size;
            count--;
            slots[i].bytes = NULL;
            continue;
        }
        slots[i].size = 1 + random_below(&random, step % 9 ? 4096 : 100000);
        slots[i].bytes = must_allocate(a, slots[i].size);
        slots[i].bytes[0] = slots[i].bytes[slots[i].size - 1] = (unsigned char)i;
        live += slots[i].size;
        count++;
        if (step % 100 == 0) {
            host_allocator_stats stats = stats_of(a);
            CHECK_EQ(stats.requested_bytes, live);
            CHECK_EQ(stats.allocation_count, count);
            CHECK(stats.cached_bytes <= HOST_ALLOCATOR_CACHED_BYTES);
            CHECK(stats.requested_bytes <= stats.memory.peak_requested_bytes);
        }
    }
    CHECK_OK(quire_memory_check(host_allocator_memory(a)));
    host_allocator_destroy(&a); /* with what is still allocated */
}

UNIT(host_allocator, size_zero_and_a_null_pointer_are_nothing)
{
    host_allocator *a = make((host_allocator_options){0});
    CHECK(!host_allocator_allocate(a, 0, 0));
    CHECK_OK(host_allocator_free(a, NULL));
    CHECK_EQ(stats_of(a).allocations, 0);
    CHECK_EQ(stats_of(a).frees, 0);
    host_allocator_destroy(&a);
    host_allocator_destroy(&a);
    host_allocator_destroy(NULL);
}

UNIT(host_allocator, a_refusal_is_null_with_the_sentence)
{
    host_allocator *a = make((host_allocator_options){.limit = 4 << 20, .name = "torch"});
    void *p = must_allocate(a, 1 << 20);
    CHECK(!host_allocator_allocate(a, 8 << 20, 0));
    CHECK_HAS(quire_last_error(), "torch");
    CHECK_EQ(stats_of(a).memory.failures, 1);
    CHECK(!host_allocator_allocate(a, UINT64_MAX, 0));
    CHECK(!host_allocator_allocate(a, UINT64_MAX - 64, 64));
    CHECK(!host_allocator_allocate(a, 1, UINT64_C(1) << 63));
    CHECK_OK(host_allocator_free(a, p));
    CHECK_EQ(stats_of(a).requested_bytes, 0);
    host_allocator_destroy(&a);
}

/* ---- wrong arguments ------------------------------------------------------------------------- */

UNIT(host_allocator, wrong_pointers_are_refused_and_nothing_changes)
{
    static _Alignas(128) unsigned char foreign[4096];
    host_allocator *a = make((host_allocator_options){0}),
                   *other = make((host_allocator_options){0});
    unsigned char *small = must_allocate(a, 1000), *large = must_allocate(a, LARGE + 1000);
    const quire_result invalid = QUIRE_ERROR_INVALID_ARGUMENT;
    CHECK_FAILS(host_allocator_free(a, small + 1), invalid);
    CHECK_FAILS(host_allocator_free(a, small + 64), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_FAILS(host_allocator_free(a, small + 128), invalid);
    CHECK_FAILS(host_allocator_free(a, large + 64), invalid);
    CHECK_FAILS(host_allocator_free(a, large + 128), invalid);
    CHECK_FAILS(host_allocator_free(a, foreign + 64), invalid);
    CHECK_FAILS(host_allocator_free(a, foreign + 128), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_FAILS(host_allocator_free(other, small), invalid);
    CHECK_FAILS(host_allocator_free(other, large), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_EQ(stats_of(a).allocation_count, 2);
    CHECK_OK(host_allocator_free(a, small));
    CHECK_OK(host_allocator_free(a, large));
    CHECK_FAILS(host_allocator_free(a, small), invalid);
    CHECK_HAS(quire_last_error(), "was freed before");
    CHECK_FAILS(host_allocator_free(a, large), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_EQ(stats_of(a).frees, 2);
    host_allocator_destroy(&other);
    host_allocator_destroy(&a);
}

/* Whatever the address, and whether there is memory at it. */
UNIT(host_allocator, addresses_without_memory_are_refused)
{
    const uintptr_t addresses[] = {0x40,
                                   0xfc0,
                                   (uintptr_t)1 << 40 | 0x40,
                                   ((uintptr_t)1 << 47) - 64,
                                   (uintptr_t)1 << 47 | 0x40,
                                   ((uintptr_t)1 << 48) - 64,
                                   (uintptr_t)1 << 48 | 0x40,
                                   UINTPTR_MAX - 63};
    host_allocator *a = make((host_allocator_options){0});
    void *small = must_allocate(a, 1000);
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        CHECK_FAILS(host_allocator_free(a, (void *)addresses[i]), QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_HAS(quire_last_error(), "is not the start of an allocation");
    }
    CHECK_EQ(stats_of(a).frees, 0);
    CHECK_OK(host_allocator_free(a, small));
    host_allocator_destroy(&a);
}

/* What overran the allocation in front of it: the allocator uses nothing from the header. */
UNIT(host_allocator, a_block_with_an_overwritten_header_is_refused)
{
    host_allocator *a = make((host_allocator_options){0});
    unsigned char *small = must_allocate(a, 1000);
    memset(small - 64, 0xff, 16);
    for (int i = 0; i < 2; i++) {
        CHECK_FAILS(host_allocator_free(a, small), QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_HAS(quire_last_error(), "overwritten");
    }
    CHECK_EQ(stats_of(a).frees, 0);
    host_allocator_destroy(&a);
}

UNIT(host_allocator, wrong_arguments_are_refused)
{
    const quire_result invalid = QUIRE_ERROR_INVALID_ARGUMENT;
    host_allocator_stats stats;
    uint64_t released = 1;
    host_allocator *a = NULL;
    CHECK_FAILS(host_allocator_create(NULL, NULL), invalid);
    CHECK_FAILS(host_allocator_create(&(host_allocator_options){.shards = 65}, &a), invalid);
    CHECK(!a);
    CHECK_OK(host_allocator_create(NULL, &a));
    CHECK(!host_allocator_allocate(NULL, 1, 0));
    CHECK(!host_allocator_allocate(a, 1, 3));
    CHECK_HAS(quire_last_error(), "3, not a power of two");
    CHECK_FAILS(host_allocator_free(NULL, &stats), invalid);
    CHECK_FAILS(host_allocator_trim(NULL, &released), invalid);
    CHECK_EQ(released, 0);
    CHECK(!host_allocator_memory(NULL));
    CHECK_FAILS(host_allocator_get_stats(NULL, &stats), invalid);
    CHECK_FAILS(host_allocator_get_stats(a, NULL), invalid);
    CHECK_FAILS(host_allocator_write_stats(a, NULL, NULL), invalid);
    CHECK_FAILS(host_allocator_write_snapshot(NULL, NULL, NULL), invalid);
    CHECK_FAILS(host_allocator_write_snapshot(a, NULL, NULL), invalid);
    host_allocator_destroy(&a);
}
