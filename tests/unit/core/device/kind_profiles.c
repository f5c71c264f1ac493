/*
 * kind_profiles.c - memory choice on real devices: every profile in the folder "devices" below the
 * one that the environment variable QUIRE_TEST_DATA names. Without the variable the tests pass
 * without a check.
 */
#include "tests/support/kind_rules.h"
#include "tests/support/unit.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "quire/host.h"
#include "quire/quire.h"

#define DL QUIRE_DEVICE_LOCAL
#define HV QUIRE_HOST_VISIBLE

enum { NONE = -1 };

static const quire_memory_flags SPECIAL =
    QUIRE_LAZILY_ALLOCATED | QUIRE_PROTECTED | QUIRE_DEVICE_COHERENT | QUIRE_DEVICE_UNCACHED;

static uint64_t number_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (json_is_string(value))
        return strtoull(json_string_value(value), NULL, 10);
    return (uint64_t)json_integer_value(value);
}

static uint32_t count_of(const json_t *array)
{
    return (uint32_t)json_array_size(array);
}

static quire_memory_flags flags_of(const json_t *names)
{
    quire_memory_flags flags = 0;
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        quire_memory_flags flag = 1;
        for (; strcmp(quire_memory_flag_name(flag), name); flag <<= 1)
            CHECK(quire_memory_flag_name(flag << 1) != NULL);
        flags |= flag;
    }
    return flags;
}

static quire_host_profile profile_of(const json_t *root)
{
    const json_t *heaps = json_object_get(root, "heaps"), *types = json_object_get(root, "types");
    const json_t *limits = json_object_get(root, "limits");
    quire_host_profile profile = {
        .name = json_string_value(json_object_get(root, "name")),
        .heap_count = count_of(heaps),
        .kind_count = count_of(types),
        .limits = {.buffer_image_granularity = number_of(limits, "bufferImageGranularity"),
                   .non_coherent_atom = number_of(limits, "nonCoherentAtomSize"),
                   .max_pages = number_of(limits, "maxMemoryAllocationCount"),
                   .max_page = number_of(limits, "maxMemoryAllocationSize")},
    };
    for (uint32_t i = 0; i < profile.heap_count; i++)
        profile.heaps[i].size = number_of(json_array_get(heaps, i), "size");
    for (uint32_t i = 0; i < profile.kind_count; i++) {
        const json_t *type = json_array_get(types, i);
        profile.kinds[i].heap = (uint32_t)number_of(type, "heap");
        profile.kinds[i].flags = flags_of(json_object_get(type, "flags"));
    }
    return profile;
}

static const char *data_folder(void)
{
    const char *folder = getenv("QUIRE_TEST_DATA");
    if (folder && *folder)
        return folder;
    fprintf(stderr, "skipped: QUIRE_TEST_DATA names no folder with device profiles\n");
    return NULL;
}

static quire_device *open_profile(const char *folder, const char *file)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/devices/%s", folder, file);
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    CHECK(root != NULL);
    quire_host_profile profile = profile_of(root);
    quire_host_options options = {.profile = &profile, .device = {.host_memory = unit_memory()}};
    quire_device *device = NULL;
    CHECK_OK(quire_host_open(&options, &device));
    json_decref(root);
    return device;
}

typedef struct choices {
    int device, upload, readback, shared;
} choices;

static int chosen(quire_result result, uint32_t kind)
{
    CHECK(result == QUIRE_SUCCESS || result == QUIRE_ERROR_UNSUPPORTED);
    return result ? NONE : (int)kind;
}

static int chosen_for(const quire_device *device, quire_intent intent)
{
    uint32_t kind = 0;
    quire_result result =
        quire_device_choose_kind(device, &(quire_kind_request){.intent = intent}, &kind);
    return chosen(result, kind);
}

static int chosen_shared(const quire_device *device)
{
    uint32_t kind = 0;
    quire_kind_request request = {.required = DL | HV};
    quire_result result = quire_device_choose_kind(device, &request, &kind);
    return chosen(result, kind);
}

static choices choose(const quire_device *device)
{
    return (choices){
        .device = chosen_for(device, QUIRE_INTENT_DEVICE),
        .upload = chosen_for(device, QUIRE_INTENT_UPLOAD),
        .readback = chosen_for(device, QUIRE_INTENT_HOST_READ),
        .shared = chosen_shared(device),
    };
}

/* The lowest kind with all of `with` and none of `without`. */
static int find(const quire_device_info *info, quire_memory_flags with, quire_memory_flags without)
{
    for (uint32_t i = 0; i < info->kind_count; i++)
        if ((info->kinds[i].flags & with) == with && !(info->kinds[i].flags & without))
            return (int)i;
    return NONE;
}

static bool has(const quire_device_info *info, int kind, quire_memory_flags flags)
{
    return kind != NONE && (info->kinds[kind].flags & flags) == flags;
}

static int bits(quire_memory_flags flags)
{
    return __builtin_popcount(flags);
}

static void check_profile(const char *folder, const char *file)
{
    quire_device *device = open_profile(folder, file);
    quire_device_info info;
    CHECK_OK(quire_device_get_info(device, &info));
    choices c = choose(device);
    fprintf(stderr, "%-45s %2d %2d %2d %2d\n", file, c.device, c.upload, c.readback, c.shared);
    kind_rules_check(file, info.kinds, info.kind_count);
    CHECK(has(&info, c.device, DL));
    for (uint32_t i = 0; i < info.kind_count; i++) /* no more flags than needed */
        if ((info.kinds[i].flags & (DL | SPECIAL)) == DL)
            CHECK(bits(info.kinds[c.device].flags) <= bits(info.kinds[i].flags));
    for (uint32_t i = 0; i < info.kind_count; i++) /* the host's window is kept for the host */
        CHECK(info.kinds[i].flags != DL || !has(&info, c.device, HV) ||
              info.heaps[info.kinds[i].heap].size < info.heaps[info.kinds[c.device].heap].size);
    CHECK(has(&info, c.upload, HV) == (find(&info, HV, SPECIAL) != NONE));
    CHECK(!has(&info, c.upload, DL) || find(&info, HV, DL | SPECIAL) == NONE);
    CHECK(has(&info, c.readback, HV) == (find(&info, HV, SPECIAL) != NONE));
    CHECK(has(&info, c.readback, QUIRE_HOST_CACHED) ||
          find(&info, HV | QUIRE_HOST_CACHED, SPECIAL) == NONE);
    CHECK(has(&info, c.shared, DL | HV) == (find(&info, DL | HV, SPECIAL) != NONE));
    const int all[] = {c.device, c.upload, c.readback, c.shared};
    for (int i = 0; i < 4; i++) /* no special kind is chosen by accident */
        CHECK(all[i] == NONE || !(info.kinds[all[i]].flags & SPECIAL));
    CHECK_OK(quire_device_destroy(&device));
}

UNIT(kind_profiles, choices_on_every_device_match_the_rules)
{
    const char *folder = data_folder();
    if (!folder)
        return;
    char path[1024];
    snprintf(path, sizeof path, "%s/devices", folder);
    DIR *dir = opendir(path);
    CHECK(dir != NULL);
    int count = 0;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        const char *end = strstr(entry->d_name, ".json");
        if (!end || end[5])
            continue;
        check_profile(folder, entry->d_name);
        count++;
    }
    closedir(dir);
    CHECK(count > 0);
}

UNIT(kind_profiles, choices_on_known_devices)
{
    static const struct {
        const char *file;
        choices expected;
    } table[] = {
        {"nvidia-rtx-2080-linux-435.json", {7, 9, 10, NONE}},
        {"nvidia-rtx-3060ti-linux-510.json", {7, 8, 9, 10}},
        {"amd-rx-6600-norebar-radv-23.1.json", {0, 2, 5, 3}},
        {"intel-adl-gt2-anv-23.2.json", {0, 1, 2, 1}},
        {"apple-m1-pro-moltenvk-1.2.11.json", {0, 1, 1, 1}},
        {"lavapipe-mesa-22.3.6-bookworm.json", {0, 0, 0, 0}},
    };
    const char *folder = data_folder();
    for (size_t i = 0; folder && i < sizeof table / sizeof *table; i++) {
        quire_device *device = open_profile(folder, table[i].file);
        choices c = choose(device);
        CHECK(c.device == table[i].expected.device);
        CHECK(c.upload == table[i].expected.upload);
        CHECK(c.readback == table[i].expected.readback);
        CHECK(c.shared == table[i].expected.shared);
        CHECK_OK(quire_device_destroy(&device));
    }
}
