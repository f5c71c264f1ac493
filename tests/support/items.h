/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * items.h - work in numbered items, so that a caller can continue after an item that ended the
 * process: scripts/test-gpu runs programs in this way.
 *
 *     PROGRAM --items FROM SECONDS ...
 *
 * The program announces each item on standard output as "# item NUMBER NAME". It omits the items
 * before FROM. An item that takes more than SECONDS ends the process (SIGALRM). Without --items
 * nothing is announced, omitted or limited. One thread uses these functions.
 */
#ifndef QUIRE_TESTS_SUPPORT_ITEMS_H
#define QUIRE_TESTS_SUPPORT_ITEMS_H

#include <stdbool.h>

/* Reads --items and removes it from the words. Returns the number of words that are left. */
int items_take(int argc, char **argv);

/* Begins the next item. Returns false if the caller must omit it. */
bool items_begin(const char *name);

/* Returns true if an item ran in this process. */
bool items_ran(void);

/* Ends the process: the caller is to continue with the next item in a new one. */
_Noreturn void items_renew(void);

/* The exit status of items_renew. */
#define ITEMS_RENEW 75

#endif
