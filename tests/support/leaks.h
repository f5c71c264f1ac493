/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * leaks.h - asks the leak sanitizer, if the program has one, whether anything has leaked so far.
 */
#ifndef QUIRE_TESTS_SUPPORT_LEAKS_H
#define QUIRE_TESTS_SUPPORT_LEAKS_H

#include <stdbool.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TEST_HAS_LEAK_CHECK 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define TEST_HAS_LEAK_CHECK 1
#endif

#ifdef TEST_HAS_LEAK_CHECK
int __lsan_do_recoverable_leak_check(void);
#endif

static inline bool leaks_found(void)
{
#ifdef TEST_HAS_LEAK_CHECK
    return __lsan_do_recoverable_leak_check() != 0;
#else
    return false;
#endif
}

#endif
