/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * chain.c - the layer in the loader's chain (interface version 2): creation and destruction of
 * instances and devices, and the lookup of functions by name.
 */
#include <string.h>
#include <unistd.h>

#include "src/adapters/vulkan_layer/layer.h"
#include "src/base/result.h"

/* ---- instances ---------------------------------------------------------------------------- */

/* Returns the loader's link to the next layer. A layer advances it before it calls the next one. */
static VkLayerInstanceLink **link_of_instance(const VkInstanceCreateInfo *info)
{
    for (const VkBaseInStructure *link = info->pNext; link; link = link->pNext) {
        VkLayerInstanceCreateInfo *made = (VkLayerInstanceCreateInfo *)(uintptr_t)link;
        if (link->sType == VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO &&
            made->function == VK_LAYER_LINK_INFO)
            return &made->u.pLayerInfo;
    }
    return NULL;
}

static bool enables(const VkInstanceCreateInfo *info, const char *extension)
{
    for (uint32_t i = 0; i < info->enabledExtensionCount; i++)
        if (!strcmp(info->ppEnabledExtensionNames[i], extension))
            return true;
    return false;
}

/*
 * quire needs Vulkan 1.1. If the program requests 1.0 the instance is created with 1.1, which is
 * compatible. If 1.1 is unavailable the instance is created as requested, and the layer is not
 * active on its devices.
 */
static VkResult create_instance(PFN_vkCreateInstance create, VkLayerInstanceLink **link,
                                const VkInstanceCreateInfo *info,
                                const VkAllocationCallbacks *callbacks, VkInstance *instance,
                                uint32_t *version)
{
    VkLayerInstanceLink *after = (*link)->pNext;
    VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO};
    VkInstanceCreateInfo raised = *info;
    if (info->pApplicationInfo)
        application = *info->pApplicationInfo;
    *version = application.apiVersion;
    *link = after;
    if (*version >= VK_API_VERSION_1_1)
        return create(info, callbacks, instance);
    application.apiVersion = VK_API_VERSION_1_1;
    raised.pApplicationInfo = &application;
    VkResult code = create(&raised, callbacks, instance);
    if (code != VK_ERROR_INCOMPATIBLE_DRIVER) {
        *version = VK_API_VERSION_1_1;
        return code;
    }
    *version = VK_API_VERSION_1_0;
    *link = after;
    return create(info, callbacks, instance);
}

static VkResult add_instance(VkInstance handle, const VkLayerInstanceLink *link, uint32_t version,
                             bool debug_utils)
{
    qi_host host;
    qi_ignore(qi_host_init(&host, NULL));
    layer_instance *instance = qi_host_allocate(&host, 1, sizeof *instance);
    if (!instance)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    *instance = (layer_instance){
        .key = layer_key(handle),
        .handle = handle,
        .get = link->pfnNextGetInstanceProcAddr,
        .get_physical = link->pfnNextGetPhysicalDeviceProcAddr,
        .api_version = version,
        .debug_utils = debug_utils,
    };
#define X(name) instance->next.name = (PFN_vk##name)instance->get(handle, "vk" #name);
    LAYER_INSTANCE_CALLS(X)
#undef X
    layer_add_instance(instance);
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL layer_CreateInstance(const VkInstanceCreateInfo *info,
                                                           const VkAllocationCallbacks *callbacks,
                                                           VkInstance *instance)
{
    VkLayerInstanceLink **link = link_of_instance(info);
    uint32_t version = 0;
    if (!link || !*link)
        return VK_ERROR_INITIALIZATION_FAILED;
    const VkLayerInstanceLink *own = *link;
    PFN_vkGetInstanceProcAddr get = own->pfnNextGetInstanceProcAddr;
    PFN_vkCreateInstance create = (PFN_vkCreateInstance)get(NULL, "vkCreateInstance");
    if (!create)
        return VK_ERROR_INITIALIZATION_FAILED;
    VkResult code = create_instance(create, link, info, callbacks, instance, &version);
    if (code)
        return code;
    code = add_instance(*instance, own, version, enables(info, VK_EXT_DEBUG_UTILS_EXTENSION_NAME));
    if (code)
        ((PFN_vkDestroyInstance)get(*instance, "vkDestroyInstance"))(*instance, callbacks);
    return code;
}

static VKAPI_ATTR void VKAPI_CALL layer_DestroyInstance(VkInstance handle,
                                                        const VkAllocationCallbacks *callbacks)
{
    layer_instance *instance = handle ? layer_take_instance(handle) : NULL;
    if (!instance)
        return;
    instance->next.DestroyInstance(handle, callbacks);
    qi_host host;
    qi_ignore(qi_host_init(&host, NULL));
    qi_host_release(&host, instance, 1, sizeof *instance);
}

/* ---- devices ------------------------------------------------------------------------------ */

static VkLayerDeviceLink **link_of_device(const VkDeviceCreateInfo *info)
{
    for (const VkBaseInStructure *link = info->pNext; link; link = link->pNext) {
        VkLayerDeviceCreateInfo *made = (VkLayerDeviceCreateInfo *)(uintptr_t)link;
        if (link->sType == VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO &&
            made->function == VK_LAYER_LINK_INFO)
            return &made->u.pLayerInfo;
    }
    return NULL;
}

/*
 * Loads the next layer's functions. VK_EXT_debug_utils is an instance extension. If no driver has
 * it the loader itself implements it, and its functions are available only from the instance.
 */
static void load(layer_device *device, const layer_instance *instance)
{
#define X(name, type) device->next.name = (type)device->get(device->handle, "vk" #name);
    LAYER_CALLS(X)
#undef X
#define Y(alias, name)                                                                             \
    if (!device->next.name)                                                                        \
        device->next.name =                                                                        \
            (__typeof__(device->next.name))device->get(device->handle, "v"                         \
                                                                       "k" #alias);
    LAYER_ALIASES(Y)
#undef Y
#define X(name)                                                                                    \
    if (!device->next.name)                                                                        \
        device->next.name = instance->next.name;
    X(SetDebugUtilsObjectNameEXT)
    X(SetDebugUtilsObjectTagEXT)
#undef X
}

static layer_device *new_device(VkDevice handle, PFN_vkGetDeviceProcAddr get,
                                const layer_instance *instance, const layer_settings *settings)
{
    qi_host host;
    qi_ignore(qi_host_init(&host, NULL));
    layer_device *device = qi_host_allocate(&host, 1, sizeof *device);
    if (!device)
        return NULL;
    device->host = host;
    device->handle = handle;
    device->key = layer_key(handle);
    device->get = get;
    device->settings = *settings;
    device->process = getpid();
    pthread_mutex_init(&device->mutex, NULL);
    pthread_mutex_init(&device->trace.mutex, NULL);
    pthread_mutex_init(&device->interim.mutex, NULL);
    load(device, instance);
    return device;
}

static VKAPI_ATTR VkResult VKAPI_CALL layer_CreateDevice(VkPhysicalDevice physical,
                                                         const VkDeviceCreateInfo *info,
                                                         const VkAllocationCallbacks *callbacks,
                                                         VkDevice *handle)
{
    VkLayerDeviceLink **link = link_of_device(info);
    const layer_instance *instance = layer_instance_of(physical);
    layer_settings settings;
    if (!link || !*link || !instance || !layer_read_settings(&settings))
        return VK_ERROR_INITIALIZATION_FAILED;
    PFN_vkGetDeviceProcAddr get = (*link)->pfnNextGetDeviceProcAddr;
    PFN_vkCreateDevice create =
        (PFN_vkCreateDevice)(*link)->pfnNextGetInstanceProcAddr(instance->handle, "vkCreateDevice");
    if (!create)
        return VK_ERROR_INITIALIZATION_FAILED;
    *link = (*link)->pNext;
    VkResult code = create(physical, info, callbacks, handle);
    if (code)
        return code;
    layer_device *device = new_device(*handle, get, instance, &settings);
    if (!device) {
        ((PFN_vkDestroyDevice)get(*handle, "vkDestroyDevice"))(*handle, callbacks);
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    layer_open(device, instance, physical, info);
    layer_add_device(device);
    layer_announce(device);
    layer_trace_open(device);
    layer_interim_open(device);
    return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL layer_DestroyDevice(VkDevice handle,
                                               const VkAllocationCallbacks *callbacks)
{
    layer_device *device = handle ? layer_take_device(handle) : NULL;
    if (!device)
        return;
    PFN_vkDestroyDevice destroy = device->next.DestroyDevice;
    layer_close(device);
    destroy(handle, callbacks);
}

/* ---- functions by name -------------------------------------------------------------------- */

typedef struct entry {
    const char *name;
    PFN_vkVoidFunction function;
} entry;

static PFN_vkVoidFunction find(const entry *entries, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(entries[i].name, name))
            return entries[i].function;
    return NULL;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL layer_GetDeviceProcAddr(VkDevice handle,
                                                                        const char *name);

static PFN_vkVoidFunction of_device(const char *name)
{
    static const entry ENTRIES[] = {
        {"vkGetDeviceProcAddr", (PFN_vkVoidFunction)layer_GetDeviceProcAddr},
#define X(name, type) {"vk" #name, (PFN_vkVoidFunction)layer_##name},
        LAYER_CALLS(X)
#undef X
#define Y(alias, name) {"vk" #alias, (PFN_vkVoidFunction)layer_##name},
            LAYER_ALIASES(Y)
#undef Y
    };
    return find(ENTRIES, sizeof ENTRIES / sizeof *ENTRIES, name);
}

static PFN_vkVoidFunction of_instance(const char *name)
{
    static const entry ENTRIES[] = {
        {"vkGetInstanceProcAddr", (PFN_vkVoidFunction)layer_GetInstanceProcAddr},
        {"vkCreateInstance", (PFN_vkVoidFunction)layer_CreateInstance},
        {"vkDestroyInstance", (PFN_vkVoidFunction)layer_DestroyInstance},
        {"vkCreateDevice", (PFN_vkVoidFunction)layer_CreateDevice},
    };
    return find(ENTRIES, sizeof ENTRIES / sizeof *ENTRIES, name);
}

/* A function that the next layer does not have must not be returned by this layer. */
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL layer_GetDeviceProcAddr(VkDevice handle,
                                                                        const char *name)
{
    const layer_device *device = layer_device_of(handle);
    PFN_vkVoidFunction next = device ? device->get(handle, name) : NULL;
    PFN_vkVoidFunction own = next ? of_device(name) : NULL;
    return own ? own : next;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL layer_GetInstanceProcAddr(VkInstance handle,
                                                                   const char *name)
{
    PFN_vkVoidFunction own = of_instance(name);
    const layer_instance *instance = handle ? layer_instance_of(handle) : NULL;
    if (own || !instance)
        return own;
    PFN_vkVoidFunction next = instance->get(handle, name);
    own = next ? of_device(name) : NULL;
    return own ? own : next;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL layer_get_next(VkInstance handle, const char *name)
{
    const layer_instance *instance = layer_instance_of(handle);
    if (!instance)
        return NULL;
    const entry entries[] = {
#define X(name) {"vk" #name, (PFN_vkVoidFunction)instance->next.name},
        LAYER_INSTANCE_CALLS(X)
#undef X
    };
    return find(entries, sizeof entries / sizeof *entries, name);
}

/* The layer has no such functions itself. Without this function the loader would not find those of
   the layers below. */
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL layer_GetPhysicalDeviceProcAddr(VkInstance handle,
                                                                                const char *name)
{
    const layer_instance *instance = handle ? layer_instance_of(handle) : NULL;
    return instance && instance->get_physical ? instance->get_physical(handle, name) : NULL;
}

/* ---- the exported symbol ------------------------------------------------------------------ */

enum { INTERFACE_VERSION = 2 };

/* The loader calls it first. */
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
