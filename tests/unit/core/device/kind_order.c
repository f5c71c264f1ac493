/*
 * kind_order.c - the order in which flags decide between two kinds, and that the order of the kinds
 * decides nothing, on every combination of kinds that Vulkan allows.
 */
#include "tests/support/kind_rules.h"

#define DL QUIRE_DEVICE_LOCAL
#define HV QUIRE_HOST_VISIBLE
#define CO QUIRE_HOST_COHERENT
#define CA QUIRE_HOST_CACHED

/* Returns the choice between two kinds, after checking that it does not depend on their order. */
static quire_memory_flags chosen_of_two(quire_memory_flags a, quire_memory_flags b,
                                        const quire_kind_request *request)
{
    const quire_memory_flags kinds[2][2] = {{a, b}, {b, a}};
    quire_memory_flags chosen[2];
    for (int i = 0; i < 2; i++) {
        quire_host_profile profile = {.name = "two", .heap_count = 1, .kind_count = 2};
        profile.kinds[0].flags = kinds[i][0];
        profile.kinds[1].flags = kinds[i][1];
        quire_host_options options = {.profile = &profile,
                                      .device = {.host_memory = unit_memory()}};
        quire_device *device = NULL;
        uint32_t kind = 99;
        CHECK_OK(quire_host_open(&options, &device));
        CHECK_OK(quire_device_choose_kind(device, request, &kind));
        chosen[i] = kinds[i][kind];
        CHECK_OK(quire_device_destroy(&device));
    }
    CHECK_EQ(chosen[0], chosen[1]);
    return chosen[0];
}

/* A coherent or cached kind is host-visible. */
static quire_memory_flags complete(quire_memory_flags flags)
{
    return flags & (CO | CA) ? flags | HV : flags;
}

UNIT(kind_order, of_two_named_flags_the_heavier_one_decides)
{
    static const quire_memory_flags ORDER[] = {QUIRE_PROTECTED,
                                               QUIRE_LAZILY_ALLOCATED,
                                               QUIRE_DEVICE_COHERENT,
                                               QUIRE_DEVICE_UNCACHED,
                                               CA,
                                               DL,
                                               CO};
    enum { COUNT = sizeof ORDER / sizeof *ORDER, FIRST_PLAIN = 4 };
    for (int a = 0; a < COUNT; a++)
        for (int b = a + 1; b < COUNT; b++) {
            const quire_memory_flags one = complete(ORDER[a]), other = complete(ORDER[b]);
            quire_kind_request request = {.preferred = ORDER[a] | ORDER[b]};
            CHECK_EQ(chosen_of_two(one, other, &request), one);
            request = (quire_kind_request){.avoided = ORDER[a] | ORDER[b]};
            if (a >= FIRST_PLAIN) /* the others are no candidates where they are avoided */
                CHECK_EQ(chosen_of_two(one, other, &request), other);
        }
}

UNIT(kind_order, one_named_flag_outweighs_all_lighter_ones_and_all_that_are_not_named)
{
    quire_kind_request request = {.preferred = CA | DL | CO};
    CHECK_EQ(chosen_of_two(HV | CA, DL | HV | CO, &request), HV | CA);
    request = (quire_kind_request){.preferred = DL | HV};
    CHECK_EQ(chosen_of_two(DL, HV | CO | CA, &request), DL);
    request = (quire_kind_request){.preferred = CO};
    CHECK_EQ(chosen_of_two(0, DL | HV | CO | CA, &request), DL | HV | CO | CA);
    request = (quire_kind_request){.avoided = CO};
    CHECK_EQ(chosen_of_two(HV | CO, DL | HV | CA, &request), DL | HV | CA);
}

UNIT(kind_order, of_two_flags_that_are_not_named_the_heavier_one_decides)
{
    static const quire_memory_flags ORDER[] = {DL, CA, CO};
    const quire_kind_request any = {.required = 0}, visible = {.required = HV};
    CHECK_EQ(chosen_of_two(HV, DL, &any), DL);
    for (int a = 0; a < 3; a++)
        for (int b = a + 1; b < 3; b++)
            CHECK_EQ(chosen_of_two(HV | ORDER[a], HV | ORDER[b], &visible), HV | ORDER[b]);
    /* the part of the device's memory that the host can reach stays free */
    CHECK_EQ(chosen_of_two(DL | HV, HV | CO | CA, &visible), HV | CO | CA);
}

/* With kinds that must be named, which Vulkan lists last. */
UNIT(kind_order, every_use_gets_its_kind_on_every_device_that_vulkan_allows)
{
    static const quire_memory_flags ALLOWED[] = {
        0, DL, HV | CO, HV | CA, HV | CO | CA, DL | HV | CO, DL | HV | CA, DL | HV | CO | CA};
    enum { COUNT = sizeof ALLOWED / sizeof *ALLOWED };
    for (uint32_t set = 1; set < UINT32_C(1) << COUNT; set++) {
        quire_kind kinds[COUNT + 2] = {{0}};
        uint32_t count = 0;
        char name[32];
        for (uint32_t i = 0; i < COUNT; i++)
            if (set >> i & 1)
                kinds[count++].flags = ALLOWED[i];
        kinds[count++].flags = DL | QUIRE_LAZILY_ALLOCATED;
        kinds[count++].flags = HV | CO | CA | KIND_AMD;
        snprintf(name, sizeof name, "set %x", set);
        kind_rules_check(name, kinds, count);
    }
}
