/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * create_info.c - objects that the caller describes with Vulkan's create infos, or created itself.
 * The core allocates: it passes the description back to qi_vulkan_object_create, places the object
 * by the requirements that this function returns, and binds it.
 */
#include "backends/vulkan/device.h"
#include "backends/vulkan/object.h"
#include "src/base/result.h"

/* ---- requirements ------------------------------------------------------------------------- */

/* Vulkan forbids buffers of size 0. */
static quire_result check_buffer_info(const VkBufferCreateInfo *info)
{
    if (!info->size)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the size of the buffer is 0");
    return QUIRE_SUCCESS;
}

quire_result quire_vulkan_buffer_requirements(quire_device *device, const VkBufferCreateInfo *info,
                                              quire_requirements *requirements)
{
    if (!info || !requirements)
        return qi_fail_null("quire_vulkan_buffer_requirements", !info ? "info" : "requirements");
    *requirements = (quire_requirements){0};
    const qi_vulkan *vulkan = qi_vulkan_of(device);
    if (!vulkan)
        return quire_last_result();
    quire_result result = check_buffer_info(info);
    if (!result)
        result = qi_vulkan_check_sparse(vulkan, &(qi_vulkan_description){.buffer = info});
    return result ? result : qi_vulkan_query_buffer(vulkan, info, requirements);
}

quire_result quire_vulkan_image_requirements(quire_device *device, const VkImageCreateInfo *info,
                                             quire_requirements *requirements)
{
    if (!info || !requirements)
        return qi_fail_null("quire_vulkan_image_requirements", !info ? "info" : "requirements");
    *requirements = (quire_requirements){0};
    const qi_vulkan *vulkan = qi_vulkan_of(device);
    return vulkan ? qi_vulkan_query_image(vulkan, info, requirements) : quire_last_result();
}

/* ---- what the core is asked for ----------------------------------------------------------- */

/* An allocation is one range; a sparse object has several parts. */
static quire_result refuse_sparse(VkFlags flags)
{
    return qi_vulkan_is_sparse(flags)
               ? qi_fail(QUIRE_ERROR_UNSUPPORTED,
                         "a sparse object has parts: see quire_vulkan_sparse_buffer_create and "
                         "quire_vulkan_sparse_image_create")
               : QUIRE_SUCCESS;
}

/* What the core is asked for. Must not be moved: the options point to the description. */
typedef struct wanted {
    qi_vulkan_description own;
    VkBufferUsageFlags usage; /* own.usage points to it */
    quire_object_options object;
} wanted;

/* Three options are for objects that the caller created. Their create info must be of the object's
   type. */
static quire_result check_options(const wanted *w, const quire_vulkan_object_options *options)
{
    const VkBaseInStructure *info = options->create_info;
    VkStructureType type = w->object.object == QUIRE_OBJECT_BUFFER
                               ? VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO
                               : VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO;
    if (info && !w->own.existing)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_vulkan_object_options.create_info is of an object that the caller "
                       "created: see quire_vulkan_buffer_place and quire_vulkan_image_place");
    if (info && info->sType != type)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "quire_vulkan_object_options.create_info has sType %u: %u is expected",
                            (uint64_t)info->sType, (uint64_t)type);
    if (options->tiling && (!w->own.existing || w->object.object != QUIRE_OBJECT_IMAGE))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_vulkan_object_options.tiling is of an image that the caller created: "
                       "see quire_vulkan_image_place");
    if ((uint32_t)options->tiling > QUIRE_TILING_LINEAR)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "quire_vulkan_object_options.tiling %u is unknown",
                            (uint64_t)options->tiling);
    if (options->unbound && !w->own.existing)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_vulkan_object_options.unbound is for an object that the caller "
                       "created: see quire_vulkan_buffer_place and quire_vulkan_image_place");
    return qi_check_unused(options, "quire_vulkan_object_options");
}

/* Adds the options of the caller. `own` and what they lack in `object` are set. */
static quire_result add_options(wanted *w, const quire_vulkan_object_options *options)
{
    const quire_vulkan_object_options given = options ? *options : (quire_vulkan_object_options){0};
    quire_result result = check_options(w, &given);
    if (result)
        return result;
    w->usage = 0;
    w->own.name = given.name;
    w->own.usage = &w->usage;
    w->object.description = &w->own;
    w->object.borrowed = w->own.existing != 0;
    w->object.unbound = given.unbound;
    w->object.alignment = given.alignment;
    w->object.name = given.name;
    w->object.user_data = given.user_data;
    w->object.zero = given.zero;
    w->object.dedicated = given.dedicated;
    w->object.host_read = given.host_read;
    w->object.host_write = given.host_write;
    w->object.mapped = given.mapped;
    w->object.existing_pages = given.existing_pages;
    w->object.within_budget = given.within_budget;
    w->object.stream = given.stream;
    w->object.info = given.info;
    return QUIRE_SUCCESS;
}

static quire_result want_buffer(const VkBufferCreateInfo *info,
                                const quire_vulkan_object_options *options, wanted *w)
{
    *w = (wanted){
        .own = {.buffer = info},
        .object = {.object = QUIRE_OBJECT_BUFFER, .described = {.buffer = {.size = info->size}}}};
    quire_result result = check_buffer_info(info);
    if (!result)
        result = refuse_sparse(info->flags);
    return result ? result : add_options(w, options);
}

/* Describes an image of the caller's for quire_image_get_info. The channels stay unknown. */
static quire_image_info info_of(const VkImageCreateInfo *info)
{
    return (quire_image_info){
        .width = info->extent.width,
        .height = info->extent.height,
        .depth = info->extent.depth,
        .tiling =
            info->tiling == VK_IMAGE_TILING_LINEAR ? QUIRE_TILING_LINEAR : QUIRE_TILING_OPTIMAL,
        .dimensions = (uint32_t)info->imageType + 1,
        .native_format = (uint32_t)info->format,
    };
}

static quire_result want_image(const VkImageCreateInfo *info,
                               const quire_vulkan_object_options *options, wanted *w)
{
    *w = (wanted){.own = {.image = info},
                  .object = {.object = QUIRE_OBJECT_IMAGE,
                             .optimal = info->tiling != VK_IMAGE_TILING_LINEAR,
                             .described = {.image = info_of(info)}}};
    w->own.is_linear = !w->object.optimal;
    quire_result result = refuse_sparse(info->flags);
    return result ? result : add_options(w, options);
}

/* Begins each function: zeroes the handle and the info that the caller asked for. */
static void zero_outputs(quire_allocation *allocation, const quire_vulkan_object_options *options)
{
    if (allocation)
        *allocation = (quire_allocation){0};
    if (options && options->info)
        *options->info = (quire_allocation_info){0};
}

/* ---- in one memory ------------------------------------------------------------------------ */

quire_result quire_vulkan_buffer_create(quire_memory *memory, const VkBufferCreateInfo *info,
                                        const quire_vulkan_object_options *options,
                                        quire_buffer *buffer)
{
    wanted w;
    zero_outputs(buffer ? &buffer->allocation : NULL, options);
    if (!memory || !info || !buffer)
        return qi_fail_null("quire_vulkan_buffer_create", !memory ? "memory"
                                                          : !info ? "info"
                                                                  : "buffer");
    quire_result result = want_buffer(info, options, &w);
    if (!result)
        result = qi_vulkan_check_memory(memory);
    return result ? result : quire_object_create(memory, &w.object, &buffer->allocation);
}

quire_result quire_vulkan_image_create(quire_memory *memory, const VkImageCreateInfo *info,
                                       const quire_vulkan_object_options *options,
                                       quire_image *image)
{
    wanted w;
    zero_outputs(image ? &image->allocation : NULL, options);
    if (!memory || !info || !image)
        return qi_fail_null("quire_vulkan_image_create", !memory ? "memory"
                                                         : !info ? "info"
                                                                 : "image");
    quire_result result = want_image(info, options, &w);
    if (!result)
        result = qi_vulkan_check_memory(memory);
    return result ? result : quire_object_create(memory, &w.object, &image->allocation);
}

/* ---- objects of the caller ---------------------------------------------------------------- */

/* A placed object belongs to the caller: quire does not destroy it, and binds it unless the caller
   does. */
static quire_result want_placed_buffer(VkBuffer native, const quire_vulkan_object_options *options,
                                       wanted *w)
{
    *w = (wanted){.own = {.existing = QI_VULKAN_NUMBER(native)},
                  .object = {.object = QUIRE_OBJECT_BUFFER}};
    quire_result result = add_options(w, options);
    if (result)
        return result;
    w->own.buffer = options ? options->create_info : NULL;
    if (w->own.buffer)
        w->object.described.buffer.size = w->own.buffer->size;
    return QUIRE_SUCCESS;
}

static quire_result want_placed_image(VkImage native, const quire_vulkan_object_options *options,
                                      wanted *w)
{
    *w = (wanted){.own = {.existing = QI_VULKAN_NUMBER(native)},
                  .object = {.object = QUIRE_OBJECT_IMAGE}};
    quire_result result = add_options(w, options);
    if (result)
        return result;
    w->own.image = options ? options->create_info : NULL;
    w->own.is_linear = options && options->tiling == QUIRE_TILING_LINEAR;
    if (w->own.image) {
        bool is_linear = w->own.image->tiling == VK_IMAGE_TILING_LINEAR;
        if (w->own.is_linear && !is_linear)
            return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                           "quire_vulkan_object_options.tiling is linear, and that of the create "
                           "info is not");
        w->own.is_linear = is_linear;
        w->object.described.image = info_of(w->own.image);
    }
    w->object.optimal = !w->own.is_linear;
    return QUIRE_SUCCESS;
}

quire_result quire_vulkan_buffer_place(quire_memory *memory, VkBuffer native,
                                       const quire_vulkan_object_options *options,
                                       quire_buffer *buffer)
{
    wanted w;
    zero_outputs(buffer ? &buffer->allocation : NULL, options);
    if (!memory || !native || !buffer)
        return qi_fail_null("quire_vulkan_buffer_place", !memory   ? "memory"
                                                         : !native ? "native"
                                                                   : "buffer");
    quire_result result = want_placed_buffer(native, options, &w);
    if (!result)
        result = qi_vulkan_check_memory(memory);
    return result ? result : quire_object_create(memory, &w.object, &buffer->allocation);
}

quire_result quire_vulkan_image_place(quire_memory *memory, VkImage native,
                                      const quire_vulkan_object_options *options,
                                      quire_image *image)
{
    wanted w;
    zero_outputs(image ? &image->allocation : NULL, options);
    if (!memory || !native || !image)
        return qi_fail_null("quire_vulkan_image_place", !memory   ? "memory"
                                                        : !native ? "native"
                                                                  : "image");
    quire_result result = want_placed_image(native, options, &w);
    if (!result)
        result = qi_vulkan_check_memory(memory);
    return result ? result : quire_object_create(memory, &w.object, &image->allocation);
}

/* ---- in one of several memories ----------------------------------------------------------- */

/* The core checks the list for nulls. */
static quire_result check_memories(quire_memory *const *memories, uint32_t count)
{
    quire_result result = QUIRE_SUCCESS;
    for (uint32_t i = 0; memories && i < count && !result; i++)
        if (memories[i])
            result = qi_vulkan_check_memory(memories[i]);
    return result;
}

quire_result quire_vulkan_buffer_create_fallback(quire_memory *const *memories, uint32_t count,
                                                 const VkBufferCreateInfo *info,
                                                 const quire_vulkan_object_options *options,
                                                 uint32_t *chosen, quire_buffer *buffer)
{
    wanted w;
    zero_outputs(buffer ? &buffer->allocation : NULL, options);
    if (chosen)
        *chosen = 0;
    if (!info || !buffer)
        return qi_fail_null("quire_vulkan_buffer_create_fallback", !info ? "info" : "buffer");
    quire_result result = want_buffer(info, options, &w);
    if (!result)
        result = check_memories(memories, count);
    return result ? result
                  : quire_object_create_fallback(memories, count, &w.object, chosen,
                                                 &buffer->allocation);
}

quire_result quire_vulkan_image_create_fallback(quire_memory *const *memories, uint32_t count,
                                                const VkImageCreateInfo *info,
                                                const quire_vulkan_object_options *options,
                                                uint32_t *chosen, quire_image *image)
{
    wanted w;
    zero_outputs(image ? &image->allocation : NULL, options);
    if (chosen)
        *chosen = 0;
    if (!info || !image)
        return qi_fail_null("quire_vulkan_image_create_fallback", !info ? "info" : "image");
    quire_result result = want_image(info, options, &w);
    if (!result)
        result = check_memories(memories, count);
    return result ? result
                  : quire_object_create_fallback(memories, count, &w.object, chosen,
                                                 &image->allocation);
}

/* ---- in a default memory ------------------------------------------------------------------ */

/* Begins each function: zeroes the outputs, and checks the pointers and the device. `missing` names
   the create info or the object if it is null. */
static quire_result begin_on_device(const quire_device *device, const char *missing,
                                    const quire_vulkan_object_options *options,
                                    quire_memory **memory, quire_allocation *allocation,
                                    const char *call)
{
    zero_outputs(allocation, options);
    if (memory)
        *memory = NULL;
    if (missing || !memory || !allocation)
        return qi_fail_null(call, missing   ? missing
                                  : !memory ? "memory"
                                            : "the output for the handle");
    return qi_vulkan_of(device) ? QUIRE_SUCCESS : quire_last_result();
}

quire_result quire_vulkan_device_buffer_create(quire_device *device,
                                               const quire_kind_request *kinds,
                                               const VkBufferCreateInfo *info,
                                               const quire_vulkan_object_options *options,
                                               quire_memory **memory, quire_buffer *buffer)
{
    wanted w;
    quire_allocation *allocation = buffer ? &buffer->allocation : NULL;
    quire_result result = begin_on_device(device, info ? NULL : "info", options, memory, allocation,
                                          "quire_vulkan_device_buffer_create");
    if (!result)
        result = want_buffer(info, options, &w);
    return result ? result
                  : quire_device_object_create(device, kinds, &w.object, memory, allocation);
}

quire_result quire_vulkan_device_image_create(quire_device *device, const quire_kind_request *kinds,
                                              const VkImageCreateInfo *info,
                                              const quire_vulkan_object_options *options,
                                              quire_memory **memory, quire_image *image)
{
    wanted w;
    quire_allocation *allocation = image ? &image->allocation : NULL;
    quire_result result = begin_on_device(device, info ? NULL : "info", options, memory, allocation,
                                          "quire_vulkan_device_image_create");
    if (!result)
        result = want_image(info, options, &w);
    return result ? result
                  : quire_device_object_create(device, kinds, &w.object, memory, allocation);
}

quire_result quire_vulkan_device_buffer_place(quire_device *device, const quire_kind_request *kinds,
                                              VkBuffer native,
                                              const quire_vulkan_object_options *options,
                                              quire_memory **memory, quire_buffer *buffer)
{
    wanted w;
    quire_allocation *allocation = buffer ? &buffer->allocation : NULL;
    quire_result result = begin_on_device(device, native ? NULL : "native", options, memory,
                                          allocation, "quire_vulkan_device_buffer_place");
    if (!result)
        result = want_placed_buffer(native, options, &w);
    return result ? result
                  : quire_device_object_create(device, kinds, &w.object, memory, allocation);
}

quire_result quire_vulkan_device_image_place(quire_device *device, const quire_kind_request *kinds,
                                             VkImage native,
                                             const quire_vulkan_object_options *options,
                                             quire_memory **memory, quire_image *image)
{
    wanted w;
    quire_allocation *allocation = image ? &image->allocation : NULL;
    quire_result result = begin_on_device(device, native ? NULL : "native", options, memory,
                                          allocation, "quire_vulkan_device_image_place");
    if (!result)
        result = want_placed_image(native, options, &w);
    return result ? result
                  : quire_device_object_create(device, kinds, &w.object, memory, allocation);
}
