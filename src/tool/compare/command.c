/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * command.c - quire compare: two traces side by side, and their replays with the same options.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/result.h"
#include "src/tool/compare/compare.h"
#include "src/tool/html.h"
#include "src/tool/page/replay_course.h"

typedef struct compare_run {
    comparison c;
    bool json, first_parts;
    output html;
    const char *fail_above; /* option --fail-above */
    double percent;         /* its value */
} compare_run;

/* ---- the limit ---------------------------------------------------------------------------- */

/* Parses --fail-above: a percentage of at least 0, with a fraction. */
static bool parse_percent(compare_run *r)
{
    char *rest = NULL;
    if (!r->fail_above)
        return true;
    if (!*r->fail_above || r->fail_above[strspn(r->fail_above, "0123456789.")])
        return false;
    errno = 0;
    r->percent = strtod(r->fail_above, &rest);
    return !*rest && !errno;
}

/* Returns `code`, or EXIT_FAILED after a line that says by how much the peak of B is too high. */
static int check_peak(const compare_run *r, int code)
{
    const findings *f = &r->c.findings;
    const uint64_t a = f->sides[SIDE_A].info.peak_bytes, b = f->sides[SIDE_B].info.peak_bytes;
    if (!r->fail_above || (double)b <= (double)a * (1 + r->percent / 100))
        return code;
    print_problem("quire: the peak of B (%s) is more than %s %% above that of A (%s)",
                  qi_bytes(b).text, r->fail_above, qi_bytes(a).text);
    return EXIT_FAILED;
}

/* ---- traces and replays ------------------------------------------------------------------- */

/* B gets the options that A has after its options file and preset: a file that is standard input is
   read once. */
static int open_both(const command *self, comparison *c)
{
    replay_setup *a = &c->setups[SIDE_A], *b = &c->setups[SIDE_B];
    int code = open_replay(self, a);
    if (code >= 0)
        return code;
    b->choice = a->choice;
    b->memory_choice = a->memory_choice;
    b->memory_choice.file = NULL;
    b->memory_choice.preset = NULL;
    return open_replay(self, b);
}

/* Keeps the page in host memory, because the memory that it shows ends before the other replay.
   Prints the error and returns false. */
static bool draw_side(comparison *c, int side, const course *drawn)
{
    html_source source = {drawn, &c->setups[side], &c->memory, &c->reports[side]};
    size_t size = 0;
    FILE *file = open_memstream(&c->pages[side], &size);
    const bool is_drawn = file && !write_html(&source, write_to_file, file);
    if (file && !fclose(file) && is_drawn)
        return true;
    print_problem("quire: no host memory for a page");
    return false;
}

typedef struct side_run {
    progress bar;
    replay_course *course; /* NULL: no page is wanted */
} side_run;

static bool on_progress(void *user, uint64_t done, uint64_t total)
{
    side_run *s = user;
    if (!s->course)
        return show_progress(&s->bar, done, total);
    replay_course_step(s->course, done);
    return show_progress_of_each(&s->bar, done, total);
}

/* The memory is destroyed, so that the pages that it keeps do not reduce what the next one gets.
   Returns EXIT_FAILED after the report if allocations failed, and -1 otherwise. */
static int replay_side(compare_run *r, int side)
{
    comparison *c = &r->c;
    replay_setup *p = &c->setups[side];
    replay_course drawn = {.memory = NULL};
    side_run run = {{.what = side == SIDE_A ? "replay of A" : "replay of B"},
                    r->html.path ? &drawn : NULL};
    quire_replay_options options = {
        .keep = r->html.path,
        .name = r->html.path,
        .progress = on_progress,
        .user = &run,
        .progress_events = r->html.path ? 1 : 0,
        .time = &p->time,
    };
    if (r->html.path && !replay_course_begin(&drawn, p))
        return EXIT_FAILED;
    quire_result result = quire_trace_replay(p->trace, p->memory, &options, &c->reports[side]);
    end_progress(&run.bar);
    int code = result || c->reports[side].failures ? fail_with_last_error() : -1;
    if (r->html.path &&
        (!replay_course_stop(&drawn) || (!result && !draw_side(c, side, &drawn.course))))
        code = EXIT_FAILED;
    replay_course_end(&drawn);
    quire_memory_destroy_all(&p->memory);
    return code;
}

/* Returns the exit code. A replay that is not possible ends the command; refused allocations are
   part of the report, and make it fail after the report. */
static int play(compare_run *r)
{
    comparison *c = &r->c;
    const quire_trace *const traces[] = {c->setups[SIDE_A].trace, c->setups[SIDE_B].trace};
    int code = EXIT_OK;
    if (quire_memory_get_info(c->setups[SIDE_A].memory, &c->memory))
        return fail_with_last_error();
    if (!find_differences(traces, r->first_parts, &c->findings))
        return EXIT_FAILED;
    for (int i = 0; i < SIDE_COUNT; i++) {
        if (replay_side(r, i) < 0)
            continue;
        code = EXIT_FAILED;
        if (!c->reports[i].failures)
            return code;
    }
    if (r->html.path && !write_output(&r->html, write_comparison_page, c))
        code = EXIT_FAILED;
    if (!r->json && !is_standard(r->html.path))
        print_comparison(c);
    else if (r->json && write_comparison(c))
        code = fail_with_last_error();
    return check_peak(r, code);
}

/* ---- run ---------------------------------------------------------------------------------- */

static int close_both(compare_run *r, int code)
{
    release_findings(&r->c.findings);
    close_output(&r->html);
    for (int i = 0; i < SIDE_COUNT; i++)
        free(r->c.pages[i]);
    for (int i = 0; i < SIDE_COUNT; i++)
        code = close_replay(&r->c.setups[i], code);
    return code;
}

int run_compare(const command *self, int argc, char **argv)
{
    static compare_run r; /* its histograms are large for a stack */
    replay_setup *a = &r.c.setups[SIDE_A], *b = &r.c.setups[SIDE_B];
    r.c.top = 20;
    option_spec specs[MAX_OPTIONS] = {
        {"first-part", NULL, "sum up names by their part before '/', '.' or ':'", OPTION_FLAG,
         &r.first_parts},
        {"top", "N", "print so many names (default 20, 0: all)", OPTION_NUMBER, &r.c.top},
        {"fail-above", "PERCENT", "exit with 1 if B's peak is higher by more than that",
         OPTION_TEXT, &r.fail_above},
        DEVICE_OPTIONS(&a->choice),
        {"html", "FILE", "write both courses as HTML (-: standard output)", OPTION_TEXT,
         &r.html.path},
        {"json", NULL, "print one JSON object, with all names", OPTION_FLAG, &r.json},
    };
    size_t count = count_options(specs);
    count += list_member_flags(specs + count, &a->memory_choice);
    operands traces = {.least = SIDE_COUNT, .most = SIDE_COUNT};
    int code = parse_operands(self, argc, argv, specs, count, &traces);
    if (code >= 0)
        return code;
    a->path = traces.values[SIDE_A];
    b->path = traces.values[SIDE_B];
    if (is_standard(a->path) + is_standard(b->path) + is_standard(a->memory_choice.file) > 1)
        return bad_usage(self, "standard input is one of the traces, or --options");
    if (!parse_percent(&r))
        return bad_usage(self, "--fail-above takes a percentage, such as 5 or 0.5, not '%s'",
                         r.fail_above);
    if (r.json && is_standard(r.html.path))
        return bad_usage(self, "standard output takes one of --json and --html");
    if (is_same_file(r.html.path, a->path) || is_same_file(r.html.path, b->path))
        return bad_usage(self, "the traces and --html must be different files");
    code = open_both(self, &r.c);
    if (code < 0 && !open_output(&r.html))
        code = EXIT_FAILED;
    return close_both(&r, code < 0 ? play(&r) : code);
}
