/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * settings.c - see settings.h.
 */
#include "tests/support/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PART_SIZE = 80 };

_Noreturn void settings_refuse(const char *driver, const char *name, const char *value)
{
    fprintf(stderr, "%s: %s cannot be '%s'\n", driver, name, value);
    abort();
}

void settings_each(const char *driver, const char *name,
                   void (*take)(const char *part, void *state), void *state)
{
    const char *value = getenv(name);
    char part[PART_SIZE];
    while (value && *value) {
        size_t length = strcspn(value, ",");
        if (!length || length >= sizeof part)
            settings_refuse(driver, name, value);
        memcpy(part, value, length);
        part[length] = 0;
        take(part, state);
        value += length + (value[length] == ',');
    }
}
