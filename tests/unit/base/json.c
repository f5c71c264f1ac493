/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * json.c - text reaches the sink complete and in order, in pieces of at most a buffer; a sink that
 * failed once is not called again. Another parser reads back exactly what the JSON writer writes.
 */
#include "src/base/json.h"

#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>

#include "src/base/text.h"
#include "tests/support/gather.h"
#include "tests/support/unit.h"

static void fill(char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        text[i] = (char)('!' + i * 7 % 90);
    text[size] = '\0';
}

static void begin_writer(qi_writer *writer)
{
    gather_anew(0);
    qi_writer_init(writer, gather, NULL);
}

static void end_writer(qi_writer *writer)
{
    (void)writer;
}

#define CASE(name) UNIT_ON(json, name, qi_writer, writer, begin_writer(writer), end_writer)

/* ---- raw text ------------------------------------------------------------------------------ */

CASE(an_empty_text_makes_no_call)
{
    qi_write_text(writer, "");
    qi_write(writer, "x", 0);
    CHECK_OK(qi_writer_finish(writer));
    CHECK_EQ(gathered.pieces, 0);
}

UNIT(json, text_of_any_length_arrives_complete)
{
    static char text[8193];
    fill(text, sizeof text - 1);
    const size_t sizes[] = {1, 1023, 1024, 1025, 2047, 2048, 2049, 8192};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        gather_anew(0);
        qi_writer writer;
        qi_writer_init(&writer, gather, NULL);
        qi_write(&writer, text, sizes[i]);
        CHECK_OK(qi_writer_finish(&writer));
        CHECK_EQ(gathered.length, sizes[i]);
        CHECK(!memcmp(gathered.text, text, sizes[i]));
        CHECK_EQ(gathered.pieces, (sizes[i] + QI_WRITER_BUFFER - 1) / QI_WRITER_BUFFER);
    }
}

CASE(small_pieces_are_gathered_in_order)
{
    static char text[3001];
    fill(text, sizeof text - 1);
    for (size_t at = 0, size = 1; at < 3000; at += size, size = size % 13 + 1)
        qi_write(writer, text + at, size < 3000 - at ? size : 3000 - at);
    CHECK_EQ(gathered.pieces, 2); /* each piece when the buffer is full */
    CHECK_OK(qi_writer_finish(writer));
    CHECK_EQ(gathered.pieces, 3);
    CHECK_STR(gathered.text, text);
}

CASE(a_finished_writer_does_not_write_twice)
{
    qi_write_text(writer, "once");
    CHECK_OK(qi_writer_finish(writer));
    CHECK_OK(qi_writer_finish(writer));
    CHECK_STR(gathered.text, "once");
    CHECK_EQ(gathered.pieces, 1);
}

/* ---- sinks that fail ----------------------------------------------------------------------- */

UNIT(json, a_sink_that_fails_at_any_piece_is_a_bad_file_and_the_last_call)
{
    static char text[5001];
    fill(text, sizeof text - 1);
    for (int refused = 1; refused <= 5; refused++) {
        gather_anew((uint64_t)refused);
        qi_writer writer;
        qi_writer_init(&writer, gather, NULL);
        qi_write_text(&writer, text);
        CHECK_EQ(writer.failed, refused < 5);
        CHECK_FAILS(qi_writer_finish(&writer), QUIRE_ERROR_BAD_FILE);
        CHECK_HAS(quire_last_error(), "the sink refused");
        CHECK_EQ(gathered.pieces, refused);
        CHECK_EQ(gathered.length, (size_t)(refused - 1) * QI_WRITER_BUFFER);
    }
}

CASE(a_failed_writer_drops_all_text)
{
    gathered.refuse = 1;
    for (int i = 0; i < 1000; i++) {
        qi_write_text(writer, "text and more text");
        qi_write_format(writer, "%d", i);
        qi_write_escaped(writer, "<&>");
    }
    CHECK_FAILS(qi_writer_finish(writer), QUIRE_ERROR_BAD_FILE);
    CHECK_FAILS(qi_writer_finish(writer), QUIRE_ERROR_BAD_FILE);
    CHECK_EQ(gathered.pieces, 1);
}

CASE(a_restart_clears_the_failure)
{
    gathered.refuse = 1;
    qi_write_text(writer, "lost");
    CHECK_FAILS(qi_writer_finish(writer), QUIRE_ERROR_BAD_FILE);
    begin_writer(writer);
    qi_write_text(writer, "kept");
    CHECK_OK(qi_writer_finish(writer));
    CHECK_STR(gathered.text, "kept");
}

/* ---- formatted and escaped ----------------------------------------------------------------- */

CASE(formats_are_those_of_printf_up_to_a_size)
{
    char text[400];
    qi_write_format(writer, "%s=%d%%;", "x", -5);
    fill(text, 255);
    qi_write_format(writer, "%s", text);
    qi_write_format(writer, "%s", "");
    CHECK_OK(qi_writer_finish(writer));
    CHECK_EQ(gathered.length, 6 + 255);
    CHECK(!strncmp(gathered.text, "x=-5%;", 6) && !strcmp(gathered.text + 6, text));
}

UNIT(json, a_format_that_is_too_long_is_cut)
{
    const size_t sizes[] = {256, 257, 399};
    for (int i = 0; i < 3; i++) {
        gather_anew(0);
        char text[400];
        qi_writer writer;
        qi_writer_init(&writer, gather, NULL);
        fill(text, sizes[i]);
        qi_write_format(&writer, "%s", text);
        CHECK_OK(qi_writer_finish(&writer));
        CHECK(gathered.length >= 255 && gathered.length <= 256);
        CHECK(!strncmp(gathered.text, text, gathered.length));
    }
}

static void expect_escaped(const char *text, const char *expected)
{
    gather_anew(0);
    qi_writer writer;
    qi_writer_init(&writer, gather, NULL);
    qi_write_escaped(&writer, text);
    qi_write_text(&writer, ".");
    CHECK_OK(qi_writer_finish(&writer));
    CHECK_EQ(gathered.text[gathered.length - 1], '.');
    gathered.text[gathered.length - 1] = '\0';
    CHECK_STR(gathered.text, expected);
}

UNIT(json, xml_markup_characters_become_entities)
{
    expect_escaped("", "");
    expect_escaped("plain text", "plain text");
    expect_escaped("<a b=\"c\" d='e'>&amp;", "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;amp;");
}

UNIT(json, control_characters_that_xml_forbids_are_replaced)
{
    for (char c = 1; c < 0x20; c++) {
        char text[] = {'a', c, 'b', '\0'};
        bool has_place = c == '\t' || c == '\n' || c == '\r';
        expect_escaped(text, has_place ? text
                                       : "a\xef\xbf\xbd"
                                         "b");
    }
    expect_escaped("\xef\xbf\xbe|\xef\xbf\xbf", "\xef\xbf\xbd|\xef\xbf\xbd");
    expect_escaped(" ~\xc2\x80", " ~\xc2\x80");
}

UNIT(json, text_in_other_scripts_stays_and_ill_formed_bytes_are_replaced)
{
    expect_escaped("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    expect_escaped("\xff<\xc3", "\xef\xbf\xbd&lt;\xef\xbf\xbd");
}

static qi_json begin(void)
{
    qi_json json;
    gather_anew(0);
    qi_json_init(&json, gather, NULL);
    return json;
}

static json_t *parse_output(void)
{
    json_error_t error;
    json_t *value = json_loads(gathered.text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (!value)
        check_failed(__FILE__, __LINE__, "line %d: %s in\n%s", error.line, error.text,
                     gathered.text);
    return value;
}

/* Ends the document and compares it; frees the expected value. */
static void expect_document(qi_json *json, json_t *expected)
{
    CHECK(expected != NULL);
    CHECK_OK(qi_json_finish(json));
    json_t *value = parse_output();
    CHECK(json_equal(value, expected));
    json_decref(value);
    json_decref(expected);
}

/* ---- structure ----------------------------------------------------------------------------- */

UNIT(json, a_value_alone_is_a_document_with_a_line_end)
{
    qi_json json = begin();
    qi_json_bool(&json, NULL, true);
    CHECK_OK(qi_json_finish(&json));
    CHECK_STR(gathered.text, "true\n");
}

UNIT(json, commas_stand_between_values_at_every_depth)
{
    qi_json json = begin();
    qi_json_object(&json, NULL);
    qi_json_number(&json, "first", 1);
    qi_json_array(&json, "list");
    qi_json_text(&json, NULL, "a");
    qi_json_object(&json, NULL);
    qi_json_null(&json, "n");
    qi_json_bool(&json, "f", false);
    qi_json_end_object(&json);
    qi_json_number(&json, NULL, 2);
    qi_json_end_array(&json);
    qi_json_real(&json, "half", 0.5);
    qi_json_end_object(&json);
    expect_document(&json, json_pack("{s:i, s:[s, {s:n, s:b}, i], s:f}", "first", 1, "list", "a",
                                     "n", "f", 0, 2, "half", 0.5));
}

UNIT(json, nesting_goes_31_deep_and_back)
{
    qi_json json = begin();
    for (int i = 0; i < 31; i++)
        qi_json_array(&json, NULL);
    qi_json_number(&json, NULL, 7);
    for (int i = 0; i < 31; i++) {
        qi_json_end_array(&json);
        if (i < 30)
            qi_json_number(&json, NULL, (uint64_t)i);
    }
    CHECK_OK(qi_json_finish(&json));
    json_t *value = parse_output(), *inner = value;
    for (int depth = 1; depth < 31; depth++) {
        CHECK_EQ(json_array_size(inner), 2);
        CHECK_EQ(json_integer_value(json_array_get(inner, 1)), 30 - depth);
        inner = json_array_get(inner, 0);
    }
    CHECK_EQ(json_array_size(inner), 1);
    CHECK_EQ(json_integer_value(json_array_get(inner, 0)), 7);
    json_decref(value);
}

/* ---- numbers ------------------------------------------------------------------------------- */

UNIT(json, integers_are_exact_to_the_last_bit)
{
    qi_json json = begin();
    qi_json_array(&json, NULL);
    qi_json_number(&json, NULL, 0);
    /* the first integer that a double cannot represent */
    qi_json_number(&json, NULL, (UINT64_C(1) << 53) + 1);
    qi_json_number(&json, NULL, INT64_MAX);
    qi_json_end_array(&json);
    expect_document(&json, json_pack("[I,I,I]", (json_int_t)0, ((json_int_t)1 << 53) + 1,
                                     (json_int_t)INT64_MAX));
    json = begin();
    qi_json_number(&json, NULL, UINT64_MAX); /* jansson's integers end below this value */
    CHECK_OK(qi_json_finish(&json));
    CHECK_STR(gathered.text, "18446744073709551615\n");
}

UNIT(json, reals_are_read_back_to_six_digits)
{
    const double reals[] = {0.0, 1.0, -1.25, 0.1, 123456.0, 1234567.0, 1e300, -1e-300, 5e-324};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        qi_json json = begin();
        qi_json_real(&json, NULL, reals[i]);
        CHECK_OK(qi_json_finish(&json));
        json_t *value = parse_output();
        CHECK(json_is_number(value));
        CHECK(fabs(json_number_value(value) - reals[i]) <= 5e-6 * fabs(reals[i]));
        json_decref(value);
    }
}

UNIT(json, numbers_that_are_not_finite_are_null)
{
    qi_json json = begin();
    qi_json_object(&json, NULL);
    qi_json_real(&json, "a", (double)NAN);
    qi_json_real(&json, "b", (double)INFINITY);
    qi_json_real(&json, "c", -(double)INFINITY);
    qi_json_end_object(&json);
    expect_document(&json, json_pack("{s:n,s:n,s:n}", "a", "b", "c"));
}

/* A program in a German locale must not write 0,5. Checks this only if such a locale is installed.
   */
UNIT(json, the_locale_of_the_program_does_not_matter)
{
    const char *const names[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "fr_FR", "nl_NL.UTF-8"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!setlocale(LC_NUMERIC, names[i]))
            continue;
        qi_json json = begin();
        qi_json_real(&json, NULL, 0.5);
        CHECK_OK(qi_json_finish(&json));
        CHECK_STR(gathered.text, "0.5\n");
    }
}

/* ---- text ---------------------------------------------------------------------------------- */

static void expect_text(const char *text, const char *expected)
{
    qi_json json = begin();
    qi_json_object(&json, NULL);
    qi_json_text(&json, "value", text);
    qi_json_end_object(&json);
    expect_document(&json, json_pack("{s:s}", "value", expected));
}

UNIT(json, every_ascii_character_survives_alone_and_between_others)
{
    for (int c = 1; c < 0x80; c++) {
        char alone[] = {(char)c, '\0'}, between[] = {'"', (char)c, '\\', '\0'};
        expect_text(alone, alone);
        expect_text(between, between);
    }
}

/* The output may be shown on a terminal. */
UNIT(json, control_characters_are_escaped)
{
    for (uint32_t c = 1; c < 0xa0; c++) {
        char text[5] = {0};
        if (c >= 0x20 && c < 0x7f)
            continue;
        qi_put_code_point(c, text);
        expect_text(text, text);
        CHECK(!strstr(gathered.text, text) ||
              c == '\n'); /* the document ends with its own line end */
        CHECK(strchr(gathered.text, '\\'));
    }
}

UNIT(json, the_limits_of_utf_8_survive)
{
    const uint32_t borders[] = {0x80,   0x7ff,  0x800,   0xd7ff, 0xe000,
                                0xfffd, 0xffff, 0x10000, 0x2028, 0x10ffff};
    for (size_t i = 0; i < sizeof borders / sizeof *borders; i++) {
        char text[5] = {0};
        qi_put_code_point(borders[i], text);
        expect_text(text, text);
    }
}

UNIT(json, ill_formed_bytes_become_replacements)
{
    expect_text("a\xff"
                "b\xc3",
                "a\xef\xbf\xbd"
                "b\xef\xbf\xbd");
    expect_text("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

UNIT(json, a_null_text_is_null_and_an_empty_one_is_not)
{
    qi_json json = begin();
    qi_json_array(&json, NULL);
    qi_json_text(&json, NULL, NULL);
    qi_json_text(&json, NULL, "");
    qi_json_end_array(&json);
    expect_document(&json, json_pack("[n,s]", ""));
}

UNIT(json, keys_are_escaped_like_texts)
{
    qi_json json = begin();
    qi_json_object(&json, NULL);
    qi_json_number(&json, "say \"hi\"\n\x01", 1);
    qi_json_array(&json, "\\");
    qi_json_end_array(&json);
    qi_json_end_object(&json);
    expect_document(&json, json_pack("{s:i,s:[]}", "say \"hi\"\n\x01", 1, "\\"));
}

UNIT(json, text_longer_than_the_buffer_survives)
{
    static char text[10001];
    for (size_t i = 0; i < sizeof text - 1; i++)
        text[i] = (char)('"' + i % 80);
    expect_text(text, text);
    CHECK(gathered.pieces > 9);
}

/* ---- sinks that fail ----------------------------------------------------------------------- */

static quire_result write_long_document(void)
{
    qi_json json;
    qi_json_init(&json, gather, NULL);
    qi_json_array(&json, NULL);
    for (uint64_t i = 0; i < 1000; i++)
        qi_json_number(&json, NULL, i * 1000000007);
    qi_json_end_array(&json);
    return qi_json_finish(&json);
}

UNIT(json, a_sink_that_fails_at_any_piece_is_a_bad_file)
{
    gather_anew(0);
    CHECK_OK(write_long_document());
    uint64_t pieces = gathered.pieces;
    CHECK(pieces > 5);
    for (uint64_t refused = 1; refused <= pieces; refused++) {
        gather_anew(refused);
        CHECK_FAILS(write_long_document(), QUIRE_ERROR_BAD_FILE);
        CHECK_EQ(gathered.pieces, refused);
    }
    gather_anew(pieces + 1);
    CHECK_OK(write_long_document());
}
