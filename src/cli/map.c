/*
 * map.c - quire map: the pages of a memory at one moment of a trace.
 */
#include <inttypes.h>
#include <string.h>

#include "src/cli/page_map.h"
#include "src/cli/playing.h"

typedef struct mapping {
    playing playing;
    const char *at; /* "peak", "end" or a number of events */
    const char *svg;
    bool json;
    progress bar;
} mapping;

/* The events to play for --at; false when it says nothing known. */
static bool events_until(const mapping *m, uint64_t *count)
{
    const quire_trace_info *info = &m->playing.info;
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

static int show(const mapping *m)
{
    quire_memory *memory = m->playing.memory;
    if (m->svg && !write_file(m->svg, write_svg, memory))
        return EXIT_FAILED;
    if (m->json)
        return quire_memory_write_json(memory, write_to_file, stdout) ? fail_with_last_error()
                                                                      : EXIT_OK;
    return print_page_map(memory) ? fail_with_last_error() : EXIT_OK;
}

static void print_after(const mapping *m, uint64_t count)
{
    print_clean(stdout, "%s", m->playing.path);
    printf(" after event %" PRIu64 " of %" PRIu64 "\n", count, m->playing.info.event_count);
}

static int play(const command *self, mapping *m)
{
    uint64_t count = 0;
    if (!events_until(m, &count))
        return bad_usage(self, "--at takes peak, end, or a number of events from 1 to %" PRIu64,
                         m->playing.info.event_count);
    quire_replay_options options = {
        .event_count = count,
        .keep = true,
        .name = true,
        .progress = show_progress,
        .user = &m->bar,
    };
    quire_replay_report report;
    quire_result result =
        quire_trace_replay(m->playing.trace, m->playing.memory, &options, &report);
    end_progress(&m->bar);
    if (result)
        return fail_with_last_error();
    if (!m->json)
        print_after(m, count);
    int code = show(m);
    return report.failures ? fail_with_last_error() : code;
}

int run_map(const command *self, int argc, char **argv)
{
    mapping m = {.bar = {.what = "map"}};
    playing *p = &m.playing;
    const option_spec specs[] = {
        {"at", "WHEN", "peak (default), end, or a number of events", OPTION_TEXT, &m.at},
        DEVICE_OPTIONS(&p->choice),
        {"fit", "F", "segregated (default), first, buddy or linear", OPTION_FIT, &p->fit},
        {"page-size", "N", "bytes of a page", OPTION_SIZE, &p->page_size},
        {"svg", "FILE", "draw the pages into a file", OPTION_TEXT, &m.svg},
        {"json", NULL, "print every page and range as one JSON object", OPTION_FLAG, &m.json},
    };
    int code = parse_options(self, argc, argv, specs, sizeof specs / sizeof *specs, &p->path);
    if (code >= 0)
        return code;
    if (is_same_file(m.svg, p->path))
        return bad_usage(self, "the trace and --svg must be different files");
    code = begin_playing(self, p);
    if (code < 0)
        code = play(self, &m);
    return end_playing(p, code);
}
