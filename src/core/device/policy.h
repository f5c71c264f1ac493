/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * policy.h - the page policy of a memory: pure functions from a constant policy, and the pages so
 * far, to the size of the next page. Also what the zeros of a policy mean, and its checks. No lock
 * is needed.
 */
#ifndef QUIRE_SRC_CORE_DEVICE_POLICY_H
#define QUIRE_SRC_CORE_DEVICE_POLICY_H

#include "quire/memory.h"
#include "quire/preset.h"
#include "src/core/device/device.h"

/*
 * The kind of growth of a resolved policy whose pages follow use: a caller selects it by leaving
 * all sizes 0. first_page_size is the smallest page, page_size and max_page the largest.
 */
#define QI_GROWTH_USE ((quire_growth)(QUIRE_GROWTH_RESERVED + 1))

/*
 * Returns `requested` with every 0 replaced by what it means for this kind of the device.
 * `has_one_page`: the fit of the memory has one shared page of constant size.
 */
quire_page_policy qi_policy_resolve(const quire_page_policy *requested, const quire_device *device,
                                    uint32_t kind, bool has_one_page);

/* Checks a policy and what it resolves to. Fails with INVALID_ARGUMENT if it contradicts itself,
   and if a field is set that this version does not use. */
QUIRE_MUST_USE quire_result qi_policy_validate(const quire_page_policy *requested,
                                               const quire_page_policy *resolved);

/* The policies of other allocators, as quire_page_policy_preset and quire_page_policy_paddle. */
QUIRE_MUST_USE quire_result qi_policy_preset(quire_preset preset, const quire_device *device,
                                             uint32_t kind, quire_page_policy *policy);
QUIRE_MUST_USE quire_result qi_policy_paddle(quire_paddle_strategy strategy,
                                             const quire_paddle_sizes *sizes,
                                             quire_page_policy *policy);

/* What the size of the next shared page depends on besides the policy; bytes. */
typedef struct qi_page_history {
    uint64_t last;    /* policy size of the page made last; 0 means no page was made */
    uint64_t largest; /* size of the largest page, including pages being made; 0 means none */
    uint64_t total;   /* sum of the sizes of the same pages */
    uint64_t own;     /* the part of `total` that belongs to the shard that makes the page */
    uint64_t floor;   /* the shard's part of the bytes that the memory keeps in any case */
} qi_page_history;

/* The size of the next shared page, without regard to a request; at most the policy's max_page. */
uint64_t qi_policy_next_page(const quire_page_policy *policy, const qi_page_history *history,
                             uint64_t granularity);

/* The size of the page for a request of `size` placed bytes, where `next` is the next page's. The
   request itself needs a page of `needed` bytes, which the result can be below. */
uint64_t qi_policy_page_for(const quire_page_policy *policy, uint64_t next, uint64_t size,
                            uint64_t needed, uint64_t granularity);

/* Rounds the bytes that a page needs up to the policy's page granularity. Returns them unchanged
   if the rounded number exceeds 64 bits. */
uint64_t qi_policy_round(const quire_page_policy *policy, uint64_t needed);

/*
 * Computes the bytes to place for a request: adds the extra padding, then rounds up to the size
 * granularity. Returns true if the result exceeds 64 bits.
 */
QUIRE_MUST_USE bool qi_policy_size_overflows(const quire_page_policy *policy, uint64_t requested,
                                             uint64_t *size);

#endif
