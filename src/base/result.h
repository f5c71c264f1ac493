/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * result.h - the thread's last error: the only way in which a call of the library fails.
 *
 * A failing call ends with `return qi_fail(...)`. A sentence with numbers and a name is stored as
 * its pattern, its numbers and a copy of the name. A longer report is stored as its facts and the
 * function that writes it. qi_error_sentence() makes the words: a refusal, which a program may ask
 * for a thousand times in a frame, costs only the stores. The record belongs to the thread: no
 * lock, no host memory.
 */
#ifndef QUIRE_SRC_BASE_RESULT_H
#define QUIRE_SRC_BASE_RESULT_H

#include <stdarg.h>

#include "quire/base.h"

enum { QI_ERROR_NUMBERS = 6, QI_ERROR_TEXT = 1024, QI_ERROR_NAME = 256 };

/* The limits that refuse a request; its error names the one that it met. */
typedef enum qi_limit {
    QI_LIMIT_NONE,
    QI_LIMIT_HEAP_SIZE,    /* the bytes of the heap: such a page never fits */
    QI_LIMIT_PAGE_SIZE,    /* the largest page of the device */
    QI_LIMIT_HEAP,         /* of the caller, for the pages of the heap */
    QI_LIMIT_BUDGET,       /* of the heap, as the backend reports it */
    QI_LIMIT_MEMORY,       /* of the caller, for the pages of the memory */
    QI_LIMIT_NAMES,        /* of the caller, for names with a prefix */
    QI_LIMIT_MEMORY_PAGES, /* number of pages of the memory */
    QI_LIMIT_DEVICE_PAGES, /* number of pages of the device */
    QI_LIMIT_ADDRESSES,    /* bytes of addresses of an elastic page */
    QI_LIMIT_ALLOCATIONS   /* number of allocations of the memory */
} qi_limit;

/* Writes the sentence of a failure from its facts, which are aligned as qi_error.text is. */
typedef void (*qi_error_writer)(const void *facts, char *text, size_t size);

/* The record. Its words are made once: `pattern` and `writer` are null then. */
typedef struct qi_error {
    quire_result code;
    int64_t native;
    uint64_t number; /* errors of the thread so far */
    qi_limit limit;  /* that the request met; see qi_fail_at_limit */
    uint64_t limit_max;
    const char *pattern;
    uint64_t numbers[QI_ERROR_NUMBERS];
    qi_error_writer writer;
    uint64_t used;            /* bytes of `text` */
    char text[QI_ERROR_TEXT]; /* the sentence; before that the name or the facts */
} qi_error;

/*
 * The last error of the thread, as quire_last_error, quire_last_result and quire_last_native_code
 * return it.
 */
const char *qi_error_sentence(void);
quire_result qi_error_result(void);
int64_t qi_error_native_code(void);

/* The sentence of a record, which it makes if it has only the facts. */
const char *qi_error_text(qi_error *error);

/* Called around a callback, which may call quire and fail: the caller's error is preserved. */
void qi_error_save(qi_error *saved);
void qi_error_restore(const qi_error *saved);

/* What a report keeps of the thread's last error, as its reason. */
typedef struct qi_error_reason {
    int64_t native;
    qi_limit limit;
    uint64_t limit_max;
    const char *pattern; /* NULL: the sentence was made before */
    uint64_t numbers[QI_ERROR_NUMBERS];
} qi_error_reason;

/* Copies at most size - 1 bytes of what the words need into `text`; returns the bytes with the 0. A
   report that is itself a reason is made first. */
size_t qi_error_take_reason(qi_error_reason *reason, char *text, size_t size);
void qi_error_reason_text(const qi_error_reason *reason, const char *kept, char *text, size_t size);

/* Number of errors of the thread. Shows whether a callback that failed recorded a reason. */
uint64_t qi_error_count(void);

/* Fails with a fixed sentence, a string literal. */
quire_result qi_fail(quire_result code, const char *sentence);

/* Fails with INVALID_ARGUMENT: in a call of a public function this argument is a null pointer. */
quire_result qi_fail_null(const char *call, const char *argument);

/* Fails with INVALID_ARGUMENT: a device of the backend `given` where one of the backend `needed`
   must be; NULL: the device is null. */
quire_result qi_fail_backend(const char *given, const char *needed);

/*
 * Fails with one to six numbers. In the pattern, a string literal, %u stands for the next number
 * in decimal, %x in hexadecimal and %b as a size with its unit ("64 MiB"); %s is the plural "s", or
 * nothing if the number before it was 1.
 */
#define qi_fail_with(code, pattern, ...)                                                           \
    qi_fail_numbers((code), (pattern), (const uint64_t[QI_ERROR_NUMBERS]){__VA_ARGS__})
quire_result qi_fail_numbers(quire_result code, const char *pattern, const uint64_t *numbers);

/*
 * The same with a name, of which at most QI_ERROR_NAME - 1 bytes are copied: %t in the pattern.
 */
#define qi_fail_naming(code, pattern, name, ...)                                                   \
    qi_fail_name_numbers((code), (pattern), (name), (const uint64_t[QI_ERROR_NUMBERS]){__VA_ARGS__})
quire_result qi_fail_name_numbers(quire_result code, const char *pattern, const char *name,
                                  const uint64_t *numbers);

/* Notes in the thread's last error, which the caller has just made, the limit that refuses: `max`
   bytes or pieces. Returns `code`. */
quire_result qi_fail_at_limit(qi_limit limit, uint64_t max, quire_result code);

/* Fails with a report that `writer` makes of a copy of `size` bytes, at most QI_ERROR_TEXT. */
quire_result qi_fail_later(quire_result code, int64_t native, qi_error_writer writer,
                           const void *facts, size_t size);

/* Copies at most size - 1 bytes of a text and ends it with 0. Returns the bytes, with the 0. */
size_t qi_copy_text(char *to, size_t size, const char *text);

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
