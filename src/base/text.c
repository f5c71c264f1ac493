/*
 * text.c - see text.h.
 */
#include "src/base/text.h"

/* How many bytes follow a lead byte, and the least code point that needs them; -1: no lead byte. */
static int lead_length(unsigned char lead, uint32_t *bits, uint32_t *least)
{
    if (lead < 0x80) {
        *bits = lead;
        *least = 0;
        return 0;
    }
    if ((lead & 0xe0) == 0xc0) {
        *bits = lead & 0x1f;
        *least = 0x80;
        return 1;
    }
    if ((lead & 0xf0) == 0xe0) {
        *bits = lead & 0x0f;
        *least = 0x800;
        return 2;
    }
    if ((lead & 0xf8) == 0xf0) {
        *bits = lead & 0x07;
        *least = 0x10000;
        return 3;
    }
    return -1;
}

uint32_t qi_next_code_point(const char **text)
{
    const unsigned char *at = (const unsigned char *)*text;
    uint32_t code_point = 0, least = 0;
    int more = lead_length(*at, &code_point, &least);
    if (!*at)
        return 0;
    (*text)++;
    if (more < 0)
        return QI_REPLACEMENT;
    for (int i = 1; i <= more; i++) {
        if ((at[i] & 0xc0) != 0x80) /* also true of the end: nothing behind it is read */
            return QI_REPLACEMENT;
        code_point = code_point << 6 | (at[i] & 0x3f);
    }
    if (code_point < least || code_point > 0x10ffff ||
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
