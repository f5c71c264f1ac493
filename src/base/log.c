/*
 * log.c - see log.h.
 */
#include "src/base/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "src/base/result.h"

enum { LINE_SIZE = 1024 };

void qi_log(const quire_log *log, quire_log_level level, const char *format, ...)
{
    quire_log_level most = log->level == QUIRE_LOG_NONE ? QUIRE_LOG_WARNING : log->level;
    if (!log->write || level > most)
        return;
    char line[LINE_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    qi_make_printable(line);
    qi_error saved = qi_error_save();
    log->write(log->user, level, line);
    qi_error_restore(&saved);
}
