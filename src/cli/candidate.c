/*
 * candidate.c - see candidate.h.
 */
#include "src/cli/candidate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/base/result.h"

static const uint64_t KIB = UINT64_C(1) << 10, MIB = UINT64_C(1) << 20;

/*
 * The ladder of page sizes doubles from the size of a huge page to an eighth of a card of 2 GiB.
 * Where the device has no limit of pages, candidates keep to the 4096 that Vulkan promises.
 */
enum { LEAST_MIB = 2, MAX_MIB = 256, PAGES_PROMISED = 4096, MAX_SIZES = 9 };

/* Grown pages begin at an eighth; an eighth of the peak is kept where some of it is. */
enum { GROWTH_DIVISOR = 8, GROWTH_PERCENT = 100, RETAINED_DIVISOR = 8 };

/* Empty pages are kept up to less than any page: none. */
enum { RETAIN_NOTHING = 1 };

/* ---- the list ------------------------------------------------------------------------------- */

typedef struct listing {
    const candidate_scope *scope;
    candidate *list;
    size_t count;
} listing;

static void add(listing *l, const candidate *c)
{
    l->list[l->count] = *c;
    l->list[l->count].is_default_size = c->page_size == l->scope->default_page_size;
    l->count++;
}

static bool is_on_ladder(const candidate_scope *scope, uint64_t size)
{
    uint64_t max_pages = scope->max_pages ? scope->max_pages : PAGES_PROMISED;
    bool is_enough = size > LEAST_MIB * MIB && size / 2 >= scope->peak_bytes;
    return size >= scope->least_page && size <= scope->max_page && !is_enough &&
           scope->peak_bytes / size <= max_pages;
}

/* The default first: among candidates that cost the same the one that sets less comes first. */
static size_t choose_sizes(const candidate_scope *scope, uint64_t sizes[MAX_SIZES])
{
    size_t count = 0;
    sizes[count++] = scope->page_size ? scope->page_size : scope->default_page_size;
    if (scope->page_size)
        return count;
    for (uint64_t mib = LEAST_MIB; mib <= MAX_MIB; mib *= 2)
        if (mib * MIB != scope->default_page_size && is_on_ladder(scope, mib * MIB))
            sizes[count++] = mib * MIB;
    return count;
}

/* Whole pages: less than one could not be kept. */
static uint64_t bytes_to_retain(const candidate_scope *scope, uint64_t page_size)
{
    uint64_t pages = scope->peak_bytes / RETAINED_DIVISOR / page_size;
    return (pages ? pages : 1) * page_size;
}

static void add_retentions(listing *l, candidate c)
{
    for (int i = RETENTION_DEFAULT; i <= RETENTION_SOME; i++) {
        c.retention = (retention)i;
        c.retained_bytes =
            c.retention == RETENTION_SOME ? bytes_to_retain(l->scope, c.page_size) : 0;
        if (c.retained_bytes < l->scope->peak_bytes) /* else it is all that there ever is */
            add(l, &c);
    }
}

static void add_thresholds(listing *l, candidate c)
{
    add_retentions(l, c);
    c.dedicated_threshold = c.page_size / 2;
    if (c.dedicated_threshold && c.dedicated_threshold <= l->scope->largest)
        add_retentions(l, c);
}

static void add_policies(listing *l, candidate c)
{
    add_thresholds(l, c);
    c.first_page_size = c.page_size / GROWTH_DIVISOR;
    if (c.first_page_size >= l->scope->least_page && c.first_page_size < l->scope->peak_bytes)
        add_thresholds(l, c);
}

/* One page for everything: what alignment and freeing out of order cost in it, the trace tells. */
static void add_linear(listing *l)
{
    const candidate_scope *scope = l->scope;
    uint64_t unit = LEAST_MIB * MIB;
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

size_t make_candidates(const candidate_scope *scope, candidate list[MAX_CANDIDATES])
{
    static const quire_fit fits[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY};
    listing l = {.scope = scope, .list = list};
    uint64_t sizes[MAX_SIZES];
    size_t count = choose_sizes(scope, sizes);
    for (size_t fit = 0; fit < sizeof fits / sizeof *fits; fit++)
        for (size_t i = 0; i < count && (scope->fit == ANY_FIT || scope->fit == fits[fit]); i++)
            add_policies(&l, (candidate){.fit = fits[fit], .page_size = sizes[i]});
    if (scope->fit == ANY_FIT || scope->fit == QUIRE_FIT_LINEAR)
        add_linear(&l);
    return l.count;
}

/* ---- one of them ---------------------------------------------------------------------------- */

uint32_t candidate_options_set(const candidate *c)
{
    const bool set[] = {c->fit != QUIRE_FIT_SEGREGATED, !c->is_default_size,
                        c->first_page_size != 0, c->dedicated_threshold != 0,
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

quire_memory_options candidate_options(const candidate *c)
{
    return (quire_memory_options){
        .name = "replay", /* as quire replay names it: a name counts among the own records */
        .fit = c->fit,
        .pages = {.page_size = c->page_size,
                  .first_page_size = c->first_page_size,
                  .growth_percent = c->first_page_size ? GROWTH_PERCENT : 0,
                  .dedicated_threshold = c->dedicated_threshold,
                  .retained_empty_bytes = retained_empty_bytes(c)},
    };
}

/* ---- in words and in C ---------------------------------------------------------------------- */

/* Adds to a text; what would not fit is cut, which the callers' texts never come to. */
static void append(candidate_text *out, const char *format, ...) QUIRE_PRINTF(2, 3);

static void append(candidate_text *out, const char *format, ...)
{
    size_t length = strlen(out->text);
    va_list args;
    va_start(args, format);
    vsnprintf(out->text + length, sizeof out->text - length, format, args);
    va_end(args);
}

candidate_text candidate_policy_text(const candidate *c)
{
    candidate_text out = {""};
    if (c->first_page_size)
        append(&out, ", doubling from %s", qi_bytes(c->first_page_size).text);
    if (c->dedicated_threshold)
        append(&out, ", dedicated from %s", qi_bytes(c->dedicated_threshold).text);
    if (c->retention == RETENTION_NONE)
        append(&out, ", empty pages given back at once");
    else if (c->retention == RETENTION_SOME)
        append(&out, ", at most %s of empty pages kept", qi_bytes(c->retained_bytes).text);
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
        append(out, "        .retained_empty_bytes = %d, /* less than any page: none is kept */\n",
               RETAIN_NOTHING);
    else if (c->retention == RETENTION_SOME)
        append_size(out, "retained_empty_bytes", c->retained_bytes);
}

candidate_text candidate_c_text(const candidate *c)
{
    candidate_text out = {"quire_memory_options options = {"};
    uint32_t set = candidate_options_set(c), of_pages = set - (c->fit != QUIRE_FIT_SEGREGATED);
    if (!set) {
        append(&out, "0};\n");
        return out;
    }
    append(&out, "\n");
    if (c->fit != QUIRE_FIT_SEGREGATED)
        append(&out, "    .fit = %s,\n", fit_constant(c->fit));
    if (of_pages)
        append(&out, "    .pages = {\n");
    if (!c->is_default_size)
        append_size(&out, "page_size", c->page_size);
    if (c->first_page_size) {
        append_size(&out, "first_page_size", c->first_page_size);
        append(&out, "        .growth_percent = %d,\n", GROWTH_PERCENT);
    }
    if (c->dedicated_threshold)
        append_size(&out, "dedicated_threshold", c->dedicated_threshold);
    append_retention(&out, c);
    append(&out, "%s};\n", of_pages ? "    },\n" : "");
    return out;
}
