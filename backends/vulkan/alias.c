/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * alias.c - additional buffers and images that share the bytes of an allocation.
 *
 * An alias holds the allocation, so that the allocation outlives it, and is attached to the memory,
 * which destroys it at the latest. The record does not change after its creation: it needs no lock.
 */
#include <string.h>

#include "backends/vulkan/deferred_destroy.h"
#include "backends/vulkan/device.h"
#include "backends/vulkan/object.h"
#include "src/base/bits.h"
#include "src/base/result.h"

struct quire_vulkan_alias {
    quire_attachment attachment; /* first: the core passes it to `end` */
    qi_vulkan *vulkan;
    quire_memory *memory;
    quire_allocation allocation; /* held; {0}: not held yet */
    quire_object object;
    uint64_t native;
    char *name;
    uint64_t offset; /* bytes from the start of the allocation */
    uint64_t size;   /* bytes that the object occupies */
};

/* ---- the place ---------------------------------------------------------------------------- */

static quire_result check_kind(const quire_memory_info *info,
                               const quire_requirements *requirements)
{
    if (!(requirements->kind_mask >> info->kind & 1))
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "memory '%s' has kind %u: the object needs one of the kinds 0x%x",
                            info->name, info->kind, requirements->kind_mask);
    return requirements->dedicated ? qi_fail(QUIRE_ERROR_UNSUPPORTED,
                                             "the driver requires a dedicated page for the object")
                                   : QUIRE_SUCCESS;
}

/* Raises size and alignment to bufferImageGranularity, if a neighbour of the allocation can have
   the other tiling. */
static quire_result apply_granularity(const qi_vulkan *vulkan, const qi_vulkan_description *own,
                                      const quire_native *place, quire_requirements *requirements)
{
    uint64_t granularity = vulkan->limits.bufferImageGranularity;
    bool is_optimal = own->image && own->image->tiling != VK_IMAGE_TILING_LINEAR;
    if (is_optimal == place->is_among_images || granularity <= 1)
        return QUIRE_SUCCESS;
    if (requirements->alignment < granularity)
        requirements->alignment = granularity;
    return qi_align_up_overflows(requirements->size, granularity, &requirements->size)
               ? qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE, "an image of %u byte%s", requirements->size)
               : QUIRE_SUCCESS;
}

/* The object must be within the allocation. Its alignment applies to the offset in the page. */
static quire_result check_place(const quire_native *place, uint64_t offset,
                                const quire_requirements *requirements)
{
    const qi_vulkan_page *page = qi_vulkan_page_of(&place->page);
    if (page->dedicated_to != QUIRE_OBJECT_NONE)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "the allocation's page is dedicated to another object");
    if (!qi_range_fits(offset, requirements->size, place->size))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                            "an object of %u byte%s at %u of an allocation of %u byte%s",
                            requirements->size, offset, place->size);
    if ((place->offset + offset) % requirements->alignment)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "an object with alignment %u at byte %u of a page",
                            requirements->alignment, place->offset + offset);
    return QUIRE_SUCCESS;
}

/* ---- creation and destruction ------------------------------------------------------------- */

/* Destroys an alias, however far its creation got. The object goes before the allocation is
   released. */
static void destroy(quire_vulkan_alias *a)
{
    qi_host *host = &a->vulkan->host;
    if (a->native)
        qi_vulkan_object_destroy(a->vulkan, a->object, a->native);
    if (a->allocation.id)
        quire_allocation_release(a->memory, a->allocation);
    qi_host_release_text(host, a->name);
    qi_host_release(host, a, 1, sizeof *a);
}

/* The core calls this when the memory is destroyed with its attachments. */
static void end(quire_attachment *attachment)
{
    quire_vulkan_alias *a = (quire_vulkan_alias *)attachment;
    quire_memory_detach(a->memory, attachment);
    destroy(a);
}

static quire_result set_name(quire_vulkan_alias *a, const char *name)
{
    if (!name)
        return QUIRE_SUCCESS;
    a->name = qi_host_copy_text(&a->vulkan->host, name);
    a->attachment.name = a->name;
    return a->name ? QUIRE_SUCCESS
                   : qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a name");
}

/* Holds the allocation, then creates the object and binds it. After a failure the caller destroys
   the alias. */
static quire_result make(quire_vulkan_alias *a, qi_vulkan_description *own,
                         quire_allocation allocation, const quire_memory_info *info,
                         const char *name)
{
    const quire_object_request request = {.object = a->object, .description = own};
    quire_requirements requirements = {.size = 0};
    quire_native place;
    quire_result result = quire_allocation_hold(a->memory, allocation);
    if (result)
        return result;
    a->allocation = allocation;
    result = quire_allocation_get_native(a->memory, allocation, &place);
    if (!result)
        result = set_name(a, name);
    own->name = a->name;
    if (!result)
        own->types = qi_vulkan_types_of(qi_vulkan_page_of(&place.page));
    if (!result)
        result = qi_vulkan_object_create(a->vulkan, &request, &a->native, &requirements);
    if (!result)
        result = check_kind(info, &requirements);
    if (!result)
        result = apply_granularity(a->vulkan, own, &place, &requirements);
    if (!result)
        result = check_place(&place, a->offset, &requirements);
    if (result)
        return result;
    a->size = requirements.size;
    return qi_vulkan_object_bind(a->vulkan, a->object, a->native, &place.page,
                                 place.offset + a->offset);
}

/* Checks the arguments before the driver is called. */
static quire_result check(const qi_vulkan_description *own,
                          const quire_vulkan_alias_options *options)
{
    if (own->buffer && !own->buffer->size)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the size of the buffer is 0");
    if (qi_vulkan_is_sparse(own->buffer ? own->buffer->flags : own->image->flags))
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "a sparse object has allocations of its own: see "
                       "quire_vulkan_sparse_buffer_create and quire_vulkan_sparse_image_create");
    if (options->name && strlen(options->name) > QUIRE_MAX_NAME)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "a name of more than %u byte%s",
                            QUIRE_MAX_NAME);
    return qi_check_unused(options, "quire_vulkan_alias_options");
}

static quire_result create(quire_memory *memory, quire_allocation allocation,
                           qi_vulkan_description own, const quire_vulkan_alias_options *options,
                           quire_vulkan_alias **alias)
{
    const quire_vulkan_alias_options given = options ? *options : (quire_vulkan_alias_options){0};
    quire_memory_info info;
    qi_vulkan *vulkan = NULL;
    quire_result result = qi_vulkan_of_memory(memory, &vulkan);
    if (!result)
        result = quire_memory_get_info(memory, &info);
    if (!result)
        result = check(&own, &given);
    if (result)
        return result;
    quire_vulkan_alias *a = qi_host_allocate(&vulkan->host, 1, sizeof *a);
    if (!a)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for an alias");
    a->attachment.end = end;
    a->vulkan = vulkan;
    a->memory = memory;
    a->object = own.buffer ? QUIRE_OBJECT_BUFFER : QUIRE_OBJECT_IMAGE;
    a->offset = given.offset;
    result = make(a, &own, allocation, &info, given.name);
    if (result) {
        destroy(a);
        return result;
    }
    quire_memory_attach(memory, &a->attachment);
    *alias = a;
    return QUIRE_SUCCESS;
}

/* ---- public calls ------------------------------------------------------------------------- */

quire_result quire_vulkan_alias_buffer_create(quire_memory *memory, quire_allocation allocation,
                                              const VkBufferCreateInfo *info,
                                              const quire_vulkan_alias_options *options,
                                              quire_vulkan_alias **alias)
{
    if (alias)
        *alias = NULL;
    if (!memory || !info || !alias)
        return qi_fail_null("quire_vulkan_alias_buffer_create", !memory ? "memory"
                                                                : !info ? "info"
                                                                        : "alias");
    return create(memory, allocation, (qi_vulkan_description){.buffer = info}, options, alias);
}

quire_result quire_vulkan_alias_image_create(quire_memory *memory, quire_allocation allocation,
                                             const VkImageCreateInfo *info,
                                             const quire_vulkan_alias_options *options,
                                             quire_vulkan_alias **alias)
{
    if (alias)
        *alias = NULL;
    if (!memory || !info || !alias)
        return qi_fail_null("quire_vulkan_alias_image_create", !memory ? "memory"
                                                               : !info ? "info"
                                                                       : "alias");
    return create(memory, allocation, (qi_vulkan_description){.image = info}, options, alias);
}

quire_result quire_vulkan_alias_destroy(quire_vulkan_alias **alias)
{
    if (!alias)
        return qi_fail_null("quire_vulkan_alias_destroy", "alias");
    quire_vulkan_alias *destroyed = *alias;
    *alias = NULL;
    if (destroyed)
        end(&destroyed->attachment);
    return QUIRE_SUCCESS;
}

quire_result quire_vulkan_alias_get_info(const quire_vulkan_alias *alias,
                                         quire_vulkan_alias_info *info)
{
    if (info)
        *info = (quire_vulkan_alias_info){.size = 0};
    if (!alias || !info)
        return qi_fail_null("quire_vulkan_alias_get_info", !alias ? "alias" : "info");
    quire_result result = qi_vulkan_check_process(alias->vulkan);
    if (result)
        return result;
    bool is_buffer = alias->object == QUIRE_OBJECT_BUFFER;
    *info = (quire_vulkan_alias_info){
        .memory = alias->memory,
        .allocation = alias->allocation,
        .offset = alias->offset,
        .size = alias->size,
        .buffer = QI_VULKAN_HANDLE(VkBuffer, is_buffer ? alias->native : 0),
        .image = QI_VULKAN_HANDLE(VkImage, is_buffer ? 0 : alias->native),
    };
    return QUIRE_SUCCESS;
}
