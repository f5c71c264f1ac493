/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * asleep.c - chunks that sleep: they hold live ranges and have no memory. Their free parts become
 * fillers, which are pieces of no window, so that no request gets them.
 *
 * Invariants:
 *  - is_asleep has a bit for each chunk that sleeps, by its number on the line
 *  - a chunk that sleeps has a live range, no free part, and every filler lies in one such chunk
 *  - fillers do not touch within a chunk
 *  - asleep_bytes of the space are those of live ranges in chunks that sleep
 *
 * A range that is freed leaves up to three stretches, of which each is free, a filler or a hole.
 * The two numbers for that were put aside, so that a free cannot fail. Waking needs no number.
 */
#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/space/segregated/holes.h"

/* A chunk, in granules on the line. */
typedef struct chunk {
    uint32_t begin, end;
    uint32_t number;
} chunk;

/* The chunk of a place in a node's region. */
static chunk chunk_at(const qi_segregated *s, const qi_node *node, uint64_t at)
{
    const uint32_t origin = qi_node_origin(s, node);
    const uint32_t begin = (uint32_t)qi_chunk_down(s, origin, at);
    return (chunk){.begin = begin,
                   .end = begin + s->chunk,
                   .number = origin / s->chunk + (begin - origin) / s->chunk};
}

/* The chunk at an offset in the region of a live range. */
static chunk chunk_of(const qi_segregated *s, uint32_t number, uint64_t offset)
{
    const qi_node *node = &s->nodes[number];
    return chunk_at(s, node, qi_node_origin(s, node) + (offset >> s->granule_shift));
}

static bool sleeps(const qi_segregated *s, const chunk *c)
{
    return qi_chunk_sleeps(s, c->number);
}

static bool is_filler(const qi_segregated *s, uint32_t number)
{
    return qi_node_is_reserved(s, number) && qi_piece_of(&s->nodes[number]) == QI_PIECE_ASLEEP &&
           !s->nodes[number].next;
}

/* The lowest node that touches a chunk, from one that does. */
static uint32_t lowest_in(const qi_segregated *s, uint32_t number, const chunk *c)
{
    while (s->nodes[number].offset > c->begin)
        number = s->nodes[number].before;
    return number;
}

/* The bytes that a node has in a chunk that it touches. */
static uint64_t bytes_in(const qi_segregated *s, uint32_t number, const chunk *c)
{
    const qi_node *node = &s->nodes[number];
    const uint64_t begin = node->offset > c->begin ? node->offset : c->begin;
    const uint64_t end = qi_node_end(node) < c->end ? qi_node_end(node) : c->end;
    return (end - begin) << s->granule_shift;
}

/* ---- numbers ------------------------------------------------------------------------------ */

/* Numbers that are put aside are holes without a ring, so that they are in use for the pool. */

enum { ASIDE = 2 };

static quire_result set_aside(quire_space *space)
{
    qi_segregated *s = qi_segregated_of(space);
    quire_result result = qi_segregated_reserve(s, ASIDE);
    for (int i = 0; i < ASIDE && !result; i++) {
        const uint32_t number = qi_node_take(s);
        s->nodes[number].owner = 0;
        s->nodes[number].size = 0;
        qi_piece_mark(s, number, QI_PIECE_ASLEEP);
        s->nodes[number].next = s->first_aside;
        s->first_aside = number;
        space->hole_nodes++;
    }
    return result;
}

static void take_aside(quire_space *space)
{
    qi_segregated *s = qi_segregated_of(space);
    for (int i = 0; i < ASIDE; i++) {
        const uint32_t number = s->first_aside;
        s->first_aside = s->nodes[number].next;
        qi_hole_clear_mark(s, number);
        qi_node_give(s, number);
        space->hole_nodes--;
    }
}

/* ---- falling asleep ----------------------------------------------------------------------- */

/* Ensures a bit for each chunk up to this number. */
static bool cover(qi_segregated *s, uint32_t number)
{
    const uint32_t words = s->asleep_words;
    uint32_t wanted = words ? words : 1;
    while (wanted <= number / 64)
        wanted *= 2;
    if (wanted == words)
        return true;
    uint64_t *bits =
        qi_host_resize(&s->space.host, s->is_asleep, words, wanted, sizeof *s->is_asleep);
    if (!bits)
        return false;
    s->is_asleep = bits;
    s->asleep_words = wanted;
    return true;
}

/* Whether all ranges of a chunk satisfy the test. */
static bool may_sleep(const qi_segregated *s, uint32_t number, const chunk *c,
                      bool (*test)(const void *user, uint64_t value), const void *user)
{
    for (uint32_t i = lowest_in(s, number, c); s->nodes[i].offset < c->end && s->nodes[i].size;
         i = s->nodes[i].after)
        if (!qi_node_is_free(s, i) &&
            (qi_node_is_hole(s, i) || !test(user, qi_node_user(&s->nodes[i]))))
            return false;
    return true;
}

/* Makes what a free node has in the chunk a filler. Requires a spare number for each edge of the
   chunk that lies in the node. Returns the filler. */
static uint32_t fill_part(qi_segregated *s, uint32_t number, const chunk *c)
{
    if (s->nodes[number].offset < c->begin)
        number = qi_node_split(s, number, c->begin);
    if (qi_node_end(&s->nodes[number]) > c->end)
        qi_node_split(s, number, c->end);
    qi_piece_reserve(s, number);
    qi_piece_mark(s, number, QI_PIECE_ASLEEP);
    return number;
}

static quire_result sleep_chunk(quire_space *space, quire_range range, uint64_t offset,
                                bool (*test)(const void *user, uint64_t value), const void *user,
                                bool *falls_asleep)
{
    qi_segregated *s = qi_segregated_of(space);
    const uint32_t number = qi_handle_slot(range.id);
    const chunk c = chunk_of(s, number, offset);
    *falls_asleep = !sleeps(s, &c) && may_sleep(s, number, &c, test, user);
    if (!*falls_asleep)
        return QUIRE_SUCCESS;
    quire_result result =
        qi_segregated_reserve(s, 2); /* a range is live: only its sides are free */
    if (!result && !cover(s, c.number))
        result = qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for chunks that sleep");
    if (result)
        return result;
    for (uint32_t i = lowest_in(s, number, &c); s->nodes[i].offset < c.end && s->nodes[i].size;
         i = s->nodes[i].after)
        if (qi_node_is_free(s, i))
            i = fill_part(s, i, &c);
        else
            space->asleep_bytes += bytes_in(s, i, &c);
    s->is_asleep[c.number / 64] |= UINT64_C(1) << c.number % 64;
    return QUIRE_SUCCESS;
}

static bool chunk_sleeps(const quire_space *space, quire_range range, uint64_t offset)
{
    const qi_segregated *s = qi_segregated_of_const(space);
    const chunk c = chunk_of(s, qi_handle_slot(range.id), offset);
    return sleeps(s, &c);
}

/* ---- waking ------------------------------------------------------------------------------- */

static void clear_bit(qi_segregated *s, const chunk *c)
{
    s->is_asleep[c->number / 64] &= ~(UINT64_C(1) << c->number % 64);
}

static void wake_chunk(quire_space *space, quire_range range, uint64_t offset)
{
    qi_segregated *s = qi_segregated_of(space);
    const uint32_t number = qi_handle_slot(range.id);
    const chunk c = chunk_of(s, number, offset);
    clear_bit(s, &c);
    for (uint32_t i = lowest_in(s, number, &c), after;
         s->nodes[i].offset < c.end && s->nodes[i].size; i = after) {
        after = s->nodes[i].after;
        if (is_filler(s, i))
            qi_hole_release(s, i);
        else if (!qi_node_is_free(s, i))
            space->asleep_bytes -= bytes_in(s, i, &c);
    }
}

/* ---- freeing ------------------------------------------------------------------------------ */

/* Merges two fillers that touch within a chunk. The lower one stays. */
static void merge(qi_segregated *s, uint32_t lower, uint32_t upper)
{
    s->nodes[lower].size += s->nodes[upper].size;
    qi_hole_clear_mark(s, upper);
    qi_node_leave_ring(s, upper);
    qi_node_give(s, upper);
    s->space.hole_nodes--;
}

/* Makes a stale node in a chunk that sleeps a filler, or with the last range of the chunk the
   chunk a hole. */
static void free_part(qi_segregated *s, uint32_t number, const chunk *c)
{
    const uint32_t before = s->nodes[number].before, after = s->nodes[number].after;
    s->space.asleep_bytes -= bytes_in(s, number, c);
    qi_hole_count_out(s, number);
    qi_piece_mark(s, number, QI_PIECE_ASLEEP);
    qi_piece_set_user(&s->nodes[number], 0, 0);
    if (is_filler(s, after) && s->nodes[after].offset < c->end)
        merge(s, number, after);
    if (is_filler(s, before) && s->nodes[before].offset >= c->begin) {
        merge(s, before, number);
        number = before;
    }
    if (s->nodes[number].size < s->chunk)
        return;
    clear_bit(s, c);
    qi_hole_clear_mark(s, number);
    qi_hole_make(s, number);
}

/* Frees a stale node that does not cross an edge of a chunk, or is whole chunks. */
static void free_stretch(qi_segregated *s, uint32_t number)
{
    const qi_node *node = &s->nodes[number];
    const uint64_t end = qi_node_end(node);
    chunk c = chunk_at(s, node, node->offset);
    if (!sleeps(s, &c)) {
        qi_node_free(s, number);
        return;
    }
    if (node->size <= s->chunk) {
        free_part(s, number, &c);
        return;
    }
    s->space.asleep_bytes -= (end - node->offset) << s->granule_shift;
    for (uint64_t at = node->offset; at < end; at = c.end) {
        c = chunk_at(s, node, at);
        clear_bit(s, &c);
    }
    qi_hole_count_out(s, number);
    qi_hole_make(s, number);
}

static void free_asleep(quire_space *space, quire_range range)
{
    qi_segregated *s = qi_segregated_of(space);
    const uint32_t number = qi_handle_slot(range.id);
    const qi_node *node = &s->nodes[number];
    const uint32_t origin = qi_node_origin(s, node);
    const uint64_t first = qi_chunk_up(s, origin, node->offset); /* edges of the whole chunks */
    const uint64_t last = qi_chunk_down(s, origin, qi_node_end(node));
    take_aside(space);
    qi_node_make_stale(s, number);
    s->nodes[number].owner = qi_node_region(node);
    uint32_t upper = 0, middle = 0;
    if (last > node->offset && last < qi_node_end(node)) {
        upper = qi_node_insert_rest(s, number, last);
        s->nodes[number].size = (uint32_t)last - node->offset;
    }
    if (first > node->offset && first < qi_node_end(node)) {
        middle = qi_node_insert_rest(s, number, first);
        s->nodes[number].size = (uint32_t)first - node->offset;
    }
    free_stretch(s, number);
    if (middle)
        free_stretch(s, middle);
    if (upper)
        free_stretch(s, upper);
}

const qi_fit_asleep qi_segregated_asleep = {
    .set_aside = set_aside,
    .take_aside = take_aside,
    .sleep_chunk = sleep_chunk,
    .chunk_sleeps = chunk_sleeps,
    .wake_chunk = wake_chunk,
    .free_asleep = free_asleep,
};
