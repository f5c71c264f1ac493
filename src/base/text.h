/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * text.h - text primitives of lines, JSON, SVG and HTML: UTF-8 from outside, which may be
 * malformed, and real numbers independent of the locale, unlike printf; and which device a text of
 * the caller names.
 */
#ifndef QUIRE_SRC_BASE_TEXT_H
#define QUIRE_SRC_BASE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#define QI_REPLACEMENT UINT32_C(0xfffd) /* replaces bytes that are not UTF-8 */

/*
 * Returns the code point at *text and advances *text past it; returns 0 at the end. For malformed
 * UTF-8 (overlong forms, surrogates, stray or missing bytes) returns QI_REPLACEMENT and advances by
 * one byte.
 */
uint32_t qi_next_code_point(const char **text);

/* Writes a code point as UTF-8; returns the number of bytes, 1 to 4. */
uint32_t qi_put_code_point(uint32_t code_point, char out[4]);

/* Returns a code point for a label of a trace: '_' for a comma, a quote and a line end, which the
   readers of traces refuse. */
static inline uint32_t qi_label_code_point(uint32_t code_point)
{
    bool has_meaning =
        code_point == ',' || code_point == '"' || code_point == '\r' || code_point == '\n';
    return has_meaning ? '_' : code_point;
}

/*
 * Replaces control characters (C0, DEL and C1) and bytes that are not UTF-8 with '?', in place: a
 * line with a name, a path or another text from outside stays one line, and commands no terminal.
 */
void qi_make_printable(char *text);

/*
 * Formats a finite number with a decimal point in every locale: qi_real with six significant digits
 * like printf's %.6g, qi_real_2 with two decimals like %.2f (from 1e20 on like qi_real). Use
 * qi_real(x).text in one expression.
 */
typedef struct qi_real_text {
    char text[32];
} qi_real_text;

qi_real_text qi_real(double value);
qi_real_text qi_real_2(double value);

/* ---- devices ------------------------------------------------------------------------------ */

/*
 * Whether `words` selects the device: digits select its index, other text a part of its name,
 * ignoring case. Null or "" selects any device.
 */
bool qi_is_wanted(const char *words, uint32_t index, const char *name);

#endif
