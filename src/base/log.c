/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * log.c - formats a log line, makes it printable, and passes it to the sink and, if QUIRE_LOG says
 * so, to standard error; the thread's last error stays.
 */
#include "src/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/atomic.h"
#include "src/base/result.h"
#include "src/base/text.h"
#include "src/base/thread.h"

enum { LINE_SIZE = 1024 };

/* ---- the variable QUIRE_LOG --------------------------------------------------------------- */

static const char *const NAMES[] = {"", "error", "warning", "info", "debug"};

/* Lines up to this level go to standard error; 0: none. */
static qi_atomic_u32 stderr_level;

void qi_log_read_environment(void)
{
    const char *wanted = secure_getenv("QUIRE_LOG");
    uint32_t level = 0;
    for (uint32_t i = QUIRE_LOG_ERROR; wanted && i <= QUIRE_LOG_DEBUG; i++)
        if (!strcmp(wanted, NAMES[i]))
            level = i;
    if (wanted && *wanted && !level) {
        char text[64];
        snprintf(text, sizeof text, "%s", wanted);
        qi_make_printable(text);
        fprintf(stderr, "quire: QUIRE_LOG is '%s': error, warning, info or debug\n", text);
    }
    qi_atomic_store_release_u32(&stderr_level, level);
}

/* ---- lines -------------------------------------------------------------------------------- */

/* Whether the caller's sink wants the line. */
static bool is_wanted(const quire_log *log, quire_log_level level)
{
    quire_log_level max = log->level == QUIRE_LOG_DEFAULT ? QUIRE_LOG_WARNING : log->level;
    return log->write && max != QUIRE_LOG_NONE && level <= max;
}

static bool is_written(const quire_log *log, quire_log_level level)
{
    return is_wanted(log, level) || level <= qi_atomic_load_u32(&stderr_level);
}

/* The sink may call quire and fail: the thread's last error is saved around the call. */
static void write_line(const quire_log *log, quire_log_level level, char line[LINE_SIZE])
{
    qi_make_printable(line);
    if (level <= qi_atomic_load_u32(&stderr_level))
        fprintf(stderr, "quire: %s: %s\n", NAMES[level], line);
    if (!is_wanted(log, level))
        return;
    qi_error saved;
    qi_error_save(&saved);
    log->write(log->user, level, line);
    qi_error_restore(&saved);
}

void qi_log(const quire_log *log, quire_log_level level, const char *format, ...)
{
    qi_transit_assert_none();
    if (!is_written(log, level))
        return;
    char line[LINE_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    write_line(log, level, line);
}

void qi_log_message(const quire_log *log, quire_log_level level, const char *source, const char *id,
                    const char *message)
{
    if (!is_written(log, level))
        return;
    char line[LINE_SIZE];
    snprintf(line, sizeof line, "%s: %s%s%s", source, id, *id ? ": " : "", message);
    write_line(log, level, line);
}
