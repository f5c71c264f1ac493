/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * resource.c - every wrong use of quire/resource.h, quire/insight.h and quire/export.h, and
 * backends that ask impossible things of objects: the documented code, a sentence, zeroed outputs,
 * nothing changed.
 */
#include <stdio.h>

#include "quire/export.h"

#include "tests/misuse/misuse.h"
#include "tests/support/state.h"

static bench b;
static quire_memory *visible, *device_only;
static quire_allocation range, reserved, stale, remote;
static quire_buffer buffer;
static quire_image image;
static char long_name[QUIRE_MAX_NAME + 2];

static bool build(void)
{
    const quire_buffer_options options = {.size = 1000, .name = "buffer"};
    bench_begin(&b, true);
    return bench_open(&b) && bench_memory(&b, &(quire_memory_options){.kind.mask = 1}) &&
           bench_buffer(&b, 1, &options) &&
           bench_memory(&b, &(quire_memory_options){.kind.mask = 2}) &&
           bench_buffer(&b, 2, &options) &&
           bench_image(&b, 1, &(quire_image_options){.width = 10, .height = 10}) &&
           bench_allocate(&b, 1, &(quire_allocation_options){.size = 100}) &&
           bench_reserve(&b, &(quire_allocation_options){.size = 100});
}

static void begin(void)
{
    CHECK(build());
    device_only = b.memories[0];
    visible = b.memories[1];
    remote = b.held[0].allocation;
    buffer.allocation = b.held[1].allocation;
    stale = b.held[2].allocation;
    image.allocation = b.held[3].allocation;
    range = b.held[4].allocation;
    reserved = b.held[5].allocation;
    CHECK(bench_free(&b, 2));
    memset(long_name, 'x', sizeof long_name - 1);
    refusal_begin(&b);
}

/* ---- buffers -------------------------------------------------------------------------------- */

static void refuse_buffer(quire_result code, quire_memory *memory,
                          const quire_buffer_options *options)
{
    quire_buffer made;
    uint32_t chosen = 77;
    REFUSE_OUT(code, made, quire_buffer_create(memory, options, &made));
    REFUSE_OUT(code, made, quire_buffer_create_fallback(&memory, 1, options, &chosen, &made));
}

static void buffers(void)
{
    const quire_buffer_options good = {.size = 1000};
    const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 63, UINT64_C(1) << 63, UINT64_C(1) << 31};
    REFUSE(INVALID, quire_buffer_create(visible, &good, NULL));
    refuse_buffer(INVALID, NULL, &good);
    refuse_buffer(INVALID, visible, NULL);
    refuse_buffer(INVALID, visible, &(quire_buffer_options){0});
    refuse_buffer(INVALID, visible, &(quire_buffer_options){.size = 1, .alignment = 3});
    refuse_buffer(INVALID, visible, &(quire_buffer_options){.size = 1, .alignment = UINT64_MAX});
    refuse_buffer(INVALID, visible, &(quire_buffer_options){.size = 1, .alignment = 4u << 20});
    refuse_buffer(INVALID, visible,
                  &(quire_buffer_options){.size = 1, .usage = QUIRE_USAGE_SAMPLED});
    refuse_buffer(INVALID, visible, &(quire_buffer_options){.size = 1, .usage = UINT32_MAX});
    refuse_buffer(INVALID, visible, &(quire_buffer_options){.size = 1, .usage = 0x80});
    refuse_buffer(INVALID, visible, &(quire_buffer_options){.size = 1, .name = long_name});
    refuse_buffer(NOT_VISIBLE, device_only, &(quire_buffer_options){.size = 1, .host_read = true});
    refuse_buffer(NOT_VISIBLE, device_only, &(quire_buffer_options){.size = 1, .host_write = true});
    refuse_buffer(NOT_VISIBLE, device_only, &(quire_buffer_options){.size = 1, .mapped = true});
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        refuse_buffer(NO_MEMORY, visible, &(quire_buffer_options){.size = sizes[i]});
    for (int i = 0; i < 4; i++) {
        quire_buffer_options options = good;
        options.unused[i] = 1;
        refuse_buffer(INVALID, visible, &options);
    }
}

/* ---- default memories ----------------------------------------------------------------------- */

/* A wrong choice, for each of the calls that take one. */
static void refuse_choice(quire_result code, quire_device *device, const quire_kind_request *choice)
{
    const quire_allocation_options of_range = {.size = 1};
    const quire_buffer_options of_buffer = {.size = 1};
    const quire_image_options of_image = {.width = 1};
    quire_memory *memory = visible;
    quire_allocation made;
    quire_buffer block;
    quire_image picture;
    REFUSE_OUT(code, made, quire_device_allocate(device, choice, &of_range, &memory, &made));
    REFUSE_OUT(code, block,
               quire_device_buffer_create(device, choice, &of_buffer, &memory, &block));
    REFUSE_OUT(code, picture,
               quire_device_image_create(device, choice, &of_image, &memory, &picture));
    CHECK(!memory);
}

static void choices(void)
{
    const quire_intent intent = QUIRE_INTENT_HOST_WRITE,
                       broken = QUIRE_INTENT_UPLOAD | QUIRE_INTENT_HOST_READ;
    const quire_intent exported = QUIRE_INTENT_EXPORT;
    quire_kind_request bad = {.intent = intent, .avoided = QUIRE_HOST_CACHED};
    refuse_choice(INVALID, NULL, NULL);
    refuse_choice(INVALID, b.device, &bad);
    bad = (quire_kind_request){.intent = broken};
    refuse_choice(INVALID, b.device, &bad);
    bad = (quire_kind_request){.intent = exported};
    refuse_choice(UNSUPPORTED, b.device, &bad);
    bad = (quire_kind_request){.required = UINT32_MAX};
    refuse_choice(INVALID, b.device, &bad);
    bad = (quire_kind_request){.required = 1, .avoided = 1};
    refuse_choice(INVALID, b.device, &bad);
    bad = (quire_kind_request){.required = 1, .preferred = 2, .exact = true};
    refuse_choice(INVALID, b.device, &bad);
    bad = (quire_kind_request){.mask = UINT32_C(1) << 31};
    refuse_choice(UNSUPPORTED, b.device, &bad);
    bad = (quire_kind_request){.required = QUIRE_LAZILY_ALLOCATED};
    refuse_choice(UNSUPPORTED, b.device, &bad);
    for (int i = 0; i < 4; i++) {
        bad = (quire_kind_request){.intent = 0};
        bad.unused[i] = 1;
        refuse_choice(INVALID, b.device, &bad);
    }
}

static void default_memories(void)
{
    const quire_allocation_options of_range = {.size = 1};
    const quire_buffer_options of_buffer = {.size = 1};
    const quire_image_options of_image = {.width = 1};
    quire_memory *memory;
    quire_allocation made;
    quire_buffer block;
    quire_image picture;
    REFUSE_OUT(INVALID, memory, quire_device_default_memory(NULL, 0, &memory));
    REFUSE_OUT(OUTSIDE, memory, quire_device_default_memory(b.device, 4, &memory));
    REFUSE_OUT(OUTSIDE, memory, quire_device_default_memory(b.device, UINT32_MAX, &memory));
    REFUSE(INVALID, quire_device_default_memory(b.device, 0, NULL));
    REFUSE(INVALID, quire_device_set_default_options(NULL, NULL));
    REFUSE(INVALID,
           quire_device_set_default_options(b.device, &(quire_memory_options){.name = "mine"}));
    REFUSE(UNSUPPORTED, quire_device_set_default_options(
                            b.device, &(quire_memory_options){.kind.required = QUIRE_PROTECTED}));
    REFUSE_OUT(INVALID, memory, quire_device_allocate(b.device, NULL, &of_range, &memory, NULL));
    REFUSE_OUT(INVALID, made, quire_device_allocate(b.device, NULL, &of_range, NULL, &made));
    REFUSE_OUT(INVALID, made, quire_device_allocate(b.device, NULL, NULL, &memory, &made));
    REFUSE_OUT(INVALID, memory,
               quire_device_buffer_create(b.device, NULL, &of_buffer, &memory, NULL));
    REFUSE_OUT(INVALID, block,
               quire_device_buffer_create(b.device, NULL, &of_buffer, NULL, &block));
    REFUSE_OUT(INVALID, block, quire_device_buffer_create(b.device, NULL, NULL, &memory, &block));
    REFUSE_OUT(INVALID, memory,
               quire_device_image_create(b.device, NULL, &of_image, &memory, NULL));
    REFUSE_OUT(INVALID, picture,
               quire_device_image_create(b.device, NULL, &of_image, NULL, &picture));
    REFUSE_OUT(INVALID, picture,
               quire_device_image_create(b.device, NULL, NULL, &memory, &picture));
    const quire_buffer_options empty = {.size = 0}, odd = {.size = 1, .alignment = 3};
    const quire_buffer_options named = {.size = 1, .name = long_name};
    REFUSE_OUT(INVALID, block, quire_device_buffer_create(b.device, NULL, &empty, &memory, &block));
    REFUSE_OUT(INVALID, block, quire_device_buffer_create(b.device, NULL, &odd, &memory, &block));
    REFUSE_OUT(INVALID, block, quire_device_buffer_create(b.device, NULL, &named, &memory, &block));
    CHECK(!memory);
    CHECK_OK(quire_device_default_memory(b.device, 0, &memory));
    quire_memory *same = memory;
    CHECK_FAILS(quire_memory_destroy(&memory), INVALID);
    CHECK(memory == same);
    quire_memory_destroy_all(&memory);
}

/* ---- images --------------------------------------------------------------------------------- */

static void refuse_image(quire_result code, quire_memory *memory,
                         const quire_image_options *options)
{
    quire_image made;
    uint32_t chosen = 77;
    REFUSE_OUT(code, made, quire_image_create(memory, options, &made));
    REFUSE_OUT(code, made, quire_image_create_fallback(&memory, 1, options, &chosen, &made));
}

/* Wrong for an image, and for the query of its requirements. */
static void refuse_texels(quire_result code, const quire_image_options *options)
{
    quire_requirements needs;
    refuse_image(code, visible, options);
    REFUSE_OUT(code, needs, quire_image_get_requirements(b.device, options, &needs));
}

static void images(void)
{
    const quire_image_options good = {.width = 10};
    quire_requirements needs;
    REFUSE(INVALID, quire_image_create(visible, &good, NULL));
    refuse_image(INVALID, NULL, &good);
    refuse_image(INVALID, visible, NULL);
    REFUSE_OUT(INVALID, needs, quire_image_get_requirements(NULL, &good, &needs));
    REFUSE_OUT(INVALID, needs, quire_image_get_requirements(b.device, NULL, &needs));
    REFUSE(INVALID, quire_image_get_requirements(b.device, &good, NULL));
    refuse_texels(INVALID, &(quire_image_options){0});
    refuse_texels(INVALID, &(quire_image_options){.width = 1, .channel_count = 5});
    refuse_texels(INVALID, &(quire_image_options){.width = 1, .channel_count = UINT32_MAX});
    refuse_texels(INVALID, &(quire_image_options){.width = 1, .channel_type = 11});
    refuse_texels(INVALID, &(quire_image_options){.width = 1, .channel_type = 99});
    refuse_texels(INVALID, &(quire_image_options){.width = 1, .tiling = 2});
    refuse_texels(INVALID, &(quire_image_options){.width = 1, .usage = QUIRE_USAGE_VERTEX});
    refuse_texels(INVALID, &(quire_image_options){.width = 1, .usage = UINT32_MAX});
    refuse_texels(NO_MEMORY, &(quire_image_options){
                                 .width = UINT32_MAX, .height = UINT32_MAX, .depth = UINT32_MAX});
    refuse_image(NO_MEMORY, visible,
                 &(quire_image_options){.width = UINT32_MAX, .height = UINT32_MAX});
    refuse_image(INVALID, visible, &(quire_image_options){.width = 1, .name = long_name});
    refuse_image(NOT_VISIBLE, device_only, &(quire_image_options){.width = 1, .host_read = true});
    refuse_image(NOT_VISIBLE, device_only, &(quire_image_options){.width = 1, .mapped = true});
    for (int i = 0; i < 4; i++) {
        quire_image_options options = good;
        options.unused[i] = 1;
        refuse_texels(INVALID, &options);
    }
    HARMLESS(&b, quire_channel_size((quire_channel_type)99));
    CHECK_EQ(quire_channel_size((quire_channel_type)11), 0);
}

/* ---- queries -------------------------------------------------------------------------------- */

static void refuse_object(quire_result code, quire_memory *memory, quire_allocation wrong)
{
    quire_buffer_info of_buffer;
    quire_image_info of_image;
    REFUSE_OUT(code, of_buffer, quire_buffer_get_info(memory, (quire_buffer){wrong}, &of_buffer));
    REFUSE_OUT(code, of_image, quire_image_get_info(memory, (quire_image){wrong}, &of_image));
}

static void asking(void)
{
    quire_buffer_info of_buffer;
    quire_image_info of_image;
    refuse_object(INVALID, NULL, buffer.allocation);
    refuse_object(INVALID, visible, (quire_allocation){0});
    refuse_object(INVALID, visible, range);
    refuse_object(WRONG_STATE, visible, reserved);
    refuse_object(STALE, visible, stale);
    refuse_object(FOREIGN, visible, remote);
    REFUSE(INVALID, quire_buffer_get_info(visible, buffer, NULL));
    REFUSE(INVALID, quire_image_get_info(visible, image, NULL));
    REFUSE_OUT(INVALID, of_buffer,
               quire_buffer_get_info(visible, (quire_buffer){image.allocation}, &of_buffer));
    REFUSE_OUT(INVALID, of_image,
               quire_image_get_info(visible, (quire_image){buffer.allocation}, &of_image));
}

/* ---- backends with impossible requirements -------------------------------------------------- */

static void refuse_needs(quire_result code, quire_requirements needs)
{
    quire_requirements asked, kept = b.fake.object_needs;
    b.fake.object_needs = needs;
    refuse_buffer(code, visible, &(quire_buffer_options){.size = 1000});
    refuse_image(code, visible, &(quire_image_options){.width = 10, .height = 10});
    if (code == QUIRE_ERROR_BACKEND_FAILURE)
        REFUSE_OUT(
            code, asked,
            quire_image_get_requirements(b.device, &(quire_image_options){.width = 10}, &asked));
    b.fake.object_needs = kept;
}

static void impossible_needs(void)
{
    refuse_needs(QUIRE_ERROR_BACKEND_FAILURE, (quire_requirements){.kind_mask = UINT32_MAX});
    refuse_needs(QUIRE_ERROR_BACKEND_FAILURE,
                 (quire_requirements){.alignment = 3, .kind_mask = UINT32_MAX});
    refuse_needs(QUIRE_ERROR_BACKEND_FAILURE, (quire_requirements){.alignment = 64});
    refuse_needs(UNSUPPORTED, (quire_requirements){.alignment = 64, .kind_mask = 1});
    refuse_needs(NO_MEMORY, (quire_requirements){
                                .size = UINT64_MAX, .alignment = 64, .kind_mask = UINT32_MAX});
}

/* ---- quire/insight.h ------------------------------------------------------------------------ */

static void figures(void)
{
    quire_memory_stats stats;
    quire_device_stats device;
    REFUSE_OUT(INVALID, stats, quire_memory_get_stats(NULL, &stats));
    REFUSE(INVALID, quire_memory_get_stats(visible, NULL));
    REFUSE(INVALID, quire_memory_push_stats(NULL));
    REFUSE_OUT(INVALID, stats, quire_memory_pop_stats(NULL, &stats));
    REFUSE(INVALID, quire_memory_pop_stats(visible, NULL));
    REFUSE_OUT(WRONG_STATE, stats, quire_memory_pop_stats(visible, &stats));
    REFUSE_OUT(INVALID, device, quire_device_get_stats(NULL, &device));
    REFUSE(INVALID, quire_device_get_stats(b.device, NULL));
    REFUSE(INVALID, quire_memory_check(NULL));
    REFUSE(INVALID, quire_memory_set_hook(NULL, NULL));
    REFUSE(INVALID, quire_memory_set_hook(visible, &(quire_hook){.kinds = 0x800}));
    REFUSE(INVALID, quire_device_set_hook(NULL, NULL));
    REFUSE(INVALID, quire_device_set_hook(b.device, &(quire_hook){.kinds = 0x800}));
    for (int i = 0; i < 4; i++) {
        quire_hook hook = {.event = NULL};
        hook.unused[i] = 1;
        REFUSE(INVALID, quire_memory_set_hook(visible, &hook));
        REFUSE(INVALID, quire_device_set_hook(b.device, &hook));
    }
}

static bool visit_nothing(void *user, const quire_item *item)
{
    (void)user, (void)item;
    return false;
}

static bool refuse_text(void *user, const char *text, size_t size)
{
    (void)user, (void)text, (void)size;
    return false;
}

static void dumps(void)
{
    quire_space *space = NULL;
    CHECK_OK(quire_space_create(&(quire_space_options){.size = 65536}, &space));
    REFUSE(INVALID, quire_memory_walk(NULL, visit_nothing, NULL));
    REFUSE(INVALID, quire_memory_walk(visible, NULL, NULL));
    REFUSE(INVALID, quire_memory_write_json(NULL, refuse_text, NULL));
    REFUSE(INVALID, quire_memory_write_json(visible, NULL, NULL));
    REFUSE(INVALID, quire_memory_write_svg(NULL, refuse_text, NULL));
    REFUSE(INVALID, quire_memory_write_svg(visible, NULL, NULL));
    REFUSE(INVALID, quire_memory_write_report(NULL, refuse_text, NULL));
    REFUSE(INVALID, quire_memory_write_report(visible, NULL, NULL));
    REFUSE(BAD_FILE, quire_memory_write_report(visible, refuse_text, NULL));
    REFUSE(INVALID, quire_memory_write_report_json(NULL, refuse_text, NULL));
    REFUSE(INVALID, quire_memory_write_report_json(visible, NULL, NULL));
    REFUSE(BAD_FILE, quire_memory_write_report_json(visible, refuse_text, NULL));
    REFUSE(INVALID, quire_device_write_json(NULL, refuse_text, NULL));
    REFUSE(INVALID, quire_device_write_json(b.device, NULL, NULL));
    REFUSE(BAD_FILE, quire_device_write_json(b.device, refuse_text, NULL));
    REFUSE(INVALID, quire_device_write_svg(NULL, refuse_text, NULL));
    REFUSE(INVALID, quire_device_write_svg(b.device, NULL, NULL));
    REFUSE(BAD_FILE, quire_device_write_svg(b.device, refuse_text, NULL));
    REFUSE(INVALID, quire_device_write_report(NULL, refuse_text, NULL));
    REFUSE(INVALID, quire_device_write_report(b.device, NULL, NULL));
    REFUSE(BAD_FILE, quire_device_write_report(b.device, refuse_text, NULL));
    REFUSE(INVALID, quire_device_write_report_json(NULL, refuse_text, NULL));
    REFUSE(INVALID, quire_device_write_report_json(b.device, NULL, NULL));
    REFUSE(BAD_FILE, quire_device_write_report_json(b.device, refuse_text, NULL));
    REFUSE(INVALID, quire_space_write_json(NULL, refuse_text, NULL));
    REFUSE(INVALID, quire_space_write_json(space, NULL, NULL));
    REFUSE(BAD_FILE, quire_memory_write_json(visible, refuse_text, NULL));
    REFUSE(BAD_FILE, quire_memory_write_svg(visible, refuse_text, NULL));
    REFUSE(BAD_FILE, quire_space_write_json(space, refuse_text, NULL));
    quire_space_destroy(&space);
}

static void exports(void)
{
    REFUSE(INVALID, quire_memory_write_memory_viz(NULL, refuse_text, NULL));
    REFUSE(INVALID, quire_memory_write_memory_viz(visible, NULL, NULL));
    REFUSE(BAD_FILE, quire_memory_write_memory_viz(visible, refuse_text, NULL));
    REFUSE(INVALID, quire_device_write_memory_viz(NULL, refuse_text, NULL));
    REFUSE(INVALID, quire_device_write_memory_viz(b.device, NULL, NULL));
    REFUSE(BAD_FILE, quire_device_write_memory_viz(b.device, refuse_text, NULL));
    REFUSE(INVALID, quire_memory_write_vma(NULL, refuse_text, NULL));
    REFUSE(INVALID, quire_memory_write_vma(visible, NULL, NULL));
    REFUSE(BAD_FILE, quire_memory_write_vma(visible, refuse_text, NULL));
    REFUSE(INVALID, quire_device_write_vma(NULL, refuse_text, NULL));
    REFUSE(INVALID, quire_device_write_vma(b.device, NULL, NULL));
    REFUSE(BAD_FILE, quire_device_write_vma(b.device, refuse_text, NULL));
}

static void end(void)
{
    bench_end(&b);
}

/* ---- the area ------------------------------------------------------------------------------- */

/* ---- quire/record.h ------------------------------------------------------------------------- */

static void recording(void)
{
    quire_recorder *recorder;
    const quire_record_options none = {.sink = refuse_text},
                               both = {.memory = visible, .device = b.device, .sink = refuse_text},
                               nowhere = {.memory = visible},
                               twice = {.memory = visible, .sink = refuse_text, .path = "x"},
                               no_file = {.memory = visible, .path = "/nowhere/x"},
                               later = {.memory = visible, .sink = refuse_text, .unused = {1}};
    const quire_record_options *wrong[] = {NULL, &none, &both, &nowhere, &twice, &later};
    for (int i = 0; i < 6; i++)
        REFUSE_OUT(INVALID, recorder, quire_record_start(wrong[i], &recorder));
    REFUSE(INVALID, quire_record_start(&none, NULL));
    REFUSE_OUT(BAD_FILE, recorder, quire_record_start(&no_file, &recorder));
    REFUSE(INVALID, quire_record_frame(NULL));
    REFUSE(INVALID, quire_record_flush(NULL));
    REFUSE(INVALID, quire_record_stop(NULL));
}

static const misuse_case cases[] = {
    {"buffers", buffers},
    {"images", images},
    {"choices of a kind", choices},
    {"default memories", default_memories},
    {"asking buffers and images", asking},
    {"backends that ask the impossible", impossible_needs},
    {"figures", figures},
    {"walks and dumps", dumps},
    {"files for other programs", exports},
    {"recording", recording},
    {NULL, NULL},
};

static const char *const headers[] = {"resource.h", "default_memory.h", "insight.h",
                                      "export.h",   "record.h",         NULL};

const misuse_area misuse_resource = {"resource", begin, end, cases, headers};
