/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/cuda_array.h - CUDA arrays as images. Many arrays lie in one tile pool page
 * (QUIRE_CUDA_TILES), at offsets that quire chooses and reports.
 *
 * On a device with such pages quire_image_create makes arrays of images of optimal tiling, if CUDA
 * has arrays of that form: 1, 2 or 4 channels of up to 32 bits. quire_image_get_requirements has
 * the memory kind. This header adds layers and mipmap levels. Both functions make a quire_image;
 * quire_free frees it, after the last use, as every allocation.
 *
 * A tile pool has no addresses and no bytes that quire_write or quire_read can reach. Copy texels
 * with the driver's cuMemcpy2D and cuMemcpy3D. Make textures and surfaces of the array.
 *
 * The rules of quire/cuda.h on threads and errors hold here.
 */
#ifndef QUIRE_CUDA_ARRAY_H
#define QUIRE_CUDA_ARRAY_H

#include "quire/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quire_cuda_array_options {
    uint32_t width;                  /* texels, above 0 */
    uint32_t height;                 /* texels; 0: 1 */
    uint32_t depth;                  /* of a 3D array; 0: it is 2D */
    uint32_t layers;                 /* of a layered 2D array; 0: it is not layered */
    uint32_t levels;                 /* of a mipmapped array; 0: it is not mipmapped */
    uint32_t channel_count;          /* 1, 2 or 4; 0: 1 */
    quire_channel_type channel_type; /* of 8, 16 or 32 bits */
    quire_usage usage;               /* of images; QUIRE_USAGE_STORAGE permits surfaces. 0: all */
    /* Mapped tile by tile, as drivers before CUDA 11.6 require; the caller may unbind tiles.
       Otherwise mapped in one piece if the device supports that. */
    bool sparse;
    /* These five as in quire_allocation_options. */
    bool dedicated;
    const char *name;
    uint64_t user_data;
    quire_stream *stream;
    quire_allocation_info *info;
    uint64_t unused[4]; /* must be zero */
} quire_cuda_array_options;

/*
 * Creates an array and maps all of it to a range of a page of `memory`, which must be of kind
 * QUIRE_CUDA_TILES. Errors as quire_image_create; INVALID_ARGUMENT also for channels or forms that
 * no array has, UNSUPPORTED also if the device refuses.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_array_create(
    quire_memory *memory, const quire_cuda_array_options *options, quire_image *image);

typedef struct quire_cuda_array_info {
    void *array;  /* CUarray; NULL if it is mipmapped */
    void *mipmap; /* CUmipmappedArray; NULL if it is not */
    uint32_t levels, layers;
    uint64_t handle; /* CUmemGenericAllocationHandle of the page */
    uint64_t offset; /* bytes from the start of the page */
    uint64_t size;   /* bytes of the page that the array is mapped to */
    bool is_sparse;
    uint32_t tile_width, tile_height, tile_depth; /* texels; these and the next two: if sparse */
    uint32_t tail_level;                          /* first level in the mip tail */
    uint64_t tail_size;                           /* bytes; 0: no mip tail */
    uint64_t unused[4];
} quire_cuda_array_info;

/*
 * Writes the native side of an array. The handles belong to quire. Errors as quire_image_get_info
 * and quire_allocation_hold; UNSUPPORTED (the image is linear).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_array_get_info(const quire_memory *memory,
                                                                quire_image image,
                                                                quire_cuda_array_info *info);

#ifdef __cplusplus
}
#endif

#endif
