/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * log.h - writes one line to the caller's log sink.
 */
#ifndef QUIRE_SRC_BASE_LOG_H
#define QUIRE_SRC_BASE_LOG_H

#include "quire/base.h"

/* Requires that the thread holds no lock and has no page in transit (thread.h). */
void qi_log(const quire_log *log, quire_log_level level, const char *format, ...)
    QUIRE_PRINTF(3, 4);

/*
 * Logs a message that a driver reports from inside one of its calls, where the thread may have a
 * page in transit. The sink must not call quire for such a message; the documentation of the
 * backend states this. The line is "source: id: message", or "source: message" if `id` is empty.
 */
void qi_log_message(const quire_log *log, quire_log_level level, const char *source, const char *id,
                    const char *message);

/* Reads the variable QUIRE_LOG, a level: lines up to it also go to standard error. Called when a
   device is created. No other thread may change the environment. */
void qi_log_read_environment(void);

#endif
