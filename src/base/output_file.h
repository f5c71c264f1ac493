/*
 * output_file.h - files that a process records to while it runs.
 *
 * The functions have no state. Those that fail return -1 and set errno. The caller closes a file.
 */
#ifndef QUIRE_SRC_BASE_OUTPUT_FILE_H
#define QUIRE_SRC_BASE_OUTPUT_FILE_H

#include <stddef.h>

/* Opens or creates a file to write; `flags` are further flags of open. Never waits: a pipe that
   nobody reads is ENXIO. */
int qi_output_open(const char *path, int flags);

/*
 * Like qi_output_open, and locks the file until it is closed. If another process has the lock, for
 * example a parent with the same environment, the process id is appended to `path`, an array of
 * `capacity` bytes. Names that are extended can be guessed: links under them are not followed.
 */
int qi_output_open_own(char *path, size_t capacity, int flags);

/* Writes all bytes. Returns 0, or the errno of the failure. */
int qi_output_write(int file, const char *text, size_t size);

#endif
