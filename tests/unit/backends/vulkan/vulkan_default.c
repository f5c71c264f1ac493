/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_default.c - buffers and images from create infos without a memory of the caller, in one of
 * several memories, and in the order of a stream, on the fake driver: every layout, with its memory
 * types in every rotation.
 */
#include "tests/support/crew.h"
#include "tests/support/stream_steps.h"
#include "tests/support/unit.h"
#include "tests/support/vulkan/layout_file.h"
#include "tests/support/vulkan_bench.h"
#include "tests/support/vulkan_native.h"

#define KIB UINT64_C(1024)

enum { CHOICES = 6 };

static const VkBufferCreateInfo BUFFER =
    VULKAN_BUFFER(4000, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                            VK_BUFFER_USAGE_TRANSFER_DST_BIT);

static const VkImageCreateInfo IMAGE =
    VULKAN_IMAGE(16, VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT);

static const quire_intent UPLOAD = QUIRE_INTENT_UPLOAD;
static const quire_intent READBACK = QUIRE_INTENT_HOST_READ;

/* What programs ask for, and the request that each choice stands for. */
static quire_kind_request choice_of(uint32_t number)
{
    const quire_kind_request choices[CHOICES] = {
        {.preferred = QUIRE_DEVICE_LOCAL},
        {.required = QUIRE_DEVICE_LOCAL},
        {.required = QUIRE_HOST_VISIBLE, .preferred = QUIRE_DEVICE_LOCAL},
        {.required = QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT, .avoided = QUIRE_DEVICE_LOCAL},
        {.required = QUIRE_HOST_VISIBLE, .preferred = QUIRE_HOST_CACHED},
        {.preferred = QUIRE_HOST_VISIBLE | QUIRE_DEVICE_LOCAL},
    };
    return choices[number];
}

/* A device on this layout. */
static void begin_on(vulkan_bench *b, const fv_layout *layout, uint32_t flags)
{
    const fv_options options = {.layouts = {layout}, .flags = flags};
    vulkan_bench_begin_with(b, &options);
    b->has_defaults = true;
    CHECK(vulkan_bench_open(b, NULL));
}

static void begin(vulkan_bench *b)
{
    begin_on(b, fv_layout_named("amd-bar"), 0);
}

/* The layout with its types rotated, so that the order of the types tells nothing. */
static fv_layout rotated(const fv_layout *layout, uint32_t by)
{
    fv_layout out = *layout;
    for (uint32_t i = 0; i < layout->type_count; i++)
        out.types[i] = layout->types[(i + by) % layout->type_count];
    return out;
}

/* A buffer or an image. */
static quire_result create(vulkan_bench *b, bool image, const quire_kind_request *choice,
                           const quire_vulkan_object_options *options, quire_memory **memory,
                           quire_allocation *made)
{
    return image ? quire_vulkan_device_image_create(b->device, choice, &IMAGE, options, memory,
                                                    (quire_image *)made)
                 : quire_vulkan_device_buffer_create(b->device, choice, &BUFFER, options, memory,
                                                     (quire_buffer *)made);
}

static const char *creation_of(bool image)
{
    return image ? "vkCreateImage" : "vkCreateBuffer";
}

/* ---- the order of the kinds --------------------------------------------------------------- */

/* The kinds that can hold the object in the order of quire_device_choose_kind. */
static uint32_t rank(vulkan_bench *b, bool image, quire_kind_request request,
                     uint32_t kinds[QUIRE_MAX_KINDS])
{
    quire_requirements needs;
    uint32_t count = 0;
    CHECK_OK(image ? quire_vulkan_image_requirements(b->device, &IMAGE, &needs)
                   : quire_vulkan_buffer_requirements(b->device, &BUFFER, &needs));
    request.mask = needs.kind_mask;
    while (request.mask && !quire_device_choose_kind(b->device, &request, &kinds[count]))
        request.mask &= ~(UINT32_C(1) << kinds[count++]);
    return count;
}

/* While the best kinds are full one after the other, the next one is used, with one native object
   for each call. Then the error is that of the best. */
static void check_order(vulkan_bench *b, bool image, const quire_kind_request *choice)
{
    uint32_t kinds[QUIRE_MAX_KINDS];
    quire_device_info info;
    quire_memory *memory = NULL;
    quire_allocation made;
    CHECK_OK(quire_device_get_info(b->device, &info));
    uint32_t count = rank(b, image, *choice, kinds);
    for (uint32_t k = 0; k < count; k++) {
        fv_reset_counters(b->driver);
        CHECK_OK(create(b, image, choice, NULL, &memory, &made));
        if (image) /* a page may need buffers of its own */
            CHECK_EQ(fv_calls(b->driver, creation_of(image)), 1);
        quire_memory_info of_memory;
        CHECK_OK(quire_memory_get_info(memory, &of_memory));
        CHECK_EQ(of_memory.kind, kinds[k]);
        CHECK_EQ(of_memory.flags & choice->required, choice->required);
        CHECK_OK(quire_free(memory, made));
        CHECK_OK(quire_memory_set_limit(memory, 1)); /* also releases the page */
    }
    quire_result all_full = count ? QUIRE_ERROR_OVER_BUDGET : QUIRE_ERROR_UNSUPPORTED;
    CHECK_FAILS(create(b, image, choice, NULL, &memory, &made), all_full);
    CHECK(!memory && !made.id);
    CHECK_EQ(fv_live(b->driver, image ? FV_IMAGE : FV_BUFFER), 0);
    for (uint32_t k = 0; k < count; k++) {
        CHECK_OK(quire_device_default_memory(b->device, kinds[k], &memory));
        CHECK_OK(quire_memory_set_limit(memory, 0));
    }
}

static void check_layout(const fv_layout *layout, void *state)
{
    const uint32_t flags = *(const uint32_t *)state;
    for (uint32_t by = 0; by < layout->type_count; by++) {
        const fv_layout types = rotated(layout, by);
        vulkan_bench b;
        begin_on(&b, &types, flags);
        for (uint32_t i = 0; i < CHOICES; i++) {
            const quire_kind_request choice = choice_of(i);
            check_order(&b, false, &choice);
            check_order(&b, true, &choice);
        }
        vulkan_bench_end(&b);
    }
}

UNIT(vulkan_default, full_kinds_are_left_for_the_next_best_on_every_layout)
{
    static const uint32_t flags[] = {0, FV_FEW_TYPES, FV_PREFER_DEDICATED, FV_REQUIRE_DEDICATED};
    CHECK(fv_layout_count >= 10);
    for (uint32_t f = 0; f < sizeof flags / sizeof *flags; f++)
        for (uint32_t i = 0; i < fv_layout_count; i++)
            check_layout(&fv_layouts[i], (void *)(uintptr_t)&flags[f]);
}

UNIT(vulkan_default, the_same_on_layouts_of_devices)
{
    uint32_t flags = 0;
    fv_layout_files(check_layout, &flags);
}

/* The driver itself has no memory left in the heap of the best kind. */
static void check_full_heap(const fv_layout *layout)
{
    vulkan_bench b;
    quire_device_info info;
    quire_memory_info of_memory;
    quire_memory *memory = NULL;
    quire_allocation made;
    uint32_t kinds[QUIRE_MAX_KINDS];
    begin_on(&b, layout, 0);
    CHECK_OK(quire_device_get_info(b.device, &info));
    const quire_kind_request choice = choice_of(0), strict = choice_of(1);
    uint32_t count = rank(&b, false, choice, kinds), full = info.kinds[kinds[0]].heap;
    bool is_elsewhere = false;
    for (uint32_t i = 0; i < count; i++)
        is_elsewhere |= info.kinds[kinds[i]].heap != full;
    fv_set_capacity(b.driver, 0, full, 1);
    for (int image = 0; image < 2; image++) {
        quire_result result = create(&b, image, &choice, NULL, &memory, &made);
        CHECK_EQ(result, is_elsewhere ? QUIRE_SUCCESS : QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
        if (!result) {
            CHECK_OK(quire_memory_get_info(memory, &of_memory));
            CHECK(info.kinds[of_memory.kind].heap != full);
            CHECK_OK(quire_free(memory, made));
        }
        result = create(&b, image, &strict, NULL, &memory, &made);
        if (!result) { /* a second device-local heap */
            CHECK_OK(quire_memory_get_info(memory, &of_memory));
            CHECK(of_memory.flags & QUIRE_DEVICE_LOCAL);
            CHECK(info.kinds[of_memory.kind].heap != full);
            CHECK_OK(quire_free(memory, made));
        }
        CHECK_EQ(fv_live(b.driver, image ? FV_IMAGE : FV_BUFFER), 0);
    }
    vulkan_bench_end(&b);
}

UNIT(vulkan_default, a_heap_that_the_driver_has_exhausted_is_left)
{
    for (uint32_t i = 0; i < fv_layout_count; i++)
        check_full_heap(&fv_layouts[i]);
}

/* The table of quire_kind_request. */
VULKAN_UNIT_EACH(vulkan_default, intents_and_host_access_choose_as_for_a_memory, i, fv_layout_count)
{
    quire_memory *memory = NULL;
    quire_memory_info info;
    quire_buffer made;
    quire_requirements needs;
    uint32_t kind = 0;
    begin_on(b, &fv_layouts[i], 0);
    CHECK_OK(quire_vulkan_buffer_requirements(b->device, &BUFFER, &needs));
    const quire_kind_request upload = {.intent = UPLOAD};
    const quire_vulkan_object_options written = {.host_write = true}, read = {.host_read = true};
    CHECK_OK(
        quire_vulkan_device_buffer_create(b->device, &upload, &BUFFER, &written, &memory, &made));
    CHECK_OK(quire_memory_get_info(memory, &info));
    CHECK_OK(quire_device_choose_kind(b->device, &(quire_kind_request){.intent = UPLOAD}, &kind));
    CHECK_EQ(info.kind, kind);
    CHECK_OK(quire_vulkan_device_buffer_create(b->device, NULL, &BUFFER, &read, &memory, &made));
    CHECK_OK(quire_memory_get_info(memory, &info));
    CHECK_OK(quire_device_choose_kind(b->device, &(quire_kind_request){.intent = READBACK}, &kind));
    CHECK_EQ(info.kind, kind);
    CHECK_OK(quire_vulkan_device_buffer_create(b->device, NULL, &BUFFER, NULL, &memory, &made));
    CHECK_OK(quire_memory_get_info(memory, &info));
    CHECK(info.flags & QUIRE_DEVICE_LOCAL);
}

/* Kinds of features that are not enabled are the best, and are left. */
VULKAN_UNIT_ON(vulkan_default, a_kind_that_the_device_cannot_use_is_skipped, begin(b))
{
    quire_memory *memory = NULL;
    quire_memory_info info;
    quire_buffer made;
    const quire_kind_request choice = {.required = QUIRE_DEVICE_LOCAL,
                                       .preferred = QUIRE_DEVICE_COHERENT | QUIRE_DEVICE_UNCACHED};
    uint32_t best = 0;
    CHECK_OK(quire_device_choose_kind(b->device, &choice, &best));
    CHECK_OK(quire_vulkan_device_buffer_create(b->device, &choice, &BUFFER, NULL, &memory, &made));
    CHECK_OK(quire_memory_get_info(memory, &info));
    CHECK(info.kind != best);
    CHECK(!(info.flags & QUIRE_DEVICE_COHERENT));
    CHECK_EQ(fv_calls(b->driver, "vkCreateBuffer"), 1);
}

/* ---- a list of memories ------------------------------------------------------------------- */

VULKAN_UNIT_EACH(vulkan_default, the_first_memory_with_room_holds_the_object, image, 2)
{
    quire_memory *all[3];
    quire_allocation made;
    uint32_t chosen = 77;
    begin(b);
    for (int i = 0; i < 3; i++)
        all[i] = vulkan_bench_memory(b, &(quire_memory_options){.limit = i < 2});
    fv_reset_counters(b->driver);
    CHECK_OK(image ? quire_vulkan_image_create_fallback(all, 3, &IMAGE, NULL, &chosen,
                                                        (quire_image *)&made)
                   : quire_vulkan_buffer_create_fallback(all, 3, &BUFFER, NULL, &chosen,
                                                         (quire_buffer *)&made));
    CHECK_EQ(chosen, 2);
    CHECK_EQ(fv_calls(b->driver, creation_of(image)), 1);
    CHECK_OK(quire_free(all[2], made));
    CHECK_FAILS(image ? quire_vulkan_image_create_fallback(all, 2, &IMAGE, NULL, &chosen,
                                                           (quire_image *)&made)
                      : quire_vulkan_buffer_create_fallback(all, 2, &BUFFER, NULL, &chosen,
                                                            (quire_buffer *)&made),
                QUIRE_ERROR_OVER_BUDGET);
    CHECK_EQ(chosen, 0);
    CHECK_EQ(made.id, 0);
    CHECK_EQ(fv_live(b->driver, image ? FV_IMAGE : FV_BUFFER), 0);
}

VULKAN_UNIT_ON(vulkan_default, memories_of_kinds_that_cannot_hold_the_object_are_skipped,
               vulkan_bench_start(b, NULL, FV_FEW_TYPES))
{
    quire_device_info info;
    quire_requirements needs;
    quire_memory *both[2];
    quire_buffer made;
    uint32_t chosen = 77, wrong = 0;
    CHECK_OK(quire_device_get_info(b->device, &info));
    CHECK_OK(quire_vulkan_buffer_requirements(b->device, &BUFFER, &needs));
    while (needs.kind_mask >> wrong & 1)
        wrong++;
    CHECK(wrong < info.kind_count);
    both[0] = vulkan_bench_memory(b, &(quire_memory_options){.kind.mask = UINT32_C(1) << wrong});
    both[1] = vulkan_bench_memory(b, &(quire_memory_options){.kind.mask = needs.kind_mask,
                                                             .kind.required = QUIRE_DEVICE_LOCAL});
    CHECK_OK(quire_vulkan_buffer_create_fallback(both, 2, &BUFFER, NULL, &chosen, &made));
    CHECK_EQ(chosen, 1);
    CHECK_FAILS(quire_vulkan_buffer_create_fallback(both, 1, &BUFFER, NULL, &chosen, &made),
                QUIRE_ERROR_UNSUPPORTED);
    CHECK_EQ(fv_live(b->driver, FV_BUFFER), 1);
}

/* An object of one device is not used on another one. */
UNIT(vulkan_default, memories_of_two_devices_get_an_object_each)
{
    vulkan_bench b, other;
    quire_memory *both[2];
    quire_buffer made;
    uint32_t chosen = 77;
    begin(&b);
    begin(&other);
    both[0] = vulkan_bench_memory(&b, &(quire_memory_options){.limit = 1});
    both[1] = vulkan_bench_memory(&other, NULL);
    CHECK_OK(quire_vulkan_buffer_create_fallback(both, 2, &BUFFER, NULL, &chosen, &made));
    CHECK_EQ(chosen, 1);
    CHECK_EQ(fv_calls(b.driver, "vkCreateBuffer"), 1);
    CHECK_EQ(fv_calls(other.driver, "vkCreateBuffer"), 1);
    CHECK_EQ(fv_live(b.driver, FV_BUFFER), 0);
    vulkan_bench_end(&other);
    vulkan_bench_end(&b);
}

/* ---- streams and information -------------------------------------------------------------- */

/* Buffers and images from create infos reuse what was freed on their stream, and describe
   themselves. */
VULKAN_UNIT_EACH(vulkan_default, objects_reuse_ranges_in_the_order_of_a_stream, image, 2)
{
    quire_memory *memory = NULL;
    quire_stream *stream = NULL;
    quire_allocation made;
    quire_allocation_info first, again;
    begin_on(b, fv_layout_named("amd-bar"), FV_LATE);
    fv_allow(b->driver, "fv-overlap"); /* in the order of a stream objects share bytes */
    CHECK_OK(quire_stream_create(b->device, NULL, &stream));
    quire_vulkan_object_options options = {.stream = stream, .info = &first, .name = "mine"};
    CHECK_OK(create(b, image, NULL, &options, &memory, &made));
    CHECK(first.native != 0);
    CHECK_EQ(first.object, image ? QUIRE_OBJECT_IMAGE : QUIRE_OBJECT_BUFFER);
    quire_allocation_info described;
    CHECK_OK(quire_allocation_get_info(memory, made, &described));
    CHECK(!memcmp(&described, &first, sizeof first));
    CHECK_OK(quire_free_on_stream(memory, made, stream));
    options.info = &again;
    CHECK_OK(create(b, image, NULL, &options, &memory, &made));
    CHECK_EQ(again.page, first.page);
    CHECK_EQ(again.offset, first.offset);
    CHECK(again.native != first.native);
    quire_vulkan_object_options other = {.info = &again}; /* not on the stream */
    CHECK_OK(quire_free_on_stream(memory, made, stream));
    CHECK_OK(create(b, image, NULL, &other, &memory, &made));
    CHECK(again.offset != first.offset);
    CHECK_OK(quire_free(memory, made));
    finish_and_end(&stream, memory);
}

VULKAN_UNIT_ON(vulkan_default, placed_objects_reuse_ranges_too, begin(b))
{
    quire_stream *stream = NULL;
    quire_buffer made;
    quire_allocation_info first, again;
    fv_allow(b->driver, "fv-overlap"); /* likewise */
    quire_memory *memory = vulkan_bench_memory(b, NULL);
    const quire_vulkan_handles handles = vulkan_bench_handles(b);
    PFN_vkCreateBuffer create_native = VULKAN_CALL(handles, vkCreateBuffer);
    PFN_vkDestroyBuffer destroy_native = VULKAN_CALL(handles, vkDestroyBuffer);
    VkBuffer native[2];
    for (int i = 0; i < 2; i++)
        CHECK_EQ(create_native(handles.device, &BUFFER, NULL, &native[i]), 0);
    CHECK_OK(quire_stream_create(b->device, NULL, &stream));
    quire_vulkan_object_options options = {.stream = stream, .info = &first};
    CHECK_OK(quire_vulkan_buffer_place(memory, native[0], &options, &made));
    CHECK_OK(quire_free_on_stream(memory, made.allocation, stream));
    options.info = &again;
    CHECK_OK(quire_vulkan_buffer_place(memory, native[1], &options, &made));
    CHECK_EQ(again.offset, first.offset);
    CHECK_EQ(again.page, first.page);
    CHECK_OK(quire_free(memory, made.allocation));
    for (int i = 0; i < 2; i++)
        destroy_native(handles.device, native[i], NULL);
    finish_and_end(&stream, memory);
}

VULKAN_UNIT_ON(vulkan_default, wrong_options_are_refused_and_the_information_is_zeroed, begin(b))
{
    quire_memory *memory = NULL, *own;
    quire_buffer made;
    quire_image image;
    quire_allocation_info info;
    uint32_t chosen;
    own = vulkan_bench_memory(b, NULL);
    for (int i = 0; i < 2; i++) {
        quire_vulkan_object_options bad = {.info = &info};
        bad.unused[i] = 1;
        memset(&info, 0xaa, sizeof info);
        CHECK_FAILS(quire_vulkan_buffer_create(own, &BUFFER, &bad, &made),
                    QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_EQ(info.size, 0);
        CHECK_FAILS(
            quire_vulkan_device_buffer_create(b->device, NULL, &BUFFER, &bad, &memory, &made),
            QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_FAILS(quire_vulkan_image_create_fallback(&own, 1, &IMAGE, &bad, &chosen, &image),
                    QUIRE_ERROR_INVALID_ARGUMENT);
    }
    VkBufferCreateInfo sparse = BUFFER, empty = BUFFER, huge = BUFFER;
    sparse.flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT;
    empty.size = 0;
    huge.size = UINT64_C(3) << 30;
    for (uint32_t heap = 0; heap < 3; heap++)
        fv_set_capacity(b->driver, 0, heap, 4096);
    const quire_vulkan_object_options options = {.info = &info};
    memset(&info, 0xaa, sizeof info);
    CHECK_FAILS(
        quire_vulkan_device_buffer_create(b->device, NULL, &sparse, &options, &memory, &made),
        QUIRE_ERROR_UNSUPPORTED);
    CHECK_EQ(info.size, 0);
    CHECK_FAILS(
        quire_vulkan_device_buffer_create(b->device, NULL, &empty, &options, &memory, &made),
        QUIRE_ERROR_INVALID_ARGUMENT);
    memset(&info, 0xaa, sizeof info);
    CHECK_FAILS(quire_vulkan_device_buffer_create(b->device, NULL, &huge, &options, &memory, &made),
                QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_EQ(info.size, 0);
    CHECK(!memory && !made.allocation.id);
    fv_forget(b->driver);
}

/* ---- threads ------------------------------------------------------------------------------ */

typedef struct worker {
    vulkan_bench *b;
    uint32_t number, wrong, made;
} worker;

static void churn(void *user)
{
    enum { MOST = 40 };
    worker *w = user;
    quire_memory *memories[MOST];
    quire_allocation made[MOST];
    for (int round = 0; round < 10; round++) {
        uint32_t count = 0;
        while (count < MOST &&
               !create(w->b, (count + w->number) & 1, NULL, NULL, &memories[count], &made[count]))
            count++;
        w->made += count;
        while (count--)
            w->wrong += quire_free(memories[count], made[count]) != QUIRE_SUCCESS;
    }
}

VULKAN_UNIT_ON(vulkan_default, threads_share_the_default_memories, begin(b))
{
    crew c;
    worker workers[4];
    fv_set_capacity(b->driver, 0, 0, 2048 * KIB);
    crew_start(&c, 4);
    for (uint32_t i = 0; i < 4; i++) {
        workers[i] = (worker){.b = b, .number = i};
        crew_tell(&c, i + 1, churn, &workers[i]);
    }
    for (uint32_t i = 0; i < 4; i++)
        crew_await(&c, i + 1);
    crew_end(&c);
    for (uint32_t i = 0; i < 4; i++) {
        CHECK_EQ(workers[i].wrong, 0);
        CHECK_EQ(workers[i].made, 400);
    }
    CHECK_EQ(fv_live(b->driver, FV_BUFFER), 0);
    CHECK_EQ(fv_live(b->driver, FV_IMAGE), 0);
}
