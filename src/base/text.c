/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * text.c - decodes and encodes UTF-8, formats doubles with exact decimal arithmetic, and compares
 * a text with the index or the name of a device.
 */
#include "src/base/text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- UTF-8 -------------------------------------------------------------------------------- */

/* Number of bytes after a lead byte, and the smallest code point of that length; -1 if invalid. */
static int lead_length(unsigned char lead, uint32_t *bits, uint32_t *lowest)
{
    if (lead < 0x80) {
        *bits = lead;
        *lowest = 0;
        return 0;
    }
    if ((lead & 0xe0) == 0xc0) {
        *bits = lead & 0x1f;
        *lowest = 0x80;
        return 1;
    }
    if ((lead & 0xf0) == 0xe0) {
        *bits = lead & 0x0f;
        *lowest = 0x800;
        return 2;
    }
    if ((lead & 0xf8) == 0xf0) {
        *bits = lead & 0x07;
        *lowest = 0x10000;
        return 3;
    }
    return -1;
}

uint32_t qi_next_code_point(const char **text)
{
    const unsigned char *at = (const unsigned char *)*text;
    uint32_t code_point = 0, lowest = 0;
    int more = lead_length(*at, &code_point, &lowest);
    if (!*at)
        return 0;
    (*text)++;
    if (more < 0)
        return QI_REPLACEMENT;
    for (int i = 1; i <= more; i++) {
        if ((at[i] & 0xc0) != 0x80) /* true at the terminator too: never read past it */
            return QI_REPLACEMENT;
        code_point = code_point << 6 | (at[i] & 0x3f);
    }
    if (code_point < lowest || code_point > 0x10ffff ||
        (code_point >= 0xd800 && code_point < 0xe000))
        return QI_REPLACEMENT;
    *text += more;
    return code_point;
}

uint32_t qi_put_code_point(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* Terminals also obey C1, whose characters are two bytes each in UTF-8. */
static bool is_control(uint32_t code_point)
{
    return code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0);
}

/* A replacement is never longer than the bytes that it replaces. */
void qi_make_printable(char *text)
{
    char *out = text;
    for (const char *at = text; *at;) {
        const char *begin = at;
        uint32_t c = qi_next_code_point(&at);
        /* an invalid byte decodes to U+FFFD and is one byte long; U+FFFD itself has three */
        bool is_text = c != QI_REPLACEMENT || at > begin + 1;
        if (is_control(c) || !is_text)
            *out++ = '?';
        else
            while (begin < at)
                *out++ = *begin++;
    }
    *out = '\0';
}

/* ---- real numbers ------------------------------------------------------------------------- */

/*
 * Every double is an integer times a power of two and therefore has a finite decimal expansion. The
 * code computes it exactly, in limbs of nine digits, and rounds once. The longest expansion has 767
 * significant digits.
 */
enum { LIMB = 1000000000, LIMB_DIGITS = 9, MAX_LIMBS = 86, MAX_DIGITS = 774, SIGNIFICANT = 6 };

/* Digits, the first one not 0, and the position of the decimal point among them. */
typedef struct decimal {
    bool negative;
    int count; /* 0 means the number 0 */
    int point; /* may be negative, or above `count` */
    char digits[MAX_DIGITS];
} decimal;

static int multiply(uint32_t *limbs, int count, uint32_t factor)
{
    uint64_t carry = 0;
    for (int i = 0; i < count; i++) {
        carry += (uint64_t)limbs[i] * factor;
        limbs[i] = (uint32_t)(carry % LIMB);
        carry /= LIMB;
    }
    if (carry)
        limbs[count++] = (uint32_t)carry;
    return count;
}

/* Multiplies by a power of 2 or 5, in factors that fit 32 bits. */
static int multiply_power(uint32_t *limbs, int count, uint32_t base, int power)
{
    while (power > 0) {
        uint32_t factor = 1;
        for (int step = 0; step < 12 && power > 0; step++, power--)
            factor *= base;
        count = multiply(limbs, count, factor);
    }
    return count;
}

static void put_digits(decimal *d, const uint32_t *limbs, int count)
{
    for (int i = count - 1; i >= 0; i--) {
        for (uint32_t unit = LIMB / 10; unit; unit /= 10) {
            char digit = (char)('0' + limbs[i] / unit % 10);
            if (d->count || digit != '0')
                d->digits[d->count++] = digit;
        }
    }
}

/* Computes every digit of the number; m * 2^-e is m * 5^e / 10^e. */
static void write_out(decimal *d, double value)
{
    uint32_t limbs[MAX_LIMBS];
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
    int exponent = (int)(bits >> 52 & 0x7ff);
    mantissa |= exponent ? UINT64_C(1) << 52 : 0;
    exponent = (exponent ? exponent : 1) - 1075;
    for (; mantissa && !(mantissa & 1) && exponent < 0; exponent++)
        mantissa >>= 1;
    limbs[0] = (uint32_t)(mantissa % LIMB);
    limbs[1] = (uint32_t)(mantissa / LIMB);
    int below = exponent < 0 ? -exponent : 0;
    int count = multiply_power(limbs, 2, below ? 5 : 2, below ? below : exponent);
    d->negative = bits >> 63;
    d->count = 0;
    put_digits(d, limbs, count);
    d->point = d->count - below;
}

/* Whether rounding to `keep` digits rounds up; a half rounds to an even digit. */
static bool rounds_up(const decimal *d, int keep)
{
    if (keep < 0 || d->digits[keep] != '5')
        return keep >= 0 && d->digits[keep] > '5';
    for (int i = keep + 1; i < d->count; i++)
        if (d->digits[i] != '0')
            return true;
    return keep > 0 && (d->digits[keep - 1] - '0') % 2;
}

/* Rounds to `keep` digits and removes trailing zeros. */
static void round_to(decimal *d, int keep)
{
    if (keep < d->count) {
        bool up = rounds_up(d, keep);
        d->count = keep > 0 ? keep : 0;
        while (up && d->count && d->digits[d->count - 1] == '9')
            d->count--;
        if (up && d->count) {
            d->digits[d->count - 1]++;
        } else if (up) { /* 9.99 becomes 10, and 0.007 to two decimals 0.01 */
            d->digits[d->count++] = '1';
            d->point++;
        }
    }
    while (d->count && d->digits[d->count - 1] == '0')
        d->count--;
}

/* The digit at a position; positions outside the digits hold zeros. */
static char digit_at(const decimal *d, int place)
{
    return place >= 0 && place < d->count ? d->digits[place] : '0';
}

static char *put_plain(char *out, const decimal *d, int decimals)
{
    for (int place = d->point < 1 ? d->point - 1 : 0; place < d->point; place++)
        *out++ = digit_at(d, place);
    if (decimals > 0)
        *out++ = '.';
    for (int place = d->point; place < d->point + decimals; place++)
        *out++ = digit_at(d, place);
    return out;
}

/* Writes d.ddde+XX: one digit before the point, an exponent with a sign and at least two digits. */
static char *put_scientific(char *out, const decimal *d)
{
    decimal first = *d;
    first.point = 1;
    out = put_plain(out, &first, d->count - 1);
    int power = d->point - 1, size = power < 0 ? -power : power;
    *out++ = 'e';
    *out++ = power < 0 ? '-' : '+';
    if (size >= 100)
        *out++ = (char)('0' + size / 100);
    *out++ = (char)('0' + size / 10 % 10);
    *out++ = (char)('0' + size % 10);
    return out;
}

static qi_real_text write_general(decimal *d)
{
    qi_real_text out;
    char *end = out.text;
    round_to(d, SIGNIFICANT);
    if (d->negative)
        *end++ = '-';
    if (!d->count)
        *end++ = '0';
    else if (d->point < -3 || d->point > SIGNIFICANT)
        end = put_scientific(end, d);
    else
        end = put_plain(end, d, d->count - d->point);
    *end = '\0';
    return out;
}

qi_real_text qi_real(double value)
{
    decimal d;
    write_out(&d, value);
    return write_general(&d);
}

qi_real_text qi_real_2(double value)
{
    enum { DECIMALS = 2, MAX_BEFORE_POINT = 20 };
    decimal d;
    write_out(&d, value);
    if (d.point > MAX_BEFORE_POINT)
        return write_general(&d);
    qi_real_text out;
    char *end = out.text;
    round_to(&d, d.point + DECIMALS);
    if (d.negative)
        *end++ = '-';
    if (!d.count)
        d.point = 0;
    end = put_plain(end, &d, DECIMALS);
    *end = '\0';
    return out;
}

/* ---- devices ------------------------------------------------------------------------------ */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Whether a name contains a part, ignoring case. */
static bool has_part(const char *name, const char *part)
{
    for (; *name; name++) {
        size_t i = 0;
        while (part[i] && lower(name[i]) == lower(part[i]))
            i++;
        if (!part[i])
            return true;
    }
    return false;
}

static bool is_number(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text);
}

bool qi_is_wanted(const char *words, uint32_t index, const char *name)
{
    if (!words || !*words)
        return true;
    return is_number(words) ? strtoul(words, NULL, 10) == index : has_part(name, words);
}
