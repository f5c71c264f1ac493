/*
 * quire/resource.h - buffers and images: allocations with a native object bound to them.
 *
 * They are freed by quire_free, and asked, mapped, written and read as the allocation in them.
 */
#ifndef QUIRE_RESOURCE_H
#define QUIRE_RESOURCE_H

#include "quire/allocation.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quire_buffer {
    quire_allocation allocation;
} quire_buffer;

typedef struct quire_image {
    quire_allocation allocation;
} quire_image;

/* What a buffer or image is used for; bits may be combined. */
typedef uint32_t quire_usage;
#define QUIRE_USAGE_TRANSFER_SOURCE UINT32_C(0x01)
#define QUIRE_USAGE_TRANSFER_TARGET UINT32_C(0x02)
#define QUIRE_USAGE_STORAGE UINT32_C(0x04)
#define QUIRE_USAGE_UNIFORM UINT32_C(0x08) /* buffers only */
#define QUIRE_USAGE_VERTEX UINT32_C(0x10)  /* buffers only */
#define QUIRE_USAGE_INDEX UINT32_C(0x20)   /* buffers only */
#define QUIRE_USAGE_SAMPLED UINT32_C(0x40) /* images only */

typedef struct quire_buffer_options {
    uint64_t size;      /* bytes, above 0 */
    quire_usage usage;  /* 0: storage and both transfers */
    uint64_t alignment; /* at least; 0: what the backend asks */
    const char *name;
    uint64_t user_data;
    bool zero;
    bool dedicated;
    bool host_read;
    bool host_write;
    uint64_t unused[4]; /* must be zero */
} quire_buffer_options;

typedef struct quire_buffer_info {
    uint64_t size; /* bytes asked for; where nobody said so, what the object needs */
    quire_usage usage;
    quire_allocation_info place;
    uint64_t unused[4];
} quire_buffer_info;

/* One channel's type; the values are Lluvia's order. */
typedef enum quire_channel_type {
    QUIRE_UINT8 = 0,
    QUIRE_INT8,
    QUIRE_UINT16,
    QUIRE_INT16,
    QUIRE_FLOAT16,
    QUIRE_UINT32,
    QUIRE_INT32,
    QUIRE_FLOAT32,
    QUIRE_UINT64,
    QUIRE_INT64,
    QUIRE_FLOAT64
} quire_channel_type;

typedef enum quire_tiling {
    QUIRE_TILING_OPTIMAL = 0, /* the backend's own order */
    QUIRE_TILING_LINEAR       /* rows in memory, one after the other */
} quire_tiling;

typedef struct quire_image_options {
    uint32_t width;         /* texels, above 0 */
    uint32_t height;        /* 0: 1; above 1: a 2D image */
    uint32_t depth;         /* 0: 1; above 1: a 3D image */
    uint32_t channel_count; /* 0: 1; most 4 */
    quire_channel_type channel_type;
    quire_tiling tiling;
    quire_usage usage; /* 0: storage, sampled and both transfers */
    const char *name;
    uint64_t user_data;
    bool zero;
    bool dedicated;
    bool host_read;
    bool host_write;
    uint64_t unused[4]; /* must be zero */
} quire_image_options;

typedef struct quire_image_info {
    uint32_t width, height, depth; /* texels */
    uint32_t channel_count;
    quire_channel_type channel_type;
    quire_tiling tiling;
    quire_usage usage;
    uint32_t dimensions;         /* 1, 2 or 3 */
    uint64_t minimum_size;       /* bytes of the texels alone */
    uint64_t row_pitch;          /* bytes from row to row; 0 where the order is the backend's own */
    uint64_t slice_pitch;        /* bytes from slice to slice of a 3D image; likewise */
    uint32_t native_format;      /* of the backend (VkFormat), where the image was made from its own
                                    description: then channels and usage are 0 */
    quire_allocation_info place; /* place.size is the actual size */
    uint64_t unused[4];
} quire_image_info;

/* What a backend asks for an object. */
typedef struct quire_requirements {
    uint64_t size;
    uint64_t alignment;
    uint32_t kind_mask; /* bit i: kind i can hold it */
    bool dedicated; /* the driver wants a page of its own for it: see quire_page_request.object */
    bool prefers_dedicated; /* it would rather have one, and does without where none can be had */
    uint64_t row_pitch;
    uint64_t slice_pitch;
    uint64_t unused[4];
} quire_requirements;

/*
 * Makes a buffer: object, place, bind. Errors as quire_allocate; UNSUPPORTED when the memory's kind
 * cannot hold it.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_buffer_create(quire_memory *memory,
                                                          const quire_buffer_options *options,
                                                          quire_buffer *buffer);

/*
 * Makes a buffer in the first of `count` memories, above 0, that can hold it and has room: where
 * the first choice is full, the next memory kind serves. Order, *chosen and errors as
 * quire_allocate_fallback; a memory of a kind that cannot hold the buffer is passed over.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_buffer_create_fallback(
    quire_memory *const *memories, uint32_t count, const quire_buffer_options *options,
    uint32_t *chosen, quire_buffer *buffer);
QUIRE_API QUIRE_MUST_USE quire_result quire_buffer_get_info(quire_memory *memory,
                                                            quire_buffer buffer,
                                                            quire_buffer_info *info);

/* Makes an image. Errors as quire_buffer_create; UNSUPPORTED also where there are no images. */
QUIRE_API QUIRE_MUST_USE quire_result quire_image_create(quire_memory *memory,
                                                         const quire_image_options *options,
                                                         quire_image *image);

/* The same for an image. */
QUIRE_API QUIRE_MUST_USE quire_result quire_image_create_fallback(
    quire_memory *const *memories, uint32_t count, const quire_image_options *options,
    uint32_t *chosen, quire_image *image);
QUIRE_API QUIRE_MUST_USE quire_result quire_image_get_info(quire_memory *memory, quire_image image,
                                                           quire_image_info *info);

/*
 * Whether an image can be made, and what it would take, before any memory is made.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_image_get_requirements(
    quire_device *device, const quire_image_options *options, quire_requirements *requirements);

/* Bytes of one channel of a type, or 0 for a value that is none. */
QUIRE_API uint32_t quire_channel_size(quire_channel_type type);

#ifdef __cplusplus
}
#endif

#endif
