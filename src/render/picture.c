/*
 * picture.c - the page map of a memory as SVG: one bar per page on a common scale.
 *
 * Plain SVG 1.1 with a style sheet of its own: it opens in any browser, dark or light. Ranges that
 * would be thinner than a pixel are drawn one pixel wide, so that nothing live is invisible.
 */
#include <inttypes.h>
#include <stdio.h>

#include "quire/insight.h"
#include "src/base/result.h"
#include "src/base/text.h"
#include "src/base/writer.h"

enum { LEFT = 90, WIDTH = 1000, BAR = 22, PITCH = 30, TOP = 64, BOTTOM = 20 };

typedef struct layout {
    uint64_t max_page;
    uint32_t pages; /* counted so far, the last of them being `page` */
    uint32_t page;
} layout;

typedef struct drawing {
    qi_writer writer;
    uint64_t max_page;
    uint32_t row; /* rows begun */
    uint32_t page;
} drawing;

static bool measure_item(void *user, const quire_item *item)
{
    layout *l = user;
    l->pages += !l->pages || l->page != item->page;
    l->page = item->page;
    if (item->page_size > l->max_page)
        l->max_page = item->page_size;
    return true;
}

/* A colour that stays the same for a name from run to run (FNV-1a of its bytes). */
static uint32_t hue_of(const char *name)
{
    uint32_t hash = UINT32_C(2166136261);
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT32_C(16777619);
    return hash % 360;
}

static double x_of(const drawing *d, uint64_t bytes)
{
    return d->max_page ? (double)bytes / (double)d->max_page * (double)WIDTH : 0;
}

static void begin_row(drawing *d, const quire_item *item)
{
    int y = TOP + (int)d->row * PITCH;
    qi_write_format(&d->writer, "<text class=\"p\" x=\"%d\" y=\"%d\">page %" PRIu32 "%s</text>\n",
                    LEFT - 8, y + BAR - 7, item->page, item->dedicated ? " (own)" : "");
    qi_write_format(&d->writer, "<rect class=\"f\" x=\"%d\" y=\"%d\" width=\"%s\" height=\"%d\">",
                    LEFT, y, qi_real_2(x_of(d, item->page_size)).text, BAR);
    qi_write_format(&d->writer, "<title>page %" PRIu32 ": %s</title></rect>\n", item->page,
                    qi_bytes(item->page_size).text);
    d->row++;
    d->page = item->page;
}

static void draw_rect(drawing *d, uint64_t offset, uint64_t size, const char *attributes)
{
    double width = x_of(d, size);
    qi_write_format(&d->writer, "<rect x=\"%s\" y=\"%d\" width=\"%s\" height=\"%d\" %s>",
                    qi_real_2((double)LEFT + x_of(d, offset)).text, TOP + (int)(d->row - 1) * PITCH,
                    qi_real_2(width < 1 ? 1 : width).text, BAR, attributes);
}

static bool draw_item(void *user, const quire_item *item)
{
    drawing *d = user;
    if (!d->row || d->page != item->page)
        begin_row(d, item);
    if (item->is_free)
        return !d->writer.failed;
    if (item->left_padding) {
        draw_rect(d, item->offset - item->left_padding, item->left_padding, "fill=\"url(#h)\"");
        qi_write_format(&d->writer, "<title>left padding, %" PRIu64 " bytes</title></rect>\n",
                        item->left_padding);
    }
    char fill[64];
    snprintf(fill, sizeof fill, "class=\"a\" fill=\"hsl(%" PRIu32 ",55%%,60%%)\"",
             hue_of(item->name));
    draw_rect(d, item->offset, item->size, fill);
    qi_write_text(&d->writer, "<title>");
    qi_write_escaped(&d->writer, *item->name ? item->name : "(unnamed)");
    qi_write_format(&d->writer,
                    ": page %" PRIu32 " offset %" PRIu64 " size %" PRIu64 ", %" PRIu64
                    " asked</title></rect>\n",
                    item->page, item->offset, item->size, item->requested);
    return !d->writer.failed;
}

static void write_head(drawing *d, const layout *l, const quire_memory_info *info,
                       const quire_memory_stats *stats)
{
    qi_writer *w = &d->writer;
    int height = TOP + (int)l->pages * PITCH + BOTTOM;
    qi_write_format(w, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" ",
                    LEFT + WIDTH + 20, height);
    qi_write_format(w, "viewBox=\"0 0 %d %d\">\n", LEFT + WIDTH + 20, height);
    qi_write_text(w, "<style>text{font:12px sans-serif;fill:#333}.p{text-anchor:end}"
                     ".b{fill:#fff}.f{fill:#e8e8ea}.a{stroke:#fff;stroke-width:.5}"
                     ".t{font-size:15px}@media(prefers-color-scheme:dark){text{fill:#ddd}"
                     ".b{fill:#17181b}.f{fill:#2c2e33}.a{stroke:#17181b}}</style>\n");
    qi_write_text(w, "<defs><pattern id=\"h\" width=\"6\" height=\"6\" "
                     "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
                     "<rect width=\"3\" height=\"6\" fill=\"#999\"/></pattern></defs>\n");
    qi_write_format(w, "<rect class=\"b\" width=\"%d\" height=\"%d\"/>\n", LEFT + WIDTH + 20,
                    height);
    qi_write_format(w, "<text class=\"t\" x=\"%d\" y=\"24\">", LEFT);
    qi_write_escaped(w, info->name);
    qi_write_format(w, ": %s live in %" PRIu64 " allocation%s, ", qi_bytes(stats->live_bytes).text,
                    stats->allocation_count, qi_plural(stats->allocation_count));
    qi_write_format(w, "%s reserved in %" PRIu64 " page%s</text>\n",
                    qi_bytes(stats->reserved_bytes).text, stats->page_count,
                    qi_plural(stats->page_count));
    qi_write_format(w, "<text x=\"%d\" y=\"48\">0</text><text class=\"p\" x=\"%d\" y=\"48\">", LEFT,
                    LEFT + WIDTH);
    qi_write_format(w, "%s</text>\n", qi_bytes(l->max_page).text);
}

quire_result quire_memory_write_svg(quire_memory *memory, quire_sink sink, void *user)
{
    if (!memory || !sink)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_memory_write_svg: memory or sink is null");
    layout l = {0};
    quire_result result = quire_memory_walk(memory, measure_item, &l);
    if (result)
        return result;
    quire_memory_info info;
    quire_memory_stats stats;
    qi_ignore(quire_memory_get_info(memory, &info));
    qi_ignore(quire_memory_get_stats(memory, &stats));
    drawing d = {.max_page = l.max_page};
    qi_writer_init(&d.writer, sink, user);
    write_head(&d, &l, &info, &stats);
    result = quire_memory_walk(memory, draw_item, &d);
    qi_write_text(&d.writer, "</svg>\n");
    return result ? result : qi_writer_finish(&d.writer);
}
