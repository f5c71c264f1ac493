/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * device_end.c - closing a device that has memories, and the lines that a device logs.
 */
#include "tests/support/fake.h"
#include "tests/support/unit.h"

#include <stdio.h>

#include "quire/quire.h"

UNIT(device_end, a_device_with_memories_stays_and_names_them)
{
    fake_backend fake;
    fake_init(&fake);
    quire_device *device = NULL;
    quire_memory *weights = NULL, *frames = NULL;
    CHECK_OK(fake_open(&fake, unit_memory(), &device));
    CHECK_OK(quire_memory_create(device, &(quire_memory_options){.name = "weights"}, &weights));
    CHECK_OK(quire_memory_create(device, &(quire_memory_options){.name = "frames"}, &frames));
    quire_device *same = device;
    CHECK_FAILS(quire_device_destroy(&device), QUIRE_ERROR_BUSY);
    CHECK_HAS(quire_last_error(), "'fake device' still has 2 live memories: ");
    CHECK_HAS(quire_last_error(), "'weights'");
    CHECK_HAS(quire_last_error(), "'frames'");
    CHECK(device == same && !fake.ended);
    CHECK_OK(quire_memory_destroy(&weights));
    CHECK_FAILS(quire_device_destroy(&device), QUIRE_ERROR_BUSY);
    CHECK_HAS(quire_last_error(), "1 live memory: 'frames'");
    CHECK_OK(quire_memory_destroy(&frames));
    CHECK_OK(quire_device_destroy(&device));
    CHECK(fake.ended);
}

UNIT(device_end, a_list_of_names_that_is_too_long_is_cut)
{
    enum { COUNT = 8 };
    fake_backend fake;
    fake_init(&fake);
    quire_device *device = NULL;
    quire_memory *memories[COUNT] = {NULL};
    char name[QUIRE_MAX_NAME + 1];
    memset(name, 'm', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    CHECK_OK(fake_open(&fake, unit_memory(), &device));
    for (int i = 0; i < COUNT; i++)
        CHECK_OK(quire_memory_create(device, &(quire_memory_options){.name = name}, &memories[i]));
    CHECK_FAILS(quire_device_destroy(&device), QUIRE_ERROR_BUSY);
    CHECK_HAS(quire_last_error(), "8 live memories: '");
    CHECK_HAS(quire_last_error(), name);
    for (int i = 0; i < COUNT; i++)
        CHECK_OK(quire_memory_destroy(&memories[i]));
    CHECK_OK(quire_device_destroy(&device));
}

typedef struct log_lines {
    char text[4096];
    uint32_t count[QUIRE_LOG_DEBUG + 1];
    quire_memory *ask; /* its statistics are queried at every line */
} log_lines;

static void keep_line(void *user, quire_log_level level, const char *line)
{
    log_lines *lines = user;
    size_t length = strlen(lines->text);
    snprintf(lines->text + length, sizeof lines->text - length, "%s\n", line);
    lines->count[level]++;
    CHECK(!strchr(line, '\n'));
    quire_memory_stats stats;
    if (lines->ask)
        CHECK_OK(quire_memory_get_stats(lines->ask, &stats));
}

/* Every logged action: open, create, page, refused destroy, page destroyed, destroy, close. */
static void play(log_lines *lines, quire_log_level level)
{
    fake_backend fake;
    fake_init(&fake);
    quire_device *device = NULL;
    quire_memory *memory = NULL;
    quire_device_options options = {.host_memory = unit_memory(), .log = {keep_line, lines, level}};
    CHECK_OK(quire_device_create(&fake.table, &fake, &options, &device));
    quire_memory_options wanted = {.name = "weights", .pages = {.page_size = 4096}};
    CHECK_OK(quire_memory_create(device, &wanted, &memory));
    lines->ask = memory; /* a sink may call quire: no lock is held */
    quire_allocation named, unnamed;
    CHECK_OK(
        quire_allocate(memory, &(quire_allocation_options){.size = 300, .name = "layer"}, &named));
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 256}, &unnamed));
    CHECK_FAILS(quire_memory_destroy(&memory), QUIRE_ERROR_BUSY);
    CHECK_FAILS(quire_device_destroy(&device), QUIRE_ERROR_BUSY);
    CHECK_OK(quire_free(memory, named));
    CHECK_OK(quire_free(memory, unnamed));
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    lines->ask = NULL;
    CHECK_OK(quire_memory_destroy(&memory));
    CHECK_OK(quire_device_destroy(&device));
}

UNIT(device_end, each_level_logs_its_lines)
{
    static const struct {
        quire_log_level level;
        uint32_t warnings, infos, debugs;
    } rows[] = {{QUIRE_LOG_DEFAULT, 3, 0, 0}, /* warnings */
                {QUIRE_LOG_WARNING, 3, 0, 0},
                {QUIRE_LOG_ERROR, 0, 0, 0},
                {QUIRE_LOG_INFO, 3, 4, 0},
                {QUIRE_LOG_DEBUG, 3, 4, 2}};
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        log_lines lines = {.ask = NULL};
        unit_note("row", i);
        play(&lines, rows[i].level);
        CHECK_EQ(lines.count[QUIRE_LOG_WARNING], rows[i].warnings);
        CHECK_EQ(lines.count[QUIRE_LOG_INFO], rows[i].infos);
        CHECK_EQ(lines.count[QUIRE_LOG_DEBUG], rows[i].debugs);
        if (rows[i].level == QUIRE_LOG_WARNING)
            CHECK_STR(lines.text,
                      "memory 'weights' still holds 'layer': 512 B at page 0 offset 0\n"
                      "memory 'weights' still holds '(unnamed)': 256 B at page 0 offset 512\n"
                      "device 'fake device' is not destroyed: 1 live memory: 'weights'\n");
        if (rows[i].level != QUIRE_LOG_DEBUG)
            continue;
        CHECK_HAS(lines.text,
                  "device 'fake device' opened: backend fake, 2 heaps, 4 memory kinds\n");
        CHECK_HAS(lines.text, "memory 'weights' made: kind 0 (DEVICE_LOCAL), pages of 4 KiB\n");
        CHECK_HAS(lines.text, "memory 'weights' destroyed\n");
        CHECK_HAS(lines.text, "device 'fake device' closed\n");
        CHECK_HAS(lines.text, "memory 'weights': page 0 made, 4 KiB\n");
        CHECK_HAS(lines.text, "memory 'weights': pages given back: 1, 4 KiB\n");
    }
}

UNIT(device_end, without_a_sink_nothing_is_logged)
{
    fake_backend fake;
    fake_init(&fake);
    quire_device *device = NULL;
    quire_device_options options = {.host_memory = unit_memory(),
                                    .log = {NULL, NULL, QUIRE_LOG_DEBUG}};
    CHECK_OK(quire_device_create(&fake.table, &fake, &options, &device));
    CHECK_OK(quire_device_destroy(&device));
}
