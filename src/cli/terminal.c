/*
 * terminal.c - text for people, part of which came from a file, an argument or a driver: nothing in
 * it may steer the terminal that shows it.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/text.h"
#include "src/cli/cli.h"

enum { SHORT_TEXT = 1024 };

/* C0, DEL and C1: the last of these are two bytes each in UTF-8, and terminals obey them, too. */
static bool is_control(uint32_t code_point)
{
    return code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0);
}

/* In place: what is put is never longer than what it stands for. */
static void clean(char *text)
{
    char *out = text;
    for (const char *at = text; *at;) {
        const char *begin = at;
        uint32_t c = qi_next_code_point(&at);
        bool is_text = c != QI_REPLACEMENT || at > begin + 1;
        if (is_control(c) || !is_text)
            *out++ = '?';
        else
            while (begin < at)
                *out++ = *begin++;
    }
    *out = '\0';
}

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
    char *text = whole ? whole : brief; /* cut where there is no memory for all of it */
    clean(text);
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
