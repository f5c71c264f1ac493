/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * request.c - checks a request in two steps, its values alone and then against the memory, because
 * a request by kind is checked before a memory exists for it. Also decides which requests need a
 * dedicated page (see request.h).
 */
#include "src/core/allocate/request.h"

#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/checked.h"
#include "src/space/space.h"

/* Inline in qi_request_check, which every object calls twice. */
QI_ALWAYS_INLINE quire_result check_values(const qi_request *request)
{
    if (!request->range.requested)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "an allocation of size 0 is requested");
    if (!qi_is_power_of_two(request->range.alignment))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "alignment %u is not a power of two",
                            request->range.alignment);
    if (request->name && strlen(request->name) > QUIRE_MAX_NAME)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "the name of an allocation has %u byte%s: %u are allowed",
                            strlen(request->name), QUIRE_MAX_NAME);
    return QUIRE_SUCCESS;
}

quire_result qi_request_check_values(const qi_request *request)
{
    return check_values(request);
}

quire_result qi_request_check(const quire_memory *memory, const qi_request *request)
{
    quire_result result = check_values(request);
    if (result)
        return result;
    if (request->range.alignment > memory->max_alignment)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                            "alignment %llu exceeds the maximum of memory '%s', %llu",
                            (unsigned long long)request->range.alignment, memory->name,
                            (unsigned long long)memory->max_alignment);
    if (request->dedicated && memory->policy.dedicated == QUIRE_DEDICATED_NEVER)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                            "a dedicated page is requested, and the policy of memory '%s' has none",
                            memory->name);
    if (request->upper && (!memory->shards[0]->space->fit->has_upper_end || request->dedicated))
        return qi_fail_naming(QUIRE_ERROR_INVALID_ARGUMENT,
                              "the upper end is requested, and only the shared page of a linear "
                              "memory has one: '%t'",
                              memory->name, 0);
    if (request->host_use && !(memory->flags & QUIRE_HOST_VISIBLE))
        return qi_fail_text(QUIRE_ERROR_NOT_HOST_VISIBLE,
                            "host access is requested, and memory '%s' of kind %u is not "
                            "host-visible (%s)",
                            memory->name, memory->kind, qi_flags(memory->flags).text);
    return QUIRE_SUCCESS;
}

/*
 * Derives the unit and the alignment of a request whose offset is a multiple of `number`. Pages
 * begin at multiples of limits.page_alignment, or of what the memory requests for them. Up to that
 * alignment an address and an offset are multiples of the same powers of two.
 */
static quire_result resolve_unit(const quire_memory *memory, uint64_t number, qi_request *request)
{
    uint64_t base = memory->device->info.limits.page_alignment, power = number & (0 - number);
    uint64_t odd = number / power;
    if (base && request->range.alignment > base)
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                            "offset_alignment %u with alignment %u: pages of the device begin at "
                            "multiples of %u",
                            number, request->range.alignment, base);
    power = power > request->range.alignment ? power : request->range.alignment;
    power = power > memory->atom ? power : memory->atom;
    if (odd > memory->max_alignment / power)
        return qi_fail_naming(QUIRE_ERROR_INVALID_ARGUMENT,
                              "offset_alignment %u with alignment %u: memory '%t' allows multiples "
                              "up to %u",
                              memory->name, number, request->range.alignment,
                              memory->max_alignment);
    request->unit = odd * power;
    request->range.alignment = base && power > base ? base : power;
    return QUIRE_SUCCESS;
}

/* A lazy allocation has no memory when the call returns, and no other allocation's range. */
static quire_result check_lazy(const quire_memory *memory, const quire_allocation_options *options)
{
    const char *word = options->zero               ? "zero"
                       : options->dedicated        ? "dedicated"
                       : options->mapped           ? "mapped"
                       : options->existing_pages   ? "existing_pages"
                       : options->within_budget    ? "within_budget"
                       : options->offset_alignment ? "offset_alignment"
                       : options->stream           ? "stream"
                                                   : NULL;
    if (!memory->is_elastic)
        return qi_fail_naming(QUIRE_ERROR_INVALID_ARGUMENT,
                              "a lazy allocation is requested, and memory '%t' is not elastic",
                              memory->name, 0);
    return word ? qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                               "quire_allocation_options.lazy does not go with %s", word)
                : QUIRE_SUCCESS;
}

quire_result qi_request_from(const quire_memory *memory, const quire_allocation_options *options,
                             qi_request *request)
{
    quire_result result = qi_check_unused(options, "quire_allocation_options");
    if (result)
        return result;
    *request = (qi_request){
        .range = qi_range_request_from(options), .upper = options->upper, .lazy = options->lazy};
    /* Another place would have another offset. Work on what was freed before may still use the
       range of an allocation with a stream: nobody else may get it. */
    const bool moves = options->movable || memory->is_movable;
    request->range.extras =
        moves && !options->offset_alignment && !options->stream ? QI_EXTRA_MOVABLE : 0;
    QI_REQUEST_TAKE(request, options);
    if (options->upper && options->stream)
        return qi_fail(
            QUIRE_ERROR_INVALID_ARGUMENT,
            "quire_allocation_options.upper is set with a stream, whose freed ranges lie anywhere");
    if (options->lazy)
        result = check_lazy(memory, options);
    if (!result)
        result = qi_request_check(memory, request);
    return !result && options->offset_alignment
               ? resolve_unit(memory, options->offset_alignment, request)
               : result;
}

bool qi_request_needs_dedicated(const quire_memory *memory, const qi_request *request)
{
    const quire_page_policy *policy = &memory->policy;
    /* Such a fit has one shared page, of the policy's size. A larger request would not fit in
       it. */
    bool is_one_page = memory->shards[0]->space->fit->max_regions;
    if (policy->dedicated == QUIRE_DEDICATED_NEVER)
        return request->tied;
    return request->dedicated || request->tied || policy->dedicated == QUIRE_DEDICATED_ALWAYS ||
           (is_one_page &&
            (request->range.requested > policy->page_size ||
             policy->page_size - request->range.requested < qi_checked_max_added(memory))) ||
           (policy->dedicated_threshold && request->range.requested >= policy->dedicated_threshold);
}

/* 0 if a range holds more than was requested, or if every page is dedicated. */
uint64_t qi_request_max_fast(const quire_memory *memory)
{
    const quire_page_policy *policy = &memory->policy;
    bool is_one_page = memory->shards[0]->space->fit->max_regions;
    if (QI_IS_CHECKED || policy->extra_padding || policy->size_granularity > 1 ||
        memory->atom > 1 || policy->dedicated == QUIRE_DEDICATED_ALWAYS)
        return 0;
    if (policy->dedicated_threshold)
        return policy->dedicated_threshold - 1;
    return is_one_page ? policy->page_size : UINT64_MAX;
}
