/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * holes.h - the steps on nodes that are neither live nor free: open holes, which form a list, and
 * reserved pieces. Their bytes are counted out of the regions.
 */
#ifndef QUIRE_SRC_SPACE_SEGREGATED_HOLES_H
#define QUIRE_SRC_SPACE_SEGREGATED_HOLES_H

#include "src/space/segregated/lists.h"

/* ---- marks and the list ------------------------------------------------------------------- */

static inline void qi_hole_set_mark(qi_segregated *s, uint32_t node, uint32_t mark)
{
    s->is_hole[node / 64] |= UINT64_C(1) << node % 64;
    s->nodes[node].owner = qi_node_region(&s->nodes[node]) | mark;
}

static inline void qi_hole_clear_mark(qi_segregated *s, uint32_t node)
{
    s->is_hole[node / 64] &= ~(UINT64_C(1) << node % 64);
    s->nodes[node].owner = qi_node_region(&s->nodes[node]);
}

/* A hole that no window has reserved. */
static inline bool qi_node_is_open_hole(const qi_segregated *s, uint32_t node)
{
    return qi_node_is_hole(s, node) && !(s->nodes[node].owner & QI_RESERVED_MARK);
}

static inline qi_piece qi_piece_of(const qi_node *node)
{
    return (qi_piece)((node->owner & QI_PIECE_MASK) >> QI_PIECE_SHIFT);
}

/* A node and its bytes leave the backed part of the regions, and come back. */
static inline void qi_hole_count_out(qi_segregated *s, uint32_t number)
{
    uint64_t bytes = s->nodes[number].size * s->space.granule;
    s->space.hole_nodes++;
    s->space.region_bytes -= bytes;
    s->space.hole_bytes += bytes;
}

static inline void qi_hole_count_in(qi_segregated *s, uint32_t number)
{
    uint64_t bytes = s->nodes[number].size * s->space.granule;
    s->space.hole_nodes--;
    s->space.region_bytes += bytes;
    s->space.hole_bytes -= bytes;
}

static inline void qi_hole_list(qi_segregated *s, uint32_t number)
{
    qi_node *node = &s->nodes[number];
    node->next = s->first_hole;
    node->back = 0;
    s->nodes[s->first_hole].back = number; /* node 0 is scratch */
    s->first_hole = number;
}

static inline void qi_hole_unlist(qi_segregated *s, uint32_t number)
{
    const qi_node *node = &s->nodes[number];
    s->nodes[node->next].back = node->back;
    if (node->back)
        s->nodes[node->back].next = node->next;
    else
        s->first_hole = node->next;
}

/* Makes a node that is neither live nor free a hole, and merges it with the holes beside it. Its
   bytes are counted out already. */
static inline void qi_hole_make(qi_segregated *s, uint32_t number)
{
    uint32_t before = s->nodes[number].before, after = s->nodes[number].after;
    if (qi_node_is_open_hole(s, after)) {
        qi_hole_unlist(s, after);
        qi_hole_clear_mark(s, after);
        s->nodes[number].size += s->nodes[after].size;
        qi_node_leave_ring(s, after);
        qi_node_give(s, after);
        s->space.hole_nodes--;
    }
    if (qi_node_is_open_hole(s, before)) {
        s->nodes[before].size += s->nodes[number].size;
        qi_hole_clear_mark(s, number);
        qi_node_leave_ring(s, number);
        qi_node_give(s, number);
        s->space.hole_nodes--;
        return;
    }
    qi_hole_set_mark(s, number, 0);
    qi_hole_list(s, number);
}

/* The region's chunks begin at its start. */
static inline uint64_t qi_chunk_down(const qi_segregated *s, uint32_t origin, uint64_t at)
{
    return at - (at - origin) % s->chunk;
}

static inline uint64_t qi_chunk_up(const qi_segregated *s, uint32_t origin, uint64_t at)
{
    return qi_chunk_down(s, origin, at + s->chunk - 1);
}

static inline uint32_t qi_node_origin(const qi_segregated *s, const qi_node *node)
{
    return s->nodes[s->space.regions[qi_node_region(node)].node].offset;
}

static inline uint64_t qi_node_end(const qi_node *node)
{
    return (uint64_t)node->offset + node->size;
}

/* Makes a hole that is in no list, or a piece of a window, free. */
static inline void qi_hole_release(qi_segregated *s, uint32_t number)
{
    qi_hole_count_in(s, number);
    qi_hole_clear_mark(s, number);
    qi_node_free(s, number);
}

/* Inserts a node for what a node has from `at` on. Requires a spare number. The caller shortens the
   lower one. */
static inline uint32_t qi_node_insert_rest(qi_segregated *s, uint32_t number, uint64_t at)
{
    uint32_t rest = qi_node_take(s);
    qi_node_insert_after(s, number, rest);
    s->nodes[rest].offset = (uint32_t)at;
    s->nodes[rest].size = (uint32_t)(qi_node_end(&s->nodes[number]) - at);
    return rest;
}

/* Cuts a free range or a hole in two. Returns the upper node. Requires a spare number. */
static inline uint32_t qi_node_split(qi_segregated *s, uint32_t number, uint64_t at)
{
    uint32_t rest = qi_node_insert_rest(s, number, at);
    qi_node *node = &s->nodes[number];
    if (qi_node_is_free(s, number)) {
        qi_node_move(s, number, node->back, node->offset, (uint32_t)at - node->offset);
        qi_node_mark_free(s, rest);
        qi_node_link(s, rest);
        return rest;
    }
    node->size = (uint32_t)at - node->offset;
    qi_hole_set_mark(s, rest, 0);
    qi_hole_list(s, rest);
    s->space.hole_nodes++;
    return rest;
}

static inline void qi_piece_mark(qi_segregated *s, uint32_t number, qi_piece piece)
{
    qi_hole_set_mark(s, number, QI_RESERVED_MARK | (uint32_t)piece << QI_PIECE_SHIFT);
}

/* A live node has its user value where other nodes have links. A piece has there the user value of
   its kept window, plus 1, or 0, and the number of the point that it waits for, or 0. */
static inline void qi_piece_set_user(qi_node *node, uint32_t user, uint32_t point)
{
    node->next = user;
    node->back = point;
}

static inline void qi_piece_reserve(qi_segregated *s, uint32_t number)
{
    qi_node *node = &s->nodes[number];
    if (qi_node_is_free(s, number)) {
        qi_node_unlink(s, node, node->back);
        qi_node_mark_taken(s, number);
        qi_piece_mark(s, number, QI_PIECE_BACKED);
        qi_hole_count_out(s, number);
    } else {
        qi_hole_unlist(s, number);
        qi_piece_mark(s, number, QI_PIECE_HOLE);
    }
    qi_piece_set_user(node, 0, 0);
}

#endif
