/*
 * output.h - what the layer writes: lines on the standard error stream, and files.
 */
#ifndef QUIRE_SRC_ADAPTERS_VULKAN_LAYER_OUTPUT_H
#define QUIRE_SRC_ADAPTERS_VULKAN_LAYER_OUTPUT_H

#include <stdio.h>

#include "quire/base.h"

/*
 * Writes one line, which begins with the name of the layer. Control characters, which paths and
 * values of the environment may contain, become '?'. The line is truncated at 2 KiB.
 */
void layer_say(const char *format, ...) QUIRE_PRINTF(1, 2);

/*
 * Opens a file for writing, and creates it if it does not exist. `flags` of open(2) are added. The
 * file is closed on exec. A pipe without a reader is an error (ENXIO), so that the program does not
 * wait for one; writing to a pipe blocks while it is full. Returns -1 and sets errno on failure.
 */
int layer_open_file(const char *path, int flags);
/* The same as a stream; `mode` is that of fdopen(3). Returns NULL on failure. */
FILE *layer_open_stream(const char *path, int flags, const char *mode);

/* Reports a file that layer_open_file did not open. Reads errno. */
void layer_warn_file(const char *path);

#endif
