/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/lluvia.h - helpers for images of the Vulkan backend, as Lluvia has them: views with
 * samplers, changes of the layout, and copies of all texels.
 *
 * Programs that create their own views and record their own commands need none of it. In a build
 * without the Vulkan backend every function here returns UNSUPPORTED. docs/vulkan.md has more.
 *
 * Thread-safety: any thread may call any function on live objects. One thread at a time changes an
 * image.
 *
 * Errors: as those of quire/vulkan.h.
 */
#ifndef QUIRE_LLUVIA_H
#define QUIRE_LLUVIA_H

#include "quire/vulkan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum quire_lluvia_filter {
    QUIRE_LLUVIA_NEAREST = 0,
    QUIRE_LLUVIA_LINEAR
} quire_lluvia_filter;

/* {0}: a view of the whole image without a sampler. */
typedef struct quire_lluvia_view_options {
    bool sampled; /* create a sampler from the fields below */
    quire_lluvia_filter filter;
    VkSamplerAddressMode address_u, address_v, address_w; /* 0: VK_SAMPLER_ADDRESS_MODE_REPEAT;
        with unnormalized coordinates only the two CLAMP_TO modes (edge, border) for u and v */
    bool unnormalized;  /* coordinates in texels, for 1D and 2D images; otherwise from 0 to 1 */
    uint64_t unused[4]; /* must be zero */
} quire_lluvia_view_options;

typedef struct quire_lluvia_view {
    VkImageView view;
    VkSampler sampler; /* VK_NULL_HANDLE: not sampled */
} quire_lluvia_view;

/*
 * Create a view of an image that quire_image_create or quire_vulkan_image_create made: first mip
 * level and layer, colour aspect. The caller destroys it before the image is freed. NULL options
 * mean {0}. Errors: INVALID_ARGUMENT, UNSUPPORTED (an image of the caller, whose form quire does
 * not know; or an address mode that quire does not offer).
 */
QUIRE_API QUIRE_MUST_USE quire_result
quire_lluvia_view_create(quire_memory *memory, quire_image image,
                         const quire_lluvia_view_options *options, quire_lluvia_view *view);
QUIRE_API quire_result quire_lluvia_view_destroy(quire_device *device, quire_lluvia_view *view);

/*
 * Changes the layout of an image from `before` to `after`; complete on return. The caller tracks
 * layouts. With UNDEFINED as `before` the contents may be lost. Errors: INVALID_ARGUMENT,
 * UNSUPPORTED (no queue).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_lluvia_image_set_layout(quire_memory *memory,
                                                                    quire_image image,
                                                                    VkImageLayout before,
                                                                    VkImageLayout after);

/*
 * Copy all texels of an image that quire_image_create made, packed without padding, x first;
 * complete on return. They cost a submission for each half of the staging ring that the texels fill
 * (quire_vulkan_settings.staging_size), and a wait for the last one. `size` must be
 * quire_image_info.minimum_size. A write expects the image in layout `before` and leaves it in
 * `after`. A read expects and leaves it in `layout`. The image needs the transfer usage. On failure
 * the layout is unknown. Errors: INVALID_ARGUMENT, OUT_OF_RANGE (another size), UNSUPPORTED (no
 * queue, or an image that quire_image_create did not make).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_lluvia_image_write(quire_memory *memory,
                                                               quire_image image,
                                                               VkImageLayout before,
                                                               VkImageLayout after,
                                                               const void *data, uint64_t size);
QUIRE_API QUIRE_MUST_USE quire_result quire_lluvia_image_read(quire_memory *memory,
                                                              quire_image image,
                                                              VkImageLayout layout, void *data,
                                                              uint64_t size);

#ifdef __cplusplus
}
#endif

#endif
