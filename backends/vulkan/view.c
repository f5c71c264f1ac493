/*
 * view.c - image views and samplers for images of quire.
 */
#include "quire/lluvia.h"

#include "backends/vulkan/device.h"
#include "backends/vulkan/functions.h"
#include "src/base/result.h"

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
