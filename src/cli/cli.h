/*
 * cli.h - what the subcommands of the tool share: exit codes, options, files, tables, progress.
 *
 * A subcommand is a function and a table of its options; the table is the one source of the parsing
 * and of --help. Results go to standard output; errors and progress to standard error.
 */
#ifndef QUIRE_SRC_CLI_CLI_H
#define QUIRE_SRC_CLI_CLI_H

#include <stdarg.h>
#include <stdio.h>

#include "quire/host.h"
#include "quire/quire.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* ---- subcommands -------------------------------------------------------------------------- */

typedef struct command {
    const char *name;
    const char *arguments; /* for the usage line: "TRACE [options]" */
    const char *summary;   /* one line */
    int (*run)(const struct command *self, int argc, char **argv); /* argv[0] is the name */
    void (*list_arguments)(FILE *out); /* what the argument can be; NULL: no list */
} command;

int run_devices(const command *self, int argc, char **argv);
int run_tour(const command *self, int argc, char **argv);
int run_replay(const command *self, int argc, char **argv);
int run_map(const command *self, int argc, char **argv);
int run_tune(const command *self, int argc, char **argv);
int run_bench(const command *self, int argc, char **argv);
void list_workloads(FILE *out);
int run_copy(const command *self, int argc, char **argv);

/* ---- options (options.c) ------------------------------------------------------------------ */

typedef enum option_kind {
    OPTION_FLAG,   /* bool */
    OPTION_TEXT,   /* const char * */
    OPTION_SIZE,   /* uint64_t bytes, K M G T binary; above 0 */
    OPTION_NUMBER, /* uint64_t */
    OPTION_FIT     /* quire_fit */
} option_kind;

typedef struct option_spec {
    const char *name;     /* without the dashes */
    const char *argument; /* its name in the help, NULL for a flag */
    const char *help;
    option_kind kind;
    void *target;
} option_spec;

enum { MAX_OPTIONS = 24 };

/*
 * Parses the options of a subcommand into their targets and puts the one positional argument, if
 * `positional` is not NULL, there. Returns -1 to go on, or the exit code: help was asked for, or
 * the usage is bad.
 */
int parse_options(const command *self, int argc, char **argv, const option_spec *specs,
                  size_t count, const char **positional);

/* Complains about the usage; returns EXIT_USAGE. */
int bad_usage(const command *self, const char *format, ...) QUIRE_PRINTF(2, 3);

/* The same for an argument that is missing or wrong, with the list of what it can be. */
int bad_argument(const command *self, const char *format, ...) QUIRE_PRINTF(2, 3);

/* Prints the thread's last error; returns EXIT_FAILED. */
int fail_with_last_error(void);

/* "s" unless the count is 1. */
const char *plural(uint64_t count);

/* ---- text that came from outside (terminal.c) ---------------------------------------------- */

/*
 * As printf, but control characters and bytes that are no UTF-8 become '?', line ends among them,
 * whether the format or an argument has them.
 */
void print_clean(FILE *out, const char *format, ...) QUIRE_PRINTF(2, 3);
void vprint_clean(FILE *out, const char *format, va_list args) QUIRE_PRINTF(2, 0);

/* A line on standard error, likewise. */
void print_problem(const char *format, ...) QUIRE_PRINTF(1, 2);

/* ---- devices (open.c, profile.c) ---------------------------------------------------------- */

/* What the options below say. */
typedef struct device_choice {
    const char *backend;    /* "host", "vulkan", "cuda" or "plugin"; NULL: host */
    const char *profile;    /* a file, or NULL */
    const char *plugin;     /* likewise */
    uint64_t plugin_device; /* place in its list */
} device_choice;

/* Their rows in the table of a subcommand. */
#define DEVICE_OPTIONS(choice)                                                                     \
    {"backend", "B", "host (default), vulkan, cuda or plugin", OPTION_TEXT, &(choice)->backend},   \
        {"profile", "FILE", "pose as the device that a profile describes", OPTION_TEXT,            \
         &(choice)->profile},                                                                      \
        {"plugin", "FILE", "the compiled plugin, for that backend", OPTION_TEXT,                   \
         &(choice)->plugin},                                                                       \
    {                                                                                              \
        "plugin-device", "N", "place in the plugin's list, from 0", OPTION_NUMBER,                 \
            &(choice)->plugin_device                                                               \
    }

/* Its name. */
const char *backend_of(const device_choice *choice);

/* Opens the device; returns -1, or the exit code after printing why not. */
int open_device(const command *self, const device_choice *choice, quire_device **device);

/*
 * Reads a profile in the form of docs/formats.md. False with the sentence printed when the file
 * cannot be read or does not follow it. The name is allocated; free it.
 */
bool read_profile(const char *path, quire_host_profile *profile, char **name);

/* The kinds that `quire devices` names: no such kind is NO_KIND. */
#define NO_KIND UINT32_MAX
typedef struct kind_choices {
    uint32_t device, upload, readback, shared;
} kind_choices;

kind_choices choose_kinds(const quire_device *device);

/* "DEVICE_LOCAL|HOST_VISIBLE" into a buffer; "none" for 0. */
const char *flags_text(quire_memory_flags flags, char *buffer, size_t size);

/* The same as a JSON list of words; json.h is included by those who write JSON. */
struct qi_json;
void write_flags(struct qi_json *json, const char *key, quire_memory_flags flags);

/* ---- files, text, progress ---------------------------------------------------------------- */

/*
 * Reads a whole file, "-" being standard input; ended with 0. NULL with the sentence printed when
 * it cannot be read. Free it.
 */
char *read_file(const char *path, size_t *size);

/* A quire_sink that writes to a FILE. */
bool write_to_file(void *file, const char *text, size_t size);

/* Opens a file for writing, runs `write` on it, closes it; false with the sentence printed. */
bool write_file(const char *path, quire_result (*write)(void *subject, quire_sink sink, void *user),
                void *subject);

/* Whether two paths lead to one file; false where one is NULL. */
bool is_same_file(const char *one, const char *other);

/* A progress bar on standard error, when that is a terminal; redrawn at most ten times a second. */
typedef struct progress {
    const char *what;
    bool shown;
    uint64_t last_drawn;
} progress;

/* As the callback of quire_replay_options; `user` is a progress. */
bool show_progress(void *user, uint64_t done, uint64_t total);
void end_progress(progress *bar);

#endif
