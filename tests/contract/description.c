/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * description.c - the contract: how a device describes itself.
 */
#include "tests/contract/kit.h"
#include "tests/support/same_limits.h"

static bool is_power_of_two(uint64_t value)
{
    return value && !(value & (value - 1));
}

static void description_is_possible(contract_world *w)
{
    const quire_device_info *info = &w->info;
    CHECK(*info->name);
    CHECK_STR(info->backend, w->table->name);
    CHECK(info->heap_count && info->heap_count <= QUIRE_MAX_HEAPS);
    CHECK(info->kind_count && info->kind_count <= QUIRE_MAX_KINDS);
    for (uint32_t i = 0; i < info->heap_count; i++)
        CHECK(info->heaps[i].size > 0);
    for (uint32_t i = 0; i < info->kind_count; i++) {
        CHECK(info->kinds[i].heap < info->heap_count);
        if (!kit_is_visible(w, i))
            CHECK(!(info->kinds[i].flags & (QUIRE_HOST_COHERENT | QUIRE_HOST_CACHED)));
        else
            CHECK(kit_offers(w, QUIRE_BACKEND_MAP));
        CHECK(!kit_is_visible(w, i) || kit_is_coherent(w, i) || kit_offers(w, QUIRE_BACKEND_FLUSH));
    }
}

static void limits_are_powers_of_two(contract_world *w)
{
    const quire_limits *limits = &w->info.limits;
    CHECK(is_power_of_two(limits->page_granularity));
    CHECK(!limits->page_alignment || is_power_of_two(limits->page_alignment));
    CHECK(is_power_of_two(limits->buffer_image_granularity));
    CHECK(is_power_of_two(limits->non_coherent_atom));
    CHECK(is_power_of_two(limits->buffer_alignment));
    CHECK(is_power_of_two(limits->image_row_alignment));
    CHECK(!limits->max_page || limits->max_page >= limits->page_granularity);
}

static void second_device_is_alike(contract_world *w)
{
    contract_world other;
    CHECK_OK(world_open(&other, w->subject));
    CHECK_STR(other.info.name, w->info.name);
    CHECK_EQ(other.info.heap_count, w->info.heap_count);
    CHECK_EQ(other.info.kind_count, w->info.kind_count);
    CHECK(!memcmp(other.info.heaps, w->info.heaps, sizeof w->info.heaps));
    CHECK(!memcmp(other.info.kinds, w->info.kinds, sizeof w->info.kinds));
    CHECK(same_limits(&other.info.limits, &w->info.limits));
    CHECK_EQ(other.info.exportable, w->info.exportable);
    CHECK_EQ(other.features, w->features);
    world_close(&other);
}

static void kind_makes_a_memory(contract_world *w, uint32_t kind)
{
    uint32_t chosen = UINT32_MAX;
    quire_memory_info info;
    quire_kind_request request = {
        .required = w->info.kinds[kind].flags, .exact = true, .mask = UINT32_C(1) << kind};
    CHECK_OK(quire_device_choose_kind(w->device, &request, &chosen));
    CHECK_EQ(chosen, kind);
    quire_memory *memory = kit_memory(w, kind, NULL);
    CHECK_OK(quire_memory_get_info(memory, &info));
    CHECK_EQ(info.kind, kind);
    CHECK_EQ(info.flags, w->info.kinds[kind].flags);
    CHECK_EQ(info.mappable, kit_is_visible(w, kind));
    CHECK_EQ(info.page_count, 0);
    CHECK_EQ(info.page_size % w->info.limits.page_granularity, 0);
    CHECK_EQ(kit_stats(memory).backend_calls, 0);
    kit_end(&memory);
}

/* Whether the kind can be chosen by a request that does not name all its flags. */
static bool is_default_choice(const contract_world *w, uint32_t kind)
{
    return kit_holds_contents(w, kind) && !(w->info.kinds[kind].flags & QUIRE_DEVICE_COHERENT);
}

static void intents_are_served(contract_world *w)
{
    static const quire_intent intents[] = {
        QUIRE_INTENT_DEVICE,    QUIRE_INTENT_HOST_WRITE,
        QUIRE_INTENT_HOST_READ, QUIRE_INTENT_HOST_READ | QUIRE_INTENT_HOST_WRITE,
        QUIRE_INTENT_UPLOAD,
    };
    for (size_t i = 0; i < sizeof intents / sizeof *intents; i++) {
        bool any = false, by_host = intents[i] != QUIRE_INTENT_DEVICE;
        quire_memory_flags needed = by_host ? QUIRE_HOST_VISIBLE : QUIRE_DEVICE_LOCAL;
        for (uint32_t k = 0; k < w->info.kind_count; k++)
            any = any || (is_default_choice(w, k) && w->info.kinds[k].flags & needed);
        uint32_t kind = UINT32_MAX;
        quire_result result =
            quire_device_choose_kind(w->device, &(quire_kind_request){.intent = intents[i]}, &kind);
        CHECK_EQ(result, any ? QUIRE_SUCCESS : QUIRE_ERROR_UNSUPPORTED);
        CHECK(!any || w->info.kinds[kind].flags & needed);
    }
}

const contract_scenario contract_description[] = {
    {.name = "the description is valid", .body = description_is_possible, .by_core = true},
    {.name = "limits are powers of two", .body = limits_are_powers_of_two, .by_core = true},
    {.name = "a second device has the same description", .body = second_device_is_alike},
    {.name = "every kind can be chosen and makes a memory without a call to the backend",
     .of_kind = kind_makes_a_memory,
     .by_core = true},
    {.name = "every intent finds a kind if a suitable one exists",
     .body = intents_are_served,
     .by_core = true},
    {0},
};
