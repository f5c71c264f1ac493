/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * insight.c - the public functions of quire/insight.h, except those that render text and pictures
 * (src/render), and quire_page_get_info: each zeroes its outputs, checks its arguments, refuses a
 * device that did not survive a fork, and calls the core.
 */
#include "quire/insight.h"

#include "src/api/check.h"
#include "src/base/result.h"
#include "src/core/state/visitors.h"
#include "src/core/stats/stats.h"

/* ---- statistics --------------------------------------------------------------------------- */

quire_result quire_memory_get_stats(const quire_memory *memory, quire_memory_stats *stats)
{
    if (stats)
        *stats = (quire_memory_stats){0};
    if (!memory || !stats)
        return qi_fail_null("quire_memory_get_stats", !memory ? "memory" : "stats");
    if (memory->device->is_disabled)
        return qi_refuse_disabled();
    *stats = qi_stats_get(qi_memory_queried(memory));
    return QUIRE_SUCCESS;
}

quire_result quire_device_get_stats(const quire_device *device, quire_device_stats *stats)
{
    if (stats)
        *stats = (quire_device_stats){0};
    if (!device || !stats)
        return qi_fail_null("quire_device_get_stats", !device ? "device" : "stats");
    if (device->is_disabled)
        return qi_refuse_disabled();
    *stats = qi_stats_get_device(qi_device_queried(device));
    return QUIRE_SUCCESS;
}

quire_result quire_page_get_info(const quire_memory *memory, uint32_t number, quire_page_info *info)
{
    if (info)
        *info = (quire_page_info){0};
    if (!memory || !info)
        return qi_fail_null("quire_page_get_info", !memory ? "memory" : "info");
    if (memory->device->is_disabled)
        return qi_refuse_disabled();
    return qi_page_get_info(qi_memory_queried(memory), number, info);
}

quire_result quire_memory_push_stats(quire_memory *memory)
{
    if (!memory)
        return qi_fail_null("quire_memory_push_stats", "memory");
    if (memory->device->is_disabled)
        return qi_refuse_disabled();
    return qi_stats_push(memory);
}

quire_result quire_memory_pop_stats(quire_memory *memory, quire_memory_stats *stats)
{
    if (stats)
        *stats = (quire_memory_stats){0};
    if (!memory || !stats)
        return qi_fail_null("quire_memory_pop_stats", !memory ? "memory" : "stats");
    if (memory->device->is_disabled)
        return qi_refuse_disabled();
    return qi_stats_pop(memory, stats);
}

quire_result quire_memory_check(const quire_memory *memory)
{
    quire_result result = check_memory(memory, "quire_memory_check");
    return result ? result : qi_memory_check(qi_memory_queried(memory));
}

/* ---- events ------------------------------------------------------------------------------- */

/* Checks a hook and resolves its kinds; NULL, and a hook without a function: none. */
static quire_result resolve_hook(const quire_hook *hook, quire_hook *set)
{
    const quire_event_kinds all =
        QUIRE_EVENT_ALLOCATED | QUIRE_EVENT_FREED | QUIRE_EVENT_REFUSED | QUIRE_EVENT_PAGE_MADE |
        QUIRE_EVENT_PAGE_GONE | QUIRE_EVENT_PAGE_RESIZED | QUIRE_EVENT_SHARDS |
        QUIRE_EVENT_OVER_BUDGET | QUIRE_EVENT_ASLEEP | QUIRE_EVENT_AWAKE | QUIRE_EVENT_MOVED;
    if (hook && hook->kinds & ~all)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "quire_hook.kinds has the unknown bits %x", hook->kinds & ~all);
    quire_result result = hook ? qi_check_unused(hook, "quire_hook") : QUIRE_SUCCESS;
    if (result)
        return result;
    *set = hook && hook->event ? *hook : (quire_hook){0};
    if (set->event && !set->kinds)
        set->kinds = all;
    return QUIRE_SUCCESS;
}

quire_result quire_memory_set_hook(quire_memory *memory, const quire_hook *hook)
{
    quire_hook set = {.event = NULL};
    quire_result result = check_memory(memory, "quire_memory_set_hook");
    if (!result)
        result = resolve_hook(hook, &set);
    if (!result)
        qi_visitors_set_hook(memory, &set);
    return result;
}

quire_result quire_device_set_hook(quire_device *device, const quire_hook *hook)
{
    quire_hook set = {.event = NULL};
    quire_result result = check_device(device, "quire_device_set_hook");
    if (!result)
        result = resolve_hook(hook, &set);
    if (!result)
        qi_visitors_set_device_hook(device, &set);
    return result;
}

/* ---- walk --------------------------------------------------------------------------------- */

quire_result quire_memory_walk(const quire_memory *memory,
                               bool (*visit)(void *user, const quire_item *item), void *user)
{
    if (!memory || !visit)
        return qi_fail_null("quire_memory_walk", !memory ? "memory" : "visit");
    if (memory->device->is_disabled)
        return qi_refuse_disabled();
    return qi_memory_walk(qi_memory_queried(memory), visit, user);
}
