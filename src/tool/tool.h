/*
 * tool.h - functions that the subcommands of the tool share: options, devices, text, files and
 * progress.
 *
 * A subcommand is a function and a table of its options. The table drives both the parser and
 * --help. Results go to standard output, errors and progress to standard error. The tool is single
 * threaded except for the workers of quire bench, which call none of these functions.
 */
#ifndef QUIRE_SRC_TOOL_TOOL_H
#define QUIRE_SRC_TOOL_TOOL_H

#include <stdarg.h>
#include <stdio.h>

#include "quire/host.h"
#include "quire/quire.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* ---- subcommands -------------------------------------------------------------------------- */

typedef struct command {
    const char *name;
    const char *arguments; /* for the usage line, such as "TRACE [options]" */
    const char *summary;   /* one line */
    /* Returns the exit code. argv[0] is the name of the subcommand. */
    int (*run)(const struct command *self, int argc, char **argv);
    /* Prints the valid values of the argument. NULL if they cannot be listed. */
    void (*list_arguments)(FILE *out);
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
    OPTION_SIZE,   /* uint64_t bytes above 0; the suffixes K, M, G and T are binary */
    OPTION_NUMBER, /* uint64_t */
    OPTION_FIT,    /* quire_fit */
    OPTION_MEMBER  /* memory_choice (member.h) */
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
 * Parses the options of a subcommand into their targets. Stores the one positional argument in
 * *positional, or accepts none if `positional` is NULL. Returns -1 if the subcommand can continue.
 * Otherwise returns its exit code, after it printed the help or the usage error.
 */
int parse_options(const command *self, int argc, char **argv, const option_spec *specs,
                  size_t count, const char **positional);

/* Prints a usage error; returns EXIT_USAGE. */
int bad_usage(const command *self, const char *format, ...) QUIRE_PRINTF(2, 3);

/* Prints a usage error about the positional argument and lists its valid values; likewise. */
int bad_argument(const command *self, const char *format, ...) QUIRE_PRINTF(2, 3);

/* Prints the thread's last error; returns EXIT_FAILED. */
int fail_with_last_error(void);

/* Prints two columns of a help text. A line end in the right one begins a second line. */
void print_pair(FILE *out, int column, const char *left, const char *right);

/* Returns "s", or "" if the count is 1. */
const char *plural(uint64_t count);

/* ---- untrusted text (terminal.c) ----------------------------------------------------------- */

/*
 * Like fprintf, but replaces control characters, including line ends, and bytes that are not UTF-8
 * with '?'. This applies to the format as well as to the arguments.
 */
void print_clean(FILE *out, const char *format, ...) QUIRE_PRINTF(2, 3);
void vprint_clean(FILE *out, const char *format, va_list args) QUIRE_PRINTF(2, 0);

/* Prints one line on standard error, with the same replacements. */
void print_problem(const char *format, ...) QUIRE_PRINTF(1, 2);

/* Columns of the terminal on standard output, at least 40; 80 if it is none. */
int output_width(void);

/* Whether the locale's character set is UTF-8. */
bool is_utf8_output(void);

/* Prints words with line breaks at blanks, so that no line is wider than the output, and a final
   line break. Every line begins with `indent` blanks. */
void print_wrapped(int indent, const char *format, ...) QUIRE_PRINTF(2, 3);

/* ---- devices (open.c, profile.c) ---------------------------------------------------------- */

/* Targets of DEVICE_OPTIONS. */
typedef struct device_choice {
    const char *backend;    /* "host", "vulkan", "cuda" or "plugin"; NULL means host */
    const char *profile;    /* path of a device profile, or NULL */
    const char *device;     /* index or part of the name, for vulkan and cuda; NULL: any */
    const char *plugin;     /* path of a plugin, or NULL */
    uint64_t plugin_device; /* index in the plugin's list of devices */
} device_choice;

#define DEVICE_HELP                                                                                \
    "index or part of its name (default: the variable\n"                                           \
    "QUIRE_VULKAN_DEVICE or QUIRE_CUDA_DEVICE)"

/* The option_spec rows that select a device. */
#define DEVICE_OPTIONS(choice)                                                                     \
    {"backend", "B", "host (default), vulkan, cuda or plugin", OPTION_TEXT, &(choice)->backend},   \
        {"profile", "FILE", "simulate the device that a profile describes", OPTION_TEXT,           \
         &(choice)->profile},                                                                      \
        {"device", "D", DEVICE_HELP, OPTION_TEXT, &(choice)->device},                              \
        {"plugin", "FILE", "compiled plugin, for the plugin backend", OPTION_TEXT,                 \
         &(choice)->plugin},                                                                       \
    {                                                                                              \
        "plugin-device", "N", "index in the plugin's list of devices, from 0", OPTION_NUMBER,      \
            &(choice)->plugin_device                                                               \
    }

/* The name of the chosen backend; "host" if none is given. */
const char *backend_of(const device_choice *choice);

/* Opens the device. Returns -1, or prints the error and returns the exit code. */
int open_device(const command *self, const device_choice *choice, quire_device **device);

/*
 * Reads a device profile (docs/formats.md). Prints the error and returns false if the file is
 * unreadable or invalid. The caller frees *name, which profile->name points to.
 */
bool read_profile(const char *path, quire_host_profile *profile, char **name);

/* The memory kinds that quire chooses for typical uses; NO_KIND where no kind qualifies. */
#define NO_KIND UINT32_MAX
typedef struct kind_choices {
    uint32_t device, upload, readback, both, shared;
} kind_choices;

kind_choices choose_kinds(const quire_device *device);

/* Writes flags such as "DEVICE_LOCAL|HOST_VISIBLE" into the buffer and returns it; "none" for 0. */
const char *flags_text(quire_memory_flags flags, char *buffer, size_t size);

/* Writes flags as a JSON list of strings. Only callers include json.h, hence the declaration. */
struct qi_json;
void write_flags(struct qi_json *json, const char *key, quire_memory_flags flags);

/* ---- features.c ------------------------------------------------------------------------------ */

/* Print the optional features that the Vulkan backend uses, as lines or as the JSON object
   "features". Nothing is printed for a device of another backend. */
void print_features(quire_device *device);
void write_features(struct qi_json *json, quire_device *device);

/* ---- files, text, progress ---------------------------------------------------------------- */

/*
 * Reads a whole file, or standard input for "-", and appends a zero byte. Prints the error and
 * returns NULL if the file is unreadable. The caller frees the text.
 */
char *read_file(const char *path, size_t *size);

/*
 * Reads a JSON file. Prints the error and returns NULL if it is unreadable or no JSON. The caller
 * releases the value with json_decref. Only callers include jansson.h, hence the declaration.
 */
struct json_t;
struct json_t *read_json(const char *path);

/* A quire_sink that writes to a FILE. */
bool write_to_file(void *file, const char *text, size_t size);

/* A file that a command writes after its work. `path` is the target of an option. */
typedef struct output {
    const char *path; /* "-" means standard output; NULL means no output */
    FILE *file;       /* NULL unless open */
} output;

/* Whether a path is "-". */
bool is_standard(const char *path);

/* Opens the output if it has a path, so that an error shows before the work. Prints the error and
   returns false. */
bool open_output(output *o);

/* Calls `write` with a sink for an open output, then closes it. Prints the error, returns false. */
bool write_output(output *o, quire_result (*write)(void *subject, quire_sink sink, void *user),
                  void *subject);

/* Closes an output that was not written. */
void close_output(output *o);

/* Whether two paths lead to the same regular file; false if one is NULL or "-". */
bool is_same_file(const char *one, const char *other);

/* A progress bar on standard error. It is drawn only if standard error is a terminal. */
typedef struct progress {
    const char *what; /* name of the work */
    bool shown;
    uint64_t last_drawn; /* in milliseconds */
} progress;

/*
 * Draws the bar, at most ten times per second. A callback of quire_replay_options; `user` is a
 * progress. Always returns true.
 */
bool show_progress(void *user, uint64_t done, uint64_t total);

/* Erases the bar. */
void end_progress(progress *bar);

#endif
