/*
 * array.h - CUDA arrays without memory of their own. An array is mapped to a part of a tile pool
 * page when its image is bound. image.c has the entries of the backend table.
 *
 * Lock: none. The core creates, binds and destroys one object from one thread at a time.
 */
#ifndef QUIRE_BACKENDS_CUDA_ARRAY_H
#define QUIRE_BACKENDS_CUDA_ARRAY_H

#include "backends/cuda/page.h"
#include "quire/cuda_array.h"

/*
 * The native object of an image in a tile pool. Destruction releases what it has in the reverse
 * order of its creation, so that it can be interrupted by a failure and continued later.
 */
struct qi_cuda_array {
    qi_cuda_array *next; /* in qi_cuda.deferred_arrays */
    qi_cu_array array;   /* exactly one of the two is set */
    qi_cu_mipmap mipmap;
    qi_cu_array3d_descriptor form;
    uint32_t levels, layers; /* at least 1 */
    uint32_t element;        /* bytes of a texel */
    bool is_sparse;
    bool is_mapped;
    bool was_bound;                /* work on the device may use it */
    qi_cu_sparse_properties tiles; /* if is_sparse */
    uint64_t size, alignment;      /* of the memory it requires, bytes */
    qi_cu_array_map_info *parts;   /* part_count of them; offsets are relative to its memory */
    uint32_t part_count;
};

/* ---- array.c ---------------------------------------------------------------------------- */

/* The driver's format for a channel type; 0 if arrays do not support the type. */
qi_cu_array_format qi_cuda_array_format(quire_channel_type type);

/*
 * Creates an array that is not mapped. The options are valid and their defaults resolved. In the
 * context. UNSUPPORTED if the driver has no array of this form.
 */
QUIRE_MUST_USE quire_result qi_cuda_array_create(qi_cuda *cuda,
                                                 const quire_cuda_array_options *options,
                                                 qi_cuda_array **array);

/*
 * Maps the array at an offset of a page and waits until the mapping is complete. Destroying the
 * array undoes what a failure left mapped. In the context.
 */
QUIRE_MUST_USE quire_result qi_cuda_array_map(qi_cuda *cuda, qi_cuda_array *array,
                                              const qi_cuda_page *page, uint64_t offset);

/* Destroys an array; defers what the driver refuses. Enters the context itself. */
void qi_cuda_array_destroy(qi_cuda *cuda, qi_cuda_array *array);

/* Retries the deferred arrays. With `is_last` it releases the records of those that still fail, and
   logs each. In the context. */
void qi_cuda_retry_deferred_arrays(qi_cuda *cuda, bool is_last);

/* ---- image.c: entries of the backend table ---------------------------------------------- */

quire_result qi_cuda_image_requirements(void *state, const quire_image_options *options,
                                        quire_requirements *requirements);
quire_result qi_cuda_object_create(void *state, const quire_object_request *request,
                                   uint64_t *native, quire_requirements *requirements);
quire_result qi_cuda_object_bind(void *state, quire_object object, uint64_t native,
                                 const quire_native_page *page, uint64_t offset);
void qi_cuda_object_destroy(void *state, quire_object object, uint64_t native);

#endif
