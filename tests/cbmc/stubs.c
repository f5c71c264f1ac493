/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stubs.c - replaces errors and host memory of the library in the proofs of whole operations: no
 * messages, and host memory that never runs out and never moves. For CBMC only.
 */
#include <stdlib.h>

#include "src/base/result.h"
#include "src/space/space.h"
#include "tests/cbmc/tiny.h"

quire_result qi_fail_numbers(quire_result code, const char *pattern, const uint64_t *numbers)
{
    (void)pattern;
    (void)numbers;
    return code;
}

quire_result qi_space_no_room(quire_space *space, uint64_t size, uint64_t alignment, uint32_t flags)
{
    (void)space;
    (void)size;
    (void)alignment;
    (void)flags;
    return QUIRE_ERROR_NO_SPACE;
}

/* Rare paths of the library end here; the harnesses call the fit's general functions themselves. */
quire_result qi_space_allocate(quire_space *space, uint64_t size, uint64_t alignment, uint64_t user,
                               uint32_t flags, quire_placement *placement)
{
    return space->fit->allocate(space, size, alignment, user, flags, placement);
}

quire_result qi_space_free(quire_space *space, quire_range range)
{
    return space->fit->release(space, qi_handle_slot(range.id), qi_handle_generation(range.id))
               ? QUIRE_SUCCESS
               : QUIRE_ERROR_STALE_HANDLE;
}

void qi_space_set_free(quire_space *space,
                       quire_result (*free_range)(quire_space *space, quire_range range))
{
    space->usual_free = space->free_range = free_range;
}

quire_result qi_space_damaged(const char *what, uint32_t node)
{
    (void)what;
    (void)node;
    return QUIRE_ERROR_CORRUPTED;
}

quire_result qi_host_init(qi_host *host, const quire_host_memory *callbacks)
{
    (void)host;
    (void)callbacks;
    return QUIRE_SUCCESS;
}

bool tiny_is_complete;

/* Also ends a path that CBMC follows because it does not see that nothing can grow there. */
static void must_not_grow(bool grows)
{
    __CPROVER_assert(!grows, "a tiny space never grows");
    __CPROVER_assume(!grows);
}

void *qi_host_allocate(qi_host *host, uint64_t count, size_t size)
{
    (void)host;
    must_not_grow(tiny_is_complete);
    return calloc(count, size);
}

void qi_host_release(qi_host *host, void *pointer, uint64_t count, size_t size)
{
    (void)host;
    (void)count;
    (void)size;
    free(pointer);
}

void *qi_host_resize(qi_host *host, void *pointer, uint64_t old_count, uint64_t new_count,
                     size_t size)
{
    must_not_grow(pointer || old_count);
    return qi_host_allocate(host, new_count, size);
}
