/*
 * settings.c - reads the settings: see settings.h.
 *
 * In setuid programs secure_getenv ignores the environment, which could make them write files.
 */
#include "src/adapters/vulkan_layer/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/adapters/vulkan_layer/output.h"

/* Each reader parses a text into *out and returns whether the text is valid. */

/* A number above 0 with an optional unit: "4096", "64K", "32M", "1G". */
static bool read_size(const char *text, void *out)
{
    static const char UNITS[] = "KMG";
    uint64_t *size = out;
    char *rest = NULL;
    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    *size = strtoull(text, &rest, 10);
    const char *unit = *rest ? strchr(UNITS, toupper((unsigned char)*rest)) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - UNITS + 1) : 0;
    if (errno || !*size || *size > UINT64_MAX >> shift)
        return false;
    *size <<= shift;
    return !rest[unit != NULL];
}

static bool read_fit(const char *text, void *out)
{
    static const struct {
        const char *name;
        quire_fit fit;
    } FITS[] = {{"segregated", QUIRE_FIT_SEGREGATED},
                {"first", QUIRE_FIT_FIRST},
                {"buddy", QUIRE_FIT_BUDDY}};
    for (size_t i = 0; i < sizeof FITS / sizeof *FITS; i++)
        if (!strcmp(text, FITS[i].name)) {
            *(quire_fit *)out = FITS[i].fit;
            return true;
        }
    return false;
}

static bool read_dedicated(const char *text, void *out)
{
    *(bool *)out = !strcmp(text, "suballocate");
    return *(bool *)out || !strcmp(text, "pass");
}

static bool read_switch(const char *text, void *out)
{
    *(bool *)out = !strcmp(text, "on");
    return *(bool *)out || !strcmp(text, "off");
}

static bool read_statistics(const char *text, void *out)
{
    layer_statistics *form = out;
    *form = !strcmp(text, "text") ? LAYER_TEXT : LAYER_JSON;
    return *form == LAYER_TEXT || !strcmp(text, "json");
}

/* Makes a path absolute: the program may change its working directory before a file is written. */
static bool read_path(const char *text, void *out)
{
    char *path = out;
    size_t length = 0;
    if (*text != '/') {
        if (!getcwd(path, LAYER_MAX_PATH))
            return false;
        length = strlen(path);
        path[length++] = '/';
    }
    if (length + strlen(text) > LAYER_MAX_PATH)
        return false;
    memcpy(path + length, text, strlen(text) + 1);
    return true;
}

bool layer_read_settings(layer_settings *settings)
{
    const struct {
        const char *name;
        bool (*read)(const char *text, void *out);
        void *out;
        const char *expected;
    } VARIABLES[] = {
        {"QUIRE_LAYER_PAGE_SIZE", read_size, &settings->page_size,
         "bytes, for example 65536, 64M or 1G"},
        {"QUIRE_LAYER_THRESHOLD", read_size, &settings->threshold,
         "bytes, for example 65536, 64M or 1G"},
        {"QUIRE_LAYER_RETAIN", read_size, &settings->retained,
         "bytes, for example 65536, 64M or 1G"},
        {"QUIRE_LAYER_FIT", read_fit, &settings->fit, "segregated, first or buddy"},
        {"QUIRE_LAYER_DEDICATED", read_dedicated, &settings->takes_dedicated,
         "pass or suballocate"},
        {"QUIRE_LAYER_ZERO", read_switch, &settings->zeroes, "on or off"},
        {"QUIRE_LAYER_STATS", read_statistics, &settings->statistics, "text or json"},
        {"QUIRE_LAYER_STATS_FILE", read_path, settings->statistics_file, "a path"},
        {"QUIRE_LAYER_TRACE", read_path, settings->trace_file, "a path"},
    };
    bool is_valid = true;
    *settings = (layer_settings){.fit = QUIRE_FIT_SEGREGATED};
    for (size_t i = 0; i < sizeof VARIABLES / sizeof *VARIABLES; i++) {
        const char *text = secure_getenv(VARIABLES[i].name);
        if (text && *text && !VARIABLES[i].read(text, VARIABLES[i].out)) {
            layer_say("%s is '%.1000s', expected %s", VARIABLES[i].name, text,
                      VARIABLES[i].expected);
            is_valid = false;
        }
    }
    return is_valid;
}
