/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * allocator.c - creates and destroys allocators: finds the functions of Vulkan, and says what the
 * flags mean for the program's device in the form in which quire reads it.
 */
#include "src/adapters/vma/allocator.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "quire/quire_vma.h"
#include "quire/vulkan.h"
#include "src/adapters/vma/allocation.h"
#include "src/adapters/vma/memory.h"

/* ---- functions that a program gives ------------------------------------------------------- */

/*
 * quire takes two getters, whose type has no room for a pointer of the caller. The functions of the
 * program are therefore found by way of the thread, which is the one that loads them.
 *
 * While a thread is between begin_functions and end_functions, the two getters below find functions
 * for it: first those of `given`, then those of its getters if it `has_getters`, then those of
 * `linked`, then those of the system's loader. A function of Vulkan 1.1 and later may have its name
 * of an extension. Without any getter begin_functions fails with INITIALIZATION_FAILED.
 */

typedef struct source {
    const VmaVulkanFunctions *given; /* NULL: none */
    PFN_vkGetInstanceProcAddr get;
    PFN_vkGetDeviceProcAddr get_of_device;
} source;

static _Thread_local source loading;

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

/* ---- getters ------------------------------------------------------------------------------ */

/* The library stays loaded: the program's instance is of the same one. */
static PFN_vkGetInstanceProcAddr of_loader(void)
{
    void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    PFN_vkGetInstanceProcAddr get = NULL;
    void *symbol = library ? dlsym(library, "vkGetInstanceProcAddr") : NULL;
    memcpy(&get, &symbol, sizeof get);
    return get;
}

static VkResult begin_functions(const VmaVulkanFunctions *given, bool has_getters,
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

static void end_functions(void)
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

static PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice device, const char *name)
{
    char text[MAX_NAME];
    PFN_vkVoidFunction function = given_function(name);
    if (!function && loading.get_of_device)
        function = loading.get_of_device(device, name);
    if (!function && loading.get_of_device && name_of_extension(name, text))
        function = loading.get_of_device(device, text);
    return function;
}

static PFN_vkVoidFunction VKAPI_CALL instance_function(VkInstance instance, const char *name)
{
    char text[MAX_NAME];
    if (!strcmp(name, "vkGetDeviceProcAddr"))
        return (PFN_vkVoidFunction)device_function;
    PFN_vkVoidFunction function = given_function(name);
    if (!function && loading.get)
        function = loading.get(instance, name);
    if (!function && loading.get && name_of_extension(name, text))
        function = loading.get(instance, text);
    return function;
}

/* ---- the table of functions --------------------------------------------------------------- */

static VkResult check_function(PFN_vkVoidFunction function, const char *name, bool required)
{
    if (function || !required)
        return VK_SUCCESS;
    return qi_vma_fail(VK_ERROR_INITIALIZATION_FAILED, "the device has no %s", name);
}

/* Loads the table, between begin and end. Fails with INITIALIZATION_FAILED and the name. */
static VkResult load_functions(VkInstance instance, VkDevice device, qi_vma_functions *f)
{
    VkResult result = VK_SUCCESS;
    *f = (qi_vma_functions){.has_memory_fd = false};
#define LOAD(get, owner, name, required)                                                           \
    if (!result) {                                                                                 \
        f->name = (PFN_vk##name)get(owner, "vk" #name);                                            \
        result = check_function((PFN_vkVoidFunction)f->name, "vk" #name, required);                \
    }
#define LOAD_OF_DEVICE(name, required) LOAD(device_function, device, name, required)
#define LOAD_OF_INSTANCE(name, required) LOAD(instance_function, instance, name, required)
    QI_VMA_DEVICE_FUNCTIONS(LOAD_OF_DEVICE)
    QI_VMA_INSTANCE_FUNCTIONS(LOAD_OF_INSTANCE)
    f->has_memory_fd = device_function(device, "vkGetMemoryFdKHR") != NULL;
    return result;
}

/* ---- how the program's device was created ------------------------------------------------- */

enum { MAX_EXTENSIONS = 8 };

/* Create infos that say what the flags say. Must not be moved. */
typedef struct enabled {
    VkApplicationInfo application;
    VkInstanceCreateInfo instance;
    VkDeviceCreateInfo device;
    VkPhysicalDeviceBufferDeviceAddressFeatures address;
    VkPhysicalDeviceCoherentMemoryFeaturesAMD coherent;
    VkPhysicalDeviceMemoryPriorityFeaturesEXT priority;
    VkPhysicalDeviceMaintenance4Features maintenance4;
    VkPhysicalDeviceProtectedMemoryFeatures guarded;
    const char *extensions[MAX_EXTENSIONS];
} enabled;

static void enable_extension(enabled *e, const char *name)
{
    e->extensions[e->device.enabledExtensionCount++] = name;
}

static void enable_feature(enabled *e, void *feature, VkStructureType type)
{
    VkBaseOutStructure *link = feature;
    link->sType = type;
    link->pNext = (void *)(uintptr_t)e->device.pNext;
    e->device.pNext = link;
}

/* The patch version does not count. */
static uint32_t version_of(const VmaAllocatorCreateInfo *info)
{
    uint32_t version = VK_MAKE_API_VERSION(0, VK_API_VERSION_MAJOR(info->vulkanApiVersion),
                                           VK_API_VERSION_MINOR(info->vulkanApiVersion), 0);
    return version > VK_API_VERSION_1_1 ? version : VK_API_VERSION_1_1;
}

static void describe_enabled(const VmaAllocatorCreateInfo *info, const qi_vma_functions *f,
                             enabled *e)
{
    *e = (enabled){.application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                   .apiVersion = version_of(info)},
                   .instance = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO},
                   .device = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO}};
    e->instance.pApplicationInfo = &e->application;
    e->device.ppEnabledExtensionNames = e->extensions;
    if (info->flags & VMA_ALLOCATOR_CREATE_EXT_MEMORY_BUDGET_BIT)
        enable_extension(e, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    if (info->flags & VMA_ALLOCATOR_CREATE_AMD_DEVICE_COHERENT_MEMORY_BIT) {
        enable_extension(e, VK_AMD_DEVICE_COHERENT_MEMORY_EXTENSION_NAME);
        e->coherent.deviceCoherentMemory = VK_TRUE;
        enable_feature(e, &e->coherent,
                       VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COHERENT_MEMORY_FEATURES_AMD);
    }
    if (info->flags & VMA_ALLOCATOR_CREATE_BUFFER_DEVICE_ADDRESS_BIT) {
        enable_extension(e, VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME);
        e->address.bufferDeviceAddress = VK_TRUE;
        enable_feature(e, &e->address,
                       VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES);
    }
    if (info->flags & VMA_ALLOCATOR_CREATE_EXT_MEMORY_PRIORITY_BIT) {
        enable_extension(e, VK_EXT_MEMORY_PRIORITY_EXTENSION_NAME);
        e->priority.memoryPriority = VK_TRUE;
        enable_feature(e, &e->priority,
                       VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PRIORITY_FEATURES_EXT);
    }
    if (info->flags & VMA_ALLOCATOR_CREATE_KHR_MAINTENANCE4_BIT ||
        version_of(info) >= VK_API_VERSION_1_3) {
        enable_extension(e, VK_KHR_MAINTENANCE_4_EXTENSION_NAME);
        e->maintenance4.maintenance4 = VK_TRUE;
        enable_feature(e, &e->maintenance4,
                       VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES);
    }
    if (f->has_memory_fd)
        enable_extension(e, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
}

/* No flag says that the program's device has protected memory. As in VMA, a program that names such
   a type has enabled the feature; a search never chooses one if another type will do. */
static void describe_protected(const VkPhysicalDeviceMemoryProperties *memory, enabled *e)
{
    for (uint32_t i = 0; i < memory->memoryTypeCount && !e->guarded.protectedMemory; i++)
        if (memory->memoryTypes[i].propertyFlags & VK_MEMORY_PROPERTY_PROTECTED_BIT) {
            e->guarded.protectedMemory = VK_TRUE;
            enable_feature(e, &e->guarded,
                           VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROTECTED_MEMORY_FEATURES);
        }
}

/* ---- the quire device --------------------------------------------------------------------- */

/* Pages need no device address of their own: the program asks for that of its buffers. */
static VkResult wrap(VmaAllocator allocator, const VmaAllocatorCreateInfo *info)
{
    enabled e;
    describe_enabled(info, &allocator->f, &e);
    describe_protected(&allocator->memory, &e);
    const quire_vulkan_wrap_options options = {
        .instance = info->instance,
        .physical_device = info->physicalDevice,
        .device = info->device,
        .get_instance_proc_addr = instance_function,
        .get_device_proc_addr = device_function,
        .instance_info = &e.instance,
        .device_info = &e.device,
        .settings = {.device = {.host_memory = &allocator->host.memory, .log = QI_VMA_LOG},
                     .callbacks = qi_vma_host_callbacks(&allocator->host),
                     .page_usage =
                         VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
                     .export_types = allocator->exported},
    };
    switch (quire_vulkan_wrap(&options, &allocator->quire)) {
    case QUIRE_SUCCESS:
        return VK_SUCCESS;
    case QUIRE_ERROR_UNSUPPORTED:
        return VK_ERROR_INCOMPATIBLE_DRIVER;
    case QUIRE_ERROR_OUT_OF_HOST_MEMORY:
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    default:
        return VK_ERROR_INITIALIZATION_FAILED;
    }
}

/* Device-coherent types of AMD need the flag. */
static uint32_t usable_types(VmaAllocator allocator)
{
    uint32_t mask = 0;
    const VkMemoryPropertyFlags amd = QUIRE_DEVICE_COHERENT | QUIRE_DEVICE_UNCACHED;
    bool has_amd = allocator->flags & VMA_ALLOCATOR_CREATE_AMD_DEVICE_COHERENT_MEMORY_BIT;
    for (uint32_t i = 0; i < allocator->memory.memoryTypeCount; i++)
        if (has_amd || !(qi_vma_flags_of_type(allocator, i) & amd))
            mask |= UINT32_C(1) << i;
    return mask;
}

static VkResult limit_heaps(VmaAllocator allocator, const VkDeviceSize *limits)
{
    for (uint32_t i = 0; limits && i < allocator->memory.memoryHeapCount; i++) {
        VkMemoryHeap *heap = &allocator->memory.memoryHeaps[i];
        if (limits[i] == VK_WHOLE_SIZE || limits[i] >= heap->size)
            continue;
        heap->size = limits[i];
        /* 0 would be no limit */
        quire_result result =
            quire_device_set_heap_limit(allocator->quire, i, limits[i] ? limits[i] : 1);
        if (result)
            return qi_vma_result(result);
    }
    return VK_SUCCESS;
}

/* A quire device exports one set of handle types. */
static VkResult read_exports(VmaAllocator allocator, const VkExternalMemoryHandleTypeFlags *types)
{
    for (uint32_t i = 0; types && i < allocator->memory.memoryTypeCount; i++) {
        if (!types[i])
            continue;
        if (allocator->exported && allocator->exported != types[i])
            return qi_vma_fail(VK_ERROR_FEATURE_NOT_PRESENT,
                               "pTypeExternalMemoryHandleTypes has different handle types: quire "
                               "exports the same from all memory types");
        allocator->exported = types[i];
        allocator->exporting_types |= UINT32_C(1) << i;
    }
    return VK_SUCCESS;
}

/* Between begin_functions and end. */
static VkResult open_device(VmaAllocator allocator, const VmaAllocatorCreateInfo *info)
{
    VkResult result = load_functions(info->instance, info->device, &allocator->f);
    if (result)
        return result;
    allocator->f.GetPhysicalDeviceProperties(info->physicalDevice, &allocator->properties);
    allocator->f.GetPhysicalDeviceMemoryProperties(info->physicalDevice, &allocator->memory);
    allocator->usable_types = usable_types(allocator);
    result = read_exports(allocator, info->pTypeExternalMemoryHandleTypes);
    if (!result)
        result = wrap(allocator, info);
    if (!result)
        result = limit_heaps(allocator, info->pHeapSizeLimit);
    return result;
}

/* ---- all allocators ----------------------------------------------------------------------- */

/* Of the process, to find that of an allocation from its handle alone. */

static pthread_mutex_t all_mutex = PTHREAD_MUTEX_INITIALIZER;
static VmaAllocator newest; /* under all_mutex, like next_allocator of each allocator */

static void add_to_all(VmaAllocator allocator)
{
    pthread_mutex_lock(&all_mutex);
    allocator->next_allocator = newest;
    newest = allocator;
    pthread_mutex_unlock(&all_mutex);
}

static void remove_from_all(VmaAllocator allocator)
{
    pthread_mutex_lock(&all_mutex);
    VmaAllocator *link = &newest;
    while (*link != allocator)
        link = &(*link)->next_allocator;
    *link = allocator->next_allocator;
    pthread_mutex_unlock(&all_mutex);
}

/* all_mutex keeps the allocator while its record is read. */
void quire_vma_get_info_of_handle(VmaAllocation handle, VmaAllocationInfo *info)
{
    const qi_vma_allocation *a = NULL;
    *info = (VmaAllocationInfo){0};
    pthread_mutex_lock(&all_mutex);
    if (!newest)
        qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT, "there is no allocator");
    for (VmaAllocator at = newest; at && !a; at = at->next_allocator)
        a = qi_vma_table_find(&at->allocations, (uintptr_t)handle);
    if (a)
        qi_vma_describe(a, info);
    pthread_mutex_unlock(&all_mutex);
    if (!a)
        qi_vma_print("VmaAllocation_T");
}

/* ---- creation and destruction ------------------------------------------------------------- */

static const VmaAllocatorCreateFlags KNOWN_FLAGS =
    VMA_ALLOCATOR_CREATE_EXTERNALLY_SYNCHRONIZED_BIT |
    VMA_ALLOCATOR_CREATE_KHR_DEDICATED_ALLOCATION_BIT | VMA_ALLOCATOR_CREATE_KHR_BIND_MEMORY2_BIT |
    VMA_ALLOCATOR_CREATE_EXT_MEMORY_BUDGET_BIT |
    VMA_ALLOCATOR_CREATE_AMD_DEVICE_COHERENT_MEMORY_BIT |
    VMA_ALLOCATOR_CREATE_BUFFER_DEVICE_ADDRESS_BIT | VMA_ALLOCATOR_CREATE_EXT_MEMORY_PRIORITY_BIT |
    VMA_ALLOCATOR_CREATE_KHR_MAINTENANCE4_BIT | VMA_ALLOCATOR_CREATE_KHR_MAINTENANCE5_BIT;

static VkResult check(const VmaAllocatorCreateInfo *info)
{
    if (!info->instance || !info->physicalDevice || !info->device)
        return qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT,
                           "vmaCreateAllocator: instance, physicalDevice or device is null");
    if (info->flags & ~KNOWN_FLAGS)
        return qi_vma_fail(VK_ERROR_FEATURE_NOT_PRESENT, "vmaCreateAllocator: flags 0x%x",
                           info->flags & ~KNOWN_FLAGS);
    const VmaDeviceMemoryCallbacks *callbacks = info->pDeviceMemoryCallbacks;
    if (callbacks && (callbacks->pfnAllocate || callbacks->pfnFree))
        return qi_vma_fail(VK_ERROR_FEATURE_NOT_PRESENT,
                           "vmaCreateAllocator: pDeviceMemoryCallbacks");
    return qi_vma_host_can_use(info->pAllocationCallbacks) ? VK_SUCCESS
                                                           : VK_ERROR_VALIDATION_FAILED_EXT;
}

static void release(VmaAllocator allocator)
{
    qi_vma_host host = allocator->host; /* its callbacks outlive the record */
    qi_vma_table_end(&allocator->allocations);
    qi_vma_table_end(&allocator->pools);
    qi_vma_table_end(&allocator->defragmentations);
    pthread_mutex_destroy(&allocator->mutex);
    qi_vma_host_release(&host, allocator);
}

static VkResult make(const VmaAllocatorCreateInfo *info, VmaAllocator *out)
{
    qi_vma_host host;
    qi_vma_host_begin(&host, info->pAllocationCallbacks);
    VmaAllocator allocator = qi_vma_host_allocate(&host, sizeof *allocator);
    if (!allocator)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    qi_vma_host_begin(&allocator->host, info->pAllocationCallbacks);
    allocator->instance = info->instance;
    allocator->physical_device = info->physicalDevice;
    allocator->device = info->device;
    allocator->flags = info->flags;
    allocator->block_size = info->preferredLargeHeapBlockSize;
    pthread_mutex_init(&allocator->mutex, NULL);
    qi_vma_table_begin(&allocator->allocations, &allocator->host, "allocation",
                       sizeof(qi_vma_allocation));
    qi_vma_table_begin(&allocator->pools, &allocator->host, "pool", sizeof(qi_vma_pool));
    qi_vma_table_begin(&allocator->defragmentations, &allocator->host, "defragmentation",
                       sizeof(qi_vma_context));
    VkResult result = open_device(allocator, info);
    if (!result) {
        add_to_all(allocator);
        *out = allocator;
        return VK_SUCCESS;
    }
    if (allocator->quire && quire_device_destroy(&allocator->quire))
        qi_vma_print("vmaCreateAllocator");
    release(allocator);
    return result;
}

VkResult quire_vma_create_allocator(const VmaAllocatorCreateInfo *info,
                                    PFN_vkGetInstanceProcAddr linked, VkBool32 has_getters,
                                    VmaAllocator *allocator)
{
    if (allocator)
        *allocator = NULL;
    if (!info || !allocator)
        return qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT,
                           "vmaCreateAllocator: pCreateInfo or pAllocator is null");
    VkResult result = check(info);
    if (!result)
        result = begin_functions(info->pVulkanFunctions, has_getters, linked, info->instance);
    if (!result)
        result = make(info, allocator);
    end_functions();
    return result;
}

/* Whether no context exists. Sets the last error otherwise. */
static bool defragmentations_are_over(VmaAllocator allocator)
{
    const qi_vma_table *table = &allocator->defragmentations;
    for (uint32_t i = 0; i < atomic_load(&table->count); i++)
        if (qi_vma_table_at(table, i)) {
            qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT,
                        "the allocator stays: vmaEndDefragmentation is missing");
            return false;
        }
    return true;
}

/* Destroys what is empty only after it is known that everything is. */
static void destroy(VmaAllocator allocator)
{
    if (!defragmentations_are_over(allocator) || !qi_vma_memories_are_empty(allocator)) {
        qi_vma_print("vmaDestroyAllocator");
        return;
    }
    remove_from_all(allocator);
    qi_vma_memories_destroy(allocator);
    if (quire_device_destroy(&allocator->quire))
        qi_vma_print("vmaDestroyAllocator");
    release(allocator);
}

void quire_vma_destroy_allocator(VmaAllocator allocator, quire_vma_leak_log log)
{
    qi_vma_send_lines(log);
    if (allocator)
        destroy(allocator);
    qi_vma_send_lines(NULL);
}

/* ---- information -------------------------------------------------------------------------- */

bool qi_vma_is_allocator(VmaAllocator allocator)
{
    if (!allocator)
        qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT, "the allocator is null");
    return allocator != NULL;
}

/* Begins each function that writes one output; prints what is wrong. */
static bool has_output(const char *function, VmaAllocator allocator, const void *output)
{
    bool is_good = qi_vma_is_allocator(allocator);
    if (is_good && !output) {
        qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT, "the output is null");
        is_good = false;
    }
    if (!is_good)
        qi_vma_print(function);
    return is_good;
}

void quire_vma_get_allocator_info(VmaAllocator allocator, VmaAllocatorInfo *info)
{
    if (has_output("vmaGetAllocatorInfo", allocator, info))
        *info = (VmaAllocatorInfo){.instance = allocator->instance,
                                   .physicalDevice = allocator->physical_device,
                                   .device = allocator->device};
}

void quire_vma_get_physical_device_properties(VmaAllocator allocator,
                                              const VkPhysicalDeviceProperties **properties)
{
    if (has_output("vmaGetPhysicalDeviceProperties", allocator, properties))
        *properties = &allocator->properties;
}

void quire_vma_get_memory_properties(VmaAllocator allocator,
                                     const VkPhysicalDeviceMemoryProperties **properties)
{
    if (has_output("vmaGetMemoryProperties", allocator, properties))
        *properties = &allocator->memory;
}

void quire_vma_get_memory_type_properties(VmaAllocator allocator, uint32_t type,
                                          VkMemoryPropertyFlags *flags)
{
    if (has_output("vmaGetMemoryTypeProperties", allocator, flags))
        *flags =
            type < allocator->memory.memoryTypeCount ? qi_vma_flags_of_type(allocator, type) : 0;
}

/* The number itself says nothing to quire, which asks for the budget whenever it makes a page. */
void quire_vma_set_current_frame_index(VmaAllocator allocator, uint32_t frame)
{
    (void)frame;
    if (qi_vma_is_allocator(allocator))
        qi_vma_trim(allocator);
    else
        qi_vma_print("vmaSetCurrentFrameIndex");
}
