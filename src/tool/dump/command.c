/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * command.c - quire page: what a running program has in its memories, from the JSON that it wrote.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/result.h"
#include "src/tool/dump/dump.h"
#include "src/tool/options.h"

typedef struct page_run {
    const char *path;
    output html;
    dump dump;
} page_run;

/* ---- the file ----------------------------------------------------------------------------- */

/* Reads the dump from the text of its file. Prints the error and returns false. */
static bool read_text(page_run *p, char *text, size_t size)
{
    import_source *source = malloc(sizeof *source);
    FILE *file = source ? fmemopen(text, size, "rb") : NULL;
    bool is_good = false;
    if (file) {
        import_begin(source, file);
        is_good = dump_read(&p->dump, source);
        fclose(file);
        if (!is_good) /* as compilers do, without "quire: " */
            print_problem("%s:%s", p->path, source->sentence);
    } else {
        print_problem("quire: %s: %s", p->path, strerror(errno));
    }
    free(source);
    return is_good;
}

static bool read_dump(page_run *p)
{
    size_t size = 0;
    char *text = read_file(p->path, &size);
    if (!text)
        return false;
    if (!size)
        print_problem("quire: %s: the file is empty", p->path);
    const bool is_good = size && read_text(p, text, size);
    free(text);
    return is_good;
}

/* ---- sums --------------------------------------------------------------------------------- */

/* Names may be long, and contain anything. */
static void print_memory(const page_run *p, uint64_t i)
{
    const dump_memory *m = &p->dump.memories[i];
    if (p->dump.is_device)
        printf("  %" PRIu64 ": ", i);
    else
        printf("  ");
    print_clean(stdout, "%s", m->name);
    printf(": %s held in %" PRIu64 " allocation%s, %s reserved in %" PRIu64 " page%s\n",
           qi_bytes(m->held).text, m->range_count, plural(m->range_count),
           qi_bytes(m->reserved).text, m->page_count, plural(m->page_count));
}

static void print_sums(const page_run *p)
{
    const dump *d = &p->dump;
    print_clean(stdout, "%s", p->path);
    if (d->is_device) {
        print_clean(stdout, ": device %s", d->name);
        printf(", %" PRIu64 " memor%s\n", d->memory_count, d->memory_count == 1 ? "y" : "ies");
    } else {
        printf(": a memory\n");
    }
    for (uint64_t i = 0; i < d->memory_count; i++)
        print_memory(p, i);
}

/* ---- run ---------------------------------------------------------------------------------- */

static int show(page_run *p)
{
    if (!read_dump(p) || !open_output(&p->html))
        return EXIT_FAILED;
    dump_source source = {&p->dump, p->path};
    if (p->html.path && !write_output(&p->html, dump_write_html, &source))
        return EXIT_FAILED;
    if (!is_standard(p->html.path))
        print_sums(p);
    return EXIT_OK;
}

int run_page(const command *self, int argc, char **argv)
{
    page_run p = {.path = NULL};
    const option_spec specs[] = {
        {"html", "FILE", "write a page for a browser (-: standard output)", OPTION_TEXT,
         &p.html.path},
    };
    const int code = parse_options(self, argc, argv, specs, sizeof specs / sizeof *specs, &p.path);
    if (code >= 0)
        return code;
    if (is_same_file(p.html.path, p.path))
        return bad_usage(self, "the dump and --html must be different files");
    const int result = show(&p);
    dump_end(&p.dump);
    close_output(&p.html);
    return result;
}
