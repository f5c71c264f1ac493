/*
 * alias.c - further buffers and images on the bytes of an allocation.
 *
 * An alias holds the allocation, so that its place outlasts it, and is attached to the memory. Its
 * record does not change, so that no lock is needed.
 */
#include <string.h>

#include "backends/vulkan/vulkan.h"
#include "src/base/bits.h"
#include "src/base/result.h"

struct quire_vulkan_alias {
    quire_attachment attachment; /* first: the core's end is given it */
    qi_vulkan *vulkan;
    quire_memory *memory;
    quire_allocation allocation; /* held; {0}: not yet */
    quire_object object;
    uint64_t native;
    char *name;
    uint64_t offset; /* in the allocation */
    uint64_t size;   /* that the object takes */
};

/* ---- where it is to lie ------------------------------------------------------------------- */

static quire_result check_kind(const quire_memory_info *info, const quire_requirements *needs)
{
    if (!(needs->kind_mask >> info->kind & 1))
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "memory '%s' is of kind %u, and the object can lie in kinds 0x%x",
                            info->name, info->kind, needs->kind_mask);
    return needs->dedicated ? qi_fail(QUIRE_ERROR_UNSUPPORTED,
                                      "the driver requires memory of its own for the object")
                            : QUIRE_SUCCESS;
}

/* Neighbours of the allocation may be of the other tiling. */
static quire_result keep_granularity(const qi_vulkan *vulkan, const qi_vulkan_description *own,
                                     quire_requirements *needs)
{
    uint64_t granularity = vulkan->limits.bufferImageGranularity;
    bool is_optimal = own->image && own->image->tiling != VK_IMAGE_TILING_LINEAR;
    if (!is_optimal || granularity <= 1)
        return QUIRE_SUCCESS;
    if (needs->alignment < granularity)
        needs->alignment = granularity;
    return qi_align_up_overflows(needs->size, granularity, &needs->size)
               ? qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE, "an image of %u bytes", needs->size)
               : QUIRE_SUCCESS;
}

static quire_result check_place(const quire_native *place, uint64_t offset,
                                const quire_requirements *needs)
{
    const qi_vulkan_page *page = qi_vulkan_page_of(&place->page);
    if (page->tied != QUIRE_OBJECT_NONE)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "the allocation's page is dedicated to the object that lies there");
    if (!qi_range_fits(offset, needs->size, place->size))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                            "an object of %u bytes at %u of an allocation of %u bytes", needs->size,
                            offset, place->size);
    if ((place->offset + offset) % needs->alignment)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "an object that is aligned to %u at byte %u of a page",
                            needs->alignment, place->offset + offset);
    return QUIRE_SUCCESS;
}

/* ---- made and ended ----------------------------------------------------------------------- */

/* In any state of its making. */
static void finish(quire_vulkan_alias *a)
{
    qi_host *host = &a->vulkan->host;
    if (a->native)
        qi_vulkan_object_destroy(a->vulkan, a->object, a->native);
    if (a->allocation.id)
        qi_ignore(quire_allocation_release(a->memory, a->allocation));
    qi_host_release_text(host, a->name);
    qi_host_release(host, a, 1, sizeof *a);
}

static void end(quire_attachment *attachment)
{
    quire_vulkan_alias *a = (quire_vulkan_alias *)attachment;
    quire_memory_detach(a->memory, attachment);
    finish(a);
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

static quire_result make(quire_vulkan_alias *a, qi_vulkan_description *own,
                         quire_allocation allocation, const quire_memory_info *info,
                         const char *name)
{
    const quire_object_request request = {.object = a->object, .description = own};
    quire_requirements needs = {.size = 0};
    quire_native place;
    quire_result result = quire_allocation_hold(a->memory, allocation);
    if (result)
        return result;
    a->allocation = allocation;
    result = quire_get_native(a->memory, allocation, &place);
    if (!result)
        result = set_name(a, name);
    own->name = a->name;
    if (!result)
        result = qi_vulkan_object_create(a->vulkan, &request, &a->native, &needs);
    if (!result)
        result = check_kind(info, &needs);
    if (!result)
        result = keep_granularity(a->vulkan, own, &needs);
    if (!result)
        result = check_place(&place, a->offset, &needs);
    if (result)
        return result;
    a->size = needs.size;
    return qi_vulkan_object_bind(a->vulkan, a->object, a->native, &place.page,
                                 place.offset + a->offset);
}

static quire_result check(const qi_vulkan_description *own,
                          const quire_vulkan_alias_options *options)
{
    if (own->buffer && !own->buffer->size)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "a buffer of size 0 is asked for");
    if (qi_vulkan_is_sparse(own->buffer ? own->buffer->flags : own->image->flags))
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "a sparse object lies in allocations of its own: see "
                       "quire_vulkan_sparse_buffer_create and quire_vulkan_sparse_image_create");
    if (options->name && strlen(options->name) > QUIRE_MAX_NAME)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "a name of more than %u bytes",
                            QUIRE_MAX_NAME);
    return qi_check_unused(options, "quire_vulkan_alias_options");
}

static quire_result create(quire_memory *memory, quire_allocation allocation,
                           qi_vulkan_description own, const quire_vulkan_alias_options *options,
                           quire_vulkan_alias **alias)
{
    const quire_vulkan_alias_options asked = options ? *options : (quire_vulkan_alias_options){0};
    quire_memory_info info;
    qi_vulkan *vulkan = NULL;
    quire_result result = qi_vulkan_of_memory(memory, &info, &vulkan);
    if (!result)
        result = check(&own, &asked);
    if (result)
        return result;
    quire_vulkan_alias *a = qi_host_allocate(&vulkan->host, 1, sizeof *a);
    if (!a)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for an alias");
    a->attachment.end = end;
    a->vulkan = vulkan;
    a->memory = memory;
    a->object = own.buffer ? QUIRE_OBJECT_BUFFER : QUIRE_OBJECT_IMAGE;
    a->offset = asked.offset;
    result = make(a, &own, allocation, &info, asked.name);
    if (result) {
        finish(a);
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
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_vulkan_alias_buffer_create: memory, info or alias is null");
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
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_vulkan_alias_image_create: memory, info or alias is null");
    return create(memory, allocation, (qi_vulkan_description){.image = info}, options, alias);
}

quire_result quire_vulkan_alias_destroy(quire_vulkan_alias **alias)
{
    if (!alias)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_vulkan_alias_destroy: alias is null");
    quire_vulkan_alias *ending = *alias;
    *alias = NULL;
    if (ending)
        end(&ending->attachment);
    return QUIRE_SUCCESS;
}

quire_result quire_vulkan_alias_get_info(quire_vulkan_alias *alias, quire_vulkan_alias_info *info)
{
    if (info)
        *info = (quire_vulkan_alias_info){.size = 0};
    if (!alias || !info)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_vulkan_alias_get_info: alias or info is null");
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
