/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * tour.c - quire tour: creates two memories, an image, a buffer and a staging range, copies bytes
 * through them and prints where each lies.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "quire/lluvia.h"
#include "src/base/json.h"
#include "src/base/result.h"
#include "src/render/json_parts.h"
#include "src/tool/open.h"

enum { IMAGE_SIDE = 32, BUFFER_SIZE = 1024, MEMORIES = 2, STOPS = 3 };

/* One allocation of the tour. */
typedef struct stop {
    const char *name;
    const char *kind; /* "image", "buffer" or "range" */
    int memory;       /* index in tour.memories */
    quire_allocation allocation;
} stop;

typedef struct tour {
    quire_device *device;
    quire_memory *memories[MEMORIES]; /* device-local, host-visible */
    stop stops[STOPS];
} tour;

/* The caller destroys what exists, also after a failure. */
static quire_result make_memories(tour *t)
{
    const quire_memory_options options[MEMORIES] = {
        {.name = "device-local", .kind.required = QUIRE_DEVICE_LOCAL},
        {.name = "host-visible", .kind.required = QUIRE_HOST_VISIBLE},
    };
    quire_result result = QUIRE_SUCCESS;
    for (int i = 0; i < MEMORIES && !result; i++)
        result = quire_memory_create(t->device, &options[i], &t->memories[i]);
    return result;
}

static quire_result make_objects(tour *t)
{
    quire_image image;
    quire_buffer buffer;
    quire_allocation staging;
    quire_result result = quire_image_create(
        t->memories[0],
        &(quire_image_options){.width = IMAGE_SIDE, .height = IMAGE_SIDE, .name = "image"}, &image);
    if (!result)
        result = quire_buffer_create(t->memories[0],
                                     &(quire_buffer_options){.size = BUFFER_SIZE, .name = "buffer"},
                                     &buffer);
    if (!result)
        result = quire_allocate(
            t->memories[1],
            &(quire_allocation_options){
                .size = BUFFER_SIZE, .name = "staging", .host_read = true, .host_write = true},
            &staging);
    if (result)
        return result;
    t->stops[0] = (stop){"image", "image", 0, image.allocation};
    t->stops[1] = (stop){"buffer", "buffer", 0, buffer.allocation};
    t->stops[2] = (stop){"staging", "range", 1, staging};
    return QUIRE_SUCCESS;
}

/*
 * Copies bytes into the image and back. On Vulkan it copies texels, because the driver may require
 * dedicated memory for the image, which only copies of texels can access.
 */
static quire_result pass_image(tour *t, const void *bytes, void *back)
{
    quire_device_info device;
    quire_memory *memory = t->memories[0];
    const quire_image image = {t->stops[0].allocation};
    quire_result result = quire_device_get_info(t->device, &device);
    if (result)
        return result;
    if (!strcmp(device.backend, "vulkan")) {
        result = quire_lluvia_image_write(memory, image, VK_IMAGE_LAYOUT_UNDEFINED,
                                          VK_IMAGE_LAYOUT_GENERAL, bytes, BUFFER_SIZE);
        return result ? result
                      : quire_lluvia_image_read(memory, image, VK_IMAGE_LAYOUT_GENERAL, back,
                                                BUFFER_SIZE);
    }
    result = quire_write(memory, image.allocation, 0, bytes, BUFFER_SIZE);
    return result ? result : quire_read(memory, image.allocation, 0, back, BUFFER_SIZE);
}

static quire_result pass_buffer(tour *t, const void *bytes, void *back)
{
    quire_result result =
        quire_write(t->memories[0], t->stops[1].allocation, 0, bytes, BUFFER_SIZE);
    return result ? result
                  : quire_read(t->memories[0], t->stops[1].allocation, 0, back, BUFFER_SIZE);
}

/* Fills the mapped staging range, copies it through image and buffer, and compares the result. */
static quire_result write_and_read_back(tour *t)
{
    void *mapped = NULL;
    unsigned char back[BUFFER_SIZE];
    quire_result result = quire_map(t->memories[1], t->stops[2].allocation, &mapped);
    if (result)
        return result;
    for (int i = 0; i < BUFFER_SIZE; i++)
        ((unsigned char *)mapped)[i] = (unsigned char)(i * 7 + i / 256);
    for (int i = 0; i < 2 && !result; i++) {
        memset(back, 0, sizeof back);
        result = i ? pass_buffer(t, mapped, back) : pass_image(t, mapped, back);
        if (!result && memcmp(back, mapped, BUFFER_SIZE))
            result = qi_fail_text(QUIRE_ERROR_CORRUPTED,
                                  "the bytes read from the %s differ from those written",
                                  t->stops[i].name);
    }
    quire_result unmapped = quire_unmap(t->memories[1], t->stops[2].allocation);
    return result ? result : unmapped;
}

/* ---- text --------------------------------------------------------------------------------- */

static quire_result print_text(const tour *t)
{
    char text[160];
    printf("memories\n");
    for (int i = 0; i < MEMORIES; i++) {
        quire_memory_info info;
        quire_result result = quire_memory_get_info(t->memories[i], &info);
        if (result)
            return result;
        printf("  %-13s kind %" PRIu32 " (%s), mappable: %s, page count: %" PRIu32
               ", page size: %" PRIu64 "\n",
               info.name, info.kind, flags_text(info.flags, text, sizeof text),
               info.mappable ? "yes" : "no", info.page_count, info.page_size);
    }
    printf("\nallocations\n");
    for (int i = 0; i < STOPS; i++) {
        const stop *s = &t->stops[i];
        quire_allocation_info info;
        quire_result result =
            quire_allocation_get_info(t->memories[s->memory], s->allocation, &info);
        if (result)
            return result;
        printf("  %-8s page %" PRIu32 " offset %" PRIu64 " left padding %" PRIu64 " size %" PRIu64
               "  (%s)\n",
               s->name, info.page, info.offset, info.left_padding, info.size,
               s->memory ? "host-visible" : "device-local");
    }
    printf("\nwritten and read back: image and buffer hold the bytes of the staging range\n\n");
    return print_page_map(t->memories[0]);
}

/* ---- JSON --------------------------------------------------------------------------------- */

static quire_result write_memory(qi_json *json, quire_memory *memory)
{
    quire_memory_info info;
    quire_result result = quire_memory_get_info(memory, &info);
    qi_json_object(json, NULL);
    qi_json_text(json, "name", info.name);
    qi_json_number(json, "kind", info.kind);
    qi_json_flags(json, "flags", info.flags);
    qi_json_bool(json, "mappable", info.mappable);
    qi_json_number(json, "page_count", info.page_count);
    qi_json_number(json, "page_size", info.page_size);
    qi_json_end_object(json);
    return result;
}

/* Closes the object after an error too, so that the JSON writer stays balanced. */
static quire_result write_stop(qi_json *json, const tour *t, const stop *s)
{
    quire_allocation_info info;
    quire_result result = quire_allocation_get_info(t->memories[s->memory], s->allocation, &info);
    qi_json_object(json, NULL);
    qi_json_text(json, "name", s->name);
    qi_json_text(json, "kind", s->kind);
    qi_json_text(json, "memory", s->memory ? "host-visible" : "device-local");
    qi_json_number(json, "page", info.page);
    qi_json_number(json, "offset", info.offset);
    qi_json_number(json, "left_padding", info.left_padding);
    qi_json_number(json, "size", info.size);
    qi_json_end_object(json);
    return result;
}

static quire_result write_json(const tour *t)
{
    qi_json json;
    quire_result result = QUIRE_SUCCESS;
    qi_json_init(&json, write_to_file, stdout);
    qi_json_object(&json, NULL);
    qi_json_array(&json, "memories");
    for (int i = 0; i < MEMORIES && !result; i++)
        result = write_memory(&json, t->memories[i]);
    qi_json_end_array(&json);
    qi_json_array(&json, "allocations");
    for (int i = 0; i < STOPS && !result; i++)
        result = write_stop(&json, t, &t->stops[i]);
    qi_json_end_array(&json);
    qi_json_end_object(&json);
    quire_result written = qi_json_finish(&json);
    return result ? result : written;
}

static int take_tour(tour *t, bool json)
{
    quire_result result = make_memories(t);
    if (!result)
        result = make_objects(t);
    if (!result)
        result = write_and_read_back(t);
    if (!result)
        result = json ? write_json(t) : print_text(t);
    int code = result ? fail_with_last_error() : EXIT_OK;
    for (int i = 0; i < MEMORIES; i++)
        quire_memory_destroy_all(&t->memories[i]);
    return quire_device_destroy(&t->device) ? fail_with_last_error() : code;
}

int run_tour(const command *self, int argc, char **argv)
{
    device_choice choice = {0};
    bool json = false;
    const option_spec specs[] = {
        DEVICE_OPTIONS(&choice),
        {"json", NULL, "print one JSON object", OPTION_FLAG, &json},
    };
    int code = parse_options(self, argc, argv, specs, sizeof specs / sizeof *specs, NULL);
    tour t = {0};
    if (code < 0)
        code = open_device(self, &choice, &t.device);
    return code < 0 ? take_tour(&t, json) : code;
}
