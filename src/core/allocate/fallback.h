/*
 * fallback.h - creates something in the first memory of a list that has room.
 *
 * Two rounds, each from the first memory to the last. In the first round each memory uses its own
 * means. In the second round only the memories with an on_out_of_memory are tried, and it is
 * called.
 *
 * No function requires a lock. A qi_fallback belongs to the calling thread.
 */
#ifndef QUIRE_SRC_CORE_ALLOCATE_FALLBACK_H
#define QUIRE_SRC_CORE_ALLOCATE_FALLBACK_H

#include "src/core/state/memory.h"

typedef struct qi_fallback {
    quire_memory *const *memories;
    uint32_t count;
    void *work; /* of the kind that `make` works on */
    /* Creates it in one memory. With is_unaided, the memory's on_out_of_memory is not called. */
    quire_result (*make)(void *work, quire_memory *memory, bool is_unaided);
} qi_fallback;

/*
 * Checks the list of memories and the pointers of a public call, and sets *chosen to 0. The callers
 * pass unchecked pointers, so that all functions report the same text. Fails with INVALID_ARGUMENT.
 */
QUIRE_MUST_USE quire_result qi_fallback_check(const char *call, quire_memory *const *memories,
                                              uint32_t count, const void *options, uint32_t *chosen,
                                              const void *made);

/*
 * Sets *chosen to the index of the memory, to 0 on failure. INVALID_ARGUMENT of any memory ends the
 * search and is returned. Otherwise the last error of the first memory is returned. The list must
 * have been checked.
 */
QUIRE_MUST_USE quire_result qi_fallback_run(const qi_fallback *fallback, uint32_t *chosen);

#endif
