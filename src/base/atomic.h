/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * atomic.h - the atomic operations of the library, under one name each.
 *
 * Threads share data without a lock only through these names, so that a test build can replace them
 * with a scheduler. The names state the memory order: an `acquire` load sees what a `release` store
 * published; names without an order are relaxed and serve counters only. No fences: sanitizers do
 * not understand them.
 */
#ifndef QUIRE_SRC_BASE_ATOMIC_H
#define QUIRE_SRC_BASE_ATOMIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef _Atomic uint64_t qi_atomic_u64;
typedef _Atomic uint32_t qi_atomic_u32;

static inline void qi_atomic_init_u64(qi_atomic_u64 *target, uint64_t value)
{
    atomic_init(target, value);
}

static inline uint64_t qi_atomic_load_u64(const qi_atomic_u64 *target)
{
    return atomic_load_explicit(target, memory_order_relaxed);
}

static inline uint64_t qi_atomic_load_acquire_u64(const qi_atomic_u64 *target)
{
    return atomic_load_explicit(target, memory_order_acquire);
}

static inline void qi_atomic_store_release_u64(qi_atomic_u64 *target, uint64_t value)
{
    atomic_store_explicit(target, value, memory_order_release);
}

static inline uint64_t qi_atomic_add_u64(qi_atomic_u64 *target, uint64_t value)
{
    return atomic_fetch_add_explicit(target, value, memory_order_relaxed);
}

static inline uint64_t qi_atomic_sub_u64(qi_atomic_u64 *target, uint64_t value)
{
    return atomic_fetch_sub_explicit(target, value, memory_order_relaxed);
}

/* An addition that publishes this thread's earlier stores. */
static inline void qi_atomic_add_release_u64(qi_atomic_u64 *target, uint64_t value)
{
    atomic_fetch_add_explicit(target, value, memory_order_release);
}

/* A subtraction after which another thread may take ownership of what this one used. */
static inline void qi_atomic_sub_release_u64(qi_atomic_u64 *target, uint64_t value)
{
    atomic_fetch_sub_explicit(target, value, memory_order_release);
}

/*
 * Drops one reference and returns the count before. The thread that gets 1 dropped the last one and
 * sees the stores of all others.
 */
static inline uint64_t qi_atomic_drop_u64(qi_atomic_u64 *target)
{
    return atomic_fetch_sub_explicit(target, 1, memory_order_acq_rel);
}

/* Raises a high-water mark to value if it is lower. */
static inline void qi_atomic_raise_u64(qi_atomic_u64 *target, uint64_t value)
{
    uint64_t seen = qi_atomic_load_u64(target);
    while (seen < value && !atomic_compare_exchange_weak_explicit(
                               target, &seen, value, memory_order_relaxed, memory_order_relaxed)) {
    }
}

/* As above; threads that load the mark with acquire see what this thread saw. */
static inline void qi_atomic_raise_release_u64(qi_atomic_u64 *target, uint64_t value)
{
    uint64_t seen = qi_atomic_load_u64(target);
    while (seen < value && !atomic_compare_exchange_weak_explicit(
                               target, &seen, value, memory_order_release, memory_order_relaxed)) {
    }
}

static inline uint64_t qi_atomic_swap_acquire_u64(qi_atomic_u64 *target, uint64_t value)
{
    return atomic_exchange_explicit(target, value, memory_order_acquire);
}

/*
 * Replaces *seen with value if the target still holds *seen; otherwise updates *seen. May fail
 * spuriously. Acquires and releases.
 */
static inline bool qi_atomic_exchange_if_u64(qi_atomic_u64 *target, uint64_t *seen, uint64_t value)
{
    return atomic_compare_exchange_weak_explicit(target, seen, value, memory_order_acq_rel,
                                                 memory_order_acquire);
}

/* The same for 32 bits. */
static inline bool qi_atomic_exchange_if_u32(qi_atomic_u32 *target, uint32_t *seen, uint32_t value)
{
    return atomic_compare_exchange_weak_explicit(target, seen, value, memory_order_acq_rel,
                                                 memory_order_acquire);
}

static inline void qi_atomic_init_u32(qi_atomic_u32 *target, uint32_t value)
{
    atomic_init(target, value);
}

static inline uint32_t qi_atomic_load_u32(const qi_atomic_u32 *target)
{
    return atomic_load_explicit(target, memory_order_relaxed);
}

static inline uint32_t qi_atomic_load_acquire_u32(const qi_atomic_u32 *target)
{
    return atomic_load_explicit(target, memory_order_acquire);
}

static inline void qi_atomic_store_release_u32(qi_atomic_u32 *target, uint32_t value)
{
    atomic_store_explicit(target, value, memory_order_release);
}

/*
 * Replaces `seen` with value if the target holds it. Returns true if it did; this thread then sees
 * the stores of the last owner.
 */
static inline bool qi_atomic_take_u32(qi_atomic_u32 *target, uint32_t seen, uint32_t value)
{
    return atomic_compare_exchange_strong_explicit(target, &seen, value, memory_order_acquire,
                                                   memory_order_relaxed);
}

static inline bool qi_atomic_take_u64(qi_atomic_u64 *target, uint64_t seen, uint64_t value)
{
    return atomic_compare_exchange_strong_explicit(target, &seen, value, memory_order_acquire,
                                                   memory_order_relaxed);
}

/* A store that publishes this thread's earlier stores; returns the former value. */
static inline uint32_t qi_atomic_swap_release_u32(qi_atomic_u32 *target, uint32_t value)
{
    return atomic_exchange_explicit(target, value, memory_order_release);
}

static inline uint32_t qi_atomic_add_u32(qi_atomic_u32 *target, uint32_t value)
{
    return atomic_fetch_add_explicit(target, value, memory_order_relaxed);
}

static inline void qi_atomic_add_release_u32(qi_atomic_u32 *target, uint32_t value)
{
    atomic_fetch_add_explicit(target, value, memory_order_release);
}

static inline void *qi_atomic_load_acquire_pointer(void *const _Atomic *target)
{
    return atomic_load_explicit(target, memory_order_acquire);
}

/* Sets the value if the target has the expected one; otherwise writes what the target has. */
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
