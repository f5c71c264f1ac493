/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * defer.h - lets a small space of the segregated fit defer its frees, as a large one does.
 */
#ifndef QUIRE_TESTS_SUPPORT_DEFER_H
#define QUIRE_TESTS_SUPPORT_DEFER_H

#include "src/space/segregated/segregated.h"

/* Frees are deferred while so many nodes are in use; UINT32_MAX: never. Call before the first. */
static inline void defer_frees(quire_space *space, uint32_t from)
{
    qi_segregated *s = qi_segregated_of(space);
    s->defer_from = from;
    qi_segregated_choose_free(s);
}

#endif
