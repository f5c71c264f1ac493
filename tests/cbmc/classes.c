/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * classes.c - size classes for all sizes from 1 to 2^32 - 1 granules: every range of a list is
 * large enough for the requests that are directed to it.
 */
#include "src/space/segregated/classes.h"

#include "tests/cbmc/proof.h"

static uint32_t any_size(void)
{
    uint32_t size = any_u32();
    ASSUME(size != 0);
    return size;
}

PROOF(larger_ranges_are_never_in_a_lower_list)
{
    uint32_t small = any_size(), large = any_size();
    ASSUME(small <= large);
    qi_class a = qi_class_of_range(small), b = qi_class_of_range(large);
    PROVE(a.index <= b.index);
    PROVE(a.index < b.index || a.fraction <= b.fraction);
}

PROOF(requests_are_ordered_as_ranges_are)
{
    uint32_t small = any_size(), large = any_size();
    ASSUME(small <= large);
    qi_class a = qi_class_of_request(small), b = qi_class_of_request(large);
    PROVE(a.index < b.index || (a.index == b.index && a.fraction <= b.fraction));
}

PROOF(a_range_that_is_admitted_is_large_enough)
{
    uint32_t size = any_size(), request = any_size();
    qi_class range = qi_class_of_range(size), want = qi_class_of_request(request);
    ASSUME(range.index > want.index ||
           (range.index == want.index && range.fraction >= want.fraction));
    PROVE(size >= request);
}

/* How much a fraction gives away: less than one part in 2^13 of the size. */
PROOF(a_range_that_is_not_admitted_is_hardly_larger)
{
    uint32_t size = any_size(), request = any_size();
    qi_class range = qi_class_of_range(size), want = qi_class_of_request(request);
    ASSUME(range.index == want.index && range.fraction < want.fraction && size >= request);
    uint64_t counted = (uint64_t)request + (1u << QI_MANTISSA_BITS);
    PROVE(size - request <= counted >> (QI_MANTISSA_BITS + QI_FRACTION_BITS));
}

PROOF(classes_are_within_the_tables)
{
    uint32_t size = any_size();
    qi_class range = qi_class_of_range(size), request = qi_class_of_request(size);
    PROVE(range.index < QI_CLASS_LIMIT && request.index < QI_CLASS_LIMIT);
    PROVE(range.fraction <= UINT8_MAX && request.fraction <= UINT8_MAX);
    PROVE(request.index > range.index || request.fraction >= range.fraction);
}

PROOF(every_class_is_used)
{
    uint32_t size = any_size();
    ASSUME(size < UINT32_MAX);
    uint32_t step = qi_class_of_range(size + 1).index - qi_class_of_range(size).index;
    PROVE(step <= 1);
    PROVE(size >= 1u << QI_MANTISSA_BITS || step == 1);
}
