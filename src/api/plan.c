/*
 * plan.c - the public functions of quire/plan.h: check pointers, and call src/plan.
 */
#include "src/plan/plan.h"

#include "src/base/result.h"

static const char *missing_array(const quire_plan_problem *problem, const quire_plan_place *places)
{
    if (problem->item_count && !problem->items)
        return "problem->items";
    if (problem->arena_count && !problem->arenas)
        return "problem->arenas";
    if (problem->separation_count && !problem->separations)
        return "problem->separations";
    return problem->item_count && !places ? "places" : NULL;
}

quire_result quire_plan(const quire_plan_problem *problem, const quire_plan_options *options,
                        quire_plan_place *places, quire_plan_info *info)
{
    const quire_plan_options defaults = {0};
    quire_plan_info made = {0};
    qi_host host;
    if (info)
        *info = made;
    if (!problem)
        return qi_fail_null("quire_plan", "problem");
    const char *missing = missing_array(problem, places);
    if (missing)
        return qi_fail_null("quire_plan", missing);
    options = options ? options : &defaults;
    quire_result result = qi_host_init(&host, options->host_memory);
    if (!result)
        result = qi_plan(problem, options, &host, places, &made);
    if (!result && info)
        *info = made;
    return result;
}

quire_result quire_plan_check(const quire_plan_problem *problem, const quire_plan_place *places,
                              uint64_t *peaks, const quire_host_memory *host_memory)
{
    qi_host host;
    if (!problem)
        return qi_fail_null("quire_plan_check", "problem");
    for (uint32_t i = 0; peaks && i < qi_plan_arena_count(problem); i++)
        peaks[i] = 0;
    const char *missing = missing_array(problem, places);
    if (missing)
        return qi_fail_null("quire_plan_check", missing);
    quire_result result = qi_host_init(&host, host_memory);
    return result ? result : qi_plan_check(problem, places, peaks, &host);
}
