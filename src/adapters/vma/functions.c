/*
 * functions.c - see functions.h.
 *
 * quire takes two getters, whose type has no room for a pointer of the caller. The functions of the
 * program are therefore found by way of the thread, which is the one that loads them.
 */
#include "src/adapters/vma/functions.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "src/adapters/vma/error.h"

typedef struct source {
    const VmaVulkanFunctions *given; /* NULL: none */
    PFN_vkGetInstanceProcAddr get;
    PFN_vkGetDeviceProcAddr get_of_device;
} source;

static _Thread_local source loading;

/* ---- the functions that a program gives ----------------------------------------------------- */

#define GIVEN(name)                                                                                \
    {                                                                                              \
#name, offsetof(VmaVulkanFunctions, name)                                                  \
    }
#define GIVEN_AS(name, member)                                                                     \
    {                                                                                              \
#name, offsetof(VmaVulkanFunctions, member)                                                \
    }
static const struct {
    const char *name;
    size_t offset;
} GIVEN[] = {
    GIVEN(vkGetPhysicalDeviceProperties),
    GIVEN(vkGetPhysicalDeviceMemoryProperties),
    GIVEN(vkAllocateMemory),
    GIVEN(vkFreeMemory),
    GIVEN(vkMapMemory),
    GIVEN(vkUnmapMemory),
    GIVEN(vkFlushMappedMemoryRanges),
    GIVEN(vkInvalidateMappedMemoryRanges),
    GIVEN(vkBindBufferMemory),
    GIVEN(vkBindImageMemory),
    GIVEN(vkGetBufferMemoryRequirements),
    GIVEN(vkGetImageMemoryRequirements),
    GIVEN(vkCreateBuffer),
    GIVEN(vkDestroyBuffer),
    GIVEN(vkCreateImage),
    GIVEN(vkDestroyImage),
    GIVEN(vkCmdCopyBuffer),
    GIVEN_AS(vkGetBufferMemoryRequirements2, vkGetBufferMemoryRequirements2KHR),
    GIVEN_AS(vkGetImageMemoryRequirements2, vkGetImageMemoryRequirements2KHR),
    GIVEN_AS(vkBindBufferMemory2, vkBindBufferMemory2KHR),
    GIVEN_AS(vkBindImageMemory2, vkBindImageMemory2KHR),
    GIVEN_AS(vkGetPhysicalDeviceMemoryProperties2, vkGetPhysicalDeviceMemoryProperties2KHR),
    GIVEN(vkGetDeviceBufferMemoryRequirements),
    GIVEN(vkGetDeviceImageMemoryRequirements),
    GIVEN_AS(vkGetPhysicalDeviceProperties2, vkGetPhysicalDeviceProperties2KHR),
};

/* Returns the function of the program with this name; NULL: it gives none. */
static PFN_vkVoidFunction given_function(const char *name)
{
    PFN_vkVoidFunction function = NULL;
    for (size_t i = 0; loading.given && i < sizeof GIVEN / sizeof *GIVEN; i++)
        if (!strcmp(name, GIVEN[i].name))
            memcpy(&function, (const char *)loading.given + GIVEN[i].offset, sizeof function);
    return function;
}

/* ---- getters -------------------------------------------------------------------------------- */

/* The library stays loaded: the program's instance is of the same one. */
static PFN_vkGetInstanceProcAddr of_loader(void)
{
    void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    PFN_vkGetInstanceProcAddr get = NULL;
    void *symbol = library ? dlsym(library, "vkGetInstanceProcAddr") : NULL;
    memcpy(&get, &symbol, sizeof get);
    return get;
}

VkResult qi_vma_functions_begin(const VmaVulkanFunctions *given, bool has_getters,
                                PFN_vkGetInstanceProcAddr linked, VkInstance instance)
{
    const VmaVulkanFunctions *getters = has_getters ? given : NULL;
    loading = (source){.given = given, .get = getters ? getters->vkGetInstanceProcAddr : NULL};
    if (!loading.get)
        loading.get = linked ? linked : of_loader();
    if (!loading.get)
        return qi_vma_fail(VK_ERROR_INITIALIZATION_FAILED,
                           "pVulkanFunctions has no vkGetInstanceProcAddr, and libvulkan.so.1 is "
                           "not installed");
    loading.get_of_device = getters ? getters->vkGetDeviceProcAddr : NULL;
    if (!loading.get_of_device)
        loading.get_of_device =
            (PFN_vkGetDeviceProcAddr)loading.get(instance, "vkGetDeviceProcAddr");
    return VK_SUCCESS;
}

void qi_vma_functions_end(void)
{
    loading = (source){.given = NULL};
}

enum { MAX_NAME = 64 };

/* Appends the suffix of Khronos' extensions, unless the name ends with it. */
static const char *name_of_extension(const char *name, char *text)
{
    size_t length = strlen(name);
    if (length + 4 > MAX_NAME || (length > 3 && !strcmp(name + length - 3, "KHR")))
        return NULL;
    snprintf(text, MAX_NAME, "%sKHR", name);
    return text;
}

PFN_vkVoidFunction VKAPI_CALL qi_vma_instance_function(VkInstance instance, const char *name)
{
    char text[MAX_NAME];
    if (!strcmp(name, "vkGetDeviceProcAddr"))
        return (PFN_vkVoidFunction)qi_vma_device_function;
    PFN_vkVoidFunction function = given_function(name);
    if (!function && loading.get)
        function = loading.get(instance, name);
    if (!function && loading.get && name_of_extension(name, text))
        function = loading.get(instance, text);
    return function;
}

PFN_vkVoidFunction VKAPI_CALL qi_vma_device_function(VkDevice device, const char *name)
{
    char text[MAX_NAME];
    PFN_vkVoidFunction function = given_function(name);
    if (!function && loading.get_of_device)
        function = loading.get_of_device(device, name);
    if (!function && loading.get_of_device && name_of_extension(name, text))
        function = loading.get_of_device(device, text);
    return function;
}

/* ---- the table ------------------------------------------------------------------------------ */

static VkResult check(PFN_vkVoidFunction function, const char *name, bool required)
{
    if (function || !required)
        return VK_SUCCESS;
    return qi_vma_fail(VK_ERROR_INITIALIZATION_FAILED, "the device has no %s", name);
}

VkResult qi_vma_functions_load(VkInstance instance, VkDevice device, qi_vma_functions *f)
{
    VkResult result = VK_SUCCESS;
    *f = (qi_vma_functions){.has_memory_fd = false};
#define LOAD(get, owner, name, required)                                                           \
    if (!result) {                                                                                 \
        f->name = (PFN_vk##name)get(owner, "vk" #name);                                            \
        result = check((PFN_vkVoidFunction)f->name, "vk" #name, required);                         \
    }
#define LOAD_OF_DEVICE(name, required) LOAD(qi_vma_device_function, device, name, required)
#define LOAD_OF_INSTANCE(name, required) LOAD(qi_vma_instance_function, instance, name, required)
    QI_VMA_DEVICE_FUNCTIONS(LOAD_OF_DEVICE)
    QI_VMA_INSTANCE_FUNCTIONS(LOAD_OF_INSTANCE)
    f->has_memory_fd = qi_vma_device_function(device, "vkGetMemoryFdKHR") != NULL;
    return result;
}
