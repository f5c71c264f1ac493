/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * device.c - what is enabled on a device is read from the create infos of the instance and the
 * device, because Vulkan cannot be queried for it: the extension names, pEnabledFeatures and the
 * structs of the pNext chain. Also settings and properties, description and budgets, the state
 * behind a public handle, and what a forked child calls instead of the driver.
 */
#include "backends/vulkan/device.h"

#include <stdio.h>
#include <string.h>

#include "backends/vulkan/functions.h"
#include "src/base/log.h"
#include "src/base/result.h"

/* ---- what is enabled ---------------------------------------------------------------------- */

static bool has_name(const char *const *names, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

static bool has_extension(const VkDeviceCreateInfo *device, const char *name)
{
    return has_name(device->ppEnabledExtensionNames, device->enabledExtensionCount, name);
}

/* A chain can state a feature in several structs, so that the values are combined. */
static void read_features(const VkPhysicalDeviceFeatures *features, qi_vulkan_enabled *out)
{
    out->sparse_binding |= features->sparseBinding != 0;
    out->sparse_buffer |= features->sparseResidencyBuffer != 0;
    out->sparse_image_2d |= features->sparseResidencyImage2D != 0;
    out->sparse_image_3d |= features->sparseResidencyImage3D != 0;
    out->sparse_aliased |= features->sparseResidencyAliased != 0;
    out->sparse_samples |= features->sparseResidency2Samples ? VK_SAMPLE_COUNT_2_BIT : 0;
    out->sparse_samples |= features->sparseResidency4Samples ? VK_SAMPLE_COUNT_4_BIT : 0;
    out->sparse_samples |= features->sparseResidency8Samples ? VK_SAMPLE_COUNT_8_BIT : 0;
    out->sparse_samples |= features->sparseResidency16Samples ? VK_SAMPLE_COUNT_16_BIT : 0;
}

/* Reads one struct of the pNext chain. Unknown types are skipped. */
static void read_struct(const VkBaseInStructure *link, qi_vulkan_enabled *out)
{
    switch ((int)link->sType) {
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2:
        read_features(&((const VkPhysicalDeviceFeatures2 *)link)->features, out);
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES:
        out->protected_memory |=
            ((const VkPhysicalDeviceVulkan11Features *)link)->protectedMemory != 0;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROTECTED_MEMORY_FEATURES:
        out->protected_memory |=
            ((const VkPhysicalDeviceProtectedMemoryFeatures *)link)->protectedMemory != 0;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES:
        out->device_address |=
            ((const VkPhysicalDeviceVulkan12Features *)link)->bufferDeviceAddress != 0;
        out->timeline |= ((const VkPhysicalDeviceVulkan12Features *)link)->timelineSemaphore != 0;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES:
        out->timeline |=
            ((const VkPhysicalDeviceTimelineSemaphoreFeatures *)link)->timelineSemaphore != 0;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES:
        out->device_address |=
            ((const VkPhysicalDeviceBufferDeviceAddressFeatures *)link)->bufferDeviceAddress != 0;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES:
        out->maintenance4 |= ((const VkPhysicalDeviceVulkan13Features *)link)->maintenance4 != 0;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES:
        out->maintenance4 |=
            ((const VkPhysicalDeviceMaintenance4Features *)link)->maintenance4 != 0;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PRIORITY_FEATURES_EXT:
        out->memory_priority |=
            ((const VkPhysicalDeviceMemoryPriorityFeaturesEXT *)link)->memoryPriority != 0;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PAGEABLE_DEVICE_LOCAL_MEMORY_FEATURES_EXT:
        out->pageable |= ((const VkPhysicalDevicePageableDeviceLocalMemoryFeaturesEXT *)link)
                             ->pageableDeviceLocalMemory != 0;
        break;
    case (int)QI_VULKAN_ZERO_FEATURES:
        out->zero_initialize |=
            ((const qi_vulkan_zero_features *)link)->zeroInitializeDeviceMemory != 0;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COHERENT_MEMORY_FEATURES_AMD:
        out->device_coherent |=
            ((const VkPhysicalDeviceCoherentMemoryFeaturesAMD *)link)->deviceCoherentMemory != 0;
        break;
    default:
        break;
    }
}

/* A feature is enabled only with the version or extension that it belongs to. */
static void read_device(uint32_t api_version, const VkDeviceCreateInfo *device,
                        qi_vulkan_enabled *out)
{
    for (const VkBaseInStructure *link = device->pNext; link; link = link->pNext)
        read_struct(link, out);
    if (device->pEnabledFeatures)
        read_features(device->pEnabledFeatures, out);
    out->device_address &= api_version >= VK_API_VERSION_1_2 ||
                           has_extension(device, VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME);
    out->timeline &= api_version >= VK_API_VERSION_1_2 ||
                     has_extension(device, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME);
    out->maintenance4 &= api_version >= VK_API_VERSION_1_3 ||
                         has_extension(device, VK_KHR_MAINTENANCE_4_EXTENSION_NAME);
    out->max_buffer = has_extension(device, VK_KHR_MAINTENANCE_4_EXTENSION_NAME);
    out->memory_priority &= has_extension(device, VK_EXT_MEMORY_PRIORITY_EXTENSION_NAME);
    out->pageable &= has_extension(device, VK_EXT_PAGEABLE_DEVICE_LOCAL_MEMORY_EXTENSION_NAME);
    out->zero_initialize &= has_extension(device, QI_VULKAN_ZERO_EXTENSION);
    out->device_coherent &= has_extension(device, VK_AMD_DEVICE_COHERENT_MEMORY_EXTENSION_NAME);
    out->memory_budget = has_extension(device, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    out->external_fd = has_extension(device, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
    out->dma_buf =
        out->external_fd && has_extension(device, VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME);
    out->host_pointer = has_extension(device, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
    out->win32 = has_extension(device, "VK_KHR_external_memory_win32");
}

/* Returns what the create infos enable. */
static qi_vulkan_enabled find_enabled(uint32_t api_version, const VkInstanceCreateInfo *instance,
                                      const VkDeviceCreateInfo *device)
{
    qi_vulkan_enabled out = {0};
    out.debug_utils = has_name(instance->ppEnabledExtensionNames, instance->enabledExtensionCount,
                               VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
    read_device(api_version, device, &out);
    return out;
}

/* ---- settings and properties -------------------------------------------------------------- */

/* Bytes of the staging ring. */
static const uint64_t DEFAULT_STAGING = UINT64_C(4) << 20;
static const uint64_t MIN_STAGING = UINT64_C(4) << 10, MAX_STAGING = UINT64_C(1) << 30;

/* The default usage of the buffer over a page: every usage of Vulkan 1.1. */
static const VkBufferUsageFlags PAGE_USAGE =
    VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
    VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT | VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT |
    VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT | VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
    VK_BUFFER_USAGE_INDEX_BUFFER_BIT | VK_BUFFER_USAGE_VERTEX_BUFFER_BIT |
    VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT;

#ifdef _WIN32
static const VkExternalMemoryHandleTypeFlags EXPORT_TYPES =
    VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_BIT;
#else
static const VkExternalMemoryHandleTypeFlags EXPORT_TYPES =
    VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
#endif

quire_result qi_vulkan_check_settings(const quire_vulkan_settings *settings)
{
    if (settings->staging_size &&
        (settings->staging_size < MIN_STAGING || settings->staging_size > MAX_STAGING))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "a staging_size of %b: the allowed range is %b to %b",
                            settings->staging_size, MIN_STAGING, MAX_STAGING);
    if (settings->memory_limit > QUIRE_VULKAN_LIMIT_ADVICE)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "unknown memory_limit %u",
                            (uint64_t)settings->memory_limit);
    uint32_t families = settings->queue_family_count;
    if (families && families != QUIRE_VULKAN_ALL_FAMILIES &&
        (families > QUIRE_VULKAN_MAX_FAMILIES || !settings->queue_families))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "queue_family_count is %u: at most %u families, listed in "
                            "queue_families, or QUIRE_VULKAN_ALL_FAMILIES",
                            families, QUIRE_VULKAN_MAX_FAMILIES);
    return qi_check_unused(settings, "quire_vulkan_settings");
}

/* Returns the API version that the instance was created with. Vulkan cannot be queried for it. */
static uint32_t version_of(const quire_vulkan_wrap_options *options)
{
    const VkApplicationInfo *application = options->instance_info->pApplicationInfo;
    return application && application->apiVersion ? application->apiVersion : VK_API_VERSION_1_0;
}

static quire_result refuse_version(const quire_vulkan_wrap_options *options, const char *device,
                                   uint32_t version)
{
    const VkInstanceCreateInfo *info = options->instance_info;
    if (!info->pApplicationInfo || !info->pApplicationInfo->apiVersion)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "the backend needs Vulkan 1.1: instance_info has no apiVersion in "
                       "pApplicationInfo, so that the instance has version 1.0");
    return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                        "instance and device '%s' have Vulkan %u.%u: the backend needs 1.1", device,
                        VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version));
}

/* Only a device with maintenance4 has a limit for the size of buffers. */
static uint64_t query_max_buffer(const qi_vulkan *vulkan)
{
    VkPhysicalDeviceMaintenance4Properties maintenance = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &maintenance};
    if (vulkan->api_version < VK_API_VERSION_1_3 && !vulkan->enabled.max_buffer)
        return UINT64_MAX;
    vulkan->f.GetPhysicalDeviceProperties2(vulkan->physical_device, &properties);
    return maintenance.maxBufferSize ? maintenance.maxBufferSize : UINT64_MAX;
}

/* Drivers that are known to serve more memory objects than they state: see
   quire_vulkan_memory_limit. */
static bool serves_more(const qi_vulkan *vulkan)
{
    VkPhysicalDeviceDriverProperties driver = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &driver};
    if (vulkan->api_version < VK_API_VERSION_1_2)
        return false;
    vulkan->f.GetPhysicalDeviceProperties2(vulkan->physical_device, &properties);
    bool is_integrated = properties.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
    return driver.driverID == VK_DRIVER_ID_GOOGLE_SWIFTSHADER ||
           (driver.driverID == VK_DRIVER_ID_AMD_PROPRIETARY && is_integrated);
}

quire_result qi_vulkan_read_properties(qi_vulkan *vulkan, const quire_vulkan_wrap_options *options)
{
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT host = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
    VkPhysicalDeviceMaintenance3Properties maintenance = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &maintenance};
    VkPhysicalDeviceMemoryProperties2 memory = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    uint32_t version = version_of(options);
    vulkan->enabled = find_enabled(version, options->instance_info, options->device_info);
    if (vulkan->enabled.host_pointer)
        maintenance.pNext = &host;
    vulkan->f.GetPhysicalDeviceProperties2(vulkan->physical_device, &properties);
    vulkan->f.GetPhysicalDeviceMemoryProperties2(vulkan->physical_device, &memory);
    vulkan->memory = memory.memoryProperties;
    vulkan->limits = properties.properties.limits;
    vulkan->usual_page_size = maintenance.maxMemoryAllocationSize;
    vulkan->host_pointer_alignment = host.minImportedHostPointerAlignment;
    vulkan->api_version =
        version < properties.properties.apiVersion ? version : properties.properties.apiVersion;
    if (vulkan->api_version < VK_API_VERSION_1_1)
        return refuse_version(options, properties.properties.deviceName, vulkan->api_version);
    vulkan->max_buffer_size = query_max_buffer(vulkan);
    /* A create info can enable what get_instance_proc_addr has no function for. */
    vulkan->enabled.device_address &= vulkan->f.GetBufferDeviceAddress != NULL;
    vulkan->enabled.maintenance4 &= vulkan->f.GetDeviceBufferMemoryRequirements != NULL &&
                                    vulkan->f.GetDeviceImageMemoryRequirements != NULL;
    vulkan->enabled.timeline &= vulkan->f.GetSemaphoreCounterValue && vulkan->f.WaitSemaphores;
    vulkan->enabled.debug_utils &= vulkan->f.SetDebugUtilsObjectNameEXT != NULL;
    vulkan->enabled.external_fd &= vulkan->f.GetMemoryFdKHR != NULL;
    vulkan->enabled.pageable &= vulkan->f.SetDeviceMemoryPriorityEXT != NULL;
    vulkan->enabled.host_pointer &= vulkan->f.GetMemoryHostPointerPropertiesEXT != NULL;
    return QUIRE_SUCCESS;
}

void qi_vulkan_resolve_settings(qi_vulkan *vulkan, const quire_vulkan_settings *given)
{
    quire_vulkan_settings *settings = &vulkan->settings;
    *settings = *given;
    if (given->callbacks) {
        vulkan->callbacks_copy = *given->callbacks;
        vulkan->callbacks = &vulkan->callbacks_copy;
    }
    if (!settings->staging_size)
        settings->staging_size = DEFAULT_STAGING;
    if (!settings->export_types)
        settings->export_types = EXPORT_TYPES;
    vulkan->limit_is_advice = settings->memory_limit == QUIRE_VULKAN_LIMIT_ADVICE ||
                              (!settings->memory_limit && serves_more(vulkan));
    if (!settings->page_usage) {
        settings->page_usage = PAGE_USAGE;
        if (vulkan->enabled.device_address)
            settings->page_usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
    }
    settings->page_usage |= QI_VULKAN_TRANSFERS; /* copies of quire use the same buffers */
}

/* ---- the description ---------------------------------------------------------------------- */

/* Drivers round the size of a buffer up to at most this. A buffer over a page whose size is a
   multiple of it therefore fits into the page. */
static const uint64_t PAGE_GRANULARITY = 256;

/* The VkDeviceMemory that is reserved for the staging ring. */
enum { RING_MEMORIES = 1 };

/*
 * Returns how many VkDeviceMemory maxMemoryAllocationCount leaves to pages and streams: the staging
 * ring has one of its own. quire_limits.max_pages is this number. The core counts only pages, and
 * pages whose destruction is deferred no longer: therefore the backend counts by itself.
 */
static uint64_t max_memories(const qi_vulkan *vulkan)
{
    uint32_t max = vulkan->limits.maxMemoryAllocationCount;
    return max > RING_MEMORIES ? max - RING_MEMORIES : max;
}

/* Logged with a page in transit, as messages of drivers are. */
static void warn_of_count(qi_vulkan *vulkan)
{
    uint32_t first = 0;
    char text[160];
    if (!qi_atomic_exchange_if_u32(&vulkan->has_warned, &first, 1))
        return;
    snprintf(text, sizeof text,
             "the device has the %u memory objects of maxMemoryAllocationCount: from now on the "
             "driver decides whether there is another one",
             vulkan->limits.maxMemoryAllocationCount);
    qi_log_message(&vulkan->settings.device.log, QUIRE_LOG_WARNING, "vulkan", "", text);
}

quire_result qi_vulkan_count_memory(qi_vulkan *vulkan)
{
    uint64_t count = qi_atomic_load_u64(&vulkan->memory_count);
    if (count >= max_memories(vulkan) && vulkan->limit_is_advice)
        warn_of_count(vulkan);
    do {
        if (count >= max_memories(vulkan) && !vulkan->limit_is_advice)
            return quire_backend_fail(QUIRE_ERROR_TOO_MANY_PAGES, 0,
                                      "the driver allows %u memory objects: pages and streams have "
                                      "%u, the staging ring has the last one",
                                      vulkan->limits.maxMemoryAllocationCount, (unsigned)count);
    } while (!qi_atomic_exchange_if_u64(&vulkan->memory_count, &count, count + 1));
    return QUIRE_SUCCESS;
}

void qi_vulkan_uncount_memory(qi_vulkan *vulkan)
{
    qi_atomic_sub_release_u64(&vulkan->memory_count, 1);
}

bool qi_vulkan_is_short_of_memories(const qi_vulkan *vulkan)
{
    uint64_t max = max_memories(vulkan);
    return qi_atomic_load_u64(&vulkan->memory_count) >= max - max / 4;
}

/* Each chunk of an elastic page is a VkDeviceMemory. One page gets at most half of them. */
enum { MEMORIES_PER_CHUNK = 2 };

/* The core checks heaps and kinds against its own limits. */
quire_result qi_vulkan_describe(void *state, quire_device_info *info)
{
    const qi_vulkan *vulkan = state;
    VkPhysicalDeviceProperties2 properties = {.sType =
                                                  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    vulkan->f.GetPhysicalDeviceProperties2(vulkan->physical_device, &properties);
    snprintf(info->name, sizeof info->name, "%s", properties.properties.deviceName);
    const VkPhysicalDeviceMemoryProperties *memory = &vulkan->memory;
    info->heap_count = memory->memoryHeapCount;
    info->kind_count = memory->memoryTypeCount;
    for (uint32_t i = 0; i < memory->memoryHeapCount && i < QUIRE_MAX_HEAPS; i++)
        info->heaps[i] = (quire_heap){
            .size = memory->memoryHeaps[i].size,
            .flags = memory->memoryHeaps[i].flags &
                     (QUIRE_HEAP_DEVICE_LOCAL | QUIRE_HEAP_MULTI_INSTANCE),
        };
    for (uint32_t i = 0; i < memory->memoryTypeCount && i < QUIRE_MAX_KINDS; i++)
        info->kinds[i] = (quire_kind){
            .flags = memory->memoryTypes[i].propertyFlags & 0xff, /* drops RDMA_CAPABLE, bit 8 */
            .heap = memory->memoryTypes[i].heapIndex,
        };
    const VkPhysicalDeviceLimits *limits = &vulkan->limits;
    const qi_vulkan_elastic_limits *elastic = &vulkan->elastic;
    const uint64_t chunks = max_memories(vulkan) / MEMORIES_PER_CHUNK;
    info->limits = (quire_limits){
        .page_granularity = PAGE_GRANULARITY,
        .usual_page = vulkan->usual_page_size,
        .max_buffer = vulkan->max_buffer_size == UINT64_MAX ? 0 : vulkan->max_buffer_size,
        .max_pages = max_memories(vulkan),
        .max_pages_is_advice = vulkan->limit_is_advice,
        .buffer_image_granularity = limits->bufferImageGranularity,
        .non_coherent_atom = limits->nonCoherentAtomSize,
        .elastic_kinds = elastic->kinds,
        .elastic_granularity = elastic->granularity,
        .max_chunks = chunks ? chunks : 1,
        .elastic_unmapped = true,
        .max_elastic_page = elastic->max_size,
        .elastic_missing = elastic->missing,
    };
    info->exportable = vulkan->enabled.external_fd || vulkan->enabled.win32;
    return QUIRE_SUCCESS;
}

/* Without VK_EXT_memory_budget the zeros of the core stay: the budget is unknown. */
quire_result qi_vulkan_heap_budget(void *state, uint32_t heap, quire_heap_budget *budget)
{
    const qi_vulkan *vulkan = state;
    if (!vulkan->enabled.memory_budget)
        return QUIRE_SUCCESS;
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budgets = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &budgets};
    vulkan->f.GetPhysicalDeviceMemoryProperties2(vulkan->physical_device, &properties);
    budget->budget = budgets.heapBudget[heap];
    budget->usage = budgets.heapUsage[heap];
    return QUIRE_SUCCESS;
}

/* ---- the state behind a handle ------------------------------------------------------------ */

quire_result qi_vulkan_check_process(const qi_vulkan *vulkan)
{
    return vulkan->has_forked
               ? qi_fail(QUIRE_ERROR_NOT_PERMITTED,
                         "the Vulkan device was opened before a fork: the child process can only "
                         "destroy it")
               : QUIRE_SUCCESS;
}

/* Identifies the backend by the describe function: the table itself is in table.c, the top. */
qi_vulkan *qi_vulkan_of(const quire_device *device)
{
    if (device && quire_device_backend(device)->describe == qi_vulkan_describe) {
        qi_vulkan *vulkan = quire_device_state(device);
        return qi_vulkan_check_process(vulkan) ? NULL : vulkan;
    }
    qi_ignore(qi_fail_backend(device ? quire_device_backend(device)->name : NULL, "vulkan"));
    return NULL;
}

quire_result qi_vulkan_check_memory(const quire_memory *memory)
{
    const quire_device *device = quire_memory_device(memory);
    if (quire_device_backend(device)->describe == qi_vulkan_describe)
        return qi_vulkan_check_process(quire_device_state(device));
    return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the memory is not of the Vulkan backend");
}

quire_result qi_vulkan_of_memory(const quire_memory *memory, qi_vulkan **vulkan)
{
    quire_result result = qi_vulkan_check_memory(memory);
    *vulkan = result ? NULL : quire_device_state(quire_memory_device(memory));
    return result;
}

quire_result qi_vulkan_of_allocation(const quire_memory *memory, quire_allocation allocation,
                                     quire_native *native, qi_vulkan **vulkan)
{
    quire_result result = quire_allocation_get_native(memory, allocation, native);
    if (result)
        return result;
    *vulkan = qi_vulkan_of(native->device);
    return *vulkan
               ? QUIRE_SUCCESS
               : qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the memory is not of the Vulkan backend");
}

quire_result quire_vulkan_get_handles(const quire_device *device, quire_vulkan_handles *handles)
{
    if (!handles)
        return qi_fail_null("quire_vulkan_get_handles", "handles");
    *handles = (quire_vulkan_handles){0};
    const qi_vulkan *vulkan = qi_vulkan_of(device);
    if (!vulkan)
        return quire_last_result();
    *handles = (quire_vulkan_handles){
        .instance = vulkan->instance,
        .physical_device = vulkan->physical_device,
        .device = vulkan->device,
        .queue = vulkan->queue.queue,
        .queue_family = vulkan->queue.family,
        .api_version = vulkan->api_version,
        .get_instance_proc_addr = vulkan->get_instance_proc_addr,
        .sparse_queue = vulkan->sparse_queue.queue,
        .sparse_family = vulkan->sparse_queue.family,
    };
    return QUIRE_SUCCESS;
}

quire_result quire_vulkan_get_queue(const quire_device *device, uint32_t index,
                                    quire_vulkan_queue *queue)
{
    if (!queue)
        return qi_fail_null("quire_vulkan_get_queue", "queue");
    *queue = (quire_vulkan_queue){.queue = NULL};
    const qi_vulkan *vulkan = qi_vulkan_of(device);
    if (!vulkan)
        return quire_last_result();
    if (index >= vulkan->further_count)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                            "queue %u: the device was opened with %u further queue%s", index,
                            vulkan->further_count);
    queue->queue = vulkan->further[index].queue;
    queue->family = vulkan->further[index].family;
    return QUIRE_SUCCESS;
}

/* ---- what a forked child calls instead of the driver -------------------------------------- */

/*
 * A driver does not survive a fork, so that the child must not call it. Public functions answer
 * NOT_PERMITTED there (qi_vulkan_check_process). Destruction remains possible: the functions that
 * it calls are replaced. Those that destroy do nothing, and those that wait report a lost device,
 * on which nothing is running.
 */

#define DESTROY_NOTHING(name, type)                                                                \
    static VKAPI_ATTR void VKAPI_CALL name(VkDevice device, type object,                           \
                                           const VkAllocationCallbacks *callbacks)                 \
    {                                                                                              \
        (void)device;                                                                              \
        (void)object;                                                                              \
        (void)callbacks;                                                                           \
    }

DESTROY_NOTHING(free_memory, VkDeviceMemory)
DESTROY_NOTHING(destroy_buffer, VkBuffer)
DESTROY_NOTHING(destroy_image, VkImage)
DESTROY_NOTHING(destroy_view, VkImageView)
DESTROY_NOTHING(destroy_sampler, VkSampler)
DESTROY_NOTHING(destroy_pool, VkCommandPool)
DESTROY_NOTHING(destroy_fence, VkFence)
DESTROY_NOTHING(destroy_semaphore, VkSemaphore)

static VKAPI_ATTR void VKAPI_CALL unmap_memory(VkDevice device, VkDeviceMemory memory)
{
    (void)device;
    (void)memory;
}

static VKAPI_ATTR VkResult VKAPI_CALL wait_idle(VkDevice device)
{
    (void)device;
    return VK_ERROR_DEVICE_LOST;
}

static VKAPI_ATTR VkResult VKAPI_CALL wait_fences(VkDevice device, uint32_t count,
                                                  const VkFence *fences, VkBool32 all,
                                                  uint64_t nanoseconds)
{
    (void)count;
    (void)fences;
    (void)all;
    (void)nanoseconds;
    return wait_idle(device);
}

static VKAPI_ATTR VkResult VKAPI_CALL wait_semaphores(VkDevice device,
                                                      const VkSemaphoreWaitInfo *info,
                                                      uint64_t nanoseconds)
{
    (void)info;
    (void)nanoseconds;
    return wait_idle(device);
}

static VKAPI_ATTR VkResult VKAPI_CALL get_counter(VkDevice device, VkSemaphore semaphore,
                                                  uint64_t *value)
{
    (void)semaphore;
    (void)value;
    return wait_idle(device);
}

/* ---- the stages of a fork ----------------------------------------------------------------- */

/* The mutex is held across the fork, so that the child gets lists in a consistent state. */
void qi_vulkan_fork_prepare(void *state)
{
    qi_vulkan *vulkan = state;
    pthread_mutex_lock(&vulkan->deferred.mutex);
}

void qi_vulkan_fork_done(void *state)
{
    qi_vulkan *vulkan = state;
    pthread_mutex_unlock(&vulkan->deferred.mutex);
}

void qi_vulkan_fork_child(void *state, const uint64_t heap_bytes[QUIRE_MAX_HEAPS])
{
    qi_vulkan *vulkan = state;
    qi_vulkan_functions *f = &vulkan->f;
    (void)heap_bytes;
    vulkan->has_forked = true;
    vulkan->own_device = NULL; /* the parent destroys it, and the next two */
    vulkan->own_instance = NULL;
    vulkan->messenger = VK_NULL_HANDLE;
    f->FreeMemory = free_memory;
    f->UnmapMemory = unmap_memory;
    f->DestroyBuffer = destroy_buffer;
    f->DestroyImage = destroy_image;
    f->DestroyImageView = destroy_view;
    f->DestroySampler = destroy_sampler;
    f->DestroyCommandPool = destroy_pool;
    f->DestroyFence = destroy_fence;
    f->DestroySemaphore = destroy_semaphore;
    f->DeviceWaitIdle = wait_idle;
    f->WaitForFences = wait_fences;
    f->WaitSemaphores = wait_semaphores;
    f->GetSemaphoreCounterValue = get_counter;
}
