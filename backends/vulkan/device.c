/*
 * device.c - a Vulkan device as quire sees it: its description, its budgets, its table; wrapping
 * the caller's. What quire_vulkan_open makes beforehand is open.c.
 */
#include <stdio.h>
#include <string.h>

#include "backends/vulkan/staging.h"
#include "backends/vulkan/vulkan.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* Drivers round buffers up to this at most: a buffer over a page of whole units fits into it. */
static const uint64_t PAGE_GRANULARITY = 256;

static const uint64_t DEFAULT_STAGING = UINT64_C(4) << 20;
static const uint64_t LEAST_STAGING = UINT64_C(4) << 10, MAX_STAGING = UINT64_C(1) << 30;

/* One VkDeviceMemory is the backend's own: that of the staging buffer. */
enum { OWN_ALLOCATIONS = 1 };

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

/* ---- describing --------------------------------------------------------------------------- */

static quire_result vulkan_describe(void *state, quire_device_info *info)
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
            .flags =
                memory->memoryTypes[i].propertyFlags & 0xff, /* RDMA's above is no kind's use */
            .heap = memory->memoryTypes[i].heapIndex,
        };
    const VkPhysicalDeviceLimits *limits = &vulkan->limits;
    info->limits = (quire_limits){
        .page_granularity = PAGE_GRANULARITY,
        .max_page = vulkan->max_page,
        .max_pages = limits->maxMemoryAllocationCount > OWN_ALLOCATIONS
                         ? limits->maxMemoryAllocationCount - OWN_ALLOCATIONS
                         : limits->maxMemoryAllocationCount,
        .buffer_image_granularity = limits->bufferImageGranularity,
        .non_coherent_atom = limits->nonCoherentAtomSize,
    };
    info->exportable = vulkan->enabled.external_fd || vulkan->enabled.win32;
    return QUIRE_SUCCESS;
}

static quire_result vulkan_heap_budget(void *state, uint32_t heap, quire_heap_budget *budget)
{
    const qi_vulkan *vulkan = state;
    if (!vulkan->enabled.memory_budget)
        return QUIRE_SUCCESS;
    VkPhysicalDeviceMemoryBudgetPropertiesEXT told = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &told};
    vulkan->f.GetPhysicalDeviceMemoryProperties2(vulkan->physical_device, &properties);
    budget->budget = told.heapBudget[heap];
    budget->usage = told.heapUsage[heap];
    return QUIRE_SUCCESS;
}

/* ---- the table ---------------------------------------------------------------------------- */

static void vulkan_destroy(void *state)
{
    qi_vulkan *vulkan = state;
    qi_vulkan_late_finish(vulkan);
    qi_vulkan_staging_finish(vulkan);
    qi_vulkan_end(vulkan);
}

static const quire_backend VULKAN_BACKEND = {
    .size = sizeof(quire_backend),
    .name = "vulkan",
    .features = QUIRE_BACKEND_MAP | QUIRE_BACKEND_FLUSH | QUIRE_BACKEND_COPY_TO_PAGE |
                QUIRE_BACKEND_COPY_FROM_PAGE | QUIRE_BACKEND_FILL | QUIRE_BACKEND_IMAGES |
                QUIRE_BACKEND_OBJECTS | QUIRE_BACKEND_BUDGET | QUIRE_BACKEND_COPY_PAGES |
                QUIRE_BACKEND_ROWS | QUIRE_BACKEND_STAGES | QUIRE_BACKEND_STREAMS |
                QUIRE_BACKEND_STREAM_ORDER | QUIRE_BACKEND_STREAM_COPY | QUIRE_BACKEND_STREAM_FILL |
                QUIRE_BACKEND_FLUSH_MANY | QUIRE_BACKEND_FORK | QUIRE_BACKEND_DEVICE_ADDRESS,
    .describe = vulkan_describe,
    .page_create = qi_vulkan_page_create,
    .page_destroy = qi_vulkan_page_destroy,
    .destroy = vulkan_destroy,
    .map = qi_vulkan_page_map,
    .unmap = qi_vulkan_page_unmap,
    .flush = qi_vulkan_page_flush,
    .invalidate = qi_vulkan_page_invalidate,
    .copy_to_page = qi_vulkan_copy_to_page,
    .copy_from_page = qi_vulkan_copy_from_page,
    .fill_page = qi_vulkan_fill_page,
    .image_requirements = qi_vulkan_image_needs,
    .object_create = qi_vulkan_object_create,
    .object_bind = qi_vulkan_object_bind,
    .object_destroy = qi_vulkan_object_destroy,
    .heap_budget = vulkan_heap_budget,
    .device_address = qi_vulkan_device_address,
    .flush_many = qi_vulkan_page_flush_many,
    .invalidate_many = qi_vulkan_page_invalidate_many,
    .copy_pages = qi_vulkan_copy_pages,
    .stream_create = qi_vulkan_stream_create,
    .stream_destroy = qi_vulkan_stream_destroy,
    .stream_mark = qi_vulkan_stream_mark,
    .stream_passed = qi_vulkan_stream_passed,
    .stream_await = qi_vulkan_stream_await,
    .stream_order = qi_vulkan_stream_order,
    .stream_copy = qi_vulkan_stream_copy,
    .stream_fill = qi_vulkan_stream_fill,
    .fork_prepare = qi_vulkan_fork_prepare,
    .fork_done = qi_vulkan_fork_done,
    .fork_child = qi_vulkan_fork_child,
};

/* ---- making ------------------------------------------------------------------------------- */

quire_result qi_vulkan_check_settings(const quire_vulkan_settings *settings)
{
    if (settings->staging_size &&
        (settings->staging_size < LEAST_STAGING || settings->staging_size > MAX_STAGING))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "staging of %b: from %b to %b are allowed", settings->staging_size,
                            LEAST_STAGING, MAX_STAGING);
    return qi_check_unused(settings, "quire_vulkan_settings");
}

static uint32_t version_of(const quire_vulkan_wrap_options *options)
{
    const VkInstanceCreateInfo *info = options->instance_info;
    const VkApplicationInfo *application = info ? info->pApplicationInfo : NULL;
    return application && application->apiVersion ? application->apiVersion : VK_API_VERSION_1_1;
}

/* Properties that stay, and what is enabled. */
static quire_result look(qi_vulkan *vulkan, const quire_vulkan_wrap_options *options)
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
    vulkan->enabled = qi_vulkan_find_enabled(version, options->instance_info, options->device_info);
    if (vulkan->enabled.host_pointer)
        maintenance.pNext = &host;
    vulkan->f.GetPhysicalDeviceProperties2(vulkan->physical_device, &properties);
    vulkan->f.GetPhysicalDeviceMemoryProperties2(vulkan->physical_device, &memory);
    vulkan->memory = memory.memoryProperties;
    vulkan->limits = properties.properties.limits;
    vulkan->max_page = maintenance.maxMemoryAllocationSize;
    vulkan->max_host_alignment = host.minImportedHostPointerAlignment;
    vulkan->api_version =
        version < properties.properties.apiVersion ? version : properties.properties.apiVersion;
    if (vulkan->api_version < VK_API_VERSION_1_1)
        return qi_fail_text(
            QUIRE_ERROR_UNSUPPORTED, "Vulkan %u.%u of instance and device '%s': 1.1 is the least",
            VK_API_VERSION_MAJOR(vulkan->api_version), VK_API_VERSION_MINOR(vulkan->api_version),
            properties.properties.deviceName);
    vulkan->enabled.device_address &= vulkan->f.GetBufferDeviceAddress != NULL;
    vulkan->enabled.maintenance4 &= vulkan->f.GetDeviceBufferMemoryRequirements != NULL &&
                                    vulkan->f.GetDeviceImageMemoryRequirements != NULL;
    vulkan->enabled.timeline &= vulkan->f.GetSemaphoreCounterValue && vulkan->f.WaitSemaphores;
    vulkan->enabled.debug_utils &= vulkan->f.SetDebugUtilsObjectNameEXT != NULL;
    vulkan->enabled.external_fd &= vulkan->f.GetMemoryFdKHR != NULL;
    vulkan->enabled.host_pointer &= vulkan->f.GetMemoryHostPointerPropertiesEXT != NULL;
    return QUIRE_SUCCESS;
}

static void resolve_settings(qi_vulkan *vulkan, const quire_vulkan_settings *asked)
{
    quire_vulkan_settings *settings = &vulkan->settings;
    *settings = *asked;
    if (asked->callbacks) {
        vulkan->callbacks_copy = *asked->callbacks;
        vulkan->callbacks = &vulkan->callbacks_copy;
    }
    if (!settings->staging_size)
        settings->staging_size = DEFAULT_STAGING;
    if (!settings->export_types)
        settings->export_types = EXPORT_TYPES;
    if (!settings->page_usage) {
        settings->page_usage = PAGE_USAGE;
        if (vulkan->enabled.device_address)
            settings->page_usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
    }
}

quire_result qi_vulkan_make(qi_vulkan *vulkan, const quire_vulkan_wrap_options *options,
                            quire_device **device)
{
    vulkan->instance = options->instance;
    vulkan->physical_device = options->physical_device;
    vulkan->device = options->device;
    vulkan->get_instance_proc_addr = options->get_instance_proc_addr;
    vulkan->queue = options->queue;
    quire_result result =
        qi_vulkan_load(&vulkan->f, options->instance, options->device,
                       options->get_instance_proc_addr, options->get_device_proc_addr);
    if (!result)
        result = look(vulkan, options);
    if (result)
        return result;
    resolve_settings(vulkan, &options->settings);
    result = qi_vulkan_staging_init(vulkan);
    if (result)
        return result;
    qi_vulkan_late_init(vulkan);
    result = quire_device_create(&VULKAN_BACKEND, vulkan, &options->settings.device, device);
    if (result) {
        qi_vulkan_late_finish(vulkan);
        qi_vulkan_staging_finish(vulkan);
    }
    return result;
}

/* ---- public calls ------------------------------------------------------------------------- */

/* Memory with an instance on each of several devices is mapped, copied and bound otherwise. */
static quire_result refuse_group(const VkDeviceCreateInfo *info)
{
    const VkBaseInStructure *link = info ? info->pNext : NULL;
    while (link && link->sType != VK_STRUCTURE_TYPE_DEVICE_GROUP_DEVICE_CREATE_INFO)
        link = link->pNext;
    uint32_t count = link ? ((const VkDeviceGroupDeviceCreateInfo *)link)->physicalDeviceCount : 0;
    return count > 1
               ? qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                              "a device of a group of %u physical devices: one is supported", count)
               : QUIRE_SUCCESS;
}

static quire_result check_wrap(const quire_vulkan_wrap_options *options)
{
    if (!options->instance || !options->physical_device || !options->device ||
        !options->get_instance_proc_addr)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_vulkan_wrap: instance, physical_device, device or "
                       "get_instance_proc_addr is null");
    if (!options->queue.lock != !options->queue.unlock)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "a queue with one of lock and unlock: give both or none");
    if (!options->queue.queue && options->queue.lock)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "a lock for no queue");
    quire_result result = qi_check_unused(options, "quire_vulkan_wrap_options");
    if (!result)
        result = qi_vulkan_check_settings(&options->settings);
    return result ? result : refuse_group(options->device_info);
}

quire_result quire_vulkan_wrap(const quire_vulkan_wrap_options *options, quire_device **device)
{
    if (device)
        *device = NULL;
    if (!options || !device)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_vulkan_wrap: options or device is null");
    qi_host host;
    quire_result result = check_wrap(options);
    if (!result)
        result = qi_host_init(&host, options->settings.device.host_memory);
    if (result)
        return result;
    qi_vulkan *vulkan = qi_host_allocate(&host, 1, sizeof *vulkan);
    if (!vulkan)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a Vulkan device");
    vulkan->host = host;
    result = qi_vulkan_make(vulkan, options, device);
    if (result)
        qi_vulkan_end(vulkan);
    return result;
}

qi_vulkan *qi_vulkan_of(quire_device *device)
{
    if (device && quire_device_backend(device) == &VULKAN_BACKEND) {
        qi_vulkan *vulkan = quire_device_state(device);
        return qi_vulkan_check_process(vulkan) ? NULL : vulkan;
    }
    qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the device is null, or not of the Vulkan backend");
    return NULL;
}

quire_result qi_vulkan_of_memory(quire_memory *memory, quire_memory_info *info, qi_vulkan **vulkan)
{
    quire_result result = quire_memory_get_info(memory, info);
    if (result)
        return result;
    *vulkan = qi_vulkan_of(info->device);
    return *vulkan
               ? QUIRE_SUCCESS
               : qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the memory is not of the Vulkan backend");
}

quire_result qi_vulkan_native(quire_memory *memory, quire_allocation allocation,
                              quire_native *native, qi_vulkan **vulkan)
{
    quire_result result = quire_get_native(memory, allocation, native);
    if (result)
        return result;
    *vulkan = qi_vulkan_of(native->device);
    return *vulkan
               ? QUIRE_SUCCESS
               : qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the memory is not of the Vulkan backend");
}

quire_result quire_vulkan_get_handles(quire_device *device, quire_vulkan_handles *handles)
{
    if (!handles)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_vulkan_get_handles: handles is null");
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
    };
    return QUIRE_SUCCESS;
}
