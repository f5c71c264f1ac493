/*
 * options.c - one table per subcommand drives getopt_long and --help.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/cli.h"

static void complain(const command *self, const char *format, va_list args) QUIRE_PRINTF(2, 0);

static void complain(const command *self, const char *format, va_list args)
{
    fprintf(stderr, "quire %s: ", self->name);
    vprint_clean(stderr, format, args);
    fprintf(stderr, "; quire %s --help tells more\n", self->name);
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
    if (!ferror(stdout)) /* else main tells that the output did not get out */
        print_problem("quire: %s", quire_last_error());
    return EXIT_FAILED;
}

const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void print_help(const command *self, const option_spec *specs, size_t count)
{
    printf("usage: quire %s %s\n\n%s\n\n", self->name, self->arguments, self->summary);
    for (size_t i = 0; i < count; i++) {
        char left[64];
        snprintf(left, sizeof left, "--%s%s%s", specs[i].name, specs[i].argument ? " " : "",
                 specs[i].argument ? specs[i].argument : "");
        printf("  %-18s %s\n", left, specs[i].help);
    }
    printf("  %-18s %s\n", "-h, --help", "this text");
    if (self->list_arguments) {
        printf("\n");
        self->list_arguments(stdout);
    }
}

static bool parse_number(const char *text, uint64_t *number, const char **rest)
{
    char *end = NULL;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    *number = value;
    *rest = end;
    return !errno;
}

static bool parse_size(const char *text, uint64_t *size)
{
    static const char units[] = "KMGT";
    const char *rest = NULL;
    if (!parse_number(text, size, &rest))
        return false;
    const char *unit = *rest ? strchr(units, toupper((unsigned char)*rest)) : NULL;
    if (unit) {
        unsigned shift = 10 * (unsigned)(unit - units + 1);
        if (*size > UINT64_MAX >> shift)
            return false;
        *size <<= shift;
        rest++;
    }
    return !*rest && *size;
}

static bool parse_fit(const char *text, quire_fit *fit)
{
    static const struct {
        const char *name;
        quire_fit fit;
    } fits[] = {{"segregated", QUIRE_FIT_SEGREGATED},
                {"first", QUIRE_FIT_FIRST},
                {"buddy", QUIRE_FIT_BUDDY},
                {"linear", QUIRE_FIT_LINEAR}};
    for (size_t i = 0; i < sizeof fits / sizeof *fits; i++) {
        if (strcmp(text, fits[i].name))
            continue;
        *fit = fits[i].fit;
        return true;
    }
    return false;
}

/* Puts one option's value into its target; returns what would have been right, or NULL. */
static const char *apply(const option_spec *spec, const char *value)
{
    const char *rest = NULL;
    switch (spec->kind) {
    case OPTION_FLAG:
        *(bool *)spec->target = true;
        return NULL;
    case OPTION_TEXT:
        *(const char **)spec->target = value;
        return NULL;
    case OPTION_SIZE:
        return parse_size(value, spec->target) ? NULL : "a size such as 65536, 64K or 32M";
    case OPTION_NUMBER:
        return parse_number(value, spec->target, &rest) && !*rest ? NULL : "a number";
    case OPTION_FIT:
        return parse_fit(value, spec->target) ? NULL : "segregated, first, buddy or linear";
    }
    return NULL;
}

int parse_options(const command *self, int argc, char **argv, const option_spec *specs,
                  size_t count, const char **positional)
{
    struct option longs[MAX_OPTIONS + 2] = {{0}};
    for (size_t i = 0; i < count; i++)
        longs[i] = (struct option){
            specs[i].name, specs[i].argument ? required_argument : no_argument, NULL, (int)i + 1};
    int help = (int)count + 1;
    longs[count] = (struct option){"help", no_argument, NULL, help};
    opterr = 0;
    optind = 1;
    for (int found; (found = getopt_long(argc, argv, ":h", longs, NULL)) != -1;) {
        if (found == ':')
            return bad_usage(self, "%s wants a value", argv[optind - 1]);
        if (found == '?' && optopt >= ' ' && optopt < 0x7f)
            return bad_usage(self, "there is no option -%c", optopt);
        if (found == '?')
            return bad_usage(self, "%s is no option, stands for several, or takes no value",
                             argv[optind - 1]);
        if (found == help || found == 'h') {
            print_help(self, specs, count);
            return EXIT_OK;
        }
        const option_spec *spec = &specs[found - 1];
        const char *wanted = apply(spec, optarg);
        if (wanted)
            return bad_usage(self, "--%s takes %s, not '%s'", spec->name, wanted, optarg);
    }
    if (positional && optind == argc)
        return bad_argument(self, "something is missing: quire %s %s", self->name, self->arguments);
    if (positional)
        *positional = argv[optind++];
    if (optind < argc)
        return bad_usage(self, "'%s' is one argument too many", argv[optind]);
    return -1;
}
