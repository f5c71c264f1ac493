/*
 * refusals.c - a refused size lowers the limit of its alignment and of all larger ones.
 */
#include "src/space/refusals.h"

static void reset(qi_refusals *refusals)
{
    for (uint32_t i = 0; i < QI_ALIGNMENT_COUNT; i++)
        refusals->least_size[0][i] = refusals->least_size[1][i] = UINT64_MAX;
    refusals->any = true;
}

void qi_refusals_add(qi_refusals *refusals, uint64_t size, uint64_t alignment, bool optimal)
{
    if (!refusals->any)
        reset(refusals);
    uint64_t *least = refusals->least_size[optimal];
    for (uint32_t i = qi_lowest_bit(alignment); i < QI_ALIGNMENT_COUNT; i++)
        if (size < least[i])
            least[i] = size;
}
