/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * record.c - quire record: runs a program and records its allocations, by the variables of the
 * library and of the Vulkan layer. The program does not notice it: its streams, its exit status and
 * the signals that it receives are those of a run without this command.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "quire/trace.h"
#include "src/base/result.h"
#include "src/tool/options.h"

#define LAYER_NAME "VK_LAYER_QUIRE_suballocate"
#define LAYER_FILE "VkLayer_quire_suballocate.json"
#define LAYER_SUFFIX ".vulkan" /* of the layer's trace, after the name of the library's */

/* As of env and nohup: the program was not found, or it cannot be executed. */
enum { EXIT_NOT_FOUND = 127, EXIT_NOT_RUN = 126, EXIT_SIGNAL = 128 };

typedef struct record_run {
    const char *output;
    bool no_layer;
    bool has_layer;
    char **program;          /* its name and arguments; NULL ends them */
    char path[PATH_MAX];     /* the trace of the library, absolute */
    struct timespec started; /* by the clock that file systems use */
} record_run;

/* ---- the environment of the program ------------------------------------------------------- */

/* Sets a list of names: those that the variable has, and one more at its front or end. */
static bool extend(const char *variable, const char *name, bool at_front)
{
    const char *old = getenv(variable);
    char *text = NULL;
    if (!old || !*old)
        return !setenv(variable, name, 1);
    if (asprintf(&text, "%s:%s", at_front ? name : old, at_front ? old : name) < 0)
        return false;
    bool good = !setenv(variable, text, 1);
    free(text);
    return good;
}

static bool has_manifest(const char *folder)
{
    char file[PATH_MAX];
    int length = snprintf(file, sizeof file, "%s/" LAYER_FILE, folder);
    return length > 0 && (size_t)length < sizeof file && !access(file, R_OK);
}

/* The folder of the layer's manifest beside the tool, in an installation or a build. */
static bool find_own_folder(char folder[PATH_MAX])
{
    static const char *const places[] = {"../share/vulkan/explicit_layer.d",
                                         "src/adapters/vulkan_layer"};
    char tool[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", tool, sizeof tool - 1);
    if (length <= 0)
        return false;
    tool[length] = 0;
    *strrchr(tool, '/') = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        int used = snprintf(folder, PATH_MAX, "%s/%s", tool, places[i]);
        if (used > 0 && used < PATH_MAX && has_manifest(folder))
            return true;
    }
    return false;
}

/* The folders in which the loader looks by itself. */
static bool is_in_system(void)
{
    return has_manifest("/usr/share/vulkan/explicit_layer.d") ||
           has_manifest("/usr/local/share/vulkan/explicit_layer.d") ||
           has_manifest("/etc/vulkan/explicit_layer.d");
}

/* The layer is the last one of the list, nearest to the driver. VK_LAYER_PATH excludes the loader's
   own folders and VK_ADD_LAYER_PATH. */
static bool enable_layer(record_run *r)
{
    char folder[PATH_MAX], trace[PATH_MAX + sizeof LAYER_SUFFIX];
    bool is_own = find_own_folder(folder);
    r->has_layer = !r->no_layer && (is_own || is_in_system());
    if (!r->has_layer)
        return true;
    const char *path = getenv("VK_LAYER_PATH");
    const char *variable = path && *path ? "VK_LAYER_PATH" : "VK_ADD_LAYER_PATH";
    snprintf(trace, sizeof trace, "%s" LAYER_SUFFIX, r->path);
    return (!is_own || extend(variable, folder, true)) &&
           extend("VK_INSTANCE_LAYERS", LAYER_NAME, false) &&
           !setenv("QUIRE_LAYER_TRACE", trace, 1);
}

/* The program may change its working directory before it makes a device. Prints the error. */
static bool name_trace(record_run *r)
{
    char folder[PATH_MAX] = "", own[NAME_MAX + 1];
    const char *slash = strrchr(r->program[0], '/');
    snprintf(own, sizeof own, "%s.trace", slash ? slash + 1 : r->program[0]);
    const char *name = r->output ? r->output : own;
    if (*name != '/' && !getcwd(folder, sizeof folder)) {
        print_problem("quire: the working directory is not known: %s", strerror(errno));
        return false;
    }
    int length = snprintf(r->path, sizeof r->path, "%s%s%s", folder, *name == '/' ? "" : "/", name);
    if (length > 0 && (size_t)length + sizeof LAYER_SUFFIX <= sizeof r->path)
        return true;
    print_problem("quire: the path of the trace is too long");
    return false;
}

/* A recording that cannot be written would only be a warning in the program's log. */
static bool is_writable(const record_run *r)
{
    struct stat status;
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", r->path);
    *(strrchr(folder, '/') + 1) = 0;
    bool exists = !stat(r->path, &status);
    if (exists && S_ISDIR(status.st_mode))
        errno = EISDIR;
    else if (!access(exists ? r->path : folder, W_OK))
        return true;
    print_problem("quire: %s: %s", r->path, strerror(errno));
    return false;
}

static bool prepare(record_run *r)
{
    if (!name_trace(r) || !is_writable(r))
        return false;
    if (!setenv("QUIRE_TRACE", r->path, 1) && enable_layer(r))
        return true;
    print_problem("quire: no host memory for the environment of the program");
    return false;
}

/* ---- the program -------------------------------------------------------------------------- */

static volatile sig_atomic_t child;

static void forward(int number)
{
    int saved = errno;
    kill((pid_t)child, number);
    errno = saved;
}

/*
 * The terminal sends SIGINT and SIGQUIT to the program too: this process ignores them, so that it
 * lives to report. It passes on SIGTERM and SIGHUP, which reach only this process. What was ignored
 * before stays ignored. `defaults` receives what the program must not inherit.
 */
static void handle_signals(sigset_t *defaults)
{
    static const struct {
        int number;
        bool is_forwarded;
    } signals[] = {{SIGINT, false}, {SIGQUIT, false}, {SIGTERM, true}, {SIGHUP, true}};
    sigemptyset(defaults);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction old, action = {.sa_flags = SA_RESTART};
        sigaction(signals[i].number, NULL, &old);
        if (old.sa_handler == SIG_IGN)
            continue;
        sigemptyset(&action.sa_mask);
        action.sa_handler = signals[i].is_forwarded ? forward : SIG_IGN;
        sigaction(signals[i].number, &action, NULL);
        sigaddset(defaults, signals[i].number);
    }
}

/* Starts the program with the signals that this process had. Returns 0 or an errno. */
static int start(const record_run *r)
{
    extern char **environ;
    sigset_t all, mask, defaults;
    posix_spawnattr_t attributes;
    pid_t process = 0;
    int error = posix_spawnattr_init(&attributes);
    if (error)
        return error;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &mask); /* until the handler knows the process */
    handle_signals(&defaults);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setsigmask(&attributes, &mask);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    error = posix_spawnp(&process, r->program[0], NULL, &attributes, r->program, environ);
    child = process;
    if (!error)
        sigprocmask(SIG_SETMASK, &mask, NULL);
    posix_spawnattr_destroy(&attributes);
    return error;
}

/* Returns the exit code of the program, as a shell does. */
static int wait_for_end(void)
{
    int status = 0;
    while (waitpid((pid_t)child, &status, 0) < 0)
        if (errno != EINTR) {
            print_problem("quire: the end of the program is not known: %s", strerror(errno));
            return EXIT_FAILED;
        }
    return WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- the report --------------------------------------------------------------------------- */

static void report_trace(const char *path)
{
    size_t size = 0;
    quire_trace *trace = NULL;
    quire_trace_info info = {0};
    char *text = read_file(path, &size);
    if (!text)
        return;
    quire_result result = size ? quire_trace_parse(path, text, size, NULL, &trace) : QUIRE_SUCCESS;
    free(text);
    if (result) {
        print_problem("%s", quire_last_error());
        return;
    }
    if (trace)
        qi_ignore(quire_trace_get_info(trace, &info));
    print_problem("quire: %s: %" PRIu64 " event%s, peak %s%s", path, info.event_count,
                  plural(info.event_count), qi_bytes(info.peak_bytes).text,
                  info.cut_bytes ? "; its end is incomplete and left out" : "");
    quire_trace_destroy(&trace);
}

/* Whether the rest of a file's name is what a second device or a second process adds. */
static bool is_number_list(const char *rest)
{
    while (*rest == '.' && rest[1] >= '0' && rest[1] <= '9')
        rest += 1 + strspn(rest + 1, "0123456789");
    return !*rest;
}

/* Whether the file is a trace of this run: an older one has not changed since the start. */
static bool is_own_trace(const record_run *r, const char *folder, const char *name)
{
    const char *base = strrchr(r->path, '/') + 1, *rest = name + strlen(base);
    char path[PATH_MAX];
    struct stat status;
    if (strncmp(name, base, strlen(base)))
        return false;
    if (!is_number_list(rest) && (strncmp(rest, LAYER_SUFFIX, strlen(LAYER_SUFFIX)) ||
                                  !is_number_list(rest + strlen(LAYER_SUFFIX))))
        return false;
    if (snprintf(path, sizeof path, "%s%s", folder, name) >= (int)sizeof path ||
        stat(path, &status) || !S_ISREG(status.st_mode))
        return false;
    const struct timespec *changed = &status.st_mtim, *begin = &r->started;
    return changed->tv_sec > begin->tv_sec ||
           (changed->tv_sec == begin->tv_sec && changed->tv_nsec >= begin->tv_nsec);
}

static void report_nothing(const record_run *r)
{
    const char *why = r->has_layer  ? "and no Vulkan device through the loader"
                      : r->no_layer ? "and --no-layer leaves out Vulkan"
                                    : "and the Vulkan layer of quire is not installed";
    print_problem("quire: nothing was recorded: the program made no device of quire, %s", why);
}

/* One line for each trace, in the order of their names. */
static void report(const record_run *r)
{
    struct dirent **entries = NULL;
    char folder[PATH_MAX], path[2 * PATH_MAX];
    size_t found = 0;
    snprintf(folder, sizeof folder, "%s", r->path);
    *(strrchr(folder, '/') + 1) = 0;
    int count = scandir(folder, &entries, NULL, alphasort);
    if (count < 0)
        print_problem("quire: %s: %s", folder, strerror(errno));
    for (int i = 0; i < count; i++) {
        if (is_own_trace(r, folder, entries[i]->d_name)) {
            snprintf(path, sizeof path, "%s%s", folder, entries[i]->d_name);
            report_trace(path);
            found++;
        }
        free(entries[i]);
    }
    free(entries);
    if (count >= 0 && !found)
        report_nothing(r);
}

/* ---- run ---------------------------------------------------------------------------------- */

int run_record(const command *self, int argc, char **argv)
{
    record_run r = {0};
    const option_spec specs[] = {
        {"output", "FILE", "the trace (default: PROGRAM.trace in the working directory)",
         OPTION_TEXT, &r.output},
        {"no-layer", NULL, "do not load the Vulkan layer of quire", OPTION_FLAG, &r.no_layer},
    };
    operands words = {.least = 1, .most = SIZE_MAX, .ends_options = true};
    int code = parse_operands(self, argc, argv, specs, sizeof specs / sizeof *specs, &words);
    if (code >= 0)
        return code;
    if (r.output && (!*r.output || is_standard(r.output)))
        return bad_usage(self, "--output takes a file, not '%s'", r.output);
    r.program = words.values;
    if (!prepare(&r))
        return EXIT_FAILED;
    clock_gettime(CLOCK_REALTIME_COARSE, &r.started);
    int error = start(&r);
    if (error) {
        print_problem("quire: cannot run '%s': %s", r.program[0], strerror(error));
        return error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN;
    }
    code = wait_for_end();
    report(&r);
    return code;
}
