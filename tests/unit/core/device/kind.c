/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * kind.c - which memory kind a request or an intent gets, on invented devices on which one rule
 * decides each case; the order in which flags decide; and that the order of the kinds decides
 * nothing, on every combination of kinds that Vulkan allows. Real devices are in kind_profiles.c.
 */
#include "src/core/device/device.h"
#include "tests/support/kind_rules.h"

#define DL QUIRE_DEVICE_LOCAL
#define HV QUIRE_HOST_VISIBLE
#define CO QUIRE_HOST_COHERENT
#define CA QUIRE_HOST_CACHED
#define LAZY QUIRE_LAZILY_ALLOCATED
#define PROT QUIRE_PROTECTED
#define AMD (QUIRE_DEVICE_COHERENT | QUIRE_DEVICE_UNCACHED)

enum { NONE = -1 };

/* A host device with one heap and kinds of these flags. */
#define POSE(...)                                                                                  \
    pose((const quire_memory_flags[]){__VA_ARGS__},                                                \
         sizeof((const quire_memory_flags[]){__VA_ARGS__}) / sizeof(quire_memory_flags))

static quire_device *pose(const quire_memory_flags *flags, size_t count)
{
    quire_host_profile profile = {.name = "posed", .heap_count = 1};
    profile.kind_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        profile.kinds[i].flags = flags[i];
    quire_host_options options = {.profile = &profile, .device = {.host_memory = unit_memory()}};
    quire_device *device = NULL;
    CHECK_OK(quire_host_open(&options, &device));
    return device;
}

static void end(quire_device **device)
{
    CHECK_OK(quire_device_destroy(device));
}

#define POSED(name, ...)                                                                           \
    UNIT_ON(kind, name, quire_device *, device, *device = POSE(__VA_ARGS__), end)

#define EXPECT(device, expected, ...)                                                              \
    expect((device), (expected), &(quire_kind_request){__VA_ARGS__})

static void expect(const quire_device *device, int expected, const quire_kind_request *request)
{
    uint32_t kind = 99;
    if (expected != NONE) {
        CHECK_OK(quire_device_choose_kind(device, request, &kind));
        CHECK_EQ(kind, expected);
        return;
    }
    CHECK_FAILS(quire_device_choose_kind(device, request, &kind), QUIRE_ERROR_UNSUPPORTED);
    CHECK_EQ(kind, 0);
    CHECK_HAS(quire_last_error(), "'posed'");
    CHECK_HAS(quire_last_error(), qi_flags(request->required).text);
}

POSED(the_kind_has_every_required_flag, 0, DL, HV | CO, HV | CO | CA, DL | HV | CO)
{
    EXPECT(*device, 1, .required = 0); /* device-local is preferred */
    EXPECT(*device, 1, .required = DL);
    EXPECT(*device, 2, .required = HV);
    EXPECT(*device, 2, .required = HV | CO);
    EXPECT(*device, 3, .required = CA);
    EXPECT(*device, 4, .required = DL | HV);
    EXPECT(*device, NONE, .required = DL | CA);
}

POSED(exact_accepts_no_superset, DL | HV | CO, HV | CO | CA, DL, 0, DL | LAZY)
{
    EXPECT(*device, 2, .required = DL, .exact = true);
    EXPECT(*device, 3, .required = 0, .exact = true);
    EXPECT(*device, 4, .required = DL | LAZY, .exact = true);
    EXPECT(*device, NONE, .required = HV | CO, .exact = true);
    CHECK_HAS(quire_last_error(), "exactly");
}

POSED(a_mask_allows_only_its_kinds, DL, DL, DL, HV)
{
    EXPECT(*device, 1, .required = DL, .mask = 0xe);
    EXPECT(*device, 2, .required = DL, .mask = 0xc);
    EXPECT(*device, NONE, .required = DL, .mask = 0x8);
    CHECK_HAS(quire_last_error(), "DEVICE_LOCAL in the mask 0x8");
    EXPECT(*device, NONE, .required = DL, .mask = 0xfffffff0);
    EXPECT(*device, NONE, .required = CA);
}

UNIT(kind, the_last_of_32_kinds_can_be_chosen)
{
    quire_memory_flags flags[QUIRE_MAX_KINDS] = {0};
    flags[31] = DL;
    quire_device *device = pose(flags, QUIRE_MAX_KINDS);
    EXPECT(device, 31, .required = DL);
    EXPECT(device, 31, .required = DL, .mask = UINT32_C(1) << 31);
    EXPECT(device, NONE, .required = DL, .mask = UINT32_MAX >> 1);
    end(&device);
}

POSED(avoided_flags_cost_but_do_not_forbid, DL | HV, HV | CO | CA, DL)
{
    EXPECT(*device, 0, .required = HV, .avoided = CA);
    EXPECT(*device, 1, .required = HV, .avoided = DL, .preferred = CO);
    EXPECT(*device, 1, .required = HV | CO, .avoided = CA);
    EXPECT(*device, 2, .required = DL, .avoided = HV);
    EXPECT(*device, 0, .required = DL | HV, .avoided = CO);
}

POSED(the_fewest_unrequested_flags_and_then_the_lowest_index_win, DL | HV | CO, DL | HV, DL, DL,
      DL | HV | CO | CA)
{
    EXPECT(*device, 2, .required = DL);
    EXPECT(*device, 1, .required = HV);
    EXPECT(*device, 0, .required = CO);
    EXPECT(*device, 3, .required = DL, .mask = 0x1a);
}

POSED(special_kinds_are_taken_only_when_named, DL | LAZY, DL | PROT, DL | AMD,
      DL | QUIRE_DEVICE_COHERENT, DL | HV | CO)
{
    EXPECT(*device, 4, .required = DL); /* the number of unrequested flags does not matter */
    EXPECT(*device, 0, .required = DL | LAZY);
    EXPECT(*device, 1, .required = PROT);
    EXPECT(*device, 3, .required = QUIRE_DEVICE_COHERENT);
    EXPECT(*device, 2, .required = QUIRE_DEVICE_COHERENT | QUIRE_DEVICE_UNCACHED);
    EXPECT(*device, 2, .required = QUIRE_DEVICE_UNCACHED, .preferred = QUIRE_DEVICE_COHERENT);
    EXPECT(*device, NONE, .required = QUIRE_DEVICE_UNCACHED); /* the other one is not requested */
    EXPECT(*device, 0, .required = DL, .preferred = LAZY);
    EXPECT(*device, 4, .required = DL,
           .avoided = LAZY); /* an avoided flag does not request the special kind */
    EXPECT(*device, NONE, .required = DL, .mask = 0xf);
    EXPECT(*device, 4, .intent = QUIRE_INTENT_DEVICE);
}

POSED(contradictory_requests_are_refused_each_with_its_message, DL | HV | CO)
{
    static const struct {
        quire_kind_request request;
        const char *says;
    } cases[] = {
        {{.required = 0x201}, "unknown memory flags 0x200"},
        {{.preferred = 0x80000000}, "unknown memory flags 0x80000000"},
        {{.avoided = 0x400}, "unknown memory flags 0x400"},
        {{.required = DL | HV, .avoided = DL}, "flags 0x1 are both avoided and requested"},
        {{.required = DL, .preferred = CA, .avoided = CA}, "flags 0x8 are both"},
        {{.required = DL, .preferred = HV, .exact = true}, "exact match"},
        {{.required = DL, .avoided = HV, .exact = true}, "exact match"},
        {{.intent = QUIRE_INTENT_UPLOAD | QUIRE_INTENT_HOST_READ},
         "an intent to upload and to read"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t kind = 99;
        CHECK_FAILS(quire_device_choose_kind(*device, &cases[i].request, &kind),
                    QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_HAS(quire_last_error(), cases[i].says);
        CHECK_EQ(kind, 0);
    }
}

UNIT(kind, exportable_pages_are_refused_where_the_backend_has_none)
{
    quire_device *device = POSE(DL);
    uint32_t kind = 99;
    CHECK_FAILS(quire_device_choose_kind(
                    device, &(quire_kind_request){.intent = QUIRE_INTENT_EXPORT}, &kind),
                QUIRE_ERROR_UNSUPPORTED);
    CHECK_EQ(kind, 0);
    CHECK_HAS(quire_last_error(), "backend host cannot export");
    end(&device);
    quire_host_options options = {.backing = QUIRE_HOST_MEMFD,
                                  .device = {.host_memory = unit_memory()}};
    CHECK_OK(quire_host_open(&options, &device));
    EXPECT(device, 0, .intent = QUIRE_INTENT_EXPORT);
    end(&device);
}

UNIT(kind, each_flag_has_a_word_and_other_bits_have_none)
{
    static const char *const names[] = {
        "DEVICE_LOCAL",        "HOST_VISIBLE",        "HOST_COHERENT",
        "HOST_CACHED",         "LAZILY_ALLOCATED",    "PROTECTED",
        "DEVICE_COHERENT_AMD", "DEVICE_UNCACHED_AMD", "OBJECTS_ONLY"};
    for (uint32_t i = 0; i < 32; i++) {
        const char *name = quire_memory_flag_name(UINT32_C(1) << i);
        if (i < sizeof names / sizeof *names)
            CHECK_STR(name, names[i]);
        else
            CHECK(name == NULL);
    }
    CHECK(quire_memory_flag_name(0) == NULL);
    CHECK(quire_memory_flag_name(3) == NULL);
    CHECK(quire_memory_flag_name(0x101) == NULL);
}

/* ---- the weight of the flags ---------------------------------------------------------------- */

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

UNIT(kind, of_two_named_flags_the_heavier_one_decides)
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

UNIT(kind, one_named_flag_outweighs_all_lighter_ones_and_all_that_are_not_named)
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

UNIT(kind, of_two_flags_that_are_not_named_the_heavier_one_decides)
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
UNIT(kind, every_use_gets_its_kind_on_every_device_that_vulkan_allows)
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
