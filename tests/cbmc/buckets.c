/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * buckets.c - the comparison of a row of fractions, for all rows. CBMC proves the portable form;
 * the programs built without CBMC also test the form for the processor.
 */
#include "src/space/segregated/buckets.h"

#include "tests/cbmc/proof.h"

PROOF(a_bucket_is_chosen_when_its_fraction_is_not_below)
{
    _Alignas(QI_MAX_BUCKETS) uint8_t fractions[QI_MAX_BUCKETS];
    for (uint32_t i = 0; i < QI_MAX_BUCKETS; i++)
        fractions[i] = (uint8_t)any_u64();
    uint32_t fraction = (uint32_t)any_below(UINT8_MAX + 1);
    uint32_t mask = qi_buckets_at_least(fractions, fraction);
    for (uint32_t i = 0; i < QI_MAX_BUCKETS; i++)
        PROVE((mask >> i & 1) == (fractions[i] >= fraction));
    PROVE(mask >> QI_MAX_BUCKETS == 0);
    PROVE(mask == qi_buckets_at_least_portable(fractions, fraction));
}
