/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * io.c - reads whole files, and prints text and the progress bar.
 */
#include "src/tool/io.h"

#include <errno.h>
#include <langinfo.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/system.h"
#include "src/base/text.h"

/* ---- text --------------------------------------------------------------------------------- */

enum { SHORT_TEXT = 1024, LEAST_WIDTH = 40, USUAL_WIDTH = 80, USUAL_HEIGHT = 24 };

void vprint_clean(FILE *out, const char *format, va_list args)
{
    char brief[SHORT_TEXT];
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(brief, sizeof brief, format, args);
    char *whole = length >= SHORT_TEXT ? malloc((size_t)length + 1) : NULL;
    if (whole)
        vsnprintf(whole, (size_t)length + 1, format, again);
    va_end(again);
    char *text = whole ? whole : brief; /* truncated if host memory is exhausted */
    qi_make_printable(text);
    fputs(text, out);
    free(whole);
}

void print_clean(FILE *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprint_clean(out, format, args);
    va_end(args);
}

void print_problem(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprint_clean(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

int output_width(void)
{
    struct winsize size = {0};
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
        return USUAL_WIDTH;
    return size.ws_col > LEAST_WIDTH ? size.ws_col : LEAST_WIDTH;
}

int output_height(void)
{
    struct winsize size = {0};
    bool is_known = isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    return is_known && size.ws_row ? size.ws_row : USUAL_HEIGHT;
}

bool is_utf8_output(void)
{
    return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

void print_wrapped(int indent, const char *format, ...)
{
    char text[SHORT_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    int width = output_width(), column = 0;
    for (char *rest = text, *word; (word = strtok_r(rest, " ", &rest));) {
        int length = (int)strlen(word);
        if (column && column + 1 + length > width) {
            putchar('\n');
            column = 0;
        }
        column += column ? printf(" %s", word) : printf("%*s%s", indent, "", word);
    }
    putchar('\n');
}

const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* ---- files -------------------------------------------------------------------------------- */

/* Prints the error; returns NULL for the caller to return. */
static void *complain(const char *path, const char *what)
{
    print_problem("quire: %s: %s", path, what);
    return NULL;
}

/* Appends a zero byte that *size does not count. Returns NULL if host memory is exhausted. */
static char *read_stream(FILE *file, size_t *size)
{
    size_t room = 1 << 16, length = 0;
    char *text = malloc(room);
    while (text) {
        length += fread(text + length, 1, room - length - 1, file);
        if (length + 1 < room)
            break;
        char *larger = room > SIZE_MAX / 2 ? NULL : realloc(text, room * 2);
        if (!larger)
            free(text);
        text = larger;
        room *= 2;
    }
    if (text)
        text[length] = '\0';
    *size = length;
    return text;
}

bool is_standard(const char *path)
{
    return path && !strcmp(path, "-");
}

char *read_file(const char *path, size_t *size)
{
    bool standard = is_standard(path);
    FILE *file = standard ? stdin : fopen(path, "rb");
    struct stat info;
    if (!file)
        return complain(path, strerror(errno));
    if (!fstat(fileno(file), &info) && S_ISDIR(info.st_mode)) {
        fclose(file);
        print_problem("%s: is a directory, not a file", path);
        return NULL;
    }
    char *text = read_stream(file, size);
    bool broken = ferror(file);
    if (!standard)
        fclose(file);
    if (!text)
        return complain(path, "does not fit into host memory");
    if (broken) {
        free(text);
        return complain(path, "cannot be read");
    }
    return text;
}

bool write_to_file(void *file, const char *text, size_t size)
{
    return fwrite(text, 1, size, file) == size;
}

bool open_output(output *o)
{
    if (!o->path)
        return true;
    o->file = is_standard(o->path) ? stdout : fopen(o->path, "wb");
    if (!o->file)
        complain(o->path, strerror(errno));
    return o->file != NULL;
}

void close_output(output *o)
{
    if (o->file && o->file != stdout)
        fclose(o->file);
    o->file = NULL;
}

bool write_output(output *o, quire_result (*write)(void *subject, quire_sink sink, void *user),
                  void *subject)
{
    FILE *file = o->file;
    quire_result result = write(subject, write_to_file, file);
    o->file = NULL;
    if (file == stdout) /* main reports a failed standard output */
        return !result || (!ferror(stdout) && complain(o->path, quire_last_error()));
    /* The system's error gives the reason. The library only sees that its sink failed. */
    bool refused = ferror(file);
    int code = errno;
    if (fclose(file) && !result) {
        refused = true;
        code = errno;
    }
    if (refused || result)
        complain(o->path, refused ? strerror(code) : quire_last_error());
    return !refused && !result;
}

bool is_same_file(const char *one, const char *other)
{
    struct stat a, b;
    if (!one || !other || is_standard(one) || is_standard(other))
        return false;
    return !strcmp(one, other) || (!stat(one, &a) && !stat(other, &b) && S_ISREG(a.st_mode) &&
                                   a.st_dev == b.st_dev && a.st_ino == b.st_ino);
}

/* ---- progress ----------------------------------------------------------------------------- */

enum { BAR_WIDTH = 40 };

bool show_progress(void *user, uint64_t done, uint64_t total)
{
    progress *bar = user;
    uint64_t now = qi_clock() / 1000000;
    if (!isatty(STDERR_FILENO) || (bar->shown && done < total && now - bar->last_drawn < 100))
        return true;
    bar->last_drawn = now;
    bar->shown = true;
    int filled = total ? (int)((double)done / (double)total * (double)BAR_WIDTH) : BAR_WIDTH;
    fprintf(stderr, "\r%s [", bar->what);
    for (int i = 0; i < BAR_WIDTH; i++)
        fputc(i < filled ? '#' : '.', stderr);
    fprintf(stderr, "] %3d%%", total ? (int)((double)done / (double)total * 100) : 100);
    fflush(stderr);
    return true;
}

bool show_progress_of_each(progress *bar, uint64_t done, uint64_t total)
{
    return (done % (total / 2000 + 1) && done < total) || show_progress(bar, done, total);
}

void end_progress(progress *bar)
{
    if (bar->shown)
        fprintf(stderr, "\r\033[K");
    bar->shown = false;
}
