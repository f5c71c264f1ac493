/*
 * map.c - quire map: replays a trace up to one event and prints the pages of the memory.
 */
#include <inttypes.h>
#include <string.h>

#include "src/tool/page_map.h"
#include "src/tool/replay_setup.h"

typedef struct map_run {
    replay_setup setup;
    const char *at; /* "peak", "end" or a number of events; NULL means peak */
    output svg;
    bool json;
    progress bar;
} map_run;

/* Converts --at into the number of events to replay. Returns false if the value is invalid. */
static bool events_until(const map_run *m, uint64_t *count)
{
    const quire_trace_info *info = &m->setup.info;
    *count = info->event_count;
    if (!m->at || !strcmp(m->at, "peak"))
        *count = info->event_count ? info->peak_event + 1 : 0;
    else if (strcmp(m->at, "end")) {
        char rest = 0;
        return *m->at >= '0' && *m->at <= '9' &&
               sscanf(m->at, "%" SCNu64 "%c", count, &rest) == 1 && *count &&
               *count <= info->event_count;
    }
    return true;
}

static quire_result write_svg(void *memory, quire_sink sink, void *user)
{
    return quire_memory_write_svg(memory, sink, user);
}

static int show(map_run *m)
{
    quire_memory *memory = m->setup.memory;
    if (m->svg.path && !write_output(&m->svg, write_svg, memory))
        return EXIT_FAILED;
    if (m->json)
        return quire_memory_write_json(memory, write_to_file, stdout) ? fail_with_last_error()
                                                                      : EXIT_OK;
    if (is_standard(m->svg.path))
        return EXIT_OK;
    return print_page_map(memory) ? fail_with_last_error() : EXIT_OK;
}

static void print_after(const map_run *m, uint64_t count)
{
    print_clean(stdout, "%s", m->setup.path);
    printf(" after event %" PRIu64 " of %" PRIu64 "\n", count, m->setup.info.event_count);
}

/* The trace is read by now, so --at can be checked against its number of events. */
static int play(const command *self, map_run *m)
{
    uint64_t count = 0;
    if (!events_until(m, &count))
        return bad_usage(self, "--at takes peak, end, or a number of events from 1 to %" PRIu64,
                         m->setup.info.event_count);
    quire_replay_options options = {
        .event_count = count,
        .keep = true,
        .name = true,
        .progress = show_progress,
        .user = &m->bar,
        .time = &m->setup.time,
    };
    if (!open_output(&m->svg))
        return EXIT_FAILED;
    quire_replay_report report;
    quire_result result = quire_trace_replay(m->setup.trace, m->setup.memory, &options, &report);
    end_progress(&m->bar);
    if (result)
        return fail_with_last_error();
    if (!m->json && !is_standard(m->svg.path))
        print_after(m, count);
    int code = show(m);
    return report.failures ? fail_with_last_error() : code;
}

int run_map(const command *self, int argc, char **argv)
{
    map_run m = {.bar = {.what = "map"}};
    replay_setup *p = &m.setup;
    option_spec specs[MAX_OPTIONS] = {
        {"at", "WHEN", "replay up to the peak (default), the end, or N events", OPTION_TEXT, &m.at},
        DEVICE_OPTIONS(&p->choice),
        {"svg", "FILE", "draw the pages into a file (-: standard output)", OPTION_TEXT,
         &m.svg.path},
        {"json", NULL, "print every page and range as one JSON object", OPTION_FLAG, &m.json},
    };
    size_t count = count_options(specs);
    count += list_member_flags(specs + count, &p->memory_choice);
    int code = parse_options(self, argc, argv, specs, count, &p->path);
    if (code >= 0)
        return code;
    if (m.json && is_standard(m.svg.path))
        return bad_usage(self, "standard output takes one of --json and --svg");
    if (is_same_file(m.svg.path, p->path))
        return bad_usage(self, "the trace and --svg must be different files");
    code = open_replay(self, p);
    if (code < 0)
        code = play(self, &m);
    close_output(&m.svg);
    return close_replay(p, code);
}
