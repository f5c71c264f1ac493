/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
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

enum { NONE = -1 };

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

/* The kind for a use, UINT32_MAX if there is none. */
static uint32_t chosen(const quire_device *device, const kind_rule *rule)
{
    uint32_t kind = 0;
    quire_result result = quire_device_choose_kind(device, &rule->request, &kind);
    CHECK(result == QUIRE_SUCCESS || result == QUIRE_ERROR_UNSUPPORTED);
    return result ? UINT32_MAX : kind;
}

static void check_profile(const char *folder, const char *file)
{
    quire_device *device = open_profile(folder, file);
    quire_device_info info;
    CHECK_OK(quire_device_get_info(device, &info));
    fprintf(stderr, "%-45s", file);
    for (int i = 0; i < KIND_USES; i++) {
        uint32_t kind = chosen(device, &kind_rules[i]);
        fprintf(stderr, " %2d", (int)kind);
        CHECK_EQ(kind, kind_rule_result(&kind_rules[i], info.kinds, info.kind_count));
    }
    fprintf(stderr, "\n");
    kind_rules_check(file, info.kinds, info.kind_count);
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
    static const int uses[] = {0, 1, 3, 5}; /* device, upload, host reads, shared */
    static const struct {
        const char *file;
        int expected[4];
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
        for (int use = 0; use < 4; use++)
            CHECK_EQ((int)chosen(device, &kind_rules[uses[use]]), table[i].expected[use]);
        CHECK_OK(quire_device_destroy(&device));
    }
}
