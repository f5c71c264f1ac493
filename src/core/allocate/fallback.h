/*
 * any.h - making something in the first of several memories that can: what each can do by itself
 * comes first, from the first memory to the last; then those whose callers may help are asked once
 * more.
 */
#ifndef QUIRE_SRC_CORE_ALLOCATE_FALLBACK_H
#define QUIRE_SRC_CORE_ALLOCATE_FALLBACK_H

#include "src/core/state/memory.h"

typedef struct qi_fallback qi_fallback;

struct qi_fallback {
    quire_memory *const *memories;
    uint32_t count;
    const void *options; /* of what is made */
    void *made;          /* its handle, which make zeroes on failure */
    /* Where `is_unaided`, without the memory's on_out_of_memory. */
    quire_result (*make)(const qi_fallback *fallback, quire_memory *memory, bool is_unaided);
};

/*
 * *chosen gets the index of the memory, 0 with an error. INVALID_ARGUMENT of any memory ends the
 * search; else the error is the last refusal of the first one.
 */
QUIRE_MUST_USE quire_result qi_fallback_run(const qi_fallback *fallback, uint32_t *chosen);

#endif
