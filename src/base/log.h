/*
 * log.h - one line to the caller's log sink. Never called under a lock of the library.
 */
#ifndef QUIRE_SRC_BASE_LOG_H
#define QUIRE_SRC_BASE_LOG_H

#include "quire/base.h"

void qi_log(const quire_log *log, quire_log_level level, const char *format, ...)
    QUIRE_PRINTF(3, 4);

#endif
