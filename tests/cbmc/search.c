/*
 * search.c - the direct choice of the segregated fit finds the lowest class, and what it finds is
 * large enough; what it does not find is not there in any higher class.
 */
#define TINY_REGIONS 3
#include "src/space/lists.h"
#include "tests/cbmc/tiny.h"

enum { WORDS = QI_CLASS_LIMIT / 64 };

PROOF(the_next_class_is_the_lowest_from_there_on)
{
    static qi_segregated s;
    s.top_bits = 0;
    for (uint32_t word = 0; word < WORDS; word++) {
        s.class_bits[word] = any_below(2) ? any_u64() : 0;
        s.top_bits |= (uint64_t)(s.class_bits[word] != 0) << word;
    }
    uint32_t from = (uint32_t)any_below(QI_CLASS_LIMIT + 1), found = qi_next_class(&s, from);
    PROVE(from <= found && found <= QI_CLASS_LIMIT);
    PROVE(found == QI_CLASS_LIMIT || s.class_bits[found / 64] >> found % 64 & 1);
    uint32_t other = (uint32_t)any_below(QI_CLASS_LIMIT);
    bool is_there = s.class_bits[other / 64] >> other % 64 & 1;
    PROVE(!is_there || other < from || found <= other);
}

#ifdef __CPROVER__
enum { MOST_SIZE = 24 };
#else
enum { MOST_SIZE = 400 };
#endif

PROOF(what_is_picked_is_large_enough)
{
    tiny t;
    uint64_t sizes[TINY_REGIONS] = {MOST_SIZE}, request = 1 + any_below(MOST_SIZE);
    quire_placement all;
    tiny_begin(&t, &qi_segregated_fit, 1);
    tiny_add_region(&t, 0, MOST_SIZE); /* makes the tables as large as they become */
    PROVE(!t.space->fit->allocate(t.space, MOST_SIZE, 1, 0, 0, &all));
    tiny_is_complete = true;
    for (uint32_t i = 1; i < TINY_REGIONS; i++) {
        sizes[i] = 1 + any_below(MOST_SIZE);
        tiny_add_region(&t, i, sizes[i]);
    }
    const qi_segregated *s = qi_segregated_of(t.space);
    uint32_t picked = qi_pick_free(s, (uint32_t)request);
    PROVE(!picked || (qi_node_is_free(s, picked) && s->nodes[picked].size >= request));
    uint32_t class = qi_class_of_request((uint32_t)request).index;
    for (uint32_t i = 1; i < TINY_REGIONS; i++)
        PROVE(picked || qi_class_of_range((uint32_t)sizes[i]).index <= class);
    tiny_end(&t);
}
