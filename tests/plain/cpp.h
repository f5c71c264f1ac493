/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cpp.h - what the C++ programs of tests/plain share: cases that print TAP and end at the first
 * failure.
 */
#ifndef QUIRE_TESTS_PLAIN_CPP_H
#define QUIRE_TESTS_PLAIN_CPP_H

#include <cstdio>
#include <cstdlib>

#include "quire/host.h"
#include "quire/quire.hpp"

static int cases;

/* quire's last sentence helps where a call failed that should not. */
#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            std::printf("not ok %d - line %d: %s\n# last error: %s\n1..%d\n", cases + 1, __LINE__, \
                        #what, quire_last_error(), cases + 1);                                     \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

static inline void run_case(const char *name, void (*body)())
{
    body();
    std::printf("ok %d - %s\n", ++cases, name);
}

static inline quire::device open_host()
{
    return quire::device::open(quire_host_open).value();
}

/* Whether a handle still names a live allocation of a memory. */
static inline bool is_live(quire_memory *memory, quire_allocation handle)
{
    quire_allocation_info info;
    return quire_allocation_get_info(memory, handle, &info) == QUIRE_SUCCESS;
}

#endif
