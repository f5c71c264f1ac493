/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * settings.c - a table has each variable with the function that reads it. Also writes lines.
 */
#include "src/adapters/vulkan_layer/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "quire/memory.h"
#include "src/base/atomic.h"
#include "src/base/process.h"
#include "src/base/text.h"

/* ---- lines -------------------------------------------------------------------------------- */

void layer_say(const char *format, ...)
{
    char line[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    qi_make_printable(line);
    fprintf(stderr, "VK_LAYER_QUIRE_suballocate: %s\n", line);
}

void layer_warn_file(const char *path)
{
    layer_say("%s cannot be written%s", path, errno == ENXIO ? ": nothing reads it" : "");
}

/* ---- readers ------------------------------------------------------------------------------ */

/* Each reader parses a text into *out and returns whether the text is valid. */

/* A number with an optional unit: "4096", "64K", "32M", "1G". */
static bool read_bytes(const char *text, void *out)
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
    if (errno || *size > UINT64_MAX >> shift)
        return false;
    *size <<= shift;
    return !rest[unit != NULL];
}

static bool read_size(const char *text, void *out)
{
    return read_bytes(text, out) && *(uint64_t *)out;
}

static bool read_retained(const char *text, void *out)
{
    uint64_t *retained = out;
    bool is_valid = read_bytes(text, out);
    *retained = *retained ? *retained : QUIRE_RETAIN_NONE;
    return is_valid;
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

/* ---- the variables ------------------------------------------------------------------------ */

static const char PREFIX[] = "QUIRE_LAYER_";
static const char SIZE[] = "bytes, at least 1, for example 65536, 64M or 1G";

static const struct {
    const char *name; /* after the prefix */
    bool (*read)(const char *text, void *out);
    size_t member; /* offset of what it sets */
    const char *expected;
} VARIABLES[] = {
    {"PAGE_SIZE", read_size, offsetof(layer_settings, page_size), SIZE},
    {"THRESHOLD", read_size, offsetof(layer_settings, threshold), SIZE},
    {"RETAIN", read_retained, offsetof(layer_settings, retained),
     "bytes, for example 0, 64M or 1G"},
    {"FIT", read_fit, offsetof(layer_settings, fit), "segregated, first or buddy"},
    {"DEDICATED", read_dedicated, offsetof(layer_settings, takes_dedicated), "pass or suballocate"},
    {"ZERO", read_switch, offsetof(layer_settings, zeroes), "on or off"},
    {"STATS", read_statistics, offsetof(layer_settings, statistics), "text or json"},
    {"STATS_FILE", read_path, offsetof(layer_settings, statistics_file), "a path"},
    {"TRACE", read_path, offsetof(layer_settings, trace_file), "a path"},
    {"INFO", read_switch, offsetof(layer_settings, is_announced), "on or off"},
};

enum { VARIABLE_COUNT = sizeof VARIABLES / sizeof *VARIABLES };

static void say_unknown(void *user, const char *sentence)
{
    (void)user;
    layer_say("%s", sentence);
}

/* Once in a process: some programs create hundreds of devices. */
static void warn_of_unknown(void)
{
    static qi_atomic_u32 is_done;
    const char *names[VARIABLE_COUNT];
    if (!qi_atomic_take_u32(&is_done, false, true))
        return;
    for (size_t i = 0; i < VARIABLE_COUNT; i++)
        names[i] = VARIABLES[i].name;
    qi_find_unknown_variables(PREFIX, names, VARIABLE_COUNT, say_unknown, NULL);
}

bool layer_read_settings(layer_settings *settings)
{
    bool is_valid = true;
    *settings = (layer_settings){
        .fit = QUIRE_FIT_SEGREGATED,
        .is_announced = isatty(STDERR_FILENO),
    };
    warn_of_unknown();
    for (size_t i = 0; i < VARIABLE_COUNT; i++) {
        const char *text = qi_variable(PREFIX, VARIABLES[i].name);
        if (text && !VARIABLES[i].read(text, (char *)settings + VARIABLES[i].member)) {
            layer_say("%s%s is '%.1000s', expected %s", PREFIX, VARIABLES[i].name, text,
                      VARIABLES[i].expected);
            is_valid = false;
        }
    }
    if (*settings->statistics_file && settings->statistics == LAYER_NO_STATISTICS)
        settings->statistics = LAYER_TEXT;
    return is_valid;
}

const char *layer_page_size_text(void)
{
    const char *text = qi_variable(PREFIX, "PAGE_SIZE");
    return text ? text : "";
}

void layer_describe_settings(char *text, size_t size)
{
    size_t length = 0;
    *text = 0;
    for (size_t i = 0; i < VARIABLE_COUNT && length < size; i++) {
        const char *value = qi_variable(PREFIX, VARIABLES[i].name);
        if (value && VARIABLES[i].member != offsetof(layer_settings, is_announced))
            length += (size_t)snprintf(text + length, size - length, ", %s%s=%s", PREFIX,
                                       VARIABLES[i].name, value);
    }
}
