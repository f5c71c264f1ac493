/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_driver.c - see vma_driver.h. quire opens the device, so that both programs have the same.
 */
#include "bench/vma_driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/mock_device.h"
#include "quire/quire.h"
#include "quire/vulkan.h"
#include "src/base/result.h"

/* ---- a real device -------------------------------------------------------------------------- */

/* Memory objects, as many as every driver supports, and their handles in the_driver. */
enum { MAX_OBJECTS = 4096 };
static struct {
    pthread_mutex_t lock;
    PFN_vkGetDeviceProcAddr of_device;
    PFN_vkAllocateMemory allocate;
    PFN_vkFreeMemory release;
    VkDeviceMemory memories[MAX_OBJECTS];
    uint64_t counted[MAX_OBJECTS];
    size_t count;
} real = {.lock = PTHREAD_MUTEX_INITIALIZER};

static VKAPI_ATTR VkResult VKAPI_CALL allocate_counted(VkDevice device,
                                                       const VkMemoryAllocateInfo *info,
                                                       const VkAllocationCallbacks *callbacks,
                                                       VkDeviceMemory *memory)
{
    VkResult result = real.allocate(device, info, callbacks, memory);
    if (result)
        return result;
    pthread_mutex_lock(&real.lock);
    if (real.count == MAX_OBJECTS) {
        fprintf(stderr, "bench_vma: more memory objects than a driver must support\n");
        exit(1);
    }
    real.memories[real.count] = *memory;
    real.counted[real.count++] = mock_make(info->allocationSize);
    pthread_mutex_unlock(&real.lock);
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL free_counted(VkDevice device, VkDeviceMemory memory,
                                               const VkAllocationCallbacks *callbacks)
{
    pthread_mutex_lock(&real.lock);
    for (size_t i = 0; i < real.count; i++) {
        if (real.memories[i] != memory)
            continue;
        mock_give(real.counted[i]);
        real.memories[i] = real.memories[--real.count];
        real.counted[i] = real.counted[real.count];
        break;
    }
    pthread_mutex_unlock(&real.lock);
    real.release(device, memory, callbacks);
}

static PFN_vkVoidFunction VKAPI_CALL of_real_device(VkDevice device, const char *name)
{
    if (!strcmp(name, "vkAllocateMemory"))
        return (PFN_vkVoidFunction)allocate_counted;
    if (!strcmp(name, "vkFreeMemory"))
        return (PFN_vkVoidFunction)free_counted;
    return real.of_device(device, name);
}

/* ---- both ----------------------------------------------------------------------------------- */

static quire_result open_device(bool is_real, quire_device **device)
{
    static const quire_vulkan_options mock = {.get_instance_proc_addr =
                                                  mock_get_instance_proc_addr};
    return quire_vulkan_open(is_real ? NULL : &mock, device);
}

bool vma_driver_open(bool is_real, vma_driver *driver)
{
    quire_device *device = NULL; /* lives until the process ends */
    quire_vulkan_handles h;
    if (open_device(is_real, &device) || quire_vulkan_get_handles(device, &h)) {
        fprintf(stderr, "bench_vma: %s\n", quire_last_error());
        return false;
    }
#define OF_DEVICE(name) (PFN_##name) real.of_device(h.device, #name)
    real.of_device =
        (PFN_vkGetDeviceProcAddr)h.get_instance_proc_addr(h.instance, "vkGetDeviceProcAddr");
    real.allocate = OF_DEVICE(vkAllocateMemory);
    real.release = OF_DEVICE(vkFreeMemory);
    *driver = (vma_driver){.instance = h.instance,
                           .physical = h.physical_device,
                           .device = h.device,
                           .of_instance = h.get_instance_proc_addr,
                           .of_device = is_real ? of_real_device : real.of_device};
    return true;
}

const char *vma_driver_name(bool is_real)
{
    static quire_device_info info;
    quire_device *device = NULL;
    info = (quire_device_info){.name = "none"};
    if (!open_device(is_real, &device))
        qi_ignore(quire_device_get_info(device, &info));
    quire_device_destroy(&device);
    return info.name;
}
