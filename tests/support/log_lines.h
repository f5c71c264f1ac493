/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * log_lines.h - a log sink that keeps all lines.
 */
#ifndef QUIRE_TESTS_SUPPORT_LOG_LINES_H
#define QUIRE_TESTS_SUPPORT_LOG_LINES_H

#include <stdio.h>
#include <string.h>

#include "quire/base.h"

typedef struct log_lines {
    char text[16384]; /* the lines, each with its end */
} log_lines;

/* quire_log.write; `user` is the log_lines. */
static inline void log_lines_keep(void *user, quire_log_level level, const char *line)
{
    log_lines *lines = user;
    size_t length = strlen(lines->text);
    (void)level;
    snprintf(lines->text + length, sizeof lines->text - length, "%s\n", line);
}

#endif
