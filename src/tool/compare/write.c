/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * write.c - writes the findings of quire compare as text and as JSON.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/json.h"
#include "src/base/result.h"
#include "src/tool/compare/compare.h"

/* ---- cells -------------------------------------------------------------------------------- */

typedef enum unit { UNIT_COUNT, UNIT_BYTES, UNIT_TIME } unit;

typedef struct cell {
    char text[32];
} cell;

static cell cell_of(unit kind, uint64_t value)
{
    cell c;
    if (kind == UNIT_BYTES)
        snprintf(c.text, sizeof c.text, "%s", qi_bytes(value).text);
    else if (kind == UNIT_TIME && value < 10000)
        snprintf(c.text, sizeof c.text, "%" PRIu64 " ns", value);
    else if (kind == UNIT_TIME)
        snprintf(c.text, sizeof c.text, "%.3f ms", (double)value / 1e6);
    else
        snprintf(c.text, sizeof c.text, "%" PRIu64, value);
    return c;
}

/* How B differs from A, in percent of A. */
static cell change_of(double a, double b)
{
    cell c = {"same"};
    if (a != b && a > 0)
        snprintf(c.text, sizeof c.text, "%+.2f %%", 100 * (b - a) / a);
    else if (a != b)
        snprintf(c.text, sizeof c.text, "from 0");
    return c;
}

static void print_row(const char *what, unit kind, uint64_t a, uint64_t b)
{
    printf("  %-22s %16s %16s %14s\n", what, cell_of(kind, a).text, cell_of(kind, b).text,
           change_of((double)a, (double)b).text);
}

static void print_share_row(const char *what, double a, double b)
{
    printf("  %-22s %16.4f %16.4f %14s\n", what, a, b, change_of(a, b).text);
}

static void print_heading(const char *what)
{
    printf("\n%-24s %16s %16s %14s\n", what, "A", "B", "change");
}

/* ---- text --------------------------------------------------------------------------------- */

static void print_paths(const comparison *c)
{
    for (int i = 0; i < SIDE_COUNT; i++) {
        print_clean(stdout, "%c  %s", "AB"[i], c -> setups[i].path);
        printf("\n");
    }
}

static void print_totals(const census *a, const census *b)
{
    const quire_trace_info *x = &a->info, *y = &b->info;
    print_heading("traces");
    print_row("allocations", UNIT_COUNT, x->alloc_count, y->alloc_count);
    print_row("frees", UNIT_COUNT, x->free_count, y->free_count);
    print_row("uses", UNIT_COUNT, x->use_count, y->use_count);
    print_row("frames", UNIT_COUNT, x->frame_count, y->frame_count);
    print_row("allocated in all", UNIT_BYTES, a->bytes, b->bytes);
    print_row("largest allocation", UNIT_BYTES, x->largest, y->largest);
    print_row("peak", UNIT_BYTES, x->peak_bytes, y->peak_bytes);
    print_row("ranges at the peak", UNIT_COUNT, a->ranges_at_peak, b->ranges_at_peak);
    print_row("most ranges", UNIT_COUNT, x->peak_ranges, y->peak_ranges);
    print_row("ranges left at the end", UNIT_COUNT, x->left_count, y->left_count);
    print_row("bytes left at the end", UNIT_BYTES, x->left_bytes, y->left_bytes);
    print_row("duration", UNIT_TIME, x->end_ns, y->end_ns);
}

static void print_name(const name_row *row)
{
    print_clean(stdout, "%.*s", row->length ? (int)row->length : 9,
                row->length ? row->name : "(unnamed)");
}

static void print_name_row(const name_row *row)
{
    const name_share *a = &row->shares[SIDE_A], *b = &row->shares[SIDE_B];
    char difference[40];
    snprintf(difference, sizeof difference, "%c%s", a->peak_bytes > b->peak_bytes ? '-' : '+',
             qi_bytes(peak_difference(row)).text);
    printf("  %11s %6" PRIu64 " %11s %6" PRIu64 " %12s  ", qi_bytes(a->peak_bytes).text,
           a->peak_ranges, qi_bytes(b->peak_bytes).text, b->peak_ranges, difference);
    print_name(row);
    printf("\n");
}

/* A name is listed if its bytes or its ranges at the peaks differ. */
static bool differs(const name_row *row)
{
    return peak_difference(row) ||
           row->shares[SIDE_A].peak_ranges != row->shares[SIDE_B].peak_ranges;
}

static void print_names(const comparison *c)
{
    uint64_t listed = 0, more = 0;
    for (size_t i = 0; i < c->findings.name_count; i++) {
        const name_row *row = &c->findings.names[i];
        if (!differs(row))
            continue;
        if (c->top && listed == c->top) {
            more++;
            continue;
        }
        if (!listed++)
            printf("\nlive at the peaks, by name\n  %11s %6s %11s %6s %12s  name\n", "A", "ranges",
                   "B", "ranges", "difference");
        print_name_row(row);
    }
    if (more)
        printf("  and %" PRIu64 " more name%s (--top 0 prints all)\n", more, plural(more));
    if (!listed)
        printf("\nevery name has the same bytes at both peaks\n");
}

/* The names that one trace has and the other one never has. */
static void print_only(const comparison *c, int side)
{
    uint64_t listed = 0, more = 0;
    for (size_t i = 0; i < c->findings.name_count; i++) {
        const name_row *row = &c->findings.names[i];
        if (row->shares[!side].allocations)
            continue;
        if (c->top && listed == c->top) {
            more++;
            continue;
        }
        if (!listed++)
            printf("\nnames that only %c has\n", "AB"[side]);
        printf("  %11" PRIu64 " allocation%s  ", row->shares[side].allocations,
               row->shares[side].allocations == 1 ? " " : "s");
        print_name(row);
        printf("\n");
    }
    if (more)
        printf("  and %" PRIu64 " more name%s (--top 0 prints all)\n", more, plural(more));
}

static void print_classes(const census *a, const census *b)
{
    print_heading("allocations of size");
    for (size_t i = 0; i < SIZE_CLASSES; i++) {
        char what[40];
        snprintf(what, sizeof what, "up to %s", qi_bytes(class_limit(i)).text);
        if (a->sizes[i] || b->sizes[i])
            print_row(what, UNIT_COUNT, a->sizes[i], b->sizes[i]);
    }
}

static const struct {
    const char *what, *key;
    double share;
} PERCENTILES[] = {{"half live up to", "p50", 0.5},
                   {"90 % live up to", "p90", 0.9},
                   {"99 % live up to", "p99", 0.99}};

enum { PERCENTILE_COUNT = sizeof PERCENTILES / sizeof *PERCENTILES };

static void print_lifetime(unit kind, const qi_histogram *a, const qi_histogram *b)
{
    for (size_t i = 0; i < PERCENTILE_COUNT; i++)
        print_row(PERCENTILES[i].what, kind, qi_histogram_percentile(a, PERCENTILES[i].share),
                  qi_histogram_percentile(b, PERCENTILES[i].share));
    print_row("longest", kind, a->max, b->max);
}

static void print_replays(const comparison *c)
{
    const replay_setup *setup = &c->setups[SIDE_A];
    const quire_replay_report *a = &c->reports[SIDE_A], *b = &c->reports[SIDE_B];
    print_heading("replays");
    print_row("failures", UNIT_COUNT, a->failures, b->failures);
    print_row("peak held", UNIT_BYTES, a->peak_live_bytes, b->peak_live_bytes);
    print_row("peak reserved", UNIT_BYTES, a->peak_reserved_bytes, b->peak_reserved_bytes);
    print_row("peak pages", UNIT_COUNT, a->peak_pages, b->peak_pages);
    print_row("pages created", UNIT_COUNT, a->pages_created, b->pages_created);
    print_row("pages destroyed", UNIT_COUNT, a->pages_destroyed, b->pages_destroyed);
    print_row("backend calls", UNIT_COUNT, a->backend_calls, b->backend_calls);
    print_row("metadata", UNIT_BYTES, a->metadata_bytes_peak, b->metadata_bytes_peak);
    print_share_row("fragmentation", a->fragmentation.reserved, b->fragmentation.reserved);
    print_share_row("free at the peak", a->fragmentation.free, b->fragmentation.free);
    printf("  (on backend %s with fit %s;\n"
           "  free at the peak: the share of free bytes outside the largest free range)\n",
           backend_of(&setup->choice), fit_text(setup->memory_choice.options.fit.algorithm));
}

void print_comparison(const comparison *c)
{
    const census *a = &c->findings.sides[SIDE_A], *b = &c->findings.sides[SIDE_B];
    print_paths(c);
    print_totals(a, b);
    print_names(c);
    print_only(c, SIDE_A);
    print_only(c, SIDE_B);
    print_classes(a, b);
    print_heading("lifetimes in events");
    print_lifetime(UNIT_COUNT, &a->lifetime_events, &b->lifetime_events);
    print_heading("lifetimes in time");
    print_lifetime(UNIT_TIME, &a->lifetime_ns, &b->lifetime_ns);
    print_replays(c);
}

/* ---- JSON --------------------------------------------------------------------------------- */

static const char *const SIDES[SIDE_COUNT] = {"a", "b"};

static void write_lifetime(qi_json *json, const char *key, const qi_histogram *h)
{
    qi_json_object(json, key);
    for (size_t i = 0; i < PERCENTILE_COUNT; i++)
        qi_json_number(json, PERCENTILES[i].key, qi_histogram_percentile(h, PERCENTILES[i].share));
    qi_json_number(json, "max", h->max);
    qi_json_end_object(json);
}

static void write_side(qi_json *json, const comparison *c, int side)
{
    const census *s = &c->findings.sides[side];
    qi_json_object(json, SIDES[side]);
    qi_json_text(json, "trace", c->setups[side].path);
    qi_json_number(json, "allocations", s->info.alloc_count);
    qi_json_number(json, "frees", s->info.free_count);
    qi_json_number(json, "uses", s->info.use_count);
    qi_json_number(json, "frames", s->info.frame_count);
    qi_json_number(json, "bytes", s->bytes);
    qi_json_number(json, "largest", s->info.largest);
    qi_json_number(json, "peak_bytes", s->info.peak_bytes);
    qi_json_number(json, "ranges_at_peak", s->ranges_at_peak);
    qi_json_number(json, "peak_ranges", s->info.peak_ranges);
    qi_json_number(json, "left_count", s->info.left_count);
    qi_json_number(json, "left_bytes", s->info.left_bytes);
    qi_json_number(json, "end_ns", s->info.end_ns);
    write_lifetime(json, "lifetime_events", &s->lifetime_events);
    write_lifetime(json, "lifetime_ns", &s->lifetime_ns);
    qi_json_end_object(json);
}

/* Returns false without host memory. */
static bool write_name(qi_json *json, const name_row *row)
{
    char *name = strndup(row->name, row->length);
    if (!name)
        return false;
    qi_json_object(json, NULL);
    qi_json_text(json, "name", name);
    free(name);
    for (int i = 0; i < SIDE_COUNT; i++) {
        qi_json_object(json, SIDES[i]);
        qi_json_number(json, "allocations", row->shares[i].allocations);
        qi_json_number(json, "peak_ranges", row->shares[i].peak_ranges);
        qi_json_number(json, "peak_bytes", row->shares[i].peak_bytes);
        qi_json_end_object(json);
    }
    qi_json_end_object(json);
    return true;
}

static bool write_names(qi_json *json, const findings *f)
{
    bool good = true;
    qi_json_array(json, "names");
    for (size_t i = 0; good && i < f->name_count; i++)
        good = write_name(json, &f->names[i]);
    qi_json_end_array(json);
    return good;
}

static void write_classes(qi_json *json, const census sides[SIDE_COUNT])
{
    qi_json_array(json, "sizes");
    for (size_t k = 0; k < SIZE_CLASSES; k++) {
        if (!sides[SIDE_A].sizes[k] && !sides[SIDE_B].sizes[k])
            continue;
        qi_json_object(json, NULL);
        qi_json_number(json, "up_to", class_limit(k));
        for (int i = 0; i < SIDE_COUNT; i++)
            qi_json_number(json, SIDES[i], sides[i].sizes[k]);
        qi_json_end_object(json);
    }
    qi_json_end_array(json);
}

static void write_replays(qi_json *json, const comparison *c)
{
    const replay_setup *setup = &c->setups[SIDE_A];
    qi_json_object(json, "replay");
    qi_json_text(json, "backend", backend_of(&setup->choice));
    qi_json_text(json, "fit", fit_text(setup->memory_choice.options.fit.algorithm));
    qi_json_number(json, "page_size", c->memory.page_size);
    if (setup->memory_choice.preset) /* it may have page classes, which are no members */
        qi_json_text(json, "preset", setup->memory_choice.preset);
    write_members(json, "options", &setup->memory_choice.options);
    for (int i = 0; i < SIDE_COUNT; i++) {
        qi_json_object(json, SIDES[i]);
        write_report(json, &c->reports[i]);
        qi_json_end_object(json);
    }
    qi_json_end_object(json);
}

quire_result write_comparison(const comparison *c)
{
    qi_json json;
    qi_json_init(&json, write_to_file, stdout);
    qi_json_object(&json, NULL);
    for (int i = 0; i < SIDE_COUNT; i++)
        write_side(&json, c, i);
    if (!write_names(&json, &c->findings))
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a name");
    write_classes(&json, c->findings.sides);
    write_replays(&json, c);
    qi_json_end_object(&json);
    return qi_json_finish(&json);
}
