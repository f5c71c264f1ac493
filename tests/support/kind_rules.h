/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * kind_rules.h - which memory kind each use of memory must get, stated as a sequence of choices,
 * and checked on a device whose kinds come in every order that Vulkan allows or in a sample of
 * these.
 */
#ifndef QUIRE_TESTS_SUPPORT_KIND_RULES_H
#define QUIRE_TESTS_SUPPORT_KIND_RULES_H

#include <stdio.h>
#include <string.h>

#include "quire/host.h"
#include "quire/quire.h"
#include "tests/support/random.h"
#include "tests/support/unit.h"

enum { KIND_USES = 6, KIND_STEPS = 4, KIND_ORDERS = 40 };

#define KIND_AMD (QUIRE_DEVICE_COHERENT | QUIRE_DEVICE_UNCACHED)

/* A candidate must have the flags of `needs`. Then each step keeps those with a flag, or those
   without it, unless none is left. */
typedef struct kind_rule {
    const char *use;
    quire_memory_flags needs;
    struct {
        bool has;
        quire_memory_flags flag;
    } steps[KIND_STEPS];
    quire_kind_request request;
} kind_rule;

#define WITH(flag)                                                                                 \
    {                                                                                              \
        true, (flag)                                                                               \
    }
#define WITHOUT(flag)                                                                              \
    {                                                                                              \
        false, (flag)                                                                              \
    }

static const kind_rule kind_rules[KIND_USES] = {
    {.use = "device",
     .needs = QUIRE_DEVICE_LOCAL,
     .steps = {WITHOUT(QUIRE_HOST_VISIBLE), WITHOUT(QUIRE_HOST_CACHED),
               WITHOUT(QUIRE_HOST_COHERENT)},
     .request.intent = QUIRE_INTENT_DEVICE},
    {.use = "upload",
     .needs = QUIRE_HOST_VISIBLE,
     .steps = {WITHOUT(QUIRE_DEVICE_LOCAL), WITH(QUIRE_HOST_COHERENT), WITHOUT(QUIRE_HOST_CACHED)},
     .request.intent = QUIRE_INTENT_UPLOAD},
    {.use = "host writes",
     .needs = QUIRE_HOST_VISIBLE,
     .steps = {WITH(QUIRE_DEVICE_LOCAL), WITH(QUIRE_HOST_COHERENT), WITHOUT(QUIRE_HOST_CACHED)},
     .request.intent = QUIRE_INTENT_HOST_WRITE},
    {.use = "host reads",
     .needs = QUIRE_HOST_VISIBLE,
     .steps = {WITH(QUIRE_HOST_CACHED), WITHOUT(QUIRE_DEVICE_LOCAL), WITH(QUIRE_HOST_COHERENT)},
     .request.intent = QUIRE_INTENT_HOST_READ},
    {.use = "host reads and writes",
     .needs = QUIRE_HOST_VISIBLE,
     .steps = {WITH(QUIRE_HOST_CACHED), WITH(QUIRE_DEVICE_LOCAL), WITH(QUIRE_HOST_COHERENT)},
     .request.intent = QUIRE_INTENT_HOST_READ | QUIRE_INTENT_HOST_WRITE},
    {.use = "shared",
     .needs = QUIRE_DEVICE_LOCAL | QUIRE_HOST_VISIBLE,
     .steps = {WITH(QUIRE_HOST_COHERENT), WITHOUT(QUIRE_HOST_CACHED)},
     .request = {.required = QUIRE_DEVICE_LOCAL | QUIRE_HOST_VISIBLE,
                 .preferred = QUIRE_HOST_COHERENT}},
};

/* Returns the lowest of the kinds that the rule leaves, UINT32_MAX if there is none. */
static inline uint32_t kind_rule_result(const kind_rule *rule, const quire_kind *kinds,
                                        uint32_t count)
{
    const quire_memory_flags special =
        QUIRE_LAZILY_ALLOCATED | QUIRE_PROTECTED | KIND_AMD | QUIRE_OBJECTS_ONLY;
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; i++)
        if ((kinds[i].flags & rule->needs) == rule->needs && !(kinds[i].flags & special))
            left |= UINT32_C(1) << i;
    for (int step = 0; step < KIND_STEPS && rule->steps[step].flag; step++) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < count; i++)
            if (((kinds[i].flags & rule->steps[step].flag) != 0) == rule->steps[step].has)
                kept |= left & UINT32_C(1) << i;
        left = kept ? kept : left;
    }
    return left ? (uint32_t)__builtin_ctz(left) : UINT32_MAX;
}

/* Checks the choices on a device with these kinds, all in one heap: heaps do not count. */
static inline void kind_rules_check_order(const char *name, const quire_kind *kinds, uint32_t count)
{
    quire_host_profile profile = {.name = name, .heap_count = 1, .kind_count = count};
    for (uint32_t i = 0; i < count; i++)
        profile.kinds[i].flags = kinds[i].flags;
    quire_host_options options = {.profile = &profile, .device = {.host_memory = unit_memory()}};
    quire_device *device = NULL;
    CHECK_OK(quire_host_open(&options, &device));
    for (int i = 0; i < KIND_USES; i++) {
        const kind_rule *rule = &kind_rules[i];
        uint32_t kind = 0, expected = kind_rule_result(rule, kinds, count);
        quire_result result = quire_device_choose_kind(device, &rule->request, &kind);
        kind = result ? UINT32_MAX : kind;
        if (kind != expected)
            fprintf(stderr, "%s: %s gets kind %d, not %d\n", name, rule->use, (int)kind,
                    (int)expected);
        CHECK_EQ(kind, expected);
    }
    CHECK_OK(quire_device_destroy(&device));
}

/*
 * Whether Vulkan requires the first before the second: its flags are a strict subset, or only the
 * second is one of AMD's special kinds. Of equal flags the faster heap is first; a layout does not
 * say which one that is, so that such kinds keep their order.
 */
static inline bool kind_comes_before(const quire_kind *first, const quire_kind *second)
{
    bool is_subset = !(first->flags & ~second->flags) && first->flags != second->flags;
    return is_subset || (second->flags & KIND_AMD && !(first->flags & KIND_AMD));
}

/* Writes the kinds in a random order that Vulkan allows. */
static inline void kind_shuffle(test_random *random, const quire_kind *kinds, uint32_t count,
                                quire_kind *out)
{
    uint32_t waiting = (uint32_t)((UINT64_C(1) << count) - 1);
    for (uint32_t n = 0; n < count; n++) {
        uint32_t ready[QUIRE_MAX_KINDS], ready_count = 0;
        for (uint32_t i = 0; i < count; i++) {
            bool is_ready = waiting >> i & 1;
            for (uint32_t k = 0; k < count && is_ready; k++)
                if (k != i && waiting >> k & 1)
                    is_ready = !kind_comes_before(&kinds[k], &kinds[i]) &&
                               (kinds[k].flags != kinds[i].flags || k > i);
            if (is_ready)
                ready[ready_count++] = i;
        }
        CHECK(ready_count > 0);
        uint32_t taken = ready[random_below(random, ready_count)];
        waiting &= ~(UINT32_C(1) << taken);
        out[n] = kinds[taken];
    }
}

/* Checks the choices with the kinds in the given order, and in other orders that Vulkan allows. */
static inline void kind_rules_check(const char *name, const quire_kind *kinds, uint32_t count)
{
    test_random random = {1};
    quire_kind shuffled[QUIRE_MAX_KINDS] = {0};
    kind_rules_check_order(name, kinds, count);
    for (int i = 0; i < KIND_ORDERS; i++) {
        kind_shuffle(&random, kinds, count, shuffled);
        kind_rules_check_order(name, shuffled, count);
    }
}

#endif
