/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * valgrind.h - whether valgrind runs the program, for tests whose subject it makes impossible: they
 * are skipped there with the reason. It preloads a library into each program that it runs, so this
 * works without its header.
 */
#ifndef QUIRE_TESTS_SUPPORT_VALGRIND_H
#define QUIRE_TESTS_SUPPORT_VALGRIND_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool under_valgrind(void)
{
    const char *preload = getenv("LD_PRELOAD");
    return preload && strstr(preload, "vgpreload");
}

#endif
