/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * search.c - the bounded search of the segregated fit, for requests that the direct choice does not
 * serve: alignment makes the chosen range too small, no higher class has a range, kinds are kept
 * apart, or the upper end is wanted.
 *
 * The search examines a bounded number of nodes. quire/space.h states which ranges it can miss; a
 * full pass finds them on request.
 */
#include "src/space/segregated/lists.h"

/*
 * Nodes examined after the direct choice fails. Larger numbers find tighter places for aligned
 * requests and make a failing search slower; it must stay fast with 50,000 misaligned free ranges.
 */
enum { EXAMINE_TIGHT = 8, EXAMINE_IN_CLASS = 8, EXAMINE_IN_ALL = 64 };

_Static_assert(QI_MAX_EXAMINED == EXAMINE_TIGHT + 2 * (1 + EXAMINE_IN_CLASS) + EXAMINE_IN_ALL,
               "the documented bound is the sum of all steps");

/* A request in granules. */
typedef struct request {
    uint32_t size;
    uint32_t align_mask;
    bool optimal;
    bool lowest;
} request;

/* The result of a search. */
typedef struct finding {
    uint32_t node;  /* 0 means none */
    uint32_t start; /* granules on the line */
    uint64_t examined;
} finding;

/*
 * Shrinks [*begin, *end) of a free range so that it shares no stretch with a neighbour of the other
 * kind. Only the two neighbours matter: a stretch never holds both kinds.
 */
static void keep_kinds_apart(const qi_segregated *s, const qi_node *node, bool optimal,
                             uint64_t *begin, uint64_t *end)
{
    const qi_node *before = &s->nodes[node->before], *after = &s->nodes[node->after];
    if (before->size && qi_node_is_optimal(before) != optimal)
        *begin = (*begin + s->kind_mask) & ~(uint64_t)s->kind_mask;
    if (after->size && qi_node_is_optimal(after) != optimal)
        *end &= ~(uint64_t)s->kind_mask;
}

/* Whether a free node holds the request; if so records node and start. */
static bool fits_in(const qi_segregated *s, uint32_t number, const request *r, finding *f)
{
    const qi_node *node = &s->nodes[number];
    uint64_t begin = node->offset, end = begin + node->size;
    if (s->kind_mask)
        keep_kinds_apart(s, node, r->optimal, &begin, &end);
    begin += (0 - begin) & r->align_mask;
    if (begin + r->size > end)
        return false;
    f->node = number;
    f->start = (uint32_t)begin;
    if (r->size >= s->tail_size && !r->lowest)
        f->start = (uint32_t)(end - r->size) & ~r->align_mask;
    return true;
}

/* Finds the first node that fits in the lists of one class; stops at `limit` examined nodes. */
static bool search_class(const qi_segregated *s, uint32_t class, const request *r, uint64_t limit,
                         finding *f)
{
    uint32_t row = class << s->row_shift;
    for (uint32_t buckets = qi_buckets_of(s, class); buckets; buckets &= buckets - 1) {
        uint32_t number = s->heads[row + qi_lowest_bit(buckets)];
        for (; number; number = s->nodes[number].next) {
            if (f->examined == limit)
                return false;
            f->examined++;
            if (fits_in(s, number, r, f))
                return true;
        }
    }
    return false;
}

/* The size of a range that holds the request at any offset and with any neighbours. */
static uint64_t sure_size(const qi_segregated *s, const request *r)
{
    return (uint64_t)r->size + (r->align_mask | s->kind_mask) + s->kind_mask;
}

/* Searches the classes in which some but not all nodes may hold the request. */
static bool search_all(const qi_segregated *s, const request *r, uint64_t limit, finding *f)
{
    uint64_t sure = sure_size(s, r);
    uint32_t last =
        sure > UINT32_MAX ? QI_CLASS_LIMIT - 1 : qi_class_of_range((uint32_t)sure).index;
    uint32_t class = qi_next_class(s, qi_class_of_range(r->size).index);
    while (class <= last && f->examined < limit) {
        if (search_class(s, class, r, limit, f))
            return true;
        class = qi_next_class(s, class + 1);
    }
    return false;
}

/* Tries the direct choice for `size` granules, then some further nodes of its class. */
static bool try_choice(const qi_segregated *s, uint64_t size, const request *r, finding *f)
{
    if (size > UINT32_MAX)
        return false;
    qi_class class = qi_class_of_request((uint32_t)size);
    uint32_t list = qi_pick_in_class(s, class);
    if (list == QI_NO_LIST)
        list = qi_pick_above(s, class);
    if (list == QI_NO_LIST)
        return false;
    f->examined++;
    return fits_in(s, s->heads[list], r, f) ||
           search_class(s, list >> s->row_shift, r, f->examined + EXAMINE_IN_CLASS, f);
}

/*
 * For large requests while at most a quarter of the space is free, if no first node of the own
 * class is certainly large enough: examines a few nodes of that class before a larger range is
 * split.
 */
static bool search_tight(const qi_segregated *s, const request *r, finding *f)
{
    uint32_t class = qi_class_of_range(r->size).index;
    return r->size >= s->tight_size && class << s->row_shift < s->list_count &&
           qi_space_is_tight(&s->space) &&
           qi_pick_in_class(s, qi_class_of_request(r->size)) == QI_NO_LIST &&
           search_class(s, class, r, EXAMINE_TIGHT, f);
}

/* The whole search. Updates the statistics of the space. */
static finding search(qi_segregated *s, const request *r, uint32_t flags)
{
    finding f = {0};
    uint64_t sure = sure_size(s, r);
    bool found = search_tight(s, r, &f) || try_choice(s, r->size, r, &f) ||
                 (sure > r->size && try_choice(s, sure, r, &f)) ||
                 search_all(s, r, f.examined + EXAMINE_IN_ALL, &f);
    qi_raise(&s->space.max_looked_at, f.examined);
    if (!found && flags & QI_EXHAUSTIVE) {
        s->space.full_passes++;
        s->space.full_pass_hits += search_all(s, r, UINT64_MAX, &f);
    }
    return f;
}

/* Examines the ranges of each region up to the first that fits. */
static finding search_lowest(const qi_segregated *s, const request *r)
{
    finding best = {0};
    for (uint32_t region = 0; region < s->space.region_capacity; region++) {
        if (!qi_space_has_region(&s->space, region))
            continue;
        uint32_t own = s->space.regions[region].node, i = s->nodes[own].after;
        finding f = {0};
        while (i != own && !(qi_node_is_free(s, i) && fits_in(s, i, r, &f)))
            i = s->nodes[i].after;
        if (f.node && (!best.node || f.start < best.start))
            best = f;
    }
    return best;
}

/* Deferred frees may hold the request: a full search merges them before it begins. */
static finding search_fully(qi_segregated *s, const request *r, uint32_t flags)
{
    quire_space *space = &s->space;
    if (r->lowest) {
        space->fit->release_cached(space);
        qi_space_flush_deferred(space);
        return search_lowest(s, r);
    }
    bool defers = qi_segregated_defers(s);
    finding f = search(s, r, defers ? flags & ~(uint32_t)QI_EXHAUSTIVE : flags);
    if (!f.node && defers) {
        qi_segregated_flush_deferred(space);
        f = search(s, r, flags);
    }
    return f;
}

static request request_of(const qi_segregated *s, uint64_t size, uint64_t alignment, uint32_t flags)
{
    return (request){
        .size = (uint32_t)((size - 1) >> s->granule_shift) + 1,
        .align_mask = (uint32_t)((alignment - 1) >> s->granule_shift),
        .optimal = flags & QI_OPTIMAL && s->kind_mask,
        .lowest = flags & QI_LOWEST,
    };
}

/* Requires two spare numbers. */
static void take(qi_segregated *s, const request *r, const finding *f, uint64_t user,
                 quire_placement *placement)
{
    uint32_t live = qi_node_carve(s, f->node, s->nodes[f->node].back, f->start, r->size);
    if (r->optimal)
        s->nodes[live].owner |= QI_OPTIMAL_MARK;
    qi_node_make_live(s, live, f->start, r->size, user, placement);
}

quire_result qi_segregated_allocate(quire_space *space, uint64_t size, uint64_t alignment,
                                    uint64_t user, uint32_t flags, quire_placement *placement)
{
    qi_segregated *s = qi_segregated_of(space);
    if (size > space->region_bytes)
        return qi_space_no_room(space, size, alignment, flags);
    const request r = request_of(s, size, alignment, flags);
    quire_result result = qi_segregated_reserve(s, 2);
    if (result)
        return result;
    finding f = search_fully(s, &r, flags);
    if (!f.node)
        return qi_space_no_room(space, size, alignment, flags);
    take(s, &r, &f, user, placement);
    return QUIRE_SUCCESS;
}

/* ---- outside some regions ----------------------------------------------------------------- */

/* Free ranges of avoided, empty and closed regions that one call finds; more end it. */
enum { MAX_PASSED_OVER = 256 };

static bool is_passed_over(const qi_segregated *s, uint32_t number, const qi_avoided *avoided)
{
    const qi_node *node = &s->nodes[number];
    const uint32_t region = qi_node_region(node);
    const uint64_t line = (uint64_t)node->offset << s->granule_shift;
    return avoided->has(avoided->user, region, line - s->space.regions[region].start) ||
           s->space.regions[region].is_closed || qi_segregated_region_is_empty(&s->space, region);
}

/* What is passed over is in no list from when the search finds them to the end of the call.
   They are linked by `next`. */
quire_result qi_segregated_allocate_elsewhere(quire_space *space, const qi_avoided *avoided,
                                              uint64_t size, uint64_t alignment, uint64_t user,
                                              uint32_t flags, quire_placement *placement)
{
    qi_segregated *s = qi_segregated_of(space);
    const request r = request_of(s, size, alignment, flags);
    quire_result result = qi_segregated_reserve(s, 2);
    if (result)
        return result;
    uint32_t passed_over = 0, left = MAX_PASSED_OVER;
    finding f = search(s, &r, 0);
    for (; f.node && is_passed_over(s, f.node, avoided) && left; left--) {
        qi_node *node = &s->nodes[f.node];
        qi_node_unlink(s, node, node->back);
        node->next = passed_over;
        passed_over = f.node;
        f = search(s, &r, 0);
    }
    const bool found = f.node && !is_passed_over(s, f.node, avoided);
    if (found)
        take(s, &r, &f, user, placement);
    for (uint32_t next; passed_over; passed_over = next) {
        next = s->nodes[passed_over].next;
        qi_node_link(s, passed_over);
    }
    return found ? QUIRE_SUCCESS : qi_space_no_room(space, size, alignment, QI_TRY);
}
