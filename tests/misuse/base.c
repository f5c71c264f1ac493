/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * base.c - the mistakes that the acceptance of the library names, and every wrong use of
 * quire/base.h, device.h, backend.h and host.h: the documented code, a sentence, zeroed outputs,
 * nothing changed.
 */
#include <stdio.h>

#include "tests/misuse/misuse.h"
#include "tests/support/state.h"
#include "tests/support/streams.h"

static bench b;
static quire_memory *device_only, *visible;
static quire_allocation live, remote, stale;

static bool build(bool on_fake)
{
    const quire_allocation_options options = {.size = 1000};
    bench_begin(&b, on_fake);
    return bench_open(&b) && bench_memory(&b, &(quire_memory_options){.kind.mask = 1}) &&
           bench_allocate(&b, 1, &options) &&
           bench_memory(&b, &(quire_memory_options){.kind.mask = 2}) &&
           bench_allocate(&b, 2, &options) && bench_free(&b, 2);
}

static void begin(bool on_fake)
{
    CHECK(build(on_fake));
    device_only = b.memories[0];
    visible = b.memories[1];
    remote = b.held[0].allocation;
    live = b.held[1].allocation;
    CHECK_OK(quire_allocate(visible, &(quire_allocation_options){.size = 10}, &stale));
    CHECK_OK(quire_free(visible, stale));
    refusal_begin(&b);
}

/* ---- six mistakes, six messages ------------------------------------------------------------- */

enum { MISTAKES = 6 };

static void keep_message(char messages[MISTAKES][256], int number)
{
    snprintf(messages[number], 256, "%s", quire_last_error());
    for (int i = 0; i < number; i++)
        CHECK(strcmp(messages[i], messages[number]));
    printf("# %s\n", messages[number]);
}

static void six_mistakes(void)
{
    char messages[MISTAKES][256];
    quire_allocation made;
    void *p;
    begin(true);
    REFUSE_OUT(NOT_VISIBLE, p, quire_map(device_only, remote, &p));
    keep_message(messages, 0);
    REFUSE(STALE, quire_free(visible, stale));
    keep_message(messages, 1);
    REFUSE(FOREIGN, quire_free(visible, remote));
    keep_message(messages, 2);
    REFUSE_OUT(INVALID, made,
               quire_allocate(visible, &(quire_allocation_options){.size = 0}, &made));
    keep_message(messages, 3);
    REFUSE_OUT(
        INVALID, made,
        quire_allocate(visible, &(quire_allocation_options){.size = 1, .alignment = 3}, &made));
    keep_message(messages, 4);
    REFUSE_OUT(NO_MEMORY, made,
               quire_allocate(visible, &(quire_allocation_options){.size = UINT64_MAX}, &made));
    keep_message(messages, 5);
    bench_end(&b);
}

/* ---- quire/base.h --------------------------------------------------------------------------- */

static void results(void)
{
    begin(true);
    for (int i = 0; i < 4; i++) {
        const int unknown[] = {1, -22, 1000, -1000};
        HARMLESS(&b, quire_result_name((quire_result)unknown[i]));
        HARMLESS(&b, quire_result_sentence((quire_result)unknown[i]));
        CHECK_STR(quire_result_name((quire_result)unknown[i]), "unknown result");
        CHECK_STR(quire_result_sentence((quire_result)unknown[i]), "unknown result");
    }
    HARMLESS(&b, quire_version());
    HARMLESS(&b, quire_last_error());
    HARMLESS(&b, (void)quire_last_result());
    HARMLESS(&b, quire_last_native_code());
    bench_end(&b);
}

/* ---- quire/device.h ------------------------------------------------------------------------- */

static void refuse_kind(quire_result code, quire_kind_request request)
{
    uint32_t kind;
    REFUSE_OUT(code, kind, quire_device_choose_kind(b.device, &request, &kind));
}

#define BAD_KIND(code, ...) refuse_kind(code, (quire_kind_request){__VA_ARGS__})

static void refuse_intent(quire_result code, quire_intent intent)
{
    BAD_KIND(code, .intent = intent);
}

static void choosing_kinds(void)
{
    const quire_kind_request request = {0};
    uint32_t kind;
    begin(true);
    REFUSE_OUT(INVALID, kind, quire_device_choose_kind(NULL, &request, &kind));
    REFUSE_OUT(INVALID, kind, quire_device_choose_kind(b.device, NULL, &kind));
    REFUSE(INVALID, quire_device_choose_kind(b.device, &request, NULL));
    BAD_KIND(INVALID, .required = 0x200);
    BAD_KIND(INVALID, .preferred = UINT32_C(1) << 31);
    BAD_KIND(INVALID, .avoided = UINT32_MAX);
    BAD_KIND(INVALID, .required = 1, .avoided = 1);
    BAD_KIND(INVALID, .preferred = 2, .avoided = 2);
    BAD_KIND(INVALID, .required = 1, .preferred = 2, .exact = true);
    BAD_KIND(INVALID, .required = 1, .avoided = 2, .exact = true);
    BAD_KIND(UNSUPPORTED, .required = QUIRE_PROTECTED);
    BAD_KIND(UNSUPPORTED, .required = 2, .exact = true);
    BAD_KIND(UNSUPPORTED, .mask = UINT32_C(1) << 31);
    for (int i = 0; i < 4; i++) {
        quire_kind_request later = {.intent = 0};
        later.unused[i] = 1;
        refuse_kind(INVALID, later);
    }
    BAD_KIND(INVALID, .intent = QUIRE_INTENT_DEVICE, .required = 1);
    refuse_intent(INVALID, 0x20);
    refuse_intent(INVALID, QUIRE_INTENT_UPLOAD | QUIRE_INTENT_HOST_READ);
    refuse_intent(UNSUPPORTED, QUIRE_INTENT_EXPORT);
    bench_end(&b);
}

static void devices(void)
{
    quire_device_info info;
    quire_device *none = NULL, *busy;
    begin(true);
    busy = b.device;
    REFUSE_OUT(INVALID, info, quire_device_get_info(NULL, &info));
    REFUSE(INVALID, quire_device_get_info(b.device, NULL));
    REFUSE(INVALID, quire_device_destroy(NULL));
    REFUSE(BUSY, quire_device_destroy(&busy));
    CHECK(busy == b.device);
    CHECK_OK(quire_device_destroy(&none));
    const quire_memory_flags unknown[] = {0, 3, 0x200, UINT32_MAX};
    for (int i = 0; i < 4; i++) {
        HARMLESS(&b, quire_memory_flag_name(unknown[i]));
        CHECK(!quire_memory_flag_name(unknown[i]));
    }
    bench_end(&b);
}

static void budgets(void)
{
    const uint32_t heaps[] = {2, 16, UINT32_MAX};
    quire_budget_info info;
    begin(true);
    REFUSE_OUT(INVALID, info, quire_device_get_budget(NULL, 0, &info));
    REFUSE(INVALID, quire_device_get_budget(b.device, 0, NULL));
    REFUSE(INVALID, quire_device_set_heap_limit(NULL, 0, 1));
    REFUSE(INVALID, quire_device_set_page_limit(NULL, 1));
    for (int i = 0; i < 3; i++) {
        REFUSE_OUT(OUTSIDE, info, quire_device_get_budget(b.device, heaps[i], &info));
        REFUSE(OUTSIDE, quire_device_set_heap_limit(b.device, heaps[i], 1));
    }
    bench_end(&b);
}

/* ---- quire/backend.h ------------------------------------------------------------------------ */

static fake_backend other;

static void *one_sided(void *user, size_t size, size_t alignment)
{
    (void)user, (void)size, (void)alignment;
    return NULL;
}

static const quire_host_memory half = {.allocate = one_sided};

/* Opens `other` in its present state, which must fail, and restores it. */
static void refuse_other(quire_result code)
{
    quire_device *device;
    REFUSE_OUT(code, device, quire_device_create(&other.table, &other, NULL, &device));
    CHECK(!other.ended);
    fake_init(&other);
}

static void tables(void)
{
    quire_device *device;
    REFUSE_OUT(INVALID, device, quire_device_create(NULL, &other, NULL, &device));
    REFUSE(INVALID, quire_device_create(&other.table, &other, NULL, NULL));
    other.table.size = 0, refuse_other(INVALID);
    other.table.size = offsetof(quire_backend, page_destroy), refuse_other(INVALID);
    other.table.name = NULL, refuse_other(INVALID);
    other.table.name = "", refuse_other(INVALID);
    other.table.describe = NULL, refuse_other(INVALID);
    other.table.page_create = NULL, refuse_other(INVALID);
    other.table.page_destroy = NULL, refuse_other(INVALID);
    other.table.map = NULL, refuse_other(INVALID);
    other.table.unmap = NULL, refuse_other(INVALID);
    other.table.flush = NULL, refuse_other(INVALID);
    other.table.invalidate = NULL, refuse_other(INVALID);
    other.table.copy_to_page = NULL, refuse_other(INVALID);
    other.table.copy_from_page = NULL, refuse_other(INVALID);
    other.table.image_requirements = NULL, refuse_other(INVALID);
    other.table.object_create = NULL, refuse_other(INVALID);
    other.table.object_bind = NULL, refuse_other(INVALID);
    other.table.object_destroy = NULL, refuse_other(INVALID);
    fake_offer_budget(&other), other.table.heap_budget = NULL, refuse_other(INVALID);
    for (int bit = 0; bit < 64; bit++) { /* a group without its bit, or a bit without a group */
        other.table.features ^= UINT64_C(1) << bit;
        if (other.table.features & QUIRE_BACKEND_STAGES) /* states how the fake's copies work */
            fake_init(&other);
        else
            refuse_other(INVALID);
    }
    streams_offer(&other.table), other.table.stream_await = NULL, refuse_other(INVALID);
    streams_offer(&other.table), other.table.stream_order = NULL, refuse_other(INVALID);
    streams_offer(&other.table), other.table.stream_create = NULL, refuse_other(INVALID);
    streams_offer(&other.table);
    /* the order of streams, which the backend does not have */
    other.table.features &= ~QUIRE_BACKEND_STREAMS;
    other.table.stream_create = NULL, other.table.stream_destroy = NULL;
    other.table.stream_mark = NULL, other.table.stream_passed = NULL;
    other.table.stream_await = NULL, refuse_other(INVALID);
    fake_offer_budget(&other), other.table.features ^= QUIRE_BACKEND_BUDGET, refuse_other(INVALID);
    fake_offer_flush_many(&other), other.table.flush_many = NULL, refuse_other(INVALID);
    fake_offer_flush_many(&other), other.table.invalidate_many = NULL, refuse_other(INVALID);
    fake_offer_batches(&other), other.table.write_many = NULL, refuse_other(INVALID);
    fake_offer_batches(&other), other.table.read_many = NULL, refuse_other(INVALID);
    fake_offer_growth(&other), other.table.page_back = NULL, refuse_other(INVALID);
    fake_offer_growth(&other), other.table.page_unback = NULL, refuse_other(INVALID);
    fake_offer_growth(&other), other.info.limits.elastic_kinds = 0x10, refuse_other(INVALID);
    fake_offer_growth(&other), other.info.limits.elastic_rules = 4, refuse_other(INVALID);
    other.info.limits.elastic_kinds = 1, refuse_other(INVALID); /* imported by which backend? */
}

static void descriptions(void)
{
    uint64_t *const powers[] = {
        &other.info.limits.page_granularity,         &other.info.limits.page_alignment,
        &other.info.limits.buffer_image_granularity, &other.info.limits.non_coherent_atom,
        &other.info.limits.buffer_alignment,         &other.info.limits.image_row_alignment};
    for (size_t i = 0; i < sizeof powers / sizeof *powers; i++) {
        *powers[i] = 3, refuse_other(INVALID);
        *powers[i] = UINT64_MAX, refuse_other(INVALID);
    }
    other.info.heap_count = 0, refuse_other(INVALID);
    other.info.heap_count = 1, refuse_other(INVALID);
    other.info.heap_count = 17, refuse_other(INVALID);
    other.info.heap_count = UINT32_MAX, refuse_other(INVALID);
    other.info.kind_count = 0, refuse_other(INVALID);
    other.info.kind_count = 33, refuse_other(INVALID);
    other.info.heaps[1].size = 0, refuse_other(INVALID);
    other.info.kinds[3].heap = 2, refuse_other(INVALID);
    other.info.kinds[3].heap = UINT32_MAX, refuse_other(INVALID);
    other.info.kinds[0].flags = QUIRE_HOST_COHERENT, refuse_other(INVALID);
    other.info.kinds[0].flags = QUIRE_HOST_CACHED, refuse_other(INVALID);
}

static void device_options(void)
{
    quire_device *device;
    quire_device_options options = {.host_memory = &half};
    REFUSE_OUT(INVALID, device, quire_device_create(&other.table, &other, &options, &device));
    for (int i = 0; i < 4; i++) {
        options = (quire_device_options){0};
        options.unused[i] = 1;
        REFUSE_OUT(INVALID, device, quire_device_create(&other.table, &other, &options, &device));
    }
    HARMLESS(&b, quire_device_backend(NULL));
    HARMLESS(&b, quire_device_state(NULL));
    CHECK(!quire_device_backend(NULL) && !quire_device_state(NULL));
    HARMLESS(&b, quire_memory_device(NULL));
    CHECK(!quire_memory_device(NULL));
    HARMLESS(&b, quire_memory_kind(NULL));
    CHECK_EQ(quire_memory_kind(NULL), 0);
    REFUSE(BUSY, quire_backend_fail(BUSY, -5, "%s", "busy"));
    CHECK_EQ(quire_last_native_code(), -5);
}

static void native_sides(void)
{
    quire_native native;
    REFUSE_OUT(INVALID, native, quire_allocation_get_native(NULL, live, &native));
    REFUSE(INVALID, quire_allocation_get_native(visible, live, NULL));
    REFUSE_OUT(INVALID, native,
               quire_allocation_get_native(visible, (quire_allocation){0}, &native));
    REFUSE_OUT(STALE, native, quire_allocation_get_native(visible, stale, &native));
    REFUSE_OUT(FOREIGN, native, quire_allocation_get_native(visible, remote, &native));
}

/* Memory that a backend imports and attaches. */
static void holds(void)
{
    const quire_allocation none = {0};
    quire_attachment attachment = {.name = "nothing"};
    REFUSE(INVALID, quire_allocation_hold(NULL, live));
    REFUSE(INVALID, quire_allocation_hold(visible, none));
    REFUSE(STALE, quire_allocation_hold(visible, stale));
    REFUSE(FOREIGN, quire_allocation_hold(visible, remote));
    uint32_t maps = 1;
    REFUSE(INVALID, quire_allocation_get_map_count(NULL, live, &maps));
    REFUSE(INVALID, quire_allocation_get_map_count(visible, live, NULL));
    REFUSE(INVALID, quire_allocation_get_map_count(visible, none, &maps));
    REFUSE(STALE, quire_allocation_get_map_count(visible, stale, &maps));
    REFUSE(FOREIGN, quire_allocation_get_map_count(visible, remote, &maps));
    CHECK_EQ(maps, 0);
    REFUSE(INVALID, quire_allocation_release(NULL, live));
    REFUSE(INVALID, quire_allocation_release(visible, none));
    REFUSE(STALE, quire_allocation_release(visible, stale));
    REFUSE(FOREIGN, quire_allocation_release(visible, remote));
    REFUSE(WRONG_STATE, quire_allocation_release(visible, live));
    HARMLESS(&b, quire_memory_attach(NULL, &attachment));
    HARMLESS(&b, quire_memory_attach(visible, NULL));
    HARMLESS(&b, quire_memory_detach(NULL, &attachment));
    HARMLESS(&b, quire_memory_detach(visible, NULL));
}

static void refuse_object(quire_memory *memory, const quire_object_options *options)
{
    quire_allocation made;
    quire_memory *place;
    uint32_t chosen;
    quire_device *device = memory ? b.device : NULL;
    REFUSE_OUT(INVALID, made, quire_object_create(memory, options, &made));
    REFUSE_OUT(INVALID, made, quire_object_create_fallback(&memory, 1, options, &chosen, &made));
    REFUSE_OUT(INVALID, made, quire_device_object_create(device, NULL, options, &place, &made));
    CHECK(!place);
}

/* Objects and pages in the backend's terms: rejected before the backend is called. */
static void described(void)
{
    const uint64_t bytes = 100;
    const quire_object_options good = {.object = QUIRE_OBJECT_BUFFER, .description = &bytes};
    quire_object_options bad[] = {good, good, good, good, good};
    const quire_allocation_options options = {.size = 100};
    quire_allocation made;
    quire_memory *memory;
    bad[0].object = QUIRE_OBJECT_NONE;
    bad[1].object = (quire_object)3;
    bad[2].description = NULL;
    bad[3].alignment = 3;
    bad[4].described.buffer.usage = UINT32_C(0x104);
    for (int i = 0; i < 5; i++)
        refuse_object(visible, &bad[i]);
    refuse_object(NULL, &good);
    refuse_object(visible, NULL);
    REFUSE(INVALID, quire_object_create(visible, &good, NULL));
    uint32_t chosen = 77;
    REFUSE(INVALID, quire_object_create_fallback(&visible, 1, &good, &chosen, NULL));
    REFUSE_OUT(INVALID, made, quire_object_create_fallback(&visible, 1, &good, NULL, &made));
    REFUSE_OUT(INVALID, made, quire_object_create_fallback(&visible, 0, &good, &chosen, &made));
    REFUSE_OUT(INVALID, made, quire_object_create_fallback(NULL, 1, &good, &chosen, &made));
    CHECK_EQ(chosen, 0);
    REFUSE_OUT(INVALID, memory, quire_device_object_create(b.device, NULL, &good, &memory, NULL));
    REFUSE_OUT(INVALID, made, quire_device_object_create(b.device, NULL, &good, NULL, &made));
    const quire_page_extra extra = {.pointer = &b};
    const quire_memory_options unknown = {.unused = {1}};
    REFUSE_OUT(INVALID, memory, quire_memory_create_with(NULL, NULL, extra, &memory));
    REFUSE_OUT(INVALID, memory, quire_memory_create_with(b.device, &unknown, extra, &memory));
    REFUSE(INVALID, quire_memory_create_with(b.device, NULL, extra, NULL));
    quire_stream *stream;
    REFUSE_OUT(INVALID, stream, quire_stream_wrap(NULL, &bytes, NULL, &stream));
    REFUSE_OUT(INVALID, stream, quire_stream_wrap(b.device, NULL, NULL, &stream));
    REFUSE(INVALID, quire_stream_wrap(b.device, &bytes, NULL, NULL));
    REFUSE_OUT(UNSUPPORTED, stream, quire_stream_wrap(b.device, &bytes, NULL, &stream));
    HARMLESS(&b, quire_stream_native(NULL));
    REFUSE_OUT(INVALID, made, quire_page_adopt(NULL, &bytes, &options, &made));
    REFUSE_OUT(INVALID, made, quire_page_adopt(visible, NULL, &options, &made));
    REFUSE_OUT(INVALID, made, quire_page_adopt(visible, &bytes, NULL, &made));
    REFUSE(INVALID, quire_page_adopt(visible, &bytes, &options, NULL));
    CHECK_OK(quire_stream_create(b.device, &(quire_stream_options){.capture = true}, &stream));
    const quire_allocation_options ordered = {.size = options.size, .stream = stream};
    REFUSE_OUT(INVALID, made, quire_page_adopt(visible, &bytes, &ordered, &made));
    CHECK_OK(quire_stream_destroy(&stream));
}

static void backends(void)
{
    begin(true);
    fake_init(&other);
    tables();
    descriptions();
    device_options();
    native_sides();
    holds();
    described();
    bench_end(&b);
}

/* Objects and mapping, but neither copies nor images. */
static void begin_poor(void)
{
    bench_begin(&b, true);
    b.fake.table.features = QUIRE_BACKEND_MAP | QUIRE_BACKEND_FLUSH | QUIRE_BACKEND_OBJECTS;
    b.fake.table.copy_to_page = NULL;
    b.fake.table.copy_from_page = NULL;
    b.fake.table.image_requirements = NULL;
    b.fake.table.page_back = NULL;
    b.fake.table.page_unback = NULL;
    b.fake.info.limits.elastic_kinds = 0;
    CHECK(bench_open(&b) && bench_memory(&b, NULL) &&
          bench_allocate(&b, 1, &(quire_allocation_options){.size = 100}));
    refusal_begin(&b);
}

static void poor_backends(void)
{
    char data[1] = {0};
    quire_requirements needs;
    begin_poor();
    quire_allocation made, there = b.held[0].allocation;
    REFUSE(UNSUPPORTED, quire_write(b.memory, there, 0, data, 1));
    REFUSE(UNSUPPORTED, quire_read(b.memory, there, 0, data, 1));
    REFUSE_OUT(
        UNSUPPORTED, made,
        quire_allocate(b.memory, &(quire_allocation_options){.size = 1, .zero = true}, &made));
    REFUSE_OUT(UNSUPPORTED, needs,
               quire_image_get_requirements(b.device, &(quire_image_options){.width = 1}, &needs));
    bench_end(&b);
}

/* Without the group of images no image exists, with objects or not. */
static void no_images(void)
{
    quire_image image;
    begin_poor();
    REFUSE_OUT(UNSUPPORTED, image,
               quire_image_create(b.memory, &(quire_image_options){.width = 1}, &image));
    bench_end(&b);
}

/* ---- quire/host.h --------------------------------------------------------------------------- */

static void refuse_host(quire_result code, const quire_host_options *options)
{
    quire_device *device;
    REFUSE_OUT(code, device, quire_host_open(options, &device));
}

static void refuse_profile(quire_host_profile profile)
{
    refuse_host(INVALID, &(quire_host_options){.profile = &profile});
}

static void opening_host(void)
{
    const quire_host_profile good = {.heap_count = 1, .kind_count = 1};
    quire_host_profile profile = good;
    REFUSE(INVALID, quire_host_open(NULL, NULL));
    refuse_host(INVALID, &(quire_host_options){.backing = (quire_host_backing)2});
    refuse_host(INVALID, &(quire_host_options){.huge_pages = (quire_host_huge_pages)3});
    refuse_host(INVALID, &(quire_host_options){.row_alignment = 3});
    refuse_host(INVALID, &(quire_host_options){.device.host_memory = &half});
    refuse_profile((quire_host_profile){0});
    profile.heap_count = 17, refuse_profile(profile), profile = good;
    profile.kind_count = 33, refuse_profile(profile), profile = good;
    profile.kinds[0].heap = 1, refuse_profile(profile), profile = good;
    for (int i = 0; i < 4; i++)
        profile.unused[i] = 1, refuse_profile(profile), profile = good;
    profile.kinds[0].flags = QUIRE_HOST_COHERENT, refuse_profile(profile), profile = good;
    profile.limits.page_alignment = 3, refuse_profile(profile), profile = good;
    profile.limits.page_granularity = 3, refuse_profile(profile);
    for (int i = 2; i < QUIRE_MAX_HEAPS; i++) {
        quire_host_options options = {0};
        options.budgets[i] = 1;
        refuse_host(INVALID, &options);
    }
    for (int i = 0; i < 4; i++) {
        quire_host_options own = {0}, inner = {0};
        own.unused[i] = inner.device.unused[i] = 1;
        refuse_host(INVALID, &own);
        refuse_host(INVALID, &inner);
    }
}

/* A descriptor of -1 means none: 0 is a valid descriptor. */
static void refuse_descriptor(quire_result code, quire_memory *memory, quire_allocation wrong)
{
    int descriptor = 5;
    uint64_t offset;
    REFUSE_OUT(code, offset, quire_host_descriptor(memory, wrong, &descriptor, &offset));
    CHECK_EQ(descriptor, -1);
}

static void host_sides(void)
{
    void *p;
    int descriptor;
    uint64_t offset;
    quire_allocation none = {0};
    REFUSE_OUT(INVALID, p, quire_host_pointer(NULL, live, &p));
    REFUSE(INVALID, quire_host_pointer(visible, live, NULL));
    REFUSE_OUT(INVALID, p, quire_host_pointer(visible, none, &p));
    REFUSE_OUT(STALE, p, quire_host_pointer(visible, stale, &p));
    REFUSE_OUT(FOREIGN, p, quire_host_pointer(visible, remote, &p));
    REFUSE_OUT(INVALID, offset, quire_host_descriptor(visible, live, NULL, &offset));
    REFUSE(INVALID, quire_host_descriptor(visible, live, &descriptor, NULL));
    refuse_descriptor(INVALID, NULL, live);
    refuse_descriptor(INVALID, visible, none);
    refuse_descriptor(STALE, visible, stale);
    refuse_descriptor(FOREIGN, visible, remote);
}

static void no_work(void *user)
{
    (void)user;
}

static void refuse_streams(quire_device *device)
{
    quire_stream *stream, *held;
    const quire_host_stream_options reserved = {.unused = {1}};
    REFUSE(INVALID, quire_host_stream_create(b.device, NULL, NULL));
    REFUSE_OUT(INVALID, stream, quire_host_stream_create(device, NULL, &stream));
    REFUSE_OUT(INVALID, stream, quire_host_stream_create(b.device, &reserved, &stream));
    CHECK_OK(quire_stream_create(b.device, &(quire_stream_options){.capture = true}, &held));
    quire_stream *wrong[] = {NULL, held};
    for (int i = 0; i < 2; i++) {
        uint64_t done;
        REFUSE_OUT(INVALID, done, quire_host_stream_run(wrong[i], 1, &done));
        REFUSE(INVALID, quire_host_stream_submit(wrong[i], no_work, NULL));
    }
    REFUSE(INVALID, quire_host_stream_submit(held, NULL, NULL));
    CHECK_OK(quire_stream_destroy(&held));
    REFUSE(INVALID, quire_host_lose(device));
}

static void host_streams(void)
{
    quire_stream *stream = NULL, *manual = NULL, *none;
    uint64_t done;
    begin(false);
    refuse_streams(NULL);
    CHECK_OK(quire_host_stream_create(b.device, NULL, &stream));
    CHECK_OK(
        quire_host_stream_create(b.device, &(quire_host_stream_options){.manual = true}, &manual));
    REFUSE_OUT(WRONG_STATE, done, quire_host_stream_run(stream, 1, &done));
    REFUSE(INVALID, quire_host_stream_submit(stream, NULL, NULL));
    CHECK_OK(quire_host_lose(b.device));
    REFUSE_OUT(LOST, done, quire_host_stream_run(manual, 1, &done));
    REFUSE(LOST, quire_host_stream_submit(stream, no_work, NULL));
    REFUSE_OUT(LOST, none, quire_host_stream_create(b.device, NULL, &none));
    CHECK_OK(quire_stream_destroy(&stream));
    CHECK_OK(quire_stream_destroy(&manual));
    bench_end(&b);
    begin(true);
    refuse_streams(b.device); /* which is of the fake backend */
    bench_end(&b);
}

static void host_devices(void)
{
    begin(false);
    opening_host();
    host_sides();
    REFUSE(INVALID, quire_host_set_budget(NULL, 0, 1));
    REFUSE(OUTSIDE, quire_host_set_budget(b.device, 2, 1));
    REFUSE(OUTSIDE, quire_host_set_budget(b.device, UINT32_MAX, 1));
    refuse_descriptor(UNSUPPORTED, visible, live);
    bench_end(&b);
    begin(true);
    void *p;
    REFUSE_OUT(INVALID, p, quire_host_pointer(visible, live, &p));
    REFUSE(INVALID, quire_host_set_budget(b.device, 0, 1));
    refuse_descriptor(INVALID, visible, live);
    bench_end(&b);
}

/* ---- the area ------------------------------------------------------------------------------- */

static const misuse_case cases[] = {
    {"six mistakes, six sentences", six_mistakes},
    {"results", results},
    {"choosing kinds", choosing_kinds},
    {"devices", devices},
    {"budgets", budgets},
    {"backends", backends},
    {"poor backends", poor_backends},
    {"host devices", host_devices},
    {"host streams", host_streams},
    {"no images without their group", no_images},
    {NULL, NULL},
};

static const char *const headers[] = {"base.h",          "device.h", "backend.h", "backend_core.h",
                                      "backend_types.h", "host.h",   "quire.h",   NULL};

const misuse_area misuse_base = {"base", NULL, NULL, cases, headers};
