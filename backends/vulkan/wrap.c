/*
 * wrap.c - checks the options of quire_vulkan_wrap, and makes create infos of the versions,
 * extensions and features that stand for them; finds the queue families that share buffers.
 */
#include "backends/vulkan/wrap.h"

#include "backends/vulkan/device.h"
#include "src/base/result.h"

/* ---- checks ---------------------------------------------------------------------------------- */

/* In a device group memory can have an instance on each device, with other rules for mapping,
   copying and binding. The backend does not support them. */
quire_result qi_vulkan_refuse_group(const void *chain)
{
    const VkBaseInStructure *link = chain;
    while (link && link->sType != VK_STRUCTURE_TYPE_DEVICE_GROUP_DEVICE_CREATE_INFO)
        link = link->pNext;
    uint32_t count = link ? ((const VkDeviceGroupDeviceCreateInfo *)link)->physicalDeviceCount : 0;
    return count > 1
               ? qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                              "the device is a group of %u physical devices: only one is supported",
                              count)
               : QUIRE_SUCCESS;
}

static quire_result check_queue(const quire_vulkan_queue *queue)
{
    if (!queue->lock != !queue->unlock)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "the queue has only one of lock and unlock: give both or neither");
    return !queue->queue && queue->lock
               ? qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "queue.lock is set without a queue")
               : QUIRE_SUCCESS;
}

/* The queues are optional: without them copies, streams and sparse binding are UNSUPPORTED. */
static quire_result check_wrap(const quire_vulkan_wrap_options *options)
{
    if (!options->instance || !options->physical_device || !options->device ||
        !options->get_instance_proc_addr)
        return qi_fail_null("quire_vulkan_wrap", !options->instance          ? "instance"
                                                 : !options->physical_device ? "physical_device"
                                                 : !options->device          ? "device"
                                                                    : "get_instance_proc_addr");
    quire_result result = check_queue(&options->queue);
    if (!result)
        result = check_queue(&options->sparse_queue);
    if (!result)
        result = qi_check_unused(options, "quire_vulkan_wrap_options");
    if (!result)
        result = qi_vulkan_check_settings(&options->settings);
    return result;
}

/* ---- create infos ---------------------------------------------------------------------------- */

static quire_result check_names(const char *const *names, uint32_t count, const char *what)
{
    for (uint32_t i = 0; i < count; i++)
        if (!names || !names[i])
            return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                                names ? "quire_vulkan_wrap_options.%s: name %u is null"
                                      : "quire_vulkan_wrap_options.%s is null",
                                what, i);
    return QUIRE_SUCCESS;
}

/* One of two ways to say how instance and device were created. */
static quire_result check_description(const quire_vulkan_wrap_options *options)
{
    const VkPhysicalDeviceFeatures2 *features = options->features;
    if (options->instance_info && (options->api_version || options->instance_extension_count))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_vulkan_wrap_options has instance_info, and api_version or "
                       "instance_extensions: give one of both");
    if (options->device_info && (features || options->device_extension_count))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_vulkan_wrap_options has device_info, and features or "
                       "device_extensions: give one of both");
    if (features && features->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "quire_vulkan_wrap_options.features has sType %u: %u is expected",
                            (uint64_t)features->sType,
                            (uint64_t)VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
    quire_result result = check_names(options->instance_extensions,
                                      options->instance_extension_count, "instance_extensions");
    return result ? result
                  : check_names(options->device_extensions, options->device_extension_count,
                                "device_extensions");
}

static void describe(qi_vulkan_wrapping *out)
{
    quire_vulkan_wrap_options *options = &out->options;
    out->application = (VkApplicationInfo){
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .apiVersion = options->api_version ? options->api_version : VK_API_VERSION_1_1,
    };
    out->instance = (VkInstanceCreateInfo){
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pApplicationInfo = &out->application,
        .enabledExtensionCount = options->instance_extension_count,
        .ppEnabledExtensionNames = options->instance_extensions,
    };
    out->device = (VkDeviceCreateInfo){
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = options->features,
        .enabledExtensionCount = options->device_extension_count,
        .ppEnabledExtensionNames = options->device_extensions,
    };
    if (!options->instance_info)
        options->instance_info = &out->instance;
    if (!options->device_info)
        options->device_info = &out->device;
}

quire_result qi_vulkan_complete_wrap(const quire_vulkan_wrap_options *given,
                                     qi_vulkan_wrapping *out)
{
    quire_result result = check_wrap(given);
    if (!result)
        result = check_description(given);
    if (result)
        return result;
    out->options = *given;
    describe(out);
    return qi_vulkan_refuse_group(out->options.device_info->pNext);
}

/* ---- queue families -------------------------------------------------------------------------- */

static bool has_family(const qi_vulkan *vulkan, uint32_t family)
{
    for (uint32_t i = 0; i < vulkan->family_count; i++)
        if (vulkan->families[i] == family)
            return true;
    return false;
}

/* Adds the families of all queues of the device. A family can occur twice: with and without
   protected queues. */
static quire_result add_all(qi_vulkan *vulkan, const VkDeviceCreateInfo *info)
{
    if (!info->queueCreateInfoCount)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "QUIRE_VULKAN_ALL_FAMILIES needs the queues of device_info: list the "
                       "families in queue_families");
    for (uint32_t i = 0; i < info->queueCreateInfoCount; i++) {
        uint32_t family = info->pQueueCreateInfos[i].queueFamilyIndex;
        if (!has_family(vulkan, family) && vulkan->family_count < QUIRE_VULKAN_MAX_FAMILIES)
            vulkan->families[vulkan->family_count++] = family;
    }
    return QUIRE_SUCCESS;
}

/* Fails if the device has no queue family of this number. `what`: whose number it is. */
static quire_result check_family(const qi_vulkan *vulkan, uint32_t family, const char *what)
{
    uint32_t existing = 0;
    vulkan->f.GetPhysicalDeviceQueueFamilyProperties2(vulkan->physical_device, &existing, NULL);
    if (family < existing)
        return QUIRE_SUCCESS;
    return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                        "%s is queue family %u: the families of the device are below %u", what,
                        family, existing);
}

static quire_result check_queues(const qi_vulkan *vulkan, const quire_vulkan_wrap_options *options)
{
    quire_result result = QUIRE_SUCCESS;
    if (options->queue.queue)
        result = check_family(vulkan, options->queue.family, "queue.family");
    if (!result && options->sparse_queue.queue)
        result = check_family(vulkan, options->sparse_queue.family, "sparse_queue.family");
    return result;
}

static quire_result add_listed(qi_vulkan *vulkan, const quire_vulkan_settings *settings)
{
    for (uint32_t i = 0; i < settings->queue_family_count; i++) {
        uint32_t family = settings->queue_families[i];
        quire_result result = check_family(vulkan, family, "one of queue_families");
        if (result)
            return result;
        if (has_family(vulkan, family))
            return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "queue_families has %u twice",
                                family);
        vulkan->families[vulkan->family_count++] = family;
    }
    return QUIRE_SUCCESS;
}

quire_result qi_vulkan_resolve_families(qi_vulkan *vulkan, const quire_vulkan_wrap_options *options)
{
    const quire_vulkan_settings *settings = &options->settings;
    quire_result result = check_queues(vulkan, options);
    if (result || !settings->queue_family_count)
        return result;
    result = settings->queue_family_count == QUIRE_VULKAN_ALL_FAMILIES
                 ? add_all(vulkan, options->device_info)
                 : add_listed(vulkan, settings);
    if (!result && options->queue.queue && !has_family(vulkan, options->queue.family))
        vulkan->families[vulkan->family_count++] = options->queue.family;
    return result;
}

void qi_vulkan_share(const qi_vulkan *vulkan, VkBufferCreateInfo *info)
{
    info->sharingMode = VK_SHARING_MODE_EXCLUSIVE;
    if (vulkan->family_count < 2)
        return;
    info->sharingMode = VK_SHARING_MODE_CONCURRENT;
    info->queueFamilyIndexCount = vulkan->family_count;
    info->pQueueFamilyIndices = vulkan->families;
}
