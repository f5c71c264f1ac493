/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * options.h - the subcommands, and what all of them share: options, help and errors.
 *
 * A subcommand is a function and a table of its options. The table drives both the parser and
 * --help. Results go to standard output, errors and progress to standard error. The tool is single
 * threaded except for the workers of quire bench, which call no function of this header.
 */
#ifndef QUIRE_SRC_TOOL_OPTIONS_H
#define QUIRE_SRC_TOOL_OPTIONS_H

#include "quire/quire.h"
#include "src/tool/io.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* ---- subcommands -------------------------------------------------------------------------- */

/* A command line that works in the folder of the sources. */
typedef struct example {
    const char *line;    /* at most 78 columns */
    const char *purpose; /* at most 74 columns */
} example;

enum { MAX_EXAMPLES = 3 };

struct option_spec;

typedef struct command {
    const char *name;
    const char *arguments; /* for the usage line, such as "TRACE [options]" */
    const char *summary;   /* one line */
    /* Returns the exit code. argv[0] is the name of the subcommand. */
    int (*run)(const struct command *self, int argc, char **argv);
    /* Prints the valid values of the argument. NULL if they cannot be listed. */
    void (*list_arguments)(FILE *out);
    /* Prints the words that the argument can be, each after a blank. NULL if it is a file. */
    void (*print_words)(FILE *out);
    bool runs_program; /* the arguments are a program and its arguments, behind the options */
    example examples[MAX_EXAMPLES]; /* at least two; ends with a row without a line */
    /* If it is set, parse_options passes the table of options to it instead of parsing. */
    void (*take_options)(const struct command *self, const struct option_spec *specs, size_t count);
} command;

/* All subcommands, in the order of the help. */
extern const command commands[];
extern const size_t command_count;

int run_devices(const command *self, int argc, char **argv);
int run_tour(const command *self, int argc, char **argv);
int run_replay(const command *self, int argc, char **argv);
int run_record(const command *self, int argc, char **argv);
int run_top(const command *self, int argc, char **argv);
int run_plan(const command *self, int argc, char **argv);
int run_import(const command *self, int argc, char **argv);
int run_compare(const command *self, int argc, char **argv);
int run_map(const command *self, int argc, char **argv);
int run_page(const command *self, int argc, char **argv);
int run_export(const command *self, int argc, char **argv);
int run_tune(const command *self, int argc, char **argv);
int run_bench(const command *self, int argc, char **argv);
int run_copy(const command *self, int argc, char **argv);
int run_completion(const command *self, int argc, char **argv);

/* Prints the workloads of quire bench. */
void list_workloads(FILE *out);

/* Print the names of all workloads of quire bench, and of the shells of quire completion. */
void print_workload_names(FILE *out);
void print_shell_names(FILE *out);

/*
 * Prints the pages of a memory as quire map does: one row of block characters per page with the
 * fill level of each 1/64 of it, its size and its allocations.
 */
quire_result print_page_map(quire_memory *memory);

/* ---- options ------------------------------------------------------------------------------ */

typedef enum option_kind {
    OPTION_FLAG,   /* bool */
    OPTION_TEXT,   /* const char * */
    OPTION_SIZE,   /* uint64_t bytes above 0; the suffixes K, M, G and T are binary */
    OPTION_NUMBER, /* uint64_t */
    OPTION_FIT,    /* quire_fit */
    OPTION_MEMBER  /* memory_choice (replay_setup.h) */
} option_kind;

typedef struct option_spec {
    const char *name;     /* without the dashes */
    const char *argument; /* name of the value in the help; NULL for a flag */
    const char *help;
    option_kind kind;
    void *target; /* of the type that the kind names */
} option_spec;

enum { MAX_OPTIONS = 48 };

/* The number of rows before the first one without a name. */
size_t count_options(const option_spec specs[MAX_OPTIONS]);

/*
 * Parses the options of a subcommand into their targets, unless self->take_options is set. Stores
 * the one positional argument in *positional, or accepts none if `positional` is NULL. Returns -1
 * if the subcommand can continue. Otherwise returns its exit code, after it printed the help or the
 * usage error.
 */
int parse_options(const command *self, int argc, char **argv, const option_spec *specs,
                  size_t count, const char **positional);

/* The positional arguments of a subcommand that takes more than one. */
typedef struct operands {
    size_t least, most; /* how many it takes */
    bool ends_options;  /* the words after the first one are positional, also with dashes */
    char **values;      /* the part of argv that has them, in their order */
    size_t count;
} operands;

/* Like parse_options, for such a subcommand. The caller sets the limits. */
int parse_operands(const command *self, int argc, char **argv, const option_spec *specs,
                   size_t count, operands *found);

/* Prints a usage error; returns EXIT_USAGE. */
int bad_usage(const command *self, const char *format, ...) QUIRE_PRINTF(2, 3);

/* Prints a usage error about the positional argument and lists its valid values; likewise. */
int bad_argument(const command *self, const char *format, ...) QUIRE_PRINTF(2, 3);

/* Prints the thread's last error; returns EXIT_FAILED. */
int fail_with_last_error(void);

/* Prints two columns of a help text. A line end in the right one begins a second line. */
void print_pair(FILE *out, int column, const char *left, const char *right);

#endif
