/*
 * loader.c - finds the system's Vulkan loader with volk.
 *
 * volk is compiled into this file with renamed symbols (volk_names.h, generated at build time).
 * Therefore neither the library nor the static archive defines a vk symbol, and a program can
 * contain a volk of its own. volk's function tables are not used: each device has its own
 * (functions.h).
 */
#include <dlfcn.h>
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

void qi_vulkan_keep_driver(void)
{
    static const char *const NAMES[] = {"libGLX_nvidia.so.0", "libEGL_nvidia.so.0"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        void *library = dlopen(NAMES[i], RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE);
        if (library)
            dlclose(library);
    }
}
