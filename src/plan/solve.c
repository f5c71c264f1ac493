/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * solve.c - which methods run, in which order, and for how long.
 *
 * A sweep answers at once. Then come orders, the cheap ones first; each gets a part of what is left
 * of the effort. Lines of few ranges are searched: for several capacities in turn, between the
 * bound and the best peak, each with tries of its own. "Impossible" raises the bound, "found"
 * lowers the peak.
 */
#include "src/plan/solve.h"

#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/plan/gaps.h"
#include "src/plan/order.h"
#include "src/plan/search.h"
#include "src/plan/sweep.h"

typedef struct solver {
    const qi_plan_line *line;
    qi_host *host;
    qi_plan_effort *effort;
    qi_plan_solution *best;
    uint64_t enough;
    uint64_t random;
    uint64_t peak_before, bound_before; /* of other lines, for the watcher */
    qi_plan_sorter sorter;
    qi_plan_gaps gaps;
    uint32_t *order;
    uint64_t *offsets; /* of the plan that is made */
} solver;

/* To sort, and to begin, for each range. */
enum { STEPS_TO_SORT = 32 };

static bool is_done(const solver *s)
{
    return s->best->peak <= s->best->bound || s->best->peak <= s->enough || s->effort->is_over;
}

static void offer(solver *s, uint64_t peak)
{
    if (peak >= s->best->peak)
        return;
    s->best->peak = peak;
    memcpy(s->best->offsets, s->offsets, s->line->count * sizeof *s->offsets);
    if (s->effort->watch) {
        s->effort->watch->best.peak_bytes = s->peak_before + peak;
        s->effort->watch->best.lower_bound_bytes = s->bound_before + s->best->bound;
    }
}

/* ---- sweeps -------------------------------------------------------------------------------- */

static bool is_free(const qi_plan_line *line)
{
    if (line->arena_count > 1 || line->apart)
        return false;
    for (uint32_t i = 0; i < line->count; i++)
        if (line->ranges[i].low || line->ranges[i].high < QI_PLAN_LIMIT)
            return false;
    return true;
}

static uint32_t busiest(const qi_plan_line *line)
{
    uint32_t found = 0;
    for (uint32_t i = 1; i < line->section_count; i++)
        if (line->loads[i] > line->loads[found])
            found = i;
    return found;
}

static quire_result sweep(solver *s, const qi_plan_key keys[QI_PLAN_KEYS], uint32_t start,
                          qi_plan_effort *effort)
{
    uint64_t peak;
    qi_plan_sort(&s->sorter, keys, NULL, s->order);
    quire_result result =
        qi_plan_sweep(s->line, start, s->order, s->best->peak, effort, s->host, s->offsets, &peak);
    if (!result)
        offer(s, peak);
    return result;
}

static quire_result sweeps(solver *s)
{
    static const qi_plan_key STACKINGS[][QI_PLAN_KEYS] = {
        {QI_PLAN_KEY_LATE_END, QI_PLAN_KEY_SIZE},
        {QI_PLAN_KEY_EARLY, QI_PLAN_KEY_SIZE},
    };
    if (!is_free(s->line))
        return QUIRE_SUCCESS;
    const uint32_t start = busiest(s->line);
    qi_plan_effort first = {.step_limit = UINT64_MAX, .deadline = UINT64_MAX};
    quire_result result = sweep(s, STACKINGS[0], start, &first);
    qi_plan_spend(s->effort, first.steps);
    if (result || is_done(s))
        return result;
    qi_plan_effort part = qi_plan_effort_part(s->effort, 8);
    result = sweep(s, STACKINGS[1], start, &part);
    qi_plan_effort_end_part(s->effort, &part);
    return result;
}

/* ---- orders -------------------------------------------------------------------------------- */

/* Orders of many ranges whose lifetimes have nothing in common need long sets. */
enum { MANY = 10000, ROOM_FOR_EACH = 10 };

static quire_result place(solver *s, const qi_plan_key keys[QI_PLAN_KEYS], bool narrowest,
                          uint64_t *random, qi_plan_effort *effort)
{
    const uint64_t count = s->line->count;
    const bool is_limited = count >= MANY && s->best->peak != UINT64_MAX;
    qi_plan_sort(&s->sorter, keys, random, s->order);
    s->gaps.most_room = is_limited ? ROOM_FOR_EACH * count : UINT64_MAX;
    if (!qi_plan_spend(effort, count * STEPS_TO_SORT))
        return QUIRE_SUCCESS;
    uint64_t peak = qi_plan_place(&s->gaps, s->order, narrowest, s->best->peak, effort, s->offsets);
    offer(s, peak);
    return s->gaps.is_out_of_memory
               ? qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a plan")
               : QUIRE_SUCCESS;
}

static const struct {
    qi_plan_key keys[QI_PLAN_KEYS];
    bool narrowest;
} ORDERS[] = {
    {{QI_PLAN_KEY_LOAD, QI_PLAN_KEY_SECTIONS}, false},
    {{QI_PLAN_KEY_SIZE}, false},
    {{QI_PLAN_KEY_SECTIONS, QI_PLAN_KEY_SIZE}, true},
    {{QI_PLAN_KEY_SIZE_BITS, QI_PLAN_KEY_SECTIONS}, false},
    {{QI_PLAN_KEY_LIFETIME_BITS, QI_PLAN_KEY_SIZE}, true},
    {{QI_PLAN_KEY_LOAD, QI_PLAN_KEY_LIFETIME, QI_PLAN_KEY_AREA}, true},
    {{QI_PLAN_KEY_LIFETIME_BITS, QI_PLAN_KEY_SIZE}, false},
    {{QI_PLAN_KEY_SIZE}, true},
    {{QI_PLAN_KEY_SIZE_BITS, QI_PLAN_KEY_LIFETIME}, false},
    {{QI_PLAN_KEY_SECTIONS}, true},
    {{QI_PLAN_KEY_LOAD, QI_PLAN_KEY_SIZE}, true},
    {{QI_PLAN_KEY_LOAD, QI_PLAN_KEY_SIZE}, false},
    {{QI_PLAN_KEY_AREA}, false},
};

enum { ORDER_COUNT = sizeof ORDERS / sizeof *ORDERS, GREEDY = 1, MOST_FOR_GREEDY = 100000 };

static quire_result orders(solver *s)
{
    for (uint32_t i = 0; i < ORDER_COUNT; i++) {
        const bool is_first = s->best->peak == UINT64_MAX;
        if (is_done(s) && !(is_first && !i))
            break;
        bool is_whole = is_first || (i == GREEDY && s->line->count <= MOST_FOR_GREEDY);
        qi_plan_effort part = qi_plan_effort_part(s->effort, is_whole ? 1 : 4);
        if (is_first && !i) { /* there is to be a plan */
            part.step_limit = part.deadline = UINT64_MAX;
            part.is_over = false;
        }
        quire_result result = place(s, ORDERS[i].keys, ORDERS[i].narrowest, NULL, &part);
        qi_plan_effort_end_part(s->effort, &part);
        if (result)
            return result;
    }
    return QUIRE_SUCCESS;
}

/* Orders with random factors, until the effort is over. */
static quire_result random_orders(solver *s)
{
    quire_result result = QUIRE_SUCCESS;
    for (uint32_t i = 0; !is_done(s) && !result; i++)
        result = place(s, ORDERS[i % ORDER_COUNT].keys, ORDERS[i % ORDER_COUNT].narrowest,
                       &s->random, s->effort);
    return result;
}

/* ---- the search ---------------------------------------------------------------------------- */

/* Every end of a range in a plan that the search looks for is a multiple of it. */
static uint64_t common_divisor(const qi_plan_line *line)
{
    uint64_t divisor = 0;
    for (uint32_t i = 0; i < line->count; i++) {
        const qi_plan_range *range = &line->ranges[i];
        divisor = qi_gcd(divisor, range->size);
        divisor = qi_gcd(divisor, range->low);
        if (range->alignment > 1)
            divisor = qi_gcd(divisor, range->alignment);
    }
    for (uint32_t i = 0; i < line->arena_count; i++)
        divisor = qi_gcd(divisor, line->bases[i]);
    return divisor;
}

/* The capacities that are searched in turn, in hundredths of the way from the bound to the best
   peak; some share their tries. */
static const struct {
    uint32_t hundredths, tries;
} TURNS[] = {{0, 0}, {85, 1}, {0, 0}, {50, 2}, {20, 3}, {100, 4}};

enum { TURN_COUNT = sizeof TURNS / sizeof *TURNS, LATER = 20, FEW = 64 };

/* Just below the best peak the search proves for few ranges that it is the lowest. For many it
   takes nodes from the capacities at which more is to be gained. */
static bool is_left_out(const qi_plan_line *line, uint64_t turn)
{
    return TURNS[turn % TURN_COUNT].hundredths == 100 && line->count > FEW;
}

/* The capacity of a turn, which is below the best peak. */
static uint64_t capacity_of(const solver *s, uint64_t turn, uint64_t divisor)
{
    const uint64_t low = s->best->bound, room = s->best->peak - 1 - low;
    if (s->enough >= low)
        return s->enough;
    uint64_t hundredths = TURNS[turn % TURN_COUNT].hundredths;
    uint64_t capacity = low + room / 100 * hundredths + room % 100 * hundredths / 100;
    /* late, small improvements are as good as any */
    if (turn % TURN_COUNT == 1 && turn > LATER && room / divisor > 64)
        capacity = s->best->peak - s->best->peak / 100;
    capacity -= capacity % divisor;
    return capacity < low ? low : capacity;
}

static quire_result search_turns(solver *s, qi_plan_search *search)
{
    const uint64_t divisor = common_divisor(s->line);
    uint32_t next_tries[TURN_COUNT] = {0};
    uint64_t nodes = 1000 + 2 * s->line->count;
    for (uint64_t turn = 0; !is_done(s); turn++) {
        if (turn && turn % TURN_COUNT == 0)
            nodes += nodes / 4;
        if (is_left_out(s->line, turn))
            continue;
        uint64_t capacity = capacity_of(s, turn, divisor);
        const bool is_told = s->enough >= s->best->bound; /* every turn is for one capacity */
        uint32_t *next = &next_tries[is_told ? 0 : TURNS[turn % TURN_COUNT].tries];
        qi_plan_outcome outcome;
        quire_result result = qi_plan_search_run(search, capacity, nodes, next, &s->random,
                                                 s->effort, s->offsets, &outcome);
        if (result)
            return result;
        if (outcome == QI_PLAN_IMPOSSIBLE)
            s->best->bound = capacity - capacity % divisor + divisor;
        if (outcome == QI_PLAN_FOUND) {
            uint64_t peak = 0;
            for (uint32_t i = 0; i < s->line->count; i++)
                qi_raise(&peak, s->offsets[i] + s->line->ranges[i].size);
            offer(s, peak);
            *next = *next > 8 ? *next - 8 : 0; /* what found one may find another */
        }
    }
    return QUIRE_SUCCESS;
}

static quire_result search(solver *s)
{
    qi_plan_search *made = qi_plan_search_make(s->line, &s->sorter, s->host);
    if (!made)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a plan");
    quire_result result = search_turns(s, made);
    qi_plan_search_release(made);
    return result;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static quire_result run(solver *s)
{
    quire_result result = sweeps(s);
    if (result || (is_done(s) && s->best->peak != UINT64_MAX))
        return result;
    result = qi_plan_gaps_make(&s->gaps, s->line, s->host);
    if (!result)
        result = orders(s);
    if (!result && !is_done(s))
        result = qi_plan_can_search(s->line) ? search(s) : random_orders(s);
    return result;
}

quire_result qi_plan_solve(const qi_plan_line *line, uint64_t enough, uint64_t seed,
                           qi_plan_effort *effort, qi_host *host, qi_plan_solution *solution)
{
    solver s = {.line = line,
                .host = host,
                .effort = effort,
                .best = solution,
                .enough = enough,
                .random = seed,
                .peak_before = effort->watch ? effort->watch->best.peak_bytes : 0,
                .bound_before = effort->watch ? effort->watch->best.lower_bound_bytes : 0,
                .gaps = {.host = host}};
    solution->peak = line->count ? UINT64_MAX : 0;
    solution->bound = line->bound;
    if (!line->count)
        return QUIRE_SUCCESS;
    s.order = qi_host_allocate(host, line->count, sizeof *s.order);
    s.offsets = qi_host_allocate(host, line->count, sizeof *s.offsets);
    quire_result result = qi_plan_sorter_make(&s.sorter, line, host);
    if (!result && !(s.order && s.offsets))
        result = qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a plan");
    if (!result)
        result = run(&s);
    qi_plan_gaps_release(&s.gaps);
    qi_plan_sorter_release(&s.sorter, host);
    qi_host_release(host, s.order, line->count, sizeof *s.order);
    qi_host_release(host, s.offsets, line->count, sizeof *s.offsets);
    return result;
}
