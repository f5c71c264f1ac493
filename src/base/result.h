/*
 * result.h - the thread's last error: the one way in which a call of the library fails.
 *
 * A failing call ends in `return qi_fail(...)`. A sentence with numbers is kept as its pattern and
 * its numbers and only put together when somebody asks, so that a refusal in a hot path (a full
 * space, say) costs a few stores. The record belongs to the thread: no lock, no allocation.
 */
#ifndef QUIRE_SRC_BASE_RESULT_H
#define QUIRE_SRC_BASE_RESULT_H

#include <stdarg.h>

#include "quire/base.h"

enum { QI_ERROR_NUMBERS = 4, QI_ERROR_TEXT = 1024 };

/* The record itself: while `pattern` is set the sentence is still to be put together. */
typedef struct qi_error {
    quire_result code;
    int64_t native;
    uint64_t number; /* errors of the thread so far */
    const char *pattern;
    uint64_t numbers[QI_ERROR_NUMBERS];
    char text[QI_ERROR_TEXT];
} qi_error;

/* Around a callback that may call quire and fail there, so that the caller's error stays. */
qi_error qi_error_save(void);
void qi_error_restore(const qi_error *saved);

/* How many errors the thread had: whether a callback that failed has said why. */
uint64_t qi_error_count(void);

/* Replaces control characters, which names may hold, so that a line stays a line. */
void qi_make_printable(char *text);

/* Fails with a fixed sentence, a string literal. */
quire_result qi_fail(quire_result code, const char *sentence);

/*
 * Fails with one to four numbers. In the pattern, a string literal, %u stands for the next number
 * in decimal, %x in hexadecimal and %b as a size in words ("64 MiB"); %s is the plural's "s" unless
 * the number before it was 1.
 */
#define qi_fail_with(code, pattern, ...)                                                           \
    qi_fail_numbers((code), (pattern), (const uint64_t[QI_ERROR_NUMBERS]){__VA_ARGS__})
quire_result qi_fail_numbers(quire_result code, const char *pattern, const uint64_t *numbers);

/* Fails with text in the sentence, put together at once; longer ones are cut at QI_ERROR_TEXT. */
quire_result qi_fail_text(quire_result code, const char *format, ...) QUIRE_PRINTF(2, 3);
quire_result qi_fail_native(quire_result code, int64_t native, const char *format, va_list args)
    QUIRE_PRINTF(3, 0);

/* Refuses an option struct, named in the sentence, whose reserved room is not zero. */
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

/* For a call that cannot fail where it stands. */
static inline void qi_ignore(quire_result result)
{
    (void)result;
}

/* The end of a noun that is counted: "" for 1, else "s". */
static inline const char *qi_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* A size in words: "64 MiB", "1.5 GiB", "100 B". Use as qi_bytes(n).text within one expression. */
typedef struct qi_bytes_text {
    char text[32];
} qi_bytes_text;

qi_bytes_text qi_bytes(uint64_t bytes);

#endif
