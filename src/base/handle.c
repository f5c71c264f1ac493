/*
 * handle.c - the process-wide tag counter (see handle.h).
 */
#include "src/base/handle.h"

#include "src/base/atomic.h"

static qi_atomic_u32 tag_counter;

uint32_t qi_next_tag(void)
{
    const uint32_t tags = (UINT32_C(1) << QI_TAG_BITS) - 1;
    return qi_atomic_add_u32(&tag_counter, 1) % tags + 1;
}
