/*
 * terminal.c - prints text that contains parts of a file, an argument or a driver's answer. None of
 * it reaches the terminal as a control sequence.
 */
#include <langinfo.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "src/base/text.h"
#include "src/tool/tool.h"

enum { SHORT_TEXT = 1024, LEAST_WIDTH = 40, USUAL_WIDTH = 80 };

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
