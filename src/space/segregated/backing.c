/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * backing.c - holes: stretches of a region that have no memory. A hole is a node of the ring that
 * is neither live nor free, so that the paths of an allocation and a free never meet one: free
 * always means backed and free.
 *
 * A request that no free range holds gets a window, a run of free ranges and holes: the nodes of
 * the run are reserved while the owner of the region backs the holes, and then become one free
 * range, or what they were before if that fails. Reserving may need two numbers; ending it needs
 * none. The other way, whole free chunks become holes: the size classes are their index.
 *
 * A kept window stays reserved: it is a live range whose pieces get and lose memory one by one. Its
 * nodes are those of a window, so that no other function knows of it, and ending it needs no number
 * either, however its pieces lie.
 */
#include "src/base/bits.h"
#include "src/space/segregated/holes.h"
#include "src/space/segregated/slabs.h"

/* Free ranges that a search for chunks examines; or more, with `all`, until one has a chunk. */
enum { MAX_EXAMINED = 64 };

/* ---- chunks ------------------------------------------------------------------------------- */

/* The whole chunks in a free range, of which a search takes those at the upper end. */
static uint64_t whole_chunks(const qi_segregated *s, const qi_node *node, uint64_t *end)
{
    uint32_t origin = qi_node_origin(s, node);
    uint64_t begin = qi_chunk_up(s, origin, node->offset);
    *end = qi_chunk_down(s, origin, qi_node_end(node));
    return *end > begin ? (*end - begin) / s->chunk : 0;
}

/* A free range that a search for chunks has found, and how much of it the whole chunks are. */
typedef struct chunk_find {
    uint32_t node; /* 0: none */
    uint64_t whole, size;
    uint32_t examined;
} chunk_find;

/* Whether less than a quarter of the range is outside its whole chunks. */
static bool is_whole(const chunk_find *f)
{
    return f->node && f->size - f->whole < f->size / 4;
}

/* Whether to examine no further ranges. */
static bool has_ended(const chunk_find *f, bool all)
{
    return is_whole(f) || (f->examined >= MAX_EXAMINED && (f->node || !all));
}

static void examine_list(const qi_segregated *s, uint32_t list, bool all, chunk_find *f)
{
    for (uint32_t i = s->heads[list]; i && !has_ended(f, all); i = s->nodes[i].next) {
        uint64_t end, size = s->nodes[i].size, whole = whole_chunks(s, &s->nodes[i], &end);
        whole *= s->chunk;
        f->examined++;
        if (whole && (!f->node || whole * f->size > f->whole * size)) {
            f->node = i;
            f->whole = whole;
            f->size = size;
        }
    }
}

/*
 * Finds a free range with a whole chunk, from the highest class down. What a range has outside its
 * whole chunks then lies beside a hole and serves small requests only: of the ranges examined, the
 * one that loses the smallest part to such pieces is taken.
 */
static uint32_t find_chunk(const qi_segregated *s, bool all)
{
    chunk_find f = {0};
    uint32_t least = qi_class_of_range(s->chunk).index;
    for (uint32_t index = s->list_count >> s->row_shift; index-- > least;)
        for (uint32_t rest = qi_buckets_of(s, index); rest && !has_ended(&f, all); rest &= rest - 1)
            examine_list(s, (index << s->row_shift) + qi_lowest_bit(rest), all, &f);
    return f.node;
}

quire_result qi_segregated_take_chunks(quire_space *space, uint64_t max, bool all,
                                       qi_chunk_run *taken)
{
    qi_segregated *s = qi_segregated_of(space);
    *taken = (qi_chunk_run){0};
    quire_result result = qi_segregated_reserve(s, 2);
    if (result)
        return result;
    uint32_t found = find_chunk(s, all);
    if (!found)
        return QUIRE_SUCCESS;
    uint64_t end, count = whole_chunks(s, &s->nodes[found], &end);
    uint32_t size = (uint32_t)(count < max ? count : max) * s->chunk;
    uint32_t start = (uint32_t)end - size;
    uint32_t node = qi_node_carve(s, found, s->nodes[found].back, start, size);
    taken->region = qi_node_region(&s->nodes[node]);
    taken->offset = start * space->granule - space->regions[taken->region].start;
    taken->size = size * space->granule;
    qi_hole_count_out(s, node);
    qi_hole_make(s, node);
    return QUIRE_SUCCESS;
}

quire_result qi_segregated_hollow(quire_space *space, uint32_t region, uint64_t chunk)
{
    qi_segregated *s = qi_segregated_of(space);
    uint32_t only = s->nodes[space->regions[region].node].after;
    quire_result result = qi_segregated_cover_holes(s);
    if (result)
        return result;
    s->chunk = (uint32_t)(chunk >> s->granule_shift);
    qi_node_unlink(s, &s->nodes[only], s->nodes[only].back);
    qi_node_mark_taken(s, only);
    qi_hole_count_out(s, only);
    qi_hole_make(s, only);
    return QUIRE_SUCCESS;
}

void qi_segregated_fill(qi_segregated *s, uint32_t region)
{
    uint32_t own = s->space.regions[region].node;
    for (uint32_t i = s->nodes[own].after, after; i != own; i = after) {
        after = s->nodes[i].after;
        if (!qi_node_is_open_hole(s, i))
            continue;
        qi_hole_unlist(s, i);
        qi_hole_release(s, i);
    }
}

/* ---- windows ------------------------------------------------------------------------------ */

static bool has_no_user(const qi_segregated *s, uint32_t node)
{
    return qi_node_is_free(s, node) || qi_node_is_open_hole(s, node);
}

/*
 * Widens [*begin, *begin + size) to whole chunks where an edge lies in a hole, and adds up the
 * granules to back. `node` contains *begin. Returns false if a live range is in the way.
 */
static bool weigh(const qi_segregated *s, uint32_t node, uint64_t *begin, uint64_t *end,
                  uint64_t *unbacked)
{
    uint32_t origin = qi_node_origin(s, &s->nodes[node]);
    uint64_t at = *begin;
    *unbacked = 0;
    if (qi_node_is_open_hole(s, node))
        at = *begin = qi_chunk_down(s, origin, *begin);
    for (; at < *end; node = s->nodes[node].after) {
        uint64_t next = qi_node_end(&s->nodes[node]);
        if (!has_no_user(s, node))
            return false;
        if (qi_node_is_open_hole(s, node)) {
            if (*end < next)
                *end = next = qi_chunk_up(s, origin, *end);
            *unbacked += next - at;
        }
        at = next;
    }
    return true;
}

/* A place that is being compared: `run` is the length of the free stretch and hole around it. */
typedef struct candidate {
    uint64_t begin, end, unbacked, run;
    uint32_t node; /* that contains begin; 0: none */
} candidate;

static bool is_better(const candidate *one, const candidate *other)
{
    if (!other->node || one->unbacked != other->unbacked)
        return !other->node || one->unbacked < other->unbacked;
    return one->run != other->run ? one->run < other->run : one->begin < other->begin;
}

/* Compares the place at `begin`, in or above the node `from`. */
static void consider_up(const qi_segregated *s, uint32_t from, uint64_t begin, uint64_t size,
                        uint64_t run, candidate *best)
{
    candidate c = {.begin = begin, .end = begin + size, .run = run};
    while (has_no_user(s, from) && qi_node_end(&s->nodes[from]) <= begin)
        from = s->nodes[from].after;
    if (!has_no_user(s, from) || !weigh(s, from, &c.begin, &c.end, &c.unbacked))
        return;
    c.node = from;
    if (is_better(&c, best))
        *best = c;
}

/* Compares the place at `begin`, in or below the node `from`. */
static void consider_down(const qi_segregated *s, uint32_t from, uint64_t begin, uint64_t size,
                          uint64_t run, candidate *best)
{
    while (has_no_user(s, from) && s->nodes[from].offset > begin)
        from = s->nodes[from].before;
    if (has_no_user(s, from))
        consider_up(s, from, begin, size, run, best);
}

/* The two places at a hole: as low and as high as its free neighbours allow. */
static void consider_hole(const qi_segregated *s, uint32_t hole, uint64_t size, uint64_t align_mask,
                          candidate *best)
{
    const qi_node *node = &s->nodes[hole];
    uint32_t low = qi_node_is_free(s, node->before) ? node->before : hole;
    uint32_t high = qi_node_is_free(s, node->after) ? node->after : hole;
    uint64_t begin = (s->nodes[low].offset + align_mask) & ~align_mask;
    uint64_t end = qi_node_end(&s->nodes[high]), run = end - s->nodes[low].offset;
    consider_up(s, low, begin, size, run, best);
    if (size <= end)
        consider_down(s, high, (end - size) & ~align_mask, size, run, best);
}

bool qi_segregated_find_window(const quire_space *space, uint64_t size, uint64_t alignment,
                               qi_window *window)
{
    const qi_segregated *s = qi_segregated_of_const(space);
    uint64_t granules = ((size - 1) >> s->granule_shift) + 1;
    candidate best = {0};
    for (uint32_t i = s->first_hole; i; i = s->nodes[i].next)
        consider_hole(s, i, granules, (alignment - 1) >> s->granule_shift, &best);
    if (!best.node)
        return false;
    uint32_t region = qi_node_region(&s->nodes[best.node]);
    *window = (qi_window){.region = region,
                          .node = best.node,
                          .offset = best.begin * space->granule - space->regions[region].start,
                          .size = (best.end - best.begin) * space->granule,
                          .unbacked = best.unbacked * space->granule};
    return true;
}

/* A window of bytes of a hole alone, from `begin` granules on. */
static qi_window window_in_hole(const qi_segregated *s, uint32_t hole, uint64_t begin,
                                uint64_t size)
{
    const uint32_t region = qi_node_region(&s->nodes[hole]);
    return (qi_window){.region = region,
                       .node = hole,
                       .offset = begin * s->space.granule - s->space.regions[region].start,
                       .size = size,
                       .unbacked = size};
}

bool qi_segregated_find_hole(const quire_space *space, uint64_t size, qi_window *window)
{
    const qi_segregated *s = qi_segregated_of_const(space);
    uint32_t largest = s->first_hole;
    for (uint32_t i = largest; i; i = s->nodes[i].next)
        if (s->nodes[i].size > s->nodes[largest].size)
            largest = i;
    if (!largest)
        return false;
    const qi_node *node = &s->nodes[largest];
    const uint64_t chunk = s->chunk * space->granule, bytes = node->size * space->granule;
    const uint64_t wanted = size > bytes - chunk ? bytes : (size - 1) / chunk * chunk + chunk;
    *window = window_in_hole(s, largest, node->offset, wanted);
    return true;
}

quire_result qi_segregated_reserve_window(quire_space *space, qi_window *window)
{
    qi_segregated *s = qi_segregated_of(space);
    uint64_t start = space->regions[window->region].start;
    uint64_t begin = (start + window->offset) >> s->granule_shift;
    uint64_t end = begin + (window->size >> s->granule_shift);
    quire_result result = qi_segregated_reserve(s, 2);
    if (result)
        return result;
    if (s->nodes[window->node].offset < begin)
        window->node = qi_node_split(s, window->node, begin);
    for (uint32_t i = window->node; s->nodes[i].offset < end && s->nodes[i].size;
         i = s->nodes[i].after) {
        if (qi_node_end(&s->nodes[i]) > end)
            qi_node_split(s, i, end);
        qi_piece_reserve(s, i);
    }
    return QUIRE_SUCCESS;
}

/* The end of a window: its pieces are adjacent, and no other node is reserved and touches them. */
static uint64_t window_end(const qi_segregated *s, const qi_window *window)
{
    return (s->space.regions[window->region].start + window->offset + window->size) >>
           s->granule_shift;
}

static bool has_memory(const qi_node *piece)
{
    return qi_piece_of(piece) != QI_PIECE_HOLE && qi_piece_of(piece) != QI_PIECE_ASLEEP;
}

/* Makes the pieces of a window free: all of them, or those that were backed before. */
static void end_window(qi_segregated *s, const qi_window *window, bool is_backed)
{
    uint64_t end = window_end(s, window);
    for (uint32_t i = window->node, after; qi_node_is_reserved(s, i) && s->nodes[i].offset < end;
         i = after) {
        after = s->nodes[i].after;
        if (is_backed || has_memory(&s->nodes[i])) {
            qi_hole_release(s, i);
            continue;
        }
        qi_hole_clear_mark(s, i);
        qi_hole_make(s, i);
    }
}

void qi_segregated_open_window(quire_space *space, const qi_window *window)
{
    end_window(qi_segregated_of(space), window, true);
}

void qi_segregated_close_window(quire_space *space, const qi_window *window)
{
    end_window(qi_segregated_of(space), window, false);
}

bool qi_segregated_next_piece(const quire_space *space, const qi_window *window, qi_piece piece,
                              qi_chunk_run *run)
{
    const qi_segregated *s = qi_segregated_of_const(space);
    uint64_t end = window_end(s, window);
    uint64_t start = space->regions[window->region].start;
    uint64_t from = (start + run->offset + run->size) >> s->granule_shift;
    for (uint32_t i = window->node; qi_node_is_reserved(s, i) && s->nodes[i].offset < end;
         i = s->nodes[i].after) {
        const qi_node *node = &s->nodes[i];
        if (node->offset < from || qi_piece_of(node) != piece)
            continue;
        *run = (qi_chunk_run){.region = window->region,
                              .offset = node->offset * space->granule - start,
                              .size = node->size * space->granule};
        return true;
    }
    return false;
}

/* ---- kept windows ------------------------------------------------------------------------- */

/* The first place in a hole with chunks at `alignment` granules; the end of the hole if it has
   none. */
static uint64_t place_in_hole(const qi_segregated *s, const qi_node *hole, uint64_t alignment)
{
    uint64_t begin = hole->offset;
    for (uint64_t steps = alignment / s->chunk; begin % alignment; steps--, begin += s->chunk)
        if (!steps || begin >= qi_node_end(hole))
            return qi_node_end(hole);
    return begin;
}

bool qi_segregated_find_room(const quire_space *space, uint64_t size, uint64_t alignment,
                             qi_window *window)
{
    const qi_segregated *s = qi_segregated_of_const(space);
    const uint64_t granules = size >> s->granule_shift;
    const uint64_t multiple = ((alignment - 1) >> s->granule_shift) + 1;
    uint32_t least = 0;
    for (uint32_t i = s->first_hole; i; i = s->nodes[i].next)
        if (place_in_hole(s, &s->nodes[i], multiple) + granules <= qi_node_end(&s->nodes[i]) &&
            (!least || s->nodes[i].size < s->nodes[least].size))
            least = i;
    if (!least)
        return false;
    *window = window_in_hole(s, least, place_in_hole(s, &s->nodes[least], multiple), size);
    return true;
}

void qi_segregated_keep_window(quire_space *space, const qi_window *window, uint32_t user)
{
    qi_segregated *s = qi_segregated_of(space);
    uint64_t end = window_end(s, window);
    for (uint32_t i = window->node; qi_node_is_reserved(s, i) && s->nodes[i].offset < end;
         i = s->nodes[i].after)
        qi_piece_set_user(&s->nodes[i], user + 1, 0);
}

/* Cuts a piece in two. Returns the upper one. Requires a spare number. */
static uint32_t split_piece(qi_segregated *s, uint32_t number, uint64_t at)
{
    uint32_t rest = qi_node_insert_rest(s, number, at);
    qi_node *node = &s->nodes[number];
    node->size = (uint32_t)at - node->offset;
    qi_piece_set_user(&s->nodes[rest], node->next, node->back);
    qi_piece_mark(s, rest, qi_piece_of(node));
    s->space.hole_nodes++;
    return rest;
}

quire_result qi_segregated_part_of_window(quire_space *space, const qi_window *window,
                                          uint64_t offset, uint64_t size, qi_window *part)
{
    qi_segregated *s = qi_segregated_of(space);
    const uint64_t start = space->regions[window->region].start;
    const uint64_t begin = (start + offset) >> s->granule_shift;
    const uint64_t end = begin + (size >> s->granule_shift);
    quire_result result = qi_segregated_reserve(s, 2);
    if (result)
        return result;
    uint32_t first = window->node;
    while (qi_node_end(&s->nodes[first]) <= begin)
        first = s->nodes[first].after;
    if (s->nodes[first].offset < begin)
        first = split_piece(s, first, begin);
    uint32_t last = first;
    while (qi_node_end(&s->nodes[last]) < end)
        last = s->nodes[last].after;
    if (qi_node_end(&s->nodes[last]) > end)
        split_piece(s, last, end);
    *part = (qi_window){.region = window->region, .node = first, .offset = offset, .size = size};
    return QUIRE_SUCCESS;
}

/* Whether two adjacent nodes are pieces of one kept window and alike. */
static bool is_alike(const qi_segregated *s, uint32_t number, uint32_t after)
{
    const qi_node *one = &s->nodes[number], *other = &s->nodes[after];
    return qi_node_is_reserved(s, number) && qi_node_is_reserved(s, after) &&
           one->owner == other->owner && qi_node_user(one) == qi_node_user(other);
}

/* The lower node stays, so that a kept window keeps its first one. */
static void merge_with_next(qi_segregated *s, uint32_t number)
{
    uint32_t after = s->nodes[number].after;
    s->nodes[number].size += s->nodes[after].size;
    qi_hole_clear_mark(s, after);
    qi_node_leave_ring(s, after);
    qi_node_give(s, after);
    s->space.hole_nodes--;
}

/* Merges the pieces of a part with those beside them that are alike. */
static void merge_pieces(qi_segregated *s, const qi_window *part)
{
    const uint64_t end = window_end(s, part);
    uint32_t i = s->nodes[part->node].before;
    if (!is_alike(s, i, part->node))
        i = part->node;
    while (qi_node_is_reserved(s, i) && s->nodes[i].offset < end)
        if (is_alike(s, i, s->nodes[i].after))
            merge_with_next(s, i);
        else
            i = s->nodes[i].after;
}

/* The pieces of one kind, and of one point, 0: of any, become those of another kind and point. */
static void change_pieces(qi_segregated *s, const qi_window *part, qi_piece from,
                          uint32_t from_point, qi_piece to, uint32_t to_point)
{
    const uint64_t end = window_end(s, part);
    for (uint32_t i = part->node; qi_node_is_reserved(s, i) && s->nodes[i].offset < end;
         i = s->nodes[i].after) {
        qi_node *node = &s->nodes[i];
        if (qi_piece_of(node) != from || (from_point && node->back != from_point))
            continue;
        qi_piece_mark(s, i, to);
        qi_piece_set_user(node, node->next, to_point);
    }
    merge_pieces(s, part);
}

void qi_segregated_mark_pieces(quire_space *space, const qi_window *part, qi_piece from,
                               qi_piece to)
{
    change_pieces(qi_segregated_of(space), part, from, 0, to, 0);
}

void qi_segregated_mark_waiting(quire_space *space, const qi_window *part, uint32_t number)
{
    change_pieces(qi_segregated_of(space), part, QI_PIECE_LEAVING, 0, QI_PIECE_WAITING, number);
}

void qi_segregated_end_waiting(quire_space *space, const qi_window *window, uint32_t number)
{
    change_pieces(qi_segregated_of(space), window, QI_PIECE_WAITING, number, QI_PIECE_LEAVING, 0);
}
