/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * result.c - stores the facts of the thread's last error, and makes its words when they are read.
 * src/api/base.c has the public functions that return it.
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
    memcpy(to->text, from->text, from->used);
    if (!from->used)
        to->text[0] = '\0';
}

void qi_error_save(qi_error *saved)
{
    copy(saved, &last_error);
}

void qi_error_restore(const qi_error *saved)
{
    copy(&last_error, saved);
}

uint64_t qi_error_count(void)
{
    return last_error.number;
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

/* Formats a pattern with its numbers and the name that %t stands for. */
static void format_pattern(const char *pattern, const uint64_t *number, const char *name,
                           char *text, size_t size)
{
    size_t length = 0;
    for (const char *p = pattern; *p && length + 1 < size; p++) {
        if (*p != '%' || !p[1]) {
            text[length++] = *p;
            continue;
        }
        p++;
        if (*p == 's') { /* a number precedes it */
            text[length] = 's';
            length += number[-1] != 1;
        } else if (*p == 't') {
            length += qi_copy_text(text + length, size - length, name) - 1;
        } else {
            length += append_number(text + length, size - length, *p, *number++);
        }
    }
    text[length] = '\0';
}

const char *qi_error_text(qi_error *error)
{
    if (error->pattern || error->writer) {
        _Alignas(qi_error) char facts[QI_ERROR_TEXT] = "";
        memcpy(facts, error->text, error->used);
        if (error->writer)
            error->writer(facts, error->text, sizeof error->text);
        else
            format_pattern(error->pattern, error->numbers, facts, error->text, sizeof error->text);
        qi_make_printable(error->text);
        error->pattern = NULL;
        error->writer = NULL;
        error->used = strlen(error->text) + 1;
    }
    return error->text;
}

const char *qi_error_sentence(void)
{
    return qi_error_text(&last_error);
}

size_t qi_error_take_reason(qi_error_reason *reason, char *text, size_t size)
{
    if (last_error.writer)
        qi_error_sentence();
    reason->native = last_error.native;
    reason->limit = last_error.limit;
    reason->limit_max = last_error.limit_max;
    reason->pattern = last_error.pattern;
    memcpy(reason->numbers, last_error.numbers, sizeof reason->numbers);
    return qi_copy_text(text, size, last_error.used ? last_error.text : "");
}

void qi_error_reason_text(const qi_error_reason *reason, const char *kept, char *text, size_t size)
{
    if (reason->pattern)
        format_pattern(reason->pattern, reason->numbers, kept, text, size);
    else
        qi_copy_text(text, size, kept);
}

quire_result qi_error_result(void)
{
    return last_error.code;
}

int64_t qi_error_native_code(void)
{
    return last_error.native;
}

/* Begins a record whose words are made when they are asked for. */
static void begin(quire_result code, int64_t native, const char *pattern, qi_error_writer writer)
{
    last_error.code = code;
    last_error.native = native;
    last_error.number++;
    last_error.limit = QI_LIMIT_NONE;
    last_error.limit_max = 0;
    last_error.pattern = pattern;
    last_error.writer = writer;
    last_error.used = 0;
}

quire_result qi_fail_numbers(quire_result code, const char *pattern, const uint64_t *numbers)
{
    begin(code, 0, pattern, NULL);
    memcpy(last_error.numbers, numbers, sizeof last_error.numbers);
    return code;
}

quire_result qi_fail(quire_result code, const char *sentence)
{
    static const uint64_t none[QI_ERROR_NUMBERS];
    return qi_fail_numbers(code, sentence, none);
}

quire_result qi_fail_null(const char *call, const char *argument)
{
    return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT, "%s: %s is null", call, argument);
}

quire_result qi_fail_backend(const char *given, const char *needed)
{
    return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT, "%s%s: one of backend %s is needed",
                        given ? "a device of backend " : "the device is null", given ? given : "",
                        needed);
}

size_t qi_copy_text(char *to, size_t size, const char *text)
{
    size_t length = strlen(text);
    if (length >= size)
        length = size - 1;
    memcpy(to, text, length);
    to[length] = '\0';
    return length + 1;
}

quire_result qi_fail_name_numbers(quire_result code, const char *pattern, const char *name,
                                  const uint64_t *numbers)
{
    qi_fail_numbers(code, pattern, numbers);
    last_error.used = qi_copy_text(last_error.text, QI_ERROR_NAME, name);
    return code;
}

quire_result qi_fail_at_limit(qi_limit limit, uint64_t max, quire_result code)
{
    last_error.limit = limit;
    last_error.limit_max = max;
    return code;
}

quire_result qi_fail_later(quire_result code, int64_t native, qi_error_writer writer,
                           const void *facts, size_t size)
{
    begin(code, native, NULL, writer);
    last_error.used = size;
    memcpy(last_error.text, facts, size);
    return code;
}

quire_result qi_fail_native(quire_result code, int64_t native, const char *format, va_list args)
{
    char text[QI_ERROR_TEXT]; /* an argument may be the previous sentence */
    vsnprintf(text, sizeof text, format, args);
    qi_make_printable(text);
    begin(code, native, NULL, NULL);
    last_error.used = strlen(text) + 1;
    memcpy(last_error.text, text, last_error.used);
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
