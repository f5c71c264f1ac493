/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * picture.c - draws pages as bars of an SVG 1.1 picture, which one walk measures and a second walk
 * draws. quire_memory_write_svg draws the pages of a memory, quire_device_write_svg those of all
 * memories of a device. The bars have the same width, whatever the sizes of the pages, so that
 * small pages beside a large one are readable.
 *
 * The colour of a range follows from the first part of its name (src/render/owners.h); the legend
 * lists these parts by their bytes. The picture contains its style sheet, for light and dark
 * browsers. Ranges narrower than a pixel are drawn one pixel wide, so that every live range is
 * visible.
 */
#include <inttypes.h>
#include <stdio.h>

#include "quire/insight.h"
#include "src/base/json.h"
#include "src/base/result.h"
#include "src/base/text.h"
#include "src/core/state/memory.h"
#include "src/render/owners.h"

/*
 * Pixels. LEFT has room for "page 123 (dedicated)" in 12 px, RIGHT for the size of a page and its
 * live share.
 */
enum { LEFT = 130, WIDTH = 860, RIGHT = 160, BAR = 22, PITCH = 30, TOP = 64, BOTTOM = 20 };
enum { LEGEND_PITCH = 20, MAX_NAMES = 12 };

/* The result of a first walk, which measures the picture. */
typedef struct layout {
    uint32_t rows;
    bool in_page; /* the last row shows `page` of the memory that is walked over */
    uint32_t page;
    qi_owners owners;
    bool lacks_memory;   /* host memory was exhausted during the walk */
    quire_result result; /* of the memories of a device so far */
} layout;

/* The state of a second walk, which draws it. */
typedef struct drawing {
    qi_writer writer;
    int top;      /* of the first row, in pixels */
    uint32_t row; /* number of rows so far */
    bool in_page; /* the last row shows `page` */
    uint32_t page;
    uint64_t page_size, page_bytes, live; /* of that page; see quire_item */
    uint64_t end;                         /* of the item before, bytes from the page's start */
    quire_result result;                  /* of the memories of a device so far */
} drawing;

static bool measure_item(void *user, const quire_item *item)
{
    layout *l = user;
    l->rows += !l->in_page || l->page != item->page;
    l->in_page = true;
    l->page = item->page;
    if (!item->is_free)
        l->lacks_memory = !qi_owners_add(&l->owners, item->name, item->backed + item->left_padding);
    return !l->lacks_memory;
}

/* Maps the first `length` bytes of a name to the same colour in every run: FNV-1a. */
static uint32_t hue_of(const char *name, size_t length)
{
    uint32_t hash = UINT32_C(2166136261);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT32_C(16777619);
    return hash % 360;
}

/* ---- pages -------------------------------------------------------------------------------- */

static double x_of(const drawing *d, uint64_t bytes)
{
    return (double)bytes / (double)d->page_size * (double)WIDTH;
}

/* Writes the size of the page and its live share after the bar. */
static void end_row(drawing *d)
{
    if (!d->in_page)
        return;
    d->in_page = false;
    qi_write_format(&d->writer, "<text x=\"%d\" y=\"%d\">%s, %.0f %% live</text>\n",
                    LEFT + WIDTH + 8, d->top + (int)(d->row - 1) * PITCH + BAR - 7,
                    qi_bytes(d->page_bytes).text, 100.0 * (double)d->live / (double)d->page_bytes);
}

static void begin_row(drawing *d, const quire_item *item)
{
    int y = d->top + (int)d->row * PITCH;
    end_row(d);
    qi_write_format(&d->writer, "<text class=\"p\" x=\"%d\" y=\"%d\">page %" PRIu32 "%s</text>\n",
                    LEFT - 8, y + BAR - 7, item->page, item->dedicated ? " (dedicated)" : "");
    qi_write_format(&d->writer, "<rect class=\"f\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\">",
                    LEFT, y, WIDTH, BAR);
    qi_write_format(&d->writer, "<title>page %" PRIu32 ": %s</title></rect>\n", item->page,
                    qi_bytes(item->page_bytes).text);
    d->row++;
    d->in_page = true;
    d->page = item->page;
    d->page_size = item->page_size;
    d->page_bytes = item->page_bytes;
    d->live = d->end = 0;
}

/* Opens a rectangle in the current row. The caller writes its title and closes it. */
static void draw_rect(drawing *d, uint64_t offset, uint64_t size, const char *attributes)
{
    double width = x_of(d, size);
    qi_write_format(&d->writer, "<rect x=\"%s\" y=\"%d\" width=\"%s\" height=\"%d\" %s>",
                    qi_real_2((double)LEFT + x_of(d, offset)).text,
                    d->top + (int)(d->row - 1) * PITCH, qi_real_2(width < 1 ? 1 : width).text, BAR,
                    attributes);
}

/* Draws the stretch of an elastic page before an item that has no memory. */
static void draw_gap(drawing *d, const quire_item *item)
{
    const uint64_t begin = item->offset - item->left_padding, gap = begin - d->end;
    if (gap && d->page_bytes < d->page_size) {
        draw_rect(d, d->end, gap, "class=\"b\"");
        qi_write_format(&d->writer, "<title>no memory: %s</title></rect>\n", qi_bytes(gap).text);
    }
    d->end = item->offset + item->size;
}

/* The walk does not tell which chunks of a lazy allocation have memory: it is pale as a whole. A
   sleeping one is paler. */
static void draw_allocation(drawing *d, const quire_item *item)
{
    const bool is_whole = item->backed == item->size;
    char fill[96];
    snprintf(fill, sizeof fill, "class=\"a\" fill=\"hsl(%" PRIu32 ",55%%,60%%)\"%s",
             hue_of(item->name, qi_owners_part(item->name)),
             is_whole ? "" : (item->asleep ? " fill-opacity=\"0.25\"" : " fill-opacity=\"0.5\""));
    draw_rect(d, item->offset, item->size, fill);
    qi_write_text(&d->writer, "<title>");
    qi_write_escaped(&d->writer, *item->name ? item->name : "(unnamed)");
    qi_write_format(&d->writer,
                    ": page %" PRIu32 " offset %" PRIu64 " size %" PRIu64 ", %" PRIu64 " requested",
                    item->page, item->offset, item->size, item->requested);
    if (item->asleep)
        qi_write_text(&d->writer, ", asleep");
    else if (!is_whole)
        qi_write_format(&d->writer, ", %s of %s have memory", qi_bytes(item->backed).text,
                        qi_bytes(item->size).text);
    qi_write_text(&d->writer, "</title></rect>\n");
}

static bool draw_item(void *user, const quire_item *item)
{
    drawing *d = user;
    if (!d->in_page || d->page != item->page)
        begin_row(d, item);
    draw_gap(d, item);
    if (item->is_free)
        return !d->writer.failed;
    d->live += item->backed + item->left_padding;
    if (item->left_padding) {
        draw_rect(d, item->offset - item->left_padding, item->left_padding, "fill=\"url(#h)\"");
        qi_write_format(&d->writer, "<title>left padding, %" PRIu64 " byte%s</title></rect>\n",
                        item->left_padding, qi_plural(item->left_padding));
    }
    draw_allocation(d, item);
    return !d->writer.failed;
}

/* ---- legend ------------------------------------------------------------------------------- */

/* The upper edge of the pages, which are below the legend. */
static int top_of_pages(const layout *l)
{
    int rows = l->owners.count > MAX_NAMES ? MAX_NAMES + 1 : (int)l->owners.count;
    return TOP + rows * LEGEND_PITCH;
}

static void write_sum(qi_writer *w, const qi_owner_sum *sum)
{
    qi_write_format(w, ": %s in %" PRIu64 " allocation%s</text>\n", qi_bytes(sum->live_bytes).text,
                    sum->count, qi_plural(sum->count));
}

/* The first parts of the names by their bytes, each with its colour. */
static void write_legend(qi_writer *w, layout *l)
{
    int y = TOP + 10;
    for (int i = 0; i < MAX_NAMES; i++, y += LEGEND_PITCH) {
        const qi_owner_sum *sum = qi_owners_take_largest(&l->owners);
        if (!sum)
            return;
        qi_write_format(w,
                        "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" "
                        "fill=\"hsl(%" PRIu32 ",55%%,60%%)\"/>",
                        LEFT, y - 10, hue_of(sum->name, qi_owners_part(sum->name)));
        qi_write_format(w, "<text x=\"%d\" y=\"%d\">", LEFT + 20, y);
        qi_write_escaped(w, *sum->name ? sum->name : "(unnamed)");
        write_sum(w, sum);
    }
    uint64_t names;
    const qi_owner_sum rest = qi_owners_rest(&l->owners, &names);
    if (names) {
        qi_write_format(w, "<text x=\"%d\" y=\"%d\">%" PRIu64 " more name%s", LEFT + 20, y, names,
                        qi_plural(names));
        write_sum(w, &rest);
    }
}

/* ---- the picture -------------------------------------------------------------------------- */

/* Writes the head up to the title, which the caller writes and ends by write_explanation. */
static void write_head(qi_writer *w, const layout *l)
{
    int width = LEFT + WIDTH + RIGHT, height = top_of_pages(l) + (int)l->rows * PITCH + BOTTOM;
    qi_write_format(w, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" ",
                    width, height);
    qi_write_format(w, "viewBox=\"0 0 %d %d\">\n", width, height);
    qi_write_text(w, "<style>text{font:12px sans-serif;fill:#333}.p{text-anchor:end}"
                     ".b{fill:#fff}.f{fill:#e8e8ea}.a{stroke:#fff;stroke-width:.5}"
                     ".t{font-size:15px}@media(prefers-color-scheme:dark){text{fill:#ddd}"
                     ".b{fill:#17181b}.f{fill:#2c2e33}.a{stroke:#17181b}}</style>\n");
    qi_write_text(w, "<defs><pattern id=\"h\" width=\"6\" height=\"6\" "
                     "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
                     "<rect width=\"3\" height=\"6\" fill=\"#999\"/></pattern></defs>\n");
    qi_write_format(w, "<rect class=\"b\" width=\"%d\" height=\"%d\"/>\n", width, height);
    qi_write_format(w, "<text class=\"t\" x=\"%d\" y=\"24\">", LEFT);
}

static void write_explanation(qi_writer *w)
{
    qi_write_format(w,
                    "<text x=\"%d\" y=\"48\">Each bar is a page from its start to its end. The "
                    "colour is that of the first part of a name.</text>\n",
                    LEFT);
}

/* "name: 3 MiB live in 4 allocations, 4 MiB reserved in 2 pages" and the end of the element. */
static void write_sums(qi_writer *w, const char *name, const quire_memory_stats *stats)
{
    qi_write_escaped(w, name);
    qi_write_format(w, ": %s live in %" PRIu64 " allocation%s, ", qi_bytes(stats->live_bytes).text,
                    stats->allocation_count, qi_plural(stats->allocation_count));
    qi_write_format(w, "%s reserved in %" PRIu64 " page%s</text>\n",
                    qi_bytes(stats->reserved_bytes).text, stats->page_count,
                    qi_plural(stats->page_count));
}

static quire_result measure(const quire_memory *memory, layout *l)
{
    l->in_page = false;
    quire_result result = quire_memory_walk(memory, measure_item, l);
    return !result && l->lacks_memory
               ? qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a picture")
               : result;
}

static quire_result draw_pages(const quire_memory *memory, drawing *d)
{
    quire_result result = quire_memory_walk(memory, draw_item, d);
    end_row(d);
    return result;
}

/* The frame fits the pages of the first walk. Between the two walks other threads may add pages. */
static quire_result draw(const quire_memory *memory, layout *l, quire_sink sink, void *user)
{
    quire_result result = measure(memory, l);
    if (result)
        return result;
    quire_memory_stats stats;
    qi_ignore(quire_memory_get_stats(memory, &stats));
    drawing d = {.top = top_of_pages(l)};
    qi_writer_init(&d.writer, sink, user);
    write_head(&d.writer, l);
    write_sums(&d.writer, memory->name, &stats);
    write_explanation(&d.writer);
    write_legend(&d.writer, l);
    result = draw_pages(memory, &d);
    qi_write_text(&d.writer, "</svg>\n");
    return result ? result : qi_writer_finish(&d.writer);
}

quire_result quire_memory_write_svg(const quire_memory *memory, quire_sink sink, void *user)
{
    if (!memory || !sink)
        return qi_fail_null("quire_memory_write_svg", !memory ? "memory" : "sink");
    layout l = {.rows = 0};
    quire_result result = qi_owners_init(&l.owners, &memory->device->host.callbacks);
    if (!result)
        result = draw(memory, &l, sink, user);
    qi_owners_finish(&l.owners);
    return result;
}

/* ---- a device ----------------------------------------------------------------------------- */

/* The name of a memory takes a row. */
static bool measure_memory(void *user, quire_memory *memory)
{
    layout *l = user;
    l->rows++;
    l->result = measure(memory, l);
    return !l->result;
}

static bool draw_memory(void *user, quire_memory *memory)
{
    drawing *d = user;
    quire_memory_stats stats;
    qi_ignore(quire_memory_get_stats(memory, &stats));
    qi_write_format(&d->writer, "<text x=\"%d\" y=\"%d\">", LEFT,
                    d->top + (int)d->row * PITCH + BAR - 4);
    write_sums(&d->writer, memory->name, &stats);
    d->row++;
    d->result = draw_pages(memory, d);
    return !d->result && !d->writer.failed;
}

static quire_result draw_device(const quire_device *device, layout *l, quire_sink sink, void *user)
{
    quire_device_stats stats;
    quire_result result = quire_device_get_stats(device, &stats);
    if (!result)
        result = quire_device_walk(device, measure_memory, l);
    if (result || l->result)
        return result ? result : l->result;
    const quire_memory_stats sums = {.live_bytes = stats.live_bytes,
                                     .allocation_count = stats.allocation_count,
                                     .reserved_bytes = stats.reserved_bytes,
                                     .page_count = stats.page_count};
    drawing d = {.top = top_of_pages(l)};
    qi_writer_init(&d.writer, sink, user);
    write_head(&d.writer, l);
    write_sums(&d.writer, device->info.name, &sums);
    write_explanation(&d.writer);
    write_legend(&d.writer, l);
    result = quire_device_walk(device, draw_memory, &d);
    qi_write_text(&d.writer, "</svg>\n");
    if (!result)
        result = d.result;
    return result ? result : qi_writer_finish(&d.writer);
}

quire_result quire_device_write_svg(const quire_device *device, quire_sink sink, void *user)
{
    if (!device || !sink)
        return qi_fail_null("quire_device_write_svg", !device ? "device" : "sink");
    layout l = {.rows = 0};
    quire_result result = qi_owners_init(&l.owners, &device->host.callbacks);
    if (!result)
        result = draw_device(device, &l, sink, user);
    qi_owners_finish(&l.owners);
    return result;
}
