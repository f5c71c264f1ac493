/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * best_fit.h - exact best fit as a subject: it takes the smallest free range that holds the aligned
 * request, and of equal ranges the lowest. It is the reference for the fragmentation that a fit can
 * reach without moving ranges.
 */
#ifndef QUIRE_BENCH_BEST_FIT_H
#define QUIRE_BENCH_BEST_FIT_H

#include "bench/subject.h"

extern const subject BEST_FIT;

#endif
