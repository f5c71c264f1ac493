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

/* As qi_output_open, as a stream; `mode` is that of fdopen(3). Returns NULL and sets errno on
   failure. */
FILE *layer_open_stream(const char *path, int flags, const char *mode);

/* Reports a file that was not opened. Reads errno. */
void layer_warn_file(const char *path);

#endif
