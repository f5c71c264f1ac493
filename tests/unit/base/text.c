/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * text.c - UTF-8 input: every well-formed sequence is read as its code point, every other byte is
 * replaced separately, and no byte after the end is read. Real numbers are written as printf writes
 * them in the C locale, in which the tests run.
 */
#include "src/base/text.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/random.h"
#include "tests/support/unit.h"

/* Reads the first code point of a copy that ends exactly at the end of the text. */
static uint32_t first_of(const char *text, size_t *taken)
{
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    CHECK(copy != NULL);
    memcpy(copy, text, size);
    const char *at = copy;
    uint32_t code_point = qi_next_code_point(&at);
    *taken = (size_t)(at - copy);
    free(copy);
    return code_point;
}

static void expect_first(const char *text, uint32_t code_point, size_t length)
{
    size_t taken = 0;
    CHECK_EQ(first_of(text, &taken), code_point);
    CHECK_EQ(taken, length);
}

static void expect_replaced(const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        expect_first(texts[i], QI_REPLACEMENT, 1);
}

#define EXPECT_REPLACED(...)                                                                       \
    expect_replaced((const char *const[]){__VA_ARGS__},                                            \
                    sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* ---- well-formed --------------------------------------------------------------------------- */

UNIT(text, the_end_is_0_and_stays_the_end)
{
    expect_first("", 0, 0);
    const char *text = "a";
    CHECK_EQ(qi_next_code_point(&text), 'a');
    CHECK_EQ(qi_next_code_point(&text), 0);
    CHECK_EQ(qi_next_code_point(&text), 0);
}

UNIT(text, writing_and_reading_gives_every_code_point_back)
{
    for (uint32_t c = 1; c <= 0x10ffff; c++) {
        if (c >= 0xd800 && c < 0xe000)
            continue;
        char bytes[5] = {0};
        uint32_t length = qi_put_code_point(c, bytes);
        CHECK_EQ(length, c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4);
        const char *at = bytes;
        CHECK_EQ(qi_next_code_point(&at), c);
        CHECK_EQ(at - bytes, length);
    }
}

/* ---- ill-formed ---------------------------------------------------------------------------- */

UNIT(text, sequences_cut_by_the_end_are_replaced)
{
    EXPECT_REPLACED("\xc3", "\xe2", "\xe2\x82", "\xf0", "\xf0\x9f", "\xf0\x9f\x98");
}

UNIT(text, reading_continues_after_a_replaced_byte)
{
    const char *text = "a\xf0\x9f\x98z\xc3\xa9\xff!";
    const uint32_t expected[] = {'a', 0xfffd, 0xfffd, 0xfffd, 'z', 0xe9, 0xfffd, '!', 0};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        CHECK_EQ(qi_next_code_point(&text), expected[i]);
}

/* ---- against the table of the standard ------------------------------------------------------ */

typedef struct form {
    unsigned char low[4], high[4];
    int length;
} form;

/* Unicode, table 3-7: well-formed UTF-8 byte sequences. */
static const form forms[] = {
    {{0x01}, {0x7f}, 1},
    {{0xc2, 0x80}, {0xdf, 0xbf}, 2},
    {{0xe0, 0xa0, 0x80}, {0xe0, 0xbf, 0xbf}, 3},
    {{0xe1, 0x80, 0x80}, {0xec, 0xbf, 0xbf}, 3},
    {{0xed, 0x80, 0x80}, {0xed, 0x9f, 0xbf}, 3},
    {{0xee, 0x80, 0x80}, {0xef, 0xbf, 0xbf}, 3},
    {{0xf0, 0x90, 0x80, 0x80}, {0xf0, 0xbf, 0xbf, 0xbf}, 4},
    {{0xf1, 0x80, 0x80, 0x80}, {0xf3, 0xbf, 0xbf, 0xbf}, 4},
    {{0xf4, 0x80, 0x80, 0x80}, {0xf4, 0x8f, 0xbf, 0xbf}, 4},
};

static bool has_form(const unsigned char *bytes, const form *f)
{
    for (int i = 0; i < f->length; i++)
        if (bytes[i] < f->low[i] || bytes[i] > f->high[i])
            return false;
    return true;
}

/* Returns the number of bytes of the well-formed sequence at the start, 0 if there is none. */
static int well_formed(const unsigned char *bytes)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (has_form(bytes, &forms[i]))
            return forms[i].length;
    return 0;
}

static void expect_as_in_table(const unsigned char bytes[5])
{
    const char *at = (const char *)bytes;
    int length = well_formed(bytes);
    uint32_t code_point = qi_next_code_point(&at);
    if (at - (const char *)bytes != (length ? length : bytes[0] != 0))
        check_failed(__FILE__, __LINE__, "%02x %02x %02x %02x: %d bytes, not %d", bytes[0],
                     bytes[1], bytes[2], bytes[3], (int)(at - (const char *)bytes), length);
    bool is_replacement = !memcmp(bytes, "\xef\xbf\xbd", 3);
    if (bytes[0] && !is_replacement)
        CHECK_EQ(code_point == QI_REPLACEMENT, length == 0);
}

UNIT(text, every_mixture_of_limit_bytes_is_read_as_the_standard_says)
{
    static const unsigned char borders[] = {0x00, 0x01, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf,
                                            0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee,
                                            0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xf7, 0xf8, 0xff};
    enum { COUNT = sizeof borders };
    for (int i = 0; i < COUNT * COUNT * COUNT * COUNT; i++) {
        unsigned char bytes[5] = {borders[i % COUNT], borders[i / COUNT % COUNT],
                                  borders[i / COUNT / COUNT % COUNT],
                                  borders[i / COUNT / COUNT / COUNT]};
        expect_as_in_table(bytes);
    }
}

/* ---- printable ------------------------------------------------------------------------------ */

static void expect_printable(const char *text, const char *expected)
{
    char copy[64];
    snprintf(copy, sizeof copy, "%s", text);
    qi_make_printable(copy);
    CHECK_STR(copy, expected);
}

UNIT(text, control_characters_are_made_printable)
{
    expect_printable("", "");
    expect_printable("plain ~", "plain ~");
    expect_printable("\x1b]0;x\a", "?]0;x?");
    expect_printable("a\nb\x7f", "a?b?");
    expect_printable("\xc2\x9b"
                     "31m\xc2\xa0",
                     "?31m\xc2\xa0"); /* C1 ends before U+00A0 */
}

UNIT(text, bytes_that_are_not_utf_8_are_made_printable)
{
    expect_printable("\x9b"
                     "31m",
                     "?31m");
    expect_printable("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
                     "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    expect_printable("\xef\xbf\xbd", "\xef\xbf\xbd"); /* U+FFFD itself */
    expect_printable("cut \xe2\x82", "cut ??");
}

/* ---- real numbers -------------------------------------------------------------------------- */

static void expect_real(double value)
{
    char expected[512];
    snprintf(expected, sizeof expected, "%.6g", value);
    CHECK_STR(qi_real(value).text, expected);
    if (fabs(value) < 1e20) {
        snprintf(expected, sizeof expected, "%.2f", value);
        CHECK_STR(qi_real_2(value).text, expected);
    }
}

/* A number, its neighbours, and the negatives of all of them. */
static void expect_around(double value)
{
    const double values[] = {value, nextafter(value, 0), nextafter(value, DBL_MAX)};
    for (int i = 0; i < 3; i++) {
        expect_real(values[i]);
        expect_real(-values[i]);
    }
}

UNIT(text, reals_with_known_results)
{
    CHECK_STR(qi_real(0.5).text, "0.5");
    CHECK_STR(qi_real(1234567).text, "1.23457e+06");
    CHECK_STR(qi_real(-1e-300).text, "-1e-300");
    CHECK_STR(qi_real_2(1000).text, "1000.00");
    CHECK_STR(qi_real_2(0.125).text, "0.12"); /* a half rounds to the even side */
    CHECK_STR(qi_real_2(0.375).text, "0.38");
    CHECK_STR(qi_real_2(1e300).text, "1e+300"); /* not 301 digits */
}

UNIT(text, reals_at_the_limits_of_their_forms)
{
    static const double borders[] = {0,
                                     1,
                                     9.5,
                                     0.005,
                                     0.015,
                                     0.995,
                                     99.995,
                                     1e-4,
                                     9.99995,
                                     0.999995,
                                     0.9999995,
                                     1e-6,
                                     0.0001234565,
                                     0.000125,
                                     99999.95,
                                     999999.5,
                                     1e6,
                                     1000000.5,
                                     123456.5,
                                     1234565.0,
                                     1234575.0,
                                     1e15,
                                     DBL_MAX,
                                     DBL_MIN,
                                     5e-324,
                                     DBL_EPSILON,
                                     9007199254740992.0,
                                     18446744073709551615.0,
                                     99999999999999999999.0};
    for (size_t i = 0; i < sizeof borders / sizeof *borders; i++)
        expect_around(borders[i]);
    double ten = 1e-320;
    for (int power = -320; power <= 308; power++, ten = strtod(qi_real(ten * 10).text, NULL)) {
        expect_around(ten);
        expect_around(ten * 0.9999995);
        expect_around(ten / 2);
    }
    for (int power = -1074; power < 1024; power++)
        expect_around(ldexp(1, power));
}

UNIT(text, reals_half_way_between_two_round_to_even)
{
    for (int i = 0; i < TEST_ROUNDS(20000); i++) {
        expect_around(i / 8.0);
        expect_around(i * 64 + 0.5);
        expect_around(i * 1000.0 + 500000005);
        expect_around(i * 0.005);
    }
}

UNIT(text, reals_of_random_bits_match_printf)
{
    test_random rng = {1};
    for (int i = 0; i < TEST_ROUNDS(100000); i++) {
        uint64_t bits = random_next(&rng);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value))
            expect_real(value);
        expect_real((double)(bits >> 11) / (double)(1 << 26) / (double)(1 << 27)); /* 0 to 1 */
        expect_real((double)(bits % 100000000) / 1000);
        expect_real((double)random_size(&rng, UINT64_MAX));
    }
}

/* ---- devices ------------------------------------------------------------------------------ */

UNIT(text, no_words_select_any_device)
{
    CHECK(qi_is_wanted(NULL, 0, "llvmpipe"));
    CHECK(qi_is_wanted("", 7, ""));
}

UNIT(text, digits_select_by_index_only)
{
    CHECK(qi_is_wanted("1", 1, "RTX 2080"));
    CHECK(!qi_is_wanted("2080", 1, "RTX 2080"));
    CHECK(qi_is_wanted("007", 7, ""));
    CHECK(!qi_is_wanted("4294967296", 0, "")); /* does not wrap around */
    CHECK(qi_is_wanted("X 2080", 0, "RTX 2080"));
}

UNIT(text, a_part_of_the_name_selects_in_any_case)
{
    CHECK(qi_is_wanted("nvidia h200", 3, "NVIDIA H200 NVL"));
    CHECK(qi_is_wanted("NVL", 3, "nvidia h200 nvl"));
    CHECK(qi_is_wanted("aab", 0, "aaab")); /* a second match starts inside the first */
    CHECK(!qi_is_wanted("h200x", 3, "NVIDIA H200"));
    CHECK(!qi_is_wanted("a", 0, ""));
    CHECK(!qi_is_wanted("-1", 1, "RTX"));
}
