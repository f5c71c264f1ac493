/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * settings.c - options of an allocator from environment variables.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quire/backend.h"
#include "src/adapters/host_allocator/host_allocator.h"
#include "src/base/process.h"

static const char TRACE[] = "TRACE";

/* Reads a decimal number with an optional suffix k, m or g. */
static bool parse_bytes(const char *text, uint64_t *value)
{
    if (*text < '0' || *text > '9')
        return false;
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    unsigned shift = 0;
    if (*end) {
        const char *suffixes = "kmg", *suffix = strchr(suffixes, *end | 0x20);
        if (!suffix || end[1])
            return false;
        shift = 10 * (unsigned)(suffix - suffixes + 1);
    }
    *value = (uint64_t)number << shift;
    return !errno && *value >> shift == number;
}

/* Reads a number up to `most`; a variable that is not set leaves it. */
static quire_result read_number(const char *prefix, const char *name, uint64_t most,
                                uint64_t *value)
{
    const char *text = qi_variable(prefix, name);
    uint64_t number;
    if (!text)
        return QUIRE_SUCCESS;
    if (!parse_bytes(text, &number) || number > most)
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                                  "%s%s is \"%s\"; it must be a number of at most %llu, with k, m "
                                  "or g for powers of 1024",
                                  prefix, name, text, (unsigned long long)most);
    *value = number;
    return QUIRE_SUCCESS;
}

static void say(void *user, const char *sentence)
{
    (void)user;
    fprintf(stderr, "quire: %s\n", sentence);
}

quire_result host_allocator_read_environment(const char *prefix, host_allocator_options *options)
{
    if (!prefix || !options)
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                                  prefix ? "options is NULL" : "prefix is NULL");
    host_allocator_options read = *options;
    uint64_t shards = read.shards, huge_pages = read.huge_pages;
    const struct {
        const char *name;
        uint64_t most, *value;
    } numbers[] = {
        {"PAGE_SIZE", UINT64_MAX, &read.page_size},
        {"LIMIT", UINT64_MAX, &read.limit},
        {"RETAIN", UINT64_MAX, &read.retained_empty_bytes},
        {"CACHE", UINT64_MAX, &read.cached_bytes},
        {"SHARDS", 64, &shards},
        {"HUGE_PAGES", 1, &huge_pages},
    };
    enum { NUMBERS = sizeof numbers / sizeof *numbers };
    const char *names[NUMBERS + 1] = {TRACE};
    char begin[QI_MAX_VARIABLE + 1];
    snprintf(begin, sizeof begin, "%s_", prefix);
    for (size_t i = 0; i < NUMBERS; i++) {
        quire_result result =
            read_number(begin, numbers[i].name, numbers[i].most, numbers[i].value);
        if (result)
            return result;
        names[i + 1] = numbers[i].name;
    }
    qi_find_unknown_variables(begin, names, NUMBERS + 1, say, NULL);
    read.shards = (uint32_t)shards;
    read.huge_pages = huge_pages;
    const char *path = qi_variable(begin, TRACE);
    if (path)
        read.trace_file = path;
    *options = read;
    return QUIRE_SUCCESS;
}
