/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * thread.c - the numbers of threads in every interleaving: two live threads never have the same
 * number. The source is included, because its variable per thread is one variable here.
 */
#include "src/base/thread.c"

#include "tests/model/model.h"
#include "tests/support/plain.h"

static uint64_t owners[WORDS * 64]; /* plus 1; written while a thread has the number */
static uint32_t highest;

static void begin(void)
{
    for (int i = 0; i < WORDS; i++)
        in_use[i] = 0;
    memset(owners, 0, sizeof owners);
    highest = 0;
}

/* All but the last number are taken. */
static void begin_full(void)
{
    begin();
    for (int i = 0; i < WORDS; i++)
        in_use[i] = UINT64_MAX;
    in_use[WORDS - 1] ^= UINT64_C(1) << 63;
}

/* A thread from its first request to its end. */
static void live(void)
{
    uint32_t number = qi_thread_number();
    MODEL_CHECK(qi_thread_number() == number);
    model_write(&owners[number], model_self() + 1);
    MODEL_CHECK(model_read(&owners[number]) == model_self() + 1);
    highest = number > highest ? number : highest;
    give_back((void *)(uintptr_t)(number + 1));
}

static void live_twice(void)
{
    live();
    live();
}

/* Above the last number, 0 is shared, and threads that share it do not release it. */
static void live_or_share(void)
{
    uint32_t number = qi_thread_number();
    if (!number)
        return;
    MODEL_CHECK(number == QI_MAX_THREADS - 1);
    model_write(&owners[number], model_self() + 1);
    MODEL_CHECK(model_read(&owners[number]) == model_self() + 1);
    give_back((void *)(uintptr_t)(number + 1));
}

static void all_are_back(void)
{
    MODEL_CHECK(!in_use[0] && highest < MODEL_MAX_THREADS); /* dense */
}

static void only_the_last_is_free(void)
{
    MODEL_CHECK(in_use[0] == UINT64_MAX && in_use[WORDS - 1] == UINT64_MAX >> 1);
}

static model_scenario three = {.name = "three threads",
                               .is_strong = true,
                               .begin = begin,
                               .threads = {live, live, live},
                               .judge = all_are_back};
static model_scenario again = {.name = "two threads, one after the other, beside a third",
                               .begin = begin,
                               .threads = {live_twice, live},
                               .judge = all_are_back};
static model_scenario full = {.name = "two threads and one number",
                              .begin = begin_full,
                              .threads = {live_or_share, live_or_share},
                              .judge = only_the_last_is_free};

static void no_number_is_given_twice(void)
{
    model_holds(&again);
    model_holds(&full);
    model_holds(&three);
}

static void broken_ones_are_found(void)
{
    model_finds(&three, MODEL_TORN_EXCHANGE, "");
    model_finds(&again, MODEL_NO_RELEASE, "race");
    model_finds(&again, MODEL_NO_ACQUIRE, "race");
}

int main(void)
{
    three.locals[0] = again.locals[0] = full.locals[0] = (model_local){&own, sizeof own};
    model_case("two live threads never have the same number", no_number_is_given_twice);
    model_case("the model finds broken numbers", broken_ones_are_found);
    return plain_end();
}
