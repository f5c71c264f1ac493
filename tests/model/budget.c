/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * budget.c - accounts in every interleaving: the limit is never exceeded, no request fails while
 * the account has room for all, and returned amounts are available again. A device's count of pages
 * and the bytes of heaps and memories are accounts.
 */
#include "src/core/device/budget.h"

#include "tests/model/model.h"
#include "tests/support/plain.h"

static qi_account account;
static uint64_t taken, refused;

static void begin(void)
{
    account = (qi_account){.limit = 2};
    taken = refused = 0;
}

static bool take(void)
{
    uint64_t used = 0;
    bool is_taken = qi_account_take(&account, 1, qi_account_max(&account), &used);
    taken += is_taken;
    refused += !is_taken;
    return is_taken;
}

static void take_one(void)
{
    take();
    MODEL_CHECK(qi_account_used(&account) <= 2);
}

/* An amount that the backend could not provide, or that is freed. */
static void take_and_give(void)
{
    if (!take())
        return;
    qi_account_give(&account, 1);
    taken--;
}

static void lower_limit(void)
{
    qi_account_set_limit(&account, 1);
}

static void two_taken(void)
{
    MODEL_CHECK(taken == 2 && refused == 1 && account.used == 2);
}

static void all_is_counted(void)
{
    MODEL_CHECK(account.used == taken && taken + refused >= 2 && refused <= 1);
}

/* A thread that took an amount before the limit fell keeps it; one of two can always take one. */
static void at_least_one(void)
{
    MODEL_CHECK(account.used == taken && taken >= 1 && taken + refused == 2);
}

static const model_scenario three = {.name = "three take one of two",
                                     .begin = begin,
                                     .threads = {take_one, take_one, take_one},
                                     .judge = two_taken};
static const model_scenario given = {.name = "three take one of two, one gives it back",
                                     .begin = begin,
                                     .threads = {take_one, take_one, take_and_give},
                                     .judge = all_is_counted};
static const model_scenario falling = {.name = "two take while the limit falls",
                                       .begin = begin,
                                       .threads = {take_one, take_one, lower_limit},
                                       .judge = at_least_one};

static void the_limit_holds(void)
{
    model_holds(&three);
    model_holds(&given);
    model_holds(&falling);
}

static void broken_ones_are_found(void)
{
    model_finds(&three, MODEL_TORN_EXCHANGE, "not true");
    model_finds(&given, MODEL_TORN_EXCHANGE, "not true");
}

int main(void)
{
    model_case("the limit is reached and not exceeded", the_limit_holds);
    model_case("the model finds a broken account", broken_ones_are_found);
    return plain_end();
}
