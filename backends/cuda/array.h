/*
 * array.h - CUDA arrays without memory of their own: made, mapped to a part of a tile pool page,
 * taken down.
 */
#ifndef QUIRE_BACKENDS_CUDA_ARRAY_H
#define QUIRE_BACKENDS_CUDA_ARRAY_H

#include "backends/cuda/cuda.h"
#include "quire/cuda_array.h"

/*
 * The native object of an image in a tile pool. What is there of it is taken down in the reverse
 * order of its making, so that it can be gone on with later.
 */
struct qi_cuda_array {
    qi_cuda_array *next; /* of those to be gone on with */
    qi_cu_array array;   /* one of the two */
    qi_cu_mipmap mipmap;
    qi_cu_array3d_descriptor form;
    uint32_t levels, layers; /* at least 1 */
    uint32_t element;        /* bytes of a texel */
    bool is_sparse;
    bool is_mapped;
    bool was_bound; /* work may run on it */
    qi_cu_sparse_properties tiles;
    uint64_t size, alignment;    /* of the memory it wants, bytes */
    qi_cu_array_map_info *parts; /* that are mapped; their offsets count from the array's memory */
    uint32_t part_count;
};

/* The driver's format of a channel; 0: arrays have none such. */
qi_cu_array_format qi_cuda_array_format(quire_channel_type type);

/*
 * Without memory. Options are valid and their defaults resolved. In the context. UNSUPPORTED: the
 * driver makes none of this form.
 */
QUIRE_MUST_USE quire_result qi_cuda_array_make(qi_cuda *cuda,
                                               const quire_cuda_array_options *options,
                                               qi_cuda_array **array);

/* Complete on return; what a failure has mapped goes with the array. In the context. */
QUIRE_MUST_USE quire_result qi_cuda_array_map(qi_cuda *cuda, qi_cuda_array *array,
                                              const qi_cuda_page *page, uint64_t offset);

/* Whether or not the context can be entered; what the driver refuses is gone on with later. */
void qi_cuda_array_end(qi_cuda *cuda, qi_cuda_array *array);

#endif
