/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * atomic.h - replaces src/base/atomic.h in the checkers of tests/model: each operation is a step of
 * the model's scheduler (tests/model/model.h). Memory orders are those of the original.
 *
 * Pointers are those of tables, whose chunks no checked scenario creates or releases: no steps.
 */
#ifndef QUIRE_SRC_BASE_ATOMIC_H
#define QUIRE_SRC_BASE_ATOMIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/model/model.h"

typedef uint64_t qi_atomic_u64;
typedef uint32_t qi_atomic_u32;

static inline void qi_atomic_init_u64(qi_atomic_u64 *target, uint64_t value)
{
    *target = value;
}

static inline uint64_t qi_atomic_load_u64(const qi_atomic_u64 *target)
{
    return model_load(target, sizeof *target, MODEL_RELAXED);
}

static inline uint64_t qi_atomic_load_acquire_u64(const qi_atomic_u64 *target)
{
    return model_load(target, sizeof *target, MODEL_ACQUIRE);
}

static inline void qi_atomic_store_release_u64(qi_atomic_u64 *target, uint64_t value)
{
    model_store(target, sizeof *target, value, MODEL_RELEASE);
}

static inline uint64_t qi_atomic_add_u64(qi_atomic_u64 *target, uint64_t value)
{
    return model_add(target, sizeof *target, value, MODEL_RELAXED);
}

static inline uint64_t qi_atomic_sub_u64(qi_atomic_u64 *target, uint64_t value)
{
    return model_add(target, sizeof *target, UINT64_C(0) - value, MODEL_RELAXED);
}

static inline void qi_atomic_add_release_u64(qi_atomic_u64 *target, uint64_t value)
{
    model_add(target, sizeof *target, value, MODEL_RELEASE);
}

static inline void qi_atomic_sub_release_u64(qi_atomic_u64 *target, uint64_t value)
{
    model_add(target, sizeof *target, UINT64_C(0) - value, MODEL_RELEASE);
}

static inline uint64_t qi_atomic_drop_u64(qi_atomic_u64 *target)
{
    return model_add(target, sizeof *target, UINT64_MAX, MODEL_ACQUIRE | MODEL_RELEASE);
}

static inline void qi_atomic_raise_u64(qi_atomic_u64 *target, uint64_t value)
{
    uint64_t seen = qi_atomic_load_u64(target);
    while (seen < value &&
           !model_exchange_if(target, sizeof *target, &seen, value, MODEL_RELAXED)) {
    }
}

static inline void qi_atomic_raise_release_u64(qi_atomic_u64 *target, uint64_t value)
{
    uint64_t seen = qi_atomic_load_u64(target);
    while (seen < value &&
           !model_exchange_if(target, sizeof *target, &seen, value, MODEL_RELEASE)) {
    }
}

static inline uint64_t qi_atomic_swap_acquire_u64(qi_atomic_u64 *target, uint64_t value)
{
    return model_swap(target, sizeof *target, value, MODEL_ACQUIRE);
}

static inline bool qi_atomic_exchange_if_u64(qi_atomic_u64 *target, uint64_t *seen, uint64_t value)
{
    return model_exchange_if(target, sizeof *target, seen, value, MODEL_ACQUIRE | MODEL_RELEASE);
}

static inline bool qi_atomic_exchange_if_u32(qi_atomic_u32 *target, uint32_t *seen, uint32_t value)
{
    uint64_t wanted = *seen;
    bool is_done =
        model_exchange_if(target, sizeof *target, &wanted, value, MODEL_ACQUIRE | MODEL_RELEASE);
    *seen = (uint32_t)wanted;
    return is_done;
}

static inline void qi_atomic_init_u32(qi_atomic_u32 *target, uint32_t value)
{
    *target = value;
}

static inline uint32_t qi_atomic_load_u32(const qi_atomic_u32 *target)
{
    return (uint32_t)model_load(target, sizeof *target, MODEL_RELAXED);
}

static inline uint32_t qi_atomic_load_acquire_u32(const qi_atomic_u32 *target)
{
    return (uint32_t)model_load(target, sizeof *target, MODEL_ACQUIRE);
}

static inline void qi_atomic_store_release_u32(qi_atomic_u32 *target, uint32_t value)
{
    model_store(target, sizeof *target, value, MODEL_RELEASE);
}

static inline bool qi_atomic_take_u32(qi_atomic_u32 *target, uint32_t seen, uint32_t value)
{
    uint64_t wanted = seen;
    return model_exchange_if(target, sizeof *target, &wanted, value, MODEL_ACQUIRE);
}

static inline bool qi_atomic_take_u64(qi_atomic_u64 *target, uint64_t seen, uint64_t value)
{
    return model_exchange_if(target, sizeof *target, &seen, value, MODEL_ACQUIRE);
}

static inline uint32_t qi_atomic_swap_release_u32(qi_atomic_u32 *target, uint32_t value)
{
    return (uint32_t)model_swap(target, sizeof *target, value, MODEL_RELEASE);
}

static inline uint32_t qi_atomic_add_u32(qi_atomic_u32 *target, uint32_t value)
{
    return (uint32_t)model_add(target, sizeof *target, value, MODEL_RELAXED);
}

static inline void qi_atomic_add_release_u32(qi_atomic_u32 *target, uint32_t value)
{
    model_add(target, sizeof *target, value, MODEL_RELEASE);
}

static inline void *qi_atomic_load_acquire_pointer(void *const _Atomic *target)
{
    return atomic_load_explicit(target, memory_order_acquire);
}

static inline bool qi_atomic_exchange_if_pointer(void *_Atomic *target, void **expected,
                                                 void *value)
{
    return atomic_compare_exchange_strong_explicit(target, expected, value, memory_order_acq_rel,
                                                   memory_order_acquire);
}

static inline void qi_atomic_store_release_pointer(void *_Atomic *target, void *value)
{
    atomic_store_explicit(target, value, memory_order_release);
}

#endif
