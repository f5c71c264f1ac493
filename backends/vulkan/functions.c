/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * functions.c - fills a device's function table: its functions come from vkGetDeviceProcAddr, which
 * skips the loader's dispatch. Also finds the system's Vulkan loader with volk, and translates
 * VkResult.
 *
 * volk is compiled into this file with renamed symbols (volk_names.h, generated at build time).
 * Therefore neither the library nor the static archive defines a vk symbol, and a program can
 * contain a volk of its own. volk's function tables are not used: each device has its own.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "volk_names.h"

#include <volk.c>

#include "backends/vulkan/functions.h"
#include "src/base/result.h"

/* ---- the table ---------------------------------------------------------------------------- */

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

/* ---- the loader --------------------------------------------------------------------------- */

PFN_vkGetInstanceProcAddr qi_vulkan_find_loader(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    if (!vkGetInstanceProcAddr && volkInitialize())
        vkGetInstanceProcAddr = NULL;
    PFN_vkGetInstanceProcAddr found = vkGetInstanceProcAddr;
    pthread_mutex_unlock(&mutex);
    return found;
}

void qi_vulkan_keep_driver(void)
{
    static const char *const NAMES[] = {"libGLX_nvidia.so.0", "libEGL_nvidia.so.0"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        void *library = dlopen(NAMES[i], RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE);
        if (library)
            dlclose(library);
    }
}

/* ---- results ------------------------------------------------------------------------------ */

/* Each VkResult with its quire_result. MEMORY_MAP_FAILED: the process has no address range left. */
#define KNOWN(X)                                                                                   \
    X(VK_NOT_READY, BACKEND_FAILURE)                                                               \
    X(VK_TIMEOUT, BACKEND_FAILURE)                                                                 \
    X(VK_INCOMPLETE, BACKEND_FAILURE)                                                              \
    X(VK_ERROR_OUT_OF_HOST_MEMORY, OUT_OF_HOST_MEMORY)                                             \
    X(VK_ERROR_OUT_OF_DEVICE_MEMORY, OUT_OF_DEVICE_MEMORY)                                         \
    X(VK_ERROR_INITIALIZATION_FAILED, BACKEND_FAILURE)                                             \
    X(VK_ERROR_DEVICE_LOST, DEVICE_LOST)                                                           \
    X(VK_ERROR_MEMORY_MAP_FAILED, OUT_OF_HOST_MEMORY)                                              \
    X(VK_ERROR_LAYER_NOT_PRESENT, UNSUPPORTED)                                                     \
    X(VK_ERROR_EXTENSION_NOT_PRESENT, UNSUPPORTED)                                                 \
    X(VK_ERROR_FEATURE_NOT_PRESENT, UNSUPPORTED)                                                   \
    X(VK_ERROR_INCOMPATIBLE_DRIVER, UNSUPPORTED)                                                   \
    X(VK_ERROR_TOO_MANY_OBJECTS, TOO_MANY_PAGES)                                                   \
    X(VK_ERROR_FORMAT_NOT_SUPPORTED, UNSUPPORTED)                                                  \
    X(VK_ERROR_FRAGMENTED_POOL, OUT_OF_DEVICE_MEMORY)                                              \
    X(VK_ERROR_UNKNOWN, BACKEND_FAILURE)                                                           \
    X(VK_ERROR_OUT_OF_POOL_MEMORY, OUT_OF_DEVICE_MEMORY)                                           \
    X(VK_ERROR_INVALID_EXTERNAL_HANDLE, INVALID_ARGUMENT)                                          \
    X(VK_ERROR_FRAGMENTATION, OUT_OF_DEVICE_MEMORY)                                                \
    X(VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS, BACKEND_FAILURE)                                    \
    X(VK_ERROR_NOT_PERMITTED_KHR, NOT_PERMITTED)

quire_result qi_vulkan_result(VkResult code)
{
    switch ((int)code) {
#define RESULT_CASE(name, result)                                                                  \
    case name:                                                                                     \
        return QUIRE_ERROR_##result;
        KNOWN(RESULT_CASE)
    default:
        return QUIRE_ERROR_BACKEND_FAILURE;
    }
}

/* Returns the name of a VkResult. For an unknown code it writes "VkResult <number>" into the
   buffer and returns the buffer. */
static const char *result_name(VkResult code, char *buffer, size_t size)
{
    switch ((int)code) {
#define NAME_CASE(name, result)                                                                    \
    case name:                                                                                     \
        return #name;
        KNOWN(NAME_CASE)
    default:
        snprintf(buffer, size, "VkResult %d", (int)code);
        return buffer;
    }
}

/* The native code of the last error is the VkResult. */
quire_result qi_vulkan_fail(VkResult code, const char *format, ...)
{
    char what[256], unknown[32];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return quire_backend_fail(qi_vulkan_result(code), code, "%s: %s", what,
                              result_name(code, unknown, sizeof unknown));
}
