/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * options.c - parses the options of a subcommand, and prints its help, from its table of options.
 */
#include "src/tool/options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "src/tool/replay_setup.h"

/* ---- errors ------------------------------------------------------------------------------- */

static void complain(const command *self, const char *format, va_list args) QUIRE_PRINTF(2, 0);

static void complain(const command *self, const char *format, va_list args)
{
    fprintf(stderr, "quire %s: ", self->name);
    vprint_clean(stderr, format, args);
    fprintf(stderr, "; see quire %s --help\n", self->name);
}

int bad_usage(const command *self, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain(self, format, args);
    va_end(args);
    return EXIT_USAGE;
}

int bad_argument(const command *self, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain(self, format, args);
    va_end(args);
    if (self->list_arguments)
        self->list_arguments(stderr);
    return EXIT_USAGE;
}

int fail_with_last_error(void)
{
    if (!ferror(stdout)) /* main reports a failed standard output */
        print_problem("quire: %s", quire_last_error());
    return EXIT_FAILED;
}

/* ---- help --------------------------------------------------------------------------------- */

void print_pair(FILE *out, int column, const char *left, const char *right)
{
    const char *second = strchr(right, '\n');
    int length = second ? (int)(second - right) : (int)strlen(right);
    fprintf(out, "  %-*s %.*s\n", column, left, length, right);
    if (second)
        fprintf(out, "  %-*s %s\n", column, "", second + 1);
}

static void print_option(const option_spec *spec, int column)
{
    char left[64];
    snprintf(left, sizeof left, "--%s%s%s", spec->name, spec->argument ? " " : "",
             spec->argument ? spec->argument : "");
    print_pair(stdout, column, left, spec->help);
}

static void print_examples(const command *self)
{
    printf("\nExamples, in the folder of the sources:\n");
    for (int i = 0; i < MAX_EXAMPLES && self->examples[i].line; i++)
        printf("  %s\n      %s\n", self->examples[i].line, self->examples[i].purpose);
}

/* The left columns are as wide as the longest option with its argument. */
static void print_help(const command *self, const option_spec *specs, size_t count)
{
    enum { COLUMN = 18, MEMBER_COLUMN = 34 };
    printf("usage: quire %s %s\n\n%s\n\n", self->name, self->arguments, self->summary);
    size_t members = 0;
    for (size_t i = 0; i < count; i++) {
        members += specs[i].kind == OPTION_MEMBER;
        if (specs[i].kind != OPTION_MEMBER)
            print_option(&specs[i], COLUMN);
    }
    printf("  %-*s %s\n", COLUMN, "-h, --help", "print this text");
    if (members)
        printf("\nOptions of the memory (quire/memory.h). The keys of an options file have the\n"
               "same words, with the dots of C: \"fit.algorithm\", \"pages.page_size\".\n\n");
    for (size_t i = 0; i < count; i++)
        if (specs[i].kind == OPTION_MEMBER)
            print_option(&specs[i], MEMBER_COLUMN);
    print_examples(self);
    if (self->list_arguments) {
        printf("\n");
        self->list_arguments(stdout);
    }
}

/* ---- parsing ------------------------------------------------------------------------------ */

/* Stores an option's value in its target. Returns NULL, or what a valid value looks like. */
static const char *apply(const option_spec *spec, const char *value)
{
    const char *rest = NULL;
    uint32_t fit = 0;
    switch (spec->kind) {
    case OPTION_FLAG:
        *(bool *)spec->target = true;
        return NULL;
    case OPTION_TEXT:
        *(const char **)spec->target = value;
        return NULL;
    case OPTION_SIZE:
        return qi_parse_size(value, spec->target) ? NULL : "a size such as 65536, 64K or 32M";
    case OPTION_NUMBER:
        return qi_parse_number(value, spec->target, &rest) && !*rest ? NULL : "a number";
    case OPTION_FIT:
        if (!qi_parse_word(qi_fit_words, value, &fit))
            return "segregated, first, buddy or linear";
        *(quire_fit *)spec->target = (quire_fit)fit;
        return NULL;
    case OPTION_MEMBER:
        return set_member(spec->target, spec->name, value);
    }
    return NULL;
}

size_t count_options(const option_spec specs[MAX_OPTIONS])
{
    size_t count = 0;
    while (specs[count].name)
        count++;
    return count;
}

/* getopt_long returns this plus the index of a spec, which is no character. */
enum { FIRST_LONG = 256 };

/* Appends one of the options that an ambiguous one stands for. */
static void append_name(char *text, size_t size, const char *name, bool is_first)
{
    size_t length = strlen(text);
    snprintf(text + length, size - length, "%s--%s", is_first ? "" : ", ", name);
}

/*
 * Prints the error for an option that getopt_long refuses. It reports unknown and ambiguous long
 * options alike; for a long option without a value it sets optopt, as for a short option.
 */
static int refuse_option(const command *self, const char *given, const struct option *longs)
{
    if (optopt >= FIRST_LONG)
        return bad_usage(self, "--%s takes no value", longs[optopt - FIRST_LONG].name);
    if (optopt)
        return bad_usage(self, "unknown option -%c", optopt);
    char names[512] = "";
    size_t length = strcspn(given + 2, "="), matches = 0;
    for (size_t i = 0; longs[i].name; i++)
        if (!strncmp(longs[i].name, given + 2, length))
            append_name(names, sizeof names, longs[i].name, !matches++);
    if (matches)
        return bad_usage(self, "%.*s is ambiguous: %s", (int)length + 2, given, names);
    return bad_usage(self, "unknown option %.*s", (int)length + 2, given);
}

/* Parses the options: up to the first positional argument if it ends them ("+" of getopt_long).
   opterr is 0, because this file prints the errors. */
static int parse_flags(const command *self, int argc, char **argv, const option_spec *specs,
                       size_t count, bool ends_options)
{
    struct option longs[MAX_OPTIONS + 2] = {{0}};
    for (size_t i = 0; i < count; i++)
        longs[i] =
            (struct option){specs[i].name, specs[i].argument ? required_argument : no_argument,
                            NULL, FIRST_LONG + (int)i};
    int help = FIRST_LONG + (int)count;
    longs[count] = (struct option){"help", no_argument, NULL, help};
    opterr = 0;
    optind = 1;
    const char *shorts = ends_options ? "+:h" : ":h";
    for (int found; (found = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
        if (found == ':')
            return bad_usage(self, "%s requires a value", argv[optind - 1]);
        if (found == '?')
            return refuse_option(self, argv[optind - 1], longs);
        if (found == help || found == 'h') {
            print_help(self, specs, count);
            return EXIT_OK;
        }
        const option_spec *spec = &specs[found - FIRST_LONG];
        const char *wanted = apply(spec, optarg);
        if (wanted)
            return bad_usage(self, "--%s takes %s, not '%s'", spec->name, wanted, optarg);
    }
    return -1;
}

/* getopt_long moves the positional arguments behind the options. */
int parse_operands(const command *self, int argc, char **argv, const option_spec *specs,
                   size_t count, operands *found)
{
    if (self->take_options) {
        self->take_options(self, specs, count);
        return EXIT_OK;
    }
    int code = parse_flags(self, argc, argv, specs, count, found->ends_options);
    if (code >= 0)
        return code;
    found->values = argv + optind;
    found->count = (size_t)(argc - optind);
    if (found->count < found->least)
        return bad_argument(self, "missing argument: quire %s %s", self->name, self->arguments);
    if (found->count > found->most)
        return bad_usage(self, "unexpected argument '%s'", found->values[found->most]);
    return -1;
}

int parse_options(const command *self, int argc, char **argv, const option_spec *specs,
                  size_t count, const char **positional)
{
    const size_t wanted = positional ? 1 : 0;
    operands found = {.least = wanted, .most = wanted};
    int code = parse_operands(self, argc, argv, specs, count, &found);
    if (code < 0 && positional)
        *positional = found.values[0];
    return code;
}
