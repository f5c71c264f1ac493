/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * handle.c - handles keep their three fields separate up to the limits, and owner tags wrap around
 * without ever being 0.
 */
#include "src/base/handle.h"

#include <pthread.h>

#include "tests/support/unit.h"

enum { TAGS = 4095, THREADS = 4, TAGS_PER_THREAD = TAGS / THREADS };

static void expect_round_trip(uint32_t tag, uint32_t generation, uint32_t slot)
{
    uint64_t id = qi_handle(tag, generation, slot);
    CHECK_EQ(qi_handle_tag(id), tag);
    CHECK_EQ(qi_handle_generation(id), generation);
    CHECK_EQ(qi_handle_slot(id), slot);
}

UNIT(handle, the_fields_have_26_26_and_12_bits)
{
    CHECK_EQ(QI_SLOT_BITS + QI_GENERATION_BITS + QI_TAG_BITS, 64);
    CHECK_EQ(QI_SLOT_COUNT, 67108864);
    CHECK_EQ(QI_LAST_GENERATION, 67108863);
    CHECK_EQ(qi_handle(1, 0, 0), UINT64_C(1) << 52);
    CHECK_EQ(qi_handle(0, 1, 0), UINT64_C(1) << 26);
    CHECK_EQ(qi_handle(0, 0, 1), 1);
}

UNIT(handle, every_field_survives_beside_empty_and_full_neighbours)
{
    const uint32_t tags[] = {0, 1, 2, 2048, 4094, 4095};
    const uint32_t others[] = {0, 1, 2, 1u << 25, QI_SLOT_COUNT - 2, QI_SLOT_COUNT - 1};
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            for (int k = 0; k < 6; k++)
                expect_round_trip(tags[i], others[j], others[k]);
}

UNIT(handle, tags_count_from_1_to_4095_and_wrap_to_1)
{
    uint32_t previous = qi_tag_take();
    qi_tag_give(previous);
    CHECK(previous >= 1 && previous <= TAGS);
    for (int i = 0; i < 3 * TAGS; i++) {
        uint32_t tag = qi_tag_take();
        qi_tag_give(tag);
        CHECK_EQ(tag, previous == TAGS ? 1 : previous + 1);
        previous = tag;
    }
}

UNIT(handle, a_tag_in_use_is_skipped)
{
    uint32_t kept = qi_tag_take();
    for (int i = 0; i < 3 * TAGS; i++) {
        uint32_t tag = qi_tag_take();
        CHECK(tag != kept);
        qi_tag_give(tag);
    }
    qi_tag_give(kept);
}

UNIT(handle, with_all_tags_in_use_tags_are_shared_and_freed)
{
    static bool seen[TAGS + 1];
    for (int i = 0; i < TAGS; i++) {
        uint32_t tag = qi_tag_take();
        CHECK(tag >= 1 && tag <= TAGS && !seen[tag]);
        seen[tag] = true;
    }
    uint32_t shared = qi_tag_take();
    CHECK(seen[shared]);
    qi_tag_give(77);
    CHECK_EQ(qi_tag_take(), 77); /* the only free tag */
    for (uint32_t tag = 1; tag <= TAGS; tag++)
        qi_tag_give(tag);
}

static void *take_tags(void *tags)
{
    for (int i = 0; i < TAGS_PER_THREAD; i++)
        ((uint32_t *)tags)[i] = qi_tag_take();
    return NULL;
}

UNIT(handle, threads_never_get_the_same_tag)
{
    static uint32_t tags[THREADS][TAGS_PER_THREAD];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, take_tags, tags[i]), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    static bool seen[TAGS + 1];
    for (int i = 0; i < THREADS * TAGS_PER_THREAD; i++) {
        uint32_t tag = tags[i / TAGS_PER_THREAD][i % TAGS_PER_THREAD];
        CHECK(tag >= 1 && tag <= TAGS && !seen[tag]);
        seen[tag] = true;
        qi_tag_give(tag);
    }
}
