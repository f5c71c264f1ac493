/*
 * sparse_check.c - checks whether the device supports a sparse object.
 */
#include "backends/vulkan/object.h"
#include "backends/vulkan/queues.h"
#include "src/base/result.h"

/* The flags have the same values for buffers and images. */
static const VkFlags SPARSE_FLAGS = VK_BUFFER_CREATE_SPARSE_BINDING_BIT |
                                    VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT |
                                    VK_BUFFER_CREATE_SPARSE_ALIASED_BIT;
_Static_assert(
    (int)VK_BUFFER_CREATE_SPARSE_BINDING_BIT == (int)VK_IMAGE_CREATE_SPARSE_BINDING_BIT &&
        (int)VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT == (int)VK_IMAGE_CREATE_SPARSE_RESIDENCY_BIT &&
        (int)VK_BUFFER_CREATE_SPARSE_ALIASED_BIT == (int)VK_IMAGE_CREATE_SPARSE_ALIASED_BIT,
    "buffers and images share the checks");

bool qi_vulkan_is_sparse(VkFlags flags)
{
    return flags & SPARSE_FLAGS;
}

static quire_result refuse(const char *feature)
{
    return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                        "a sparse object: the device was created without the feature %s", feature);
}

/* Each sample count above 1 has a feature of its own. */
static quire_result check_samples(const qi_vulkan_enabled *enabled, VkSampleCountFlags samples)
{
    if (samples == VK_SAMPLE_COUNT_1_BIT || enabled->sparse_samples & samples)
        return QUIRE_SUCCESS;
    return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                        "a sparse image: the device was created without the feature "
                        "sparseResidency%uSamples",
                        (uint64_t)samples);
}

static quire_result check_residency(const qi_vulkan *vulkan, const qi_vulkan_description *own)
{
    const qi_vulkan_enabled *enabled = &vulkan->enabled;
    if (own->buffer)
        return enabled->sparse_buffer ? QUIRE_SUCCESS : refuse("sparseResidencyBuffer");
    switch (own->image->imageType) {
    case VK_IMAGE_TYPE_2D:
        return enabled->sparse_image_2d ? check_samples(enabled, own->image->samples)
                                        : refuse("sparseResidencyImage2D");
    case VK_IMAGE_TYPE_3D:
        return enabled->sparse_image_3d ? QUIRE_SUCCESS : refuse("sparseResidencyImage3D");
    default:
        return qi_fail(QUIRE_ERROR_UNSUPPORTED, "Vulkan has no residency for 1D images");
    }
}

quire_result qi_vulkan_check_sparse(const qi_vulkan *vulkan, const qi_vulkan_description *own)
{
    VkFlags flags = (own->buffer ? own->buffer->flags : own->image->flags) & SPARSE_FLAGS;
    if (!flags)
        return QUIRE_SUCCESS;
    if (!(flags & VK_BUFFER_CREATE_SPARSE_BINDING_BIT))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "SPARSE_RESIDENCY or SPARSE_ALIASED without SPARSE_BINDING");
    if (!vulkan->enabled.sparse_binding)
        return refuse("sparseBinding");
    if (flags & VK_BUFFER_CREATE_SPARSE_ALIASED_BIT && !vulkan->enabled.sparse_aliased)
        return refuse("sparseResidencyAliased");
    if (own->buffer && own->buffer->size > vulkan->limits.sparseAddressSpaceSize)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                            "a sparse buffer of %b: sparseAddressSpaceSize is %b",
                            own->buffer->size, vulkan->limits.sparseAddressSpaceSize);
    return flags & VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT ? check_residency(vulkan, own)
                                                         : QUIRE_SUCCESS;
}
