/*
 * environment.h - the settings of an adapter: environment variables whose names have a common
 * prefix, and a warning about names that nothing reads.
 *
 * Depends on libc alone and is no part of libquire: each adapter that uses it compiles it.
 */
#ifndef QUIRE_SRC_BASE_ENVIRONMENT_H
#define QUIRE_SRC_BASE_ENVIRONMENT_H

#include <stddef.h>

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

#endif
