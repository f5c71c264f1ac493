/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_compare.c - quire_vma.h beside VMA itself: the scenarios of tests/support/vma_scenarios.h run
 * with both on the fake driver, on every layout and every device profile of QUIRE_TEST_DATA. What
 * they see must be the same, except for the differences in the table KNOWN.
 */
#include "tests/support/plain.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/vma_notes.h"
#include "tests/support/vulkan/fixture.h"
#include "tests/support/vulkan/layout_file.h"

/* VmaAllocatorCreateFlagBits, which this file cannot include: it has neither header. */
enum {
    MEMORY_BUDGET = 0x08,
    DEVICE_COHERENT = 0x10,
    DEVICE_ADDRESS = 0x20,
    PRIORITY = 0x40,
};

/* ---- known differences ----------------------------------------------------------------------- */

/* A difference that is meant. The test fails if it does not occur on any layout. */
typedef struct known {
    const char *scenario; /* its beginning */
    const char *field;
    const char *reason;
    int64_t least, most;  /* quire's value minus VMA's */
    uint64_t granularity; /* only where bufferImageGranularity is at least this */
    uint32_t count;       /* how often it was seen */
} known;

#define ROUNDED                                                                                    \
    "images of optimal tiling take multiples of bufferImageGranularity from quire; VMA remembers " \
    "for each multiple who uses it"
#define UNTIED                                                                                     \
    "quire cannot copy to and from memory that is made for a linear image, or for a buffer that "  \
    "lacks a usage of transfers: it is made where the driver requires it, not where it prefers it"
#define COUNTED                                                                                    \
    "the statistics count a buffer that the driver wants in memory of its own as requested, "      \
    "without the bytes that the driver adds"
#define TOO_FEW "VMA counts too few allocations of a linear block after frees"
#define MANY_GRANULES (INT64_C(27) * 128 * 1024)

/* docs/adapters/vma.md has the reasons, too. */
static known KNOWN[] = {
    {"raw", "size",
     "VMA rounds memory without an object up to a bufferImageGranularity of at most 256 bytes; "
     "quire reports the size of the request",
     -255, -1, 0, 0},
    {"create", "allocationBytes", ROUNDED, 1, MANY_GRANULES, 4096, 0},
    {"create", "allocationSizeMin", ROUNDED, 1, MANY_GRANULES, 4096, 0},
    {"create", "allocationSizeMax", ROUNDED, 1, MANY_GRANULES, 4096, 0},
    {"create 'copied linear'", "dedicatedMemory", UNTIED, -1, -1, 0, 0},
    {"create 'sampled linear'", "dedicatedMemory", UNTIED, -1, -1, 0, 0},
    {"create 'uniform'", "dedicatedMemory", UNTIED, -1, -1, 0, 0},
    {"create 'storage'", "dedicatedMemory", UNTIED, -1, -1, 0, 0},
    {"create many", "allocationBytes", COUNTED, -512, -1, 0, 0},
    {"create many", "heap allocationBytes", COUNTED, -512, -1, 0, 0},
    {"virtual ring", "allocationCount", TOO_FEW, 1, 1000, 0, 0},
    {"virtual linear", "allocationCount", TOO_FEW, 1, 1000, 0, 0},
};

enum { KNOWN_COUNT = sizeof KNOWN / sizeof *KNOWN };

static bool is_known(const fv_layout *layout, const vma_note *expected, uint64_t actual)
{
    int64_t difference = (int64_t)(actual - expected->value);
    for (size_t i = 0; i < KNOWN_COUNT; i++) {
        known *k = &KNOWN[i];
        if (layout->granularity >= k->granularity &&
            !strncmp(expected->scenario, k->scenario, strlen(k->scenario)) &&
            !strcmp(expected->field, k->field) && difference >= k->least && difference <= k->most) {
            k->count++;
            return true;
        }
    }
    return false;
}

/* ---- comparison ------------------------------------------------------------------------------ */

static uint64_t compared;

enum { MAX_REPORTED = 20 };

/* After a value that differs, scenarios may go on differently: these are not compared. */
static bool is_same_place(const vma_note *a, const vma_note *b)
{
    return !strcmp(a->scenario, b->scenario) && !strcmp(a->field, b->field);
}

static void compare(const fv_layout *layout, const vma_scene *scene, const vma_notes *reference,
                    const vma_notes *quire)
{
    uint32_t differences = 0;
    for (size_t i = 0; i < reference->count && i < quire->count; i++) {
        const vma_note *expected = &reference->all[i], *actual = &quire->all[i];
        if (!is_same_place(actual, expected))
            break;
        compared++;
        if (actual->value == expected->value || is_known(layout, expected, actual->value))
            continue;
        if (differences++ < MAX_REPORTED)
            fprintf(stderr, "# %s, version 0x%x, flags 0x%x: %s: %s is %lld, VMA: %lld\n",
                    layout->name, scene->api_version, scene->flags, actual->scenario, actual->field,
                    (long long)actual->value, (long long)expected->value);
    }
    CHECK_EQ(differences, 0);
    CHECK_EQ(quire->count, reference->count);
}

/* ---- layouts --------------------------------------------------------------------------------- */

typedef void (*run_function)(const vma_scene *scene, vma_notes *notes);

/* Runs on a device of its own. */
static void run(const fv_layout *layout, uint32_t driver_flags, vma_scene *scene,
                run_function function, vma_notes *notes)
{
    fv_fixture f;
    const fv_options options = {.layouts = {layout}, .flags = driver_flags};
    fv_fixture_open_with(&f, &options);
    scene->get = f.get;
    scene->get_of_device = f.get_of_device;
    scene->instance = f.instance;
    scene->physical = f.physical;
    scene->device = f.device;
    FV(&f, vkGetPhysicalDeviceMemoryProperties)(f.physical, &scene->memory);
    function(scene, notes);
    fv_fixture_close(&f);
}

static void check_with(const fv_layout *layout, uint32_t driver_flags, uint32_t api_version,
                       uint32_t flags)
{
    vma_notes reference = {.all = NULL}, quire = {.all = NULL};
    vma_scene scene = {.api_version = api_version,
                       .flags = flags,
                       .driver_decides =
                           driver_flags & (FV_PREFER_DEDICATED | FV_REQUIRE_DEDICATED)};
    run(layout, driver_flags, &scene, vma_run_reference, &reference);
    run(layout, driver_flags, &scene, vma_run_quire, &quire);
    compare(layout, &scene, &reference, &quire);
    vma_notes_end(&reference);
    vma_notes_end(&quire);
}

/* With the least version and no flag, and with everything that the layout has. */
static void check_layout(const fv_layout *described, void *state)
{
    (void)state;
    fv_layout layout = *described;
    fv_layout_complete(&layout);
    uint32_t flags = 0;
    flags |= layout.extensions & FV_BIT(BUDGET) ? MEMORY_BUDGET : 0;
    flags |= layout.features & FV_DEVICE_COHERENT ? DEVICE_COHERENT : 0;
    flags |= layout.features & FV_ADDRESS ? DEVICE_ADDRESS : 0;
    flags |= layout.features & FV_PRIORITY ? PRIORITY : 0;
    check_with(&layout, 0, VK_API_VERSION_1_1, 0);
    check_with(&layout, 0, layout.api_version, flags);
}

static void built_in_layouts(void)
{
    for (uint32_t i = 0; i < fv_layout_count; i++)
        check_layout(&fv_layouts[i], NULL);
}

static void unusual_drivers(void)
{
    const char *const names[] = {"amd-bar", "nvidia-11", "mobile-lazy"};
    const uint32_t behaviours[] = {
        FV_PREFER_DEDICATED,  FV_PREFER_DEDICATED | FV_DEDICATED_BUFFERS,
        FV_REQUIRE_DEDICATED, FV_REQUIRE_DEDICATED | FV_DEDICATED_BUFFERS,
        FV_LARGE_ALIGNMENTS,  FV_FEW_TYPES,
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t k = 0; k < sizeof behaviours / sizeof *behaviours; k++) {
            fv_layout layout = *fv_layout_named(names[i]);
            fv_layout_complete(&layout);
            check_with(&layout, behaviours[k], VK_API_VERSION_1_1, 0);
        }
}

static void device_profiles(void)
{
    CHECK(fv_layout_files(check_layout, NULL) > 0);
}

static void virtual_blocks(void)
{
    const fv_layout none = {.name = "no device"};
    const vma_scene scene = {.api_version = 0};
    vma_notes reference = {.all = NULL}, quire = {.all = NULL};
    vma_virtual_run_reference(&reference);
    vma_virtual_run_quire(&quire);
    compare(&none, &scene, &reference, &quire);
    vma_notes_end(&reference);
    vma_notes_end(&quire);
}

static void known_differences(void)
{
    for (size_t i = 0; i < KNOWN_COUNT; i++) {
        fprintf(stderr, "# %u times: %s\n", KNOWN[i].count, KNOWN[i].reason);
        CHECK(KNOWN[i].count > 0);
    }
}

int main(void)
{
    plain_case("VMA and quire_vma.h agree on the layouts of the fake driver", built_in_layouts);
    plain_case("VMA and quire_vma.h agree on virtual blocks", virtual_blocks);
    plain_case("VMA and quire_vma.h agree on unusual drivers", unusual_drivers);
    plain_case("the known differences exist", known_differences);
    const char *data = getenv("QUIRE_TEST_DATA");
    if (data && *data)
        plain_case("VMA and quire_vma.h agree on the device profiles", device_profiles);
    else
        plain_skip("VMA and quire_vma.h agree on the device profiles",
                   "QUIRE_TEST_DATA names no folder with device profiles");
    fprintf(stderr, "# %llu values compared\n", (unsigned long long)compared);
    return plain_end();
}
