/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * classes.h - size classes of the segregated fit: arithmetic on sizes in granules, no state.
 *
 * A class is a floating-point number with 5 bits of mantissa: the sizes of one class differ by at
 * most 3 %. The fraction is the next 8 bits of the mantissa; it orders the sizes within a class. 32
 * is added to a size first, so that each size up to 32 has its own class and no class below them is
 * unused.
 *
 *   size of a free range: class and fraction rounded down
 *   size of a request:    class and fraction rounded up
 *
 * A free range of the request's class is therefore large enough if its fraction is not below that
 * of the request, and every free range of a higher class is large enough.
 *
 * The processor's conversion to double computes exponent and mantissa without a branch or a
 * variable shift. It is exact: a double has 53 bits, a size 32.
 */
#ifndef QUIRE_SRC_SPACE_SEGREGATED_CLASSES_H
#define QUIRE_SRC_SPACE_SEGREGATED_CLASSES_H

#include <float.h>
#include <stdint.h>
#include <string.h>

_Static_assert(FLT_RADIX == 2 && DBL_MANT_DIG == 53 && sizeof(double) == 8,
               "classes are taken from the bits of a binary64");

enum {
    QI_MANTISSA_BITS = 5, /* 32 classes per power of two; 4 and 6 measured no better */
    QI_FRACTION_BITS = 8,
    QI_CLASS_LIMIT = 896 /* above the class of 2^32 - 1; a multiple of 64 */
};

typedef struct qi_class {
    uint32_t index;
    uint32_t fraction;
} qi_class;

#define QI_CLASS_DROPPED (52 - QI_MANTISSA_BITS - QI_FRACTION_BITS)
#define QI_CLASS_ORIGIN ((UINT64_C(1023) + QI_MANTISSA_BITS) << 52) /* the bits of 32.0 */

/* Exponent and mantissa of size + 32, relative to those of 32. */
static inline uint64_t qi_class_bits(uint32_t size)
{
    double value = (double)((int64_t)size + (1 << QI_MANTISSA_BITS));
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits - QI_CLASS_ORIGIN;
}

static inline qi_class qi_class_of_bits(uint64_t bits)
{
    uint32_t kept = (uint32_t)(bits >> QI_CLASS_DROPPED);
    return (qi_class){kept >> QI_FRACTION_BITS, kept & ((1u << QI_FRACTION_BITS) - 1)};
}

static inline qi_class qi_class_of_range(uint32_t size)
{
    return qi_class_of_bits(qi_class_bits(size));
}

static inline qi_class qi_class_of_request(uint32_t size)
{
    return qi_class_of_bits(qi_class_bits(size) + (UINT64_C(1) << QI_CLASS_DROPPED) - 1);
}

#endif
