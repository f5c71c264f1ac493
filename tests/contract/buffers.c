/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * buffers.c - the contract: buffers of every usage, and the granularity between buffers and images.
 */
#include "tests/contract/kit.h"

enum { USAGES = 0x3f, LIVE = 24 };

/* Offsets that no granule aligns. */
static const quire_memory_options byte_exact = {.fit.algorithm = QUIRE_FIT_FIRST};

/*
 * Returns whether the backend's own object with these options is allowed in a kind. Sets *is_object
 * if the backend creates an object instead of a plain range.
 */
static bool backend_can_hold(const contract_world *w, uint32_t kind,
                             const quire_buffer_options *options, bool *is_object)
{
    uint64_t native = 0;
    quire_requirements needs = {0};
    quire_buffer_options resolved = *options;
    quire_object_request request = {.object = QUIRE_OBJECT_BUFFER, .buffer = &resolved};
    resolved.alignment += !resolved.alignment;
    *is_object = false;
    if (!kit_offers(w, QUIRE_BACKEND_OBJECTS))
        return true;
    quire_result result = w->table->object_create(w->state, &request, &native, &needs);
    if (result) {
        CHECK_EQ(result, QUIRE_ERROR_UNSUPPORTED);
        return false;
    }
    *is_object = native != 0;
    CHECK(needs.size >= options->size);
    CHECK(needs.alignment >= w->info.limits.buffer_alignment);
    if (native)
        w->table->object_destroy(w->state, QUIRE_OBJECT_BUFFER, native);
    return needs.kind_mask >> kind & 1;
}

static void check_buffer(const contract_world *w, quire_memory *memory, quire_buffer buffer,
                         const quire_buffer_options *options, bool is_object)
{
    quire_buffer_info info;
    quire_native native = kit_native(memory, buffer.allocation);
    CHECK_OK(quire_buffer_get_info(memory, buffer, &info));
    CHECK_EQ(info.size, options->size);
    CHECK_EQ(info.usage, options->usage);
    CHECK(info.place.size >= options->size);
    CHECK_EQ(info.place.object, QUIRE_OBJECT_BUFFER);
    CHECK_EQ(native.object, QUIRE_OBJECT_BUFFER);
    CHECK_EQ(native.handle, info.place.native);
    CHECK_EQ(native.handle != 0, is_object);
    CHECK(kit_is_aligned(&native, w->info.limits.buffer_alignment));
    CHECK(!options->alignment || kit_is_aligned(&native, options->alignment));
}

static void buffers_of_all_usages(contract_world *w, uint32_t kind)
{
    quire_memory *memory = kit_memory(w, kind, &byte_exact);
    quire_buffer made[USAGES + 1] = {0};
    for (quire_usage usage = 1; usage <= USAGES; usage++) {
        quire_buffer_options options = {.size = 1 + usage * 37,
                                        .usage = usage,
                                        .alignment = usage % 4 == 0 ? 1024 : 0,
                                        .dedicated = usage % 16 == 0};
        bool is_object = false;
        quire_result result = quire_buffer_create(memory, &options, &made[usage]);
        if (!backend_can_hold(w, kind, &options, &is_object)) {
            CHECK_FAILS(result, QUIRE_ERROR_UNSUPPORTED);
            continue;
        }
        CHECK_OK(result);
        check_buffer(w, memory, made[usage], &options, is_object);
        for (quire_usage i = 1; i < usage; i++)
            CHECK(!made[i].allocation.id || !is_object ||
                  kit_native(memory, made[i].allocation).handle !=
                      kit_native(memory, made[usage].allocation).handle);
        if (kit_can_both(w, kind))
            kit_write(memory, made[usage].allocation, options.size, usage);
    }
    for (quire_usage usage = 1; usage <= USAGES; usage++) {
        if (!made[usage].allocation.id)
            continue;
        if (kit_can_both(w, kind))
            kit_read(memory, made[usage].allocation, 1 + usage * 37, usage);
        CHECK_OK(quire_free(memory, made[usage].allocation));
    }
    kit_end(&memory);
}

/* ---- the granularity of buffers and images ------------------------------------------------ */

typedef struct neighbour {
    quire_allocation_info info;
    uint64_t start; /* where the backend counts from: in the page, or the native address */
    quire_allocation allocation;
    bool optimal;
} neighbour;

static bool make_neighbour(quire_memory *memory, test_random *r, neighbour *n)
{
    quire_buffer buffer;
    quire_image image;
    quire_image_options options = {.width = 1 + (uint32_t)random_below(r, 30),
                                   .height = 1 + (uint32_t)random_below(r, 3)};
    n->optimal = random_below(r, 2);
    quire_result result =
        n->optimal
            ? quire_image_create(memory, &options, &image)
            : quire_buffer_create(memory, &(quire_buffer_options){.size = options.width}, &buffer);
    if (result) {
        CHECK_EQ(result, QUIRE_ERROR_UNSUPPORTED);
        return false;
    }
    n->allocation = n->optimal ? image.allocation : buffer.allocation;
    n->info = kit_info(memory, n->allocation);
    const quire_native native = kit_native(memory, n->allocation);
    n->start = native.page.address + native.offset;
    return true;
}

/* Returns true if no stretch has bytes of both. */
static bool are_apart(const neighbour *a, const neighbour *b, uint64_t stretch)
{
    return (a->start + a->info.size - 1) / stretch < b->start / stretch ||
           (b->start + b->info.size - 1) / stretch < a->start / stretch;
}

static void granularity_is_kept(contract_world *w, uint32_t kind)
{
    uint64_t stretch = w->info.limits.buffer_image_granularity;
    quire_memory *memory = kit_memory(w, kind, NULL);
    test_random r = {5};
    neighbour all[LIVE];
    int count = 0;
    for (int step = 0; step < 4 * LIVE; step++) {
        if (count == LIVE || (count && random_below(&r, 3) == 0)) {
            neighbour *gone = &all[random_below(&r, (uint64_t)count)];
            CHECK_OK(quire_free(memory, gone->allocation));
            *gone = all[--count];
            continue;
        }
        if (!make_neighbour(memory, &r, &all[count]))
            continue;
        for (int i = 0; i < count; i++)
            if (all[i].info.page == all[count].info.page && all[i].optimal != all[count].optimal)
                CHECK(are_apart(&all[i], &all[count], stretch));
        count++;
    }
    while (count)
        CHECK_OK(quire_free(memory, all[--count].allocation));
    kit_end(&memory);
}

const contract_scenario contract_buffers[] = {
    {.name = "buffers of every usage, or UNSUPPORTED if the backend's object is",
     .of_kind = buffers_of_all_usages},
    {.name = "linear and optimal resources share no stretch of the buffer-image granularity",
     .of_kind = granularity_is_kept},
    {0},
};
