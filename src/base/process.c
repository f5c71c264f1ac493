/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * process.c - reads settings, and opens and writes recorded files.
 */
#include "src/base/process.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <unistd.h>

/* ---- variables ---------------------------------------------------------------------------- */

const char *qi_variable(const char *prefix, const char *name)
{
    char full[QI_MAX_VARIABLE + 1];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    const char *text = secure_getenv(full);
    return text && *text ? text : NULL;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/*
 * The number of characters to insert, remove or replace that make one name of the other, without
 * regard to case. costs[j] is that number for the first i characters of `a` and the first j of `b`.
 */
static size_t distance(const char *a, size_t length, const char *b)
{
    size_t costs[QI_MAX_VARIABLE + 1], width = strlen(b);
    for (size_t j = 0; j <= width; j++)
        costs[j] = j;
    for (size_t i = 1; i <= length; i++) {
        size_t corner = costs[0]; /* of i - 1 and j - 1 */
        costs[0] = i;
        for (size_t j = 1; j <= width; j++) {
            bool is_equal = toupper((unsigned char)a[i - 1]) == toupper((unsigned char)b[j - 1]);
            size_t replaced = corner + !is_equal;
            corner = costs[j];
            costs[j] = least(replaced, least(costs[j - 1], costs[j]) + 1);
        }
    }
    return costs[width];
}

/* Returns the name that differs in the fewest characters, and in at most a third of its own; NULL:
   none does. */
static const char *nearest(const char *text, size_t length, const char *const *names, size_t count)
{
    const char *found = NULL;
    size_t fewest = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        size_t differences = distance(text, length, names[i]);
        if (differences < fewest && 3 * differences <= strlen(names[i])) {
            found = names[i];
            fewest = differences;
        }
    }
    return found;
}

static bool is_known(const char *text, size_t length, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == length && !memcmp(names[i], text, length))
            return true;
    return false;
}

/* The name of a variable can have any bytes but '='. */
static void make_ascii(char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

void qi_find_unknown_variables(const char *prefix, const char *const *names, size_t count,
                               void (*say)(void *user, const char *sentence), void *user)
{
    size_t begin = strlen(prefix);
    for (char **entry = getauxval(AT_SECURE) ? NULL : environ; entry && *entry; entry++) {
        const char *name = *entry + begin, *end = strchr(*entry, '=');
        if (strncmp(*entry, prefix, begin) != 0 || !end || end < name || !end[1])
            continue;
        size_t length = (size_t)(end - name);
        if (is_known(name, length, names, count))
            continue;
        char sentence[3 * QI_MAX_VARIABLE];
        int shown = (int)least(begin + length, QI_MAX_VARIABLE);
        const char *meant = nearest(name, length, names, count);
        snprintf(sentence, sizeof sentence, "%.*s is unknown and has no effect%s%s%s%s", shown,
                 *entry, meant ? "; is " : "", meant ? prefix : "", meant ? meant : "",
                 meant ? " meant?" : "");
        make_ascii(sentence);
        say(user, sentence);
    }
}

/* ---- recorded files ----------------------------------------------------------------------- */

static int close_and_fail(int file, int error)
{
    close(file);
    errno = error;
    return -1;
}

/* Without O_NONBLOCK the open of a pipe waits for a reader. Writes wait as usual. Names in a file
   may be confidential: it belongs to the user. */
int qi_output_open(const char *path, int flags)
{
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | flags, 0600);
    int status = file < 0 ? -1 : fcntl(file, F_GETFL);
    if (status < 0 || !fcntl(file, F_SETFL, status & ~O_NONBLOCK))
        return file;
    return close_and_fail(file, errno);
}

int qi_output_open_own(char *path, size_t capacity, int flags)
{
    int file = qi_output_open(path, flags);
    if (file < 0 || !flock(file, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
        return file;
    size_t length = strlen(path);
    int more = snprintf(path + length, capacity - length, ".%ld", (long)getpid());
    if (more < 0 || (size_t)more >= capacity - length)
        return close_and_fail(file, ENAMETOOLONG);
    close(file);
    return qi_output_open(path, O_NOFOLLOW);
}

int qi_output_write(int file, const char *text, size_t size)
{
    while (size) {
        ssize_t written = write(file, text, size);
        if (written < 0 && errno != EINTR)
            return errno;
        if (written > 0) {
            text += written;
            size -= (size_t)written;
        }
    }
    return 0;
}
