/*
 * settings.h - what the environment asks of the layer; docs/vulkan_layer.md has the variables.
 */
#ifndef QUIRE_SRC_ADAPTERS_VULKAN_LAYER_SETTINGS_H
#define QUIRE_SRC_ADAPTERS_VULKAN_LAYER_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "quire/space.h"

enum { LAYER_LONGEST_PATH = 1023 };

typedef enum layer_statistics { LAYER_NO_STATISTICS = 0, LAYER_TEXT, LAYER_JSON } layer_statistics;

typedef struct layer_settings {
    uint64_t page_size; /* bytes; 0: quire's default */
    uint64_t threshold; /* bytes from which on allocations are passed on; 0: half a page */
    uint64_t retained;  /* bytes of empty pages that are kept; 0: one page */
    quire_fit fit;
    bool takes_dedicated; /* those whose resource does not require it */
    layer_statistics statistics;
    char statistics_file[LAYER_LONGEST_PATH + 1]; /* "": stderr */
    char trace_file[LAYER_LONGEST_PATH + 1];      /* "": none */
} layer_settings;

/* False, with a line on stderr, where a variable cannot be read. */
bool layer_read_settings(layer_settings *settings);

#endif
