/*
 * functions.c - fills the function table: see functions.h.
 */
#include "backends/vulkan/functions.h"

#include "src/base/result.h"

static quire_result refuse(const char *name)
{
    return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                        "get_instance_proc_addr has no vk%s, which Vulkan 1.1 requires", name);
}

/* Loads functions by the name of the extension, for drivers that do not know them by the plain name
   of the later Vulkan version. */
static void load_renamed(qi_vulkan_functions *f, VkDevice device)
{
    if (!f->GetBufferDeviceAddress)
        f->GetBufferDeviceAddress = (PFN_vkGetBufferDeviceAddress)f->GetDeviceProcAddr(
            device, "vkGetBufferDeviceAddressKHR");
    if (!f->GetBufferDeviceAddress)
        f->GetBufferDeviceAddress = (PFN_vkGetBufferDeviceAddress)f->GetDeviceProcAddr(
            device, "vkGetBufferDeviceAddressEXT");
    if (!f->GetDeviceBufferMemoryRequirements)
        f->GetDeviceBufferMemoryRequirements =
            (PFN_vkGetDeviceBufferMemoryRequirements)f->GetDeviceProcAddr(
                device, "vkGetDeviceBufferMemoryRequirementsKHR");
    if (!f->GetDeviceImageMemoryRequirements)
        f->GetDeviceImageMemoryRequirements =
            (PFN_vkGetDeviceImageMemoryRequirements)f->GetDeviceProcAddr(
                device, "vkGetDeviceImageMemoryRequirementsKHR");
    if (!f->GetSemaphoreCounterValue)
        f->GetSemaphoreCounterValue = (PFN_vkGetSemaphoreCounterValue)f->GetDeviceProcAddr(
            device, "vkGetSemaphoreCounterValueKHR");
    if (!f->WaitSemaphores)
        f->WaitSemaphores =
            (PFN_vkWaitSemaphores)f->GetDeviceProcAddr(device, "vkWaitSemaphoresKHR");
}

/* Instance functions come from get_instance_proc_addr, all others from vkGetDeviceProcAddr, which
   skips the loader's dispatch. */
quire_result qi_vulkan_load(qi_vulkan_functions *f, VkInstance instance, VkDevice device,
                            PFN_vkGetInstanceProcAddr get_instance,
                            PFN_vkGetDeviceProcAddr get_device)
{
#define LOAD_INSTANCE(name)                                                                        \
    f->name = (PFN_vk##name)get_instance(instance, "vk" #name);                                    \
    if (!f->name)                                                                                  \
        return refuse(#name);
#define LOAD_OPTIONAL(name) f->name = (PFN_vk##name)f->GetDeviceProcAddr(device, "vk" #name);
#define LOAD_DEVICE(name)                                                                          \
    LOAD_OPTIONAL(name)                                                                            \
    if (!f->name)                                                                                  \
        return refuse(#name);
    f->GetDeviceProcAddr = get_device;
    if (!get_device)
        f->GetDeviceProcAddr =
            (PFN_vkGetDeviceProcAddr)get_instance(instance, "vkGetDeviceProcAddr");
    if (!f->GetDeviceProcAddr)
        return refuse("GetDeviceProcAddr");
    QI_VULKAN_INSTANCE_FUNCTIONS(LOAD_INSTANCE)
    QI_VULKAN_DEVICE_FUNCTIONS(LOAD_DEVICE)
    QI_VULKAN_OPTIONAL_FUNCTIONS(LOAD_OPTIONAL)
    load_renamed(f, device);
    return QUIRE_SUCCESS;
#undef LOAD_INSTANCE
#undef LOAD_OPTIONAL
#undef LOAD_DEVICE
}
