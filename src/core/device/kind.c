/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * kind.c - chooses the memory kind of lowest cost for a request or an intent, and names the flags
 * of kinds.
 *
 * A cost is a number whose bits are the flags in which the kind departs from the request, in the
 * order of their weight; comparing costs therefore compares kinds flag by flag. Only kinds with
 * equal flags have equal costs, so the order of the kinds decides only between these.
 *
 * Pure functions of their arguments and the description of the device; no lock.
 */
#include <stdio.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/device/device.h"

/*
 * Flags that a request prefers or avoids, from the heaviest: see quire_device_choose_kind. Reading
 * uncached memory is slower than any other mismatch. Coherence is last because quire flushes and
 * invalidates by itself.
 */
static const quire_memory_flags NAMED_ORDER[] = {
    QUIRE_OBJECTS_ONLY,    QUIRE_PROTECTED,       QUIRE_LAZILY_ALLOCATED,
    QUIRE_DEVICE_COHERENT, QUIRE_DEVICE_UNCACHED, QUIRE_HOST_CACHED,
    QUIRE_DEVICE_LOCAL,    QUIRE_HOST_VISIBLE,    QUIRE_HOST_COHERENT,
};

/*
 * Flags that a request does not name, from the heaviest. The first two leave the part of the device
 * memory that the host can reach, which may be small, to requests that name it.
 */
static const quire_memory_flags EXTRA_ORDER[] = {
    QUIRE_HOST_VISIBLE,
    QUIRE_DEVICE_LOCAL,
    QUIRE_HOST_CACHED,
    QUIRE_HOST_COHERENT,
};

/* Kinds with one of these flags behave so differently that a request must name the flag. */
static const quire_memory_flags ONLY_WHEN_NAMED = QUIRE_LAZILY_ALLOCATED | QUIRE_PROTECTED |
                                                  QUIRE_DEVICE_COHERENT | QUIRE_DEVICE_UNCACHED |
                                                  QUIRE_OBJECTS_ONLY;

const char *qi_memory_flag_name(quire_memory_flags flag)
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
    for (quire_memory_flags flag = 1; qi_memory_flag_name(flag); flag <<= 1)
        if (flags & flag)
            length += (size_t)snprintf(out.text + length, sizeof out.text - length, "%s%s",
                                       length ? "|" : "", qi_memory_flag_name(flag));
    return out;
}

static bool is_candidate(const quire_kind_request *request, quire_memory_flags flags)
{
    if (request->exact)
        return flags == request->required;
    quire_memory_flags named = request->required | request->preferred;
    return (flags & request->required) == request->required && !(flags & ONLY_WHEN_NAMED & ~named);
}

/* Appends the given flags to the bits of `cost`, in this order. */
static uint32_t append(uint32_t cost, quire_memory_flags flags, const quire_memory_flags *order,
                       size_t count)
{
    for (size_t i = 0; i < count; i++)
        cost = cost << 1 | ((flags & order[i]) != 0);
    return cost;
}

/* A candidate has no other flags than those of the two orders: all special ones are named. */
static uint32_t cost_of(const quire_kind_request *request, quire_memory_flags flags)
{
    quire_memory_flags named = request->required | request->preferred | request->avoided;
    quire_memory_flags misses = (request->preferred & ~flags) | (request->avoided & flags);
    uint32_t cost = append(0, misses, NAMED_ORDER, sizeof NAMED_ORDER / sizeof *NAMED_ORDER);
    return append(cost, flags & ~named, EXTRA_ORDER, sizeof EXTRA_ORDER / sizeof *EXTRA_ORDER);
}

static quire_result refuse(const quire_device *device, const quire_kind_request *request)
{
    if (request->mask)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "device '%s' has no memory kind with %s%s in the mask 0x%x",
                            device->info.name, request->exact ? "exactly " : "",
                            qi_flags(request->required).text, request->mask);
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
                            "memory flags %x are both avoided and requested",
                            request->avoided & (request->required | request->preferred));
    if (request->exact && (request->preferred || request->avoided))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "an exact match allows no preferred or avoided flags");
    return QUIRE_SUCCESS;
}

quire_result qi_kind_choose(const quire_device *device, const quire_kind_request *request,
                            uint32_t *kind)
{
    quire_result result = check_request(request);
    if (result)
        return result;
    uint32_t best = UINT32_MAX;
    uint32_t mask = request->mask ? request->mask : UINT32_MAX;
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

/* The table of quire/device.h, at quire_intent. */
static quire_kind_request request_for(quire_intent intent)
{
    bool is_read = intent & QUIRE_INTENT_HOST_READ;
    if (is_read && intent & QUIRE_INTENT_HOST_WRITE)
        return (quire_kind_request){.required = QUIRE_HOST_VISIBLE,
                                    .preferred = QUIRE_HOST_CACHED | QUIRE_DEVICE_LOCAL |
                                                 QUIRE_HOST_COHERENT};
    if (is_read)
        return (quire_kind_request){.required = QUIRE_HOST_VISIBLE,
                                    .preferred = QUIRE_HOST_CACHED | QUIRE_HOST_COHERENT,
                                    .avoided = QUIRE_DEVICE_LOCAL};
    if (intent & QUIRE_INTENT_UPLOAD)
        return (quire_kind_request){.required = QUIRE_HOST_VISIBLE,
                                    .preferred = QUIRE_HOST_COHERENT,
                                    .avoided = QUIRE_DEVICE_LOCAL};
    if (intent & QUIRE_INTENT_HOST_WRITE)
        return (quire_kind_request){.required = QUIRE_HOST_VISIBLE,
                                    .preferred = QUIRE_DEVICE_LOCAL | QUIRE_HOST_COHERENT};
    return (quire_kind_request){.required = QUIRE_DEVICE_LOCAL};
}

static quire_result check_intent(const quire_device *device, quire_intent intent)
{
    const quire_intent known = QUIRE_INTENT_DEVICE | QUIRE_INTENT_HOST_READ |
                               QUIRE_INTENT_HOST_WRITE | QUIRE_INTENT_UPLOAD | QUIRE_INTENT_EXPORT;
    if (intent & ~known)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "unknown bits %x of an intent",
                            intent & ~known);
    if (intent & QUIRE_INTENT_UPLOAD && intent & QUIRE_INTENT_HOST_READ)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "an intent to upload and to read: what the host uploads it does not read");
    if (intent & QUIRE_INTENT_EXPORT && !device->info.exportable)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "backend %s cannot export these pages",
                            device->info.backend);
    return QUIRE_SUCCESS;
}

bool qi_kind_has_flags(const quire_kind_request *request)
{
    return request->required || request->preferred || request->avoided || request->exact;
}

quire_result qi_kind_resolve(const quire_device *device, const quire_kind_request *given,
                             quire_kind_request *request)
{
    quire_result result = qi_check_unused(given, "quire_kind_request");
    if (!result)
        result = check_intent(device, given->intent);
    if (result)
        return result;
    if (given->intent && qi_kind_has_flags(given))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "a request for a memory kind: give flags or an intent, not both");
    *request = given->intent ? request_for(given->intent) : *given;
    request->mask = given->mask;
    return QUIRE_SUCCESS;
}

quire_result qi_kind_find(const quire_device *device, const quire_kind_request *given,
                          const quire_kind_request *open, uint32_t *kind)
{
    quire_kind_request request;
    quire_result result = qi_kind_resolve(device, given, &request);
    if (result)
        return result;
    if (qi_kind_has_flags(&request))
        return qi_kind_choose(device, &request, kind);
    if (qi_is_power_of_two(given->mask) && qi_lowest_bit(given->mask) < device->info.kind_count) {
        *kind = qi_lowest_bit(given->mask);
        return QUIRE_SUCCESS;
    }
    request = *open;
    request.mask = given->mask;
    return qi_kind_choose(device, &request, kind);
}

quire_result qi_device_check_bytes(const quire_device *device, uint32_t kind)
{
    if (!(device->info.kinds[kind].flags & QUIRE_OBJECTS_ONLY))
        return QUIRE_SUCCESS;
    return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                        "memory kind %u is for objects only: it has no bytes to write or read",
                        kind);
}
