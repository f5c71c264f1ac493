/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * check.h - assertions for every test, in either harness. They are never compiled out, print the
 * values they compare, and end the test at the first failure.
 */
#ifndef QUIRE_TESTS_SUPPORT_CHECK_H
#define QUIRE_TESTS_SUPPORT_CHECK_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "quire/base.h"

/* True if an address or thread sanitizer slows the program down. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEST_IS_SANITIZED 1
#endif
#endif

/* Rounds of a random test: a quarter under a sanitizer, because a round then takes four times as
   long. */
#ifdef TEST_IS_SANITIZED
#define TEST_ROUNDS(rounds) ((rounds) / 4)
#else
#define TEST_ROUNDS(rounds) (rounds)
#endif

/* Ends the running test as failed; each harness (unit.c, plain.c) implements it. */
_Noreturn void check_failed(const char *file, int line, const char *format, ...) QUIRE_PRINTF(3, 4);

#define CHECK(condition)                                                                           \
    ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, "not true: %s", #condition))

#define CHECK_EQ(actual, expected)                                                                 \
    check_equal(__FILE__, __LINE__, #actual, (uint64_t)(actual), (uint64_t)(expected))

#define CHECK_STR(actual, expected) check_text(__FILE__, __LINE__, #actual, (actual), (expected))

/* The text contains the part. */
#define CHECK_HAS(text, part) check_contains(__FILE__, __LINE__, (text), (part))

/* The call succeeds. */
#define CHECK_OK(call) check_result(__FILE__, __LINE__, #call, (call), QUIRE_SUCCESS)

/* The call fails with exactly this code, and the thread's last error has the code and a message. */
#define CHECK_FAILS(call, code) check_result(__FILE__, __LINE__, #call, (call), (code))

static inline void check_equal(const char *file, int line, const char *what, uint64_t actual,
                               uint64_t expected)
{
    if (actual != expected)
        check_failed(file, line, "%s is %" PRIu64 " (0x%" PRIx64 "), not %" PRIu64, what, actual,
                     actual, expected);
}

static inline void check_text(const char *file, int line, const char *what, const char *actual,
                              const char *expected)
{
    if (!actual || strcmp(actual, expected))
        check_failed(file, line, "%s is '%s', not '%s'", what, actual ? actual : "(null)",
                     expected);
}

static inline void check_contains(const char *file, int line, const char *text, const char *part)
{
    if (!strstr(text, part))
        check_failed(file, line, "'%s' is not in '%s'", part, text);
}

static inline void check_result(const char *file, int line, const char *call, quire_result actual,
                                quire_result expected)
{
    if (actual != expected)
        check_failed(file, line, "%s gives %s, not %s: %s", call, quire_result_name(actual),
                     quire_result_name(expected), actual ? quire_last_error() : "");
    if (expected && (quire_last_result() != expected || !*quire_last_error()))
        check_failed(file, line, "%s: the last error is %s '%s'", call,
                     quire_result_name(quire_last_result()), quire_last_error());
}

#endif
