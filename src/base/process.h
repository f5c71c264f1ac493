/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * process.h - the surroundings of a process: settings in environment variables with a common
 * prefix, and files to record to while it runs. Depends on libc alone, because adapters compile it
 * too.
 */
#ifndef QUIRE_SRC_BASE_PROCESS_H
#define QUIRE_SRC_BASE_PROCESS_H

#include <stddef.h>

/* ---- variables ---------------------------------------------------------------------------- */

/*
 * Returns the text of the variable PREFIX followed by `name`; NULL: it is not set, or empty. In
 * setuid programs the result is always NULL, because a variable could make them write files. The
 * text is that of the environment. Both names together have at most QI_MAX_VARIABLE bytes.
 */
enum { QI_MAX_VARIABLE = 127 };
const char *qi_variable(const char *prefix, const char *name);

/*
 * Calls `say` for each variable that is set to a text, begins with the prefix, and is not a prefix
 * followed by one of the `count` names. The sentence names the variable, in printable ASCII, and
 * the known one that it resembles, if any. Does nothing in setuid programs. Like getenv it requires
 * that no other thread changes the environment.
 */
void qi_find_unknown_variables(const char *prefix, const char *const *names, size_t count,
                               void (*say)(void *user, const char *sentence), void *user);

/* ---- recorded files ----------------------------------------------------------------------- */

/* The functions fail with -1 and set errno. The caller closes a file. */

/* Opens or creates a file to write; `flags` are further flags of open. Never waits: a pipe that
   nobody reads is ENXIO. */
int qi_output_open(const char *path, int flags);

/*
 * Like qi_output_open, and locks the file until it is closed. If another process has the lock, for
 * example a parent with the same environment, the process id is appended to `path`, an array of
 * `capacity` bytes. Names that are extended can be guessed: links under them are not followed.
 */
int qi_output_open_own(char *path, size_t capacity, int flags);

/* Writes all bytes. Returns 0, or the errno of the failure. */
int qi_output_write(int file, const char *text, size_t size);

#endif
