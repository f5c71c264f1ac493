/*
 * user_options.c - parses the variable QUIRE_OPTIONS, and fills options with its members.
 */
#include "src/core/memory/user_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/member.h"

enum { MAX_WORD = 127 };
static const char SEPARATORS[] = " \t\n,";

static void warn_of_key(const quire_device *device, const char *key)
{
    char keys[768];
    size_t length = 0;
    for (size_t i = 0; i < QI_MEMBER_COUNT; i++)
        length += (size_t)snprintf(keys + length, sizeof keys - length, "%s%s", i ? ", " : "",
                                   qi_members[i].key);
    qi_log(&device->log, QUIRE_LOG_WARNING,
           "QUIRE_OPTIONS: '%s' is no option of a memory; the options are %s", key, keys);
}

/* Parses "key=value", or "key" for a flag that is true. Changes the word. */
static void read_word(quire_device *device, char *word)
{
    char *value = strchr(word, '=');
    if (value)
        *value++ = '\0';
    const qi_member *m = qi_member_find(word, strlen(word));
    uint64_t number = 1;
    if (!m)
        warn_of_key(device, word);
    else if (value ? !qi_member_parse(m, value, &number) : m->type != QI_MEMBER_FLAG)
        qi_log(&device->log, QUIRE_LOG_WARNING, "QUIRE_OPTIONS: %s takes %s, not '%s'", m->key,
               qi_member_wanted(m).text, value ? value : "");
    else
        qi_member_set(m, &device->user_options, number);
}

void qi_user_options_read(quire_device *device)
{
    const char *text = secure_getenv("QUIRE_OPTIONS");
    if (!text)
        return;
    for (text += strspn(text, SEPARATORS); *text; text += strspn(text, SEPARATORS)) {
        char word[MAX_WORD + 1];
        size_t length = strcspn(text, SEPARATORS);
        snprintf(word, sizeof word, "%.*s", (int)(length < MAX_WORD ? length : MAX_WORD), text);
        read_word(device, word);
        text += length;
    }
}

bool qi_user_options_fill(const quire_device *device, quire_memory_options *options)
{
    bool is_any = false;
    for (const qi_member *m = qi_members; m < qi_members + QI_MEMBER_COUNT; m++) {
        uint64_t value = qi_member_get(m, &device->user_options);
        if (!value || qi_member_get(m, options))
            continue;
        qi_member_set(m, options, value);
        is_any = true;
    }
    return is_any;
}
