/*
 * best_fit.h - exact best fit as a subject: the smallest free range that holds the request once
 * aligned, the lowest of equals. The reference for what a fit can reach without moving anything.
 */
#ifndef QUIRE_BENCH_BEST_FIT_H
#define QUIRE_BENCH_BEST_FIT_H

#include "bench/subject.h"

extern const subject BEST_FIT;

#endif
