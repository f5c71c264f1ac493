/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_functions.h - the functions of a driver in the form in which VMA takes them, for programs
 * that are not linked with them. The header of VMA, or quire_vma.h, is included before.
 */
#ifndef QUIRE_BENCH_VMA_FUNCTIONS_H
#define QUIRE_BENCH_VMA_FUNCTIONS_H

static inline VmaVulkanFunctions vma_functions_of(VkInstance instance,
                                                  PFN_vkGetInstanceProcAddr of_instance,
                                                  VkDevice device,
                                                  PFN_vkGetDeviceProcAddr of_device)
{
#define OF_INSTANCE(name) .name = (PFN_##name)of_instance(instance, #name)
#define OF_DEVICE(name) .name = (PFN_##name)of_device(device, #name)
#define OF_DEVICE_2(name) .name##KHR = (PFN_##name##KHR)of_device(device, #name)
    return (VmaVulkanFunctions){
        .vkGetInstanceProcAddr = of_instance,
        .vkGetDeviceProcAddr = of_device,
        OF_INSTANCE(vkGetPhysicalDeviceProperties),
        OF_INSTANCE(vkGetPhysicalDeviceMemoryProperties),
        OF_DEVICE(vkAllocateMemory),
        OF_DEVICE(vkFreeMemory),
        OF_DEVICE(vkMapMemory),
        OF_DEVICE(vkUnmapMemory),
        OF_DEVICE(vkFlushMappedMemoryRanges),
        OF_DEVICE(vkInvalidateMappedMemoryRanges),
        OF_DEVICE(vkBindBufferMemory),
        OF_DEVICE(vkBindImageMemory),
        OF_DEVICE(vkGetBufferMemoryRequirements),
        OF_DEVICE(vkGetImageMemoryRequirements),
        OF_DEVICE(vkCreateBuffer),
        OF_DEVICE(vkDestroyBuffer),
        OF_DEVICE(vkCreateImage),
        OF_DEVICE(vkDestroyImage),
        OF_DEVICE(vkCmdCopyBuffer),
        OF_DEVICE_2(vkGetBufferMemoryRequirements2),
        OF_DEVICE_2(vkGetImageMemoryRequirements2),
        OF_DEVICE_2(vkBindBufferMemory2),
        OF_DEVICE_2(vkBindImageMemory2),
        .vkGetPhysicalDeviceMemoryProperties2KHR =
            (PFN_vkGetPhysicalDeviceMemoryProperties2KHR)of_instance(
                instance, "vkGetPhysicalDeviceMemoryProperties2"),
        OF_DEVICE(vkGetDeviceBufferMemoryRequirements),
        OF_DEVICE(vkGetDeviceImageMemoryRequirements),
    };
#undef OF_INSTANCE
#undef OF_DEVICE
#undef OF_DEVICE_2
}

#endif
