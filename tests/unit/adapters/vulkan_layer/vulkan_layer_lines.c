/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_layer_lines.c - the lines that the layer writes to the standard error stream.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

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

/* The settings refuse the device; returns the lines. */
static const char *refused(void)
{
    CHECK(capture_start(&captured));
    CHECK_EQ((uint32_t)lf_try(), (uint32_t)VK_ERROR_INITIALIZATION_FAILED);
    return capture_end(&captured);
}

/* ---- text from outside ----------------------------------------------------------------------- */

UNIT_ALONE(vulkan_layer_lines, a_refused_value_commands_no_terminal)
{
    static const char *const VALUES[] = {"\x1b]0;x\a",
                                         "\xc2\x9b"
                                         "31m",
                                         "a\nb",
                                         "\x9b"
                                         "31m"};
    for (size_t i = 0; i < sizeof VALUES / sizeof *VALUES; i++) {
        setenv("QUIRE_LAYER_FIT", VALUES[i], 1);
        const char *said = refused();
        CHECK_HAS(said, "QUIRE_LAYER_FIT is '");
        CHECK_HAS(said, "?");
        CHECK(!has_control(said));
    }
}

UNIT_ALONE(vulkan_layer_lines, a_long_value_leaves_room_for_what_is_expected)
{
    static char value[100000];
    memset(value, 'x', sizeof value - 1);
    setenv("QUIRE_LAYER_FIT", value, 1);
    CHECK_HAS(refused(), "expected segregated, first or buddy\n");
}

UNIT_ALONE(vulkan_layer_lines, a_path_commands_no_terminal)
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

UNIT_ALONE(vulkan_layer_lines, the_name_of_a_device_commands_no_terminal)
{
    fv_layout layout = *fv_layout_named("amd-bar");
    layout.name = "a\x1b[31m";
    setenv("QUIRE_LAYER_STATS", "text", 1);
    const char *said = live_on(&layout);
    CHECK_HAS(said, "a?[31m'");
    CHECK(!has_control(said));
}

UNIT_ALONE(vulkan_layer_lines, a_refused_size_is_told_the_least_one)
{
    static const char *const NAMES[] = {"QUIRE_LAYER_PAGE_SIZE", "QUIRE_LAYER_THRESHOLD"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        setenv(NAMES[i], "0", 1);
        CHECK_HAS(refused(), " is '0', expected bytes, at least 1, for example 65536, 64M or 1G\n");
        unsetenv(NAMES[i]);
    }
    setenv("QUIRE_LAYER_RETAIN", "none", 1);
    CHECK_HAS(refused(), " is 'none', expected bytes, for example 0, 64M or 1G\n");
}

/* ---- page sizes that have another effect ----------------------------------------------------- */

UNIT_ALONE(vulkan_layer_lines, a_page_size_above_the_limit_is_corrected)
{
    setenv("QUIRE_LAYER_PAGE_SIZE", "1000G", 1);
    CHECK_STR(live(), "VK_LAYER_QUIRE_suballocate: QUIRE_LAYER_PAGE_SIZE is 1000G, but pages have "
                      "at most an eighth of the heap: 992 MiB in heap 0, 996.01 MiB in heap 1, "
                      "32 MiB in heap 2\n");
    setenv("QUIRE_LAYER_PAGE_SIZE", "33M", 1);
    CHECK_STR(live(), "VK_LAYER_QUIRE_suballocate: QUIRE_LAYER_PAGE_SIZE is 33M, but pages have "
                      "at most an eighth of the heap: 32 MiB in heap 2\n");
    setenv("QUIRE_LAYER_PAGE_SIZE", "32M", 1);
    CHECK_STR(live(), "");
}

/* Ranges of this layout begin at multiples of 4 KiB. */
UNIT_ALONE(vulkan_layer_lines, a_page_size_below_two_ranges_says_what_is_passed_on)
{
    static const char *const TINY[] = {"1", "3"};
    for (size_t i = 0; i < sizeof TINY / sizeof *TINY; i++) {
        char expected[200];
        snprintf(expected, sizeof expected,
                 "VK_LAYER_QUIRE_suballocate: QUIRE_LAYER_PAGE_SIZE is %s, too small for ranges: "
                 "all allocations are passed on\n",
                 TINY[i]);
        setenv("QUIRE_LAYER_PAGE_SIZE", TINY[i], 1);
        CHECK_STR(live(), expected);
    }
    setenv("QUIRE_LAYER_PAGE_SIZE", "7K", 1);
    CHECK_STR(live(), "VK_LAYER_QUIRE_suballocate: QUIRE_LAYER_PAGE_SIZE is 7K, too small for two "
                      "ranges: allocations of 3.50 KiB or more are passed on\n");
    setenv("QUIRE_LAYER_THRESHOLD", "1K", 1);
    CHECK_STR(live(), "VK_LAYER_QUIRE_suballocate: QUIRE_LAYER_PAGE_SIZE is 7K, too small for two "
                      "ranges: allocations of 1 KiB or more are passed on\n");
    unsetenv("QUIRE_LAYER_THRESHOLD");
    setenv("QUIRE_LAYER_PAGE_SIZE", "8K", 1);
    CHECK_STR(live(), "");
}

/* ---- unknown variables ----------------------------------------------------------------------- */

UNIT_ALONE(vulkan_layer_lines, an_unknown_variable_is_reported_once)
{
    setenv("QUIRE_LAYER_PAGESIZE", "8M", 1);
    CHECK_STR(live(), "VK_LAYER_QUIRE_suballocate: QUIRE_LAYER_PAGESIZE is unknown and has no "
                      "effect; is QUIRE_LAYER_PAGE_SIZE meant?\n");
    CHECK_STR(live(), "");
}

UNIT_ALONE(vulkan_layer_lines, a_refused_device_also_reports_unknown_variables)
{
    setenv("QUIRE_LAYER_VERBOSE", "1", 1);
    setenv("QUIRE_LAYER_FIT", "linear", 1);
    const char *said = refused();
    CHECK_HAS(said, "QUIRE_LAYER_VERBOSE is unknown and has no effect\n");
    CHECK_HAS(said, "QUIRE_LAYER_FIT is 'linear'");
}

/* ---- the line that says that the layer is active --------------------------------------------- */

UNIT_ALONE(vulkan_layer_lines, each_device_is_announced_with_its_settings)
{
    setenv("QUIRE_LAYER_INFO", "on", 1);
    CHECK_STR(live(), "VK_LAYER_QUIRE_suballocate: active on device 1 'fake amd-bar'\n");
    setenv("QUIRE_LAYER_FIT", "buddy", 1);
    setenv("QUIRE_LAYER_PAGE_SIZE", "8M", 1);
    setenv("QUIRE_LAYER_TRACE", "", 1);
    CHECK_STR(live(), "VK_LAYER_QUIRE_suballocate: active on device 2 'fake amd-bar', "
                      "QUIRE_LAYER_PAGE_SIZE=8M, QUIRE_LAYER_FIT=buddy\n");
}

UNIT_ALONE(vulkan_layer_lines, a_device_without_quire_is_announced)
{
    fv_fixture f;
    setenv("QUIRE_LAYER_INFO", "on", 1);
    CHECK(capture_start(&captured));
    lf_open_bare(&f, "vkGetBufferMemoryRequirements2");
    fv_fixture_close(&f);
    CHECK_STR(capture_end(&captured), "VK_LAYER_QUIRE_suballocate: not active on device 1\n");
}

/* Programs and their tests compare what they write to a file or pipe. */
UNIT_ALONE(vulkan_layer_lines, without_a_terminal_nothing_is_announced)
{
    CHECK_STR(live(), "");
    setenv("QUIRE_LAYER_INFO", "off", 1);
    CHECK_STR(live(), "");
}

/* Opens the layer with a terminal as the error stream; returns whether something was written within
   a time, because the system may pass it on later. */
static bool live_on_terminal(int milliseconds)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY), before = dup(STDERR_FILENO);
    fv_fixture f;
    if (terminal < 0)
        unit_skip("the system has no pseudo-terminal");
    CHECK(!grantpt(terminal) && !unlockpt(terminal));
    int error_stream = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    CHECK(before >= 0 && error_stream >= 0 && dup2(error_stream, STDERR_FILENO) >= 0);
    lf_open_named(&f, "amd-bar");
    fv_fixture_close(&f);
    int ready = poll(&(struct pollfd){.fd = terminal, .events = POLLIN}, 1, milliseconds);
    dup2(before, STDERR_FILENO);
    close(error_stream);
    close(before);
    close(terminal);
    return ready == 1;
}

UNIT_ALONE(vulkan_layer_lines, a_terminal_gets_the_announcement_unless_it_is_off)
{
    CHECK(live_on_terminal(10000));
    setenv("QUIRE_LAYER_INFO", "off", 1);
    CHECK(!live_on_terminal(100));
}
