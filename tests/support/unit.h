/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * unit.h - unit tests, with two checks at the end of each.
 *
 * Criterion runs each test in a process of its own. A build with -Dcriterion=disabled runs all
 * tests of a program in one (unit_main.c): a process takes a tenth of a second under a sanitizer,
 * most tests a millisecond.
 *
 * Criterion reports a test that leaks, or that ends its process, as passed. UNIT(suite, name)
 * therefore ends every test with two checks: everything allocated through unit_memory() is
 * released, and under a leak sanitizer nothing else has leaked. A test that ends its process fails.
 * tests/unit/guard.c proves that wrong tests fail.
 *
 * UNIT_ALONE is for a test that changes its process for good, or that needs one that no other has
 * changed: it has a process of its own in every build.
 */
#ifndef QUIRE_TESTS_SUPPORT_UNIT_H
#define QUIRE_TESTS_SUPPORT_UNIT_H

#include "tests/support/check.h"
#include "tests/support/host_memory.h"

#ifdef UNIT_IN_ONE_PROCESS

typedef struct unit_test {
    const char *suite, *name;
    void (*body)(void);
    bool is_alone;
    struct unit_test *next;
} unit_test;

/* Adds a test behind those that there are. */
void unit_add(unit_test *test);

#define UNIT_WITH(suite_, name_, is_alone_)                                                        \
    static void suite_##_##name_(void);                                                            \
    __attribute__((constructor)) static void suite_##_##name_##_add(void)                          \
    {                                                                                              \
        static unit_test test = {                                                                  \
            .suite = #suite_, .name = #name_, .body = suite_##_##name_, .is_alone = is_alone_};    \
        unit_add(&test);                                                                           \
    }                                                                                              \
    static void suite_##_##name_(void)
#define UNIT(suite, name) UNIT_WITH(suite, name, false)
#define UNIT_ALONE(suite, name) UNIT_WITH(suite, name, true)

#else

#include <criterion/criterion.h>

#define UNIT(suite, name)                                                                          \
    static void suite##_##name(void);                                                              \
    Test(suite, name)                                                                              \
    {                                                                                              \
        unit_begin();                                                                              \
        suite##_##name();                                                                          \
        unit_end();                                                                                \
    }                                                                                              \
    static void suite##_##name(void)
#define UNIT_ALONE(suite, name) UNIT(suite, name)

#endif

/*
 * A test of an object that the call `begin` makes and the function `end` takes back; its body has a
 * pointer to the object. Each file names its own by a macro:
 *     #define CASE(name, ...) UNIT_ON(page, name, fixture, f, make(f, __VA_ARGS__), fixture_end)
 */
#define UNIT_ON(suite, name, type, object, begin, end)                                             \
    static void suite##_##name##_on(type *object);                                                 \
    UNIT(suite, name)                                                                              \
    {                                                                                              \
        type made_;                                                                                \
        type *object = &made_;                                                                     \
        begin;                                                                                     \
        suite##_##name##_on(object);                                                               \
        end(object);                                                                               \
    }                                                                                              \
    static void suite##_##name##_on(type *object)

/* A test between two statements, for files that hold their object themselves. */
#define UNIT_WITHIN(suite, name, begin, end)                                                       \
    static void suite##_##name##_within(void);                                                     \
    UNIT(suite, name)                                                                              \
    {                                                                                              \
        begin;                                                                                     \
        suite##_##name##_within();                                                                 \
        end;                                                                                       \
    }                                                                                              \
    static void suite##_##name##_within(void)

/*
 * UNIT_ON for each number from `from` to `to` - 1, with a new object each time. A failure names
 * the number.
 */
#define UNIT_EACH(suite, name, type, object, number, from, to, begin, end)                         \
    static void suite##_##name##_on(type *object, uint32_t number);                                \
    UNIT(suite, name)                                                                              \
    {                                                                                              \
        for (uint32_t number = (from); number < (to); number++) {                                  \
            type made_;                                                                            \
            type *object = &made_;                                                                 \
            unit_note(#number, number);                                                            \
            begin;                                                                                 \
            suite##_##name##_on(object, number);                                                   \
            end(object);                                                                           \
        }                                                                                          \
    }                                                                                              \
    static void suite##_##name##_on(type *object, __attribute__((unused)) uint32_t number)

/* A number that a failure of the running test names, and its words: " (kind 2)", or "". */
void unit_note(const char *what, uint32_t number);
const char *unit_noted(void);

/* Ends the test, which cannot run here for a reason of at most 511 bytes. What it holds is lost. */
_Noreturn void unit_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Host memory callbacks that count; a block that is live at the end fails the test. */
const quire_host_memory *unit_memory(void);

/* The counters of these callbacks, which can make a call fail. */
test_memory *unit_memory_state(void);

/* The first and the last step of each test. A test whose process exits in between fails. */
void unit_begin(void);
void unit_end(void);

/* Ends a test that is skipped: Criterion's part, or that of unit_main.c. */
_Noreturn void unit_leave(const char *reason);

/* Whether this is a child that the running test has forked. */
bool unit_is_child(void);

#endif
