/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * command.c - quire top: looks at a recording at every interval until it has ended.
 *
 * No mode of the terminal is changed, so that a signal can end the command at any time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/base/result.h"
#include "src/base/system.h"
#include "src/tool/options.h"
#include "src/tool/top/top.h"

/* VIEW_LINES: of the view, beside the names. */
enum { USUAL_NAMES = 10, VIEW_LINES = 11 };

/* A file that no process has locked may be of quire_record_start. It has ended when it was not
   written for so long. */
static const uint64_t SILENCE_NS = UINT64_C(10000000000);

typedef struct top_run {
    const char *path;
    const char *interval; /* option --interval */
    uint64_t interval_ns;
    uint64_t top;
    bool once, json;
    bool is_terminal; /* the view is redrawn */
    watch watch;
    uint64_t looks;
    uint64_t time_ns, allocs, frees; /* at the look before */
} top_run;

/* Parses --interval: seconds from a millisecond to a day. */
static bool parse_interval(top_run *r)
{
    char *rest = NULL;
    r->interval_ns = UINT64_C(1000000000);
    if (!r->interval)
        return true;
    errno = 0;
    double seconds = strtod(r->interval, &rest);
    if (!*r->interval || r->interval[strspn(r->interval, "0123456789.")] || *rest || errno)
        return false;
    r->interval_ns = seconds >= 1e-3 && seconds <= 86400 ? (uint64_t)(seconds * 1e9) : 0;
    return r->interval_ns > 0;
}

/* ---- figures ------------------------------------------------------------------------------ */

/* The rates since the look before, which had none of the events of a recording that has begun
   again; at the first look, those of the whole recording. */
static void find_rates(top_run *r, bool has_begun_again, top_look *look)
{
    const quire_trace_info *info = &r->watch.follower.trace.info;
    uint64_t now = qi_clock(), passed = r->looks ? now - r->time_ns : info->end_ns;
    if (has_begun_again)
        r->allocs = r->frees = 0;
    look->has_rates = passed > 0;
    if (look->has_rates) {
        look->per_second_allocs = (double)(info->alloc_count - r->allocs) * 1e9 / (double)passed;
        look->per_second_frees = (double)(info->free_count - r->frees) * 1e9 / (double)passed;
    }
    r->time_ns = now;
    r->allocs = info->alloc_count;
    r->frees = info->free_count;
}

/* A block is written at its end, so that the time since then is that since the file was written. */
static void find_age(const watch *w, top_look *look)
{
    const qi_recording *recording = &w->follower.recording;
    const quire_trace_info *info = &w->follower.trace.info;
    look->has_age = info->event_count > 0;
    if (look->has_age)
        look->age_ns = w->silent_ns + recording->last_end - recording->first_time - info->end_ns;
}

static bool find_names(const top_run *r, top_look *look)
{
    size_t most = r->top ? (size_t)r->top : SIZE_MAX;
    look->names = sort_names(&r->watch.follower.names);
    look->name_count = r->watch.follower.names.count;
    if (r->is_terminal) {
        int lines = output_height();
        size_t room = lines > VIEW_LINES ? (size_t)(lines - VIEW_LINES) : 1;
        most = room < most ? room : most;
    }
    look->shown = look->name_count < most ? look->name_count : most;
    if (!look->names)
        print_problem("quire: no host memory for the names");
    return look->names != NULL;
}

/* ---- looks -------------------------------------------------------------------------------- */

static bool print_look(const top_run *r, const top_look *look)
{
    if (r->json)
        return !print_json_line(look) || (fail_with_last_error(), false);
    if (r->is_terminal || r->once) {
        print_view(look, r->is_terminal);
        return true;
    }
    if (!r->looks)
        print_columns();
    print_line(look);
    return true;
}

/* Returns false after an error, which was printed, or which is one of standard output. */
static bool take_look(top_run *r)
{
    top_look look = {.watch = &r->watch};
    uint64_t restarts = r->watch.restarts;
    if (!look_at_file(&r->watch) || !find_names(r, &look))
        return false;
    find_rates(r, r->watch.restarts != restarts, &look);
    find_age(&r->watch, &look);
    bool good = print_look(r, &look);
    free(look.names);
    r->looks++;
    return good && !fflush(stdout);
}

static bool is_over(const top_run *r)
{
    const watch *w = &r->watch;
    if (r->once)
        return true;
    if (r->looks < 2 || w->has_grown || w->state == WATCH_RECORDING)
        return false;
    return w->state == WATCH_ENDED || w->silent_ns >= SILENCE_NS;
}

/* The looks are at equal distances. One that comes late does not make the next ones follow faster.
 */
static void wait_until(uint64_t *next, uint64_t interval)
{
    uint64_t now = qi_clock();
    *next = *next + interval > now ? *next + interval : now;
    struct timespec time = {.tv_sec = (time_t)(*next / 1000000000),
                            .tv_nsec = (long)(*next % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
        continue;
}

static int run_looks(top_run *r)
{
    uint64_t next = qi_clock();
    while (take_look(r)) {
        if (is_over(r))
            return EXIT_OK;
        wait_until(&next, r->interval_ns);
    }
    return EXIT_FAILED;
}

/* ---- run ---------------------------------------------------------------------------------- */

int run_top(const command *self, int argc, char **argv)
{
    static top_run r; /* the recording points into its follower */
    r.top = USUAL_NAMES;
    const option_spec specs[] = {
        {"interval", "SECONDS", "time between two looks, such as 0.2 (default 1)", OPTION_TEXT,
         &r.interval},
        {"once", NULL, "print the state of now and end", OPTION_FLAG, &r.once},
        {"top", "N", "print so many names (default 10, 0: all)", OPTION_NUMBER, &r.top},
        {"json", NULL, "print one JSON object per look, each in one line", OPTION_FLAG, &r.json},
    };
    int code = parse_options(self, argc, argv, specs, sizeof specs / sizeof *specs, &r.path);
    if (code >= 0)
        return code;
    if (is_standard(r.path))
        return bad_usage(self, "standard input cannot be followed; name a file");
    if (!parse_interval(&r))
        return bad_usage(self, "--interval takes seconds from 0.001 to 86400, not '%s'",
                         r.interval);
    r.is_terminal = !r.json && !r.once && isatty(STDOUT_FILENO);
    code = begin_watch(&r.watch, r.path) ? run_looks(&r) : EXIT_FAILED;
    end_watch(&r.watch);
    return code;
}
