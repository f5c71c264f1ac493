/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * poison.h - marks host bytes that nobody may access, for AddressSanitizer or valgrind. The tool
 * then reports the access with its stack. Without either tool these functions do nothing.
 *
 * AddressSanitizer tracks aligned groups of eight bytes, of which the first few may be accessible:
 * a span should begin at a multiple of 8. Requests to valgrind are compiled in only if its header
 * was found (QUIRE_HAS_VALGRIND); they cost a few instructions when valgrind does not run.
 */
#ifndef QUIRE_SRC_BASE_POISON_H
#define QUIRE_SRC_BASE_POISON_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define QI_HAS_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define QI_HAS_ASAN 1
#endif

#if defined(QI_HAS_ASAN)
#include <sanitizer/asan_interface.h>
#elif defined(QUIRE_HAS_VALGRIND)
#include <valgrind/memcheck.h>
#endif

static inline void qi_poison(const void *bytes, size_t size)
{
#if defined(QI_HAS_ASAN)
    __asan_poison_memory_region(bytes, size);
#elif defined(QUIRE_HAS_VALGRIND)
    (void)VALGRIND_MAKE_MEM_NOACCESS(bytes, size);
#else
    (void)bytes;
    (void)size;
#endif
}

/* Also marks the bytes as initialized: valgrind does not see the writes of a device. */
static inline void qi_unpoison(const void *bytes, size_t size)
{
#if defined(QI_HAS_ASAN)
    __asan_unpoison_memory_region(bytes, size);
#elif defined(QUIRE_HAS_VALGRIND)
    (void)VALGRIND_MAKE_MEM_DEFINED(bytes, size);
#else
    (void)bytes;
    (void)size;
#endif
}

/* Whether a tool observes this program. */
static inline bool qi_poison_works(void)
{
#if defined(QI_HAS_ASAN)
    return true;
#elif defined(QUIRE_HAS_VALGRIND)
    return RUNNING_ON_VALGRIND != 0;
#else
    return false;
#endif
}

/* For tests: whether an access to the byte would be reported. */
static inline bool qi_is_poisoned(const void *byte)
{
#if defined(QI_HAS_ASAN)
    return __asan_address_is_poisoned(byte) != 0;
#elif defined(QUIRE_HAS_VALGRIND)
    unsigned char bits = 0;
    return VALGRIND_GET_VBITS(byte, &bits, 1) == 3; /* 3: not addressable */
#else
    (void)byte;
    return false;
#endif
}

#endif
