/*
 * wish.c - see wish.h.
 */
#include "src/memory/wish.h"

#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/memory/checked.h"
#include "src/space/fit.h"

quire_result qi_wish_check(const quire_memory *memory, const qi_wish *wish)
{
    if (!wish->size)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "an allocation of size 0 is asked for");
    if (!qi_is_power_of_two(wish->alignment))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "alignment %u is not a power of two",
                            wish->alignment);
    if (wish->alignment > memory->largest_alignment)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                            "alignment %llu is above the largest of memory '%s', %llu",
                            (unsigned long long)wish->alignment, memory->name,
                            (unsigned long long)memory->largest_alignment);
    if (wish->dedicated && memory->policy.dedicated == QUIRE_DEDICATED_NEVER)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                            "a page of its own is asked for, and memory '%s' never gives one",
                            memory->name);
    if (wish->name && strlen(wish->name) > QUIRE_LONGEST_NAME)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "a name of %u bytes: %u are allowed",
                            strlen(wish->name), QUIRE_LONGEST_NAME);
    if (wish->host_access && !(memory->flags & QUIRE_HOST_VISIBLE))
        return qi_fail_text(QUIRE_ERROR_NOT_HOST_VISIBLE,
                            "host access is asked for, and memory '%s' of kind %u is not "
                            "host-visible (%s)",
                            memory->name, memory->kind, qi_flags(memory->flags).text);
    return QUIRE_SUCCESS;
}

quire_result qi_wish_from(const quire_memory *memory, const quire_allocation_options *options,
                          qi_wish *wish)
{
    quire_result result = qi_check_reserved(options, "quire_allocation_options");
    if (result)
        return result;
    *wish = (qi_wish){
        .size = options->size,
        .alignment = options->alignment ? options->alignment : 1,
        .name = options->name,
        .user_data = options->user_data,
        .zero = options->zero,
        .dedicated = options->dedicated,
        .host_access = options->host_read || options->host_write,
    };
    return qi_wish_check(memory, wish);
}

bool qi_wish_wants_dedicated(const quire_memory *memory, const qi_wish *wish)
{
    const quire_page_policy *policy = &memory->policy;
    bool is_one_page = memory->shards->space->fit->most_regions; /* which nothing is to outgrow */
    if (policy->dedicated == QUIRE_DEDICATED_NEVER)
        return wish->tied;
    return wish->dedicated || wish->tied || policy->dedicated == QUIRE_DEDICATED_ALWAYS ||
           (is_one_page && (wish->size > policy->page_size ||
                            policy->page_size - wish->size < qi_checked_most_added(memory))) ||
           (policy->dedicated_threshold && wish->size >= policy->dedicated_threshold);
}

uint64_t qi_wish_largest_at_once(const quire_memory *memory)
{
    const quire_page_policy *policy = &memory->policy;
    bool is_one_page = memory->shards->space->fit->most_regions;
    if (QI_IS_CHECKED || policy->extra_padding || policy->size_granularity > 1 ||
        memory->atom > 1 || policy->dedicated == QUIRE_DEDICATED_ALWAYS)
        return 0;
    if (policy->dedicated_threshold)
        return policy->dedicated_threshold - 1;
    return is_one_page ? policy->page_size : UINT64_MAX;
}
