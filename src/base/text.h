/*
 * text.h - what JSON, SVG and HTML are put together of: text that came from outside, read with
 * care, and real numbers, which printf would write as the program's locale wants them.
 */
#ifndef QUIRE_SRC_BASE_TEXT_H
#define QUIRE_SRC_BASE_TEXT_H

#include <stdint.h>

#define QI_REPLACEMENT UINT32_C(0xfffd) /* stands for bytes that are not UTF-8 */

/*
 * The code point at *text, and *text moved behind it; 0 at the end, QI_REPLACEMENT (and one byte
 * on) for anything that is not well-formed UTF-8: overlong forms, surrogates, stray and missing
 * bytes.
 */
uint32_t qi_next_code_point(const char **text);

/* Writes a code point as UTF-8 into 4 bytes; returns how many it took. */
uint32_t qi_put_code_point(uint32_t code_point, char out[4]);

/*
 * A finite number with a point, in every locale: qi_real to six significant digits, as printf's
 * %.6g writes it, qi_real_2 to two decimals, as %.2f does (from 1e20 on as qi_real). Use as
 * qi_real(x).text within one expression.
 */
typedef struct qi_real_text {
    char text[32];
} qi_real_text;

qi_real_text qi_real(double value);
qi_real_text qi_real_2(double value);

#endif
