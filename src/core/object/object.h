/*
 * object.h - buffers and images: what the backend requires of them, the native object where the
 * backend has one, and the range that it is bound to.
 *
 * All are built in the same steps: requirements (and native object), place, bind, publish. A step
 * that fails undoes the steps before it. Until it is published the slot is PRIVATE, so that the
 * building thread owns it. No lock may be held: the steps call the backend.
 */
#ifndef QUIRE_SRC_CORE_OBJECT_OBJECT_H
#define QUIRE_SRC_CORE_OBJECT_OBJECT_H

#include "quire/transfer.h"
#include "src/core/allocate/ladder.h"

/* ---- what the public functions do ---------------------------------------------------------- */

/*
 * buffer.c, image.c, object.c: as the public functions of these names. Options are checked here,
 * because defaults are resolved first. The handle is written on success only. Where `is_unaided`,
 * the memory's on_out_of_memory is not called.
 */
QUIRE_MUST_USE quire_result qi_buffer_create(quire_memory *memory,
                                             const quire_buffer_options *options, bool is_unaided,
                                             quire_buffer *buffer);
QUIRE_MUST_USE quire_result qi_image_create(quire_memory *memory,
                                            const quire_image_options *options, bool is_unaided,
                                            quire_image *image);
QUIRE_MUST_USE quire_result qi_object_create(quire_memory *memory,
                                             const quire_object_options *options,
                                             quire_allocation *allocation);

/* In the first of several memories that can (allocate/fallback.h). Check the pointers. */
QUIRE_MUST_USE quire_result qi_buffer_create_fallback(quire_memory *const *memories, uint32_t count,
                                                      const quire_buffer_options *options,
                                                      uint32_t *chosen, quire_buffer *buffer);
QUIRE_MUST_USE quire_result qi_image_create_fallback(quire_memory *const *memories, uint32_t count,
                                                     const quire_image_options *options,
                                                     uint32_t *chosen, quire_image *image);

QUIRE_MUST_USE quire_result qi_buffer_get_info(quire_memory *memory, quire_buffer buffer,
                                               quire_buffer_info *info);
QUIRE_MUST_USE quire_result qi_image_get_info(quire_memory *memory, quire_image image,
                                              quire_image_info *info);
/* On failure *requirements is zero. */
QUIRE_MUST_USE quire_result qi_image_get_requirements(quire_device *device,
                                                      const quire_image_options *options,
                                                      quire_requirements *requirements);

/* Bytes of one channel; 0 for an unknown type. */
uint32_t qi_channel_size(quire_channel_type type);

/*
 * image_rows.c: the rows of a region of a linear image, and a copy between them and host memory.
 * `region` may be NULL: the whole image. Of `host` one pointer is set, host_to or host_from, and
 * the pitches of its end; the rest of the options is filled in.
 */
QUIRE_MUST_USE quire_result qi_image_get_rows(quire_memory *memory, quire_image image,
                                              const quire_image_region *region,
                                              quire_image_rows *rows);
QUIRE_MUST_USE quire_result qi_image_copy(quire_memory *memory, quire_image image,
                                          const quire_image_region *region,
                                          const quire_copy_options *host);

/* ---- steps --------------------------------------------------------------------------------- */

/* An object while it is built. */
typedef struct qi_object_build {
    quire_memory *memory;
    quire_object_request native_request;
    quire_requirements needs;
    qi_request request; /* includes the native object, once it is created */
} qi_object_build;

/* Whether the backend has native objects for buffers and images. */
static inline bool qi_object_backend_has(const quire_memory *memory)
{
    return qi_device_offers(memory->device, QUIRE_BACKEND_OBJECTS);
}

/* Creates the native object and gets its requirements. */
QUIRE_MUST_USE quire_result qi_object_build_native(qi_object_build *build);

/*
 * Places and binds the object. The slot stays PRIVATE, so that the caller can complete its record.
 * Zeros are written after the binding: some backends can fill a dedicated page only through its
 * object. On failure the place is released; the native object remains.
 */
QUIRE_MUST_USE quire_result qi_object_build_place(qi_object_build *build, bool optimal,
                                                  uint32_t *slot);

/*
 * Ends a build. `result` is what the steps so far returned, and is returned again. Publishes the
 * allocation on success; destroys a native object that is not borrowed on failure.
 */
QUIRE_MUST_USE quire_result qi_object_build_finish(qi_object_build *build, quire_result result,
                                                   uint32_t slot, quire_allocation *allocation);

/* Fails with INVALID_ARGUMENT where a usage is not one of buffers. */
QUIRE_MUST_USE quire_result qi_check_buffer_usage(quire_usage usage);

/* Begins a use of an allocation, which must be an object of this sort. The caller ends the use. */
QUIRE_MUST_USE quire_result qi_object_begin_use(quire_memory *memory, quire_allocation allocation,
                                                quire_object object, uint32_t *slot);

#endif
