/*
 * log.h - one line to the caller's log sink.
 */
#ifndef QUIRE_SRC_BASE_LOG_H
#define QUIRE_SRC_BASE_LOG_H

#include "quire/base.h"

/* Without a lock, and while the thread has no page under way (transit.h). */
void qi_log(const quire_log *log, quire_log_level level, const char *format, ...)
    QUIRE_PRINTF(3, 4);

/*
 * The same for what a driver says from inside one of its calls, where a page may be under way. The
 * sink must not call quire for it, which the documentation of the backend has to say. The line is
 * "source: id: message", or "source: message" where `id` is empty.
 */
void qi_log_message(const quire_log *log, quire_log_level level, const char *source, const char *id,
                    const char *message);

#endif
