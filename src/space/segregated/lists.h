/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * lists.h - the constant-time steps on the records of the segregated fit: node numbers, rings of
 * neighbours, lists by class and bucket, the direct choice of a free node, and the steps of an
 * allocation and a free. Inline, because the hot path consists of them. They keep the invariants of
 * segregated.h and check nothing: the caller ensures spare numbers and valid arguments.
 */
#ifndef QUIRE_SRC_SPACE_SEGREGATED_LISTS_H
#define QUIRE_SRC_SPACE_SEGREGATED_LISTS_H

#include "src/base/bits.h"
#include "src/base/handle.h"
#include "src/space/segregated/segregated.h"

/* ---- numbers and rings --------------------------------------------------------------------- */

static inline void qi_node_mark_free(qi_segregated *s, uint32_t node)
{
    s->is_free[node / 64] |= UINT64_C(1) << node % 64;
}

static inline void qi_node_mark_taken(qi_segregated *s, uint32_t node)
{
    s->is_free[node / 64] &= ~(UINT64_C(1) << node % 64);
}

/* Takes a node number; requires a spare one. */
static inline uint32_t qi_node_take(qi_segregated *s)
{
    uint32_t number = s->space.pool.unused;
    s->space.pool.spare--;
    if (qi_unlikely(!number))
        return s->space.pool.top++;
    s->space.pool.unused = s->nodes[number].next;
    return number;
}

/* Returns a node number; retires it if its generations are used up. */
static inline void qi_node_give(qi_segregated *s, uint32_t number)
{
    if (qi_unlikely(s->nodes[number].generation > QI_LAST_GENERATION)) {
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
    s->nodes[number].owner = qi_node_region(&s->nodes[place]);
}

static inline void qi_node_leave_ring(qi_segregated *s, uint32_t number)
{
    uint32_t before = s->nodes[number].before, after = s->nodes[number].after;
    s->nodes[before].after = after;
    s->nodes[after].before = before;
}

/* ---- lists of free nodes ------------------------------------------------------------------- */

/* A list, and the fraction of a size within its class. */
typedef struct qi_list {
    uint32_t number;
    uint32_t fraction;
} qi_list;

static inline qi_list qi_list_for(const qi_segregated *s, uint32_t offset, uint32_t size)
{
    qi_class class = qi_class_of_range(size);
    uint32_t bucket = (uint32_t)((uint64_t)offset >> s->bucket_shift); /* shift is up to 32 */
    return (qi_list){(class.index << s->row_shift) + bucket, class.fraction};
}

/* Puts a node at the head of the list of its size and offset. */
static inline void qi_node_link_to(qi_segregated *s, uint32_t number, qi_list list)
{
    qi_node *node = &s->nodes[number];
    uint32_t old = s->heads[list.number];
    node->back = QI_AT_HEAD | list.number;
    node->next = old;
    qi_node_set_fraction(node, list.fraction);
    s->nodes[old].back = number; /* node 0 is scratch: an empty list needs no branch */
    s->heads[list.number] = number;
    s->fractions[list.number] = (uint8_t)list.fraction;
    uint64_t word = s->bits[list.number / 64];
    s->bits[list.number / 64] = word | UINT64_C(1) << list.number % 64;
    if (qi_unlikely(!word))
        s->bit_words[list.number / 4096] |= UINT64_C(1) << list.number / 64 % 64;
}

static inline void qi_node_link(qi_segregated *s, uint32_t number)
{
    const qi_node *node = &s->nodes[number];
    qi_node_link_to(s, number, qi_list_for(s, node->offset, node->size));
}

/*
 * Removes the first node of a list. Whether the list becomes empty is unpredictable, so arithmetic
 * instead of a branch clears its bit. That a whole word of 64 lists becomes empty is rare.
 */
static inline void qi_head_unlink(qi_segregated *s, uint32_t list, uint32_t next)
{
    s->nodes[next].back = QI_AT_HEAD | list;
    s->heads[list] = next;
    s->fractions[list] = qi_node_fraction(&s->nodes[next]);
    uint64_t word = s->bits[list / 64] ^ (uint64_t)(next == 0) << list % 64;
    s->bits[list / 64] = word;
    if (qi_unlikely(!word))
        s->bit_words[list / 4096] ^= UINT64_C(1) << list / 64 % 64;
}

static inline void qi_node_unlink(qi_segregated *s, const qi_node *node, uint32_t back)
{
    uint32_t next = node->next;
    if (back & QI_AT_HEAD) {
        qi_head_unlink(s, back & ~QI_AT_HEAD, next);
        return;
    }
    s->nodes[next].back = back;
    s->nodes[back].next = next;
}

/*
 * Changes offset and size of a listed node. A node at the head of its list stays there if the list
 * is the same. `back` is node.back; a caller that took the head of a list knows it without reading
 * the node.
 */
static inline void qi_node_move(qi_segregated *s, uint32_t number, uint32_t back, uint32_t offset,
                                uint32_t size)
{
    qi_node *node = &s->nodes[number];
    qi_list list = qi_list_for(s, offset, size);
    node->offset = offset;
    node->size = size;
    if (back == (QI_AT_HEAD | list.number)) {
        qi_node_set_fraction(node, list.fraction);
        s->fractions[list.number] = (uint8_t)list.fraction;
        return;
    }
    qi_node_unlink(s, node, back);
    qi_node_link_to(s, number, list);
}

/* ---- the direct choice --------------------------------------------------------------------- */

/* The lowest list, not below `list`, that has a node; or QI_NO_LIST. */
static inline uint32_t qi_next_list(const qi_segregated *s, uint32_t list)
{
    uint32_t word = list / 64;
    uint64_t bits = s->bits[word] & ~UINT64_C(0) << list % 64;
    if (!bits) {
        uint32_t group = ++word / 64;
        uint64_t words = s->bit_words[group] & ~UINT64_C(0) << word % 64;
        while (!words) {
            if (++group == sizeof s->bit_words / sizeof *s->bit_words)
                return QI_NO_LIST;
            words = s->bit_words[group];
        }
        word = group * 64 + qi_lowest_bit(words);
        bits = s->bits[word];
    }
    return word * 64 + qi_lowest_bit(bits);
}

/* The lowest class, not below `class`, that has a node; a number above all classes if none has. */
static inline uint32_t qi_next_class(const qi_segregated *s, uint32_t class)
{
    uint32_t list = class << s->row_shift;
    return list < s->list_count ? qi_next_list(s, list) >> s->row_shift : QI_NO_LIST;
}

/* Whether at most a quarter of the space is free. */
static inline bool qi_space_is_tight(const quire_space *space)
{
    return space->live_bytes >= space->region_bytes / 4 * 3;
}

/* The buckets of a class that have nodes, one bit each. */
static inline uint32_t qi_buckets_of(const qi_segregated *s, uint32_t class)
{
    uint32_t row = class << s->row_shift;
    return (uint32_t)(s->bits[row / 64] >> row % 64) & s->row_mask;
}

/* The lowest list of this class whose first node is certainly large enough; or QI_NO_LIST. */
static inline uint32_t qi_pick_in_class(const qi_segregated *s, qi_class class)
{
    uint32_t row = class.index << s->row_shift;
    if (qi_unlikely(row >= s->list_count))
        return QI_NO_LIST;
    uint32_t buckets =
        qi_buckets_of(s, class.index) & qi_buckets_at_least(s->fractions + row, class.fraction);
    return buckets ? row + qi_lowest_bit(buckets) : QI_NO_LIST;
}

/*
 * The lowest list of the lowest class above this one that has a node; every node there is large
 * enough. Or QI_NO_LIST.
 */
static inline uint32_t qi_pick_above(const qi_segregated *s, qi_class class)
{
    uint32_t row = (class.index + 1) << s->row_shift;
    return row < s->list_count ? qi_next_list(s, row) : QI_NO_LIST;
}

/* ---- the steps of an allocation and a free ------------------------------------------------- */

/*
 * Takes a whole free node for a live range. If the generations of its number are used up, a new
 * number replaces it.
 */
static inline uint32_t qi_node_take_whole(qi_segregated *s, uint32_t found, uint32_t back)
{
    qi_node_unlink(s, &s->nodes[found], back);
    qi_node_mark_taken(s, found);
    s->nodes[found].owner = qi_node_region(&s->nodes[found]);
    if (!qi_unlikely(s->nodes[found].generation > QI_LAST_GENERATION))
        return found;
    uint32_t live = qi_node_take(s);
    qi_node_insert_after(s, found, live);
    s->nodes[live].offset = s->nodes[found].offset;
    s->nodes[live].size = s->nodes[found].size;
    qi_node_leave_ring(s, found);
    qi_node_give(s, found);
    return live;
}

/* Cuts [start, start + size) out of a free node with this `back`; requires two spare numbers. */
QI_ALWAYS_INLINE uint32_t qi_node_carve(qi_segregated *s, uint32_t found, uint32_t back,
                                        uint32_t start, uint32_t size)
{
    const qi_node *free_node = &s->nodes[found];
    uint32_t offset = free_node->offset, padding = start - offset;
    uint32_t slack = free_node->size - padding - size;
    if (!padding && !slack)
        return qi_node_take_whole(s, found, back);
    uint32_t live = qi_node_take(s);
    s->nodes[live].offset = start;
    s->nodes[live].size = size;
    if (!padding) {
        qi_node_insert_after(s, free_node->before, live);
        qi_node_move(s, found, back, start + size, slack);
        return live;
    }
    qi_node_insert_after(s, found, live);
    qi_node_move(s, found, back, offset, padding);
    if (slack) {
        uint32_t rest = qi_node_take(s);
        qi_node_insert_after(s, live, rest);
        s->nodes[rest].offset = start + size;
        s->nodes[rest].size = slack;
        qi_node_mark_free(s, rest);
        qi_node_link(s, rest);
    }
    return live;
}

/* Makes a carved node live: new generation, user value, statistics, and the placement. */
static inline void qi_node_make_live(qi_segregated *s, uint32_t number, uint32_t start,
                                     uint32_t size, uint64_t user, quire_placement *out)
{
    qi_node *node = &s->nodes[number];
    uint64_t bytes = size * s->space.granule; /* cheaper than a variable shift */
    uint32_t region = qi_node_region(node);
    node->generation++;
    node->next = (uint32_t)user;
    node->back = (uint32_t)(user >> 32);
    s->space.live_count++;
    s->space.live_bytes += bytes;
    out->range.id = qi_handle(s->space.tag, node->generation, number);
    out->region = region;
    out->reserved = 0;
    out->offset = start * s->space.granule - s->space.regions[region].start;
    out->left_padding = 0;
    out->size = bytes;
    out->user = user;
}

/* Makes a live node stale and removes it from the statistics. The caller frees or defers it. */
static inline void qi_node_make_stale(qi_segregated *s, uint32_t number)
{
    s->nodes[number].generation++;
    s->space.live_count--;
    s->space.live_bytes -= s->nodes[number].size * s->space.granule;
}

/*
 * Makes the node of a live range stale. Returns false, and changes nothing, if the range is not
 * live or is in a slab: qi_space_free then frees or refuses it.
 */
static inline bool qi_node_claim(qi_segregated *s, quire_range range, uint32_t *number)
{
    uint32_t slot = qi_handle_slot(range.id);
    if (qi_unlikely(slot >= s->space.pool.top ||
                    !qi_handle_is(range.id, s->space.tag, s->nodes[slot].generation)))
        return false;
    qi_node_make_stale(s, slot);
    *number = slot;
    return true;
}

/*
 * Prefetch the records that freeing a node touches: first its neighbours; when these have arrived,
 * the nodes next to the free neighbours in their lists.
 */
static inline void qi_node_prefetch_neighbours(const qi_segregated *s, uint32_t number)
{
    __builtin_prefetch(&s->nodes[s->nodes[number].before], 1);
    __builtin_prefetch(&s->nodes[s->nodes[number].after], 1);
}

static inline void qi_node_prefetch_lists(const qi_segregated *s, uint32_t number)
{
    const uint32_t neighbours[] = {s->nodes[number].before, s->nodes[number].after};
    for (int i = 0; i < 2; i++) {
        if (!qi_node_is_free(s, neighbours[i]))
            continue;
        const qi_node *node = &s->nodes[neighbours[i]];
        __builtin_prefetch(&s->nodes[node->next], 1);
        if (!(node->back & QI_AT_HEAD))
            __builtin_prefetch(&s->nodes[node->back], 1);
    }
}

/* Frees a stale node: coalesces it with free neighbours, or puts it in a list. */
QI_ALWAYS_INLINE void qi_node_free(qi_segregated *s, uint32_t number)
{
    qi_node *node = &s->nodes[number];
    uint32_t before = node->before, after = node->after;
    bool low = qi_node_is_free(s, before), high = qi_node_is_free(s, after);
    if (!low && !high) {
        qi_node_mark_free(s, number);
        qi_node_link(s, number);
        return;
    }
    qi_node_leave_ring(s, number);
    qi_node_give(s, number);
    uint32_t size = node->size;
    if (!low) {
        qi_node *above = &s->nodes[after];
        qi_node_move(s, after, above->back, node->offset, size + above->size);
        return;
    }
    size += s->nodes[before].size;
    if (high) {
        size += s->nodes[after].size;
        qi_node_unlink(s, &s->nodes[after], s->nodes[after].back);
        qi_node_mark_taken(s, after);
        qi_node_leave_ring(s, after);
        qi_node_give(s, after);
    }
    qi_node_move(s, before, s->nodes[before].back, s->nodes[before].offset, size);
}

#endif
