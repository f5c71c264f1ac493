/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory.c - the public functions of quire/memory.h: they check pointers, and refuse memories of a
 * device that did not survive a fork.
 */
#include "quire/memory.h"

#include <string.h>

#include "src/api/check.h"
#include "src/base/result.h"
#include "src/core/deferred/deferred_free.h"
#include "src/core/memory/memory.h"
#include "src/core/memory/options.h"
#include "src/core/page/empty.h"
#include "src/core/state/visitors.h"
#include "src/core/stats/stats.h"

/* ---- creation and destruction --------------------------------------------------------------- */

quire_result quire_memory_create_with(quire_device *device, const quire_memory_options *options,
                                      quire_page_extra extra, quire_memory **memory)
{
    if (memory)
        *memory = NULL;
    if (!device || !memory)
        return qi_fail_null("quire_memory_create", !device ? "device" : "memory");
    if (device->is_disabled)
        return qi_refuse_disabled();
    return qi_memory_create(device, options, extra, memory);
}

quire_result quire_memory_create(quire_device *device, const quire_memory_options *options,
                                 quire_memory **memory)
{
    return quire_memory_create_with(device, options, (quire_page_extra){.pointer = NULL}, memory);
}

quire_result quire_memory_destroy(quire_memory **memory)
{
    if (!memory)
        return qi_fail_null("quire_memory_destroy", "memory");
    return *memory ? qi_memory_destroy(memory) : QUIRE_SUCCESS;
}

void quire_memory_destroy_all(quire_memory **memory)
{
    if (memory && *memory)
        qi_memory_destroy_all(memory);
}

quire_result quire_device_walk(const quire_device *device,
                               bool (*visit)(void *user, quire_memory *memory), void *user)
{
    if (!device || !visit)
        return qi_fail_null("quire_device_walk", !device ? "device" : "visit");
    if (device->is_disabled)
        return qi_refuse_disabled();
    qi_visitors_walk(qi_device_queried(device), visit, user);
    return QUIRE_SUCCESS;
}

quire_device *quire_memory_device(const quire_memory *memory)
{
    return memory ? memory->device : NULL;
}

uint32_t quire_memory_kind(const quire_memory *memory)
{
    return memory ? memory->kind : 0;
}

quire_result quire_memory_get_info(const quire_memory *memory, quire_memory_info *info)
{
    if (info)
        *info = (quire_memory_info){0};
    if (!memory || !info)
        return qi_fail_null("quire_memory_get_info", !memory ? "memory" : "info");
    if (memory->device->is_disabled)
        return qi_refuse_disabled();
    *info = qi_memory_get_info(qi_memory_queried(memory));
    return QUIRE_SUCCESS;
}

/* ---- pages ---------------------------------------------------------------------------------- */

quire_result quire_memory_trim(quire_memory *memory, uint64_t target, uint64_t *released)
{
    if (released)
        *released = 0;
    quire_result result = check_memory(memory, "quire_memory_trim");
    if (result)
        return result;
    qi_deferred_collect_quietly(memory);
    uint64_t bytes = qi_memory_trim(memory, target);
    if (released)
        *released = bytes;
    return QUIRE_SUCCESS;
}

quire_result quire_device_trim(quire_device *device, uint64_t target, uint64_t *released)
{
    if (released)
        *released = 0;
    quire_result result = check_device(device, "quire_device_trim");
    if (result)
        return result;
    uint64_t bytes = 0;
    quire_memory *memory = NULL;
    while ((memory = qi_visitors_next(device, memory)) != NULL) {
        qi_deferred_collect_quietly(memory);
        bytes += qi_memory_trim(memory, target);
        uint64_t left = target ? qi_stats_present(memory).empty_bytes : 0;
        target -= left < target ? left : target;
    }
    if (released)
        *released = bytes;
    return QUIRE_SUCCESS;
}

quire_result quire_memory_set_limit(quire_memory *memory, uint64_t bytes)
{
    quire_result result = check_memory(memory, "quire_memory_set_limit");
    if (!result)
        result = qi_memory_resolve_limit(memory->device, memory->kind, bytes, &bytes);
    if (!result)
        qi_memory_set_limit(memory, bytes);
    return result;
}

quire_result quire_memory_preallocate(quire_memory *memory, uint64_t bytes)
{
    quire_result result = check_memory(memory, "quire_memory_preallocate");
    return result ? result : qi_memory_preallocate(memory, bytes);
}

/* ---- limits by name ------------------------------------------------------------------------- */

static quire_result check_prefix(const quire_memory *memory, const char *prefix, const char *call)
{
    if (!memory || !prefix)
        return qi_fail_null(call, !memory ? "memory" : "prefix");
    if (strlen(prefix) > QUIRE_MAX_NAME)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "a prefix of %u byte%s: %u are allowed",
                            strlen(prefix), QUIRE_MAX_NAME);
    return memory->device->is_disabled ? qi_refuse_disabled() : QUIRE_SUCCESS;
}

quire_result quire_memory_set_name_limit(quire_memory *memory, const char *prefix, uint64_t bytes)
{
    quire_result result = check_prefix(memory, prefix, "quire_memory_set_name_limit");
    return result ? result : qi_name_limit_set(memory, prefix, bytes);
}

quire_result quire_memory_get_name_usage(const quire_memory *memory, const char *prefix,
                                         quire_name_usage *usage)
{
    if (usage)
        *usage = (quire_name_usage){0};
    quire_result result = check_prefix(memory, prefix, "quire_memory_get_name_usage");
    if (!result && !usage)
        result = qi_fail_null("quire_memory_get_name_usage", "usage");
    if (!result)
        *usage = qi_name_usage_of(qi_memory_queried(memory), prefix);
    return result;
}
