/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * failing_call.h - a function of a fake backend of which one call in 16 fails, for tests with
 * threads: half of these as out of memory, half as an error of the backend; and what such a test
 * counts.
 */
#ifndef QUIRE_TESTS_SUPPORT_FAILING_CALL_H
#define QUIRE_TESTS_SUPPORT_FAILING_CALL_H

#include <stdatomic.h>

#include "quire/host.h"
#include "tests/support/check.h"
#include "tests/support/fake.h"
#include "tests/support/host_memory.h"

static atomic_uint_fast64_t fallible, failed;

/* To be called first in the function. */
static quire_result fail_now_and_then(void)
{
    const uint64_t number = atomic_fetch_add(&fallible, 1);
    if (number % 16 != 15)
        return QUIRE_SUCCESS;
    atomic_fetch_add(&failed, 1);
    return quire_backend_fail(number % 32 == 31 ? QUIRE_ERROR_BACKEND_FAILURE
                                                : QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                              -9, "a call that fails");
}

static bool on_fake; /* or on the host backend, whose calls do not fail */

/* Opens one of both, with host memory that is counted. */
static void open_device(fake_backend *fake, test_memory *host_memory, quire_device **device)
{
    test_memory_init(host_memory);
    if (on_fake) {
        CHECK_OK(fake_open(fake, &host_memory->callbacks, device));
    } else {
        quire_host_options host = {.device = {.host_memory = &host_memory->callbacks}};
        CHECK_OK(quire_host_open(&host, device));
    }
}

static atomic_uint_fast64_t served, refused;

/* Whether a call was served. Refusals are those of the limit; the fake backend also fails. */
static bool is_served(quire_result result)
{
    const bool may_fail = result == QUIRE_ERROR_OVER_BUDGET ||
                          (on_fake && (result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY ||
                                       result == QUIRE_ERROR_BACKEND_FAILURE));
    if (result && may_fail)
        CHECK_FAILS(result, result);
    else
        CHECK_OK(result);
    atomic_fetch_add(result ? &refused : &served, 1);
    return !result;
}

#endif
