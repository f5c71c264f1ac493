/*
 * writer.c - text reaches the sink complete and in order, in pieces of at most a buffer; a sink
 * that failed once is not called again.
 */
#include "src/base/writer.h"

#include <stdio.h>

#include "tests/support/unit.h"

typedef struct sink {
    int calls, refused_call; /* counted from 1; 0 means none */
    size_t length, max_piece;
    char text[16384];
} sink;

static bool gather(void *user, const char *text, size_t size)
{
    sink *s = user;
    CHECK(size > 0 && s->length + size < sizeof s->text);
    if (++s->calls == s->refused_call)
        return false;
    memcpy(s->text + s->length, text, size);
    s->length += size;
    s->text[s->length] = '\0';
    s->max_piece = size > s->max_piece ? size : s->max_piece;
    return true;
}

static void fill(char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        text[i] = (char)('!' + i * 7 % 90);
    text[size] = '\0';
}

/* ---- raw text ------------------------------------------------------------------------------ */

UNIT(writer, an_empty_text_makes_no_call)
{
    static sink s;
    qi_writer writer;
    qi_writer_init(&writer, gather, &s);
    qi_write_text(&writer, "");
    qi_write(&writer, "x", 0);
    CHECK_OK(qi_writer_finish(&writer));
    CHECK_EQ(s.calls, 0);
}

UNIT(writer, text_of_any_length_arrives_complete)
{
    static char text[8193];
    fill(text, sizeof text - 1);
    const size_t sizes[] = {1, 1023, 1024, 1025, 2047, 2048, 2049, 8192};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        static sink s;
        s = (sink){0};
        qi_writer writer;
        qi_writer_init(&writer, gather, &s);
        qi_write(&writer, text, sizes[i]);
        CHECK_OK(qi_writer_finish(&writer));
        CHECK_EQ(s.length, sizes[i]);
        CHECK(!memcmp(s.text, text, sizes[i]));
        CHECK_EQ(s.calls, (sizes[i] + QI_WRITER_BUFFER - 1) / QI_WRITER_BUFFER);
        CHECK(s.max_piece <= QI_WRITER_BUFFER);
    }
}

UNIT(writer, small_pieces_are_gathered_in_order)
{
    static sink s;
    static char text[3001];
    fill(text, sizeof text - 1);
    qi_writer writer;
    qi_writer_init(&writer, gather, &s);
    for (size_t at = 0, size = 1; at < 3000; at += size, size = size % 13 + 1)
        qi_write(&writer, text + at, size < 3000 - at ? size : 3000 - at);
    CHECK_EQ(s.calls, 2); /* each piece when the buffer is full */
    CHECK_OK(qi_writer_finish(&writer));
    CHECK_EQ(s.calls, 3);
    CHECK_STR(s.text, text);
}

UNIT(writer, a_finished_writer_does_not_write_twice)
{
    static sink s;
    qi_writer writer;
    qi_writer_init(&writer, gather, &s);
    qi_write_text(&writer, "once");
    CHECK_OK(qi_writer_finish(&writer));
    CHECK_OK(qi_writer_finish(&writer));
    CHECK_STR(s.text, "once");
    CHECK_EQ(s.calls, 1);
}

/* ---- sinks that fail ----------------------------------------------------------------------- */

UNIT(writer, a_sink_that_fails_at_any_piece_is_a_bad_file_and_the_last_call)
{
    static char text[5001];
    fill(text, sizeof text - 1);
    for (int refused = 1; refused <= 5; refused++) {
        static sink s;
        s = (sink){.refused_call = refused};
        qi_writer writer;
        qi_writer_init(&writer, gather, &s);
        qi_write_text(&writer, text);
        CHECK_EQ(writer.failed, refused < 5);
        CHECK_FAILS(qi_writer_finish(&writer), QUIRE_ERROR_BAD_FILE);
        CHECK_HAS(quire_last_error(), "the sink refused");
        CHECK_EQ(s.calls, refused);
        CHECK_EQ(s.length, (size_t)(refused - 1) * QI_WRITER_BUFFER);
    }
}

UNIT(writer, a_failed_writer_drops_all_text)
{
    static sink s = {.refused_call = 1};
    qi_writer writer;
    qi_writer_init(&writer, gather, &s);
    for (int i = 0; i < 1000; i++) {
        qi_write_text(&writer, "text and more text");
        qi_write_format(&writer, "%d", i);
        qi_write_escaped(&writer, "<&>");
    }
    CHECK_FAILS(qi_writer_finish(&writer), QUIRE_ERROR_BAD_FILE);
    CHECK_FAILS(qi_writer_finish(&writer), QUIRE_ERROR_BAD_FILE);
    CHECK_EQ(s.calls, 1);
}

UNIT(writer, a_restart_clears_the_failure)
{
    static sink s = {.refused_call = 1};
    qi_writer writer;
    qi_writer_init(&writer, gather, &s);
    qi_write_text(&writer, "lost");
    CHECK_FAILS(qi_writer_finish(&writer), QUIRE_ERROR_BAD_FILE);
    qi_writer_init(&writer, gather, &s);
    qi_write_text(&writer, "kept");
    CHECK_OK(qi_writer_finish(&writer));
    CHECK_STR(s.text, "kept");
}

/* ---- formatted and escaped ----------------------------------------------------------------- */

UNIT(writer, formats_are_those_of_printf_up_to_a_size)
{
    static sink s;
    char text[400];
    qi_writer writer;
    qi_writer_init(&writer, gather, &s);
    qi_write_format(&writer, "%s=%d%%;", "x", -5);
    fill(text, 255);
    qi_write_format(&writer, "%s", text);
    qi_write_format(&writer, "%s", "");
    CHECK_OK(qi_writer_finish(&writer));
    CHECK_EQ(s.length, 6 + 255);
    CHECK(!strncmp(s.text, "x=-5%;", 6) && !strcmp(s.text + 6, text));
}

UNIT(writer, a_format_that_is_too_long_is_cut)
{
    const size_t sizes[] = {256, 257, 399};
    for (int i = 0; i < 3; i++) {
        static sink s;
        s = (sink){0};
        char text[400];
        qi_writer writer;
        qi_writer_init(&writer, gather, &s);
        fill(text, sizes[i]);
        qi_write_format(&writer, "%s", text);
        CHECK_OK(qi_writer_finish(&writer));
        CHECK(s.length >= 255 && s.length <= 256);
        CHECK(!strncmp(s.text, text, s.length));
    }
}

static void expect_escaped(const char *text, const char *expected)
{
    static sink s;
    s = (sink){0};
    qi_writer writer;
    qi_writer_init(&writer, gather, &s);
    qi_write_escaped(&writer, text);
    qi_write_text(&writer, ".");
    CHECK_OK(qi_writer_finish(&writer));
    CHECK_EQ(s.text[s.length - 1], '.');
    s.text[s.length - 1] = '\0';
    CHECK_STR(s.text, expected);
}

UNIT(writer, xml_markup_characters_become_entities)
{
    expect_escaped("", "");
    expect_escaped("plain text", "plain text");
    expect_escaped("<a b=\"c\" d='e'>&amp;", "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;amp;");
}

UNIT(writer, control_characters_that_xml_forbids_are_replaced)
{
    for (char c = 1; c < 0x20; c++) {
        char text[] = {'a', c, 'b', '\0'};
        bool has_place = c == '\t' || c == '\n' || c == '\r';
        expect_escaped(text, has_place ? text
                                       : "a\xef\xbf\xbd"
                                         "b");
    }
    expect_escaped("\xef\xbf\xbe|\xef\xbf\xbf", "\xef\xbf\xbd|\xef\xbf\xbd");
    expect_escaped(" ~\xc2\x80", " ~\xc2\x80");
}

UNIT(writer, text_in_other_scripts_stays_and_ill_formed_bytes_are_replaced)
{
    expect_escaped("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    expect_escaped("\xff<\xc3", "\xef\xbf\xbd&lt;\xef\xbf\xbd");
}
