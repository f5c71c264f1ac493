/*
 * wanted.h - which of several devices the text of a caller selects.
 */
#ifndef QUIRE_SRC_BASE_WANTED_H
#define QUIRE_SRC_BASE_WANTED_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Whether `words` selects the device: digits select its index, other text a part of its name,
 * ignoring case. Null or "" selects any device.
 */
bool qi_is_wanted(const char *words, uint32_t index, const char *name);

#endif
