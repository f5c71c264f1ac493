/*
 * loader.c - volk, for one thing: where the system's Vulkan loader is.
 *
 * volk is compiled into this file with its names changed (volk_names.h, made at build time), so
 * that neither library nor archive defines a vk symbol, and a program's own volk is another one.
 * Its tables of functions are not used: each device has its own (functions.h).
 */
#include <pthread.h>

#include "volk_names.h"

#include <volk.c>

#include "backends/vulkan/loader.h"

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
