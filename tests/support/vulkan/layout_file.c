/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * layout_file.c - reads layouts from device profiles: see layout_file.h. The tool's reader reads
 * what the tool uses of a profile; this file reads the rest.
 */
#include "tests/support/vulkan/layout_file.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/tool/open.h"

/* Size of a heap whose profile does not state it. */
#define USUAL_HEAP (UINT64_C(8) << 30)

static uint64_t number_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    const char *text = json_string_value(value);
    return text ? strtoull(text, NULL, 0) : (uint64_t)json_integer_value(value);
}

/* Finds a version such as "1.3.246" in the text. Versions before 1.1 become 1.1. */
static uint32_t version_of(const char *text)
{
    unsigned major = 0, minor = 0, patch;
    while (text && *text && sscanf(text, "%u.%u.%u", &major, &minor, &patch) != 3)
        text++;
    uint32_t version = VK_MAKE_API_VERSION(0, major, minor, 0);
    if (version < VK_API_VERSION_1_1 || !text || !*text)
        return VK_API_VERSION_1_1;
    return version < VK_API_VERSION_1_3 ? version : VK_API_VERSION_1_3;
}

static VkPhysicalDeviceType type_of(const char *text)
{
    if (text && strstr(text, "INTEGRATED"))
        return VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
    if (text && strstr(text, "CPU"))
        return VK_PHYSICAL_DEVICE_TYPE_CPU;
    return text ? VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU : VK_PHYSICAL_DEVICE_TYPE_OTHER;
}

static uint32_t extensions_of(const json_t *names)
{
    static const char *const KNOWN[] = {
#define X(bit, name, scope, core) name,
        FV_EXTENSIONS(X)
#undef X
    };
    uint32_t extensions = 0;
    for (size_t i = 0; i < json_array_size(names); i++)
        for (uint32_t k = 0; k < FV_EXTENSION_COUNT; k++)
            if (!strcmp(KNOWN[k], json_string_value(json_array_get(names, i))))
                extensions |= UINT32_C(1) << k;
    return extensions;
}

static void take_memory(const quire_host_profile *profile, fv_layout *layout)
{
    layout->heap_count = profile->heap_count;
    layout->type_count = profile->kind_count;
    for (uint32_t i = 0; i < profile->heap_count; i++)
        layout->heaps[i] = (VkMemoryHeap){
            profile->heaps[i].size ? profile->heaps[i].size : USUAL_HEAP, profile->heaps[i].flags};
    for (uint32_t i = 0; i < profile->kind_count; i++) /* quire's flags have Vulkan's values */
        layout->types[i] = (VkMemoryType){profile->kinds[i].flags, profile->kinds[i].heap};
    layout->granularity = profile->limits.buffer_image_granularity;
    layout->atom = profile->limits.non_coherent_atom;
    layout->max_allocations = (uint32_t)profile->limits.max_pages;
    layout->max_allocation = profile->limits.max_page;
}

static void take_rest(const json_t *root, fv_layout *layout)
{
    const json_t *limits = json_object_get(root, "limits");
    const json_t *features = json_object_get(root, "features");
    layout->type = type_of(json_string_value(json_object_get(root, "deviceType")));
    layout->api_version = version_of(json_string_value(json_object_get(root, "apiVersion")));
    layout->vendor = (uint32_t)number_of(root, "vendorID");
    layout->device = (uint32_t)number_of(root, "deviceID");
    layout->max_buffer = number_of(limits, "maxBufferSize");
    layout->map_alignment = number_of(limits, "minMemoryMapAlignment");
    layout->host_pointer_alignment = number_of(limits, "minImportedHostPointerAlignment");
    layout->sparse_space = number_of(limits, "sparseAddressSpaceSize");
    layout->storage_alignment = number_of(limits, "minStorageBufferOffsetAlignment");
    layout->uniform_alignment = number_of(limits, "minUniformBufferOffsetAlignment");
    layout->texel_alignment = number_of(limits, "minTexelBufferOffsetAlignment");
    layout->copy_alignment = number_of(limits, "optimalBufferCopyOffsetAlignment");
    layout->extensions = extensions_of(json_object_get(root, "extensions"));
    if (json_is_true(json_object_get(features, "sparseBinding")))
        layout->features |= FV_SPARSE_BINDING;
    if (json_is_true(json_object_get(features, "sparseResidencyBuffer")))
        layout->features |= FV_SPARSE_BUFFER;
    if (json_is_true(json_object_get(features, "sparseResidencyImage2D")))
        layout->features |= FV_SPARSE_IMAGE;
    if (json_is_true(json_object_get(features, "sparseResidency4Samples")))
        layout->features |= FV_SPARSE_SAMPLES;
    for (uint32_t i = 0; i < layout->type_count; i++)
        if (layout->types[i].propertyFlags & VK_MEMORY_PROPERTY_PROTECTED_BIT)
            layout->features |= FV_PROTECTED;
}

/* Reads a layout, which end_layout releases. On failure returns false and writes a message to
   stderr. */
static bool read_layout(const char *path, fv_layout *layout)
{
    quire_host_profile profile = {0};
    char *name = NULL;
    json_error_t error;
    *layout = (fv_layout){0};
    if (!read_profile(path, &profile, &name))
        return false;
    json_t *root = json_load_file(path, 0, &error);
    if (!root) {
        free(name);
        return false;
    }
    take_memory(&profile, layout);
    take_rest(root, layout);
    layout->name = name;
    layout->source = "a device profile";
    json_decref(root);
    return true;
}

static void end_layout(fv_layout *layout)
{
    free((void *)(uintptr_t)layout->name);
    *layout = (fv_layout){0};
}

static int is_json(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 5 && !strcmp(entry->d_name + length - 5, ".json");
}

uint32_t fv_layout_files(void (*take)(const fv_layout *layout, void *state), void *state)
{
    const char *data = getenv("QUIRE_TEST_DATA");
    char folder[512], path[1024];
    struct dirent **entries = NULL;
    uint32_t taken = 0;
    if (!data || !*data)
        return 0;
    snprintf(folder, sizeof folder, "%s/devices", data);
    int count = scandir(folder, &entries, is_json, alphasort);
    for (int i = 0; i < count; i++) {
        fv_layout layout;
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (read_layout(path, &layout)) {
            take(&layout, state);
            taken++;
        }
        end_layout(&layout);
        free(entries[i]);
    }
    free(entries);
    return taken;
}
