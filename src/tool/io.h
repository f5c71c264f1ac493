/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * io.h - what the tool reads and prints: text, whole files and the progress bar.
 *
 * Text may contain parts of a file, an argument or a driver's answer. None of it reaches the
 * terminal as a control sequence.
 */
#ifndef QUIRE_SRC_TOOL_IO_H
#define QUIRE_SRC_TOOL_IO_H

#include <stdarg.h>
#include <stdio.h>

#include "quire/base.h"

/* ---- text --------------------------------------------------------------------------------- */

/*
 * Like fprintf, but replaces control characters, including line ends, and bytes that are not UTF-8
 * with '?'. This applies to the format as well as to the arguments.
 */
void print_clean(FILE *out, const char *format, ...) QUIRE_PRINTF(2, 3);
void vprint_clean(FILE *out, const char *format, va_list args) QUIRE_PRINTF(2, 0);

/* Prints one line on standard error, with the same replacements. */
void print_problem(const char *format, ...) QUIRE_PRINTF(1, 2);

/* Columns of the terminal on standard output, at least 40; 80 if it is none. */
int output_width(void);

/* Lines of that terminal; 24 if it is none. */
int output_height(void);

/* Whether the locale's character set is UTF-8. */
bool is_utf8_output(void);

/* Prints words with line breaks at blanks, so that no line is wider than the output, and a final
   line break. Every line begins with `indent` blanks. */
void print_wrapped(int indent, const char *format, ...) QUIRE_PRINTF(2, 3);

/* Returns "s", or "" if the count is 1. */
const char *plural(uint64_t count);

/* ---- files -------------------------------------------------------------------------------- */

/*
 * Reads a whole file, or standard input for "-", and appends a zero byte. Prints the error and
 * returns NULL if the file is unreadable. The caller frees the text.
 */
char *read_file(const char *path, size_t *size);

/*
 * Reads a JSON file. Prints the error and returns NULL if it is unreadable or no JSON. The caller
 * releases the value with json_decref. Only callers include jansson.h, hence the declaration.
 */
struct json_t;
struct json_t *read_json(const char *path);

/* A quire_sink that writes to a FILE. */
bool write_to_file(void *file, const char *text, size_t size);

/* A file that a command writes after its work. `path` is the target of an option. */
typedef struct output {
    const char *path; /* "-" means standard output; NULL means no output */
    FILE *file;       /* NULL unless open */
} output;

/* Whether a path is "-". */
bool is_standard(const char *path);

/* Opens the output if it has a path, so that an error shows before the work. Prints the error and
   returns false. */
bool open_output(output *o);

/* Calls `write` with a sink for an open output, then closes it. Prints the error, returns false. */
bool write_output(output *o, quire_result (*write)(void *subject, quire_sink sink, void *user),
                  void *subject);

/* Closes an output that was not written. */
void close_output(output *o);

/* Whether two paths lead to the same regular file; false if one is NULL or "-". */
bool is_same_file(const char *one, const char *other);

/* ---- progress ----------------------------------------------------------------------------- */

/* A progress bar on standard error. It is drawn only if standard error is a terminal. */
typedef struct progress {
    const char *what; /* name of the work */
    bool shown;
    uint64_t last_drawn; /* in milliseconds */
} progress;

/*
 * Draws the bar, at most ten times per second. A callback of quire_replay_options; `user` is a
 * progress. Always returns true.
 */
bool show_progress(void *user, uint64_t done, uint64_t total);

/* The same for a callback of each event, most of which draw nothing. */
bool show_progress_of_each(progress *bar, uint64_t done, uint64_t total);

/* Erases the bar. */
void end_progress(progress *bar);

#endif
