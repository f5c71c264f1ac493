/*
 * vulkan_layer_lines.c - the lines that the layer writes to the standard error stream.
 */
#include <stdlib.h>

#include "tests/support/capture.h"
#include "tests/support/layer_fixture.h"
#include "tests/support/unit.h"

static capture captured;

static bool has_control(const char *text)
{
    for (; *text; text++)
        if (((unsigned char)*text < ' ' && *text != '\n') || *text == 127)
            return true;
    return strstr(text, "\xc2\x9b") != NULL;
}

/* Opens the layer on a layout, allocates and frees once, and closes it; returns the lines. */
static const char *live_on(const fv_layout *layout)
{
    fv_fixture f;
    CHECK(capture_start(&captured));
    lf_open(&f, layout, 0);
    lf_release(&f, lf_allocate(&f, 1000, 0, NULL));
    fv_fixture_close(&f);
    return capture_end(&captured);
}

static const char *live(void)
{
    return live_on(fv_layout_named("amd-bar"));
}

/* ---- text from outside ----------------------------------------------------------------------- */

UNIT(vulkan_layer_lines, a_refused_value_commands_no_terminal)
{
    static const char *const VALUES[] = {"\x1b]0;x\a",
                                         "\xc2\x9b"
                                         "31m",
                                         "a\nb",
                                         "\x9b"
                                         "31m"};
    for (size_t i = 0; i < sizeof VALUES / sizeof *VALUES; i++) {
        setenv("QUIRE_LAYER_FIT", VALUES[i], 1);
        CHECK(capture_start(&captured));
        CHECK_EQ((uint32_t)lf_try(), (uint32_t)VK_ERROR_INITIALIZATION_FAILED);
        const char *said = capture_end(&captured);
        CHECK_HAS(said, "QUIRE_LAYER_FIT is '");
        CHECK_HAS(said, "?");
        CHECK(!has_control(said));
    }
}

UNIT(vulkan_layer_lines, a_long_value_leaves_room_for_what_is_expected)
{
    static char value[100000];
    memset(value, 'x', sizeof value - 1);
    setenv("QUIRE_LAYER_FIT", value, 1);
    CHECK(capture_start(&captured));
    CHECK_EQ((uint32_t)lf_try(), (uint32_t)VK_ERROR_INITIALIZATION_FAILED);
    CHECK_HAS(capture_end(&captured), "expected segregated, first or buddy\n");
}

UNIT(vulkan_layer_lines, a_path_commands_no_terminal)
{
    setenv("QUIRE_LAYER_STATS", "text", 1);
    setenv("QUIRE_LAYER_STATS_FILE", "/nonex\x1b[31m/statistics", 1);
    setenv("QUIRE_LAYER_TRACE", "/nonex\x1b[31m/trace", 1);
    const char *said = live();
    CHECK_HAS(said, "/nonex?[31m/trace cannot be written");
    CHECK_HAS(said, "/nonex?[31m/statistics.");
    CHECK_HAS(said, "/nonex?[31m/statistics cannot be written");
    CHECK(!has_control(said));
}

UNIT(vulkan_layer_lines, the_name_of_a_device_commands_no_terminal)
{
    fv_layout layout = *fv_layout_named("amd-bar");
    layout.name = "a\x1b[31m";
    setenv("QUIRE_LAYER_STATS", "text", 1);
    const char *said = live_on(&layout);
    CHECK_HAS(said, "a?[31m'");
    CHECK(!has_control(said));
}
