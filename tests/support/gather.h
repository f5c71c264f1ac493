/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * gather.h - a sink that collects the text of the library, and refuses one piece if requested.
 */
#ifndef QUIRE_TESTS_SUPPORT_GATHER_H
#define QUIRE_TESTS_SUPPORT_GATHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tests/support/check.h"

enum { GATHER_MOST = 1 << 20 };

static struct {
    char text[GATHER_MOST];
    size_t length;
    uint64_t pieces, refuse; /* counted from 1; 0: none */
} gathered;

/* Forgets the text. The sink refuses the piece with this number. */
static inline void gather_anew(uint64_t refuse)
{
    gathered.length = gathered.pieces = 0;
    gathered.text[0] = '\0';
    gathered.refuse = refuse;
}

static inline bool gather(void *user, const char *text, size_t size)
{
    (void)user;
    CHECK(!gathered.refuse || gathered.pieces < gathered.refuse); /* no call after a failure */
    if (++gathered.pieces == gathered.refuse)
        return false;
    CHECK(size > 0 && gathered.length + size < sizeof gathered.text);
    memcpy(gathered.text + gathered.length, text, size);
    gathered.length += size;
    gathered.text[gathered.length] = '\0';
    return true;
}

#endif
