/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * result.c - result codes with their names, and the thread's last error: what the message says, how
 * long it stays, and that other threads do not see it.
 */
#include "src/base/result.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/unit.h"

/* ---- codes --------------------------------------------------------------------------------- */

typedef struct code {
    int value;
    const char *name;
} code;

/* Written out a second time, because programs store these numbers and none may ever change. */
static const code codes[] = {
    {0, "QUIRE_SUCCESS"},
    {-1, "QUIRE_ERROR_INVALID_ARGUMENT"},
    {-2, "QUIRE_ERROR_OUT_OF_DEVICE_MEMORY"},
    {-3, "QUIRE_ERROR_OUT_OF_HOST_MEMORY"},
    {-4, "QUIRE_ERROR_OVER_BUDGET"},
    {-5, "QUIRE_ERROR_TOO_MANY_PAGES"},
    {-6, "QUIRE_ERROR_TOO_MANY_ALLOCATIONS"},
    {-7, "QUIRE_ERROR_UNSUPPORTED"},
    {-8, "QUIRE_ERROR_NOT_PERMITTED"},
    {-9, "QUIRE_ERROR_NOT_HOST_VISIBLE"},
    {-10, "QUIRE_ERROR_NOT_MAPPED"},
    {-11, "QUIRE_ERROR_STALE_HANDLE"},
    {-12, "QUIRE_ERROR_FOREIGN_HANDLE"},
    {-13, "QUIRE_ERROR_OUT_OF_RANGE"},
    {-14, "QUIRE_ERROR_OVERLAP"},
    {-15, "QUIRE_ERROR_BUSY"},
    {-16, "QUIRE_ERROR_WRONG_STATE"},
    {-17, "QUIRE_ERROR_NO_SPACE"},
    {-18, "QUIRE_ERROR_DEVICE_LOST"},
    {-19, "QUIRE_ERROR_BACKEND_FAILURE"},
    {-20, "QUIRE_ERROR_BAD_FILE"},
    {-21, "QUIRE_ERROR_CORRUPTED"},
};
enum { CODES = sizeof codes / sizeof *codes };

UNIT(result, every_code_has_its_name)
{
    for (int i = 0; i < CODES; i++)
        CHECK_STR(quire_result_name((quire_result)codes[i].value), codes[i].name);
}

UNIT(result, the_list_holds_no_other_codes)
{
#define COUNT_ONE(name, value, message) +1
    CHECK_EQ(0 QUIRE_RESULTS(COUNT_ONE), CODES);
#undef COUNT_ONE
}

UNIT(result, every_code_has_a_distinct_message)
{
    for (int i = 0; i < CODES; i++) {
        const char *message = quire_result_sentence((quire_result)codes[i].value);
        CHECK(*message && strcmp(message, "unknown result"));
        for (int j = 0; j < i; j++)
            CHECK(strcmp(message, quire_result_sentence((quire_result)codes[j].value)));
    }
    CHECK_STR(quire_result_sentence(QUIRE_ERROR_NO_SPACE),
              "no free range of the space is large enough");
}

UNIT(result, an_undefined_value_is_unknown)
{
    const int others[] = {1, 2, 22, -CODES, -CODES - 1, -1000, INT_MIN, INT_MAX};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        CHECK_STR(quire_result_name((quire_result)others[i]), "unknown result");
        CHECK_STR(quire_result_sentence((quire_result)others[i]), "unknown result");
    }
}

UNIT(result, the_version_is_that_of_the_macros)
{
    char expected[32];
    snprintf(expected, sizeof expected, "%d.%d.%d", QUIRE_VERSION_MAJOR, QUIRE_VERSION_MINOR,
             QUIRE_VERSION_PATCH);
    CHECK_STR(quire_version(), expected);
}

/* ---- the last error ------------------------------------------------------------------------ */

UNIT(result, nothing_failed_at_first)
{
    CHECK_STR(quire_last_error(), "");
    CHECK_EQ(quire_last_result(), QUIRE_SUCCESS);
    CHECK_EQ(quire_last_native_code(), 0);
}

UNIT(result, a_failure_returns_its_code_and_keeps_its_message)
{
    CHECK_FAILS(qi_fail(QUIRE_ERROR_BUSY, "the device is busy"), QUIRE_ERROR_BUSY);
    CHECK_STR(quire_last_error(), "the device is busy");
    CHECK_STR(quire_last_error(), "the device is busy");
    CHECK_FAILS(qi_fail(QUIRE_ERROR_OVERLAP, "another"), QUIRE_ERROR_OVERLAP);
    CHECK_STR(quire_last_error(), "another");
}

UNIT(result, numbers_are_formatted_as_the_format_says)
{
    CHECK_FAILS(qi_fail_with(QUIRE_ERROR_BUSY, "%u|%x|%b|%u.", 18, 255, 3 << 20, UINT64_MAX),
                QUIRE_ERROR_BUSY);
    CHECK_STR(quire_last_error(), "18|0xff|3 MiB|18446744073709551615.");
    CHECK_FAILS(qi_fail_with(QUIRE_ERROR_BUSY, "%x", UINT64_MAX), QUIRE_ERROR_BUSY);
    CHECK_STR(quire_last_error(), "0xffffffffffffffff");
    CHECK_FAILS(qi_fail_with(QUIRE_ERROR_BUSY, "full to 100 %", 1), QUIRE_ERROR_BUSY);
    CHECK_STR(quire_last_error(), "full to 100 %");
}

UNIT(result, text_is_formatted_immediately)
{
    char name[] = "quire";
    CHECK_FAILS(qi_fail_text(QUIRE_ERROR_BAD_FILE, "%s: line %d", name, 7), QUIRE_ERROR_BAD_FILE);
    name[0] = 'x';
    CHECK_STR(quire_last_error(), "quire: line 7");
}

UNIT(result, a_success_keeps_the_last_error)
{
    const uint64_t zero[2] = {0};
    CHECK_FAILS(qi_fail(QUIRE_ERROR_BUSY, "kept"), QUIRE_ERROR_BUSY);
    CHECK_OK(qi_check_zero(zero, 2, "nothing"));
    CHECK_STR(quire_last_error(), "kept");
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_BUSY);
}

static quire_result fail_native(int64_t native, const char *format, ...) QUIRE_PRINTF(2, 3);

static quire_result fail_native(int64_t native, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    quire_result result = qi_fail_native(QUIRE_ERROR_BACKEND_FAILURE, native, format, args);
    va_end(args);
    return result;
}

UNIT(result, a_native_code_is_kept_until_the_next_failure)
{
    CHECK_FAILS(fail_native(INT64_MIN, "driver says %d", 3), QUIRE_ERROR_BACKEND_FAILURE);
    CHECK_STR(quire_last_error(), "driver says 3");
    CHECK_EQ(quire_last_native_code(), INT64_MIN);
    CHECK_FAILS(qi_fail(QUIRE_ERROR_BUSY, "other"), QUIRE_ERROR_BUSY);
    CHECK_EQ(quire_last_native_code(), 0);
    CHECK_FAILS(fail_native(-4, "again"), QUIRE_ERROR_BACKEND_FAILURE);
    CHECK_FAILS(qi_fail_text(QUIRE_ERROR_BUSY, "text"), QUIRE_ERROR_BUSY);
    CHECK_EQ(quire_last_native_code(), 0);
}

/* ---- saved and restored -------------------------------------------------------------------- */

UNIT(result, a_saved_error_is_restored_completely)
{
    CHECK_FAILS(fail_native(-7, "driver says %d", 3), QUIRE_ERROR_BACKEND_FAILURE);
    qi_error saved;
    qi_error_save(&saved);
    CHECK_FAILS(qi_fail_with(QUIRE_ERROR_BUSY, "between: %u", 1), QUIRE_ERROR_BUSY);
    qi_error_restore(&saved);
    CHECK_STR(quire_last_error(), "driver says 3");
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_BACKEND_FAILURE);
    CHECK_EQ(quire_last_native_code(), -7);
}

UNIT(result, a_format_saved_before_a_query_keeps_its_numbers)
{
    CHECK_EQ(qi_fail_with(QUIRE_ERROR_BUSY, "%u and %x", 1, 2), QUIRE_ERROR_BUSY);
    qi_error saved;
    qi_error_save(&saved);
    CHECK_FAILS(qi_fail_with(QUIRE_ERROR_OVERLAP, "%u", 3), QUIRE_ERROR_OVERLAP);
    qi_error_restore(&saved);
    CHECK_STR(quire_last_error(), "1 and 0x2");
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_BUSY);
}

/* ---- messages that are too long ------------------------------------------------------------ */

UNIT(result, long_text_is_cut_at_the_size_of_the_record)
{
    char text[2 * QI_ERROR_TEXT];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    CHECK_FAILS(qi_fail_text(QUIRE_ERROR_BUSY, "%s", text), QUIRE_ERROR_BUSY);
    CHECK_EQ(strlen(quire_last_error()), QI_ERROR_TEXT - 1);
    CHECK_FAILS(qi_fail(QUIRE_ERROR_BUSY, text), QUIRE_ERROR_BUSY);
    CHECK_EQ(strlen(quire_last_error()), QI_ERROR_TEXT - 1);
}

/* A number may lie before, across or after the cut. */
UNIT(result, numbers_at_the_end_of_the_record_are_cut)
{
    for (int length = QI_ERROR_TEXT - 20; length < QI_ERROR_TEXT + 5; length++) {
        char format[QI_ERROR_TEXT + 16], expected[QI_ERROR_TEXT + 64];
        memset(format, 'y', sizeof format);
        memcpy(format + length, "%u!", 4);
        snprintf(expected, sizeof expected, "%.*s123456789!", length, format);
        expected[QI_ERROR_TEXT - 1] = '\0';
        CHECK_FAILS(qi_fail_with(QUIRE_ERROR_BUSY, format, 123456789), QUIRE_ERROR_BUSY);
        CHECK_STR(quire_last_error(), expected);
    }
}

/* ---- words made later ----------------------------------------------------------------------- */

UNIT(result, a_name_is_copied_at_the_failure)
{
    char name[300] = "first";
    CHECK_EQ(qi_fail_naming(QUIRE_ERROR_BUSY, "'%t' has %u page%s of %b", name, 1, 2048),
             QUIRE_ERROR_BUSY);
    strcpy(name, "other");
    CHECK_STR(quire_last_error(), "'first' has 1 page of 2 KiB");
    qi_fail_naming(QUIRE_ERROR_BUSY, "%u in '%t'", "a\nb", 7);
    CHECK_STR(quire_last_error(), "7 in 'a?b'"); /* one line */
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    qi_fail_naming(QUIRE_ERROR_BUSY, "%t", name, 0);
    CHECK_EQ(strlen(quire_last_error()), QI_ERROR_NAME - 1);
}

typedef struct pair {
    uint64_t left, right;
} pair;

static int written;

static void write_pair(const void *facts, char *text, size_t size)
{
    const pair *p = facts;
    written++;
    snprintf(text, size, "%d and %d", (int)p->left, (int)p->right);
}

UNIT(result, a_report_is_written_when_it_is_read)
{
    qi_error saved;
    const pair p = {3, 4};
    written = 0;
    CHECK_EQ(qi_fail_later(QUIRE_ERROR_BUSY, -5, write_pair, &p, sizeof p), QUIRE_ERROR_BUSY);
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_BUSY);
    CHECK_EQ(quire_last_native_code(), -5);
    qi_error_save(&saved);
    qi_fail(QUIRE_ERROR_OVERLAP, "another");
    CHECK_EQ(written, 0);
    CHECK_STR(qi_error_text(&saved), "3 and 4");
    CHECK_STR(qi_error_text(&saved), "3 and 4");
    CHECK_EQ(written, 1);
    CHECK_STR(quire_last_error(), "another");
    qi_error_restore(&saved);
    CHECK_STR(quire_last_error(), "3 and 4");
    CHECK_EQ(written, 1);
}

/* The reason of a report is a pattern, a sentence, or a report of its own. */
UNIT(result, a_reason_is_kept_in_every_form)
{
    qi_error_reason reason;
    char kept[QI_ERROR_TEXT], text[QI_ERROR_TEXT];
    const pair p = {3, 4};
    qi_fail_naming(QUIRE_ERROR_BUSY, "%u in '%t'", "name", 7);
    CHECK_EQ(qi_error_take_reason(&reason, kept, sizeof kept), 5);
    qi_fail(QUIRE_ERROR_OVERLAP, "another");
    qi_error_reason_text(&reason, kept, text, sizeof text);
    CHECK_STR(text, "7 in 'name'");
    qi_fail_text(QUIRE_ERROR_BUSY, "a %s", "sentence");
    qi_error_take_reason(&reason, kept, 6); /* cut */
    qi_error_reason_text(&reason, kept, text, sizeof text);
    CHECK_STR(text, "a sen");
    qi_fail_later(QUIRE_ERROR_BUSY, 0, write_pair, &p, sizeof p);
    qi_error_take_reason(&reason, kept, sizeof kept);
    qi_error_reason_text(&reason, kept, text, sizeof text);
    CHECK_STR(text, "3 and 4");
}

/* ---- threads ------------------------------------------------------------------------------- */

static void *fail_elsewhere(void *failed)
{
    bool clean = !*quire_last_error() && quire_last_result() == QUIRE_SUCCESS;
    qi_ignore(qi_fail_text(QUIRE_ERROR_DEVICE_LOST, "elsewhere"));
    *(bool *)failed = clean && !strcmp(quire_last_error(), "elsewhere");
    return NULL;
}

/* The limit belongs to the error that met it, and to a report whose reason this error is. */
UNIT(result, an_error_names_the_limit_that_it_met)
{
    char text[64];
    qi_error error;
    qi_error_reason reason;
    CHECK_EQ(qi_fail_at_limit(QI_LIMIT_HEAP, 77, qi_fail(QUIRE_ERROR_OVER_BUDGET, "full")),
             QUIRE_ERROR_OVER_BUDGET);
    qi_error_save(&error);
    CHECK(error.limit == QI_LIMIT_HEAP && error.limit_max == 77);
    qi_error_take_reason(&reason, text, sizeof text);
    CHECK(reason.limit == QI_LIMIT_HEAP && reason.limit_max == 77);
    CHECK_STR(quire_last_error(), "full");
    qi_ignore(qi_fail(QUIRE_ERROR_BUSY, "busy"));
    qi_error other;
    qi_error_save(&other);
    CHECK(other.limit == QI_LIMIT_NONE && !other.limit_max);
    qi_error_restore(&error);
    qi_error_take_reason(&reason, text, sizeof text);
    CHECK(reason.limit == QI_LIMIT_HEAP && reason.limit_max == 77);
}

UNIT(result, each_thread_has_its_own_last_error)
{
    CHECK_FAILS(qi_fail_with(QUIRE_ERROR_BUSY, "here: %u", 1), QUIRE_ERROR_BUSY);
    bool saw_only_its_own = false;
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, fail_elsewhere, &saw_only_its_own), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK(saw_only_its_own);
    CHECK_STR(quire_last_error(), "here: 1");
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_BUSY);
}

/* ---- helpers ------------------------------------------------------------------------------- */

UNIT(result, sizes_are_written_in_the_largest_unit)
{
    CHECK_STR(qi_bytes(0).text, "0 B");
    CHECK_STR(qi_bytes(1).text, "1 B");
    CHECK_STR(qi_bytes(1023).text, "1023 B");
    CHECK_STR(qi_bytes(1024).text, "1 KiB");
    CHECK_STR(qi_bytes(1025).text, "1.00 KiB"); /* not exactly 1 KiB, so it is written in bytes */
    CHECK_STR(qi_bytes(1536).text, "1.50 KiB");
    CHECK_STR(qi_bytes(1048570).text, "1023.99 KiB");
    CHECK_STR(qi_bytes(1048571).text, "1.00 MiB"); /* rather than 1024.00 KiB */
    CHECK_STR(qi_bytes(64 << 20).text, "64 MiB");
    CHECK_STR(qi_bytes(UINT64_C(5) << 29).text, "2.50 GiB");
    CHECK_STR(qi_bytes(UINT64_C(1023) << 30).text, "1023 GiB");
    CHECK_STR(qi_bytes(UINT64_C(1) << 40).text, "1 TiB");
    CHECK_STR(qi_bytes(UINT64_C(1) << 50).text, "1 PiB");
    CHECK_STR(qi_bytes(UINT64_C(1) << 60).text, "1 EiB");
    CHECK_STR(qi_bytes(UINT64_MAX).text, "16.00 EiB");
}

UNIT(result, every_word_of_unused_fields_must_be_zero)
{
    struct {
        uint64_t before, unused[3], after;
    } options = {.before = 1, .after = 1};
    CHECK_OK(qi_check_unused(&options, "some_options"));
    for (int i = 0; i < 3; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "some_options.unused[%d] is not zero", i);
        options.unused[i] = UINT64_C(1) << (21 * i);
        CHECK_FAILS(qi_check_unused(&options, "some_options"), QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_STR(quire_last_error(), expected);
        options.unused[i] = 0;
    }
}
