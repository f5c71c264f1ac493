/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * lock.c - locks in every interleaving: one thread at a time holds one and sees what the previous
 * holder wrote, no thread sleeps without end, and no waiting thread misses its wake. The locks
 * begin in the first form of release, except in the scenarios that begin in the second.
 */
#include "src/base/lock.h"

#include "src/base/sleep.h"
#include "tests/model/model.h"
#include "tests/support/plain.h"

static qi_lock shard, pages;
static uint64_t counted; /* under the lock of the pages */
static uint64_t sign;
static uint64_t seen;

static void begin(void)
{
    qi_lock_init(&shard, "shard", QI_RANK_SHARD);
    qi_lock_init(&pages, "pages", QI_RANK_PAGES);
    counted = sign = seen = 0;
}

static void count(void)
{
    qi_lock_acquire(&pages);
    model_write(&counted, model_read(&counted) + 1);
    qi_lock_release(&pages);
}

static void count_twice(void)
{
    count();
    count();
}

static void three_counted(void)
{
    MODEL_CHECK(counted == 3 && pages.state == QI_LOCK_FREE);
}

static void begin_in_second_form(void)
{
    begin();
    pages.form = QI_LOCK_EXCHANGED;
}

/* ---- broken locks: what happens without one of the rules of lock.c --------------------------- */

static void count_with(void (*acquire)(void), void (*release)(void))
{
    acquire();
    model_write(&counted, model_read(&counted) + 1);
    release();
}

static void acquire_well(void)
{
    qi_lock_acquire(&pages);
}

static void release_well(void)
{
    qi_lock_release(&pages);
}

/* The state is read before the store, not with it. */
static void release_with_a_store(void)
{
    bool is_awaited = qi_atomic_load_u32(&pages.state) == QI_LOCK_AWAITED;
    qi_atomic_store_release_u32(&pages.state, QI_LOCK_FREE);
    if (is_awaited)
        qi_sleep_wake_one(&pages.state);
}

/* Sleeps until a holder in the first form wakes it. */
static void acquire_over_the_first_form(void)
{
    while (!qi_atomic_take_u32(&pages.state, QI_LOCK_FREE, QI_LOCK_AWAITED)) {
        uint32_t now = qi_atomic_load_u32(&pages.state);
        if (now && qi_atomic_take_u32(&pages.state, now, QI_LOCK_AWAITED))
            qi_sleep_while(&pages.state, QI_LOCK_AWAITED);
    }
}

/* Does not take over that another thread still sleeps. */
static void acquire_alone(void)
{
    while (!qi_atomic_take_u32(&pages.state, QI_LOCK_FREE, QI_LOCK_EXCHANGED))
        if (qi_atomic_load_u32(&pages.state) == QI_LOCK_AWAITED ||
            qi_atomic_take_u32(&pages.state, QI_LOCK_EXCHANGED, QI_LOCK_AWAITED))
            qi_sleep_while(&pages.state, QI_LOCK_AWAITED);
}

static void count_and_store(void)
{
    count_with(acquire_well, release_with_a_store);
}

static void count_over_the_first_form(void)
{
    count_with(acquire_over_the_first_form, release_well);
}

static void count_alone(void)
{
    count_with(acquire_alone, release_well);
}

static const model_scenario stored = {.name = "the second form is released with a store",
                                      .is_strong = true,
                                      .begin = begin_in_second_form,
                                      .threads = {count_and_store, count_and_store}};
static const model_scenario over = {.name = "a thread sleeps in the first form",
                                    .is_strong = true,
                                    .begin = begin,
                                    .threads = {count, count_over_the_first_form}};
static const model_scenario alone = {.name = "a woken thread forgets the others",
                                     .is_strong = true,
                                     .begin = begin_in_second_form,
                                     .threads = {count_alone, count_alone, count_alone}};

/* ---- waiting for a wake --------------------------------------------------------------------- */

static void await_sign(void)
{
    qi_lock_acquire(&pages);
    while (!model_read(&sign))
        qi_lock_wait(&pages, NULL);
    qi_lock_release(&pages);
}

static void give_sign(void)
{
    qi_lock_acquire(&pages);
    model_write(&sign, 1);
    qi_lock_wake_all(&pages);
    qi_lock_release(&pages);
}

/* Waits as a thread that needs a page: with its shard's lock, which the thread that creates the
   page takes. */
static void await_with_shard(void)
{
    qi_lock_acquire(&shard);
    qi_lock_acquire(&pages);
    while (!model_read(&sign))
        qi_lock_wait(&pages, &shard);
    qi_lock_release(&pages);
    model_write(&seen, model_read(&seen) + 1);
    qi_lock_release(&shard);
}

static void give_with_shard(void)
{
    qi_lock_acquire(&shard);
    qi_lock_acquire(&pages);
    model_write(&sign, 1);
    qi_lock_wake_all(&pages);
    qi_lock_release(&pages);
    qi_lock_release(&shard);
}

static void one_saw(void)
{
    MODEL_CHECK(seen == 1 && pages.state == QI_LOCK_FREE && shard.state == QI_LOCK_FREE);
}

static void all_are_out(void)
{
    MODEL_CHECK(sign == 1 && pages.state == QI_LOCK_FREE);
}

static const model_scenario three = {.name = "three threads count",
                                     .looks = 1,
                                     .preemptions = 3,
                                     .begin = begin,
                                     .threads = {count, count, count},
                                     .judge = three_counted};
/* The same with every order of the steps. */
static const model_scenario strong = {.name = "three threads count, loads read the newest value",
                                      .looks = 1,
                                      .is_strong = true,
                                      .begin = begin,
                                      .threads = {count, count, count},
                                      .judge = three_counted};
static const model_scenario second = {.name = "three threads count, second form",
                                      .preemptions = 3,
                                      .begin = begin_in_second_form,
                                      .threads = {count, count, count},
                                      .judge = three_counted};
static const model_scenario two = {.name = "two threads count, one of them twice",
                                   .looks = 1,
                                   .begin = begin,
                                   .threads = {count_twice, count},
                                   .judge = three_counted};
static const model_scenario waiting = {.name = "one waits, one gives the sign",
                                       .begin = begin,
                                       .threads = {await_sign, give_sign},
                                       .judge = all_are_out};
static const model_scenario both = {.name = "two wait, one gives the sign",
                                    .preemptions = 4,
                                    .is_strong = true,
                                    .begin = begin,
                                    .threads = {await_sign, await_sign, give_sign},
                                    .judge = all_are_out};
static const model_scenario nested = {.name = "one waits with two locks, one gives the sign",
                                      .begin = begin,
                                      .threads = {await_with_shard, give_with_shard},
                                      .judge = one_saw};

static void one_at_a_time(void)
{
    model_holds(&two);
    model_holds(&three);
    model_holds(&strong);
    model_holds(&second);
}

static void no_sign_is_missed(void)
{
    model_holds(&waiting);
    model_holds(&nested);
    model_holds(&both);
}

static void broken_ones_are_found(void)
{
    model_finds(&three, MODEL_TORN_EXCHANGE, "");
    model_finds(&three, MODEL_NO_RELEASE, "race");
    model_finds(&three, MODEL_NO_ACQUIRE, "race");
    model_finds(&strong, MODEL_NO_WAKE, "nobody wakes");
    model_finds(&strong, MODEL_BLIND_SLEEP, "nobody wakes");
    model_finds(&waiting, MODEL_NO_WAKE, "nobody wakes");
    model_finds(&waiting, MODEL_BLIND_SLEEP, "nobody wakes");
    model_finds(&stored, MODEL_NO_FAULT, "nobody wakes");
    model_finds(&over, MODEL_NO_FAULT, "nobody wakes");
    model_finds(&alone, MODEL_NO_FAULT, "nobody wakes");
}

int main(void)
{
    model_case("one thread at a time holds a lock", one_at_a_time);
    model_case("no wake is missed", no_sign_is_missed);
    model_case("the model finds broken locks", broken_ones_are_found);
    return plain_end();
}
