/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * lluvia.c - images of quire for quire/lluvia.h: views and samplers, changes of layouts, and copies
 * of texels through the staging ring, in pieces that fit into half of it.
 *
 * Vulkan cannot be queried for the layout of an image: the caller states it. Barriers cover all
 * earlier and later commands of the queue.
 */
#include <string.h>

#include "backends/vulkan/device.h"
#include "backends/vulkan/functions.h"
#include "backends/vulkan/staging.h"
#include "quire/lluvia.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- views and samplers ------------------------------------------------------------------- */

/* Vulkan restricts samplers with unnormalized coordinates to 1D and 2D and to clamping. */
static quire_result check_options(const quire_lluvia_view_options *o, uint32_t dimensions)
{
    const VkSamplerAddressMode modes[] = {o->address_u, o->address_v, o->address_w};
    if (o->filter != QUIRE_LLUVIA_NEAREST && o->filter != QUIRE_LLUVIA_LINEAR)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "filter %u is unknown",
                            (uint64_t)o->filter);
    for (int i = 0; i < 3; i++)
        if ((unsigned)modes[i] > VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER)
            return qi_fail_with(QUIRE_ERROR_UNSUPPORTED, "address mode %u is not supported",
                                (uint64_t)modes[i]);
    if (!o->sampled || !o->unnormalized)
        return qi_check_unused(o, "quire_lluvia_view_options");
    if (dimensions == 3)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "a 3D image needs normalized coordinates");
    for (int i = 0; i < 2; i++)
        if (modes[i] != VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE &&
            modes[i] != VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER)
            return qi_fail(
                QUIRE_ERROR_INVALID_ARGUMENT,
                "unnormalized coordinates need an address mode that clamps to edge or border");
    return qi_check_unused(o, "quire_lluvia_view_options");
}

static quire_result make_sampler(const qi_vulkan *vulkan, const quire_lluvia_view_options *o,
                                 VkSampler *sampler)
{
    VkFilter filter = o->filter == QUIRE_LLUVIA_LINEAR ? VK_FILTER_LINEAR : VK_FILTER_NEAREST;
    const VkSamplerCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
        .magFilter = filter,
        .minFilter = filter,
        .mipmapMode = VK_SAMPLER_MIPMAP_MODE_NEAREST,
        .addressModeU = o->address_u,
        .addressModeV = o->address_v,
        .addressModeW = o->address_w,
        .unnormalizedCoordinates = o->unnormalized,
    };
    VkResult code = vulkan->f.CreateSampler(vulkan->device, &info, vulkan->callbacks, sampler);
    return code ? qi_vulkan_fail(code, "vkCreateSampler") : QUIRE_SUCCESS;
}

/* Creates a view of the first mip level and layer. Images from a caller's create info have a native
   format; others have quire's channels. */
static quire_result make_view(const qi_vulkan *vulkan, VkImage image, const quire_image_info *of,
                              VkImageView *view)
{
    const VkImageViewCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO,
        .image = image,
        .viewType = of->dimensions == 3   ? VK_IMAGE_VIEW_TYPE_3D
                    : of->dimensions == 2 ? VK_IMAGE_VIEW_TYPE_2D
                                          : VK_IMAGE_VIEW_TYPE_1D,
        .format = of->native_format ? (VkFormat)of->native_format
                                    : quire_vulkan_format(of->channel_type, of->channel_count),
        .subresourceRange = {.aspectMask = VK_IMAGE_ASPECT_COLOR_BIT,
                             .levelCount = 1,
                             .layerCount = 1},
    };
    VkResult code = vulkan->f.CreateImageView(vulkan->device, &info, vulkan->callbacks, view);
    return code ? qi_vulkan_fail(code, "vkCreateImageView") : QUIRE_SUCCESS;
}

/* Creates both or none. */
static quire_result create(const qi_vulkan *vulkan, VkImage image, const quire_image_info *info,
                           const quire_lluvia_view_options *options, quire_lluvia_view *view)
{
    quire_result result = make_view(vulkan, image, info, &view->view);
    if (result || !options->sampled)
        return result;
    result = make_sampler(vulkan, options, &view->sampler);
    if (result)
        vulkan->f.DestroyImageView(vulkan->device, view->view, vulkan->callbacks);
    return result;
}

quire_result quire_lluvia_view_create(quire_memory *memory, quire_image image,
                                      const quire_lluvia_view_options *options,
                                      quire_lluvia_view *view)
{
    if (view)
        *view = (quire_lluvia_view){VK_NULL_HANDLE, VK_NULL_HANDLE};
    if (!memory || !view)
        return qi_fail_null("quire_lluvia_view_create", !memory ? "memory" : "view");
    const quire_lluvia_view_options given = options ? *options : (quire_lluvia_view_options){0};
    quire_image_info info;
    qi_vulkan *vulkan = NULL;
    quire_result result = qi_vulkan_of_memory(memory, &vulkan);
    if (!result)
        result = quire_image_get_info(memory, image, &info);
    if (!result)
        result = check_options(&given, info.dimensions);
    if (result)
        return result;
    if (!info.dimensions)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "the format of an image that the caller created is unknown");
    quire_lluvia_view created = {VK_NULL_HANDLE, VK_NULL_HANDLE};
    result = create(vulkan, QI_VULKAN_HANDLE(VkImage, info.place.native), &info, &given, &created);
    if (!result)
        *view = created;
    return result;
}

/* The caller guarantees that the device no longer uses view and sampler. */
quire_result quire_lluvia_view_destroy(quire_device *device, quire_lluvia_view *view)
{
    if (!view)
        return qi_fail_null("quire_lluvia_view_destroy", "view");
    const qi_vulkan *vulkan = qi_vulkan_of(device);
    if (!vulkan)
        return quire_last_result();
    if (view->sampler)
        vulkan->f.DestroySampler(vulkan->device, view->sampler, vulkan->callbacks);
    if (view->view)
        vulkan->f.DestroyImageView(vulkan->device, view->view, vulkan->callbacks);
    *view = (quire_lluvia_view){VK_NULL_HANDLE, VK_NULL_HANDLE};
    return QUIRE_SUCCESS;
}

/* ---- layouts ------------------------------------------------------------------------------ */

/* A layout change, or a copy of all texels of an image. */
typedef struct work {
    qi_vulkan *vulkan;
    VkImage image;
    VkExtent3D extent;
    uint64_t texel;       /* size in bytes */
    VkImageLayout before; /* before the work */
    VkImageLayout during; /* during the copy */
    VkImageLayout after;
    const char *from; /* the texels to write, or NULL */
    char *to;
} work;

static VkAccessFlags access_of(VkImageLayout layout)
{
    switch (layout) {
    case VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL:
        return VK_ACCESS_TRANSFER_READ_BIT;
    case VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL:
        return VK_ACCESS_TRANSFER_WRITE_BIT;
    default: /* the caller's accesses are unknown */
        return VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
    }
}

static void record_transition(const work *w, int half, VkImageLayout from, VkImageLayout to)
{
    const VkImageMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
        .srcAccessMask = access_of(from),
        .dstAccessMask = access_of(to),
        .oldLayout = from,
        .newLayout = to,
        .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
        .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
        .image = w->image,
        .subresourceRange = {.aspectMask = VK_IMAGE_ASPECT_COLOR_BIT,
                             .levelCount = VK_REMAINING_MIP_LEVELS,
                             .layerCount = VK_REMAINING_ARRAY_LAYERS},
    };
    w->vulkan->f.CmdPipelineBarrier(
        w->vulkan->staging->commands[half], VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
        VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0, NULL, 0, NULL, 1, &barrier);
}

/* Vulkan allows these two layouts only as the source of a transition. */
static bool is_reachable(VkImageLayout layout)
{
    return layout != VK_IMAGE_LAYOUT_UNDEFINED && layout != VK_IMAGE_LAYOUT_PREINITIALIZED;
}

static quire_result refuse_layout(VkImageLayout layout)
{
    return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                        "layout %u cannot be the target of a transition", (uint64_t)layout);
}

static quire_result change_layout(const work *w)
{
    quire_result result = qi_vulkan_staging_wait(w->vulkan, 0);
    if (!result)
        result = qi_vulkan_staging_begin(w->vulkan, 0);
    if (result)
        return result;
    record_transition(w, 0, w->before, w->after);
    return qi_vulkan_staging_submit(w->vulkan, 0);
}

/* ---- texels, in pieces -------------------------------------------------------------------- */

/* A buffer offset in a copy must be a multiple of the texel size and of 4 bytes. */
enum { OFFSET_WORD = 4 };

/* The part of an image that one submission copies. It fits into half of the ring and consists of
   whole slices, or whole rows of a slice, or a part of a row. */
typedef struct piece {
    VkOffset3D at;
    VkExtent3D size;
    uint64_t first; /* texel */
    uint64_t count; /* texels */
} piece;

static uint32_t min_of(uint64_t a, uint32_t b)
{
    return a < b ? (uint32_t)a : b;
}

/* Returns the piece that begins with texel `first`. A half has room for `room` texels. */
static piece piece_at(const work *w, uint64_t first, uint64_t room)
{
    const VkExtent3D *e = &w->extent;
    uint64_t slice = (uint64_t)e->width * e->height, in_slice = first % slice;
    uint32_t x = (uint32_t)(in_slice % e->width), y = (uint32_t)(in_slice / e->width);
    uint32_t z = (uint32_t)(first / slice);
    piece p = {.at = {(int32_t)x, (int32_t)y, (int32_t)z}, .first = first};
    if (!in_slice && room >= slice)
        p.size = (VkExtent3D){e->width, e->height, min_of(room / slice, e->depth - z)};
    else if (!x && room >= e->width)
        p.size = (VkExtent3D){e->width, min_of(room / e->width, e->height - y), 1};
    else
        p.size = (VkExtent3D){min_of(room, e->width - x), 1, 1};
    p.count = (uint64_t)p.size.width * p.size.height * p.size.depth;
    return p;
}

/* Returns the offset in the ring at which the texels of a half begin. */
static uint64_t ring_offset(const work *w, int half)
{
    uint64_t unit = w->texel * OFFSET_WORD, begin = w->vulkan->staging->half * (uint64_t)half;
    return (begin + unit - 1) / unit * unit;
}

/* Returns how many texels fit into a half, after the padding of ring_offset. */
static uint64_t ring_room(const work *w)
{
    uint64_t half = w->vulkan->staging->half;
    return (half - w->texel * OFFSET_WORD) / w->texel;
}

static uint64_t texel_count(const work *w)
{
    return (uint64_t)w->extent.width * w->extent.height * w->extent.depth;
}

/* The first piece changes the layout for the copy, the last one changes it to the final layout. */
static quire_result submit_piece(const work *w, const piece *p, int half)
{
    qi_vulkan_staging *s = w->vulkan->staging;
    const VkBufferImageCopy region = {
        .bufferOffset = ring_offset(w, half),
        .imageSubresource = {.aspectMask = VK_IMAGE_ASPECT_COLOR_BIT, .layerCount = 1},
        .imageOffset = p->at,
        .imageExtent = p->size,
    };
    quire_result result = qi_vulkan_staging_begin(w->vulkan, half);
    if (result)
        return result;
    if (!p->first)
        record_transition(w, half, w->before, w->during);
    if (w->from)
        w->vulkan->f.CmdCopyBufferToImage(s->commands[half], s->memory.buffer, w->image, w->during,
                                          1, &region);
    else
        w->vulkan->f.CmdCopyImageToBuffer(s->commands[half], w->image, w->during, s->memory.buffer,
                                          1, &region);
    if (p->first + p->count == texel_count(w))
        record_transition(w, half, w->during, w->after);
    return qi_vulkan_staging_submit(w->vulkan, half);
}

/* The host fills a half while the device copies from the other one. */
static quire_result write_texels(const work *w)
{
    qi_vulkan_staging *s = w->vulkan->staging;
    int half = 0;
    for (uint64_t done = 0; done < texel_count(w); half = !half) {
        piece p = piece_at(w, done, ring_room(w));
        quire_result result = qi_vulkan_staging_wait(w->vulkan, half);
        if (result)
            return result;
        memcpy(s->memory.bytes + ring_offset(w, half), w->from + done * w->texel,
               p.count * w->texel);
        result = qi_vulkan_staging_flush(w->vulkan, half);
        if (!result)
            result = submit_piece(w, &p, half);
        if (result)
            return result;
        done += p.count;
    }
    return QUIRE_SUCCESS;
}

/* Submits the copy of the piece that begins with texel `first` into a half. */
static quire_result request_piece(const work *w, uint64_t first, int half, piece *p)
{
    *p = piece_at(w, first, ring_room(w));
    quire_result result = qi_vulkan_staging_wait(w->vulkan, half);
    return result ? result : submit_piece(w, p, half);
}

/* Waits for a half and copies its texels out of the ring. */
static quire_result receive_piece(const work *w, const piece *p, int half)
{
    const qi_vulkan_staging *s = w->vulkan->staging;
    quire_result result = qi_vulkan_staging_wait(w->vulkan, half);
    if (!result)
        result = qi_vulkan_staging_invalidate(w->vulkan, half);
    if (!result)
        memcpy(w->to + p->first * w->texel, s->memory.bytes + ring_offset(w, half),
               p->count * w->texel);
    return result;
}

/* The device fetches a piece while the host copies the previous one out of the ring. */
static quire_result read_texels(const work *w)
{
    piece pieces[QI_VULKAN_HALVES];
    const uint64_t total = texel_count(w);
    quire_result result = request_piece(w, 0, 0, &pieces[0]);
    uint64_t requested = pieces[0].count;
    int half = 0;
    for (uint64_t done = 0; done < total && !result; half = !half) {
        if (requested < total) {
            result = request_piece(w, requested, !half, &pieces[!half]);
            requested += pieces[!half].count;
        }
        if (!result)
            result = receive_piece(w, &pieces[half], half);
        done += pieces[half].count;
    }
    return result;
}

/* ---- changes of layouts and copies of texels ---------------------------------------------- */

static quire_result prepare(const char *call, quire_memory *memory, quire_image image, work *w,
                            quire_image_info *info)
{
    if (!memory)
        return qi_fail_null(call, "memory");
    quire_result result = qi_vulkan_of_memory(memory, &w->vulkan);
    if (!result)
        result = quire_image_get_info(memory, image, info);
    if (result)
        return result;
    w->image = QI_VULKAN_HANDLE(VkImage, info->place.native);
    w->extent = (VkExtent3D){info->width, info->height, info->depth};
    return QUIRE_SUCCESS;
}

/* Runs a function while the thread holds the ring. */
static quire_result run(const work *w, quire_result (*body)(const work *))
{
    quire_result result = qi_vulkan_staging_acquire(w->vulkan);
    return result ? result : qi_vulkan_staging_release(w->vulkan, body(w));
}

quire_result quire_lluvia_image_set_layout(quire_memory *memory, quire_image image,
                                           VkImageLayout before, VkImageLayout after)
{
    quire_image_info info;
    work w = {.before = before, .after = after};
    quire_result result = prepare("quire_lluvia_image_set_layout", memory, image, &w, &info);
    if (result)
        return result;
    return is_reachable(after) ? run(&w, change_layout) : refuse_layout(after);
}

/* Checks the arguments of a copy of all texels. `needed` is the usage that the image must have. */
static quire_result prepare_copy(const char *call, quire_memory *memory, quire_image image,
                                 const void *data, uint64_t size, quire_usage needed, work *w)
{
    quire_image_info info;
    quire_result result = prepare(call, memory, image, w, &info);
    if (result)
        return result;
    if (!data)
        return qi_fail_null(call, "data");
    if (!info.channel_count)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "the texel format is known only for images of quire_image_create");
    if (!(info.usage & needed))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "the image has usage %x: the copy needs %x", info.usage, needed);
    if (size != info.minimum_size)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                            "%u byte%s given: the texels of the image have %u", size,
                            info.minimum_size);
    w->texel = (uint64_t)info.channel_count * quire_channel_size(info.channel_type);
    return QUIRE_SUCCESS;
}

quire_result quire_lluvia_image_write(quire_memory *memory, quire_image image, VkImageLayout before,
                                      VkImageLayout after, const void *data, uint64_t size)
{
    work w = {.before = before,
              .during = VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL,
              .after = after,
              .from = data};
    quire_result result = prepare_copy("quire_lluvia_image_write", memory, image, data, size,
                                       QUIRE_USAGE_TRANSFER_TARGET, &w);
    if (result)
        return result;
    return is_reachable(after) ? run(&w, write_texels) : refuse_layout(after);
}

quire_result quire_lluvia_image_read(quire_memory *memory, quire_image image, VkImageLayout layout,
                                     void *data, uint64_t size)
{
    work w = {.before = layout,
              .during = VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL,
              .after = layout,
              .to = data};
    quire_result result = prepare_copy("quire_lluvia_image_read", memory, image, data, size,
                                       QUIRE_USAGE_TRANSFER_SOURCE, &w);
    if (result)
        return result;
    return is_reachable(layout) ? run(&w, read_texels) : refuse_layout(layout);
}
