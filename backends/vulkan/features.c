/*
 * features.c - states which optional features the backend uses on a device. Nothing of Vulkan says
 * so, and a create info that is missing or incomplete turns them off without an error.
 */
#include <stdio.h>

#include "backends/vulkan/device.h"
#include "backends/vulkan/object.h"
#include "src/base/log.h"
#include "src/base/result.h"

static quire_vulkan_features features_of(const qi_vulkan *vulkan)
{
    const qi_vulkan_enabled *enabled = &vulkan->enabled;
    return (quire_vulkan_features){
        .buffer_device_address = enabled->device_address,
        .timeline_semaphore = enabled->timeline,
        .maintenance4 = enabled->maintenance4,
        .memory_budget = enabled->memory_budget,
        .memory_priority = enabled->memory_priority,
        .pageable_memory = enabled->pageable,
        .zero_initialize = enabled->zero_initialize,
        .protected_memory = enabled->protected_memory,
        .device_coherent_memory = enabled->device_coherent,
        .external_memory_fd = enabled->external_fd,
        .external_memory_dma_buf = enabled->dma_buf,
        .external_memory_host = enabled->host_pointer,
        .external_memory_win32 = enabled->win32,
        .debug_utils = enabled->debug_utils,
        .sparse_queue = qi_vulkan_has_sparse_queue(vulkan),
        .sparse_binding = enabled->sparse_binding,
        .sparse_residency_buffer = enabled->sparse_buffer,
        .sparse_residency_image_2d = enabled->sparse_image_2d,
        .sparse_residency_image_3d = enabled->sparse_image_3d,
        .sparse_residency_aliased = enabled->sparse_aliased,
        .sparse_residency_samples = enabled->sparse_samples,
    };
}

quire_result quire_vulkan_get_features(const quire_device *device, quire_vulkan_features *features)
{
    if (!features)
        return qi_fail_null("quire_vulkan_get_features", "features");
    *features = (quire_vulkan_features){.sparse_residency_samples = 0};
    const qi_vulkan *vulkan = qi_vulkan_of(device);
    if (!vulkan)
        return quire_last_result();
    *features = features_of(vulkan);
    return QUIRE_SUCCESS;
}

/* ---- the log --------------------------------------------------------------------------------- */

typedef struct name_list {
    char text[480]; /* two of them fit into a line of the log */
    size_t length;
} name_list;

static void add(name_list *list, const char *name)
{
    if (list->length < sizeof list->text)
        list->length +=
            (size_t)snprintf(list->text + list->length, sizeof list->text - list->length, "%s%s",
                             list->length ? ", " : "", name);
}

/* Protected memory and the features of one vendor or system are not listed when they are absent. */
void qi_vulkan_log_features(const qi_vulkan *vulkan, const quire_log *log)
{
    const quire_vulkan_features f = features_of(vulkan);
    const struct {
        const char *name;
        bool is_used, is_special;
    } all[] = {
        {"bufferDeviceAddress", f.buffer_device_address, false},
        {"timelineSemaphore", f.timeline_semaphore, false},
        {"maintenance4", f.maintenance4, false},
        {"memory budget", f.memory_budget, false},
        {"memory priority", f.memory_priority, false},
        {"pageableDeviceLocalMemory", f.pageable_memory, true},
        {"zeroInitializeDeviceMemory", f.zero_initialize, true},
        {"protectedMemory", f.protected_memory, true},
        {"deviceCoherentMemory", f.device_coherent_memory, true},
        {"external memory fd", f.external_memory_fd, false},
        {"dma-buf", f.external_memory_dma_buf, false},
        {"external memory host", f.external_memory_host, false},
        {"external memory win32", f.external_memory_win32, true},
        {"debug utils", f.debug_utils, false},
        {"sparse queue", f.sparse_queue, false},
        {"sparseBinding", f.sparse_binding, false},
        {"sparseResidencyBuffer", f.sparse_residency_buffer, false},
        {"sparseResidencyImage2D", f.sparse_residency_image_2d, false},
        {"sparseResidencyImage3D", f.sparse_residency_image_3d, false},
        {"sparseResidencyAliased", f.sparse_residency_aliased, true},
    };
    name_list used = {.length = 0}, absent = {.length = 0};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].is_used)
            add(&used, all[i].name);
        else if (!all[i].is_special)
            add(&absent, all[i].name);
    }
    qi_log(log, QUIRE_LOG_INFO, "optional features of Vulkan in use: %s; not enabled: %s",
           used.length ? used.text : "none", absent.length ? absent.text : "none");
}
