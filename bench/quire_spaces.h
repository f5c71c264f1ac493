/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire_spaces.h - spaces of quire as subjects, one per fit and option.
 */
#ifndef QUIRE_BENCH_QUIRE_SPACES_H
#define QUIRE_BENCH_QUIRE_SPACES_H

#include "bench/subject.h"

extern const subject QUIRE_SPACES[];
extern const size_t QUIRE_SPACE_COUNT;

#endif
