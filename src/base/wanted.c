/*
 * wanted.c - compares the text with an index or with the parts of a name.
 */
#include "src/base/wanted.h"

#include <stdlib.h>
#include <string.h>

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Whether a name contains a part, ignoring case. */
static bool has_part(const char *name, const char *part)
{
    for (; *name; name++) {
        size_t i = 0;
        while (part[i] && lower(name[i]) == lower(part[i]))
            i++;
        if (!part[i])
            return true;
    }
    return false;
}

static bool is_number(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text);
}

bool qi_is_wanted(const char *words, uint32_t index, const char *name)
{
    if (!words || !*words)
        return true;
    return is_number(words) ? strtoul(words, NULL, 10) == index : has_part(name, words);
}
