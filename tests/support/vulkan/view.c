/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * view.c - image views and samplers of the fake driver.
 */
#include "tests/support/vulkan/image.h"
#include "tests/support/vulkan/table.h"

/* A view needs at least one of these usages. */
#define VIEWED                                                                                     \
    (VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_STORAGE_BIT |                                     \
     VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT |           \
     VK_IMAGE_USAGE_INPUT_ATTACHMENT_BIT)

static bool type_fits(const fv_image *image, VkImageViewType type)
{
    switch ((int)image->info.imageType) {
    case VK_IMAGE_TYPE_1D:
        return type == VK_IMAGE_VIEW_TYPE_1D || type == VK_IMAGE_VIEW_TYPE_1D_ARRAY;
    case VK_IMAGE_TYPE_3D:
        return type == VK_IMAGE_VIEW_TYPE_3D;
    default:
        return type == VK_IMAGE_VIEW_TYPE_2D || type == VK_IMAGE_VIEW_TYPE_2D_ARRAY ||
               ((type == VK_IMAGE_VIEW_TYPE_CUBE || type == VK_IMAGE_VIEW_TYPE_CUBE_ARRAY) &&
                image->info.flags & VK_IMAGE_CREATE_CUBE_COMPATIBLE_BIT);
    }
}

static void check_view(fv_device *device, const VkImageViewCreateInfo *info)
{
    fv_driver *driver = fv_driver_of(device);
    const fv_image *image = FV_FIND(device, vkCreateImageView, FV_IMAGE, info->image);
    if (!image)
        return;
    const char *name = image->resource.object.name;
    bool mutable = image->info.flags & VK_IMAGE_CREATE_MUTABLE_FORMAT_BIT;
    if (!image->resource.memory && !image->resource.sparse)
        FV_WRONG(driver, "VUID-VkImageViewCreateInfo-image-01020", vkCreateImageView,
                 "'%s' has no memory", name);
    if (!(image->info.usage & VIEWED))
        FV_WRONG(driver, "VUID-VkImageViewCreateInfo-image-04441", vkCreateImageView,
                 "'%s' was made for nothing that needs a view", name);
    if (!type_fits(image, info->viewType))
        FV_WRONG(driver, "VUID-VkImageViewCreateInfo-subResourceRange-01021", vkCreateImageView,
                 "view type %d of image type %d", (int)info->viewType, (int)image->info.imageType);
    if (!mutable && info->format != image->info.format)
        FV_WRONG(driver, "VUID-VkImageViewCreateInfo-image-01762", vkCreateImageView,
                 "format %d of '%s', which has %d", (int)info->format, name,
                 (int)image->info.format);
    if (!fv_range_fits(image, &info->subresourceRange))
        FV_WRONG(driver, "VUID-VkImageViewCreateInfo-subresourceRange-01478", vkCreateImageView,
                 "the range is not in '%s'", name);
}

VkResult fv_vkCreateImageView(VkDevice handle, const VkImageViewCreateInfo *info,
                              const VkAllocationCallbacks *callbacks, VkImageView *out)
{
    fv_device *device = (fv_device *)handle;
    fv_driver *driver = fv_driver_of(device);
    (void)callbacks;
    VkResult result = fv_enter(driver, FV_CALL_vkCreateImageView);
    *out = (VkImageView)FV_GARBAGE;
    if (!result) {
        FV_CHECK_CHAIN(driver, vkCreateImageView, info->pNext,
                       VK_STRUCTURE_TYPE_IMAGE_VIEW_USAGE_CREATE_INFO);
        check_view(device, info);
        fv_object *view = fv_object_new(driver, device, FV_IMAGE_VIEW, sizeof *view);
        *out = FV_HANDLE(VkImageView, view);
    }
    fv_leave(driver);
    return result;
}

VkResult fv_vkCreateSampler(VkDevice handle, const VkSamplerCreateInfo *info,
                            const VkAllocationCallbacks *callbacks, VkSampler *out)
{
    fv_device *device = (fv_device *)handle;
    fv_driver *driver = fv_driver_of(device);
    (void)callbacks;
    VkResult result = fv_enter(driver, FV_CALL_vkCreateSampler);
    *out = (VkSampler)FV_GARBAGE;
    if (!result) {
        if (info->anisotropyEnable)
            FV_WRONG(driver, "VUID-VkSamplerCreateInfo-anisotropyEnable-01070", vkCreateSampler,
                     "anisotropy without the feature");
        fv_object *sampler = fv_object_new(driver, device, FV_SAMPLER, sizeof *sampler);
        *out = FV_HANDLE(VkSampler, sampler);
    }
    fv_leave(driver);
    return result;
}

void fv_vkDestroyImageView(VkDevice device, VkImageView view,
                           const VkAllocationCallbacks *callbacks)
{
    (void)callbacks;
    fv_object_destroy(device, FV_CALL_vkDestroyImageView, FV_IMAGE_VIEW, (uint64_t)view, NULL);
}

void fv_vkDestroySampler(VkDevice device, VkSampler sampler, const VkAllocationCallbacks *callbacks)
{
    (void)callbacks;
    fv_object_destroy(device, FV_CALL_vkDestroySampler, FV_SAMPLER, (uint64_t)sampler, NULL);
}
