/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * picture.c - the SVG of a memory is well-formed XML for any names, shows every page and every
 * range, and stays inside its frame.
 */
#include "tests/support/fixture.h"
#include "tests/support/gather.h"
#include "tests/support/lazy.h"

#include <ctype.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_DEPTH = 16 };

static void make(fixture *b, uint64_t address_step, const quire_memory_options *options)
{
    fixture_prepare(b);
    b->fake.address_step = address_step;
    if (address_step)
        b->fake.info.limits.page_alignment = address_step;
    fixture_open(b, options);
}

/* ---- a small XML checker ------------------------------------------------------------------ */

/* The contents of the picture. */
typedef struct survey {
    const char *open[MAX_DEPTH]; /* names of the open elements */
    size_t lengths[MAX_DEPTH];
    int depth, rects, titles, texts, paddings;
    double lowest; /* the lowest edge of a positioned rectangle */
    double height; /* of the frame */
} survey;

/* An entity at `at`: one of XML's, or a number. Returns the position after it. */
static const char *skip_entity(const char *at)
{
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;", "&#39;"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strncmp(at, known[i], strlen(known[i])))
            return at + strlen(known[i]);
    check_failed(__FILE__, __LINE__, "no entity: %.20s", at);
}

/* The bytes of one UTF-8 character that XML allows. */
static const char *skip_character(const char *at)
{
    unsigned char c = (unsigned char)*at;
    CHECK(c >= 0x20 || c == '\t' || c == '\n' || c == '\r');
    CHECK(c != 0x7f);
    int more = c < 0x80 ? 0 : (c & 0xe0) == 0xc0 ? 1 : (c & 0xf0) == 0xe0 ? 2 : 3;
    CHECK(c < 0x80 || (c >= 0xc2 && c < 0xf5));
    for (int i = 1; i <= more; i++)
        CHECK(((unsigned char)at[i] & 0xc0) == 0x80);
    return at + more + 1;
}

static double attribute_number(const char *tag, const char *tag_end, const char *name)
{
    const char *at = strstr(tag, name);
    return at && at < tag_end ? strtod(at + strlen(name), NULL) : 0;
}

static void survey_element(survey *s, const char *tag, size_t length, const char *tag_end)
{
    s->titles += length == 5 && !strncmp(tag, "title", 5);
    s->texts += length == 4 && !strncmp(tag, "text", 4);
    if (length == 3 && !strncmp(tag, "svg", 3))
        s->height = attribute_number(tag, tag_end, " height=\"");
    if (length != 4 || strncmp(tag, "rect", 4))
        return;
    const char *hatch = strstr(tag, "url(#h)");
    s->rects++;
    s->paddings += hatch && hatch < tag_end;
    double bottom =
        attribute_number(tag, tag_end, " y=\"") + attribute_number(tag, tag_end, " height=\"");
    if (s->depth == 1 && bottom > s->lowest) /* except those inside the pattern */
        s->lowest = bottom;
}

/* Reads one tag at `at`, after its '<'; returns the position after its '>'. */
static const char *take_tag(survey *s, const char *at)
{
    bool closing = *at == '/';
    const char *name = at += closing;
    while (isalnum((unsigned char)*at))
        at++;
    size_t length = (size_t)(at - name);
    CHECK(length > 0);
    if (closing) {
        CHECK(s->depth > 0 && *at == '>');
        s->depth--;
        CHECK(length == s->lengths[s->depth] && !strncmp(name, s->open[s->depth], length));
        return at + 1;
    }
    while (*at == ' ') { /* attributes: name="value" */
        while (isalnum((unsigned char)*++at) || *at == '-') {
        }
        CHECK(at[0] == '=' && at[1] == '"');
        for (at += 2; *at != '"';) {
            CHECK(*at && *at != '<');
            at = *at == '&' ? skip_entity(at) : skip_character(at);
        }
        at++;
    }
    bool empty = *at == '/';
    at += empty;
    CHECK(*at == '>');
    survey_element(s, name, length, at);
    if (!empty) {
        CHECK(s->depth < MAX_DEPTH);
        s->open[s->depth] = name;
        s->lengths[s->depth++] = length;
    }
    return at + 1;
}

/* Checks that the text is one element with balanced tags and valid characters and entities. */
static survey check_xml(const char *at)
{
    survey s = {.depth = 0};
    CHECK(*at == '<');
    while (*at) {
        if (*at == '<')
            at = take_tag(&s, at + 1);
        else if (*at == '&')
            at = skip_entity(at);
        else
            at = skip_character(at);
        CHECK(s.depth > 0 || !strcmp(at, "\n") || !*at);
    }
    CHECK_EQ(s.depth, 0);
    CHECK(s.lowest <= s.height);
    return s;
}

static survey draw(fixture *b)
{
    gather_anew(0);
    CHECK_OK(quire_memory_write_svg(b->memory, gather, NULL));
    CHECK_EQ(strncmp(gathered.text, "<svg xmlns=\"http://www.w3.org/2000/svg\"", 39), 0);
    return check_xml(gathered.text);
}

#define CASE(name, ...) UNIT_MEMORY(picture, name, b, __VA_ARGS__)

/* ---- pictures ----------------------------------------------------------------------------- */

CASE(an_empty_memory_is_a_frame_with_a_heading, .name = "weights")
{
    survey s = draw(b);
    CHECK_EQ(s.titles, 0);
    CHECK_EQ(s.rects, 2); /* the background and the hatch */
    CHECK_HAS(gathered.text, "weights: 0 B live in 0 allocations, 0 B reserved in 0 pages");
}

UNIT(picture, every_page_allocation_and_padding_is_drawn)
{
    fixture b;
    make(&b, 0,
         &(quire_memory_options){.fit.algorithm = QUIRE_FIT_FIRST, .pages = {.page_size = 4096}});
    for (uint64_t i = 0; i < 8; i++)
        fixture_allocate(&b, &(quire_allocation_options){.size = 1000,
                                                         .alignment = i % 2 ? 64 : 1,
                                                         .name = i % 3 ? "layer" : NULL});
    fixture_allocate(&b,
                     &(quire_allocation_options){.size = 100, .dedicated = true, .name = "own"});
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_stats(b.memory, &stats));
    survey s = draw(&b);
    CHECK_EQ(s.paddings, 4);
    CHECK_EQ(s.rects, 2 + stats.page_count + 9 + 4 + 3); /* three names in the legend */
    CHECK_EQ(s.titles, stats.page_count + 9 + 4);
    CHECK_HAS(gathered.text, "<title>layer: page 0 offset 1024 size 1000, 1000 requested</title>");
    CHECK_HAS(gathered.text, "<title>left padding, 24 bytes</title>");
    CHECK_HAS(gathered.text, "<title>(unnamed): page 0 offset 0 size 1000, 1000 requested</title>");
    CHECK_HAS(gathered.text, "<title>own: page ");
    CHECK_HAS(gathered.text, " (dedicated)</text>");
    CHECK_HAS(gathered.text, "<title>page 0: 4 KiB</title>");
    fixture_end(&b);
}

/* Returns the width of the first bar of a page whose title has this text. */
static double bar_width(const char *title)
{
    const char *at = strstr(gathered.text, title), *tag = at;
    CHECK(at != NULL);
    while (strncmp(tag, "<rect", 5))
        tag--;
    return attribute_number(tag, at, " width=\"");
}

CASE(small_pages_are_as_wide_as_large_ones, .pages = {.page_size = 4096})
{
    fixture_allocate(b, &(quire_allocation_options){.size = 1024, .name = "small"});
    fixture_allocate(b, &(quire_allocation_options){.size = 1 << 20, .name = "large"});
    draw(b);
    CHECK(bar_width("<title>page 0: 4 KiB</title>") > 800);
    CHECK(bar_width("<title>page 0: 4 KiB</title>") == bar_width("<title>page 1: 1 MiB</title>"));
    CHECK_EQ((uint64_t)(4 * bar_width("<title>small: page 0")),
             (uint64_t)bar_width("<title>page 0: 4 KiB</title>"));
    CHECK_HAS(gathered.text, ">4 KiB, 25 % live</text>");
    CHECK_HAS(gathered.text, ">1 MiB, 100 % live</text>");
}

CASE(the_legend_sums_the_first_parts_of_names, .pages = {.page_size = 65536})
{
    fixture_allocate(b, &(quire_allocation_options){.size = 1024, .name = "net.a"});
    fixture_allocate(b, &(quire_allocation_options){.size = 256, .name = "optimizer"});
    fixture_allocate(b, &(quire_allocation_options){.size = 1024, .name = "net.b"});
    fixture_allocate(b, &(quire_allocation_options){.size = 512});
    draw(b);
    const char *net = strstr(gathered.text, ">net: 2 KiB in 2 allocations</text>"),
               *none = strstr(gathered.text, ">(unnamed): 512 B in 1 allocation</text>"),
               *last = strstr(gathered.text, ">optimizer: 256 B in 1 allocation</text>");
    CHECK(net && none && last && net < none && none < last);
    CHECK(strstr(gathered.text, " more name") == NULL);
}

CASE(the_legend_has_the_twelve_largest_names, .pages = {.page_size = 1 << 20})
{
    char name[16];
    for (uint64_t i = 1; i <= 14; i++) {
        snprintf(name, sizeof name, "n%" PRIu64, i);
        fixture_allocate(b, &(quire_allocation_options){.size = i * 256, .name = name});
    }
    survey s = draw(b);
    CHECK_EQ(s.rects, 2 + 1 + 14 + 12);
    CHECK_HAS(gathered.text, ">n14: 3.50 KiB in 1 allocation</text>");
    CHECK_HAS(gathered.text, ">n3: 768 B in 1 allocation</text>");
    CHECK(strstr(gathered.text, ">n2: 512 B in") == NULL);
    CHECK_HAS(gathered.text, ">2 more names: 768 B in 2 allocations</text>");
}

CASE(a_name_has_one_colour, .pages = {.page_size = 4096})
{
    fixture_allocate(b, &(quire_allocation_options){.size = 1, .name = "same"});
    fixture_allocate(b, &(quire_allocation_options){.size = 1, .name = "other"});
    fixture_allocate(b, &(quire_allocation_options){.size = 1, .name = "same"});
    draw(b);
    unsigned hues[5] = {0}; /* the first two of the legend, where "same" has more bytes */
    const char *at = gathered.text;
    for (int i = 0; i < 5; i++) {
        at = strstr(at, "hsl(");
        CHECK(at != NULL);
        hues[i] = (unsigned)strtoul(at + 4, NULL, 10);
        at++;
    }
    CHECK(hues[2] == hues[4] && hues[2] != hues[3]);
    CHECK(hues[0] == hues[2] && hues[1] == hues[3]);
    CHECK(strstr(at, "hsl(") == NULL);
}

CASE(all_pages_lie_in_the_frame, .pages = {.page_size = 4096})
{
    for (int i = 0; i < 40; i++)
        fixture_allocate(b, &(quire_allocation_options){.size = 4096, .dedicated = i % 4 == 0});
    survey s = draw(b);
    CHECK(s.height > 40 * 22);
}

UNIT(picture, weakly_aligned_pages_lie_in_the_frame_too)
{
    fixture b;
    make(&b, 16, &(quire_memory_options){.pages = {.page_size = 4096}});
    for (int i = 0; i < 10; i++)
        fixture_allocate(&b, &(quire_allocation_options){.size = 3000});
    draw(&b);
    fixture_end(&b);
}

/* Checks something only if a locale with a decimal comma is installed. */
CASE(the_locale_of_the_program_has_no_effect, .pages = {.page_size = 4096})
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "nl_NL.UTF-8"};
    static char before[GATHER_MOST];
    fixture_allocate(b, &(quire_allocation_options){.size = 1024, .dedicated = true});
    fixture_allocate(b, &(quire_allocation_options){.size = 1024});
    draw(b);
    strcpy(before, gathered.text);
    CHECK_HAS(before, "width=\"215.00\"");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!setlocale(LC_NUMERIC, names[i]))
            continue;
        draw(b);
        setlocale(LC_NUMERIC, "C");
        CHECK_STR(gathered.text, before);
    }
}

UNIT(picture, hostile_names_stay_text)
{
    static const struct {
        const char *name, *drawn;
    } names[] = {
        {"</title><script>alert(1)</script>",
         "&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;"},
        {"a & b", "a &amp; b"},
        {"\" onload=\"x", "&quot; onload=&quot;x"},
        {"it's", "it&#39;s"},
        {"]]>", "]]&gt;"},
        {"\x01\x08\x1b", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xff\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xef\xbf\xbe", "\xef\xbf\xbd"}, /* U+FFFE is no character of XML */
        {"caf\xc3\xa9 \xf0\x9f\x90\x88", "caf\xc3\xa9 \xf0\x9f\x90\x88"},
        {"%s%n%x", "%s%n%x"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        fixture b;
        char part[128];
        make(&b, 0, &(quire_memory_options){.name = names[i].name});
        fixture_allocate(&b, &(quire_allocation_options){.size = 1, .name = names[i].name});
        draw(&b);
        snprintf(part, sizeof part, "<title>%s: page 0", names[i].drawn);
        CHECK_HAS(gathered.text, part);
        snprintf(part, sizeof part, ">%s: 256 B live", names[i].drawn);
        CHECK_HAS(gathered.text, part);
        fixture_end(&b);
    }
}

UNIT(picture, the_longest_names_are_drawn_completely)
{
    fixture b;
    char name[QUIRE_MAX_NAME + 1];
    memset(name, '&', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    make(&b, 0, &(quire_memory_options){.name = name});
    fixture_allocate(&b, &(quire_allocation_options){.size = 1, .name = name});
    draw(&b);
    int entities = 0;
    for (const char *at = gathered.text; (at = strstr(at, "&amp;")) != NULL; at++)
        entities++;
    CHECK_EQ(entities, 3 * QUIRE_MAX_NAME); /* heading, title and legend */
    fixture_end(&b);
}

/* ---- a device ------------------------------------------------------------------------------- */

static void draw_device(fixture *b)
{
    gather_anew(0);
    CHECK_OK(quire_device_write_svg(b->device, gather, NULL));
}

static int count_of(const char *part)
{
    int found = 0;
    for (const char *at = gathered.text; (at = strstr(at, part)) != NULL; at++)
        found++;
    return found;
}

CASE(a_device_has_the_pages_of_each_memory_below_its_name, .name = "first",
     .pages = {.page_size = 4096})
{
    quire_memory *second, *third;
    quire_allocation made;
    CHECK_OK(quire_memory_create(b->device, &(quire_memory_options){.name = "no pages"}, &second));
    CHECK_OK(quire_memory_create(
        b->device, &(quire_memory_options){.name = "third", .pages = {.page_size = 4096}}, &third));
    ALLOCATE(b, .size = 4096, .name = "a/x");
    ALLOCATE(b, .size = 4096, .name = "b/x");
    CHECK_OK(
        quire_allocate(third, &(quire_allocation_options){.size = 2048, .name = "a/y"}, &made));
    draw_device(b);
    CHECK_HAS(gathered.text,
              ">fake device: 10 KiB live in 3 allocations, 12 KiB reserved in 3 pages<");
    CHECK_HAS(gathered.text, ">first: 8 KiB live in 2 allocations, 8 KiB reserved in 2 pages<");
    CHECK_HAS(gathered.text, ">no pages: 0 B live in 0 allocations, 0 B reserved in 0 pages<");
    CHECK_HAS(gathered.text, ">third: 2 KiB live in 1 allocation, 4 KiB reserved in 1 page<");
    CHECK_EQ(count_of(">page 0</text>"), 2); /* of two memories */
    CHECK_EQ(count_of(">page 1</text>"), 1);
    CHECK_EQ(count_of(" % live</text>"), 3);
    CHECK_HAS(gathered.text, ">a: 6 KiB in 2 allocations</text>"); /* one legend for all */
    CHECK_HAS(gathered.text, "height=\"304\""); /* 64 above, 2 names, 6 rows, 20 below */
    CHECK_OK(quire_memory_destroy(&second));
    quire_memory_destroy_all(&third);
}

UNIT(picture, a_lazy_allocation_is_pale_and_says_what_has_memory)
{
    fixture f;
    lazy_begin(&f);
    gather_anew(0);
    CHECK_OK(quire_memory_write_svg(f.memory, gather, NULL));
    CHECK_HAS(gathered.text, "131072 requested, 48 KiB of 128 KiB have memory</title>");
    CHECK_HAS(gathered.text, "65536 requested, 0 B of 64 KiB have memory</title>");
    CHECK_HAS(gathered.text, ", 100 requested</title>");
    CHECK_HAS(gathered.text, ">cache: 48 KiB in 2 allocations</text>");
    CHECK_HAS(gathered.text, ">64 KiB, 75 % live</text>");
    CHECK_EQ(count_of("fill-opacity"), 2);
    CHECK_OK(quire_memory_sleep(f.memory, "plain", QUIRE_SLEEP_KEEP, NULL, NULL));
    gather_anew(0);
    CHECK_OK(quire_memory_write_svg(f.memory, gather, NULL));
    CHECK_HAS(gathered.text, ", 100 requested, asleep</title>");
    CHECK_EQ(count_of("fill-opacity=\"0.25\""), 1);
    fixture_end(&f);
}
