/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * search.c - the depth-first search.
 *
 * State: the *floor* of each section, the lowest offset that is still usable in it; the sum of the
 * rooms of its unplaced ranges; the lowest offset of each unplaced range. Ranges are placed in the
 * order of their offsets, so that the search reaches every plan in one order only. A plan is
 * looked for in which no range could lie lower while those below it stay.
 *
 * A node takes a section with the lowest floor. Either one of its ranges begins at this floor, or
 * none does, and the floor rises to the lowest offset at which one still can begin. Floors raise
 * lowest offsets, and these raise the floors of other sections, until nothing changes. A section
 * whose floor and unplaced rooms exceed the capacity fails the node; so does a range that would end
 * above the capacity.
 *
 * Sections that no unplaced range connects are goals of their own. They are reached one after the
 * other, and a goal that was reached is not tried in another way when a later one fails.
 *
 * A try ends after a number of nodes, and the next begins with another order of the ranges: most
 * orders fail early or never. The frames of the search are on a stack of its own, because their
 * number is that of the ranges and raised floors.
 */
#include "src/plan/search.h"

#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"

enum { MOST_RANGES = 3000, MOST_VISITS = 200000 };

/* Sections from low until before high that unplaced ranges, or pairs to keep apart, connect. The
   first has an unplaced range. */
typedef struct goal {
    uint32_t low, high;
} goal;

typedef struct frame {
    goal goal;
    uint32_t section; /* whose floor is the lowest */
    uint64_t floor;
    /* the ranges that can begin at the floor: choices[first_choice] and those after it */
    uint32_t first_choice, choice_count, next_choice;
    bool may_raise;           /* the choice that none begins there is left */
    uint32_t first_goal;      /* goals from there on are those that the present choice left */
    uint32_t changes, placed; /* when the frame began */
} frame;

/* A value before it was changed. */
typedef struct change {
    uint64_t *where, was;
} change;

struct qi_plan_search {
    const qi_plan_line *line;
    qi_plan_sorter *sorter;
    qi_host *host;
    uint64_t capacity; /* of the ends of ranges */
    uint64_t ceiling;  /* of floors and rooms: the capacity, rounded up to the grain */
    uint32_t rule;     /* which of the sections with the lowest floor: see is_better */

    /* of sections */
    uint64_t *floors, *bytes; /* bytes: the rooms of unplaced ranges */
    uint32_t *unplaced;       /* their number */
    uint32_t *bridges; /* unplaced ranges, and pairs to keep apart, that reach the next one */
    uint32_t *starts, *members; /* the ranges of section s: from starts[s] until starts[s + 1] */
    uint32_t visits;            /* their number in sum */

    /* of ranges */
    uint64_t *lowest, *offsets;
    uint32_t *ranks; /* place in the order */
    bool *is_placed;
    uint32_t *order;

    /* sections whose floor rose, and those of which a range's lowest offset rose */
    uint32_t *risen, *doubtful;
    bool *is_risen, *is_doubtful;
    uint32_t risen_count, doubtful_count;

    change *changes;
    frame *frames;
    goal *goals;
    uint32_t *choices, *placed;
    uint32_t change_count, frame_count, goal_count, choice_count, placed_count;
    uint32_t change_room, frame_room, goal_room, choice_room;

    uint64_t steps;
    bool is_out_of_memory;
};

/* ---- changes ------------------------------------------------------------------------------- */

/* Makes room for one more element of a stack. */
static bool has_room(qi_plan_search *s, void *stack_address, uint32_t count, uint32_t *room,
                     size_t size)
{
    if (count < *room)
        return true;
    void *stack, *larger;
    memcpy(&stack, stack_address, sizeof stack);
    uint32_t wanted = *room ? 2 * *room : 256;
    larger = qi_host_resize(s->host, stack, *room, wanted, size);
    if (!larger) {
        s->is_out_of_memory = true;
        return false;
    }
    memcpy(stack_address, &larger, sizeof larger);
    *room = wanted;
    return true;
}

static void set(qi_plan_search *s, uint64_t *where, uint64_t value)
{
    if (has_room(s, &s->changes, s->change_count, &s->change_room, sizeof(change)))
        s->changes[s->change_count++] = (change){where, *where};
    *where = value;
}

static void raise_floor(qi_plan_search *s, uint32_t section, uint64_t floor)
{
    set(s, &s->floors[section], floor);
    if (!s->is_risen[section]) {
        s->is_risen[section] = true;
        s->risen[s->risen_count++] = section;
    }
}

static void doubt(qi_plan_search *s, uint32_t section)
{
    if (!s->is_doubtful[section]) {
        s->is_doubtful[section] = true;
        s->doubtful[s->doubtful_count++] = section;
    }
}

/* Returns false if the range then ends above the capacity. */
static bool raise_lowest(qi_plan_search *s, uint32_t i, uint64_t offset)
{
    const qi_plan_range *range = &s->line->ranges[i];
    uint64_t lowest = qi_plan_lift(s->line, range, offset);
    set(s, &s->lowest[i], lowest);
    for (uint32_t k = range->begin; k < range->end; k++)
        if (s->floors[k] < lowest)
            doubt(s, k);
    s->steps += range->end - range->begin;
    return lowest + range->size <= range->high && lowest + range->size <= s->capacity;
}

/* The floor of a section raises the lowest offsets of its ranges. */
static bool raise_members(qi_plan_search *s, uint32_t section)
{
    const uint64_t floor = s->floors[section];
    if (s->unplaced[section] && floor + s->bytes[section] > s->ceiling)
        return false;
    for (uint32_t k = s->starts[section]; k < s->starts[section + 1]; k++) {
        uint32_t i = s->members[k];
        if (!s->is_placed[i] && s->lowest[i] < floor && !raise_lowest(s, i, floor))
            return false;
    }
    s->steps += s->starts[section + 1] - s->starts[section];
    return true;
}

/* The floor of a section is at least the least of the lowest offsets of its ranges. */
static bool raise_doubtful(qi_plan_search *s, uint32_t section)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t k = s->starts[section]; k < s->starts[section + 1]; k++) {
        uint32_t i = s->members[k];
        if (!s->is_placed[i] && s->lowest[i] < least) {
            least = s->lowest[i];
            if (least <= s->floors[section])
                return true;
        }
    }
    s->steps += s->starts[section + 1] - s->starts[section];
    if (least == UINT64_MAX)
        return true;
    raise_floor(s, section, least);
    return least + s->bytes[section] <= s->ceiling;
}

/* Returns false if no plan within the capacity is left. */
static bool propagate(qi_plan_search *s)
{
    bool is_possible = true;
    while (s->risen_count || s->doubtful_count) {
        while (s->risen_count) {
            uint32_t section = s->risen[--s->risen_count];
            s->is_risen[section] = false;
            is_possible = is_possible && raise_members(s, section);
        }
        while (s->doubtful_count) {
            uint32_t section = s->doubtful[--s->doubtful_count];
            s->is_doubtful[section] = false;
            is_possible = is_possible && raise_doubtful(s, section);
        }
    }
    return is_possible;
}

/* ---- placing ------------------------------------------------------------------------------- */

/* Calls for each pair of a range with an unplaced one that it is kept apart from: the sections
   between them are connected. */
static void connect(qi_plan_search *s, uint32_t i, bool is_connected)
{
    const qi_plan_line *line = s->line;
    if (!line->apart)
        return;
    const qi_plan_range *a = &line->ranges[i];
    for (uint32_t k = line->apart_starts[i]; k < line->apart_starts[i + 1]; k++) {
        const qi_plan_range *b = &line->ranges[line->apart[k]];
        if (s->is_placed[line->apart[k]])
            continue;
        uint32_t low = a->begin < b->begin ? a->begin : b->begin;
        uint32_t high = a->end > b->end ? a->end : b->end;
        for (uint32_t section = low; section + 1 < high; section++)
            s->bridges[section] += is_connected ? 1u : UINT32_MAX;
    }
}

/* Removes a range from the unplaced ones of its sections, or returns it to them. */
static void count(qi_plan_search *s, uint32_t i, bool is_placed)
{
    const qi_plan_range *range = &s->line->ranges[i];
    const uint32_t by = is_placed ? UINT32_MAX : 1u;
    s->is_placed[i] = is_placed;
    for (uint32_t k = range->begin; k < range->end; k++) {
        s->bytes[k] += is_placed ? UINT64_C(0) - range->room : range->room;
        s->unplaced[k] += by;
        if (k + 1 < range->end)
            s->bridges[k] += by;
    }
    connect(s, i, !is_placed);
    s->steps += range->end - range->begin;
}

/* Places a range at an offset. Returns false if no plan is left. */
static bool place(qi_plan_search *s, uint32_t i, uint64_t offset)
{
    const qi_plan_line *line = s->line;
    const qi_plan_range *range = &line->ranges[i];
    const uint64_t end = offset + range->room;
    bool is_possible = true;
    s->offsets[i] = offset;
    s->placed[s->placed_count++] = i;
    count(s, i, true);
    for (uint32_t k = range->begin; k < range->end; k++) {
        if (s->unplaced[k])
            raise_floor(s, k, end);
        else
            set(s, &s->floors[k], end);
    }
    for (uint32_t k = line->apart ? line->apart_starts[i] : 0;
         line->apart && k < line->apart_starts[i + 1]; k++) {
        uint32_t other = line->apart[k];
        if (!s->is_placed[other] && s->lowest[other] < end)
            is_possible = raise_lowest(s, other, end) && is_possible;
    }
    return propagate(s) && is_possible;
}

static void undo(qi_plan_search *s, uint32_t changes, uint32_t placed)
{
    s->steps += s->change_count - changes;
    while (s->change_count > changes) {
        const change *c = &s->changes[--s->change_count];
        *c->where = c->was;
    }
    while (s->placed_count > placed)
        count(s, s->placed[--s->placed_count], false);
}

/* ---- choices ------------------------------------------------------------------------------- */

/*
 * Whether a section is to be taken before another with the same floor, which comes before it. What
 * the rules are: the least slack, the first, the last.
 */
static bool is_better(const qi_plan_search *s, uint32_t section, uint32_t than)
{
    if (s->floors[section] != s->floors[than])
        return s->floors[section] < s->floors[than];
    return s->rule == 0 ? s->bytes[section] > s->bytes[than] : s->rule == 2;
}

static void add_choice(qi_plan_search *s, frame *f, uint32_t i)
{
    if (!has_room(s, &s->choices, s->choice_count, &s->choice_room, sizeof(uint32_t)))
        return;
    uint32_t at = s->choice_count++;
    f->choice_count++;
    for (; at > f->first_choice && s->ranks[s->choices[at - 1]] > s->ranks[i]; at--)
        s->choices[at] = s->choices[at - 1];
    s->choices[at] = i;
}

/* Pushes the frame of a goal. Returns false if host memory is exhausted. */
static bool open_goal(qi_plan_search *s, goal g)
{
    if (!has_room(s, &s->frames, s->frame_count, &s->frame_room, sizeof(frame)))
        return false;
    frame *f = &s->frames[s->frame_count++];
    *f = (frame){.goal = g,
                 .section = g.low,
                 .first_choice = s->choice_count,
                 .may_raise = true,
                 .first_goal = s->goal_count,
                 .changes = s->change_count,
                 .placed = s->placed_count};
    for (uint32_t k = g.low + 1; k < g.high; k++)
        if (s->unplaced[k] && is_better(s, k, f->section))
            f->section = k;
    f->floor = s->floors[f->section];
    for (uint32_t k = s->starts[f->section]; k < s->starts[f->section + 1]; k++) {
        uint32_t i = s->members[k];
        if (!s->is_placed[i] && s->lowest[i] == f->floor)
            add_choice(s, f, i);
    }
    s->steps += g.high - g.low + s->starts[f->section + 1] - s->starts[f->section];
    return !s->is_out_of_memory;
}

/* Pushes the goals that are left of one, those of few sections last: they are taken first. */
static void split(qi_plan_search *s, goal whole)
{
    const uint32_t first = s->goal_count;
    for (uint32_t low = whole.low, k = whole.low; k < whole.high; k++) {
        if (k + 1 < whole.high && s->bridges[k])
            continue;
        goal part = {low, k + 1};
        low = k + 1;
        if (part.low == k && !s->unplaced[k])
            continue;
        if (!has_room(s, &s->goals, s->goal_count, &s->goal_room, sizeof(goal)))
            return;
        uint32_t at = s->goal_count++;
        for (; at > first && s->goals[at - 1].high - s->goals[at - 1].low < part.high - part.low;
             at--)
            s->goals[at] = s->goals[at - 1];
        s->goals[at] = part;
    }
    s->steps += whole.high - whole.low;
}

static bool is_apart(const qi_plan_line *line, uint32_t i)
{
    return line->apart && line->apart_starts[i] < line->apart_starts[i + 1];
}

/* Whether an earlier choice was the same in all but its number. */
static bool is_repeated(const qi_plan_search *s, const frame *f, uint32_t which)
{
    const uint32_t *choices = &s->choices[f->first_choice];
    const qi_plan_range *a = &s->line->ranges[choices[which]];
    for (uint32_t k = 0; k < which; k++) {
        const qi_plan_range *b = &s->line->ranges[choices[k]];
        if (a->begin == b->begin && a->end == b->end && a->size == b->size &&
            a->alignment == b->alignment && a->low == b->low && a->high == b->high &&
            !is_apart(s->line, choices[which]) && !is_apart(s->line, choices[k]))
            return true;
    }
    return false;
}

/* Whether nothing is left that a placed range could be in the way of. */
static bool is_alone(const qi_plan_search *s, uint32_t i)
{
    const qi_plan_range *range = &s->line->ranges[i];
    for (uint32_t k = range->begin; k < range->end; k++)
        if (s->unplaced[k])
            return false;
    return !is_apart(s->line, i);
}

/* The least offset at which a range that does not begin at the floor of `section` can lie on
   another that does not live there; UINT64_MAX if there is none. */
static uint64_t next_rest(qi_plan_search *s, uint32_t i, uint32_t section)
{
    const qi_plan_line *line = s->line;
    const qi_plan_range *range = &line->ranges[i];
    uint64_t least = UINT64_MAX;
    for (uint32_t k = range->begin; k < range->end; k++) {
        for (uint32_t m = s->starts[k]; m < s->starts[k + 1] && k != section; m++) {
            uint32_t other = s->members[m];
            const qi_plan_range *below = &line->ranges[other];
            if (s->is_placed[other] || (below->begin <= section && section < below->end))
                continue;
            uint64_t end = s->lowest[other] + below->room;
            least = end < least ? end : least;
        }
        s->steps += s->starts[k + 1] - s->starts[k];
    }
    for (uint32_t k = line->apart ? line->apart_starts[i] : 0;
         line->apart && k < line->apart_starts[i + 1]; k++) {
        uint64_t end = s->lowest[line->apart[k]] + line->ranges[line->apart[k]].room;
        least = !s->is_placed[line->apart[k]] && end < least ? end : least;
    }
    return least == UINT64_MAX ? least : qi_plan_lift(line, range, least);
}

/* None of the section begins at its floor. Returns false if no plan is left, or if each that is
   left has a plan with such a range beside it. */
static bool raise_section(qi_plan_search *s, const frame *f)
{
    uint64_t next = UINT64_MAX;
    for (uint32_t k = s->starts[f->section]; k < s->starts[f->section + 1]; k++) {
        uint32_t i = s->members[k];
        if (s->is_placed[i])
            continue;
        uint64_t offset = s->lowest[i] == f->floor ? next_rest(s, i, f->section) : s->lowest[i];
        next = offset < next ? offset : next;
    }
    if (next == UINT64_MAX || next + s->bytes[f->section] > s->ceiling)
        return false;
    /* a range of this section alone that ends by then could as well begin at the floor */
    for (uint32_t k = 0; k < f->choice_count; k++) {
        uint32_t i = s->choices[f->first_choice + k];
        const qi_plan_range *range = &s->line->ranges[i];
        if (range->end - range->begin == 1 && f->floor + range->room <= next &&
            !is_apart(s->line, i))
            return false;
    }
    raise_floor(s, f->section, next);
    return propagate(s);
}

/* ---- the search ---------------------------------------------------------------------------- */

/* Takes the next choice of the frame on top, and pushes its goals. Returns false if there is none
   that leaves a plan. */
static bool advance(qi_plan_search *s)
{
    frame *f = &s->frames[s->frame_count - 1];
    s->goal_count = f->first_goal;
    while (f->next_choice < f->choice_count) {
        undo(s, f->changes, f->placed);
        uint32_t which = f->next_choice++, i = s->choices[f->first_choice + which];
        if (is_repeated(s, f, which))
            continue;
        bool is_possible = place(s, i, f->floor);
        if (is_alone(s, i)) {
            f->next_choice = f->choice_count;
            f->may_raise = false;
        }
        if (is_possible) {
            split(s, f->goal);
            return true;
        }
    }
    undo(s, f->changes, f->placed);
    if (!f->may_raise)
        return false;
    f->may_raise = false;
    if (raise_section(s, f) && has_room(s, &s->goals, s->goal_count, &s->goal_room, sizeof(goal))) {
        s->goals[s->goal_count++] = f->goal;
        return true;
    }
    undo(s, f->changes, f->placed);
    return false;
}

static void pop_frame(qi_plan_search *s)
{
    const frame *f = &s->frames[--s->frame_count];
    s->choice_count = f->first_choice;
    s->goal_count = f->first_goal;
}

/* The frame on top has no choice left: the ones below it take their next. */
static bool back_up(qi_plan_search *s)
{
    do {
        pop_frame(s);
        if (!s->frame_count)
            return false;
    } while (!advance(s));
    return true;
}

/* Visits at most `nodes` nodes; *nodes is what is left of them. */
static qi_plan_outcome run_try(qi_plan_search *s, uint64_t *nodes, qi_plan_effort *effort)
{
    const goal whole = {0, s->line->section_count};
    if (!has_room(s, &s->frames, 0, &s->frame_room, sizeof(frame)))
        return QI_PLAN_STOPPED;
    s->frames[s->frame_count++] = (frame){.goal = whole}; /* it has no choice */
    split(s, whole);
    while (s->frame_count) {
        frame *f = &s->frames[s->frame_count - 1];
        if (s->goal_count == f->first_goal) {
            pop_frame(s); /* all its goals are reached */
            continue;
        }
        bool goes_on = *nodes > 0 && qi_plan_spend(effort, s->steps);
        s->steps = 0;
        goal next = s->goals[--s->goal_count];
        if (!goes_on || !open_goal(s, next))
            return QI_PLAN_STOPPED;
        --*nodes;
        if (!advance(s) && !back_up(s))
            return s->is_out_of_memory ? QI_PLAN_STOPPED : QI_PLAN_IMPOSSIBLE;
        if (s->is_out_of_memory)
            return QI_PLAN_STOPPED;
    }
    return QI_PLAN_FOUND;
}

/* The numbers of Luby, Sinclair and Zuckerman: 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ... */
static uint64_t luby(uint64_t i)
{
    for (;;) {
        uint32_t bits = qi_highest_bit(i) + 1;
        uint64_t full = (UINT64_C(1) << bits) - 1;
        if (i == full)
            return UINT64_C(1) << (bits - 1);
        i -= full >> 1;
    }
}

static const qi_plan_key ORDERS[][QI_PLAN_KEYS] = {
    {QI_PLAN_KEY_LOAD, QI_PLAN_KEY_LIFETIME, QI_PLAN_KEY_AREA},
    {QI_PLAN_KEY_LOAD, QI_PLAN_KEY_AREA, QI_PLAN_KEY_SECTIONS},
    {QI_PLAN_KEY_LOAD, QI_PLAN_KEY_SIZE},
    {QI_PLAN_KEY_SIZE_BITS, QI_PLAN_KEY_SECTIONS},
    {QI_PLAN_KEY_LATE},
    {QI_PLAN_KEY_LIFETIME, QI_PLAN_KEY_AREA, QI_PLAN_KEY_LOAD},
    {QI_PLAN_KEY_LATE_END},
    {QI_PLAN_KEY_EARLY},
    {QI_PLAN_KEY_LIFETIME_BITS, QI_PLAN_KEY_SIZE},
};

enum { ORDER_COUNT = sizeof ORDERS / sizeof *ORDERS, RULES = 3 };

quire_result qi_plan_search_run(qi_plan_search *s, uint64_t capacity, uint64_t nodes,
                                uint32_t *next_try, uint64_t *random, qi_plan_effort *effort,
                                uint64_t *offsets, qi_plan_outcome *outcome)
{
    const uint32_t round = ORDER_COUNT * RULES;
    const uint64_t unit = 1000 + 2 * s->line->count;
    s->capacity = capacity;
    s->ceiling = qi_plan_align(capacity, s->line->grain);
    *outcome = s->line->bound > capacity ? QI_PLAN_IMPOSSIBLE : QI_PLAN_STOPPED;
    for (uint64_t visited = 0;
         *outcome == QI_PLAN_STOPPED && visited < nodes && !effort->is_over;) {
        uint32_t number = (*next_try)++;
        qi_plan_sort(s->sorter, ORDERS[number % ORDER_COUNT], number < round ? NULL : random,
                     s->order);
        for (uint32_t i = 0; i < s->line->count; i++)
            s->ranks[s->order[i]] = i;
        s->rule = number / ORDER_COUNT % RULES;
        uint64_t most = unit * luby(number / round + 1), left = most;
        *outcome = run_try(s, &left, effort);
        visited += most - left;
        if (*outcome == QI_PLAN_FOUND)
            memcpy(offsets, s->offsets, s->line->count * sizeof *offsets);
        s->frame_count = s->goal_count = s->choice_count = 0;
        undo(s, 0, 0);
        if (s->is_out_of_memory)
            return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a plan");
    }
    return QUIRE_SUCCESS;
}

/* ---- making -------------------------------------------------------------------------------- */

static uint64_t count_visits(const qi_plan_line *line)
{
    uint64_t visits = 0;
    for (uint32_t i = 0; i < line->count; i++)
        visits += line->ranges[i].end - line->ranges[i].begin;
    return visits;
}

bool qi_plan_can_search(const qi_plan_line *line)
{
    return line->count <= MOST_RANGES && count_visits(line) <= MOST_VISITS;
}

static void list_members(qi_plan_search *s)
{
    const qi_plan_line *line = s->line;
    for (uint32_t i = 0; i < line->count; i++)
        for (uint32_t k = line->ranges[i].begin; k < line->ranges[i].end; k++)
            s->starts[k]++;
    for (uint32_t k = 0; k < line->section_count; k++)
        s->starts[k + 1] += s->starts[k];
    for (uint32_t i = line->count; i-- > 0;)
        for (uint32_t k = line->ranges[i].begin; k < line->ranges[i].end; k++)
            s->members[--s->starts[k]] = i;
}

/* All ranges are unplaced, at their lowest offsets. */
static void begin(qi_plan_search *s)
{
    const qi_plan_line *line = s->line;
    s->capacity = s->ceiling = UINT64_MAX;
    list_members(s);
    memset(s->is_placed, true, line->count);
    for (uint32_t i = 0; i < line->count; i++)
        count(s, i, false);
    for (uint32_t i = 0; i < line->count; i++)
        raise_lowest(s, i, 0);
    propagate(s);
    s->change_count = 0;
}

/* One of the arrays with a fixed number of elements. */
typedef struct array {
    void *address; /* of the pointer */
    uint64_t count;
    size_t size;
} array;

enum { ARRAYS = 16 };

static void list_arrays(qi_plan_search *s, array arrays[ARRAYS])
{
    const uint64_t ranges = s->line->count, sections = s->line->section_count;
    const array all[ARRAYS] = {
        {&s->floors, sections, sizeof *s->floors},
        {&s->bytes, sections, sizeof *s->bytes},
        {&s->unplaced, sections, sizeof *s->unplaced},
        {&s->bridges, sections, sizeof *s->bridges},
        {&s->starts, sections + 1, sizeof *s->starts},
        {&s->members, s->visits, sizeof *s->members},
        {&s->lowest, ranges, sizeof *s->lowest},
        {&s->offsets, ranges, sizeof *s->offsets},
        {&s->ranks, ranges, sizeof *s->ranks},
        {&s->is_placed, ranges, sizeof *s->is_placed},
        {&s->order, ranges, sizeof *s->order},
        {&s->placed, ranges, sizeof *s->placed},
        {&s->risen, sections, sizeof *s->risen},
        {&s->doubtful, sections, sizeof *s->doubtful},
        {&s->is_risen, sections, sizeof *s->is_risen},
        {&s->is_doubtful, sections, sizeof *s->is_doubtful},
    };
    memcpy(arrays, all, sizeof all);
}

qi_plan_search *qi_plan_search_make(const qi_plan_line *line, qi_plan_sorter *sorter, qi_host *host)
{
    qi_plan_search *s = qi_host_allocate(host, 1, sizeof *s);
    if (!s)
        return NULL;
    *s = (qi_plan_search){.line = line, .sorter = sorter, .host = host};
    s->visits = (uint32_t)count_visits(line);
    array arrays[ARRAYS];
    list_arrays(s, arrays);
    bool has_memory = true;
    for (int i = 0; i < ARRAYS; i++) {
        void *made = qi_host_allocate(host, arrays[i].count, arrays[i].size);
        memcpy(arrays[i].address, &made, sizeof made);
        has_memory = has_memory && made;
    }
    if (has_memory)
        begin(s);
    if (!has_memory || s->is_out_of_memory) {
        qi_plan_search_release(s);
        return NULL;
    }
    return s;
}

void qi_plan_search_release(qi_plan_search *s)
{
    if (!s)
        return;
    qi_host *host = s->host;
    array arrays[ARRAYS];
    list_arrays(s, arrays);
    for (int i = 0; i < ARRAYS; i++) {
        void *made;
        memcpy(&made, arrays[i].address, sizeof made);
        qi_host_release(host, made, arrays[i].count, arrays[i].size);
    }
    qi_host_release(host, s->changes, s->change_room, sizeof *s->changes);
    qi_host_release(host, s->frames, s->frame_room, sizeof *s->frames);
    qi_host_release(host, s->goals, s->goal_room, sizeof *s->goals);
    qi_host_release(host, s->choices, s->choice_room, sizeof *s->choices);
    qi_host_release(host, s, 1, sizeof *s);
}
