/*
 * policy.h - the page policy of a memory: defaults, checks, and the size of the next page.
 */
#ifndef QUIRE_SRC_CORE_DEVICE_POLICY_H
#define QUIRE_SRC_CORE_DEVICE_POLICY_H

#include "quire/memory.h"
#include "src/core/page/page.h"

/* Fills in what 0 means, for a kind of a device. */
quire_page_policy qi_policy_resolve(const quire_page_policy *asked, const quire_device *device,
                                    uint32_t kind);

/* Refuses what contradicts itself, and what a later version will offer. For a resolved policy. */
QUIRE_MUST_USE quire_result qi_policy_validate(const quire_page_policy *policy);

/* What the size of the next shared page depends on beside the policy; bytes. */
typedef struct qi_page_history {
    uint64_t last;    /* what the policy said for the one made last; 0: none yet */
    uint64_t largest; /* of those there are, those being made included; 0: none */
    uint64_t total;   /* of the same */
} qi_page_history;

/* Looks at every page, where the policy grows by those there are: else they count for nothing. */
qi_page_history qi_policy_history(const quire_page_policy *policy, const qi_pages *pages);

/* The size of the next shared page without regard to a request; at most the largest page. */
uint64_t qi_policy_next_page(const quire_page_policy *policy, const qi_page_history *history,
                             uint64_t granularity);

/* The same for a request that `size` bytes are placed for, where `next` is due. */
uint64_t qi_policy_page_for(const quire_page_policy *policy, uint64_t next, uint64_t size,
                            uint64_t granularity);

/* The bytes a page needs, up to the policy's page granularity; as they are near 2^64. */
uint64_t qi_policy_round(const quire_page_policy *policy, uint64_t needed);

/* Bytes to place for a request: extra padding added, then rounded up to the size granularity. */
QUIRE_MUST_USE bool qi_policy_size_overflows(const quire_page_policy *policy, uint64_t requested,
                                             uint64_t *size);

#endif
