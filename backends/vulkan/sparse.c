/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * sparse.c - sparse objects: creation, destruction, information. See sparse.h.
 *
 * An object is attached to its memory, which destroys it at the latest.
 */
#include "backends/vulkan/sparse.h"

#include <string.h>

#include "backends/vulkan/deferred_destroy.h"
#include "backends/vulkan/device.h"
#include "backends/vulkan/object.h"
#include "backends/vulkan/queues.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- destruction -------------------------------------------------------------------------- */

/*
 * Destroys an object, also on behalf of its memory. If a pending change cannot be waited for, the
 * device takes the object over. Its parts are then not freed here: they are freed with the memory,
 * whose pages the device keeps as well (deferred_destroy.h).
 */
static void end(quire_attachment *attachment)
{
    quire_vulkan_sparse *s = (quire_vulkan_sparse *)attachment;
    quire_memory_detach(s->memory, attachment);
    if (!qi_vulkan_sparse_retire(s)) {
        qi_vulkan_sparse_destroy_now(s);
        return;
    }
    s->part_count = s->pending.count = 0;
    qi_vulkan_defer_sparse(s);
}

/* quire_memory_destroy calls this, before it checks what still lives, for an object whose creation
   failed with a pending change. Destroys the object if the change is complete; otherwise the object
   stays attached. */
static void leave(quire_attachment *attachment)
{
    qi_error before;
    qi_error_save(&before);
    if (!qi_vulkan_sparse_retire((quire_vulkan_sparse *)attachment))
        end(attachment);
    qi_error_restore(&before);
}

/* ---- creation ----------------------------------------------------------------------------- */

static quire_result check_options(const quire_vulkan_object_options *options,
                                  const quire_memory_info *info)
{
    if (options->alignment && !qi_is_power_of_two(options->alignment))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "alignment %u is not a power of two",
                            options->alignment);
    if (options->name && strlen(options->name) > QUIRE_MAX_NAME)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "a name of more than %u byte%s",
                            QUIRE_MAX_NAME);
    if ((options->host_read || options->host_write || options->mapped) && !info->mappable)
        return qi_fail_text(QUIRE_ERROR_NOT_HOST_VISIBLE, "memory '%s' cannot be mapped",
                            info->name);
    if (options->create_info)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_vulkan_object_options.create_info is of an object that the caller "
                       "created, and a sparse object is quire's");
    if (options->unbound)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_vulkan_object_options.unbound is set, and quire binds the parts of a "
                       "sparse object");
    return qi_check_unused(options, "quire_vulkan_object_options");
}

/* Sets the options that the allocations of all parts have. */
static quire_result set_options(quire_vulkan_sparse *s, const quire_vulkan_object_options *options)
{
    s->options = (quire_allocation_options){
        .alignment = options->alignment,
        .user_data = options->user_data,
        .zero = options->zero,
        .dedicated = options->dedicated,
        .host_read = options->host_read,
        .host_write = options->host_write,
        .mapped = options->mapped,
        .existing_pages = options->existing_pages,
        .within_budget = options->within_budget,
    };
    if (!options->name)
        return QUIRE_SUCCESS;
    s->name = qi_host_copy_text(&s->vulkan->host, options->name);
    s->options.name = s->attachment.name = s->name;
    return s->name ? QUIRE_SUCCESS
                   : qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                             "no host memory for the name of a sparse object");
}

/* Creates the native object, which gets the object's copy of the name. */
static quire_result create_native(quire_vulkan_sparse *s, qi_vulkan_description *own,
                                  bool exportable, quire_requirements *requirements)
{
    const quire_object_request request = {
        .object = s->object, .description = own, .exportable = exportable};
    own->name = s->name;
    return qi_vulkan_object_create(s->vulkan, &request, &s->native, requirements);
}

/* Sets block and total size. Alignment and size of parts respect bufferImageGranularity, because a
   neighbour of a part can have the other tiling. */
static void set_blocks(quire_vulkan_sparse *s, const qi_vulkan_description *own,
                       const quire_requirements *requirements)
{
    bool is_optimal = own->image && own->image->tiling != VK_IMAGE_TILING_LINEAR;
    uint64_t granularity = is_optimal ? s->vulkan->limits.bufferImageGranularity : 1;
    s->block = requirements->alignment;
    s->size = requirements->size;
    s->granularity = granularity ? granularity : 1;
    if (s->options.alignment < s->block)
        s->options.alignment = s->block;
    if (s->options.alignment < s->granularity)
        s->options.alignment = s->granularity;
}

/* Creates the list of parts of an object with residency: one for each block, none of them bound. */
static quire_result make_blocks(quire_vulkan_sparse *s, const qi_vulkan_description *own)
{
    if (own->image) {
        quire_result result = qi_vulkan_tiles_read(s->vulkan, QI_VULKAN_HANDLE(VkImage, s->native),
                                                   own->image, s->block, &s->tiles);
        if (result)
            return result;
        s->size = qi_vulkan_tiles_count(&s->tiles) * s->block;
    }
    uint64_t count = s->size / s->block + (s->size % s->block != 0);
    if (count < UINT32_MAX)
        s->parts = qi_host_allocate(&s->vulkan->host, count, sizeof *s->parts);
    if (!s->parts)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                            "no host memory for the %u block%s of a sparse object", count);
    s->part_count = s->part_capacity = (uint32_t)count;
    return QUIRE_SUCCESS;
}

static quire_result make(quire_vulkan_sparse *s, qi_vulkan_description *own,
                         const quire_vulkan_object_options *options, const quire_memory_info *info)
{
    quire_requirements requirements = {.size = 0};
    quire_result result = set_options(s, options);
    if (!result)
        result = create_native(s, own, info->exportable, &requirements);
    if (result)
        return result;
    if (!(requirements.kind_mask >> info->kind & 1))
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "memory '%s' has kind %u: the object needs one of the kinds 0x%x",
                            info->name, info->kind, requirements.kind_mask);
    set_blocks(s, own, &requirements);
    return s->is_partial ? make_blocks(s, own) : qi_vulkan_sparse_bind_whole(s);
}

/* Checks the create info. The driver is not called before all checks have passed. */
static quire_result check_sparse(const qi_vulkan *vulkan, const qi_vulkan_description *own)
{
    if (!qi_vulkan_is_sparse(own->buffer ? own->buffer->flags : own->image->flags))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "the create flags of a sparse object lack SPARSE_BINDING");
    if (own->buffer && !own->buffer->size)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the size of the buffer is 0");
    quire_result result = qi_vulkan_check_sparse(vulkan, own);
    return result ? result : qi_vulkan_check_sparse_queue(vulkan);
}

/* Creates an object and attaches it. A creation that fails with a pending change also attaches it,
   because the device may still use the object and its parts. */
static quire_result create(quire_memory *memory, qi_vulkan_description own,
                           const quire_vulkan_object_options *options, quire_vulkan_sparse **sparse)
{
    const quire_vulkan_object_options given = options ? *options : (quire_vulkan_object_options){0};
    quire_memory_info info;
    qi_vulkan *vulkan = NULL;
    quire_result result = qi_vulkan_of_memory(memory, &vulkan);
    if (!result)
        result = quire_memory_get_info(memory, &info);
    if (!result)
        result = check_options(&given, &info);
    if (!result)
        result = check_sparse(vulkan, &own);
    if (result)
        return result;
    quire_vulkan_sparse *s = qi_host_allocate(&vulkan->host, 1, sizeof *s);
    if (!s)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a sparse object");
    VkFlags flags = own.buffer ? own.buffer->flags : own.image->flags;
    s->attachment.end = end;
    s->pending.sparse = s;
    s->vulkan = vulkan;
    s->memory = memory;
    s->object = own.buffer ? QUIRE_OBJECT_BUFFER : QUIRE_OBJECT_IMAGE;
    s->is_partial = flags & VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT;
    pthread_mutex_init(&s->mutex, NULL);
    result = make(s, &own, &given, &info);
    if (result) {
        qi_error failure;
        qi_error_save(&failure);
        s->attachment.leave = leave;
        if (s->pending.fence)
            quire_memory_attach(memory, &s->attachment);
        else
            qi_vulkan_sparse_destroy_now(s);
        qi_error_restore(&failure);
        return result;
    }
    quire_memory_attach(memory, &s->attachment);
    *sparse = s;
    return QUIRE_SUCCESS;
}

/* ---- public functions --------------------------------------------------------------------- */

quire_result quire_vulkan_sparse_buffer_create(quire_memory *memory, const VkBufferCreateInfo *info,
                                               const quire_vulkan_object_options *options,
                                               quire_vulkan_sparse **sparse)
{
    if (sparse)
        *sparse = NULL;
    if (!memory || !info || !sparse)
        return qi_fail_null("quire_vulkan_sparse_buffer_create", !memory ? "memory"
                                                                 : !info ? "info"
                                                                         : "sparse");
    return create(memory, (qi_vulkan_description){.buffer = info}, options, sparse);
}

quire_result quire_vulkan_sparse_image_create(quire_memory *memory, const VkImageCreateInfo *info,
                                              const quire_vulkan_object_options *options,
                                              quire_vulkan_sparse **sparse)
{
    if (sparse)
        *sparse = NULL;
    if (!memory || !info || !sparse)
        return qi_fail_null("quire_vulkan_sparse_image_create", !memory ? "memory"
                                                                : !info ? "info"
                                                                        : "sparse");
    return create(memory, (qi_vulkan_description){.image = info}, options, sparse);
}

/* A mapped part cannot be freed. The check comes before any change. */
static quire_result check_maps(const quire_vulkan_sparse *s)
{
    for (uint32_t i = 0; i < s->part_count; i++) {
        uint32_t maps = 0;
        if (s->parts[i].id && !quire_allocation_get_map_count(s->memory, s->parts[i], &maps) &&
            maps)
            return qi_fail_text(QUIRE_ERROR_BUSY, "part %u of the sparse object '%s' is mapped", i,
                                s->name ? s->name : "(unnamed)");
    }
    return QUIRE_SUCCESS;
}

/* Fails without any change if a pending change cannot be waited for, or if a part is mapped. */
quire_result quire_vulkan_sparse_destroy(quire_vulkan_sparse **sparse)
{
    if (!sparse)
        return qi_fail_null("quire_vulkan_sparse_destroy", "sparse");
    quire_vulkan_sparse *s = *sparse;
    if (!s)
        return QUIRE_SUCCESS;
    quire_result result = qi_vulkan_sparse_retire(s);
    if (!result)
        result = check_maps(s);
    if (result)
        return result;
    *sparse = NULL;
    end(&s->attachment);
    return QUIRE_SUCCESS;
}

quire_result quire_vulkan_sparse_get_info(const quire_vulkan_sparse *sparse,
                                          quire_vulkan_sparse_info *info)
{
    if (info)
        *info = (quire_vulkan_sparse_info){.size = 0};
    if (!sparse || !info)
        return qi_fail_null("quire_vulkan_sparse_get_info", !sparse ? "sparse" : "info");
    quire_result result = qi_vulkan_check_process(sparse->vulkan);
    if (result)
        return result;
    bool is_buffer = sparse->object == QUIRE_OBJECT_BUFFER;
    pthread_mutex_lock(qi_vulkan_sparse_mutex(sparse));
    *info = (quire_vulkan_sparse_info){
        .memory = sparse->memory,
        .buffer = QI_VULKAN_HANDLE(VkBuffer, is_buffer ? sparse->native : 0),
        .image = QI_VULKAN_HANDLE(VkImage, is_buffer ? 0 : sparse->native),
        .residency = sparse->is_partial,
        .size = sparse->size,
        .block = sparse->block,
        .bound = sparse->bound,
        .part_count = sparse->part_count,
        .aspect_count = sparse->tiles.count,
    };
    for (uint32_t i = 0; i < sparse->tiles.count; i++) {
        const qi_vulkan_aspect *aspect = &sparse->tiles.aspects[i];
        info->aspects[i] = (quire_vulkan_aspect){aspect->aspect, aspect->tile, aspect->levels};
    }
    pthread_mutex_unlock(qi_vulkan_sparse_mutex(sparse));
    return QUIRE_SUCCESS;
}
