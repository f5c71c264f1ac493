/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * plan_stubs.c - replaces errors, host memory and qsort in the proofs of plans: no messages, host
 * memory that never runs out, and a sort whose steps do not depend on the values. For CBMC only.
 */
#include <stdlib.h>

#include "src/base/host_memory.h"
#include "src/base/result.h"

bool plan_must_succeed;

/* A path on which the library fails ends here, so that those that go on have few values. */
static quire_result fail(quire_result code)
{
    __CPROVER_assert(!plan_must_succeed, "what the definition accepts does not fail");
    __CPROVER_assume(0);
    return code;
}

quire_result qi_fail(quire_result code, const char *sentence)
{
    (void)sentence;
    return fail(code);
}

quire_result qi_fail_numbers(quire_result code, const char *pattern, const uint64_t *numbers)
{
    (void)pattern;
    (void)numbers;
    return fail(code);
}

quire_result qi_refuse_not_zero(const uint64_t *words, size_t count, const char *name)
{
    (void)words;
    (void)count;
    (void)name;
    return fail(QUIRE_ERROR_INVALID_ARGUMENT);
}

void *qi_host_allocate(qi_host *host, uint64_t count, size_t size)
{
    (void)host;
    return count ? calloc(count, size) : NULL;
}

void qi_host_release(qi_host *host, void *pointer, uint64_t count, size_t size)
{
    (void)host;
    (void)count;
    (void)size;
    free(pointer);
}

/* An insertion sort that goes on to the begin of the array. Elements have whole words. */
void qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *))
{
    const size_t words = size / sizeof(uint64_t);
    uint64_t *array = base;
    for (size_t i = 1; i < count; i++)
        for (size_t k = i; k > 0; k--) {
            uint64_t *low = array + (k - 1) * words, *high = array + k * words;
            bool is_swapped = compare(low, high) > 0;
            for (size_t word = 0; word < words; word++) {
                uint64_t a = low[word], b = high[word];
                low[word] = is_swapped ? b : a;
                high[word] = is_swapped ? a : b;
            }
        }
}
