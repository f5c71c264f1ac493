/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * export.c - quire export: replays a trace up to one event and writes the memory, with what
 * happened in it, as a file that another program shows; or writes the trace itself as text.
 */
#include <inttypes.h>
#include <string.h>

#include "quire/export.h"
#include "src/base/result.h"
#include "src/tool/export/export.h"

static quire_result export_vma(void *history, quire_sink sink, void *user)
{
    const export_history *h = history;
    return quire_memory_write_vma(h->setup->memory, sink, user);
}

static quire_result export_csv(void *history, quire_sink sink, void *user)
{
    const export_history *h = history;
    return quire_trace_write_csv(h->setup->trace, sink, user);
}

static const struct {
    const char *word;
    quire_result (*write)(void *history, quire_sink sink, void *user);
    const char *at; /* the default of --at; NULL: the format has the trace, and needs no replay */
    bool sampled;   /* it has the sums of the memory after each event */
} FORMATS[] = {
    {"memory_viz", export_memory_viz, "peak", false},
    {"vma", export_vma, "peak", false},
    {"perfetto", export_perfetto, "end", true},
    {"csv", export_csv, NULL, false},
};

enum { FORMAT_COUNT = sizeof FORMATS / sizeof *FORMATS };

typedef struct export_run {
    replay_setup setup;
    export_history history;
    const char *format; /* a word of FORMATS */
    int form;           /* its index */
    const char *at;     /* "peak", "end" or a number of events; NULL means the format's */
    output file;
    progress bar;
} export_run;

/* Returns the index of a format, or FORMAT_COUNT. */
static int find_format(const char *word)
{
    int i = 0;
    while (i < FORMAT_COUNT && strcmp(FORMATS[i].word, word))
        i++;
    return i;
}

/* The replay calls this before each event, whose number the history needs. */
static bool on_progress(void *user, uint64_t done, uint64_t total)
{
    export_run *e = user;
    if (done && FORMATS[e->form].sampled)
        history_sample(&e->history);
    e->history.now = done;
    return show_progress_of_each(&e->bar, done, total);
}

static int write_file(export_run *e, uint64_t count)
{
    const bool is_silent = is_standard(e->file.path);
    if (!write_output(&e->file, FORMATS[e->form].write, &e->history))
        return EXIT_FAILED;
    if (is_silent)
        return EXIT_OK;
    print_clean(stdout, "%s", e->setup.path);
    printf(" after event %" PRIu64 " of %" PRIu64 ": ", count, e->setup.info.event_count);
    print_clean(stdout, "%s", e->file.path);
    printf("\n");
    return EXIT_OK;
}

/* A refused allocation is in the file, and makes the command fail after it. */
static int play(const command *self, export_run *e)
{
    uint64_t count = 0;
    int code = read_moment(self, &e->setup, e->at ? e->at : FORMATS[e->form].at, &count);
    if (code >= 0)
        return code;
    if (!open_output(&e->file) || !history_begin(&e->history, &e->setup))
        return EXIT_FAILED;
    quire_replay_options options = {
        .event_count = count,
        .keep = true,
        .name = true,
        .progress = on_progress,
        .user = e,
        .progress_events = 1,
        .time = &e->setup.time,
    };
    quire_replay_report report;
    quire_result result = quire_trace_replay(e->setup.trace, e->setup.memory, &options, &report);
    end_progress(&e->bar);
    const bool is_complete = history_stop(&e->history);
    if (result)
        return fail_with_last_error();
    if (!is_complete)
        return EXIT_FAILED;
    const int refused = report.failures ? fail_with_last_error() : EXIT_OK;
    code = write_file(e, count);
    return refused ? refused : code;
}

/* Writes the trace without a replay. */
static int convert(export_run *e)
{
    e->history.setup = &e->setup;
    const int code = load_trace(e->setup.path, &e->setup.trace, &e->setup.info);
    if (code >= 0)
        return code;
    return open_output(&e->file) ? write_file(e, e->setup.info.event_count) : EXIT_FAILED;
}

/* Whether an option was given that only a replay has. */
static bool has_replay_option(const export_run *e)
{
    const device_choice *device = &e->setup.choice;
    const memory_choice *memory = &e->setup.memory_choice;
    bool given = e->at || device->backend || device->profile || device->device || device->plugin ||
                 device->plugin_device || memory->file || memory->preset;
    for (size_t i = 0; i < QI_MEMBER_COUNT; i++)
        given = given || memory->given[i];
    return given;
}

int run_export(const command *self, int argc, char **argv)
{
    export_run e = {.bar = {.what = "export"}};
    replay_setup *p = &e.setup;
    option_spec specs[MAX_OPTIONS] = {
        {"format", "FORMAT", "memory_viz, vma (for GpuMemDumpVis), perfetto or csv", OPTION_TEXT,
         &e.format},
        {"output", "FILE", "the file to write (-: standard output)", OPTION_TEXT, &e.file.path},
        {"at", "WHEN", "up to peak, end or N events (default: by the format)", OPTION_TEXT, &e.at},
        DEVICE_OPTIONS(&p->choice),
    };
    size_t count = count_options(specs);
    count += list_member_flags(specs + count, &p->memory_choice);
    int code = parse_options(self, argc, argv, specs, count, &p->path);
    if (code >= 0)
        return code;
    e.form = e.format ? find_format(e.format) : FORMAT_COUNT;
    if (e.form == FORMAT_COUNT)
        return bad_usage(self, "--format takes memory_viz, vma, perfetto or csv");
    if (!e.file.path)
        return bad_usage(self, "--output FILE is missing");
    if (is_same_file(e.file.path, p->path))
        return bad_usage(self, "the trace and --output must be different files");
    if (!FORMATS[e.form].at && has_replay_option(&e))
        return bad_usage(self, "--format %s takes no other option than --output", e.format);
    code = FORMATS[e.form].at ? open_replay(self, p) : convert(&e);
    if (code < 0)
        code = play(self, &e);
    history_end(&e.history);
    close_output(&e.file);
    return close_replay(p, code);
}
