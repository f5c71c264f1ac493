/*
 * kind.c - which memory kind a request or an intent gets, on invented devices on which one rule
 * decides each case. The weight of the flags is in kind_order.c, real devices are in
 * kind_profiles.c.
 */
#include "tests/support/unit.h"

#include "quire/host.h"
#include "quire/quire.h"
#include "src/core/device/device.h"

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

static void end(quire_device *device)
{
    CHECK_OK(quire_device_destroy(&device));
}

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

#define EXPECT_FOR(device, expected, ...) expect_for((device), (expected), (__VA_ARGS__))

static void expect_for(const quire_device *device, int expected, quire_intent intent)
{
    uint32_t kind = 99;
    if (expected == NONE) {
        CHECK_FAILS(
            quire_device_choose_kind(device, &(quire_kind_request){.intent = intent}, &kind),
            QUIRE_ERROR_UNSUPPORTED);
        CHECK_EQ(kind, 0);
        return;
    }
    CHECK_OK(quire_device_choose_kind(device, &(quire_kind_request){.intent = intent}, &kind));
    CHECK_EQ(kind, expected);
}

UNIT(kind, the_kind_has_every_required_flag)
{
    quire_device *device = POSE(0, DL, HV | CO, HV | CO | CA, DL | HV | CO);
    EXPECT(device, 1, .required = 0); /* device-local is preferred */
    EXPECT(device, 1, .required = DL);
    EXPECT(device, 2, .required = HV);
    EXPECT(device, 2, .required = HV | CO);
    EXPECT(device, 3, .required = CA);
    EXPECT(device, 4, .required = DL | HV);
    EXPECT(device, NONE, .required = DL | CA);
    end(device);
}

UNIT(kind, exact_accepts_no_superset)
{
    quire_device *device = POSE(DL | HV | CO, HV | CO | CA, DL, 0, DL | LAZY);
    EXPECT(device, 2, .required = DL, .exact = true);
    EXPECT(device, 3, .required = 0, .exact = true);
    EXPECT(device, 4, .required = DL | LAZY, .exact = true);
    EXPECT(device, NONE, .required = HV | CO, .exact = true);
    CHECK_HAS(quire_last_error(), "exactly");
    end(device);
}

UNIT(kind, a_mask_allows_only_its_kinds)
{
    quire_device *device = POSE(DL, DL, DL, HV);
    EXPECT(device, 1, .required = DL, .mask = 0xe);
    EXPECT(device, 2, .required = DL, .mask = 0xc);
    EXPECT(device, NONE, .required = DL, .mask = 0x8);
    CHECK_HAS(quire_last_error(), "DEVICE_LOCAL in the mask 0x8");
    EXPECT(device, NONE, .required = DL, .mask = 0xfffffff0);
    EXPECT(device, NONE, .required = CA);
    end(device);
}

UNIT(kind, the_last_of_32_kinds_can_be_chosen)
{
    quire_memory_flags flags[QUIRE_MAX_KINDS] = {0};
    flags[31] = DL;
    quire_device *device = pose(flags, QUIRE_MAX_KINDS);
    EXPECT(device, 31, .required = DL);
    EXPECT(device, 31, .required = DL, .mask = UINT32_C(1) << 31);
    EXPECT(device, NONE, .required = DL, .mask = UINT32_MAX >> 1);
    end(device);
}

UNIT(kind, avoided_flags_cost_but_do_not_forbid)
{
    quire_device *device = POSE(DL | HV, HV | CO | CA, DL);
    EXPECT(device, 0, .required = HV, .avoided = CA);
    EXPECT(device, 1, .required = HV, .avoided = DL, .preferred = CO);
    EXPECT(device, 1, .required = HV | CO, .avoided = CA);
    EXPECT(device, 2, .required = DL, .avoided = HV);
    EXPECT(device, 0, .required = DL | HV, .avoided = CO);
    end(device);
}

UNIT(kind, the_fewest_unrequested_flags_and_then_the_lowest_index_win)
{
    quire_device *device = POSE(DL | HV | CO, DL | HV, DL, DL, DL | HV | CO | CA);
    EXPECT(device, 2, .required = DL);
    EXPECT(device, 1, .required = HV);
    EXPECT(device, 0, .required = CO);
    EXPECT(device, 3, .required = DL, .mask = 0x1a);
    end(device);
}

UNIT(kind, special_kinds_are_taken_only_when_named)
{
    quire_device *device =
        POSE(DL | LAZY, DL | PROT, DL | AMD, DL | QUIRE_DEVICE_COHERENT, DL | HV | CO);
    EXPECT(device, 4, .required = DL); /* the number of unrequested flags does not matter */
    EXPECT(device, 0, .required = DL | LAZY);
    EXPECT(device, 1, .required = PROT);
    EXPECT(device, 3, .required = QUIRE_DEVICE_COHERENT);
    EXPECT(device, 2, .required = QUIRE_DEVICE_COHERENT | QUIRE_DEVICE_UNCACHED);
    EXPECT(device, 2, .required = QUIRE_DEVICE_UNCACHED, .preferred = QUIRE_DEVICE_COHERENT);
    EXPECT(device, NONE, .required = QUIRE_DEVICE_UNCACHED); /* the other one is not requested */
    EXPECT(device, 0, .required = DL, .preferred = LAZY);
    EXPECT(device, 4, .required = DL,
           .avoided = LAZY); /* an avoided flag does not request the special kind */
    EXPECT(device, NONE, .required = DL, .mask = 0xf);
    EXPECT_FOR(device, 4, QUIRE_INTENT_DEVICE);
    end(device);
}

UNIT(kind, contradictory_requests_are_refused_each_with_its_message)
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
    };
    quire_device *device = POSE(DL | HV | CO);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t kind = 99;
        CHECK_FAILS(quire_device_choose_kind(device, &cases[i].request, &kind),
                    QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_HAS(quire_last_error(), cases[i].says);
        CHECK_EQ(kind, 0);
    }
    end(device);
}

UNIT(kind, exportable_pages_are_refused_where_the_backend_has_none)
{
    quire_device *device = POSE(DL);
    EXPECT_FOR(device, NONE, QUIRE_INTENT_EXPORT);
    CHECK_HAS(quire_last_error(), "backend host cannot export");
    end(device);
    quire_host_options options = {.backing = QUIRE_HOST_MEMFD,
                                  .device = {.host_memory = unit_memory()}};
    CHECK_OK(quire_host_open(&options, &device));
    EXPECT_FOR(device, 0, QUIRE_INTENT_EXPORT);
    end(device);
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
