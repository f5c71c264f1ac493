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
    uint32_t count;
} known;

static known KNOWN[] = {
    {"", "", "", 0},
};

static known *find_known(const vma_note *note)
{
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        if (!strncmp(note->scenario, KNOWN[i].scenario, strlen(KNOWN[i].scenario)) &&
            !strcmp(note->field, KNOWN[i].field))
            return &KNOWN[i];
    return NULL;
}

/* ---- comparison ------------------------------------------------------------------------------ */

static uint64_t compared;

enum { MAX_REPORTED = 20 };

static void compare(const fv_layout *layout, const vma_scene *scene, const vma_notes *reference,
                    const vma_notes *quire)
{
    uint32_t differences = 0;
    CHECK_EQ(quire->count, reference->count);
    for (size_t i = 0; i < reference->count; i++) {
        const vma_note *expected = &reference->all[i], *actual = &quire->all[i];
        CHECK_STR(actual->scenario, expected->scenario);
        CHECK_STR(actual->field, expected->field);
        compared++;
        if (actual->value == expected->value)
            continue;
        known *meant = find_known(expected);
        if (meant) {
            meant->count++;
            continue;
        }
        if (differences++ < MAX_REPORTED)
            fprintf(stderr, "# %s, version 0x%x, flags 0x%x: %s: %s is %lld, VMA: %lld\n",
                    layout->name, scene->api_version, scene->flags, actual->scenario, actual->field,
                    (long long)actual->value, (long long)expected->value);
    }
    CHECK_EQ(differences, 0);
}

/* ---- layouts --------------------------------------------------------------------------------- */

typedef void (*run_function)(const vma_scene *scene, vma_notes *notes);

/* Runs on a device of its own. */
static void run(const fv_layout *layout, vma_scene *scene, run_function function, vma_notes *notes)
{
    fv_fixture f;
    const fv_options options = {.layouts = {layout}};
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

static void check_with(const fv_layout *layout, uint32_t api_version, uint32_t flags)
{
    vma_notes reference = {.all = NULL}, quire = {.all = NULL};
    vma_scene scene = {.api_version = api_version, .flags = flags};
    run(layout, &scene, vma_run_reference, &reference);
    run(layout, &scene, vma_run_quire, &quire);
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
    check_with(&layout, VK_API_VERSION_1_1, 0);
    check_with(&layout, layout.api_version, flags);
}

static void built_in_layouts(void)
{
    for (uint32_t i = 0; i < fv_layout_count; i++)
        check_layout(&fv_layouts[i], NULL);
}

static void device_profiles(void)
{
    CHECK(fv_layout_files(check_layout, NULL) > 0);
}

static void known_differences(void)
{
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        if (*KNOWN[i].field && !KNOWN[i].count)
            check_failed(__FILE__, __LINE__, "no difference: '%s', %s", KNOWN[i].scenario,
                         KNOWN[i].field);
}

int main(void)
{
    plain_case("VMA and quire_vma.h agree on the layouts of the fake driver", built_in_layouts);
    plain_case("the known differences exist", known_differences);
    if (getenv("QUIRE_TEST_DATA"))
        plain_case("VMA and quire_vma.h agree on the device profiles", device_profiles);
    else
        plain_skip("VMA and quire_vma.h agree on the device profiles",
                   "QUIRE_TEST_DATA names no folder with device profiles");
    fprintf(stderr, "# %llu values compared\n", (unsigned long long)compared);
    return plain_end();
}
