/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * object.h - buffers and images, from quire's options, from a create info of the caller, or created
 * by the caller: creation, memory requirements, binding.
 */
#ifndef QUIRE_BACKENDS_VULKAN_OBJECT_H
#define QUIRE_BACKENDS_VULKAN_OBJECT_H

#include "backends/vulkan/external.h"

/* An object in Vulkan's terms; quire_object_request.description points to it. Without `existing`
   either `buffer` or `image` is set; with it, one of them if the caller gave the create info. */
typedef struct qi_vulkan_description {
    const VkBufferCreateInfo *buffer;
    const VkImageCreateInfo *image;
    uint64_t existing;     /* an object of the caller's */
    const char *name;      /* NULL: no name */
    qi_vulkan_types types; /* of the page that an alias goes to; for others the request says it */
    bool is_linear;        /* an image of linear tiling */
    /* Receives the usage of the buffer (0: unknown), for a page that is dedicated to it. NULL: the
       object gets no such page. */
    VkBufferUsageFlags *usage;
} qi_vulkan_description;

/* ---- create infos ------------------------------------------------------------------------- */

/* Whether the create flags of a buffer or an image make it sparse. */
bool qi_vulkan_is_sparse(VkFlags flags);

/* UNSUPPORTED if the description needs a sparse feature that is not enabled. Accepts objects that
   are not sparse. */
QUIRE_MUST_USE quire_result qi_vulkan_check_sparse(const qi_vulkan *vulkan,
                                                   const qi_vulkan_description *own);

/* Returns the usage of a create info, which can be in its chain. */
VkBufferUsageFlags qi_vulkan_usage_of(const VkBufferCreateInfo *info);

/* ---- entries of the backend table --------------------------------------------------------- */

quire_result qi_vulkan_object_create(void *state, const quire_object_request *request,
                                     uint64_t *native, quire_requirements *requirements);
quire_result qi_vulkan_object_bind(void *state, quire_object object, uint64_t native,
                                   const quire_native_page *page, uint64_t offset);
quire_result qi_vulkan_image_requirements(void *state, const quire_image_options *options,
                                          quire_requirements *requirements);

/* ---- objects ------------------------------------------------------------------------------ */

/* Destroys an object immediately. The device must not use it any more. */
void qi_vulkan_object_destroy_now(const qi_vulkan *vulkan, quire_object object, uint64_t native);

/* Queries the requirements of an existing object. */
void qi_vulkan_query_object(const qi_vulkan *vulkan, quire_object object, uint64_t native,
                            quire_requirements *out);

/* Queries the requirements of an object without keeping the object. */
QUIRE_MUST_USE quire_result qi_vulkan_query_buffer(const qi_vulkan *vulkan,
                                                   const VkBufferCreateInfo *info,
                                                   quire_requirements *out);
QUIRE_MUST_USE quire_result qi_vulkan_query_image(const qi_vulkan *vulkan,
                                                  const VkImageCreateInfo *info,
                                                  quire_requirements *out);

/* Names a native object for debugging tools. Does nothing without VK_EXT_debug_utils, and for a
   NULL name. */
void qi_vulkan_set_name(const qi_vulkan *vulkan, VkObjectType type, uint64_t native,
                        const char *name);

/* ---- limits of images --------------------------------------------------------------------- */

/* Create and destroy the table of the device's limits. */
QUIRE_MUST_USE quire_result qi_vulkan_image_limits_init(qi_vulkan *vulkan);
void qi_vulkan_image_limits_finish(qi_vulkan *vulkan);

#endif
