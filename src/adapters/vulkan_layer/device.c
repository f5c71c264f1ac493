/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * device.c - instances and devices: the registry, which finds them by dispatch key, wrapping the
 * program's device in a quire device, and the end of the layer's record.
 */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "src/adapters/vulkan_layer/layer.h"
#include "src/base/result.h"

/* ---- the registry ------------------------------------------------------------------------- */

/* The layer's only global state. A read-write lock protects it. */

static struct {
    pthread_rwlock_t lock;
    layer_instance *instances;
    layer_device *devices;
    uint32_t device_count; /* created so far */
} registry = {.lock = PTHREAD_RWLOCK_INITIALIZER};

void layer_add_instance(layer_instance *instance)
{
    pthread_rwlock_wrlock(&registry.lock);
    instance->after = registry.instances;
    registry.instances = instance;
    pthread_rwlock_unlock(&registry.lock);
}

void layer_add_device(layer_device *device)
{
    pthread_rwlock_wrlock(&registry.lock);
    device->number = ++registry.device_count;
    device->after = registry.devices;
    registry.devices = device;
    pthread_rwlock_unlock(&registry.lock);
}

layer_instance *layer_instance_of(const void *dispatchable)
{
    void *key = layer_key(dispatchable);
    pthread_rwlock_rdlock(&registry.lock);
    layer_instance *found = registry.instances;
    while (found && found->key != key)
        found = found->after;
    pthread_rwlock_unlock(&registry.lock);
    return found;
}

layer_device *layer_device_of(const void *dispatchable)
{
    void *key = layer_key(dispatchable);
    pthread_rwlock_rdlock(&registry.lock);
    layer_device *found = registry.devices;
    while (found && found->key != key)
        found = found->after;
    pthread_rwlock_unlock(&registry.lock);
    return found;
}

layer_instance *layer_take_instance(VkInstance handle)
{
    pthread_rwlock_wrlock(&registry.lock);
    layer_instance **link = &registry.instances;
    while (*link && (*link)->handle != handle)
        link = &(*link)->after;
    layer_instance *found = *link;
    if (found)
        *link = found->after;
    pthread_rwlock_unlock(&registry.lock);
    return found;
}

layer_device *layer_take_device(VkDevice handle)
{
    pthread_rwlock_wrlock(&registry.lock);
    layer_device **link = &registry.devices;
    while (*link && (*link)->handle != handle)
        link = &(*link)->after;
    layer_device *found = *link;
    if (found)
        *link = found->after;
    pthread_rwlock_unlock(&registry.lock);
    return found;
}

/* ---- opening ------------------------------------------------------------------------------ */

/* A page of the operating system, which a driver uses at alignment for each allocation. */
static const uint64_t MIN_ALIGNMENT = 4096;

/* The feature struct of VK_EXT_map_memory_placed, which the installed headers may lack. */
static const VkStructureType PLACED_MAPS = (VkStructureType)1000272000;
typedef struct placed_maps {
    VkStructureType sType;
    void *pNext;
    VkBool32 is_enabled;
} placed_maps;

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* In a device group memory can have an instance on each device, which quire does not support. */
static bool is_group(const VkDeviceCreateInfo *info)
{
    for (const VkBaseInStructure *link = info->pNext; link; link = link->pNext)
        if (link->sType == VK_STRUCTURE_TYPE_DEVICE_GROUP_DEVICE_CREATE_INFO)
            return ((const VkDeviceGroupDeviceCreateInfo *)link)->physicalDeviceCount > 1;
    return false;
}

static bool has_placed_maps(const VkDeviceCreateInfo *info)
{
    for (const VkBaseInStructure *link = info->pNext; link; link = link->pNext)
        if (link->sType == PLACED_MAPS)
            return ((const placed_maps *)link)->is_enabled;
    return false;
}

/*
 * Copies the names of the device's extensions without VK_EXT_memory_budget. The budget is advice to
 * the program. If quire kept to it, a program near its budget would get one allocation of the
 * driver for each request, which uses no less memory. Returns the number of names.
 */
static uint32_t copy_extensions(const VkDeviceCreateInfo *info, const char **names)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < info->enabledExtensionCount; i++)
        if (strcmp(info->ppEnabledExtensionNames[i], VK_EXT_MEMORY_BUDGET_EXTENSION_NAME) != 0)
            names[count++] = info->ppEnabledExtensionNames[i];
    return count;
}

/* The program's host callbacks are not used for pages: the program expects them only for its own
   calls. */
static quire_result wrap_as(layer_device *device, const layer_instance *instance,
                            VkPhysicalDevice physical, const VkDeviceCreateInfo *info)
{
    static const char *const DEBUG_UTILS = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .apiVersion = instance->api_version};
    const VkInstanceCreateInfo instance_info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pApplicationInfo = &application,
        .enabledExtensionCount = instance->debug_utils,
        .ppEnabledExtensionNames = &DEBUG_UTILS,
    };
    const quire_vulkan_wrap_options options = {
        .instance = instance->handle,
        .physical_device = physical,
        .device = device->handle,
        .get_instance_proc_addr = layer_get_next,
        .get_device_proc_addr = device->get,
        .instance_info = &instance_info,
        .device_info = info,
        .settings.device.untraced = true, /* QUIRE_LAYER_TRACE records the same ranges */
    };
    return quire_vulkan_wrap(&options, &device->quire);
}

static quire_result wrap(layer_device *device, const layer_instance *instance,
                         VkPhysicalDevice physical, const VkDeviceCreateInfo *info)
{
    VkDeviceCreateInfo seen = *info;
    uint64_t count = info->enabledExtensionCount;
    const char **names = qi_host_allocate(&device->host, count, sizeof *names);
    if (count && !names)
        return QUIRE_ERROR_OUT_OF_HOST_MEMORY;
    seen.enabledExtensionCount = copy_extensions(info, names);
    seen.ppEnabledExtensionNames = names;
    quire_result result = wrap_as(device, instance, physical, &seen);
    qi_host_release(&device->host, (void *)names, count, sizeof *names);
    return result;
}

void layer_open(layer_device *device, const layer_instance *instance, VkPhysicalDevice physical,
                const VkDeviceCreateInfo *info)
{
    VkPhysicalDeviceProperties properties;
    PFN_vkGetPhysicalDeviceProperties get_properties = instance->next.GetPhysicalDeviceProperties;
    if (is_group(info) || !get_properties || wrap(device, instance, physical, info))
        return;
    qi_ignore(quire_device_get_info(device->quire, &device->info));
    get_properties(physical, &properties);
    uint64_t alignment = larger(MIN_ALIGNMENT, properties.limits.minMemoryMapAlignment);
    alignment = larger(alignment, device->info.limits.non_coherent_atom);
    device->min_alignment = larger(alignment, device->info.limits.buffer_image_granularity);
    device->has_placed_maps = has_placed_maps(info);
}

/* ---- announcing --------------------------------------------------------------------------- */

static void say_active(const layer_device *device)
{
    char settings[1500];
    layer_describe_settings(settings, sizeof settings);
    if (device->quire)
        layer_say("active on device %" PRIu32 " '%s'%s", device->number, device->info.name,
                  settings);
    else
        layer_say("not active on device %" PRIu32, device->number);
}

/* The page size is limited on these heaps. */
static void say_limited(const layer_device *device)
{
    char heaps[QUIRE_MAX_HEAPS * 40] = "";
    size_t length = 0;
    for (uint32_t i = 0; i < device->info.heap_count; i++) {
        uint64_t max = layer_max_page(device, i);
        if (device->settings.page_size > max)
            length +=
                (size_t)snprintf(heaps + length, sizeof heaps - length, "%s%s in heap %" PRIu32,
                                 length ? ", " : "", qi_bytes(max).text, i);
    }
    if (length)
        layer_say("QUIRE_LAYER_PAGE_SIZE is %.100s, but pages have at most an eighth of the heap: "
                  "%s",
                  layer_page_size_text(), heaps);
}

/* A page that has space for one range at most makes no allocation of the driver needless. */
static void say_too_small(const layer_device *device)
{
    const layer_settings *settings = &device->settings;
    uint64_t threshold = settings->threshold ? settings->threshold : settings->page_size / 2;
    if (settings->page_size >= 2 * device->min_alignment)
        return;
    if (threshold <= 1)
        layer_say("QUIRE_LAYER_PAGE_SIZE is %.100s, too small for ranges: all allocations are "
                  "passed on",
                  layer_page_size_text());
    else
        layer_say("QUIRE_LAYER_PAGE_SIZE is %.100s, too small for two ranges: allocations of %s or "
                  "more are passed on",
                  layer_page_size_text(), qi_bytes(threshold).text);
}

void layer_announce(const layer_device *device)
{
    if (device->settings.is_announced)
        say_active(device);
    if (!device->quire || !device->settings.page_size)
        return;
    say_limited(device);
    say_too_small(device);
}

/* ---- the end ------------------------------------------------------------------------------ */

/* Releases the record of a range that the program did not free. */
static bool release_record(void *user, const quire_item *item)
{
    layer_device *device = user;
    if (!item->is_free)
        qi_host_release(&device->host, (layer_memory *)(uintptr_t)item->user_data, 1,
                        sizeof(layer_memory));
    return true;
}

void layer_close(layer_device *device)
{
    layer_report(device);
    layer_trace_close(device);
    for (uint32_t i = 0; i < qi_atomic_load_acquire_u32(&device->store_count); i++) {
        qi_ignore(quire_memory_walk(device->stores[i].memory, release_record, device));
        quire_memory_destroy_all(&device->stores[i].memory);
    }
    if (device->quire)
        quire_device_destroy(&device->quire);
    qi_host_release(&device->host, device->privates, device->private_capacity,
                    sizeof *device->privates);
    pthread_mutex_destroy(&device->mutex);
    pthread_mutex_destroy(&device->trace.mutex);
    pthread_mutex_destroy(&device->interim.mutex);
    qi_host host = device->host;
    qi_host_release(&host, device, 1, sizeof *device);
}

/*
 * Runs when the process exits with devices that were not destroyed. It writes statistics and trace.
 * It calls no Vulkan function, because the driver may be unloaded already; the operating system
 * frees the pages. The library is not unloaded earlier: it is linked with -z nodelete, because
 * quire has a thread-specific key with a destructor.
 */
__attribute__((destructor)) static void report_remaining_devices(void)
{
    /* Another thread may hold the lock and never release it. */
    if (pthread_rwlock_tryrdlock(&registry.lock))
        return;
    for (layer_device *device = registry.devices; device; device = device->after) {
        if (device->process != getpid()) /* a forked child: the device is its parent's */
            continue;
        layer_report(device);
        layer_trace_close(device);
    }
    pthread_rwlock_unlock(&registry.lock);
}
