/*
 * text.h - reading text that came from outside, before it is written into JSON, SVG or HTML.
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

#endif
