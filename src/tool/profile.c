/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * profile.c - reads a device profile: JSON as docs/formats.md defines it. docs/profiles has
 * examples.
 *
 * This file rejects input of the wrong shape. Values that the core validates anyway, such as
 * limits, are rejected when the device is opened.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "src/tool/open.h"

static bool complain(const char *path, const char *format, ...) QUIRE_PRINTF(2, 3);

/* Prints an error about the file; returns false for the caller to return. */
static bool complain(const char *path, const char *format, ...)
{
    print_clean(stderr, "quire: %s: ", path);
    va_list args;
    va_start(args, format);
    vprint_clean(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    return false;
}

/* JSON parsers commonly end at 2^63 - 1. Profiles write greater numbers as decimal strings. */
static bool read_number(const json_t *value, uint64_t *number)
{
    if (json_is_integer(value) && json_integer_value(value) >= 0) {
        *number = (uint64_t)json_integer_value(value);
        return true;
    }
    const char *text = json_string_value(value);
    if (!text || *text < '0' || *text > '9')
        return false;
    char *end = NULL;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return !*end && !errno;
}

/* Leaves *number unchanged if the object has no such key. */
static bool read_optional(const char *path, const json_t *object, const char *key, uint64_t *number)
{
    const json_t *value = json_object_get(object, key);
    return !value || read_number(value, number) || complain(path, "\"%s\" is not a number", key);
}

static bool read_heap_flags(const char *path, uint32_t index, const json_t *heap, uint32_t *flags)
{
    const json_t *names = json_object_get(heap, "flags");
    if (!json_is_array(names))
        return complain(path, "heap %" PRIu32 " has no list of flags", index);
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        if (name && !strcmp(name, "DEVICE_LOCAL"))
            *flags |= QUIRE_HEAP_DEVICE_LOCAL;
        else if (name && !strcmp(name, "MULTI_INSTANCE"))
            *flags |= QUIRE_HEAP_MULTI_INSTANCE;
        else
            return complain(path, "heap %" PRIu32 ": unknown heap flag '%s'", index,
                            name ? name : "(not a string)");
    }
    return true;
}

static bool read_kind_flags(const char *path, uint32_t index, const json_t *kind,
                            quire_memory_flags *flags)
{
    const json_t *names = json_object_get(kind, "flags");
    if (!json_is_array(names))
        return complain(path, "memory type %" PRIu32 " has no list of flags", index);
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        quire_memory_flags flag = 1;
        while (name && quire_memory_flag_name(flag) && strcmp(name, quire_memory_flag_name(flag)))
            flag <<= 1;
        if (!name || !quire_memory_flag_name(flag))
            return complain(path, "memory type %" PRIu32 ": unknown memory flag '%s'", index,
                            name ? name : "(not a string)");
        *flags |= flag;
    }
    return true;
}

static bool read_heaps(const char *path, const json_t *heaps, quire_host_profile *profile)
{
    if (!json_array_size(heaps) || json_array_size(heaps) > QUIRE_MAX_HEAPS)
        return complain(path, "\"heaps\" has %zu entries; a device has 1 to %d heaps",
                        json_array_size(heaps), QUIRE_MAX_HEAPS);
    profile->heap_count = (uint32_t)json_array_size(heaps);
    for (uint32_t i = 0; i < profile->heap_count; i++) {
        const json_t *heap = json_array_get(heaps, i);
        if (!read_optional(path, heap, "size", &profile->heaps[i].size) ||
            !read_heap_flags(path, i, heap, &profile->heaps[i].flags))
            return false;
    }
    return true;
}

/* Every kind must name an existing heap, because later code indexes the heaps with it. */
static bool read_kinds(const char *path, const json_t *kinds, quire_host_profile *profile)
{
    if (!json_array_size(kinds) || json_array_size(kinds) > QUIRE_MAX_KINDS)
        return complain(path, "\"types\" has %zu entries; a device has 1 to %d memory types",
                        json_array_size(kinds), QUIRE_MAX_KINDS);
    profile->kind_count = (uint32_t)json_array_size(kinds);
    for (uint32_t i = 0; i < profile->kind_count; i++) {
        const json_t *kind = json_array_get(kinds, i);
        uint64_t heap = 0;
        if (!read_number(json_object_get(kind, "heap"), &heap) || heap >= profile->heap_count)
            return complain(path, "memory type %" PRIu32 " has no heap index below %" PRIu32, i,
                            profile->heap_count);
        profile->kinds[i].heap = (uint32_t)heap;
        if (!read_kind_flags(path, i, kind, &profile->kinds[i].flags))
            return false;
    }
    return true;
}

/* Profiles have two buffer alignments of Vulkan. A device of quire has one, the greater of them. */
static bool read_limits(const char *path, const json_t *limits, quire_limits *out)
{
    uint64_t storage = 0, uniform = 0;
    if (limits && !json_is_object(limits))
        return complain(path, "\"limits\" is not an object");
    if (!read_optional(path, limits, "bufferImageGranularity", &out->buffer_image_granularity) ||
        !read_optional(path, limits, "nonCoherentAtomSize", &out->non_coherent_atom) ||
        !read_optional(path, limits, "maxMemoryAllocationCount", &out->max_pages) ||
        !read_optional(path, limits, "maxMemoryAllocationSize", &out->max_page) ||
        !read_optional(path, limits, "minStorageBufferOffsetAlignment", &storage) ||
        !read_optional(path, limits, "minUniformBufferOffsetAlignment", &uniform))
        return false;
    out->buffer_alignment = storage > uniform ? storage : uniform;
    return true;
}

/* Without a name in the file the path names the device. On success the caller owns *name. */
static bool read_root(const char *path, const json_t *root, quire_host_profile *profile,
                      char **name)
{
    if (!json_is_object(root))
        return complain(path, "a profile is one JSON object");
    const json_t *title = json_object_get(root, "name");
    const char *given = json_string_value(title);
    if (title && !given)
        return complain(path, "\"name\" is not a string");
    if (!read_heaps(path, json_object_get(root, "heaps"), profile) ||
        !read_kinds(path, json_object_get(root, "types"), profile) ||
        !read_limits(path, json_object_get(root, "limits"), &profile->limits))
        return false;
    *name = strdup(given ? given : path);
    profile->name = *name;
    return *name || complain(path, "no host memory for its name");
}

json_t *read_json(const char *path)
{
    size_t size = 0;
    char *text = read_file(path, &size);
    if (!text)
        return NULL;
    if (!size) {
        free(text);
        complain(path, "the file is empty");
        return NULL;
    }
    json_error_t error;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (!root)
        print_problem("quire: %s:%d:%d: %s", path, error.line, error.column, error.text);
    return root;
}

bool read_profile(const char *path, quire_host_profile *profile, char **name)
{
    json_t *root = read_json(path);
    bool good = root && read_root(path, root, profile, name);
    json_decref(root);
    return good;
}
