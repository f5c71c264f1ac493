/*
 * lists.h - the constant-time steps of the segregated fit on its records: taking and giving node
 * numbers, the rings of neighbours, the lists by class and bucket, and the direct choice of a free
 * node. Inline, because every allocation and every free is made of them.
 */
#ifndef QUIRE_SRC_SPACE_LISTS_H
#define QUIRE_SRC_SPACE_LISTS_H

#include "src/base/bits.h"
#include "src/space/segregated.h"

static inline void qi_node_mark_free(qi_segregated *s, uint32_t node)
{
    s->is_free[node / 64] |= UINT64_C(1) << node % 64;
}

static inline void qi_node_mark_taken(qi_segregated *s, uint32_t node)
{
    s->is_free[node / 64] &= ~(UINT64_C(1) << node % 64);
}

static inline uint32_t qi_node_take(qi_segregated *s)
{
    uint32_t number = s->space.pool.unused;
    s->space.pool.spare--;
    if (!number)
        return s->space.pool.top++;
    s->space.pool.unused = s->nodes[number].next;
    return number;
}

static inline void qi_node_give(qi_segregated *s, uint32_t number)
{
    if (s->nodes[number].generation > QI_LAST_GENERATION) {
        s->space.pool.retired++;
        return;
    }
    s->nodes[number].next = s->space.pool.unused;
    s->space.pool.unused = number;
    s->space.pool.spare++;
}

static inline void qi_node_insert_after(qi_segregated *s, uint32_t place, uint32_t number)
{
    uint32_t after = s->nodes[place].after;
    s->nodes[number].before = place;
    s->nodes[number].after = after;
    s->nodes[place].after = number;
    s->nodes[after].before = number;
    s->nodes[number].region = s->nodes[place].region;
}

static inline void qi_node_leave_ring(qi_segregated *s, uint32_t number)
{
    uint32_t before = s->nodes[number].before, after = s->nodes[number].after;
    s->nodes[before].after = after;
    s->nodes[after].before = before;
}

static inline void qi_node_link(qi_segregated *s, uint32_t number)
{
    qi_node *node = &s->nodes[number];
    qi_class class = qi_class_of_range(node->size);
    uint32_t bucket = node->offset >> s->bucket_shift;
    uint32_t list = class.index * QI_BUCKETS + bucket;
    uint32_t old = s->heads[list];
    node->back = QI_AT_HEAD | list;
    node->next = old;
    s->nodes[old].back = number; /* node 0 is scratch: no branch for an empty list */
    s->heads[list] = number;
    s->fractions[list] = (uint8_t) class.fraction;
    s->masks[class.index] = (uint16_t)(s->masks[class.index] | 1u << bucket);
    s->class_bits[class.index / 64] |= UINT64_C(1) << class.index % 64;
    s->top_bits |= UINT64_C(1) << class.index / 64;
}

static inline void qi_list_forget(qi_segregated *s, uint32_t list)
{
    uint32_t class = list / QI_BUCKETS;
    s->masks[class] = (uint16_t)(s->masks[class] & ~(1u << list % QI_BUCKETS));
    if (s->masks[class])
        return;
    s->class_bits[class / 64] &= ~(UINT64_C(1) << class % 64);
    if (!s->class_bits[class / 64])
        s->top_bits &= ~(UINT64_C(1) << class / 64);
}

static inline void qi_node_unlink(qi_segregated *s, const qi_node *node)
{
    uint32_t next = node->next, back = node->back;
    s->nodes[next].back = back;
    if (!(back & QI_AT_HEAD)) {
        s->nodes[back].next = next;
        return;
    }
    uint32_t list = back & ~QI_AT_HEAD;
    s->heads[list] = next;
    if (next)
        s->fractions[list] = (uint8_t)qi_class_of_range(s->nodes[next].size).fraction;
    else
        qi_list_forget(s, list);
}

/* Gives a listed node another place and size; in its list it stays where it can. */
static inline void qi_node_move(qi_segregated *s, uint32_t number, uint32_t offset, uint32_t size)
{
    qi_node *node = &s->nodes[number];
    uint32_t old = qi_list_of(s, node->offset, node->size);
    if (qi_list_of(s, offset, size) == old) {
        node->offset = offset;
        node->size = size;
        if (node->back == (QI_AT_HEAD | old))
            s->fractions[old] = (uint8_t)qi_class_of_range(size).fraction;
        return;
    }
    qi_node_unlink(s, node);
    node->offset = offset;
    node->size = size;
    qi_node_link(s, number);
}

/* The lowest class from `class` on that has a node, or QI_CLASS_LIMIT. */
static inline uint32_t qi_next_class(const qi_segregated *s, uint32_t class)
{
    uint32_t word = class / 64;
    if (word >= QI_CLASS_LIMIT / 64)
        return QI_CLASS_LIMIT;
    uint64_t bits = s->class_bits[word] & ~UINT64_C(0) << class % 64;
    if (!bits) {
        uint64_t words = s->top_bits & ~UINT64_C(1) << word;
        if (!words)
            return QI_CLASS_LIMIT;
        word = qi_lowest_bit(words);
        bits = s->class_bits[word];
    }
    return word * 64 + qi_lowest_bit(bits);
}

/* A node of at least `size` granules without looking at any node; 0 when none is known. */
static inline uint32_t qi_pick_free(const qi_segregated *s, uint32_t size)
{
    qi_class class = qi_class_of_request(size);
    if (class.index >= s->class_count)
        return 0;
    const uint8_t *fractions = s->fractions + class.index * QI_BUCKETS;
    uint32_t buckets = s->masks[class.index] & qi_buckets_at_least(fractions, class.fraction);
    if (!buckets) {
        class.index = qi_next_class(s, class.index + 1);
        if (class.index == QI_CLASS_LIMIT)
            return 0;
        buckets = s->masks[class.index];
    }
    return s->heads[class.index * QI_BUCKETS + qi_lowest_bit(buckets)];
}

#endif
