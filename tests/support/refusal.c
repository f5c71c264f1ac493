/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * refusal.c - collects the names of refused calls, and compares them with the functions that a
 * public header declares: the record of state.h.
 */
#include "tests/support/state.h"

#include <ctype.h>
#include <stdio.h>

enum { MAX_NAMES = 128, NAME_ROOM = 64 };

static struct {
    char names[MAX_NAMES][NAME_ROOM]; /* the functions called so far */
    uint32_t name_count;
    uint32_t checks;
} refusals;

/* Puts the identifier that begins at `text` into `name`, which is cut where it ends. */
static void copy_name(const char *text, char name[NAME_ROOM])
{
    size_t length = 0;
    for (; (isalnum((unsigned char)*text) || *text == '_') && length + 1 < NAME_ROOM; text++)
        name[length++] = *text;
    name[length] = '\0';
}

static bool was_called(const char *name)
{
    for (uint32_t i = 0; i < refusals.name_count; i++)
        if (!strcmp(refusals.names[i], name))
            return true;
    return false;
}

void refusal_begin(bench *t)
{
    t->before = bench_fingerprint(t);
}

void refusal_count(const char *file, int line, bench *t, const char *call)
{
    char name[NAME_ROOM];
    const char *begin = strstr(call, "quire_");
    copy_name(begin ? begin : "", name);
    refusals.checks++;
    if (bench_fingerprint(t) != t->before)
        check_failed(file, line, "%s changed something", call);
    if (was_called(name))
        return;
    CHECK(refusals.name_count < MAX_NAMES);
    memcpy(refusals.names[refusals.name_count++], name, sizeof name);
}

/* A sentence about a null pointer names one argument, and the function if the call has the pointer;
   some public functions are short forms of others, which the sentence names then. */
static void check_sentence(const char *file, int line, const char *call)
{
    const char *sentence = quire_last_error(), *end = " is null";
    size_t length = strlen(sentence), rest = strlen(end);
    if (length < rest || strcmp(sentence + length - rest, end))
        return;
    if (strstr(sentence, " or ") || strchr(sentence, ','))
        check_failed(file, line, "%s: '%s' does not say what is null", call, sentence);
    if (strstr(call, "NULL") && strncmp(sentence, "quire_", 6))
        check_failed(file, line, "%s: '%s' does not name a function", call, sentence);
}

void refusal_check(const char *file, int line, bench *t, const char *call, quire_result actual,
                   quire_result expected, const void *out, size_t size)
{
    check_result(file, line, call, actual, expected);
    check_sentence(file, line, call);
    if (!state_is_zero(out, size))
        check_failed(file, line, "%s failed and its output is not zero", call);
    refusal_count(file, line, t, call);
}

void refusal_forget(void)
{
    refusals.name_count = 0;
}

uint32_t refusal_checks(void)
{
    return refusals.checks;
}

uint32_t refusal_covers(const char *root, const char *header)
{
    char path[512], text[1024], name[NAME_ROOM];
    snprintf(path, sizeof path, "%s/include/quire/%s", root, header);
    FILE *file = fopen(path, "r");
    if (!file)
        check_failed(__FILE__, __LINE__, "no %s: give the source folder by --root", path);
    uint32_t found = 0, declared = 0;
    bool wanted = false; /* between QUIRE_API and the name of the function */
    while (fgets(text, sizeof text, file)) {
        bool begins = !strncmp(text, "QUIRE_API ", 10);
        declared += begins;
        wanted = wanted || begins;
        for (const char *at = text; wanted && (at = strstr(at, "quire_")) != NULL;) {
            copy_name(at, name);
            at += strlen(name);
            if (*at != '(')
                continue;
            wanted = false;
            found++;
            if (!was_called(name))
                check_failed(__FILE__, __LINE__, "%s of %s has no check here", name, header);
        }
    }
    fclose(file);
    CHECK_EQ(found, declared);
    return found;
}

const char *state_root(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], "--root"))
            return argv[i + 1];
    return ".";
}
