/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * gaps.c - gaps between placed ranges, found in sets of spans.
 *
 * A binary tree stands on the sections. Each node has two sets of spans, which are merged and in
 * the order of their addresses: `cover`, of the ranges that live in all sections of the node, and
 * `some`, of those that live in any. The sections of a range are those of a few nodes. The range
 * meets what is in `some` of these nodes and in `cover` of the nodes above them. One walk through
 * these sets at a time finds its gap. Merged sets stay short while the plan is dense.
 *
 * A set `some` is emptied, and not filled again, when no range is left that asks for it: `askers`
 * counts them.
 */
#include "src/plan/gaps.h"

#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- sets of spans ------------------------------------------------------------------------- */

typedef struct qi_plan_span {
    uint64_t begin, end;
} span;

typedef qi_plan_span_set span_set;

/* The first span from `from` on that ends above `offset`. Looks in steps that double. */
static uint32_t first_above(const span_set *set, uint32_t from, uint64_t offset)
{
    uint32_t step = 1, low = from;
    while (step <= set->count - low && set->spans[low + step - 1].end <= offset) {
        low += step;
        step *= 2;
    }
    uint32_t high = step <= set->count - low ? low + step - 1 : set->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (set->spans[middle].end > offset)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Adds a span and merges it with those that it meets or touches. */
static bool add_span(qi_plan_gaps *gaps, span_set *set, uint64_t begin, uint64_t end)
{
    uint32_t low = begin ? first_above(set, 0, begin - 1) : 0, high = low;
    for (; high < set->count && set->spans[high].begin <= end; high++) {
        begin = set->spans[high].begin < begin ? set->spans[high].begin : begin;
        qi_raise(&end, set->spans[high].end);
    }
    if (low == high && set->count == set->room) {
        uint32_t room = set->room ? set->room + set->room / 2 + 1 : 2;
        span *spans = qi_host_resize(gaps->host, set->spans, set->room, room, sizeof *spans);
        if (!spans)
            return false;
        gaps->room += room - set->room;
        set->spans = spans;
        set->room = room;
    }
    memmove(&set->spans[low + 1], &set->spans[high], (set->count - high) * sizeof(span));
    set->count = set->count + 1 - (high - low);
    set->spans[low] = (span){begin, end};
    return true;
}

static void release_spans(span_set *set, qi_host *host)
{
    qi_host_release(host, set->spans, set->room, sizeof(span));
    *set = (span_set){NULL, 0, 0};
}

/* How many spans the sets have room for, for each range, before an order begins. */
enum { ROOM_FOR_EACH = 4 };

/* ---- the tree ------------------------------------------------------------------------------ */

/* The nodes of a range: its sections are those of the first `own`, the others are above these. */
enum { MOST_NODES = 128 };

typedef struct node_list {
    uint32_t own, count;
    uint32_t at[MOST_NODES];
} node_list;

static void find_own(const qi_plan_gaps *gaps, const qi_plan_range *range, node_list *nodes)
{
    uint32_t low = gaps->leaves + range->begin, high = gaps->leaves + range->end;
    nodes->count = 0;
    for (; low < high; low /= 2, high /= 2) {
        if (low % 2)
            nodes->at[nodes->count++] = low++;
        if (high % 2)
            nodes->at[nodes->count++] = --high;
    }
    nodes->own = nodes->count;
}

/* Every node above one of the range's own is above its first or its last leaf. */
static void find_nodes(const qi_plan_gaps *gaps, const qi_plan_range *range, node_list *nodes)
{
    find_own(gaps, range, nodes);
    uint32_t low = (gaps->leaves + range->begin) / 2, high = (gaps->leaves + range->end - 1) / 2;
    for (; low; low /= 2, high /= 2) {
        nodes->at[nodes->count++] = low;
        if (high != low)
            nodes->at[nodes->count++] = high;
    }
}

quire_result qi_plan_gaps_make(qi_plan_gaps *gaps, const qi_plan_line *line, qi_host *host)
{
    *gaps = (qi_plan_gaps){.line = line, .host = host, .leaves = 1};
    while (gaps->leaves < line->section_count)
        gaps->leaves *= 2;
    const uint64_t nodes = UINT64_C(2) * gaps->leaves;
    gaps->some = qi_host_allocate(host, nodes, sizeof *gaps->some);
    gaps->cover = qi_host_allocate(host, nodes, sizeof *gaps->cover);
    gaps->askers = qi_host_allocate(host, nodes, sizeof *gaps->askers);
    return gaps->some && gaps->cover && gaps->askers
               ? QUIRE_SUCCESS
               : qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a plan");
}

void qi_plan_gaps_release(qi_plan_gaps *gaps)
{
    const uint64_t nodes = UINT64_C(2) * gaps->leaves;
    for (uint64_t i = 0; i < nodes; i++) {
        if (gaps->some)
            release_spans(&gaps->some[i], gaps->host);
        if (gaps->cover)
            release_spans(&gaps->cover[i], gaps->host);
    }
    release_spans(&gaps->apart, gaps->host);
    qi_host_release(gaps->host, gaps->some, nodes, sizeof *gaps->some);
    qi_host_release(gaps->host, gaps->cover, nodes, sizeof *gaps->cover);
    qi_host_release(gaps->host, gaps->askers, nodes, sizeof *gaps->askers);
}

/* Empties the sets. They keep their memory, unless different orders have filled different sets. */
static void reset(qi_plan_gaps *gaps)
{
    const bool is_large = gaps->room / ROOM_FOR_EACH > gaps->line->count;
    node_list nodes;
    for (uint32_t i = 0; i < 2 * gaps->leaves; i++) {
        gaps->some[i].count = gaps->cover[i].count = 0;
        gaps->askers[i] = 0;
        if (is_large) {
            release_spans(&gaps->some[i], gaps->host);
            release_spans(&gaps->cover[i], gaps->host);
        }
    }
    if (is_large)
        gaps->room = 0;
    for (uint32_t i = 0; i < gaps->line->count; i++) {
        find_own(gaps, &gaps->line->ranges[i], &nodes);
        for (uint32_t k = 0; k < nodes.own; k++)
            gaps->askers[nodes.at[k]]++;
    }
    gaps->is_out_of_memory = false;
}

static void add(qi_plan_gaps *gaps, span_set *set, uint64_t begin, uint64_t end)
{
    gaps->is_out_of_memory |= !add_span(gaps, set, begin, end);
}

static void add_range(qi_plan_gaps *gaps, const node_list *nodes, uint64_t begin, uint64_t end)
{
    for (uint32_t i = 0; i < nodes->count; i++) {
        uint32_t node = nodes->at[i];
        if (i < nodes->own) {
            add(gaps, &gaps->cover[node], begin, end);
            gaps->askers[node]--;
        }
        if (gaps->askers[node])
            add(gaps, &gaps->some[node], begin, end);
        else
            gaps->some[node].count = 0;
    }
}

/* ---- gaps ---------------------------------------------------------------------------------- */

/* The sets that a range meets, and in each the first span that may end above its offset. */
typedef struct walk {
    uint32_t count;
    struct {
        const span_set *set;
        uint32_t at;
    } cursors[MOST_NODES + 1];
} walk;

static void visit(walk *w, const span_set *set)
{
    if (set->count) {
        w->cursors[w->count].set = set;
        w->cursors[w->count++].at = 0;
    }
}

static void begin_walk(qi_plan_gaps *gaps, uint32_t i, const node_list *nodes,
                       const uint64_t *offsets, walk *w)
{
    const qi_plan_line *line = gaps->line;
    w->count = 0;
    for (uint32_t k = 0; k < nodes->count; k++)
        visit(w, k < nodes->own ? &gaps->some[nodes->at[k]] : &gaps->cover[nodes->at[k]]);
    if (!line->apart)
        return;
    gaps->apart.count = 0;
    for (uint32_t k = line->apart_starts[i]; k < line->apart_starts[i + 1]; k++) {
        uint32_t other = line->apart[k];
        if (offsets[other] != UINT64_MAX)
            add(gaps, &gaps->apart, offsets[other], offsets[other] + line->ranges[other].size);
    }
    visit(w, &gaps->apart);
}

/*
 * Moves to the first gap at or above *at that has room for the range: *at is the offset of the
 * range in it, *next where the gap ends, UINT64_MAX if nothing is above. Returns the steps.
 */
static uint64_t find_gap(const qi_plan_line *line, const qi_plan_range *range, walk *w,
                         uint64_t *at, uint64_t *next)
{
    uint64_t steps = 0;
    bool has_moved = true;
    while (has_moved) {
        has_moved = false;
        *next = UINT64_MAX;
        for (uint32_t i = 0; i < w->count;) {
            const span_set *set = w->cursors[i].set;
            uint32_t first = first_above(set, w->cursors[i].at, *at);
            w->cursors[i].at = first;
            if (first == set->count) {
                w->cursors[i] = w->cursors[--w->count];
                continue;
            }
            if (set->spans[first].begin < *at + range->size) {
                *at = qi_plan_lift(line, range, set->spans[first].end);
                has_moved = true;
            } else if (set->spans[first].begin < *next) {
                *next = set->spans[first].begin;
            }
            i++;
        }
        steps += w->count + 1;
    }
    return steps;
}

/* Returns the offset of a range in the lowest or the narrowest gap, UINT64_MAX if there is none. */
static uint64_t choose_gap(const qi_plan_line *line, const qi_plan_range *range, walk *w,
                           bool narrowest, qi_plan_effort *effort)
{
    uint64_t best = UINT64_MAX, least = UINT64_MAX, next;
    uint64_t at = qi_plan_lift(line, range, 0);
    while (qi_plan_spend(effort, find_gap(line, range, w, &at, &next))) {
        if (at + range->size > range->high)
            return best;
        if (!narrowest || (next == UINT64_MAX && best == UINT64_MAX))
            return at;
        if (next == UINT64_MAX)
            return best;
        uint64_t left = next - at - range->size;
        if (left < least) {
            best = at;
            least = left;
        }
        if (!left)
            return best;
        at = qi_plan_lift(line, range, next);
    }
    return UINT64_MAX;
}

uint64_t qi_plan_place(qi_plan_gaps *gaps, const uint32_t *order, bool narrowest, uint64_t limit,
                       qi_plan_effort *effort, uint64_t *offsets)
{
    const qi_plan_line *line = gaps->line;
    uint64_t peak = 0;
    reset(gaps);
    for (uint32_t i = 0; i < line->count; i++)
        offsets[i] = UINT64_MAX;
    for (uint32_t i = 0; i < line->count; i++) {
        const qi_plan_range *range = &line->ranges[order[i]];
        node_list nodes;
        walk w;
        find_nodes(gaps, range, &nodes);
        begin_walk(gaps, order[i], &nodes, offsets, &w);
        uint64_t at = choose_gap(line, range, &w, narrowest, effort);
        if (at == UINT64_MAX || at + range->size >= limit)
            return UINT64_MAX;
        offsets[order[i]] = at;
        qi_raise(&peak, at + range->size);
        add_range(gaps, &nodes, at, at + range->size);
        if (gaps->is_out_of_memory || gaps->room > gaps->most_room)
            return UINT64_MAX;
    }
    return peak;
}
