/*
 * kind.c - which memory kind of a device serves a request or an intent best.
 *
 * A cost decides: each missing preferred and present avoided flag outweighs all the flags that
 * nobody asked for, and these tell between kinds that are equal so far. A kind is taken for what it
 * is needed for, so that a small window of device memory that the host can reach is not used up by
 * work that never looks at it. Drivers order their kinds by speed: the lowest index wins between
 * equals.
 */
#include <stdio.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/device/device.h"

enum { COST_PREFERENCE = 16, COST_UNASKED = 1 }; /* there are 9 flags */

/* Kinds with one of these behave so differently that they are never taken by accident. */
static const quire_memory_flags ONLY_WHEN_NAMED = QUIRE_LAZILY_ALLOCATED | QUIRE_PROTECTED |
                                                  QUIRE_DEVICE_COHERENT | QUIRE_DEVICE_UNCACHED |
                                                  QUIRE_OBJECTS_ONLY;

const char *quire_memory_flag_name(quire_memory_flags flag)
{
    static const char *const names[] = {
        "DEVICE_LOCAL",        "HOST_VISIBLE",        "HOST_COHERENT",
        "HOST_CACHED",         "LAZILY_ALLOCATED",    "PROTECTED",
        "DEVICE_COHERENT_AMD", "DEVICE_UNCACHED_AMD", "OBJECTS_ONLY"};
    if (!qi_is_power_of_two(flag) || flag & ~QI_KNOWN_FLAGS)
        return NULL;
    return names[qi_lowest_bit(flag)];
}

qi_flags_text qi_flags(quire_memory_flags flags)
{
    qi_flags_text out = {"no flags"};
    size_t length = 0;
    for (quire_memory_flags flag = 1; quire_memory_flag_name(flag); flag <<= 1)
        if (flags & flag)
            length += (size_t)snprintf(out.text + length, sizeof out.text - length, "%s%s",
                                       length ? "|" : "", quire_memory_flag_name(flag));
    return out;
}

static bool is_candidate(const quire_kind_request *request, quire_memory_flags flags)
{
    if (request->exact)
        return flags == request->required;
    quire_memory_flags named = request->required | request->preferred;
    return (flags & request->required) == request->required && !(flags & ONLY_WHEN_NAMED & ~named);
}

static uint32_t cost_of(const quire_kind_request *request, quire_memory_flags flags)
{
    quire_memory_flags asked = request->required | request->preferred | request->avoided;
    return COST_PREFERENCE * qi_count_bits(request->preferred & ~flags) +
           COST_PREFERENCE * qi_count_bits(request->avoided & flags) +
           COST_UNASKED * qi_count_bits(flags & ~asked);
}

static quire_result refuse(const quire_device *device, const quire_kind_request *request)
{
    if (request->kind_mask)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "device '%s' has no memory kind with %s%s among those of mask 0x%x",
                            device->info.name, request->exact ? "exactly " : "",
                            qi_flags(request->required).text, request->kind_mask);
    return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "device '%s' has no memory kind with %s%s",
                        device->info.name, request->exact ? "exactly " : "",
                        qi_flags(request->required).text);
}

static quire_result check_request(const quire_kind_request *request)
{
    quire_memory_flags all = request->required | request->preferred | request->avoided;
    if (all & ~QI_KNOWN_FLAGS)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "unknown memory flags %x",
                            all & ~QI_KNOWN_FLAGS);
    if (request->avoided & (request->required | request->preferred))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "memory flags %x are both avoided and asked for",
                            request->avoided & (request->required | request->preferred));
    if (request->exact && (request->preferred || request->avoided))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "an exact match leaves no room for preferred or avoided flags");
    return QUIRE_SUCCESS;
}

quire_result quire_device_choose_kind(const quire_device *device, const quire_kind_request *request,
                                      uint32_t *kind)
{
    if (kind)
        *kind = 0;
    if (!device || !request || !kind)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_device_choose_kind: device, request or kind is null");
    if (device->is_disabled)
        return qi_refuse_disabled();
    quire_result result = check_request(request);
    if (result)
        return result;
    uint32_t best = UINT32_MAX;
    uint32_t mask = request->kind_mask ? request->kind_mask : UINT32_MAX;
    for (uint32_t i = 0; i < device->info.kind_count; i++) {
        quire_memory_flags flags = device->info.kinds[i].flags;
        if (!(mask >> i & 1) || !is_candidate(request, flags))
            continue;
        uint32_t cost = cost_of(request, flags);
        if (cost < best) {
            best = cost;
            *kind = i;
        }
    }
    return best == UINT32_MAX ? refuse(device, request) : QUIRE_SUCCESS;
}

/* What an intent asks of a kind; the table stands in quire/device.h. */
static quire_kind_request request_for(const quire_intent *intent)
{
    if (intent->host_read && intent->host_write)
        return (quire_kind_request){.required = QUIRE_HOST_VISIBLE,
                                    .preferred = QUIRE_HOST_CACHED | QUIRE_DEVICE_LOCAL |
                                                 QUIRE_HOST_COHERENT};
    if (intent->host_read)
        return (quire_kind_request){.required = QUIRE_HOST_VISIBLE,
                                    .preferred = QUIRE_HOST_CACHED | QUIRE_HOST_COHERENT,
                                    .avoided = QUIRE_DEVICE_LOCAL};
    if (intent->upload)
        return (quire_kind_request){.required = QUIRE_HOST_VISIBLE,
                                    .preferred = QUIRE_HOST_COHERENT,
                                    .avoided = QUIRE_DEVICE_LOCAL};
    if (intent->host_write)
        return (quire_kind_request){.required = QUIRE_HOST_VISIBLE,
                                    .preferred = QUIRE_DEVICE_LOCAL | QUIRE_HOST_COHERENT};
    return (quire_kind_request){.required = QUIRE_DEVICE_LOCAL};
}

quire_result qi_kind_request_for(const quire_device *device, const quire_intent *intent,
                                 quire_kind_request *request)
{
    if (intent->upload && (!intent->host_write || intent->host_read))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "an upload is written by the host and not read by it: set host_write alone");
    if (intent->exportable && !device->info.exportable)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "backend %s cannot export these pages",
                            device->info.backend);
    *request = request_for(intent);
    return QUIRE_SUCCESS;
}

quire_result quire_device_choose_kind_for(const quire_device *device, const quire_intent *intent,
                                          uint32_t *kind)
{
    if (kind)
        *kind = 0;
    if (!device || !intent || !kind)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_device_choose_kind_for: device, intent or kind is null");
    if (device->is_disabled)
        return qi_refuse_disabled();
    quire_kind_request request;
    quire_result result = qi_kind_request_for(device, intent, &request);
    return result ? result : quire_device_choose_kind(device, &request, kind);
}
