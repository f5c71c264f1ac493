/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * plan.c - quire plan: offsets for the ranges of a file, whose lifetimes are known.
 *
 * The file is MiniMalloc's CSV, or a trace: its events are the times, and a range that is never
 * freed lives to the end.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/json.h"
#include "src/base/member.h"
#include "src/base/result.h"
#include "src/tool/plan.h"
#include "src/tool/plan_page.h"
#include "src/tool/plan_picture.h"
#include "src/trace/recording.h"

enum { MOST_ARENAS = 1024, MOST_DRAWN = 20000 };

typedef struct plan_run {
    const char *path;
    const char *capacities; /* option --capacity */
    const char *limit;      /* option --limit */
    uint64_t steps, seed;
    bool check, json;
    output csv, svg, html;
    progress bar;
    /* the file */
    char *text;
    quire_trace *trace; /* NULL: the file is no trace */
    qi_host host;
    qi_plan_file file;
    /* the plan */
    quire_plan_problem problem;
    quire_plan_arena arenas[MOST_ARENAS];
    quire_plan_options options;
    quire_plan_place *places;
    uint64_t peaks[MOST_ARENAS];
    quire_plan_info info;
} plan_run;

/* ---- the file ------------------------------------------------------------------------------ */

static bool is_trace(const char *text, size_t size)
{
    return !strncmp(text, "op,", 3) || qi_is_recording(text, size);
}

/* `item_of` has the last allocation of each range. */
static quire_result take_events(const quire_trace *trace, const quire_trace_info *info,
                                uint32_t *item_of, qi_plan_file *file)
{
    for (uint64_t i = 0; i < info->event_count; i++) {
        quire_trace_event e;
        quire_result result = quire_trace_get_event(trace, i, &e);
        if (result)
            return result;
        if (e.op == QUIRE_TRACE_FREE)
            file->items[item_of[e.range]].last_use = i - 1;
        if (e.op != QUIRE_TRACE_ALLOC)
            continue;
        item_of[e.range] = file->count;
        file->items[file->count++] = (quire_plan_item){.size = e.size,
                                                       .alignment = e.alignment,
                                                       .first_use = i,
                                                       .last_use = info->event_count - 1,
                                                       .name = *e.label ? e.label : NULL};
    }
    return QUIRE_SUCCESS;
}

quire_result plan_items_of_trace(const quire_trace *trace, qi_host *host, qi_plan_file *file)
{
    quire_trace_info info;
    quire_result result = quire_trace_get_info(trace, &info);
    if (result)
        return result;
    if (info.alloc_count > UINT32_MAX / 4)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the trace has more than 2^30 ranges");
    file->room = (uint32_t)info.alloc_count;
    file->items = qi_host_allocate(host, info.alloc_count, sizeof *file->items);
    uint32_t *item_of = qi_host_allocate(host, info.peak_ranges, sizeof *item_of);
    if (info.alloc_count && !(file->items && item_of))
        result = qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for the ranges");
    else
        result = take_events(trace, &info, item_of, file);
    qi_host_release(host, item_of, info.peak_ranges, sizeof *item_of);
    return result;
}

quire_result plan_trace(const quire_trace *trace, quire_plan_info *info)
{
    qi_host host;
    qi_plan_file file = {.count = 0};
    quire_plan_place *places = NULL;
    quire_result result = qi_host_init(&host, NULL);
    if (!result)
        result = plan_items_of_trace(trace, &host, &file);
    if (!result) {
        places = qi_host_allocate(&host, file.count, sizeof *places);
        const quire_plan_problem problem = {.items = file.items, .item_count = file.count};
        result = quire_plan(&problem, NULL, places, info);
    }
    qi_host_release(&host, places, file.count, sizeof *places);
    qi_plan_file_release(&file, &host);
    return result;
}

static quire_result read_trace(plan_run *p, size_t size)
{
    quire_result result = quire_trace_parse(p->path, p->text, size, NULL, &p->trace);
    return result ? result : plan_items_of_trace(p->trace, &p->host, &p->file);
}

/* Returns -1, or the exit code. */
static int read_items(plan_run *p)
{
    size_t size = 0;
    p->text = read_file(p->path, &size);
    if (!p->text)
        return EXIT_FAILED;
    quire_result result = qi_host_init(&p->host, NULL);
    if (!result)
        result = is_trace(p->text, size) ? read_trace(p, size)
                                         : qi_plan_read(p->path, p->text, size, &p->host, &p->file);
    if (result) { /* without "quire: ": the message begins with FILE:LINE, as of compilers */
        print_problem("%s", quire_last_error());
        return EXIT_FAILED;
    }
    p->problem.items = p->file.items;
    p->problem.item_count = p->file.count;
    p->places = calloc(p->file.count ? p->file.count : 1, sizeof *p->places);
    if (!p->places) {
        print_problem("quire: no host memory for %" PRIu32 " places", p->file.count);
        return EXIT_FAILED;
    }
    return -1;
}

/* ---- options ------------------------------------------------------------------------------- */

/* Parses --capacity: sizes with commas between them; 0 is an arena without a capacity. */
static bool parse_capacities(plan_run *p)
{
    const char *at = p->capacities;
    while (at) {
        char text[32];
        size_t length = strcspn(at, ",");
        quire_plan_arena *arena = &p->arenas[p->problem.arena_count];
        if (length >= sizeof text || p->problem.arena_count == MOST_ARENAS)
            return false;
        memcpy(text, at, length);
        text[length] = '\0';
        if (strcmp(text, "0") && !qi_parse_size(text, &arena->capacity))
            return false;
        p->problem.arena_count++;
        at = at[length] ? at + length + 1 : NULL;
    }
    p->problem.arenas = p->arenas;
    return true;
}

/* Parses --limit: seconds above 0, with a fraction. */
static bool parse_limit(plan_run *p)
{
    if (!p->limit)
        return true;
    char *rest;
    errno = 0;
    double seconds = strtod(p->limit, &rest);
    if (!strchr("0123456789.", *p->limit) || *rest || errno || !(seconds > 0) || seconds > 1e9)
        return false;
    p->options.time_limit_ns = (uint64_t)(seconds * 1e9);
    return p->options.time_limit_ns > 0;
}

/* How many files go to standard output. */
static int uses_standard(const plan_run *p)
{
    return is_standard(p->csv.path) + is_standard(p->svg.path) + is_standard(p->html.path);
}

static int check_options(const command *self, plan_run *p)
{
    if (!parse_capacities(p))
        return bad_usage(self,
                         "--capacity takes sizes with commas between them, such as 64K,1M,0; '%s' "
                         "is none, or there are more than %d",
                         p->capacities, MOST_ARENAS);
    if (!parse_limit(p))
        return bad_usage(self, "--limit takes seconds, such as 0.5 or 10, not '%s'", p->limit);
    if (p->check && (p->limit || p->steps || p->csv.path))
        return bad_usage(self,
                         "--check makes no plan: --limit, --steps and --csv do not go with it");
    if (p->json + uses_standard(p) > 1)
        return bad_usage(self, "standard output takes one of --json, --csv, --svg and --html");
    const char *paths[] = {p->path, p->csv.path, p->svg.path, p->html.path};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++)
            if (is_same_file(paths[i], paths[j]))
                return bad_usage(self,
                                 "the ranges, --csv, --svg and --html must be different files");
    p->options.step_limit = p->steps;
    p->options.seed = p->seed;
    return -1;
}

/* ---- the plan ------------------------------------------------------------------------------ */

static bool show_plan_progress(void *user, const quire_plan_info *best)
{
    plan_run *p = user;
    uint64_t steps = p->options.step_limit;
    if (p->options.time_limit_ns)
        show_progress(&p->bar, best->wall_ns, p->options.time_limit_ns);
    else
        show_progress(&p->bar, best->steps, steps ? steps : QUIRE_PLAN_STEPS);
    return true;
}

/* The offsets of the file are the plan; the bound is that of the items without them. */
static quire_result check_file(plan_run *p)
{
    for (uint32_t i = 0; i < p->file.count; i++) {
        quire_plan_item *item = &p->file.items[i];
        if (!item->is_fixed)
            return qi_fail_text(QUIRE_ERROR_BAD_FILE, "%s: item %" PRIu32 " ('%s') has no offset",
                                p->path, i, item->name ? item->name : "");
        p->places[i] = (quire_plan_place){item->fixed_offset, item->arena ? item->arena : 1};
    }
    quire_result result = quire_plan_check(&p->problem, p->places, p->peaks, NULL);
    for (uint32_t i = 0; i < p->file.count; i++)
        p->file.items[i].is_fixed = false;
    quire_plan_place *places = calloc(p->file.count ? p->file.count : 1, sizeof *places);
    if (!result && places)
        result = quire_plan(&p->problem, &(quire_plan_options){.step_limit = 1}, places, &p->info);
    free(places);
    p->info.peak_bytes = p->info.steps = 0;
    for (uint32_t i = 0; i < MOST_ARENAS; i++)
        p->info.peak_bytes += p->peaks[i];
    p->info.proven_optimal = p->info.peak_bytes == p->info.lower_bound_bytes;
    return result;
}

static quire_result make_plan(plan_run *p)
{
    p->options.progress = show_plan_progress;
    p->options.user = p;
    quire_result result = quire_plan(&p->problem, &p->options, p->places, &p->info);
    end_progress(&p->bar);
    return result ? result : quire_plan_check(&p->problem, p->places, p->peaks, NULL);
}

/* ---- what is written ----------------------------------------------------------------------- */

/* MiniMalloc's CSV with the offset of each item. */
static quire_result write_csv(void *subject, quire_sink sink, void *user)
{
    const plan_run *p = subject;
    const bool has_arenas = p->problem.arena_count > 1;
    bool has_alignments = false, has_aliases = false;
    qi_writer w;
    for (uint32_t i = 0; i < p->file.count; i++) {
        has_alignments |= p->file.items[i].alignment > 1;
        has_aliases |= p->file.items[i].alias_group > 0;
    }
    qi_writer_init(&w, sink, user);
    qi_write_text(&w, "id,lower,upper,size");
    qi_write_text(&w, has_alignments ? ",alignment" : "");
    qi_write_text(&w, has_aliases ? ",alias" : "");
    qi_write_text(&w, has_arenas ? ",arena,offset\n" : ",offset\n");
    for (uint32_t i = 0; i < p->file.count; i++) {
        const quire_plan_item *item = &p->file.items[i];
        if (item->name && !p->trace)
            qi_write_text(&w, item->name);
        else
            qi_write_format(&w, "%" PRIu32, i);
        qi_write_format(&w, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, item->first_use,
                        item->last_use + 1, item->size);
        if (has_alignments)
            qi_write_format(&w, ",%" PRIu64, item->alignment ? item->alignment : 1);
        if (has_aliases)
            qi_write_format(&w, ",%" PRIu32, item->alias_group);
        if (has_arenas)
            qi_write_format(&w, ",%" PRIu32, p->places[i].arena);
        qi_write_format(&w, ",%" PRIu64 "\n", p->places[i].offset);
    }
    return qi_writer_finish(&w);
}

static plan_picture picture_of(const plan_run *p)
{
    return (plan_picture){p->path, &p->problem, p->places, &p->info, p->peaks, MOST_DRAWN};
}

static quire_result write_svg(void *subject, quire_sink sink, void *user)
{
    const plan_picture picture = picture_of(subject);
    return write_plan_svg(&picture, sink, user);
}

static quire_result write_html(void *subject, quire_sink sink, void *user)
{
    const plan_run *p = subject;
    const plan_picture picture = picture_of(p);
    return write_plan_html(&picture, p->trace, sink, user);
}

static quire_result print_json(const plan_run *p)
{
    qi_json json;
    qi_json_init(&json, write_to_file, stdout);
    qi_json_object(&json, NULL);
    qi_json_text(&json, "file", p->path);
    qi_json_number(&json, "ranges", p->file.count);
    qi_json_number(&json, "peak_bytes", p->info.peak_bytes);
    qi_json_number(&json, "lower_bound_bytes", p->info.lower_bound_bytes);
    qi_json_bool(&json, "proven_optimal", p->info.proven_optimal);
    qi_json_number(&json, "steps", p->info.steps);
    qi_json_number(&json, "wall_ns", p->info.wall_ns);
    qi_json_array(&json, "arenas");
    for (uint32_t i = 0; i < (p->problem.arena_count ? p->problem.arena_count : 1); i++) {
        qi_json_object(&json, NULL);
        if (p->arenas[i].capacity)
            qi_json_number(&json, "capacity_bytes", p->arenas[i].capacity);
        else
            qi_json_null(&json, "capacity_bytes");
        qi_json_number(&json, "peak_bytes", p->peaks[i]);
        qi_json_end_object(&json);
    }
    qi_json_end_array(&json);
    qi_json_end_object(&json);
    return qi_json_finish(&json);
}

static void print_text(const plan_run *p)
{
    const quire_plan_info *info = &p->info;
    print_clean(stdout, "%s", p->path);
    printf(": %" PRIu32 " range%s\n", p->file.count, plural(p->file.count));
    printf("  peak         %12" PRIu64 " bytes (%s)\n", info->peak_bytes,
           qi_bytes(info->peak_bytes).text);
    printf("  lower bound  %12" PRIu64 " bytes: %s\n", info->lower_bound_bytes,
           info->proven_optimal ? "no plan has a lower peak" : "no plan has less");
    if (!info->proven_optimal && info->lower_bound_bytes)
        printf("  ratio        %12.4f\n",
               (double)info->peak_bytes / (double)info->lower_bound_bytes);
    for (uint32_t i = 0; i < p->problem.arena_count; i++) {
        printf("  arena %-6" PRIu32 " %12" PRIu64 " bytes", i + 1, p->peaks[i]);
        if (p->arenas[i].capacity)
            printf(" of %" PRIu64, p->arenas[i].capacity);
        printf("\n");
    }
    if (!p->check)
        printf("  time         %12.3f ms, %" PRIu64 " steps\n", (double)info->wall_ns / 1e6,
               info->steps);
}

static int plan_and_write(plan_run *p)
{
    if (!open_output(&p->csv) || !open_output(&p->svg) || !open_output(&p->html))
        return EXIT_FAILED;
    if (p->check ? check_file(p) : make_plan(p))
        return fail_with_last_error();
    if ((p->csv.path && !write_output(&p->csv, write_csv, p)) ||
        (p->svg.path && !write_output(&p->svg, write_svg, p)) ||
        (p->html.path && !write_output(&p->html, write_html, p)))
        return EXIT_FAILED;
    if (p->json)
        return print_json(p) ? fail_with_last_error() : EXIT_OK;
    if (!uses_standard(p))
        print_text(p);
    return EXIT_OK;
}

int run_plan(const command *self, int argc, char **argv)
{
    plan_run p = {.bar = {.what = "plan"}};
    const option_spec specs[] = {
        {"capacity", "SIZES",
         "bytes of each arena, with commas between them (0: any);\n"
         "a plan that fits ends the work",
         OPTION_TEXT, &p.capacities},
        {"limit", "SECONDS", "how long to look for a better plan, such as 0.5", OPTION_TEXT,
         &p.limit},
        {"steps", "N", "how much work to do (default: 100 million without --limit)", OPTION_NUMBER,
         &p.steps},
        {"seed", "N", "of the random choices", OPTION_NUMBER, &p.seed},
        {"check", NULL, "check the offsets of the file instead", OPTION_FLAG, &p.check},
        {"csv", "FILE", "write the ranges with their offsets (-: standard output)", OPTION_TEXT,
         &p.csv.path},
        {"svg", "FILE", "draw the plan, time across, addresses up (-: likewise)", OPTION_TEXT,
         &p.svg.path},
        {"html", "FILE", "write the plan at any time as HTML (-: likewise)", OPTION_TEXT,
         &p.html.path},
        {"json", NULL, "print the result as one JSON object", OPTION_FLAG, &p.json},
    };
    int code = parse_options(self, argc, argv, specs, sizeof specs / sizeof *specs, &p.path);
    if (code < 0)
        code = check_options(self, &p);
    if (code < 0)
        code = read_items(&p);
    if (code < 0)
        code = plan_and_write(&p);
    close_output(&p.csv);
    close_output(&p.svg);
    close_output(&p.html);
    qi_plan_file_release(&p.file, &p.host);
    quire_trace_destroy(&p.trace);
    free(p.places);
    free(p.text);
    return code;
}
