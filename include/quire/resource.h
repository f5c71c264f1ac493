/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/resource.h - buffers and images: allocations with a native object bound to them.
 *
 * quire_free frees a buffer or image and destroys its object. Use the field `allocation` to query,
 * map, write and read it.
 *
 * Thread-safety: any thread may call any function on a live memory or device.
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

/* Uses of a buffer or image; bits may be combined. */
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
    uint64_t alignment; /* minimum, a power of two; 0: only what the backend requires */
    /* These twelve as in quire_allocation_options. A buffer that has moved has another native
       object. */
    const char *name;
    bool host_write;
    bool host_read;
    bool zero;
    bool dedicated;
    bool mapped;
    bool existing_pages;
    bool within_budget;
    bool movable;
    uint64_t user_data;
    quire_stream *stream;
    quire_allocation_info *info;
    uint64_t unused[4]; /* must be zero */
} quire_buffer_options;

typedef struct quire_buffer_info {
    uint64_t size; /* bytes requested; if none were, the bytes that the object needs */
    quire_usage usage;
    quire_allocation_info place;
    uint64_t unused[4];
} quire_buffer_info;

/*
 * The type of one channel. The values have Lluvia's order. On Vulkan an integer type is an integer
 * format: four channels of QUIRE_UINT8 are VK_FORMAT_R8G8B8A8_UINT. UNORM, sRGB and other formats
 * need quire_vulkan_image_create (quire/vulkan.h).
 */
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
    QUIRE_TILING_OPTIMAL = 0, /* texels in the backend's own order */
    QUIRE_TILING_LINEAR       /* texels in rows, one row after the other */
} quire_tiling;

typedef struct quire_image_options {
    uint32_t width;         /* texels, above 0 */
    uint32_t height;        /* texels; 0: 1; above 1: a 2D image */
    uint32_t depth;         /* texels; 0: 1; above 1: a 3D image */
    uint32_t channel_count; /* 1 to 4; 0: 1 */
    quire_channel_type channel_type;
    quire_tiling tiling;
    quire_usage usage; /* 0: storage, sampled and both transfers */
    /* These eleven as in quire_allocation_options. */
    const char *name;
    bool host_write;
    bool host_read;
    bool zero;
    bool dedicated;
    bool mapped;
    bool existing_pages;
    bool within_budget;
    uint64_t user_data;
    quire_stream *stream;
    quire_allocation_info *info;
    uint64_t unused[4]; /* must be zero */
} quire_image_options;

typedef struct quire_image_info {
    uint32_t width, height, depth; /* texels */
    uint32_t channel_count;
    quire_channel_type channel_type;
    quire_tiling tiling;
    quire_usage usage;
    uint32_t dimensions;         /* 1, 2 or 3 */
    uint64_t minimum_size;       /* bytes of the texels without padding */
    uint64_t row_pitch;          /* bytes from row to row; 0: the order is the backend's own */
    uint64_t slice_pitch;        /* bytes from slice to slice of a 3D image; 0: likewise */
    uint32_t native_format;      /* VkFormat, if the image was created from a native description;
                                    channels and usage are 0 then */
    quire_allocation_info place; /* place.size has the bytes that the image holds */
    uint64_t unused[4];
} quire_image_info;

/* ---- buffers -------------------------------------------------------------------------------- */

/*
 * Creates a buffer: creates the native object, allocates its range and binds them. Errors as
 * quire_allocate; UNSUPPORTED (the memory's kind cannot hold the buffer).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_buffer_create(quire_memory *memory,
                                                          const quire_buffer_options *options,
                                                          quire_buffer *buffer);

/*
 * Creates a buffer in the first of `count` memories, at least one, that can hold it and has room.
 * Order, *chosen and errors as quire_allocate_fallback. A memory whose kind cannot hold the buffer
 * is skipped.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_buffer_create_fallback(
    quire_memory *const *memories, uint32_t count, const quire_buffer_options *options,
    uint32_t *chosen, quire_buffer *buffer);

/* Writes the description of a buffer. Errors: those of handles. */
QUIRE_API QUIRE_MUST_USE quire_result quire_buffer_get_info(const quire_memory *memory,
                                                            quire_buffer buffer,
                                                            quire_buffer_info *info);

/* ---- images --------------------------------------------------------------------------------- */

/*
 * Creates an image, as quire_buffer_create does a buffer. Errors as quire_buffer_create;
 * UNSUPPORTED also if the backend has no such images.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_image_create(quire_memory *memory,
                                                         const quire_image_options *options,
                                                         quire_image *image);

/* Like quire_buffer_create_fallback, for an image. */
QUIRE_API QUIRE_MUST_USE quire_result quire_image_create_fallback(
    quire_memory *const *memories, uint32_t count, const quire_image_options *options,
    uint32_t *chosen, quire_image *image);

/* Writes the description of an image. Errors: those of handles. */
QUIRE_API QUIRE_MUST_USE quire_result quire_image_get_info(const quire_memory *memory,
                                                           quire_image image,
                                                           quire_image_info *info);

/* Requirements of a native object on its memory. */
typedef struct quire_requirements {
    uint64_t size;      /* bytes */
    uint64_t alignment; /* bytes */
    uint32_t kind_mask; /* bit i: kind i can hold it */
    bool dedicated;     /* the driver requires a dedicated page: see quire_page_request.object */
    /* The driver prefers a dedicated page and accepts a shared one. It gets one while less than
       three quarters of the pages exist that the device may have (quire_limits.max_pages, or
       quire_device_set_page_limit if that is lower), unless there is no memory for it or the memory
       is QUIRE_DEDICATED_NEVER. */
    bool prefers_dedicated;
    uint64_t row_pitch;   /* bytes, of a linear image */
    uint64_t slice_pitch; /* bytes, of a linear image */
    uint64_t unused[4];
} quire_requirements;

/*
 * Writes what an image would need, without creating memory. Errors: INVALID_ARGUMENT, UNSUPPORTED
 * (such an image cannot be created), and errors of the backend.
 */
QUIRE_API QUIRE_MUST_USE quire_result
quire_image_get_requirements(const quire_device *device, const quire_image_options *options,
                             quire_requirements *requirements);

/* Returns the bytes of one channel of a type; 0 for an unknown type. Thread-safe. */
QUIRE_API uint32_t quire_channel_size(quire_channel_type type);

#ifdef __cplusplus
}
#endif

#endif
