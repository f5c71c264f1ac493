/*
 * resource.h - buffers and images: what the backend asks for them, the native object where it has
 * any, and the place they are bound to.
 *
 * One order for both, with one way back: requirements (and object) - place - bind - commit. Every
 * step that fails undoes those before it.
 */
#ifndef QUIRE_SRC_CORE_OBJECT_OBJECT_H
#define QUIRE_SRC_CORE_OBJECT_OBJECT_H

#include "src/core/allocate/ladder.h"

/* What is being made, step by step. */
typedef struct qi_object_build {
    quire_memory *memory;
    quire_object_request native_request;
    quire_requirements needs;
    qi_request request; /* with the native object, once there is one */
} qi_object_build;

/* Whether the backend has objects of its own for buffers and images. */
static inline bool qi_object_backend_has(const quire_memory *memory)
{
    return qi_device_offers(memory->device, QUIRE_BACKEND_OBJECTS);
}

/* The native object of m->request, and what it needs. */
QUIRE_MUST_USE quire_result qi_object_build_native(qi_object_build *m);

/*
 * Places and binds; the slot stays PRIVATE so that the caller can complete its record. Zeros come
 * last: a page that is tied to the object can be filled only through it.
 */
QUIRE_MUST_USE quire_result qi_object_build_place(qi_object_build *m, bool optimal, uint32_t *slot);

/*
 * Ends a making, whose `result` so far it passes on: hands the allocation out, or destroys the
 * object that found no place.
 */
QUIRE_MUST_USE quire_result qi_object_build_finish(qi_object_build *m, quire_result result,
                                                   uint32_t slot, quire_allocation *allocation);

/* INVALID_ARGUMENT: it is not of buffers alone. */
QUIRE_MUST_USE quire_result qi_check_buffer_usage(quire_usage usage);

/* Pins an allocation that must be an object of the given sort. */
QUIRE_MUST_USE quire_result qi_object_begin_use(quire_memory *memory, quire_allocation allocation,
                                                quire_object object, uint32_t *slot);

#endif
