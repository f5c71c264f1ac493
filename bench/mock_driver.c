/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * mock_driver.c - see mock_driver.h.
 */
#include "bench/mock_driver.h"

#include <time.h>

/* The low SIZE_BITS of a handle are the size in KiB; a running number is above them. */
enum { SIZE_BITS = 32, SIZE_UNIT = 1024 };

mock_driver the_driver;

static void sleep_for(uint64_t ns)
{
    struct timespec left = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    while (nanosleep(&left, &left)) {
    }
}

static uint64_t size_of(uint64_t handle)
{
    return (handle & ((UINT64_C(1) << SIZE_BITS) - 1)) * SIZE_UNIT;
}

uint64_t mock_make(uint64_t size)
{
    qi_atomic_add_u64(&the_driver.inside, 1);
    if (the_driver.latency_ns)
        sleep_for(the_driver.latency_ns);
    uint64_t number = qi_atomic_add_u64(&the_driver.made, 1) + 1;
    uint64_t handle = number << SIZE_BITS | (size + SIZE_UNIT - 1) / SIZE_UNIT;
    uint64_t bytes = qi_atomic_add_u64(&the_driver.bytes, size_of(handle)) + size_of(handle);
    qi_atomic_raise_u64(&the_driver.peak, bytes);
    qi_atomic_sub_u64(&the_driver.inside, 1);
    return handle;
}

void mock_give(uint64_t handle)
{
    qi_atomic_add_u64(&the_driver.given, 1);
    qi_atomic_sub_u64(&the_driver.bytes, size_of(handle));
}

uint64_t mock_calls(void)
{
    return qi_atomic_load_u64(&the_driver.made) + qi_atomic_load_u64(&the_driver.given);
}

uint64_t mock_pieces(void)
{
    return qi_atomic_load_u64(&the_driver.made) - qi_atomic_load_u64(&the_driver.given);
}
