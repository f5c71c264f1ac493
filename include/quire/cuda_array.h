/*
 * quire/cuda_array.h - CUDA arrays as images: they lie in tile pool pages (QUIRE_CUDA_TILES) at an
 * offset that quire chooses and tells, many in one page.
 *
 * On a device with such pages quire_image_create makes arrays of images of optimal tiling, where
 * CUDA has arrays of the form: 1, 2 or 4 channels of up to 32 bits; quire_image_get_requirements
 * names the memory kind. What arrays have beyond that, layers and mipmap levels, is asked for here.
 * Either is a quire_image, freed by quire_free, which waits for the work of the context first (see
 * quire_cuda_settings.unsynchronized).
 *
 * A tile pool has no addresses and no bytes that quire_write or quire_read reach: texels are
 * copied by the driver's cuMemcpy2D and cuMemcpy3D, textures and surfaces are made of the array.
 */
#ifndef QUIRE_CUDA_ARRAY_H
#define QUIRE_CUDA_ARRAY_H

#include "quire/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quire_cuda_array_options {
    uint32_t width;                  /* texels, above 0 */
    uint32_t height;                 /* 0: 1 */
    uint32_t depth;                  /* of a 3D array; 0: it is 2D */
    uint32_t layers;                 /* of a layered 2D array; 0: it is not layered */
    uint32_t levels;                 /* of a mipmapped array; 0: it is not mipmapped */
    uint32_t channel_count;          /* 1, 2 or 4; 0: 1 */
    quire_channel_type channel_type; /* of 8, 16 or 32 bits */
    quire_usage usage; /* of images; QUIRE_USAGE_STORAGE: surfaces can be made of it. 0: all */
    /* mapped tile by tile, as it has to be on drivers before CUDA 11.6; unbound tiles of it are the
       caller's business. Else in one piece where the device can */
    bool sparse;
    bool dedicated;
    const char *name;
    uint64_t user_data;
    uint64_t unused[4]; /* must be zero */
} quire_cuda_array_options;

/*
 * Makes an array and maps all of it to a place in a page of `memory`, which must be of kind
 * QUIRE_CUDA_TILES. Errors: those of quire_image_create; INVALID_ARGUMENT also for channels or
 * forms that no array has, UNSUPPORTED for what the device refuses.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_array_create(
    quire_memory *memory, const quire_cuda_array_options *options, quire_image *image);

typedef struct quire_cuda_array_info {
    void *array;  /* CUarray; NULL: it is mipmapped */
    void *mipmap; /* CUmipmappedArray; NULL: it is not */
    uint32_t levels, layers;
    uint64_t handle; /* CUmemGenericAllocationHandle of the page, which stays quire's */
    uint64_t offset; /* in the page, bytes */
    uint64_t size;   /* bytes of the page that it is mapped to */
    bool is_sparse;
    uint32_t tile_width, tile_height, tile_depth; /* texels; of sparse ones, like the following */
    uint32_t tail_level;                          /* the first level in the mip tail */
    uint64_t tail_size;                           /* bytes; 0: there is no tail */
    uint64_t unused[4];
} quire_cuda_array_info;

/*
 * The handles stay quire's. Errors as quire_image_get_info and quire_allocation_hold; UNSUPPORTED:
 * the image is linear.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_array_get_info(quire_memory *memory,
                                                                quire_image image,
                                                                quire_cuda_array_info *info);

#ifdef __cplusplus
}
#endif

#endif
