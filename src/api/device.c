/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * device.c - the public functions of quire/device.h, and those of quire/backend.h that create a
 * device and look into it: each checks its arguments, refuses a device that did not survive a fork,
 * and calls the core.
 */
#include <string.h>

#include "src/base/result.h"
#include "src/core/device/device.h"
#include "src/core/memory/default_memory.h"
#include "src/core/memory/fork.h"
#include "src/core/memory/options.h"
#include "src/core/record/recorder.h"
#include "src/core/state/event.h"

/* ---- creation and destruction ------------------------------------------------------------- */

quire_result quire_device_create(const quire_backend *table, void *state,
                                 const quire_device_options *options, quire_device **out)
{
    if (out)
        *out = NULL;
    if (!table || !out)
        return qi_fail_null("quire_device_create", !table ? "table" : "device");
    if (table->size < offsetof(quire_backend, destroy))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "the backend table says it has %u byte%s, too few for what is required",
                            table->size);
    quire_device_options resolved = options ? *options : (quire_device_options){0};
    quire_result result = qi_check_unused(&resolved, "quire_device_options");
    if (result)
        return result;
    qi_log_read_environment();
    quire_device *device = NULL;
    result = qi_device_create(table, state, &resolved, &device);
    if (result)
        return result;
    result = qi_fork_add(device);
    if (result) {
        qi_device_free(device);
        return result;
    }
    *out = device;
    qi_log(&device->log, QUIRE_LOG_INFO,
           "device '%s' opened: backend %s, %u heap%s, %u memory kind%s", device->info.name,
           table->name, device->info.heap_count, qi_plural(device->info.heap_count),
           device->info.kind_count, qi_plural(device->info.kind_count));
    qi_user_options_read(device);
    if (!resolved.untraced)
        qi_recorder_start_by_environment(device);
    return QUIRE_SUCCESS;
}

quire_result quire_device_destroy(quire_device **device)
{
    if (!device)
        return qi_fail_null("quire_device_destroy", "device");
    quire_device *destroyed = *device;
    if (!destroyed)
        return QUIRE_SUCCESS;
    quire_result result = qi_device_prepare_end(destroyed);
    if (result)
        return result;
    *device = NULL;
    qi_default_memories_destroy(destroyed);
    qi_fork_remove(destroyed);
    qi_event_end_watchers(destroyed, NULL, false);
    qi_device_destroy(destroyed);
    return QUIRE_SUCCESS;
}

/* ---- description -------------------------------------------------------------------------- */

quire_result quire_device_get_info(const quire_device *device, quire_device_info *info)
{
    if (info)
        memset(info, 0, sizeof *info);
    if (!device || !info)
        return qi_fail_null("quire_device_get_info", !device ? "device" : "info");
    if (device->is_disabled)
        return qi_refuse_disabled();
    *info = device->info;
    return QUIRE_SUCCESS;
}

const quire_backend *quire_device_backend(const quire_device *device)
{
    return device ? device->original : NULL;
}

void *quire_device_state(const quire_device *device)
{
    return device ? device->state : NULL;
}

quire_result quire_backend_fail(quire_result result, int64_t native_code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    qi_fail_native(result, native_code, format, args);
    va_end(args);
    return result;
}

/* ---- memory kinds ------------------------------------------------------------------------- */

const char *quire_memory_flag_name(quire_memory_flags flag)
{
    return qi_memory_flag_name(flag);
}

quire_result quire_device_choose_kind(const quire_device *device, const quire_kind_request *request,
                                      uint32_t *kind)
{
    if (kind)
        *kind = 0;
    if (!device || !request || !kind)
        return qi_fail_null("quire_device_choose_kind", !device    ? "device"
                                                        : !request ? "request"
                                                                   : "kind");
    if (device->is_disabled)
        return qi_refuse_disabled();
    const quire_kind_request open = {.preferred = QUIRE_DEVICE_LOCAL};
    return qi_kind_find(device, request, &open, kind);
}

/* ---- limits and budgets ------------------------------------------------------------------- */

quire_result quire_device_set_heap_limit(quire_device *device, uint32_t heap, uint64_t bytes)
{
    if (!device)
        return qi_fail_null("quire_device_set_heap_limit", "device");
    if (device->is_disabled)
        return qi_refuse_disabled();
    return qi_device_set_heap_limit(device, heap, bytes);
}

quire_result quire_device_set_page_limit(quire_device *device, uint64_t pages)
{
    if (!device)
        return qi_fail_null("quire_device_set_page_limit", "device");
    if (device->is_disabled)
        return qi_refuse_disabled();
    qi_account_set_limit(&device->pages, pages);
    return QUIRE_SUCCESS;
}

quire_result quire_device_get_budget(const quire_device *device, uint32_t heap,
                                     quire_budget_info *info)
{
    if (info)
        *info = (quire_budget_info){0};
    if (!device || !info)
        return qi_fail_null("quire_device_get_budget", !device ? "device" : "info");
    if (device->is_disabled)
        return qi_refuse_disabled();
    return qi_device_get_budget(qi_device_queried(device), heap, info);
}
