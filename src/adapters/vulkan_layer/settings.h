/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * settings.h - the settings of the layer, read from environment variables (docs/vulkan_layer.md),
 * and its lines on the standard error stream.
 */
#ifndef QUIRE_SRC_ADAPTERS_VULKAN_LAYER_SETTINGS_H
#define QUIRE_SRC_ADAPTERS_VULKAN_LAYER_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "quire/base.h"
#include "quire/space.h"

/* ---- lines -------------------------------------------------------------------------------- */

/*
 * Writes one line, which begins with the name of the layer. Control characters, which paths and
 * values of the environment may contain, become '?'. The line is truncated at 2 KiB.
 */
void layer_say(const char *format, ...) QUIRE_PRINTF(1, 2);

/* Reports a file that was not opened. Reads errno. */
void layer_warn_file(const char *path);

/* ---- settings ----------------------------------------------------------------------------- */

enum { LAYER_MAX_PATH = 1023 };

typedef enum layer_statistics { LAYER_NO_STATISTICS = 0, LAYER_TEXT, LAYER_JSON } layer_statistics;

typedef struct layer_settings {
    uint64_t page_size; /* bytes; 0: pages follow use, as in a memory of quire by default */
    uint64_t threshold; /* bytes; allocations of at least this size are passed on; 0: half of the
                           largest page */
    uint64_t retained; /* bytes of empty pages to keep, or QUIRE_RETAIN_NONE; 0: the largest page */
    quire_fit fit;
    bool takes_dedicated; /* suballocate dedicated allocations whose resource does not require it */
    bool zeroes;          /* ranges are zeroed by the host; what is not host-visible is passed on */
    bool is_announced; /* a line says that the layer is active; default: if stderr is a terminal */
    layer_statistics statistics;              /* text if only the file is set */
    char statistics_file[LAYER_MAX_PATH + 1]; /* "": stderr */
    char trace_file[LAYER_MAX_PATH + 1];      /* "": no trace */
} layer_settings;

/* Reads the settings. Returns false, and writes a line to stderr, if a variable is invalid. The
   first call in a process also reports variables that begin with QUIRE_LAYER_ and are unknown. */
bool layer_read_settings(layer_settings *settings);

/* Returns the value of QUIRE_LAYER_PAGE_SIZE as the user wrote it. "": it is not set. */
const char *layer_page_size_text(void);

/* Writes ", NAME=value" for each variable that is set, but QUIRE_LAYER_INFO; truncates the text. */
void layer_describe_settings(char *text, size_t size);

#endif
