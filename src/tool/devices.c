/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * devices.c - quire devices: lists heaps, memory kinds, limits and optional features of a device,
 * and the memory kind that quire chooses for each use.
 */
#include <inttypes.h>

#include "quire/vulkan.h"
#include "src/base/json.h"
#include "src/base/result.h"
#include "src/render/json_parts.h"
#include "src/tool/open.h"

/* ---- limits and features ------------------------------------------------------------------ */

/* A limit under its name in device profiles; 0 means no limit. */
typedef struct limit {
    const char *name;
    uint64_t value;
    bool is_advice;
} limit;

enum { LIMIT_COUNT = 9 };

/* The first four names are keys of device profiles, so that output and profile can be compared. */
static void list_limits(const quire_limits *limits, limit out[LIMIT_COUNT])
{
    const limit list[LIMIT_COUNT] = {
        {"bufferImageGranularity", limits->buffer_image_granularity, false},
        {"nonCoherentAtomSize", limits->non_coherent_atom, false},
        {"maxMemoryAllocationCount", limits->max_pages, limits->max_pages_is_advice},
        {"maxMemoryAllocationSize", limits->usual_page ? limits->usual_page : limits->max_page,
         false},
        {"maxBufferSize", limits->max_buffer, false},
        {"bufferAlignment", limits->buffer_alignment, false},
        {"imageRowAlignment", limits->image_row_alignment, false},
        {"pageGranularity", limits->page_granularity, false},
        {"pageAlignment", limits->page_alignment, false},
    };
    for (int i = 0; i < LIMIT_COUNT; i++)
        out[i] = list[i];
}

enum { FEATURE_COUNT = 20 };

typedef struct feature {
    const char *name;
    bool is_used;
} feature;

/* The optional features in use. Returns false for a device of another backend than Vulkan. */
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

/* ---- text --------------------------------------------------------------------------------- */

static void print_choice(const char *work, uint32_t kind, const quire_device_info *info)
{
    char text[160];
    if (kind == NO_KIND)
        printf("  %-28s none\n", work);
    else
        printf("  %-28s kind %-2" PRIu32 " %s\n", work, kind,
               flags_text(info->kinds[kind].flags, text, sizeof text));
}

static void print_text(const quire_device_info *info, const kind_choices *choices)
{
    char text[160];
    print_clean(stdout, "%s (backend %s)", info->name, info->backend);
    printf("\n\nheaps\n");
    for (uint32_t i = 0; i < info->heap_count; i++)
        printf("  %2" PRIu32 "  %10s  %s%s\n", i, qi_bytes(info->heaps[i].size).text,
               info->heaps[i].flags & QUIRE_HEAP_DEVICE_LOCAL ? "DEVICE_LOCAL" : "host",
               info->heaps[i].flags & QUIRE_HEAP_MULTI_INSTANCE ? "|MULTI_INSTANCE" : "");
    printf("\nmemory kinds\n");
    for (uint32_t i = 0; i < info->kind_count; i++)
        printf("  %2" PRIu32 "  heap %-2" PRIu32 "  %s\n", i, info->kinds[i].heap,
               flags_text(info->kinds[i].flags, text, sizeof text));
    limit limits[LIMIT_COUNT];
    list_limits(&info->limits, limits);
    printf("\nlimits\n");
    for (int i = 0; i < LIMIT_COUNT; i++)
        if (limits[i].value)
            printf("  %-28s %" PRIu64 "%s\n", limits[i].name, limits[i].value,
                   limits[i].is_advice ? ", as advice" : "");
        else
            printf("  %-28s none\n", limits[i].name);
    printf("\nkinds chosen\n");
    print_choice("device access only", choices->device, info);
    print_choice("sequential host writes", choices->upload, info);
    print_choice("host reads", choices->readback, info);
    print_choice("host reads and writes", choices->both, info);
    print_choice("shared by device and host", choices->shared, info);
}

static void print_features(quire_device *device)
{
    feature features[FEATURE_COUNT];
    if (!list_features(device, features))
        return;
    printf("\noptional features of Vulkan in use\n");
    for (int i = 0; i < FEATURE_COUNT; i++)
        printf("  %-28s %s\n", features[i].name, features[i].is_used ? "yes" : "no");
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void write_choice(qi_json *json, const char *key, uint32_t kind)
{
    if (kind == NO_KIND)
        qi_json_null(json, key);
    else
        qi_json_number(json, key, kind);
}

/* The keys of heaps and types are those of device profiles. */
static void write_heaps(qi_json *json, const quire_device_info *info)
{
    qi_json_array(json, "heaps");
    for (uint32_t i = 0; i < info->heap_count; i++) {
        qi_json_object(json, NULL);
        qi_json_number(json, "size", info->heaps[i].size);
        qi_json_array(json, "flags");
        if (info->heaps[i].flags & QUIRE_HEAP_DEVICE_LOCAL)
            qi_json_text(json, NULL, "DEVICE_LOCAL");
        if (info->heaps[i].flags & QUIRE_HEAP_MULTI_INSTANCE)
            qi_json_text(json, NULL, "MULTI_INSTANCE");
        qi_json_end_array(json);
        qi_json_end_object(json);
    }
    qi_json_end_array(json);
}

static void write_types(qi_json *json, const quire_device_info *info)
{
    qi_json_array(json, "types");
    for (uint32_t i = 0; i < info->kind_count; i++) {
        qi_json_object(json, NULL);
        qi_json_number(json, "heap", info->kinds[i].heap);
        qi_json_flags(json, "flags", info->kinds[i].flags);
        qi_json_end_object(json);
    }
    qi_json_end_array(json);
}

static void write_limits(qi_json *json, const quire_device_info *info)
{
    limit limits[LIMIT_COUNT];
    list_limits(&info->limits, limits);
    qi_json_object(json, "limits");
    for (int i = 0; i < LIMIT_COUNT; i++)
        if (limits[i].value)
            qi_json_number(json, limits[i].name, limits[i].value);
        else
            qi_json_null(json, limits[i].name);
    qi_json_end_object(json);
}

static void write_features(qi_json *json, quire_device *device)
{
    feature features[FEATURE_COUNT];
    if (!list_features(device, features))
        return;
    qi_json_object(json, "features");
    for (int i = 0; i < FEATURE_COUNT; i++)
        qi_json_bool(json, features[i].name, features[i].is_used);
    qi_json_end_object(json);
}

static quire_result write_json(quire_device *device, const quire_device_info *info,
                               const kind_choices *choices)
{
    qi_json json;
    qi_json_init(&json, write_to_file, stdout);
    qi_json_object(&json, NULL);
    qi_json_array(&json, "devices");
    qi_json_object(&json, NULL);
    qi_json_text(&json, "name", info->name);
    qi_json_text(&json, "backend", info->backend);
    write_heaps(&json, info);
    write_types(&json, info);
    write_limits(&json, info);
    qi_json_object(&json, "choices");
    write_choice(&json, "device", choices->device);
    write_choice(&json, "upload", choices->upload);
    write_choice(&json, "readback", choices->readback);
    write_choice(&json, "both", choices->both);
    write_choice(&json, "shared", choices->shared);
    qi_json_end_object(&json);
    write_features(&json, device);
    qi_json_end_object(&json);
    qi_json_end_array(&json);
    qi_json_end_object(&json);
    return qi_json_finish(&json);
}

/* ---- run ---------------------------------------------------------------------------------- */

int run_devices(const command *self, int argc, char **argv)
{
    device_choice choice = {0};
    bool json = false;
    const option_spec specs[] = {
        DEVICE_OPTIONS(&choice),
        {"json", NULL, "print one JSON object", OPTION_FLAG, &json},
    };
    int code = parse_options(self, argc, argv, specs, sizeof specs / sizeof *specs, NULL);
    if (code >= 0)
        return code;
    quire_device *device = NULL;
    code = open_device(self, &choice, &device);
    if (code >= 0)
        return code;
    quire_device_info info;
    kind_choices choices = choose_kinds(device);
    quire_result result = quire_device_get_info(device, &info);
    if (!result && json)
        result = write_json(device, &info, &choices);
    else if (!result) {
        print_text(&info, &choices);
        print_features(device);
    }
    code = result ? fail_with_last_error() : EXIT_OK;
    return quire_device_destroy(&device) ? fail_with_last_error() : code;
}
