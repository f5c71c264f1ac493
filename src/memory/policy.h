/*
 * policy.h - the page policy of a memory: defaults, checks, and the size of the next page.
 */
#ifndef QUIRE_SRC_MEMORY_POLICY_H
#define QUIRE_SRC_MEMORY_POLICY_H

#include "quire/memory.h"
#include "src/memory/device.h"

/* Fills in what 0 means, for a kind of a device. */
quire_page_policy qi_policy_resolve(const quire_page_policy *asked, const quire_device *device,
                                    uint32_t kind);

/* Refuses what contradicts itself, and what a later version will offer. For a resolved policy. */
QUIRE_MUST_USE quire_result qi_policy_validate(const quire_page_policy *policy);

/* The size of the page after one of `last` bytes (0: the first), without regard to a request. */
uint64_t qi_policy_next_page(const quire_page_policy *policy, uint64_t last, uint64_t granularity);

/* Bytes to place for a request: extra padding added, then rounded up to the size granularity. */
QUIRE_MUST_USE bool qi_policy_size_overflows(const quire_page_policy *policy, uint64_t requested,
                                             uint64_t *size);

#endif
