/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * object.h - builds buffers and images in two parts, the first for a device and the second for a
 * memory, so that a native object is created once for several memories.
 *
 * In the first part the options are checked, the native object is created if the backend has one,
 * and the backend reports its requirements. The second part places, binds and publishes. A second
 * part that fails undoes its steps, and the first part serves the next memory. Until it is
 * published the slot is PRIVATE, so that the building thread owns it. No lock may be held: the
 * steps call the backend.
 */
#ifndef QUIRE_SRC_CORE_OBJECT_OBJECT_H
#define QUIRE_SRC_CORE_OBJECT_OBJECT_H

#include <string.h>

#include "quire/transfer.h"
#include "src/core/allocate/allocation.h"
#include "src/core/deferred/deferred_reuse.h"

/* ---- what the public functions do --------------------------------------------------------- */

/*
 * object.c, image.c: as the public functions of these names. Options are checked here,
 * because defaults are resolved first. The handle is written on success only.
 */
QUIRE_MUST_USE quire_result qi_buffer_create(quire_memory *memory,
                                             const quire_buffer_options *options,
                                             quire_buffer *buffer);
QUIRE_MUST_USE quire_result qi_image_create(quire_memory *memory,
                                            const quire_image_options *options, quire_image *image);
QUIRE_MUST_USE quire_result qi_object_create(quire_memory *memory,
                                             const quire_object_options *options,
                                             quire_allocation *allocation);

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
 * The rows of a region of a linear image, and a copy between them and host memory.
 * `region` may be NULL: the whole image. Of `host` one pointer is set, host_to or host_from, and
 * the pitches of its end; the rest of the options is filled in.
 */
QUIRE_MUST_USE quire_result qi_image_get_rows(quire_memory *memory, quire_image image,
                                              const quire_image_region *region,
                                              quire_image_rows *rows);
QUIRE_MUST_USE quire_result qi_image_copy(quire_memory *memory, quire_image image,
                                          const quire_image_region *region,
                                          const quire_copy_options *host);

/* ---- building ----------------------------------------------------------------------------- */

/* An object while it is built. Belongs to the calling thread, and must not be moved. */
typedef struct qi_object_build {
    quire_object_request native_request;
    qi_request request; /* includes the native object, once it is created */
    uint64_t alignment; /* that the caller asked for; request.alignment has the backend's as well */
    quire_stream *stream;
    quire_allocation_info *info;   /* receives the description of the allocation; NULL: nothing */
    const quire_image_info *image; /* of an image: what its slot keeps; NULL: a buffer */
    uint8_t usage;                 /* of a buffer */
    bool unbound;                  /* the caller binds the native object, which is borrowed */
    bool is_sized;                 /* the caller gave the size; otherwise the backend reports it */
    bool optimal;                  /* an image of optimal tiling */
    bool is_movable;               /* if its memory does not make it so */
    bool is_ready;        /* `needs` are known, and the native object exists if there is one */
    quire_device *device; /* of the native object and `needs` */
    quire_memory *memory; /* of the present attempt; NULL: none was made */
    quire_requirements needs;
    /* ---- not initialised if they are not used ---- */
    union {
        quire_buffer_options buffer; /* resolved */
        quire_image_options image;   /* resolved */
    } options;
    quire_image_info described; /* `image`, if it is made from quire's own options */
    qi_reuse reuse;             /* with a stream: the deferred free whose range is reused, if any */
} qi_object_build;

/*
 * Begin a build: check the options and resolve them. The options of a description must live as long
 * as the build. Nothing is to be ended if they fail.
 */
QUIRE_MUST_USE quire_result qi_buffer_begin(const quire_buffer_options *options,
                                            qi_object_build *build);
QUIRE_MUST_USE quire_result qi_image_begin(const quire_image_options *options,
                                           qi_object_build *build);
QUIRE_MUST_USE quire_result qi_object_begin(const quire_object_options *options,
                                            qi_object_build *build);

/*
 * The first part, for memories of the device whose pages are `exportable` or not: creates the
 * native object and gets the requirements. `calls` may be NULL. On failure there is no native
 * object.
 */
QUIRE_MUST_USE quire_result qi_object_require(qi_object_build *build, quire_device *device,
                                              qi_calls *calls, bool exportable);

/*
 * The second part, after the first if that has not been done for the device. On success the
 * allocation is published and the build has ended. On failure the native object stays for another
 * attempt, unless it cannot be bound again. With `skip_callback`, the memory's on_out_of_memory is
 * not called. Zeros are written after the binding: some backends can fill a dedicated page only
 * through its object.
 */
QUIRE_MUST_USE quire_result qi_object_try(qi_object_build *build, quire_memory *memory,
                                          bool skip_callback, quire_allocation *allocation);

/* Ends a build that has failed: destroys a native object that is not borrowed. Returns `result`. */
quire_result qi_object_give_up(qi_object_build *build, quire_result result);

/* An attempt in one memory and the end of the build. */
QUIRE_MUST_USE static inline quire_result qi_object_finish(qi_object_build *build,
                                                           quire_memory *memory,
                                                           quire_allocation *allocation)
{
    quire_result result = qi_object_try(build, memory, false, allocation);
    return qi_unlikely(result) ? qi_object_give_up(build, result) : QUIRE_SUCCESS;
}

/*
 * Builds in the first of several memories that can (allocate/allocation.h), which qi_fallback_check
 * has accepted, and ends the build.
 */
QUIRE_MUST_USE quire_result qi_object_fallback(qi_object_build *build,
                                               quire_memory *const *memories, uint32_t count,
                                               uint32_t *chosen, quire_allocation *allocation);

/* ---- parts -------------------------------------------------------------------------------- */

/* Begins the records of a build. `options`, `described` and `reuse` are not initialised. */
static inline void qi_object_init(qi_object_build *build, quire_object object, uint64_t alignment)
{
    memset(build, 0, offsetof(qi_object_build, options));
    build->native_request.object = object;
    build->alignment = alignment;
    build->request.range = (qi_range_request){
        .alignment = alignment,
        .object = object,
        .extras = QI_EXTRA_OBJECT,
    };
}

/* Begins a use of an allocation, which must be an object of this sort. The caller ends the use. */
QUIRE_MUST_USE quire_result qi_object_begin_use(quire_memory *memory, quire_allocation allocation,
                                                quire_object object, uint32_t *slot);

#endif
