/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * settings.h - reads the options of a fake driver that programs load from the environment. An
 * unreadable option ends the program, so that no test runs with other options than intended.
 */
#ifndef QUIRE_TESTS_SUPPORT_SETTINGS_H
#define QUIRE_TESTS_SUPPORT_SETTINGS_H

/* Ends the program: `driver`'s setting is invalid. */
_Noreturn void settings_refuse(const char *driver, const char *name, const char *value);

/* Calls `take` for each part of a list with commas; a part has up to 79 characters. */
void settings_each(const char *driver, const char *name,
                   void (*take)(const char *part, void *state), void *state);

#endif
