/*
 * negotiate.c - the only exported symbol, which the loader calls first.
 */
#include "src/adapters/vulkan_layer/layer.h"

enum { INTERFACE_VERSION = 2 };

QUIRE_API VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *version)
{
    if (!version || version->sType != LAYER_NEGOTIATE_INTERFACE_STRUCT ||
        version->loaderLayerInterfaceVersion < INTERFACE_VERSION)
        return VK_ERROR_INITIALIZATION_FAILED;
    version->loaderLayerInterfaceVersion = INTERFACE_VERSION;
    version->pfnGetInstanceProcAddr = layer_GetInstanceProcAddr;
    version->pfnGetDeviceProcAddr = layer_GetDeviceProcAddr;
    version->pfnGetPhysicalDeviceProcAddr = layer_GetPhysicalDeviceProcAddr;
    return VK_SUCCESS;
}
