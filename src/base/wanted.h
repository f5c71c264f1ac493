/*
 * wanted.h - which of several devices a caller's words mean.
 */
#ifndef QUIRE_SRC_BASE_WANTED_H
#define QUIRE_SRC_BASE_WANTED_H

#include <stdbool.h>
#include <stdint.h>

/* Its index, in digits, or a part of its name, whatever the case; NULL or "": any device. */
bool qi_is_wanted(const char *words, uint32_t index, const char *name);

#endif
