/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * import_json.c - the reader of JSON: strings, exact integers, nesting, and refusals with their
 * places.
 */
#include <string.h>

#include "src/tool/import/json_reader.h"
#include "tests/support/unit.h"

static import_source source;
static json_reader reader;

static json_reader *begin(const char *text)
{
    static FILE *file;
    if (file)
        fclose(file);
    file = tmpfile();
    CHECK(file && fwrite(text, 1, strlen(text), file) == strlen(text));
    rewind(file);
    import_begin(&source, file);
    json_begin(&reader, &source);
    return &reader;
}

static void reads_text(const char *json, const char *text)
{
    json_reader *r = begin(json);
    CHECK(json_read_text(r) && json_end(r));
    CHECK_STR(r->text, text);
    CHECK_EQ(r->length, strlen(text));
}

static void refuses(const char *json, const char *sentence)
{
    json_reader *r = begin(json);
    CHECK(!json_skip(r) || !json_end(r));
    CHECK_STR(source.sentence, sentence);
}

UNIT(import_json, strings_are_unescaped)
{
    reads_text("\"\"", "");
    reads_text(" \"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\xc3\xa9\" ",
               "a\"\\/\b\f\n\r\tA\xc3\xa9\xc3\xa9");
    reads_text("\"\\ud83d\\uDE00\"", "\xf0\x9f\x98\x80");
    reads_text("\"\\ud83d\\ud83d\\ude00\"", "\xef\xbf\xbd\xf0\x9f\x98\x80");
    reads_text("\"\\ud83d\"", "\xef\xbf\xbd");
    reads_text("\"\\ud83dx\\ud83d\\n\\ude00\\u0000\"",
               "\xef\xbf\xbdx\xef\xbf\xbd\n\xef\xbf\xbd\xef\xbf\xbd");
}

UNIT(import_json, long_strings_are_cut_at_a_character)
{
    char json[JSON_MOST_TEXT + 16];
    memset(json, 'x', sizeof json);
    json[0] = '"';
    json[JSON_MOST_TEXT] = '"';
    json[JSON_MOST_TEXT + 1] = '\0';
    json_reader *r = begin(json);
    CHECK(json_read_text(r) && !r->is_cut && r->length == JSON_MOST_TEXT - 1);
    strcpy(json + JSON_MOST_TEXT - 1, "\\u00e9\"");
    r = begin(json);
    CHECK(json_read_text(r) && json_end(r));
    CHECK(r->is_cut && r->length == JSON_MOST_TEXT - 2 && r->text[r->length - 1] == 'x');
}

UNIT(import_json, objects_and_arrays_are_walked)
{
    json_reader *r = begin("{\"a\": [1, [], {}], \"b\":true}");
    CHECK(json_peek(r) == '{' && json_enter(r, '{'));
    CHECK(json_next_member(r) && !strcmp(r->text, "a"));
    CHECK(json_peek(r) == '[' && json_enter(r, '['));
    CHECK(json_next_element(r) && json_peek(r) == '0' && json_skip(r));
    CHECK(json_next_element(r) && json_skip(r));
    CHECK(json_next_element(r) && json_skip(r));
    CHECK(!json_next_element(r) && json_is_good(r));
    CHECK(json_next_member(r) && !strcmp(r->text, "b"));
    CHECK(json_peek(r) == 't' && json_skip(r));
    CHECK(!json_next_member(r) && json_is_good(r));
    CHECK(json_peek(r) == '\0' && json_end(r));
}

UNIT(import_json, integers_are_exact)
{
    static const struct {
        const char *json;
        bool is_integer, is_negative;
        uint64_t magnitude;
    } rows[] = {
        {"0", true, false, 0},
        {"-0", true, true, 0},
        {"18446744073709551615", true, false, UINT64_MAX},
        {"-9223372036854775808", true, true, UINT64_C(1) << 63},
        {"18446744073709551616", false, false, 0},
        {"1.0", false, false, 0},
        {"1e3", false, false, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_integer integer;
        json_reader *r = begin(rows[i].json);
        CHECK(json_read_number(r) && json_end(r));
        CHECK_STR(r->text, rows[i].json);
        CHECK_EQ(json_to_integer(r, &integer), rows[i].is_integer);
        if (rows[i].is_integer)
            CHECK(integer.is_negative == rows[i].is_negative &&
                  integer.magnitude == rows[i].magnitude);
    }
    uint64_t number;
    CHECK(json_read_integer(begin(" 18446744073709551615"), &number) && number == UINT64_MAX);
    static const char *const bad[] = {" -1", " 1.5", " 18446744073709551616"};
    for (size_t i = 0; i < 3; i++) {
        CHECK(!json_read_integer(begin(bad[i]), &number));
        CHECK_STR(source.sentence, "1:2: the number must be an integer from 0 to 2^64 - 1");
    }
}

UNIT(import_json, nesting_is_bounded)
{
    char json[2 * JSON_MOST_DEPTH + 3];
    memset(json, '[', JSON_MOST_DEPTH);
    memset(json + JSON_MOST_DEPTH, ']', JSON_MOST_DEPTH);
    json[2 * JSON_MOST_DEPTH] = '\0';
    json_reader *r = begin(json);
    CHECK(json_skip(r) && json_end(r));
    json[JSON_MOST_DEPTH] = '[';
    refuses(json, "1:65: values are nested more than 64 deep");
    json[JSON_MOST_DEPTH] = '{';
    refuses(json, "1:65: values are nested more than 64 deep");
}

UNIT(import_json, mistakes_have_their_place)
{
    refuses("", "1:1: the file ends where a value must be");
    refuses("nul", "1:4: the file ends where null must be");
    refuses("NaN", "1:1: there must be a value, not 'N'");
    refuses("trye", "1:3: there must be true, not 'y'");
    refuses("falsy", "1:5: there must be false, not 'y'");
    refuses("1 2", "1:3: there must be the end of the file, not '2'");
    refuses("[1\n 2]", "2:2: there must be ',' or ']', not '2'");
    refuses("[1,]", "1:4: there must be a value, not ']'");
    refuses("{\"a\":1 1}", "1:8: there must be ',' or '}', not '1'");
    refuses("{1}", "1:2: there must be a key, not '1'");
    refuses("{\"a\" 1}", "1:6: there must be ':', not '1'");
    refuses("{\"a", "1:4: the file ends in a string");
    refuses("\"a\n\"", "1:3: a string contains the control character 10");
    refuses("\"\\x\"", "1:3: there must be one of \"\\/bfnrtu, not 'x'");
    refuses("\"\\u00g0\"", "1:6: there must be a hexadecimal digit, not 'g'");
    refuses("-a", "1:2: there must be a digit, not 'a'");
    refuses("01", "1:2: a number begins with 0");
    refuses("1.", "1:3: the file ends where a digit must be");
    refuses("1e+x", "1:4: there must be a digit, not 'x'");
    CHECK(!json_enter(begin("1"), '{'));
    CHECK_STR(source.sentence, "1:1: there must be an object, not '1'");
    CHECK(!json_enter(begin("{"), '['));
    CHECK_STR(source.sentence, "1:1: there must be an array, not '{'");
    CHECK(!json_read_text(begin("1")));
    CHECK_STR(source.sentence, "1:1: there must be a string, not '1'");
    CHECK(!json_read_number(begin("\"\"")));
    CHECK_STR(source.sentence, "1:1: there must be a number, not '\"'");
}
