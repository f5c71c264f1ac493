/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * problem.c - the plan of a problem: its units on lines, one line after the other.
 *
 * Arenas between which an item may choose are one line: those with a capacity in their order, then
 * the first one without. Every other arena is a line of its own.
 */
#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/base/system.h"
#include "src/plan/search.h"
#include "src/plan/solve.h"
#include "src/plan/units.h"

static const uint32_t NOWHERE = UINT32_MAX;

typedef struct planner {
    const quire_plan_problem *problem;
    qi_host *host;
    uint64_t seed;
    qi_plan_units units;
    qi_plan_effort effort;
    uint32_t arena_count;
    uint64_t *peaks;   /* of each arena */
    uint64_t bound;    /* sum over the lines */
    uint64_t *offsets; /* of each unit in its arena */
    uint32_t *arenas;  /* of each unit, from 0 */
    uint32_t *chosen;  /* of each unit the arena, from 1, while a division is tried; NULL else */
    /* the present line */
    qi_plan_line line;
    uint32_t *on_line;  /* its arenas */
    uint32_t *slot_of;  /* of each arena: which one of the line it is, or NOWHERE */
    uint64_t *bases;    /* where each arena of the line begins */
    uint32_t *range_of; /* of each unit, or NOWHERE */
    uint32_t *unit_of;  /* of each range */
    uint32_t *apart_starts, *apart;
    uint64_t *range_offsets;
} planner;

/* ---- lines --------------------------------------------------------------------------------- */

/* No arena of a line but the last is larger than all items are together. */
static uint64_t capacity_of(const planner *p, uint32_t slot)
{
    uint64_t capacity = qi_plan_capacity(p->problem, p->on_line[slot]);
    return capacity < QI_PLAN_MOST_BYTES ? capacity : QI_PLAN_MOST_BYTES;
}

static uint32_t arena_of(const planner *p, uint32_t unit)
{
    return p->chosen ? p->chosen[unit] : p->units.items[unit].arena;
}

static bool is_on_line(const planner *p, uint32_t unit, bool is_shared)
{
    const uint32_t arena = arena_of(p, unit);
    if (!arena)
        return is_shared || p->arena_count == 1;
    return p->slot_of[arena - 1] != NOWHERE;
}

static qi_plan_range make_range(const planner *p, uint32_t number)
{
    const quire_plan_item *unit = &p->units.items[number];
    const uint32_t arena = arena_of(p, number);
    const bool has_arena = arena || p->arena_count == 1;
    const uint32_t slot = arena ? p->slot_of[arena - 1] : 0;
    qi_plan_range range = {.size = unit->size,
                           .alignment = unit->alignment ? unit->alignment : 1,
                           .low = has_arena ? p->bases[slot] : 0,
                           .high = QI_PLAN_LIMIT,
                           .first = unit->first_use,
                           .last = unit->last_use};
    if (has_arena && slot + 1 < p->line.arena_count)
        range.high = p->bases[slot + 1];
    if (unit->is_fixed) {
        range.low += unit->fixed_offset;
        range.high = range.low + range.size;
    }
    return range;
}

static void fill_line(planner *p, bool is_shared)
{
    for (uint32_t i = 0; i < p->arena_count; i++)
        p->slot_of[i] = NOWHERE;
    for (uint32_t i = 0; i < p->line.arena_count; i++) {
        p->slot_of[p->on_line[i]] = i;
        p->bases[i] = i ? p->bases[i - 1] + capacity_of(p, i - 1) : 0;
    }
    p->line.count = 0;
    for (uint32_t i = 0; i < p->units.count; i++) {
        p->range_of[i] = NOWHERE;
        if (!is_on_line(p, i, is_shared))
            continue;
        p->range_of[i] = p->line.count;
        p->unit_of[p->line.count] = i;
        p->line.ranges[p->line.count++] = make_range(p, i);
    }
}

/* The ranges of a separation, if both are on the line and do not meet anyway. */
static bool is_apart(const planner *p, uint32_t separation, uint32_t *a, uint32_t *b)
{
    const quire_plan_separation *pair = &p->problem->separations[separation];
    *a = p->range_of[qi_plan_unit_of(&p->units, pair->first)];
    *b = p->range_of[qi_plan_unit_of(&p->units, pair->second)];
    if (*a == NOWHERE || *b == NOWHERE)
        return false;
    const qi_plan_range *x = &p->line.ranges[*a], *y = &p->line.ranges[*b];
    return x->last < y->first || y->last < x->first;
}

static void fill_apart(planner *p)
{
    uint32_t a, b;
    p->line.apart_starts = p->line.apart = NULL;
    if (!p->problem->separation_count)
        return;
    memset(p->apart_starts, 0, (p->line.count + UINT64_C(1)) * sizeof *p->apart_starts);
    for (uint32_t i = 0; i < p->problem->separation_count; i++)
        if (is_apart(p, i, &a, &b)) {
            p->apart_starts[a]++;
            p->apart_starts[b]++;
        }
    for (uint32_t i = 0; i < p->line.count; i++)
        p->apart_starts[i + 1] += p->apart_starts[i];
    for (uint32_t i = 0; i < p->problem->separation_count; i++)
        if (is_apart(p, i, &a, &b)) {
            p->apart[--p->apart_starts[a]] = b;
            p->apart[--p->apart_starts[b]] = a;
        }
    p->line.apart_starts = p->apart_starts;
    p->line.apart = p->apart;
}

/* ---- solving ------------------------------------------------------------------------------- */

static void take_places(planner *p)
{
    for (uint32_t i = 0; i < p->line.count; i++) {
        uint64_t offset = p->range_offsets[i];
        uint32_t slot = p->line.arena_count - 1;
        while (offset < p->bases[slot])
            slot--;
        const uint32_t arena = p->on_line[slot];
        offset -= p->bases[slot];
        p->offsets[p->unit_of[i]] = offset;
        p->arenas[p->unit_of[i]] = arena;
        qi_raise(&p->peaks[arena], offset + p->line.ranges[i].size);
    }
}

/* The lower bound of the sum of the peaks of a line's arenas. */
static uint64_t bound_of(const planner *p, const qi_plan_solution *solution)
{
    return p->line.arena_count == 1 ? solution->bound : p->line.overlap;
}

static quire_result refuse(const qi_plan_solution *solution, uint64_t capacity)
{
    if (capacity == UINT64_MAX)
        return qi_fail(QUIRE_ERROR_NO_SPACE,
                       "no plan was found in which each arena has room for the items that name it");
    if (solution->bound > capacity)
        return qi_fail_with(QUIRE_ERROR_NO_SPACE,
                            "no plan fits: the items need %u bytes or more, and there are %u",
                            solution->bound, capacity);
    if (solution->peak == UINT64_MAX)
        return qi_fail_with(QUIRE_ERROR_NO_SPACE,
                            "no plan was found: the items need %u bytes or more, and there are %u",
                            solution->bound, capacity);
    return qi_fail_with(
        QUIRE_ERROR_NO_SPACE,
        "no plan was found that fits: the best needs %u bytes, none needs less than "
        "%u, and there are %u",
        solution->peak, solution->bound, capacity);
}

/* Makes the present line of its arenas. Release it in each case. */
static quire_result make_line(planner *p, bool is_shared)
{
    fill_line(p, is_shared);
    fill_apart(p);
    p->line.bases = p->bases;
    return qi_plan_line_prepare(&p->line, p->host);
}

/* The end of the last arena of the line; UINT64_MAX if it has none. */
static uint64_t end_of_line(const planner *p)
{
    const uint32_t last = p->line.arena_count - 1;
    const bool has_end = qi_plan_capacity(p->problem, p->on_line[last]) != UINT64_MAX;
    return has_end ? p->bases[last] + capacity_of(p, last) : UINT64_MAX;
}

/* Looks for a plan of the present line, and takes it if it fits. */
static quire_result solve_line(planner *p, qi_plan_solution *solution, bool *fits)
{
    const uint64_t end = end_of_line(p);
    quire_result result = qi_plan_solve(&p->line, end == UINT64_MAX ? 0 : end, p->seed, &p->effort,
                                        p->host, solution);
    *fits = !result && solution->peak <= end && (solution->peak != UINT64_MAX || !p->line.count);
    if (*fits)
        take_places(p);
    return result;
}

/* With one part in `parts` of the effort that is left. */
static quire_result plan_line(planner *p, bool is_shared, uint32_t parts)
{
    qi_plan_effort whole = p->effort;
    qi_plan_solution solution = {.offsets = p->range_offsets};
    bool fits = false;
    p->effort = qi_plan_effort_part(&whole, parts);
    quire_result result = make_line(p, is_shared);
    if (!result)
        result = solve_line(p, &solution, &fits);
    if (!result && !fits)
        result = refuse(&solution, end_of_line(p));
    if (!result)
        p->bound += bound_of(p, &solution);
    qi_plan_line_release(&p->line, p->host);
    qi_plan_effort_end_part(&whole, &p->effort);
    p->effort = whole;
    return result;
}

/* Whether an item may choose between arenas. */
static bool has_choice(const planner *p)
{
    for (uint32_t i = 0; i < p->units.count && p->arena_count > 1; i++)
        if (!p->units.items[i].arena)
            return true;
    return false;
}

/* Lists the arenas of items that may choose, and marks them as taken. */
static void share_arenas(planner *p, bool *is_taken)
{
    p->line.arena_count = 0;
    for (uint32_t i = 0; i < p->arena_count; i++)
        if (qi_plan_capacity(p->problem, i) != UINT64_MAX)
            p->on_line[p->line.arena_count++] = i;
    for (uint32_t i = 0; i < p->arena_count; i++)
        if (qi_plan_capacity(p->problem, i) == UINT64_MAX) {
            p->on_line[p->line.arena_count++] = i;
            break;
        }
    for (uint32_t i = 0; i < p->line.arena_count; i++)
        is_taken[p->on_line[i]] = true;
}

/* ---- divisions ----------------------------------------------------------------------------- */

/*
 * Items that are near each other in the list often belong together: two networks in one list, for
 * example. If each arena has a capacity, the list is divided into as many parts, and each part is
 * planned for its arena. Where the parts may end follows from the loads: as late as possible, or as
 * early as possible.
 */

enum { MOST_DIVISIONS = 16 };

/* The loads of one arena, by section of the line that all arenas share. */
typedef struct division {
    uint64_t *loads;
    uint32_t *late, *early; /* of each arena: the first unit that is not its own */
} division;

static void add_load(const planner *p, uint32_t unit, uint64_t *loads)
{
    const qi_plan_range *range = &p->line.ranges[p->range_of[unit]];
    for (uint32_t i = range->begin; i < range->end; i++)
        loads[i] += range->room;
}

static bool has_room(const planner *p, uint32_t unit, const uint64_t *loads, uint32_t slot)
{
    const qi_plan_range *range = &p->line.ranges[p->range_of[unit]];
    for (uint32_t i = range->begin; i < range->end; i++)
        if (loads[i] + range->room > qi_plan_align(capacity_of(p, slot), p->line.grain))
            return false;
    return true;
}

/* Begins with the units that name the arena. */
static void begin_arena(const planner *p, uint32_t slot, uint64_t *loads)
{
    memset(loads, 0, p->line.section_count * sizeof *loads);
    for (uint32_t i = 0; i < p->units.count; i++)
        if (p->range_of[i] != NOWHERE && p->units.items[i].arena == p->on_line[slot] + 1)
            add_load(p, i, loads);
}

/* Gives each arena as many units as its loads allow, from the first arena and unit on, or from the
   last ones. Returns false if some are left. */
static bool divide(const planner *p, bool from_end, uint64_t *loads, uint32_t *borders)
{
    const uint32_t units = p->units.count, slots = p->line.arena_count;
    uint32_t slot = from_end ? slots - 1 : 0;
    for (uint32_t i = 0; i < slots; i++)
        borders[i] = from_end && i + 1 < slots ? 0 : units;
    begin_arena(p, slot, loads);
    for (uint32_t i = 0; i < units; i++) {
        const uint32_t unit = from_end ? units - 1 - i : i;
        if (p->range_of[unit] == NOWHERE || p->units.items[unit].arena)
            continue;
        while (!has_room(p, unit, loads, slot)) {
            if (slot == (from_end ? 0 : slots - 1))
                return false;
            if (from_end)
                borders[--slot] = unit + 1;
            else
                borders[slot++] = unit;
            begin_arena(p, slot, loads);
        }
        add_load(p, unit, loads);
    }
    return true;
}

/* Chooses arenas: `part` of `parts` of the way from the early borders to the late ones. */
static void choose(planner *p, const division *d, uint32_t part, uint32_t parts)
{
    for (uint32_t i = 0; i < p->units.count; i++) {
        p->chosen[i] = p->units.items[i].arena;
        for (uint32_t slot = 0; slot < p->line.arena_count && !p->chosen[i]; slot++) {
            const uint64_t early = d->early[slot], late = d->late[slot];
            if (i < early + (late > early ? (late - early) * part / parts : 0))
                p->chosen[i] = p->on_line[slot] + 1;
        }
    }
}

/* Plans each of the arenas for the units that are chosen for it. */
static quire_result plan_chosen(planner *p, const uint32_t *arenas, uint32_t count, bool *fit)
{
    quire_result result = QUIRE_SUCCESS;
    *fit = true;
    for (uint32_t i = 0; i < count && *fit && !result; i++) {
        qi_plan_solution solution = {.offsets = p->range_offsets};
        p->line.arena_count = 1;
        p->on_line[0] = arenas[i];
        p->peaks[arenas[i]] = 0;
        result = make_line(p, false);
        if (!result)
            result = solve_line(p, &solution, fit);
        qi_plan_line_release(&p->line, p->host);
    }
    return result;
}

/* The line is the one that the arenas share; it is gone afterwards. */
static quire_result try_divisions(planner *p, const division *d, bool *fit)
{
    uint32_t arenas[QI_PLAN_MOST_ARENAS], parts = 0;
    const uint32_t count = p->line.arena_count;
    quire_result result = QUIRE_SUCCESS;
    memcpy(arenas, p->on_line, count * sizeof *arenas);
    for (uint32_t i = 0; i < count; i++)
        if (d->late[i] > d->early[i] + parts)
            parts = d->late[i] - d->early[i];
    if (parts > MOST_DIVISIONS)
        parts = MOST_DIVISIONS;
    for (uint32_t part = 0; part <= parts && !*fit && !result && !p->effort.is_over; part++) {
        qi_plan_effort whole = p->effort;
        memcpy(p->on_line, arenas, count * sizeof *arenas);
        p->line.arena_count = count;
        choose(p, d, part, parts ? parts : 1);
        p->effort = qi_plan_effort_part(&whole, parts - part + 2);
        result = plan_chosen(p, arenas, count, fit);
        qi_plan_effort_end_part(&whole, &p->effort);
        p->effort = whole;
    }
    return result;
}

/* Tries divisions of the line that the arenas share, which is made and then gone. */
static quire_result plan_divided(planner *p, bool *fit)
{
    const uint64_t arenas = p->arena_count, units = p->units.count;
    division d = {NULL, NULL, NULL};
    quire_result result = make_line(p, true);
    const uint64_t overlap = p->line.overlap, sections = p->line.section_count;
    d.loads = qi_host_allocate(p->host, sections, sizeof *d.loads);
    d.late = qi_host_allocate(p->host, arenas, sizeof *d.late);
    d.early = qi_host_allocate(p->host, arenas, sizeof *d.early);
    p->chosen = qi_host_allocate(p->host, units, sizeof *p->chosen);
    bool has_memory = d.loads && d.late && d.early && p->chosen;
    if (!result && !has_memory)
        result = qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a plan");
    bool is_divided = !result && qi_plan_can_search(&p->line) &&
                      divide(p, false, d.loads, d.late) && divide(p, true, d.loads, d.early);
    qi_plan_line_release(&p->line, p->host);
    if (is_divided)
        result = try_divisions(p, &d, fit);
    if (*fit)
        p->bound += overlap;
    qi_host_release(p->host, d.loads, sections, sizeof *d.loads);
    qi_host_release(p->host, d.late, arenas, sizeof *d.late);
    qi_host_release(p->host, d.early, arenas, sizeof *d.early);
    qi_host_release(p->host, p->chosen, units, sizeof *p->chosen);
    p->chosen = NULL;
    return result;
}

/* ---- all lines ----------------------------------------------------------------------------- */

static quire_result plan_shared(planner *p, bool *is_taken)
{
    bool fit = false;
    quire_result result = QUIRE_SUCCESS;
    if (qi_plan_capacity(p->problem, p->on_line[p->line.arena_count - 1]) != UINT64_MAX)
        result = plan_divided(p, &fit);
    if (result || fit)
        return result;
    share_arenas(p, is_taken);
    return plan_line(p, true, 1 + p->arena_count - p->line.arena_count);
}

static quire_result plan_lines(planner *p)
{
    bool is_taken[QI_PLAN_MOST_ARENAS] = {false};
    quire_result result = QUIRE_SUCCESS;
    if (has_choice(p)) {
        share_arenas(p, is_taken);
        result = plan_shared(p, is_taken);
    }
    for (uint32_t i = 0; i < p->arena_count && !result; i++) {
        if (is_taken[i])
            continue;
        p->line.arena_count = 1;
        p->on_line[0] = i;
        result = plan_line(p, false, p->arena_count - i);
    }
    return result;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static bool make_arrays(planner *p)
{
    const uint64_t units = p->units.count, arenas = p->arena_count;
    const uint64_t pairs = p->problem->separation_count;
    qi_host *host = p->host;
    p->peaks = qi_host_allocate(host, arenas, sizeof *p->peaks);
    p->on_line = qi_host_allocate(host, arenas, sizeof *p->on_line);
    p->slot_of = qi_host_allocate(host, arenas, sizeof *p->slot_of);
    p->bases = qi_host_allocate(host, arenas, sizeof *p->bases);
    p->offsets = qi_host_allocate(host, units, sizeof *p->offsets);
    p->arenas = qi_host_allocate(host, units, sizeof *p->arenas);
    p->range_of = qi_host_allocate(host, units, sizeof *p->range_of);
    p->unit_of = qi_host_allocate(host, units, sizeof *p->unit_of);
    p->line.ranges = qi_host_allocate(host, units, sizeof *p->line.ranges);
    p->range_offsets = qi_host_allocate(host, units, sizeof *p->range_offsets);
    if (pairs) {
        p->apart_starts = qi_host_allocate(host, units + 1, sizeof *p->apart_starts);
        p->apart = qi_host_allocate(host, 2 * pairs, sizeof *p->apart);
    }
    return p->peaks && p->on_line && p->slot_of && p->bases && p->offsets && p->arenas &&
           p->range_of && p->unit_of && p->line.ranges && p->range_offsets &&
           (!pairs || (p->apart_starts && p->apart));
}

static void release_arrays(planner *p)
{
    const uint64_t units = p->units.count, arenas = p->arena_count;
    const uint64_t pairs = p->problem->separation_count;
    qi_host *host = p->host;
    qi_host_release(host, p->peaks, arenas, sizeof *p->peaks);
    qi_host_release(host, p->on_line, arenas, sizeof *p->on_line);
    qi_host_release(host, p->slot_of, arenas, sizeof *p->slot_of);
    qi_host_release(host, p->bases, arenas, sizeof *p->bases);
    qi_host_release(host, p->offsets, units, sizeof *p->offsets);
    qi_host_release(host, p->arenas, units, sizeof *p->arenas);
    qi_host_release(host, p->range_of, units, sizeof *p->range_of);
    qi_host_release(host, p->unit_of, units, sizeof *p->unit_of);
    qi_host_release(host, p->line.ranges, units, sizeof *p->line.ranges);
    qi_host_release(host, p->range_offsets, units, sizeof *p->range_offsets);
    qi_host_release(host, p->apart_starts, units + 1, sizeof *p->apart_starts);
    qi_host_release(host, p->apart, 2 * pairs, sizeof *p->apart);
}

static void report(const planner *p, uint64_t began, quire_plan_place *places,
                   quire_plan_info *info)
{
    for (uint32_t i = 0; i < p->problem->item_count; i++) {
        uint32_t unit = qi_plan_unit_of(&p->units, i);
        places[i] = (quire_plan_place){p->offsets[unit], p->arenas[unit] + 1};
    }
    *info = (quire_plan_info){
        .lower_bound_bytes = p->bound, .steps = p->effort.steps, .wall_ns = qi_clock() - began};
    for (uint32_t i = 0; i < p->arena_count; i++)
        info->peak_bytes += p->peaks[i];
    info->proven_optimal = info->peak_bytes == p->bound;
}

/* What does not look at the clock takes a part of the time limit of so many items. */
enum { MANY = 100000, PART_TO_END = 8 };

static qi_plan_effort effort_of(const quire_plan_options *options, uint32_t count, uint64_t began)
{
    const uint64_t limit = options->time_limit_ns;
    const uint64_t time = count < MANY ? limit : limit - limit / PART_TO_END;
    uint64_t deadline;
    if (!time || qi_add_overflows(began, time, &deadline))
        deadline = UINT64_MAX;
    return (qi_plan_effort){.step_limit = options->step_limit ? options->step_limit
                                          : time              ? UINT64_MAX
                                                              : QUIRE_PLAN_STEPS,
                            .deadline = deadline};
}

quire_result qi_plan(const quire_plan_problem *problem, const quire_plan_options *options,
                     qi_host *host, quire_plan_place *places, quire_plan_info *info)
{
    qi_plan_watch watch = {
        .progress = options->progress, .user = options->user, .began = qi_clock()};
    planner p = {.problem = problem,
                 .host = host,
                 .seed = options->seed,
                 .effort = effort_of(options, problem->item_count, watch.began),
                 .arena_count = qi_plan_arena_count(problem)};
    quire_result result = qi_check_unused(options, "quire_plan_options");
    if (!result)
        result = qi_plan_check_problem(problem);
    if (result || !problem->item_count) {
        *info = (quire_plan_info){.proven_optimal = !result};
        return result;
    }
    p.effort.watch = options->progress ? &watch : NULL;
    result = qi_plan_units_make(problem, host, &p.units);
    if (!result)
        result = qi_plan_check_fixed(&p.units, host);
    if (!result && !make_arrays(&p))
        result = qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a plan");
    if (!result)
        result = plan_lines(&p);
    if (!result)
        report(&p, watch.began, places, info);
    release_arrays(&p);
    qi_plan_units_release(&p.units, host);
    return result;
}
