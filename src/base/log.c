/*
 * log.c - formats a log line, makes it printable and calls the sink; the thread's last error stays.
 */
#include "src/base/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "src/base/result.h"
#include "src/base/text.h"
#include "src/base/transit.h"

enum { LINE_SIZE = 1024 };

static bool is_written(const quire_log *log, quire_log_level level)
{
    quire_log_level max = log->level == QUIRE_LOG_DEFAULT ? QUIRE_LOG_WARNING : log->level;
    return log->write && max != QUIRE_LOG_NONE && level <= max;
}

/* The sink may call quire and fail: the thread's last error is saved around the call. */
static void write_line(const quire_log *log, quire_log_level level, char line[LINE_SIZE])
{
    qi_make_printable(line);
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
