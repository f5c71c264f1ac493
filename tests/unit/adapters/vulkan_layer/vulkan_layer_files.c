/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_layer_files.c - which files the layer opens: no symbolic link under a name that it makes
 * up itself, and no pipe that nothing reads.
 */
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/adapters/vulkan_layer/layer.h"
#include "tests/support/capture.h"
#include "tests/support/layer_fixture.h"
#include "tests/support/unit.h"

enum { PATH = 128 };

static char folder[] = "/tmp/quire-layer-XXXXXX";

static const char *in_folder(const char *name)
{
    static char paths[4][PATH];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, PATH, "%s/%s", folder, name);
    return path;
}

static void make_folder(void)
{
    CHECK(mkdtemp(folder) != NULL);
}

static void remove_folder(void)
{
    glob_t found;
    if (!glob(in_folder("*"), 0, NULL, &found))
        for (size_t i = 0; i < found.gl_pathc; i++)
            CHECK(!remove(found.gl_pathv[i]));
    globfree(&found);
    CHECK(!rmdir(folder));
}

static void make_victim(const char *link_name)
{
    FILE *file = fopen(in_folder("victim"), "w");
    CHECK(file && fputs("precious", file) >= 0 && !fclose(file));
    CHECK(!symlink(in_folder("victim"), in_folder(link_name)));
}

static int lines_in(const char *text)
{
    int count = 0;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

/* Opens the layer, allocates and frees once, and closes it; returns what it wrote to stderr. */
static const char *live(void)
{
    static capture c;
    fv_fixture f;
    alarm(20);
    CHECK(capture_start(&c));
    lf_open_named(&f, "amd-bar");
    lf_release(&f, lf_allocate(&f, 1000, 0, NULL));
    fv_fixture_close(&f);
    alarm(0);
    return capture_end(&c);
}

/* ---- links ----------------------------------------------------------------------------------- */

UNIT_ALONE(vulkan_layer_files, the_interim_file_is_no_link)
{
    char name[PATH];
    make_folder();
    setenv("QUIRE_LAYER_STATS", "text", 1);
    setenv("QUIRE_LAYER_STATS_FILE", in_folder("statistics"), 1);
    snprintf(name, sizeof name, "statistics.%ld-1.partial.new", (long)getpid());
    make_victim(name);
    CHECK_STR(live(), "");
    CHECK_STR(lf_read(in_folder("victim")), "precious");
    CHECK_HAS(lf_read(in_folder("statistics")), "never freed\n");
    remove_folder();
}

UNIT_ALONE(vulkan_layer_files, the_trace_of_a_second_device_is_no_link)
{
    make_folder();
    setenv("QUIRE_LAYER_TRACE", in_folder("trace"), 1);
    make_victim("trace.2");
    CHECK_STR(live(), "");
    const char *said = live();
    CHECK_HAS(said, "/trace.2 cannot be written");
    CHECK_EQ(lines_in(said), 1);
    CHECK_STR(lf_read(in_folder("victim")), "precious");
    remove_folder();
}

/* The user's own name can be a link, for example /dev/stderr. */
UNIT_ALONE(vulkan_layer_files, the_named_files_can_be_links)
{
    make_folder();
    setenv("QUIRE_LAYER_STATS", "text", 1);
    setenv("QUIRE_LAYER_STATS_FILE", in_folder("statistics"), 1);
    setenv("QUIRE_LAYER_TRACE", in_folder("trace"), 1);
    CHECK(!symlink(in_folder("a"), in_folder("statistics")));
    CHECK(!symlink(in_folder("b"), in_folder("trace")));
    CHECK_STR(live(), "");
    CHECK_HAS(lf_read(in_folder("a")), "never freed\n");
    CHECK_HAS(lf_read(in_folder("b")), "alloc,1,");
    remove_folder();
}

/* ---- pipes ----------------------------------------------------------------------------------- */

UNIT_ALONE(vulkan_layer_files, a_pipe_that_nothing_reads_is_reported_once)
{
    static const char *const VARIABLES[] = {"QUIRE_LAYER_STATS_FILE", "QUIRE_LAYER_TRACE"};
    make_folder();
    CHECK(!mkfifo(in_folder("pipe"), 0600));
    setenv("QUIRE_LAYER_STATS", "text", 1);
    for (int i = 0; i < 2; i++) {
        setenv("QUIRE_LAYER_STATS_FILE", "/dev/null", 1);
        setenv("QUIRE_LAYER_TRACE", "", 1);
        setenv(VARIABLES[i], in_folder("pipe"), 1);
        char part[PATH] = "";
        if (i) /* the second device */
            CHECK(!mkfifo(in_folder("pipe.2"), 0600));
        const char *said = live();
        snprintf(part, sizeof part, "%s%s", in_folder("pipe"), i ? ".2" : "");
        CHECK_HAS(said, part);
        CHECK_HAS(said, "nothing reads it");
        CHECK_EQ(lines_in(said), 1);
    }
    remove_folder();
}

static void expect_pipe(const char *variable, const char *text)
{
    char got[4096];
    make_folder();
    CHECK(!mkfifo(in_folder("pipe"), 0600));
    setenv(variable, in_folder("pipe"), 1);
    int reader = open(in_folder("pipe"), O_RDONLY | O_NONBLOCK);
    CHECK(reader >= 0);
    CHECK_STR(live(), "");
    ssize_t size = read(reader, got, sizeof got - 1);
    CHECK(size > 0);
    got[size] = 0;
    CHECK_HAS(got, text);
    close(reader);
    remove_folder();
}

UNIT_ALONE(vulkan_layer_files, a_pipe_with_a_reader_gets_the_statistics)
{
    setenv("QUIRE_LAYER_STATS", "text", 1);
    expect_pipe("QUIRE_LAYER_STATS_FILE", "never freed\n");
}

UNIT_ALONE(vulkan_layer_files, a_pipe_with_a_reader_gets_the_trace)
{
    expect_pipe("QUIRE_LAYER_TRACE", "free,1,");
}

/* A full pipe holds the program up and loses nothing. */
UNIT_ALONE(vulkan_layer_files, rows_wait_for_a_slow_reader)
{
    fv_fixture f;
    make_folder();
    CHECK(!mkfifo(in_folder("pipe"), 0600));
    setenv("QUIRE_LAYER_TRACE", in_folder("pipe"), 1);
    int reader = open(in_folder("pipe"), O_RDONLY | O_NONBLOCK);
    CHECK(reader >= 0);
    lf_open_named(&f, "amd-bar");
    int flags = fcntl(layer_device_of(f.device)->trace.file, F_GETFL);
    CHECK(flags >= 0 && !(flags & O_NONBLOCK));
    fv_fixture_close(&f);
    close(reader);
    remove_folder();
}
