/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * command.c - quire import: a trace from a file that another program wrote about its allocations.
 *
 * The trace appears whole or not at all. A file gets its name after the last row is written;
 * standard output gets the rows after the last one is read.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/tool/import/import.h"
#include "src/tool/options.h"

/* ---- formats ------------------------------------------------------------------------------ */

typedef struct format {
    const char *word;
    import_reader *read;
    bool (*begins)(const char *text); /* whether a file of the format begins like this */
} format;

static bool begins_as_rmm(const char *text)
{
    return !strncmp(text, "Thread,", 7);
}

/* Only these columns can be first. */
static bool begins_as_minimalloc(const char *text)
{
    static const char *const columns[] = {"id,",        "lower,",  "upper,", "size,",
                                          "alignment,", "offset,", "arena,", "alias,"};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        if (!strncmp(text, columns[i], strlen(columns[i])))
            return true;
    return false;
}

/* Whether the text is a JSON object with this first key. */
static bool has_first_key(const char *text, const char *key)
{
    const char *at = text + strspn(text, " \t\r\n");
    if (*at != '{')
        return false;
    at += 1 + strspn(at + 1, " \t\r\n");
    return *at == '"' && !strncmp(at + 1, key, strlen(key)) && at[1 + strlen(key)] == '"';
}

static bool begins_as_kineto(const char *text)
{
    return has_first_key(text, "schemaVersion") || has_first_key(text, "traceEvents");
}

static bool begins_as_vma(const char *text)
{
    return has_first_key(text, "General");
}

/* A pickle of protocol 2 or higher. */
static bool begins_as_memory_viz(const char *text)
{
    return (unsigned char)*text == 0x80;
}

static const format FORMATS[] = {
    {"memory_viz", import_memory_viz, begins_as_memory_viz},
    {"rmm", import_rmm, begins_as_rmm},
    {"kineto", import_kineto, begins_as_kineto},
    {"minimalloc", import_minimalloc, begins_as_minimalloc},
    {"vma", import_vma, begins_as_vma},
};

enum { FORMAT_COUNT = sizeof FORMATS / sizeof *FORMATS, BEGINNING = 512 };

/* The words of all formats, for messages. */
static const char *list_formats(char text[64])
{
    text[0] = '\0';
    for (int i = 0; i < FORMAT_COUNT; i++) {
        size_t length = strlen(text);
        snprintf(text + length, 64 - length, "%s%s", i ? ", " : "", FORMATS[i].word);
    }
    return text;
}

static const format *find_format(const char *word)
{
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (!strcmp(word, FORMATS[i].word))
            return &FORMATS[i];
    return NULL;
}

/* Looks at the first bytes without taking them. */
static const format *recognize(import_source *source)
{
    char text[BEGINNING];
    import_peek(source);
    size_t length = source->length < sizeof text ? source->length : sizeof text - 1;
    memcpy(text, source->buffer, length);
    text[length] = '\0';
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (FORMATS[i].begins(text))
            return &FORMATS[i];
    return NULL;
}

/* ---- the output --------------------------------------------------------------------------- */

typedef struct import_run {
    const char *path;   /* of the file; "-" is standard input */
    const char *word;   /* option --format */
    const char *output; /* option --output; NULL and "-" are standard output */
    const char *device; /* option --device */
    FILE *input;
    FILE *rows;               /* the temporary file */
    char target[PATH_MAX];    /* what the output leads to; "" for standard output and devices */
    char temporary[PATH_MAX]; /* name of `rows`; "" if it has none */
    import_source source;
    import_rows writer;
} import_run;

static int complain(const char *path, const char *what)
{
    print_problem("quire: %s: %s", path, what);
    return EXIT_FAILED;
}

/* A regular file is written under a name beside its own. Anything else, such as a device or a pipe,
   gets the rows at the end, like standard output. */
static int open_rows(import_run *r)
{
    struct stat info;
    bool is_file = r->output && !is_standard(r->output);
    if (is_file && !stat(r->output, &info) && !S_ISREG(info.st_mode)) {
        if (S_ISDIR(info.st_mode))
            return complain(r->output, strerror(EISDIR));
        is_file = false;
    }
    if (!is_file) {
        r->rows = tmpfile();
        return r->rows ? -1 : complain("temporary file", strerror(errno));
    }
    if (!realpath(r->output, r->target)) /* no such file yet */
        snprintf(r->target, sizeof r->target, "%s", r->output);
    int length = snprintf(r->temporary, sizeof r->temporary, "%s.%ld", r->target, (long)getpid());
    int handle = -1;
    if (length < 0 || (size_t)length >= sizeof r->temporary)
        errno = ENAMETOOLONG;
    else
        handle = open(r->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (handle < 0)
        r->temporary[0] = '\0';
    else
        r->rows = fdopen(handle, "wb");
    return r->rows ? -1 : complain(r->output, strerror(errno));
}

static bool copy_rows(FILE *from, FILE *to)
{
    char bytes[4096];
    rewind(from);
    for (size_t size; (size = fread(bytes, 1, sizeof bytes, from));)
        if (fwrite(bytes, 1, size, to) != size)
            return false;
    return !ferror(from) && !fflush(to);
}

/* main reports a failed standard output. */
static int copy_to_output(import_run *r)
{
    if (fflush(r->rows))
        return complain("temporary file", strerror(errno));
    if (!r->output || is_standard(r->output))
        return copy_rows(r->rows, stdout) ? EXIT_OK : EXIT_FAILED;
    FILE *out = fopen(r->output, "wb");
    if (!out)
        return complain(r->output, strerror(errno));
    bool is_written = copy_rows(r->rows, out);
    is_written = !fclose(out) && is_written;
    return is_written ? EXIT_OK : complain(r->output, "cannot be written");
}

static int give_name(import_run *r)
{
    bool is_written = !fclose(r->rows);
    r->rows = NULL;
    if (!is_written || rename(r->temporary, r->target))
        return complain(r->output, strerror(errno));
    r->temporary[0] = '\0';
    return EXIT_OK;
}

static void close_rows(import_run *r)
{
    if (r->rows)
        fclose(r->rows);
    if (r->temporary[0])
        unlink(r->temporary);
}

/* ---- the work ----------------------------------------------------------------------------- */

static int open_input(import_run *r)
{
    struct stat info;
    r->input = is_standard(r->path) ? stdin : fopen(r->path, "rb");
    if (!r->input)
        return complain(r->path, strerror(errno));
    if (!fstat(fileno(r->input), &info) && S_ISDIR(info.st_mode))
        return complain(r->path, "is a directory, not a file");
    import_begin(&r->source, r->input);
    r->source.device = r->device;
    return -1;
}

/* Returns NULL after it printed why. */
static const format *choose_format(import_run *r)
{
    char words[64];
    if (import_peek(&r->source) == 0x1f) { /* the first byte of gzip, and of no format here */
        complain(r->path, "is compressed; decompress it first");
        return NULL;
    }
    const format *found = r->word ? find_format(r->word) : recognize(&r->source);
    if (!found)
        print_problem(
            "quire: %s: the first bytes are of no known format; name it with --format: %s", r->path,
            list_formats(words));
    return found;
}

static int read_input(import_run *r)
{
    const format *found = choose_format(r);
    if (!found)
        return EXIT_FAILED;
    if (r->device && found->read != import_kineto &&
        (found->read != import_memory_viz || !strcmp(r->device, "cpu"))) {
        complain(r->path, "the format has no such devices: --device goes with kineto, "
                          "and a number with memory_viz");
        return EXIT_USAGE;
    }
    int code = open_rows(r);
    if (code >= 0)
        return code;
    import_rows_begin(&r->writer, write_to_file, r->rows);
    bool is_good = import_file(found->read, &r->source, &r->writer);
    if (ferror(r->input))
        return complain(r->path, "cannot be read");
    if (!is_good) {
        print_problem("quire: %s:%s", r->path, r->source.sentence);
        return EXIT_FAILED;
    }
    if (qi_writer_finish(&r->writer.writer))
        return complain(r->output ? r->output : "-", strerror(errno));
    return r->temporary[0] ? give_name(r) : copy_to_output(r);
}

static void print_summary(const import_run *r)
{
    const import_rows *w = &r->writer;
    print_problem("%s: %" PRIu64 " allocation%s, %" PRIu64 " free%s, %" PRIu64
                  " free%s of unknown addresses left out%s%s",
                  r->path, w->allocations, plural(w->allocations), w->frees, plural(w->frees),
                  w->left_out, plural(w->left_out), *w->note ? "; " : "", w->note);
}

/* A Device Id has at most 31 bits. */
static bool is_number(const char *text)
{
    const size_t length = strspn(text, "0123456789");
    return length && length < 10 && !text[length];
}

int run_import(const command *self, int argc, char **argv)
{
    static import_run r; /* large */
    char words[64];
    r = (import_run){.path = NULL};
    const option_spec specs[] = {
        {"format", "WORD",
         "memory_viz, rmm, kineto, minimalloc or vma\n(default: the begin of the file tells it)",
         OPTION_TEXT, &r.word},
        {"output", "FILE", "write the trace into a file (default: standard output)", OPTION_TEXT,
         &r.output},
        {"device", "D",
         "kineto, memory_viz: the number of a device; kineto: cpu\n"
         "(default: that with the most bytes, or the first)",
         OPTION_TEXT, &r.device},
    };
    int code = parse_options(self, argc, argv, specs, sizeof specs / sizeof *specs, &r.path);
    if (code >= 0)
        return code;
    if (r.word && !find_format(r.word))
        return bad_usage(self, "--format takes one of %s, not '%s'", list_formats(words), r.word);
    if (r.device && strcmp(r.device, "cpu") && !is_number(r.device))
        return bad_usage(self, "--device takes cpu or a number, not '%s'", r.device);
    if (is_same_file(r.path, r.output))
        return bad_usage(self, "FILE and --output must be different files");
    code = open_input(&r);
    if (code < 0)
        code = read_input(&r);
    if (r.input && r.input != stdin)
        fclose(r.input);
    close_rows(&r);
    if (!code)
        print_summary(&r);
    return code;
}
