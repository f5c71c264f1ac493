/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * search.c - the direct choice of the segregated fit finds the lowest class; the range it finds is
 * large enough; if it finds none, no higher class has one.
 */
#define TINY_REGIONS 3
#include "src/space/segregated/lists.h"
#include "tests/cbmc/tiny.h"

#ifdef __CPROVER__
enum { WORDS = 6 };
#else
enum { WORDS = QI_MAX_BIT_WORDS - 1 };
#endif

PROOF(the_next_list_is_the_lowest_nonempty_one)
{
    static qi_segregated s;
    static uint64_t bits[WORDS + 1];
    s = (qi_segregated){.bits = bits, .list_count = WORDS * 64};
    uint64_t filled = any_u64();
    for (uint32_t word = 0; word < WORDS; word++) {
        bits[word] = filled >> word % 64 & 1 ? any_u64() : 0;
        s.bit_words[word / 64] |= (uint64_t)(bits[word] != 0) << word % 64;
    }
    uint32_t from = any_u32() % (WORDS * 64), found = qi_next_list(&s, from);
    PROVE(found == QI_NO_LIST || (from <= found && found < WORDS * 64));
    PROVE(found == QI_NO_LIST || bits[found / 64] >> found % 64 & 1);
    uint32_t other = any_u32() % (WORDS * 64);
    bool is_there = bits[other / 64] >> other % 64 & 1;
    PROVE(!is_there || other < from || found <= other);
}

#ifdef __CPROVER__
enum { MAX_SIZE = 24 };
#else
enum { MAX_SIZE = 400 };
#endif

PROOF(a_picked_range_is_large_enough)
{
    tiny t;
    uint64_t sizes[TINY_REGIONS] = {MAX_SIZE}, request = 1 + any_below(MAX_SIZE);
    quire_placement all;
    tiny_begin(&t, &qi_segregated_fit, 1);
    tiny_add_region(&t, 0, MAX_SIZE); /* grows the tables to their final size */
    PROVE(!t.space->fit->allocate(t.space, MAX_SIZE, 1, 0, 0, &all));
    tiny_is_complete = true;
    for (uint32_t i = 1; i < TINY_REGIONS; i++) {
        sizes[i] = 1 + any_below(MAX_SIZE);
        tiny_add_region(&t, i, sizes[i]);
    }
    const qi_segregated *s = qi_segregated_of(t.space);
    qi_class want = qi_class_of_request((uint32_t)request);
    uint32_t list = qi_pick_in_class(s, want);
    if (list == QI_NO_LIST)
        list = qi_pick_above(s, want);
    uint32_t picked = list == QI_NO_LIST ? 0 : s->heads[list];
    PROVE(!picked || (qi_node_is_free(s, picked) && s->nodes[picked].size >= request));
    for (uint32_t i = 1; i < TINY_REGIONS; i++)
        PROVE(picked || qi_class_of_range((uint32_t)sizes[i]).index <= want.index);
    tiny_end(&t);
}
