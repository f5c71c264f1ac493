/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * table.c - the backend's function table, and the entry points that wrap the caller's device or
 * open one. It is the top of the backend: no other file refers to it.
 */
#include <stdlib.h>

#include "backends/vulkan/copy.h"
#include "backends/vulkan/deferred_destroy.h"
#include "backends/vulkan/device.h"
#include "backends/vulkan/elastic.h"
#include "backends/vulkan/functions.h"
#include "backends/vulkan/object.h"
#include "backends/vulkan/open.h"
#include "backends/vulkan/page.h"
#include "backends/vulkan/queues.h"
#include "backends/vulkan/staging.h"
#include "backends/vulkan/stream.h"
#include "src/base/result.h"

/* ---- the table ---------------------------------------------------------------------------- */

/* Destroys the state and what quire_vulkan_open created. Its Vulkan objects are destroyed already.
   The messenger writes to the log, so that the log is released last. */
static void destroy_state(qi_vulkan *vulkan)
{
    if (vulkan->own_device)
        vulkan->destroy_device(vulkan->own_device, vulkan->callbacks);
    if (vulkan->messenger)
        vulkan->destroy_messenger(vulkan->own_instance, vulkan->messenger, vulkan->callbacks);
    if (vulkan->own_instance && vulkan->destroy_instance)
        vulkan->destroy_instance(vulkan->own_instance, vulkan->callbacks);
    qi_vulkan_image_limits_finish(vulkan);
    qi_host host = vulkan->host;
    qi_host_release(&host, vulkan->log, 1, sizeof *vulkan->log);
    qi_host_release(&host, vulkan, 1, sizeof *vulkan);
}

/* The deferred objects use the staging ring: they are destroyed first. */
static void destroy(void *state)
{
    qi_vulkan *vulkan = state;
    qi_vulkan_deferred_finish(vulkan);
    qi_vulkan_staging_destroy(vulkan);
    destroy_state(vulkan);
}

/* The core calls an optional entry only if `features` has its bit. */
static const quire_backend VULKAN_BACKEND = {
    .size = sizeof(quire_backend),
    .name = "vulkan",
    .features = QUIRE_BACKEND_MAP | QUIRE_BACKEND_FLUSH | QUIRE_BACKEND_COPY_TO_PAGE |
                QUIRE_BACKEND_COPY_FROM_PAGE | QUIRE_BACKEND_FILL | QUIRE_BACKEND_IMAGES |
                QUIRE_BACKEND_OBJECTS | QUIRE_BACKEND_BUDGET | QUIRE_BACKEND_COPY_PAGES |
                QUIRE_BACKEND_ROWS | QUIRE_BACKEND_STAGES | QUIRE_BACKEND_STREAMS |
                QUIRE_BACKEND_STREAM_ORDER | QUIRE_BACKEND_STREAM_COPY | QUIRE_BACKEND_STREAM_FILL |
                QUIRE_BACKEND_FLUSH_MANY | QUIRE_BACKEND_FORK | QUIRE_BACKEND_DEVICE_ADDRESS |
                QUIRE_BACKEND_COPY_MANY | QUIRE_BACKEND_STREAM_WRITE_MANY | QUIRE_BACKEND_ELASTIC,
    .describe = qi_vulkan_describe,
    .page_create = qi_vulkan_any_page_create,
    .page_destroy = qi_vulkan_page_destroy,
    .destroy = destroy,
    .map = qi_vulkan_page_map,
    .unmap = qi_vulkan_page_unmap,
    .flush = qi_vulkan_page_flush,
    .invalidate = qi_vulkan_page_invalidate,
    .copy_to_page = qi_vulkan_copy_to_page,
    .copy_from_page = qi_vulkan_copy_from_page,
    .fill_page = qi_vulkan_fill_page,
    .image_requirements = qi_vulkan_image_requirements,
    .object_create = qi_vulkan_object_create,
    .object_bind = qi_vulkan_object_bind,
    .object_destroy = qi_vulkan_object_destroy,
    .heap_budget = qi_vulkan_heap_budget,
    .device_address = qi_vulkan_device_address,
    .flush_many = qi_vulkan_page_flush_many,
    .invalidate_many = qi_vulkan_page_invalidate_many,
    .copy_pages = qi_vulkan_copy_pages,
    .page_back = qi_vulkan_page_back,
    .page_unback = qi_vulkan_page_unback,
    .stream_create = qi_vulkan_stream_create,
    .stream_destroy = qi_vulkan_stream_destroy,
    .stream_mark = qi_vulkan_stream_mark,
    .stream_passed = qi_vulkan_stream_passed,
    .stream_await = qi_vulkan_stream_await,
    .stream_order = qi_vulkan_stream_order,
    .stream_copy = qi_vulkan_stream_copy,
    .stream_fill = qi_vulkan_stream_fill,
    .write_many = qi_vulkan_write_many,
    .read_many = qi_vulkan_read_many,
    .stream_write_many = qi_vulkan_stream_write_many,
    .fork_prepare = qi_vulkan_fork_prepare,
    .fork_done = qi_vulkan_fork_done,
    .fork_child = qi_vulkan_fork_child,
};

/* ---- creating ----------------------------------------------------------------------------- */

/*
 * Creates the quire device of a state whose host memory is initialised. After a failure the caller
 * destroys the state.
 */
static quire_result create(qi_vulkan *vulkan, const quire_vulkan_wrap_options *options,
                           quire_device **device)
{
    vulkan->instance = options->instance;
    vulkan->physical_device = options->physical_device;
    vulkan->device = options->device;
    vulkan->get_instance_proc_addr = options->get_instance_proc_addr;
    vulkan->queue = options->queue;
    vulkan->sparse_queue = options->sparse_queue;
    quire_result result =
        qi_vulkan_load(&vulkan->f, options->instance, options->device,
                       options->get_instance_proc_addr, options->get_device_proc_addr);
    if (!result)
        result = qi_vulkan_read_properties(vulkan, options);
    if (!result)
        result = qi_vulkan_resolve_families(vulkan, options);
    if (result)
        return result;
    qi_vulkan_resolve_settings(vulkan, &options->settings);
    result = qi_vulkan_elastic_detect(vulkan);
    if (!result)
        result = qi_vulkan_image_limits_init(vulkan);
    if (!result)
        result = qi_vulkan_staging_init(vulkan);
    if (result)
        return result;
    qi_vulkan_deferred_init(vulkan);
    result = quire_device_create(&VULKAN_BACKEND, vulkan, &options->settings.device, device);
    if (result) {
        qi_vulkan_deferred_finish(vulkan);
        qi_vulkan_staging_destroy(vulkan);
        return result;
    }
    qi_vulkan_log_features(vulkan, &options->settings.device.log);
    return QUIRE_SUCCESS;
}

/* In a device group memory can have an instance on each device, with other rules for mapping,
   copying and binding. The backend does not support them. */
static quire_result refuse_group(const void *chain)
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

/* ---- wrapping ----------------------------------------------------------------------------- */

/* The queues are optional: without them copies, streams and sparse binding are UNSUPPORTED. */
static quire_result check_wrap(const quire_vulkan_wrap_options *options)
{
    if (!options->instance || !options->physical_device || !options->device ||
        !options->get_instance_proc_addr)
        return qi_fail_null("quire_vulkan_wrap", !options->instance          ? "instance"
                                                 : !options->physical_device ? "physical_device"
                                                 : !options->device          ? "device"
                                                                    : "get_instance_proc_addr");
    quire_result result = qi_vulkan_check_locks(&options->queue);
    if (!result)
        result = qi_vulkan_check_locks(&options->sparse_queue);
    if (!result)
        result = qi_check_unused(options, "quire_vulkan_wrap_options");
    if (!result)
        result = qi_vulkan_check_settings(&options->settings);
    return result;
}

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

/* Options with create infos, if the caller gave versions, extensions and features instead. Points
   into itself: must not be moved. */
typedef struct wrapping {
    quire_vulkan_wrap_options options;
    VkApplicationInfo application;
    VkInstanceCreateInfo instance;
    VkDeviceCreateInfo device;
} wrapping;

static void describe(wrapping *out)
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

/* Checks the options and completes them. INVALID_ARGUMENT, UNSUPPORTED. */
static quire_result complete_wrap(const quire_vulkan_wrap_options *given, wrapping *out)
{
    quire_result result = check_wrap(given);
    if (!result)
        result = check_description(given);
    if (result)
        return result;
    out->options = *given;
    describe(out);
    return refuse_group(out->options.device_info->pNext);
}

quire_result quire_vulkan_wrap(const quire_vulkan_wrap_options *options, quire_device **device)
{
    if (device)
        *device = NULL;
    if (!options || !device)
        return qi_fail_null("quire_vulkan_wrap", !options ? "options" : "device");
    qi_host host;
    wrapping wrapped;
    quire_result result = complete_wrap(options, &wrapped);
    if (!result)
        result = qi_host_init(&host, options->settings.device.host_memory);
    if (result)
        return result;
    qi_vulkan *vulkan = qi_host_allocate(&host, 1, sizeof *vulkan);
    if (!vulkan)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a Vulkan device");
    vulkan->host = host;
    result = create(vulkan, &wrapped.options, device);
    if (result)
        destroy_state(vulkan);
    return result;
}

/* ---- opening ------------------------------------------------------------------------------ */

/* Selects a device if the options name none: an index or a part of the name. */
static const char *const DEVICE_VARIABLE = "QUIRE_VULKAN_DEVICE";

/* Creates instance and device, then wraps them like the caller's. */
static quire_result create_own(opening *o, quire_device **device)
{
    quire_result result = qi_vulkan_open_instance(o);
    if (!result)
        result = qi_vulkan_open_device(o);
    if (result)
        return result;
    quire_vulkan_wrap_options options = {
        .instance = o->vulkan->own_instance,
        .physical_device = o->physical_device,
        .device = o->vulkan->own_device,
        .get_instance_proc_addr = o->get_instance,
        .instance_info = &o->instance_info,
        .device_info = &o->device_info,
        .settings = o->options->settings,
    };
    qi_vulkan_get_queues(o, &options.queue, &options.sparse_queue);
    return create(o->vulkan, &options, device);
}

/* Copies the host callbacks before it creates anything, because the instance gets them too. */
static quire_result open_with(const quire_vulkan_options *options,
                              PFN_vkGetInstanceProcAddr get_instance, quire_device **device)
{
    qi_host host;
    quire_result result = qi_host_init(&host, options->settings.device.host_memory);
    if (result)
        return result;
    qi_vulkan *vulkan = qi_host_allocate(&host, 1, sizeof *vulkan);
    if (!vulkan)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a Vulkan device");
    vulkan->host = host;
    if (options->settings.callbacks) {
        vulkan->callbacks_copy = *options->settings.callbacks;
        vulkan->callbacks = &vulkan->callbacks_copy;
    }
    opening o = {
        .vulkan = vulkan,
        .options = options,
        .log = options->settings.device.log,
        .get_instance = get_instance,
        .wanted = options->device ? options->device : getenv(DEVICE_VARIABLE),
    };
    result = create_own(&o, device);
    qi_vulkan_extensions_release(&o, &o.of_instance);
    qi_vulkan_extensions_release(&o, &o.of_device);
    if (result) {
        qi_vulkan_lower_features(&o);
        destroy_state(vulkan);
    }
    return result;
}

static quire_result check_extensions(const char *const *names, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!names || !names[i])
            return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                                "quire_vulkan_open: the name of extension %u is null", i);
    return QUIRE_SUCCESS;
}

static quire_result check_open(const quire_vulkan_options *options)
{
    quire_result result = qi_check_unused(options, "quire_vulkan_options");
    if (!result)
        result = qi_vulkan_check_settings(&options->settings);
    if (!result)
        result = check_extensions(options->instance_extensions, options->instance_extension_count);
    if (!result)
        result = check_extensions(options->device_extensions, options->device_extension_count);
    if (!result)
        result = qi_vulkan_check_chain(options->chain);
    if (result)
        return result;
    if (options->queue_count > QUIRE_VULKAN_MAX_QUEUES)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "quire_vulkan_open: queue_count is %u: %u at most",
                            options->queue_count, QUIRE_VULKAN_MAX_QUEUES);
    if (options->queue_count && !options->queues)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_vulkan_open: queue_count is set and queues is null");
    return refuse_group(options->chain);
}

quire_result quire_vulkan_open(const quire_vulkan_options *options, quire_device **device)
{
    if (device)
        *device = NULL;
    if (!device)
        return qi_fail_null("quire_vulkan_open", "device");
    const quire_vulkan_options resolved =
        options ? *options : (quire_vulkan_options){.device = NULL};
    quire_result result = check_open(&resolved);
    if (result)
        return result;
    PFN_vkGetInstanceProcAddr get_instance = resolved.get_instance_proc_addr;
    if (!get_instance)
        get_instance = qi_vulkan_find_loader();
    if (!get_instance)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "the system has no Vulkan loader (libvulkan.so.1 or its equivalent)");
    return open_with(&resolved, get_instance, device);
}
