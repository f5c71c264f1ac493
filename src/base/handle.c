/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * handle.c - the owner tags of the process: a bit per tag in use, and a counter for the rotation.
 */
#include "src/base/handle.h"

#include "src/base/atomic.h"

enum { TAGS = (1 << QI_TAG_BITS) - 1 };

static qi_atomic_u32 tag_counter;
static qi_atomic_u64 tags_in_use[(TAGS + 1) / 64]; /* one bit per tag */

static uint32_t next_tag(void)
{
    return qi_atomic_add_u32(&tag_counter, 1) % TAGS + 1;
}

static bool take(uint32_t tag)
{
    qi_atomic_u64 *word = &tags_in_use[tag / 64];
    uint64_t bit = UINT64_C(1) << tag % 64, old = qi_atomic_load_u64(word);
    do {
        if (old & bit)
            return false;
    } while (!qi_atomic_exchange_if_u64(word, &old, old | bit));
    return true;
}

uint32_t qi_tag_take(void)
{
    for (int i = 0; i < TAGS; i++) {
        uint32_t tag = next_tag();
        if (take(tag))
            return tag;
    }
    return next_tag(); /* every tag is in use: share one */
}

void qi_tag_give(uint32_t tag)
{
    qi_atomic_u64 *word = &tags_in_use[tag / 64];
    uint64_t bit = UINT64_C(1) << tag % 64, old = qi_atomic_load_u64(word);
    while (!qi_atomic_exchange_if_u64(word, &old, old & ~bit)) {
    }
}
