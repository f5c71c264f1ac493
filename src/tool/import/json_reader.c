/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * json_reader.c - a pull reader of JSON (see json_reader.h).
 */
#include "src/tool/import/json_reader.h"

#include <string.h>

#include "src/base/text.h"

void json_begin(json_reader *r, import_source *source)
{
    r->source = source;
    r->depth = 0;
    r->text[0] = '\0';
    r->length = 0;
    r->is_cut = false;
}

bool json_is_good(const json_reader *r)
{
    return !r->source->sentence[0];
}

/* Skips white space. Returns the next byte, or EOF at the end and after a refusal. */
static int next_sign(json_reader *r)
{
    if (!json_is_good(r))
        return EOF;
    int c;
    while ((c = import_peek(r->source)) == ' ' || c == '\t' || c == '\n' || c == '\r')
        import_next(r->source);
    return c;
}

/* Refuses what is there instead of `wanted`. */
static bool refuse_next(json_reader *r, const char *wanted)
{
    int c = import_peek(r->source);
    if (c == EOF)
        return import_refuse(r->source, "the file ends where %s must be", wanted);
    return import_refuse(r->source, "there must be %s, not '%c'", wanted, c);
}

char json_peek(json_reader *r)
{
    int c = next_sign(r);
    if (c == '-' || (c >= '0' && c <= '9'))
        return '0';
    return c == EOF || !strchr("{[\"tfn", c) ? '\0' : (char)c;
}

/* ---- objects and arrays ------------------------------------------------------------------- */

bool json_enter(json_reader *r, char bracket)
{
    if (next_sign(r) != bracket)
        return refuse_next(r, bracket == '{' ? "an object" : "an array");
    if (r->depth == JSON_MOST_DEPTH)
        return import_refuse(r->source, "values are nested more than %d deep", JSON_MOST_DEPTH);
    r->has_items[r->depth++] = false;
    import_next(r->source);
    return true;
}

/* Takes the comma before the next item, or the end. Returns whether there is an item. */
static bool next_item(json_reader *r, char end, const char *wanted)
{
    int c = next_sign(r);
    if (!json_is_good(r))
        return false;
    if (c == end) {
        r->depth--;
        import_next(r->source);
        return false;
    }
    bool *has_items = &r->has_items[r->depth - 1];
    if (*has_items && c != ',')
        return refuse_next(r, wanted);
    if (*has_items)
        import_next(r->source);
    *has_items = true;
    return true;
}

bool json_next_element(json_reader *r)
{
    return next_item(r, ']', "',' or ']'");
}

bool json_next_member(json_reader *r)
{
    if (!next_item(r, '}', "',' or '}'"))
        return false;
    if (next_sign(r) != '"')
        return refuse_next(r, "a key");
    if (!json_read_text(r))
        return false;
    if (next_sign(r) != ':')
        return refuse_next(r, "':'");
    import_next(r->source);
    return true;
}

/* ---- texts -------------------------------------------------------------------------------- */

static void append(json_reader *r, const char *bytes, size_t size)
{
    r->is_cut |= r->length + size >= sizeof r->text;
    if (r->is_cut)
        return;
    memcpy(r->text + r->length, bytes, size);
    r->length += size;
    r->text[r->length] = '\0';
}

static void start_text(json_reader *r)
{
    r->length = 0;
    r->text[0] = '\0';
    r->is_cut = false;
}

static bool read_unit(json_reader *r, uint32_t *unit)
{
    *unit = 0;
    for (int i = 0; i < 4; i++) {
        static const char digits[] = "0123456789abcdef";
        int c = import_peek(r->source);
        const char *found = c > 0 ? strchr(digits, c >= 'A' && c <= 'F' ? c + 'a' - 'A' : c) : NULL;
        if (!found)
            return refuse_next(r, "a hexadecimal digit");
        *unit = *unit * 16 + (uint32_t)(found - digits);
        import_next(r->source);
    }
    return true;
}

static void append_code_point(json_reader *r, uint32_t code_point)
{
    char bytes[4];
    append(r, bytes, qi_put_code_point(code_point, bytes));
}

/* A high surrogate waits in *high for the low one behind it. One that waits in vain becomes U+FFFD,
   as do a lone low one and the character 0, which would end the text. */
static void end_high(json_reader *r, uint32_t *high)
{
    if (*high)
        append_code_point(r, QI_REPLACEMENT);
    *high = 0;
}

static void append_unit(json_reader *r, uint32_t unit, uint32_t *high)
{
    const bool is_low = unit >= 0xdc00 && unit < 0xe000;
    if (is_low && *high) {
        append_code_point(r, 0x10000 + ((*high - 0xd800) << 10) + (unit - 0xdc00));
        *high = 0;
        return;
    }
    end_high(r, high);
    if (unit >= 0xd800 && unit < 0xdc00)
        *high = unit;
    else
        append_code_point(r, is_low || !unit ? QI_REPLACEMENT : unit);
}

/* Reads what follows a backslash. */
static bool read_escape(json_reader *r, uint32_t *high)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const int c = import_peek(r->source);
    if (c == 'u') {
        uint32_t unit;
        import_next(r->source);
        if (!read_unit(r, &unit))
            return false;
        append_unit(r, unit, high);
        return true;
    }
    const char *found = c > 0 ? strchr(names, c) : NULL;
    if (!found)
        return refuse_next(r, "one of \"\\/bfnrtu");
    end_high(r, high);
    append(r, &values[found - names], 1);
    import_next(r->source);
    return true;
}

bool json_read_text(json_reader *r)
{
    import_source *s = r->source;
    uint32_t high = 0;
    start_text(r);
    if (next_sign(r) != '"')
        return refuse_next(r, "a string");
    import_next(s);
    for (int c; (c = import_peek(s)) != '"';) {
        if (c == EOF)
            return import_refuse(s, "the file ends in a string");
        if (c < ' ')
            return import_refuse(s, "a string contains the control character %d", c);
        import_next(s);
        if (c == '\\') {
            if (!read_escape(r, &high))
                return false;
            continue;
        }
        end_high(r, &high);
        append(r, &(char){(char)c}, 1);
    }
    end_high(r, &high);
    import_next(s);
    return true;
}

/* ---- numbers ------------------------------------------------------------------------------ */

/* Appends one or more digits. */
static bool read_digits(json_reader *r)
{
    int c = import_peek(r->source);
    if (c < '0' || c > '9')
        return refuse_next(r, "a digit");
    for (; c >= '0' && c <= '9'; c = import_peek(r->source))
        append(r, &(char){(char)import_next(r->source)}, 1);
    return true;
}

/* Appends the next byte if it is one of two. */
static bool take(json_reader *r, int one, int other)
{
    const int c = import_peek(r->source);
    if (c != one && c != other)
        return false;
    append(r, &(char){(char)import_next(r->source)}, 1);
    return true;
}

bool json_read_number(json_reader *r)
{
    start_text(r);
    if (json_peek(r) != '0')
        return refuse_next(r, "a number");
    take(r, '-', '-');
    if (take(r, '0', '0')) {
        const int c = import_peek(r->source);
        if (c >= '0' && c <= '9')
            return import_refuse(r->source, "a number begins with 0");
    } else if (!read_digits(r)) {
        return false;
    }
    if (take(r, '.', '.') && !read_digits(r))
        return false;
    if (take(r, 'e', 'E')) {
        take(r, '+', '-');
        return read_digits(r);
    }
    return true;
}

bool json_to_integer(const json_reader *r, json_integer *integer)
{
    const char *c = r->text;
    *integer = (json_integer){.is_negative = *c == '-'};
    c += integer->is_negative;
    for (; *c >= '0' && *c <= '9'; c++) {
        const uint64_t digit = (uint64_t)(*c - '0');
        if (integer->magnitude > (UINT64_MAX - digit) / 10)
            return false;
        integer->magnitude = integer->magnitude * 10 + digit;
    }
    return !*c && !r->is_cut;
}

bool json_read_integer(json_reader *r, uint64_t *integer)
{
    json_integer value;
    const int c = next_sign(r);
    const uint64_t column = r->source->column;
    if (!json_read_number(r))
        return false;
    *integer = 0;
    if (c == '-' || !json_to_integer(r, &value)) {
        r->source->column = column;
        return import_refuse(r->source, "the number must be an integer from 0 to 2^64 - 1");
    }
    *integer = value.magnitude;
    return true;
}

/* ---- values ------------------------------------------------------------------------------- */

static bool skip_word(json_reader *r, const char *word)
{
    for (const char *c = word; *c; c++, import_next(r->source))
        if (import_peek(r->source) != *c)
            return refuse_next(r, word);
    return true;
}

/* The depth of the reader bounds the recursion. */
bool json_skip(json_reader *r)
{
    switch (json_peek(r)) {
    case '{':
        if (!json_enter(r, '{'))
            return false;
        while (json_next_member(r) && json_skip(r))
            ;
        return json_is_good(r);
    case '[':
        if (!json_enter(r, '['))
            return false;
        while (json_next_element(r) && json_skip(r))
            ;
        return json_is_good(r);
    case '"':
        return json_read_text(r);
    case '0':
        return json_read_number(r);
    case 't':
        return skip_word(r, "true");
    case 'f':
        return skip_word(r, "false");
    case 'n':
        return skip_word(r, "null");
    default:
        return refuse_next(r, "a value");
    }
}

bool json_end(json_reader *r)
{
    const int c = next_sign(r);
    return json_is_good(r) && (c == EOF || refuse_next(r, "the end of the file"));
}
