/*
 * classes.h - size classes of the segregated fit: pure arithmetic on sizes in granules.
 *
 * A class is a small floating point number: below 64 granules every size has its own class, above
 * it each power of two is cut into 32 classes, so that the sizes of one class lie within 3 %. The
 * fraction is the next 8 bits below the mantissa: it orders sizes within a class.
 *
 *   size in a list:  class and fraction rounded down
 *   size asked for:  class rounded down, fraction rounded up (0 to 256)
 *
 * so that a list entry of the same class whose fraction is not below the request's is large enough,
 * and so is every entry of a higher class.
 */
#ifndef QUIRE_SRC_SPACE_CLASSES_H
#define QUIRE_SRC_SPACE_CLASSES_H

#include <stdint.h>

enum {
    QI_MANTISSA_BITS = 5,  /* 32 classes a power of two; 4 and 6 measured no better */
    QI_CLASS_LIMIT = 896,  /* above the class of 2^32 - 1, and a multiple of 64 */
    QI_FRACTION_NONE = 256 /* above every fraction: no entry of the class is known to fit */
};

typedef struct qi_class {
    uint32_t index;
    uint32_t fraction;
} qi_class;

/* How far a size is shifted right to leave the mantissa with its leading bit. */
static inline uint32_t qi_class_shift(uint32_t size)
{
    return (31u - QI_MANTISSA_BITS) - (uint32_t)__builtin_clz(size | 1u << QI_MANTISSA_BITS);
}

static inline qi_class qi_class_of_range(uint32_t size)
{
    uint32_t shift = qi_class_shift(size);
    uint32_t fraction = (uint32_t)((uint64_t)size << 8 >> shift) & 255u;
    return (qi_class){(shift << QI_MANTISSA_BITS) + (size >> shift), fraction};
}

static inline qi_class qi_class_of_request(uint32_t size)
{
    uint32_t shift = qi_class_shift(size);
    uint64_t rest = size & ((1u << shift) - 1);
    uint32_t fraction = (uint32_t)(((rest << 8) + (1u << shift) - 1) >> shift);
    return (qi_class){(shift << QI_MANTISSA_BITS) + (size >> shift), fraction};
}

#endif
