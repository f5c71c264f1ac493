/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * log.c - which lines reach the sink, and their format.
 */
#include "src/base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "quire/space.h"
#include "tests/support/unit.h"

typedef struct sink {
    int lines;
    quire_log_level level;
    char line[4096];
} sink;

static void keep_line(void *user, quire_log_level level, const char *line)
{
    sink *s = user;
    s->lines++;
    s->level = level;
    CHECK(strlen(line) < sizeof s->line);
    memcpy(s->line, line, strlen(line) + 1);
}

static int lines_written(quire_log_level max, quire_log_level level)
{
    sink s = {0};
    quire_log log = {.write = keep_line, .user = &s, .level = max};
    qi_log(&log, level, "a line");
    CHECK(!s.lines || s.level == level);
    return s.lines;
}

UNIT(log, lines_up_to_the_level_are_written)
{
    for (int max = QUIRE_LOG_ERROR; max <= QUIRE_LOG_DEBUG; max++)
        for (int level = QUIRE_LOG_ERROR; level <= QUIRE_LOG_DEBUG; level++)
            CHECK_EQ(lines_written((quire_log_level)max, (quire_log_level)level), level <= max);
}

UNIT(log, level_0_means_warning)
{
    CHECK_EQ(lines_written(QUIRE_LOG_DEFAULT, QUIRE_LOG_ERROR), 1);
    CHECK_EQ(lines_written(QUIRE_LOG_DEFAULT, QUIRE_LOG_WARNING), 1);
    CHECK_EQ(lines_written(QUIRE_LOG_DEFAULT, QUIRE_LOG_INFO), 0);
    CHECK_EQ(lines_written(QUIRE_LOG_DEFAULT, QUIRE_LOG_DEBUG), 0);
    CHECK_EQ(lines_written(QUIRE_LOG_NONE, QUIRE_LOG_ERROR), 0);
    CHECK_EQ(lines_written(QUIRE_LOG_NONE, QUIRE_LOG_DEBUG), 0);
}

UNIT(log, without_a_sink_nothing_happens)
{
    quire_log log = {.level = QUIRE_LOG_DEBUG};
    qi_log(&log, QUIRE_LOG_ERROR, "%s", "nobody listens");
    CHECK_EQ(log.level, QUIRE_LOG_DEBUG);
}

UNIT(log, a_line_is_formatted_and_has_no_line_end)
{
    sink s = {0};
    quire_log log = {.write = keep_line, .user = &s};
    qi_log(&log, QUIRE_LOG_WARNING, "%d of %s", 3, "four");
    CHECK_STR(s.line, "3 of four");
    qi_log(&log, QUIRE_LOG_ERROR, "second");
    CHECK_STR(s.line, "second");
    CHECK_EQ(s.level, QUIRE_LOG_ERROR);
    CHECK_EQ(s.lines, 2);
}

UNIT(log, a_long_line_is_cut_and_ended)
{
    sink s = {0};
    quire_log log = {.write = keep_line, .user = &s};
    char text[3000];
    memset(text, 'z', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    qi_log(&log, QUIRE_LOG_ERROR, "%s", text);
    CHECK_EQ(strlen(s.line), 1023);
    CHECK_EQ(strspn(s.line, "z"), 1023);
    text[1023] = '\0';
    qi_log(&log, QUIRE_LOG_ERROR, "%s", text);
    CHECK_STR(s.line, text);
}

static void fail_within(void *user, quire_log_level level, const char *line)
{
    keep_line(user, level, line);
    CHECK_FAILS(quire_space_create(NULL, NULL), QUIRE_ERROR_INVALID_ARGUMENT);
}

UNIT(log, a_failing_call_in_a_sink_keeps_the_last_error)
{
    sink s = {0};
    quire_log log = {.write = fail_within, .user = &s};
    CHECK_FAILS(quire_space_clear(NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "quire_space_clear");
    qi_log(&log, QUIRE_LOG_ERROR, "a line");
    CHECK_EQ(s.lines, 1);
    CHECK_HAS(quire_last_error(), "quire_space_clear");
}

/* ---- QUIRE_LOG ------------------------------------------------------------------------------ */

/* Writes lines of each level and returns what reaches standard error with this variable. */
static const char *heard_with(const char *variable, const quire_log *log)
{
    static char text[4096];
    FILE *file = tmpfile();
    CHECK(file != NULL);
    fflush(stderr);
    int before = dup(2);
    CHECK(before >= 0 && dup2(fileno(file), 2) == 2);
    if (variable)
        setenv("QUIRE_LOG", variable, 1);
    qi_log_read_environment();
    unsetenv("QUIRE_LOG");
    qi_log(log, QUIRE_LOG_ERROR, "lost %d", 1);
    qi_log(log, QUIRE_LOG_INFO, "made\n");
    qi_log_message(log, QUIRE_LOG_WARNING, "vulkan", "", "odd");
    qi_log_read_environment();
    qi_log(log, QUIRE_LOG_ERROR, "no more");
    fflush(stderr);
    CHECK(dup2(before, 2) == 2 && close(before) == 0);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

UNIT(log, the_variable_writes_lines_to_standard_error)
{
    sink s = {0};
    const quire_log none = {.write = NULL}, some = {.write = keep_line, .user = &s};
    CHECK_STR(heard_with(NULL, &none), "");
    CHECK_STR(heard_with("error", &none), "quire: error: lost 1\n");
    CHECK_STR(heard_with("warning", &none), "quire: error: lost 1\nquire: warning: vulkan: odd\n");
    CHECK_STR(heard_with("debug", &none), "quire: error: lost 1\nquire: info: made?\n"
                                          "quire: warning: vulkan: odd\n");
    CHECK_STR(heard_with("info", &some), "quire: error: lost 1\nquire: info: made?\n"
                                         "quire: warning: vulkan: odd\n");
    CHECK_EQ(s.lines, 3); /* as without the variable: two, and that after it */
    CHECK_STR(heard_with("", &none), "");
    CHECK_STR(heard_with("loud\033", &none),
              "quire: QUIRE_LOG is 'loud?': error, warning, info or debug\n");
}
