/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * slabs_check.c - verifies every record of the slabs of a space against the invariants in slabs.h.
 * Only reads. The records may be damaged: every number is checked before it is followed.
 */
#include "src/base/handle.h"
#include "src/space/segregated/slabs.h"

typedef struct count {
    uint64_t slabs, empty, all_slots;
    uint32_t slots[QI_SLAB_CLASSES], empty_of[QI_SLAB_CLASSES];
} count;

/* Checks top too: the check of the fit calls qi_slab_of_node before qi_slabs_check verified it. */
static bool is_number(const qi_slabs *slabs, uint32_t number)
{
    return number != 0 && number < slabs->top && slabs->top <= slabs->capacity;
}

const qi_slab *qi_slab_of_node(const qi_segregated *s, uint32_t node)
{
    uint32_t number = s->nodes[node].next;
    if (!s->slabs || !is_number(s->slabs, number) || s->slabs->items[number].node != node)
        return NULL;
    return &s->slabs->items[number];
}

/* Whether bits, generations and counts of one slab agree. */
static bool slots_are_sound(const qi_slabs *slabs, uint32_t number)
{
    const qi_slab *slab = &slabs->items[number];
    const uint32_t *generations = slabs->generations + (size_t)number * QI_SLAB_SLOTS;
    uint32_t live = 0, worn = 0;
    for (uint32_t i = 0; i < QI_SLAB_SLOTS; i++) {
        bool is_free = slab->free >> i & 1, is_live = generations[i] & 1;
        bool is_old = generations[i] > QI_LAST_GENERATION;
        if (generations[i] > QI_LAST_GENERATION + 1 || (i >= slab->slots && (is_free || is_live)))
            return false;
        if (i < slab->slots && is_free + is_live + is_old != 1)
            return false;
        live += is_live;
        worn += is_old && i < slab->slots;
    }
    return live == slab->live && slab->worn == (worn != 0);
}

/* Verifies a slab against its node, and adds it to the sums. */
static quire_result check_slab(const qi_segregated *s, uint32_t number, count *seen)
{
    const qi_slabs *slabs = s->slabs;
    const qi_slab *slab = &slabs->items[number];
    const qi_node *node = &s->nodes[slab->node];
    if (slab->node >= s->space.pool.top || !(node->generation & 1) || !qi_node_is_slab(node) ||
        node->next != number || node->offset != slab->offset ||
        qi_node_region(node) != slab->region)
        return qi_space_damaged("a slab and its node do not match", number);
    if (slab->class >= QI_SLAB_CLASSES || slab->slots > QI_SLAB_SLOTS ||
        (uint64_t)slab->slots * slab->stride != node->size || !slab->slots)
        return qi_space_damaged("the size of a slab is not the sum of its slots", number);
    if (!slots_are_sound(slabs, number))
        return qi_space_damaged("the slots of a slab do not match its bits", number);
    seen->slabs++;
    seen->slots[slab->class] += slab->slots;
    seen->all_slots += slab->slots;
    seen->empty += slab->live == 0;
    if (slab->live == 0 && seen->empty_of[slab->class])
        return qi_space_damaged("a class has two slabs in reserve", number);
    if (slab->live == 0)
        seen->empty_of[slab->class] = number;
    return QUIRE_SUCCESS;
}

/* Verifies the list of a class, which holds slabs with a free slot; counts them in *listed. */
static quire_result check_class(const qi_slabs *slabs, uint32_t class, const count *seen,
                                uint64_t *listed)
{
    const qi_slab_class *of = &slabs->classes[class];
    uint32_t before = 0;
    for (uint32_t i = of->head; i; i = slabs->items[i].next) {
        if (!is_number(slabs, i) || slabs->items[i].before != before || !slabs->items[i].node ||
            slabs->items[i].class != class || !slabs->items[i].free)
            return qi_space_damaged("a list of slabs holds a slab that does not belong to it", i);
        if (++*listed > slabs->top)
            return qi_space_damaged("a list of slabs has a cycle", i);
        before = i;
    }
    if (of->slots != seen->slots[class] || of->empty != seen->empty_of[class])
        return qi_space_damaged("the statistics of a class of slabs are wrong", class);
    return QUIRE_SUCCESS;
}

/* Whether the chain holds every slab number that is unused and not worn out. */
static bool chain_is_sound(const qi_slabs *slabs)
{
    uint32_t left = 0;
    for (uint32_t i = 1; i < slabs->top; i++)
        left += !slabs->items[i].node && !slabs->items[i].worn;
    for (uint32_t i = slabs->unused; i; i = slabs->items[i].next)
        if (!is_number(slabs, i) || slabs->items[i].node || slabs->items[i].worn || left-- == 0)
            return false;
    return left == 0;
}

/* Whether all slots of an unused slab number are stale, and worn out only if the slab is. */
static bool unused_is_sound(const qi_slabs *slabs, uint32_t number)
{
    const uint32_t *generations = slabs->generations + (size_t)number * QI_SLAB_SLOTS;
    for (uint32_t i = 0; i < QI_SLAB_SLOTS; i++)
        if (generations[i] & 1 || generations[i] > QI_LAST_GENERATION + 1 ||
            (generations[i] > QI_LAST_GENERATION && !slabs->items[number].worn))
            return false;
    return true;
}

quire_result qi_slabs_check(const qi_segregated *s)
{
    const qi_slabs *slabs = s->slabs;
    count seen = {0};
    uint64_t partial = 0, listed = 0;
    if (slabs->top > slabs->capacity || !chain_is_sound(slabs))
        return qi_space_damaged("the chain of unused slabs is broken", slabs->unused);
    if (slabs->first_generation & 1 || slabs->first_generation > QI_LAST_GENERATION)
        return qi_space_damaged("new slots would start with a generation in use or used up", 0);
    for (uint32_t i = 1; i < slabs->top; i++) {
        if (!slabs->items[i].node && !unused_is_sound(slabs, i))
            return qi_space_damaged("a slot of an unused slab has a generation in use", i);
        quire_result result = slabs->items[i].node ? check_slab(s, i, &seen) : QUIRE_SUCCESS;
        if (result)
            return result;
        partial += slabs->items[i].node && slabs->items[i].free;
    }
    for (uint32_t class = 0; class < QI_SLAB_CLASSES; class ++) {
        quire_result result = check_class(slabs, class, &seen, &listed);
        if (result)
            return result;
    }
    if (listed != partial || seen.slabs != slabs->count || seen.empty != slabs->empty ||
        seen.all_slots != slabs->slots)
        return qi_space_damaged("the statistics of the slabs are wrong", 0);
    return QUIRE_SUCCESS;
}
