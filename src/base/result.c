/*
 * result.c - names of the results, and the thread's last error (see result.h).
 */
#include "src/base/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/base/text.h"

#define QUIRE_STRINGIFY_(x) #x
#define QUIRE_STRINGIFY(x) QUIRE_STRINGIFY_(x)

static _Thread_local qi_error last_error;

/* No more of the text than there is: this is done where no error was, too. */
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

const char *quire_version(void)
{
    return QUIRE_STRINGIFY(QUIRE_VERSION_MAJOR) "." QUIRE_STRINGIFY(
        QUIRE_VERSION_MINOR) "." QUIRE_STRINGIFY(QUIRE_VERSION_PATCH);
}

const char *quire_result_name(quire_result result)
{
    switch (result) {
#define RESULT_NAME(name, value, sentence)                                                         \
    case name:                                                                                     \
        return #name;
        QUIRE_RESULTS(RESULT_NAME)
#undef RESULT_NAME
    }
    return "unknown result";
}

const char *quire_result_sentence(quire_result result)
{
    switch (result) {
#define RESULT_SENTENCE(name, value, sentence)                                                     \
    case name:                                                                                     \
        return sentence;
        QUIRE_RESULTS(RESULT_SENTENCE)
#undef RESULT_SENTENCE
    }
    return "unknown result";
}

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

static size_t append_number(char *out, size_t room, char kind, uint64_t number)
{
    int length = 0;
    if (kind == 'b')
        length = snprintf(out, room, "%s", qi_bytes(number).text);
    else
        length = snprintf(out, room, kind == 'x' ? "0x%" PRIx64 : "%" PRIu64, number);
    return length < 0 || (size_t)length >= room ? room - 1 : (size_t)length;
}

static void put_sentence_together(void)
{
    const uint64_t *number = last_error.numbers;
    size_t length = 0;
    for (const char *p = last_error.pattern; *p && length + 1 < QI_ERROR_TEXT; p++) {
        if (*p == '%' && p[1] == 's') { /* never the first of a pattern */
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

const char *quire_last_error(void)
{
    if (last_error.pattern)
        put_sentence_together();
    return last_error.text;
}

quire_result quire_last_result(void)
{
    return last_error.code;
}

int64_t quire_last_native_code(void)
{
    return last_error.native;
}

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
    char text[QI_ERROR_TEXT]; /* the sentence before may be an argument of this one */
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
