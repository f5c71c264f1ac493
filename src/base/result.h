/*
 * result.h - the thread's last error: the only way in which a call of the library fails.
 *
 * A failing call ends with `return qi_fail(...)`. A sentence with numbers is stored as its pattern
 * and its numbers; qi_error_sentence() formats it. A refusal in a hot path, such as a full space,
 * therefore costs only a few stores. The record belongs to the thread: no lock, no host memory.
 */
#ifndef QUIRE_SRC_BASE_RESULT_H
#define QUIRE_SRC_BASE_RESULT_H

#include <stdarg.h>

#include "quire/base.h"

enum { QI_ERROR_NUMBERS = 6, QI_ERROR_TEXT = 1024 };

/* The record. While `pattern` is not null, `text` is not formatted yet. */
typedef struct qi_error {
    quire_result code;
    int64_t native;
    uint64_t number; /* errors of the thread so far */
    const char *pattern;
    uint64_t numbers[QI_ERROR_NUMBERS];
    char text[QI_ERROR_TEXT];
} qi_error;

/*
 * The last error of the thread, as quire_last_error, quire_last_result and quire_last_native_code
 * return it.
 */
const char *qi_error_sentence(void);
quire_result qi_error_result(void);
int64_t qi_error_native_code(void);

/* Called around a callback, which may call quire and fail: the caller's error is preserved. */
qi_error qi_error_save(void);
void qi_error_restore(const qi_error *saved);

/* Number of errors of the thread. Shows whether a callback that failed recorded a reason. */
uint64_t qi_error_count(void);

/* Replaces control characters, which names may contain, so that a line stays one line. */
void qi_make_printable(char *text);

/* Fails with a fixed sentence, a string literal. */
quire_result qi_fail(quire_result code, const char *sentence);

/*
 * Fails with one to six numbers. In the pattern, a string literal, %u stands for the next number
 * in decimal, %x in hexadecimal and %b as a size with its unit ("64 MiB"); %s is the plural "s", or
 * nothing if the number before it was 1.
 */
#define qi_fail_with(code, pattern, ...)                                                           \
    qi_fail_numbers((code), (pattern), (const uint64_t[QI_ERROR_NUMBERS]){__VA_ARGS__})
quire_result qi_fail_numbers(quire_result code, const char *pattern, const uint64_t *numbers);

/* Fails with a sentence that is formatted at once and truncated at QI_ERROR_TEXT. */
quire_result qi_fail_text(quire_result code, const char *format, ...) QUIRE_PRINTF(2, 3);
quire_result qi_fail_native(quire_result code, int64_t native, const char *format, va_list args)
    QUIRE_PRINTF(3, 0);

/* Refuses an option struct whose reserved fields are not zero; the sentence names the struct. */
#define qi_check_unused(options, name)                                                             \
    qi_check_zero((options)->unused, sizeof(options)->unused / sizeof(options)->unused[0], (name))
quire_result qi_refuse_not_zero(const uint64_t *words, size_t count, const char *name);

static inline quire_result qi_check_zero(const uint64_t *words, size_t count, const char *name)
{
    uint64_t all = 0;
    for (size_t i = 0; i < count; i++)
        all |= words[i];
    return all ? qi_refuse_not_zero(words, count, name) : QUIRE_SUCCESS;
}

/* For a call that cannot fail in its context. */
static inline void qi_ignore(quire_result result)
{
    (void)result;
}

/* The plural ending of a counted noun: "" for 1, otherwise "s". */
static inline const char *qi_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* A size with its unit: "64 MiB", "1.5 GiB", "100 B". Use qi_bytes(n).text in one expression. */
typedef struct qi_bytes_text {
    char text[32];
} qi_bytes_text;

qi_bytes_text qi_bytes(uint64_t bytes);

#endif
