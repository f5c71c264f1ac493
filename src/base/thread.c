/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * thread.c - a thread takes the lowest free bit of a bitmap as its number, and the destructor of a
 * thread-specific key gives it back. Also counts the pages in transit.
 */
#include "src/base/thread.h"

#include <pthread.h>

#include "src/base/atomic.h"
#include "src/base/bits.h"
#include "src/base/lock.h"

/* ---- numbers ------------------------------------------------------------------------------ */

/* The first taken number creates the key. If it cannot be created, every thread gets number 0. */

enum { WORDS = QI_MAX_THREADS / 64 };

static pthread_once_t key_made = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;
static qi_atomic_u64 in_use[WORDS]; /* one bit per number */

/* The number of the calling thread plus 1; 0 means none yet. */
static _Thread_local uint32_t own;

static void give_back(void *value)
{
    uint32_t number = (uint32_t)(uintptr_t)value - 1;
    qi_atomic_u64 *word = &in_use[number / 64];
    uint64_t bits = qi_atomic_load_u64(word);
    while (!qi_atomic_exchange_if_u64(word, &bits, bits & ~(UINT64_C(1) << number % 64))) {
    }
    own = 0; /* a later destructor may take a new one, returned in the next round */
}

static void make_key(void)
{
    has_key = !pthread_key_create(&key, give_back);
}

static bool take_from(uint32_t index, uint32_t *number)
{
    uint64_t bits = qi_atomic_load_u64(&in_use[index]);
    uint32_t bit;
    do {
        if (bits == UINT64_MAX)
            return false;
        bit = qi_lowest_bit(~bits);
    } while (!qi_atomic_exchange_if_u64(&in_use[index], &bits, bits | UINT64_C(1) << bit));
    *number = index * 64 + bit;
    return true;
}

static uint32_t take(void)
{
    uint32_t number = 0;
    pthread_once(&key_made, make_key);
    for (uint32_t i = 0; has_key && i < WORDS; i++)
        if (take_from(i, &number)) {
            if (!pthread_setspecific(key, (void *)(uintptr_t)(number + 1)))
                break;
            give_back((void *)(uintptr_t)(number + 1)); /* no destructor would return it */
            number = 0;
            break;
        }
    own = number + 1;
    return number;
}

uint32_t qi_thread_number(void)
{
    return own ? own - 1 : take();
}

const void *qi_thread_self(void)
{
    return &own;
}

void qi_thread_forked(void)
{
    for (uint32_t i = 0; i < WORDS; i++) {
        bool is_mine = own && (own - 1) / 64 == i;
        qi_atomic_u64 *word = &in_use[i];
        uint64_t bits = qi_atomic_load_u64(word),
                 kept = is_mine ? UINT64_C(1) << (own - 1) % 64 : 0;
        while (!qi_atomic_exchange_if_u64(word, &bits, bits & kept)) {
        }
    }
}

/* An unloaded library must not leave its destructor registered. */
__attribute__((destructor)) static void delete_key(void)
{
    if (has_key)
        pthread_key_delete(key);
}

/* ---- pages in transit --------------------------------------------------------------------- */

#ifndef NDEBUG
#include <stdio.h>
#include <stdlib.h>
#endif

static _Thread_local int under_way;

void qi_transit_begin(void)
{
    under_way++;
}

void qi_transit_end(void)
{
    under_way--;
}

bool qi_transit_is_on(void)
{
    return under_way != 0;
}

void qi_transit_assert_none(void)
{
    qi_lock_assert_none();
#ifndef NDEBUG
    if (under_way) {
        fprintf(stderr, "quire: a callback is about to be called with %d page%s under way\n",
                under_way, under_way == 1 ? "" : "s");
        abort();
    }
#endif
}
