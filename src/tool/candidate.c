/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * candidate.c - candidates are useful combinations of fit, page sizes, growth, retention and
 * threshold. Also writes candidates as text and as C.
 */
#include "src/tool/candidate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/base/result.h"

static const uint64_t KIB = UINT64_C(1) << 10, MIB = UINT64_C(1) << 20;

/*
 * Page sizes double from 2 MiB, the size of a huge page, to 256 MiB, which is 1/8 of a GPU with
 * 2 GiB. If the device has no page limit, candidates need at most 4096 pages, the
 * maxMemoryAllocationCount that Vulkan guarantees.
 */
enum { MIN_MIB = 2, MAX_MIB = 256, PAGES_PROMISED = 4096, MAX_SIZES = 9 };

/* Doubling page sizes start at 1/8 of the page size. RETENTION_SOME keeps 1/8 of the peak. */
enum { GROWTH_DIVISOR = 8, GROWTH_PERCENT = 100, RETAINED_DIVISOR = 8 };

/* A retention of 0 bytes means the default. One byte is less than any page, so no page is kept. */
enum { RETAIN_NOTHING = 1 };

/* ---- the list ----------------------------------------------------------------------------- */

typedef struct listing {
    const candidate_scope *scope;
    candidate *list;
    size_t count;
} listing;

static void add(listing *l, const candidate *c)
{
    l->list[l->count++] = *c;
}

/*
 * Whether a page size is worth trying: the device can create it, it does not need more pages than
 * allowed, and half of it does not already hold the peak.
 */
static bool is_useful_size(const candidate_scope *scope, uint64_t size)
{
    uint64_t max_pages = scope->max_pages ? scope->max_pages : PAGES_PROMISED;
    bool is_enough = size > MIN_MIB * MIB && size / 2 >= scope->peak_bytes;
    return size >= scope->least_page && size <= scope->max_page && !is_enough &&
           scope->peak_bytes / size <= max_pages;
}

/* The default comes first, so that it wins over other sizes with the same cost. */
static size_t choose_sizes(const candidate_scope *scope, uint64_t sizes[MAX_SIZES])
{
    size_t count = 0;
    sizes[count++] = scope->page_size; /* or 0, the default */
    if (scope->page_size)
        return count;
    for (uint64_t mib = MIN_MIB; mib <= MAX_MIB; mib *= 2)
        if (is_useful_size(scope, mib * MIB))
            sizes[count++] = mib * MIB;
    return count;
}

/* Rounds down to whole pages, but at least one, because the memory keeps whole pages. Pages that
   follow use are multiples of 1 MiB on most devices. */
static uint64_t bytes_to_retain(const candidate_scope *scope, uint64_t page_size)
{
    uint64_t unit = page_size ? page_size : MIB;
    uint64_t pages = scope->peak_bytes / RETAINED_DIVISOR / unit;
    return (pages ? pages : 1) * unit;
}

/* Adds the candidate with each retention that differs from the default for this trace. */
static void add_retentions(listing *l, candidate c)
{
    for (int i = RETENTION_DEFAULT; i <= RETENTION_SOME; i++) {
        c.retention = (retention)i;
        c.retained_bytes =
            c.retention == RETENTION_SOME ? bytes_to_retain(l->scope, c.page_size) : 0;
        if (c.retained_bytes < l->scope->peak_bytes) /* otherwise it keeps all, as the default */
            add(l, &c);
    }
}

/* Adds the candidate without and with a dedicated threshold, if a request would reach it. */
static void add_thresholds(listing *l, candidate c)
{
    add_retentions(l, c);
    c.dedicated_threshold = c.page_size / 2;
    if (c.dedicated_threshold && c.dedicated_threshold <= l->scope->largest)
        add_retentions(l, c);
}

/*
 * Adds the candidate with pages that grow by a share of the memory. The default does so by a
 * twelfth to 30 percent, and never by less than 1 MiB. Growth stops at the default page size, an
 * eighth of a small heap, which must exceed the first page.
 */
static void add_shares(listing *l, candidate c)
{
    static const uint32_t percents[] = {6, 12, 25};
    uint64_t least = l->scope->least_page, first = least > MIB ? least : MIB;
    if (c.page_size || l->scope->max_page / GROWTH_DIVISOR / 2 < first)
        return;
    c.first_page_size = first;
    for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
        c.reserved_percent = percents[i];
        add_retentions(l, c);
    }
}

/* Adds the candidate with fixed and with growing page sizes, if the first page is useful. */
static void add_policies(listing *l, candidate c)
{
    add_thresholds(l, c);
    add_shares(l, c);
    c.first_page_size = c.page_size / GROWTH_DIVISOR;
    if (c.page_size && c.first_page_size >= l->scope->least_page &&
        c.first_page_size < l->scope->peak_bytes)
        add_thresholds(l, c);
}

/*
 * The linear fit uses one page. Alignment and frees out of order waste space in it, so it is tried
 * with the given page size, or with pages of 1, 1.5 and 2 times the peak.
 */
static void add_linear(listing *l)
{
    const candidate_scope *scope = l->scope;
    uint64_t unit = MIN_MIB * MIB;
    if (scope->page_size) {
        add(l, &(candidate){.fit = QUIRE_FIT_LINEAR, .page_size = scope->page_size});
        return;
    }
    uint64_t units = scope->peak_bytes / unit + (scope->peak_bytes % unit != 0);
    for (uint64_t halves = 2; halves <= 4; halves++) {
        uint64_t room = (units * halves + 1) / 2;
        if (room <= scope->max_page / unit)
            add(l, &(candidate){.fit = QUIRE_FIT_LINEAR, .page_size = room * unit});
    }
}

/* Elastic memories, whose page size is that of a chunk: the default, and sizes of a device. */
static void add_elastic(listing *l)
{
    static const uint64_t chunks[] = {0, 2, 8, 32};
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++)
        if (!chunks[i] || !l->scope->page_size)
            add_retentions(
                l, (candidate){.elastic = true,
                               .page_size = chunks[i] ? chunks[i] * MIB : l->scope->page_size});
}

size_t make_candidates(const candidate_scope *scope, candidate list[MAX_CANDIDATES])
{
    static const quire_fit fits[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY};
    listing l = {.scope = scope, .list = list};
    uint64_t sizes[MAX_SIZES];
    size_t count = choose_sizes(scope, sizes);
    for (size_t fit = 0; fit < sizeof fits / sizeof *fits; fit++)
        for (size_t i = 0; i < count && (scope->fit == ANY_FIT || scope->fit == fits[fit]); i++) {
            add_policies(&l, (candidate){.fit = fits[fit], .page_size = sizes[i]});
            if (scope->elastic && !fit && !i) /* early: they are few, and the time may be short */
                add_elastic(&l);
        }
    if (scope->fit == QUIRE_FIT_LINEAR)
        add_linear(&l);
    return l.count;
}

/* ---- one candidate ------------------------------------------------------------------------ */

uint32_t candidate_options_set(const candidate *c)
{
    const bool set[] = {c->fit != QUIRE_FIT_SEGREGATED,
                        c->elastic,
                        c->page_size != 0,
                        c->first_page_size != 0,
                        c->dedicated_threshold != 0,
                        c->retention != RETENTION_DEFAULT};
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        count += set[i];
    return count;
}

static uint64_t retained_empty_bytes(const candidate *c)
{
    switch (c->retention) {
    case RETENTION_DEFAULT:
        break;
    case RETENTION_NONE:
        return RETAIN_NOTHING;
    case RETENTION_SOME:
        return c->retained_bytes;
    }
    return 0;
}

static uint32_t growth_percent(const candidate *c)
{
    if (c->reserved_percent)
        return c->reserved_percent;
    return c->first_page_size ? GROWTH_PERCENT : 0;
}

quire_memory_options candidate_options(const candidate *c)
{
    return (quire_memory_options){
        .name = "replay", /* as quire replay does: the name counts in the metadata bytes */
        .elastic = c->elastic,
        .fit.algorithm = c->fit,
        .pages = {.page_size = c->page_size,
                  .first_page_size = c->first_page_size,
                  .growth_percent = growth_percent(c),
                  .growth = c->reserved_percent ? QUIRE_GROWTH_RESERVED : QUIRE_GROWTH_LAST,
                  .dedicated_threshold = c->dedicated_threshold,
                  .retained_empty_bytes = retained_empty_bytes(c)},
    };
}

/* ---- as text and as C --------------------------------------------------------------------- */

/* Appends to a text. It truncates, but the longest text of the callers is shorter. */
static void append(candidate_text *out, const char *format, ...) QUIRE_PRINTF(2, 3);

static void append(candidate_text *out, const char *format, ...)
{
    size_t length = strlen(out->text);
    va_list args;
    va_start(args, format);
    vsnprintf(out->text + length, sizeof out->text - length, format, args);
    va_end(args);
}

candidate_text candidate_pages_text(const candidate *c)
{
    candidate_text out = {""};
    const char *none = c->elastic ? "default" : "by use";
    if (c->reserved_percent)
        append(&out, "+%" PRIu32 " %%", c->reserved_percent);
    else
        append(&out, "%s", c->page_size ? qi_bytes(c->page_size).text : none);
    return out;
}

candidate_text candidate_policy_text(const candidate *c)
{
    candidate_text out = {""};
    if (c->reserved_percent)
        append(&out, ", growing by %" PRIu32 " %% of all pages from %s", c->reserved_percent,
               qi_bytes(c->first_page_size).text);
    else if (c->first_page_size)
        append(&out, ", doubling from %s", qi_bytes(c->first_page_size).text);
    if (c->dedicated_threshold)
        append(&out, ", dedicated from %s", qi_bytes(c->dedicated_threshold).text);
    if (c->retention == RETENTION_NONE)
        append(&out, ", keeps no empty pages");
    else if (c->retention == RETENTION_SOME)
        append(&out, ", keeps at most %s of empty pages", qi_bytes(c->retained_bytes).text);
    if (!*out.text)
        append(&out, ", default");
    memmove(out.text, out.text + 2, strlen(out.text + 2) + 1);
    return out;
}

static const char *fit_constant(quire_fit fit)
{
    switch (fit) {
    case QUIRE_FIT_SEGREGATED:
        break;
    case QUIRE_FIT_FIRST:
        return "QUIRE_FIT_FIRST";
    case QUIRE_FIT_BUDDY:
        return "QUIRE_FIT_BUDDY";
    case QUIRE_FIT_LINEAR:
        return "QUIRE_FIT_LINEAR";
    }
    return "QUIRE_FIT_SEGREGATED";
}

/* Writes sizes as a shifted constant if possible, such as UINT64_C(32) << 20. */
static void append_size(candidate_text *out, const char *field, uint64_t bytes)
{
    int shift = bytes % MIB == 0 ? 20 : bytes % KIB == 0 ? 10 : 0;
    append(out, "        .%s = UINT64_C(%" PRIu64 ")", field, bytes >> shift);
    if (shift)
        append(out, " << %d, /* %s */\n", shift, qi_bytes(bytes).text);
    else
        append(out, ",\n");
}

static void append_retention(candidate_text *out, const candidate *c)
{
    if (c->retention == RETENTION_NONE)
        append(out, "        .retained_empty_bytes = %d, /* less than any page: keeps none */\n",
               RETAIN_NOTHING);
    else if (c->retention == RETENTION_SOME)
        append_size(out, "retained_empty_bytes", c->retained_bytes);
}

candidate_text candidate_c_text(const candidate *c)
{
    candidate_text out = {"quire_memory_options options = {"};
    uint32_t set = candidate_options_set(c);
    uint32_t of_pages = set - (c->fit != QUIRE_FIT_SEGREGATED) - c->elastic;
    if (!set) {
        append(&out, "0};\n");
        return out;
    }
    append(&out, "\n");
    if (c->fit != QUIRE_FIT_SEGREGATED)
        append(&out, "    .fit.algorithm = %s,\n", fit_constant(c->fit));
    if (c->elastic)
        append(&out, "    .elastic = true,\n");
    if (of_pages)
        append(&out, "    .pages = {\n");
    if (c->page_size)
        append_size(&out, "page_size", c->page_size);
    if (c->first_page_size) {
        append_size(&out, "first_page_size", c->first_page_size);
        append(&out, "        .growth_percent = %" PRIu32 ",\n", growth_percent(c));
    }
    if (c->reserved_percent)
        append(&out, "        .growth = QUIRE_GROWTH_RESERVED,\n");
    if (c->dedicated_threshold)
        append_size(&out, "dedicated_threshold", c->dedicated_threshold);
    append_retention(&out, c);
    append(&out, "%s};\n", of_pages ? "    },\n" : "");
    return out;
}
