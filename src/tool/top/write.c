/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * write.c - prints one look of quire top as lines for people, as one line, and as JSON.
 */
#include <inttypes.h>
#include <string.h>

#include "src/base/json.h"
#include "src/base/result.h"
#include "src/base/text.h"
#include "src/tool/options.h"
#include "src/tool/top/top.h"

/* NAME_COLUMNS: of the view, without the name. */
enum { LEAST_NAME = 16, NAME_COLUMNS = 36, LINE_NAMES = 3 };

/* Home, and clear from there to the end of the screen. */
static const char CLEAR[] = "\033[H\033[J";

/* ---- cells -------------------------------------------------------------------------------- */

typedef struct cell {
    char text[32];
} cell;

static cell rate_of(const top_look *look, double per_second)
{
    cell c = {"-"};
    if (look->has_rates)
        snprintf(c.text, sizeof c.text, "%.1f", per_second);
    return c;
}

static cell age_of(const top_look *look)
{
    cell c = {"-"};
    if (look->has_age)
        snprintf(c.text, sizeof c.text, "%.1f s", (double)look->age_ns / 1e9);
    return c;
}

static const char *word_of(watch_state state)
{
    static const char *const words[] = {
        [WATCH_UNKNOWN] = "unknown", [WATCH_RECORDING] = "recording", [WATCH_ENDED] = "ended"};
    return words[state];
}

static const char *shown_name(const name_sum *sum)
{
    return *sum->name ? sum->name : "(unnamed)";
}

/* The bytes of at most so many characters of a text. */
static int cut_text(const char *text, int characters)
{
    const char *end = text;
    while (characters-- > 0 && qi_next_code_point(&end))
        continue;
    return (int)(end - text);
}

static int characters_of(const char *text, int size)
{
    const char *at = text;
    int count = 0;
    while (at < text + size && qi_next_code_point(&at))
        count++;
    return count;
}

/* ---- the view ----------------------------------------------------------------------------- */

static void print_state(const top_look *look)
{
    static const char *const sentences[] = {[WATCH_UNKNOWN] = "no process has locked it",
                                            [WATCH_RECORDING] = "a process records",
                                            [WATCH_ENDED] = "the recording has ended"};
    print_clean(stdout, "%s", look->watch->path);
    printf("\n  %s; ", sentences[look->watch->state]);
    if (look->has_age)
        printf("last event %s ago\n", age_of(look).text);
    else
        printf("no event\n");
}

static void print_names(const top_look *look)
{
    int width = output_width() - NAME_COLUMNS;
    width = width > LEAST_NAME ? width : LEAST_NAME;
    if (look->shown)
        printf("\n  %-*s %12s %10s %8s\n", width, "largest names", "bytes", "ranges", "of live");
    for (size_t i = 0; i < look->shown; i++) {
        const name_sum *sum = look->names[i];
        const char *name = shown_name(sum);
        int size = cut_text(name, width);
        print_clean(stdout, "  %.*s", size, name);
        printf("%*s %12s %10" PRIu64 " %6.1f %%\n", width - characters_of(name, size), "",
               qi_bytes(sum->bytes).text, sum->ranges,
               100.0 * (double)sum->bytes /
                   (double)look->watch->follower.recording.builder.live_bytes);
    }
    size_t rest = look->name_count - look->shown;
    if (rest)
        printf("  and %zu more\n", rest);
}

void print_view(const top_look *look, bool is_terminal)
{
    const qi_builder *live = &look->watch->follower.recording.builder;
    const quire_trace_info *info = &look->watch->follower.trace.info;
    if (is_terminal)
        fputs(CLEAR, stdout);
    print_state(look);
    printf("\n  live    %s in %" PRIu64 " range%s\n", qi_bytes(live->live_bytes).text,
           live->live_count, plural(live->live_count));
    printf("  peak    %s; at most %" PRIu64 " range%s\n", qi_bytes(info->peak_bytes).text,
           info->peak_ranges, plural(info->peak_ranges));
    printf("  allocs  %s per second, %" PRIu64 " in all\n",
           rate_of(look, look->per_second_allocs).text, info->alloc_count);
    printf("  frees   %s per second, %" PRIu64 " in all\n",
           rate_of(look, look->per_second_frees).text, info->free_count);
    print_names(look);
}

/* ---- one line ----------------------------------------------------------------------------- */

void print_columns(void)
{
    printf("%12s %8s %12s %10s %10s %10s %10s %8s %-9s  %s\n", "live", "ranges", "peak", "allocs/s",
           "frees/s", "allocs", "frees", "age", "state", "largest names");
}

void print_line(const top_look *look)
{
    const qi_builder *live = &look->watch->follower.recording.builder;
    const quire_trace_info *info = &look->watch->follower.trace.info;
    printf("%12s %8" PRIu64 " %12s %10s %10s", qi_bytes(live->live_bytes).text, live->live_count,
           qi_bytes(info->peak_bytes).text, rate_of(look, look->per_second_allocs).text,
           rate_of(look, look->per_second_frees).text);
    printf(" %10" PRIu64 " %10" PRIu64 " %8s %-9s", info->alloc_count, info->free_count,
           age_of(look).text, word_of(look->watch->state));
    for (size_t i = 0; i < look->shown && i < LINE_NAMES; i++)
        print_clean(stdout, "%s %s %s", i ? "," : " ", shown_name(look->names[i]),
                    qi_bytes(look->names[i]->bytes).text);
    putchar('\n');
}

/* ---- JSON --------------------------------------------------------------------------------- */

/* The line breaks of a JSON writer are between values; those of texts are escaped. */
static bool write_in_one_line(void *file, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (text[i] != '\n' && fputc(text[i], file) == EOF)
            return false;
    return true;
}

static void write_rate(qi_json *json, const top_look *look, const char *key, double per_second)
{
    if (look->has_rates)
        qi_json_real(json, key, per_second);
    else
        qi_json_null(json, key);
}

static void write_names(qi_json *json, const top_look *look)
{
    qi_json_array(json, "names");
    for (size_t i = 0; i < look->shown; i++) {
        qi_json_object(json, NULL);
        qi_json_text(json, "name", look->names[i]->name);
        qi_json_number(json, "bytes", look->names[i]->bytes);
        qi_json_number(json, "ranges", look->names[i]->ranges);
        qi_json_end_object(json);
    }
    qi_json_end_array(json);
}

quire_result print_json_line(const top_look *look)
{
    const watch *w = look->watch;
    const qi_builder *live = &w->follower.recording.builder;
    const quire_trace_info *info = &w->follower.trace.info;
    qi_json json;
    qi_json_init(&json, write_in_one_line, stdout);
    qi_json_object(&json, NULL);
    qi_json_text(&json, "recording", w->path);
    qi_json_text(&json, "state", word_of(w->state));
    qi_json_number(&json, "live_bytes", live->live_bytes);
    qi_json_number(&json, "live_ranges", live->live_count);
    qi_json_number(&json, "peak_bytes", info->peak_bytes);
    qi_json_number(&json, "peak_ranges", info->peak_ranges);
    qi_json_number(&json, "allocations", info->alloc_count);
    qi_json_number(&json, "frees", info->free_count);
    qi_json_number(&json, "frames", info->frame_count);
    write_rate(&json, look, "allocations_per_second", look->per_second_allocs);
    write_rate(&json, look, "frees_per_second", look->per_second_frees);
    if (look->has_age)
        qi_json_number(&json, "last_event_age_ns", look->age_ns);
    else
        qi_json_null(&json, "last_event_age_ns");
    qi_json_number(&json, "pending_bytes", w->pending);
    qi_json_number(&json, "restarts", w->restarts);
    write_names(&json, look);
    qi_json_number(&json, "other_names", look->name_count - look->shown);
    qi_json_end_object(&json);
    quire_result result = qi_json_finish(&json);
    putchar('\n');
    return result;
}
