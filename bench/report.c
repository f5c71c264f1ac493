/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * report.c - see report.h.
 */
#include "bench/report.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/ticks.h"
#include "quire/quire.h"

/* ---- command line ------------------------------------------------------------------------- */

_Noreturn void usage_error(const usage *u, const char *what, const char *word)
{
    fprintf(stderr, "%s: %s '%s'\n%s", u->program, what, word, u->text);
    exit(EXIT_USAGE);
}

uint64_t usage_number(const usage *u, const char *text, uint64_t max)
{
    char *end = NULL;
    unsigned long long value = strtoull(text, &end, 10);
    if (*end || end == text || *text == '-' || !value || value > max)
        usage_error(u, "not a number in range:", text);
    return value;
}

/* ---- the machine -------------------------------------------------------------------------- */

uint64_t processor_count(void)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return processors > 0 ? (uint64_t)processors : 1;
}

/* The model name of the first processor, or "unknown". */
static void processor_name(char *name, size_t size)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(name, size, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        const char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !value)
            continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(name, size, "%s", value + 2);
        break;
    }
    if (file)
        fclose(file);
}

static void write_machine(qi_json *json)
{
    char processor[200];
    processor_name(processor, sizeof processor);
    qi_json_object(json, "machine");
    qi_json_text(json, "processor", processor);
    qi_json_number(json, "processors", processor_count());
    qi_json_text(json, "compiler", __VERSION__);
    qi_json_text(json, "clock", the_clock.is_counter ? "time-stamp counter" : "monotonic");
    qi_json_real(json, "empty_group_ns", (double)the_clock.empty * the_clock.ns);
    qi_json_end_object(json);
}

void report_clock(void)
{
    printf("clock: %s, a pair of readings %.1f ns\n",
           the_clock.is_counter ? "time-stamp counter" : "monotonic",
           (double)the_clock.empty * the_clock.ns);
}

/* ---- the document ------------------------------------------------------------------------- */

/* A sink that accepts and drops the text if no file is open. */
static bool write_to_file(void *file, const char *text, size_t size)
{
    return !file || fwrite(text, 1, size, file) == size;
}

bool document_begin(document *d, const char *path, uint64_t reps)
{
    d->path = path;
    d->file = path ? fopen(path, "w") : NULL;
    if (path && !d->file) {
        perror(path);
        return false;
    }
    qi_json_init(&d->json, write_to_file, d->file);
    qi_json_object(&d->json, NULL);
    qi_json_text(&d->json, "version", quire_version());
    write_machine(&d->json);
    qi_json_number(&d->json, "reps", reps);
    return true;
}

int document_end(document *d, const char *program)
{
    qi_json_end_object(&d->json);
    bool bad = qi_json_finish(&d->json);
    if (d->file && (fclose(d->file) || bad)) {
        fprintf(stderr, "%s: %s cannot be written\n", program, d->path);
        return 1;
    }
    return 0;
}

void write_spread(qi_json *json, const char *key, spread s)
{
    qi_json_object(json, key);
    qi_json_real(json, "min", s.min);
    qi_json_real(json, "median", s.median);
    qi_json_end_object(json);
}
