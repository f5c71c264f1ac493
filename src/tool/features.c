/*
 * features.c - the optional features that the Vulkan backend uses on a device, for quire devices.
 */
#include "quire/vulkan.h"
#include "src/base/json.h"
#include "src/tool/tool.h"

enum { FEATURE_COUNT = 20 };

typedef struct feature {
    const char *name;
    bool is_used;
} feature;

/* Returns false for a device of another backend. */
static bool list_features(quire_device *device, feature out[FEATURE_COUNT])
{
    quire_vulkan_features f;
    if (quire_vulkan_get_features(device, &f))
        return false;
    const feature list[FEATURE_COUNT] = {
        {"bufferDeviceAddress", f.buffer_device_address},
        {"timelineSemaphore", f.timeline_semaphore},
        {"maintenance4", f.maintenance4},
        {"memory_budget", f.memory_budget},
        {"memory_priority", f.memory_priority},
        {"pageableDeviceLocalMemory", f.pageable_memory},
        {"zeroInitializeDeviceMemory", f.zero_initialize},
        {"protectedMemory", f.protected_memory},
        {"deviceCoherentMemory", f.device_coherent_memory},
        {"external_memory_fd", f.external_memory_fd},
        {"external_memory_dma_buf", f.external_memory_dma_buf},
        {"external_memory_host", f.external_memory_host},
        {"external_memory_win32", f.external_memory_win32},
        {"debug_utils", f.debug_utils},
        {"sparse_queue", f.sparse_queue},
        {"sparseBinding", f.sparse_binding},
        {"sparseResidencyBuffer", f.sparse_residency_buffer},
        {"sparseResidencyImage2D", f.sparse_residency_image_2d},
        {"sparseResidencyImage3D", f.sparse_residency_image_3d},
        {"sparseResidencyAliased", f.sparse_residency_aliased},
    };
    for (int i = 0; i < FEATURE_COUNT; i++)
        out[i] = list[i];
    return true;
}

void print_features(quire_device *device)
{
    feature features[FEATURE_COUNT];
    if (!list_features(device, features))
        return;
    printf("\noptional features of Vulkan in use\n");
    for (int i = 0; i < FEATURE_COUNT; i++)
        printf("  %-28s %s\n", features[i].name, features[i].is_used ? "yes" : "no");
}

void write_features(qi_json *json, quire_device *device)
{
    feature features[FEATURE_COUNT];
    if (!list_features(device, features))
        return;
    qi_json_object(json, "features");
    for (int i = 0; i < FEATURE_COUNT; i++)
        qi_json_bool(json, features[i].name, features[i].is_used);
    qi_json_end_object(json);
}
