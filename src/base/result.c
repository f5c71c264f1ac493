/*
 * result.c - the thread's last error. src/api/base.c has the public functions that return it.
 */
#include "src/base/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/base/text.h"

static _Thread_local qi_error last_error;

/* Copies only the used part of the text: callers also copy records without an error. */
static void copy(qi_error *to, const qi_error *from)
{
    memcpy(to, from, offsetof(qi_error, text));
    if (from->pattern)
        to->text[0] = '\0';
    else
        memcpy(to->text, from->text, strlen(from->text) + 1);
}

qi_error qi_error_save(void)
{
    qi_error saved;
    copy(&saved, &last_error);
    return saved;
}

void qi_error_restore(const qi_error *saved)
{
    copy(&last_error, saved);
}

uint64_t qi_error_count(void)
{
    return last_error.number;
}

void qi_make_printable(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            *text = '?';
}

/* Two decimals unless the size is a multiple of its unit; never "1024.00" of a unit. */
qi_bytes_text qi_bytes(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t unit = 0;
    double value = (double)bytes;
    while (value >= 1023.995 && unit + 1 < sizeof units / sizeof *units) {
        value /= 1024.0;
        unit++;
    }
    qi_bytes_text out;
    bool whole = (bytes & ((UINT64_C(1) << (10 * unit)) - 1)) == 0;
    if (whole)
        snprintf(out.text, sizeof out.text, "%" PRIu64 " %s", bytes >> (10 * unit), units[unit]);
    else
        snprintf(out.text, sizeof out.text, "%.16s %s", qi_real_2(value).text, units[unit]);
    return out;
}

/* Appends a number in the form that the pattern asks for. Returns the length, at most room - 1. */
static size_t append_number(char *out, size_t room, char kind, uint64_t number)
{
    int length = 0;
    if (kind == 'b')
        length = snprintf(out, room, "%s", qi_bytes(number).text);
    else
        length = snprintf(out, room, kind == 'x' ? "0x%" PRIx64 : "%" PRIu64, number);
    return length < 0 || (size_t)length >= room ? room - 1 : (size_t)length;
}

/* Formats the sentence and clears the pattern. */
static void format_sentence(void)
{
    const uint64_t *number = last_error.numbers;
    size_t length = 0;
    for (const char *p = last_error.pattern; *p && length + 1 < QI_ERROR_TEXT; p++) {
        if (*p == '%' && p[1] == 's') { /* a number precedes it */
            p++;
            last_error.text[length] = 's';
            length += number[-1] != 1;
        } else if (*p == '%' && p[1]) {
            p++;
            length +=
                append_number(last_error.text + length, QI_ERROR_TEXT - length, *p, *number++);
        } else {
            last_error.text[length++] = *p;
        }
    }
    last_error.text[length] = '\0';
    last_error.pattern = NULL;
}

const char *qi_error_sentence(void)
{
    if (last_error.pattern)
        format_sentence();
    return last_error.text;
}

quire_result qi_error_result(void)
{
    return last_error.code;
}

int64_t qi_error_native_code(void)
{
    return last_error.native;
}

/* Stores without formatting: errors in a hot path are expected, see result.h. */
quire_result qi_fail_numbers(quire_result code, const char *pattern, const uint64_t *numbers)
{
    last_error.code = code;
    last_error.native = 0;
    last_error.number++;
    last_error.pattern = pattern;
    memcpy(last_error.numbers, numbers, sizeof last_error.numbers);
    return code;
}

quire_result qi_fail(quire_result code, const char *sentence)
{
    static const uint64_t none[QI_ERROR_NUMBERS];
    return qi_fail_numbers(code, sentence, none);
}

quire_result qi_fail_native(quire_result code, int64_t native, const char *format, va_list args)
{
    char text[QI_ERROR_TEXT]; /* an argument may be the previous sentence */
    vsnprintf(text, sizeof text, format, args);
    qi_make_printable(text);
    last_error.code = code;
    last_error.native = native;
    last_error.number++;
    last_error.pattern = NULL;
    memcpy(last_error.text, text, strlen(text) + 1);
    return code;
}

quire_result qi_fail_text(quire_result code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    qi_fail_native(code, 0, format, args);
    va_end(args);
    return code;
}

quire_result qi_refuse_not_zero(const uint64_t *words, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (words[i])
            return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT, "%s.unused[%zu] is not zero", name,
                                i);
    return QUIRE_SUCCESS;
}
