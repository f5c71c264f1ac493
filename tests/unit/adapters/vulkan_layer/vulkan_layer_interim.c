/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_layer_interim.c - what is left of the statistics and the trace of a process that ends by
 * _exit or a signal, at any moment.
 */
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/adapters/vulkan_layer/layer.h"
#include "tests/support/child.h"
#include "tests/support/layer_fixture.h"
#include "tests/support/unit.h"

enum { PATH = 64, TEXT = 1 << 16 };

/* How a process ends. */
typedef enum end { BY_EXIT, BY_SIGTERM, BY_SIGKILL, ENDS } end;

typedef struct files {
    char folder[PATH], statistics[2 * PATH], trace[2 * PATH];
    char interim[4 * PATH]; /* the only interim file; "" : there is none */
} files;

static files make_files(const char *form)
{
    files made = {.folder = "/tmp/quire-layer-XXXXXX"};
    CHECK(mkdtemp(made.folder) != NULL);
    snprintf(made.statistics, sizeof made.statistics, "%s/statistics", made.folder);
    snprintf(made.trace, sizeof made.trace, "%s/trace", made.folder);
    setenv("QUIRE_LAYER_STATS", form, 1);
    setenv("QUIRE_LAYER_STATS_FILE", made.statistics, 1);
    setenv("QUIRE_LAYER_TRACE", made.trace, 1);
    return made;
}

/* Returns the number of interim files, complete ones and others. */
static size_t find_interim(files *in)
{
    glob_t found;
    char pattern[2 * PATH];
    snprintf(pattern, sizeof pattern, "%s/statistics.*", in->folder);
    size_t count = glob(pattern, 0, NULL, &found) ? 0 : found.gl_pathc;
    snprintf(in->interim, sizeof in->interim, "%s", count ? found.gl_pathv[0] : "");
    globfree(&found);
    return count;
}

static void remove_files(const files *in)
{
    glob_t found;
    char pattern[2 * PATH];
    snprintf(pattern, sizeof pattern, "%s/*", in->folder);
    if (!glob(pattern, 0, NULL, &found))
        for (size_t i = 0; i < found.gl_pathc; i++)
            CHECK(!remove(found.gl_pathv[i]));
    globfree(&found);
    CHECK(!rmdir(in->folder));
}

static int count_of(const char *path, const char *part)
{
    int found = 0;
    for (const char *text = strstr(lf_read(path), part); text; text = strstr(text + 1, part))
        found++;
    return found;
}

/* Return a number of the statistics. */
static uint64_t number_in(const char *text, const char *key)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *found = strstr(text, quoted);
    CHECK(found != NULL);
    return strtoull(found + strlen(quoted), NULL, 10);
}

static uint64_t number(const char *path, const char *key)
{
    return number_in(lf_read(path), key);
}

/* Allocates memory, frees the last `freed` objects and ends. */
static void live(end way, int made, int freed)
{
    static VkDeviceMemory memories[10000];
    fv_fixture f;
    lf_open_named(&f, "amd-bar");
    for (int i = 0; i < made; i++)
        memories[i] = lf_allocate(&f, 1000, 0, NULL);
    for (int i = made - freed; i < made; i++)
        lf_release(&f, memories[i]);
    if (way == BY_EXIT)
        _exit(0);
    kill(getpid(), way == BY_SIGTERM ? SIGTERM : SIGKILL);
}

/* Runs a process that lives and ends like that. Under valgrind the status of _exit reports its
   blocks. */
static void run(end way, int made, int freed)
{
    int status = 0;
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        signal(SIGTERM, SIG_DFL);
        live(way, made, freed);
        _exit(9);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(way == BY_EXIT
              ? WIFEXITED(status)
              : WIFSIGNALED(status) && WTERMSIG(status) == (way == BY_SIGTERM ? SIGTERM : SIGKILL));
}

/* Up to 64 calls nothing is missing. */
UNIT_ALONE(vulkan_layer_interim, a_small_program_that_is_ended_loses_nothing)
{
    for (end way = 0; way < ENDS; way++) {
        files in = make_files("json");
        run(way, 40, 9);
        CHECK_EQ(find_interim(&in), 1);
        CHECK_EQ(number(in.interim, "client_allocations"), 40);
        CHECK_EQ(number(in.interim, "never_freed"), 31);
        CHECK_EQ(number(in.interim, "driver_allocations"), 1);
        CHECK_EQ(count_of(in.trace, "alloc,"), 40);
        CHECK_EQ(count_of(in.trace, "free,"), 9);
        CHECK(access(in.statistics, F_OK) != 0);
        remove_files(&in);
    }
}

UNIT_ALONE(vulkan_layer_interim, a_large_program_that_is_ended_loses_a_64th)
{
    enum { MADE = 9000, FREED = 1000 };
    files in = make_files("json");
    run(BY_SIGKILL, MADE, FREED);
    CHECK_EQ(find_interim(&in), 1);
    CHECK_EQ(number(in.interim, "client_allocations"), MADE);
    uint64_t left = number(in.interim, "never_freed");
    CHECK(left >= MADE - FREED && left <= MADE - FREED + (MADE + FREED) / 64);
    remove_files(&in);
}

/* A reader never sees half a file, and neither does a kill at any moment leave one. */
UNIT_ALONE(vulkan_layer_interim, the_file_is_complete_at_every_moment)
{
    enum { READS = 300 };
    files in = make_files("text");
    int status = 0, complete = 0;
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        fv_fixture f;
        lf_open_named(&f, "amd-bar");
        for (;;)
            lf_release(&f, lf_allocate(&f, 1000, 0, NULL));
    }
    for (int i = 0; complete < READS && i < 200 * READS; i++) {
        struct stat found;
        size_t count = find_interim(&in); /* two while it is replaced; the complete one is first */
        if (count && !stat(in.interim, &found) && found.st_size) {
            const char *text = lf_read(in.interim);
            CHECK_EQ(strncmp(text, "VK_LAYER_QUIRE_suballocate: device 1", 36), 0);
            CHECK_HAS(text, "never freed\n");
            complete++;
        }
        usleep(200);
    }
    kill(child, SIGKILL);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQ(complete, READS);
    find_interim(&in);
    CHECK_HAS(lf_read(in.interim), "never freed\n");
    remove_files(&in);
}

/* A call after a pause writes what the calls before it changed. */
UNIT_ALONE(vulkan_layer_interim, the_file_is_at_most_ten_milliseconds_older_than_the_last_call)
{
    fv_fixture f;
    VkDeviceMemory memories[3000];
    files in = make_files("json");
    lf_open_named(&f, "amd-bar");
    for (int i = 0; i < 3000; i++)
        memories[i] = lf_allocate(&f, 1000, 0, NULL);
    usleep(15000);
    lf_release(&f, memories[0]);
    CHECK_EQ(find_interim(&in), 1);
    CHECK_EQ(number(in.interim, "client_allocations"), 3000);
    CHECK_EQ(number(in.interim, "never_freed"), 2999);
    for (int i = 1; i < 3000; i++)
        lf_release(&f, memories[i]);
    fv_fixture_close(&f);
    CHECK_EQ(find_interim(&in), 0); /* the final statistics replace it */
    CHECK_EQ(number(in.statistics, "never_freed"), 0);
    remove_files(&in);
}

static void *allocate_and_free(void *state)
{
    fv_fixture *f = state;
    for (int i = 0; i < 500; i++)
        lf_release(f, lf_allocate(f, 1000, 0, NULL));
    return NULL;
}

static atomic_bool is_writing;

typedef struct busy_thread {
    fv_fixture *f;
    atomic_bool *is_ended;
} busy_thread;

static void *allocate_until_ended(void *state)
{
    const busy_thread *busy = state;
    while (!atomic_load(busy->is_ended))
        lf_release(busy->f, lf_allocate(busy->f, 1000, 0, NULL));
    return NULL;
}

UNIT_ALONE(vulkan_layer_interim, threads_write_one_file)
{
    enum { THREADS = 4 };
    fv_fixture f;
    pthread_t threads[THREADS];
    files in = make_files("json");
    lf_open_named(&f, "amd-bar");
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, allocate_and_free, &f), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    usleep(15000);
    lf_release(&f, lf_allocate(&f, 1000, 0, NULL));
    CHECK_EQ(find_interim(&in), 1);
    uint64_t seen = number(in.interim, "client_allocations");
    CHECK_EQ(seen, 500 * THREADS + 1);
    fv_fixture_close(&f);
    CHECK_EQ(number(in.statistics, "never_freed"), 0);
    remove_files(&in);
}

/* A difference of two counts that another thread changes in between must not be negative. */
UNIT_ALONE(vulkan_layer_interim, no_number_is_negative_while_threads_allocate_and_free)
{
    enum { THREADS = 2, WRITES = 20000 };
    fv_fixture f;
    pthread_t threads[THREADS];
    static char text[TEXT];
    atomic_bool is_ended = false;
    busy_thread busy = {&f, &is_ended};
    setenv("QUIRE_LAYER_STATS", "json", 1);
    lf_open_named(&f, "amd-bar");
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, allocate_until_ended, &busy), 0);
    for (int i = 0; i < WRITES; i++) {
        FILE *file = fmemopen(text, sizeof text, "w");
        CHECK(file && layer_write_statistics(layer_device_of(f.device), file) && !fclose(file));
        CHECK_EQ(number_in(text, "passed_on"), 0);
        CHECK(number_in(text, "never_freed") < UINT64_MAX / 2);
    }
    atomic_store(&is_ended, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    unsetenv("QUIRE_LAYER_STATS");
    fv_fixture_close(&f);
}

/* Plays a thread that is writing the file: it holds the mutex, and the file appears at the end. */
static void *write_slowly(void *state)
{
    layer_interim *interim = state;
    pthread_mutex_lock(&interim->mutex);
    atomic_store(&is_writing, true);
    usleep(20000);
    FILE *file = fopen(interim->path, "w");
    bool is_written = file && !fclose(file);
    pthread_mutex_unlock(&interim->mutex);
    return is_written ? state : NULL;
}

/* A program can exit while its threads run. */
UNIT_ALONE(vulkan_layer_interim, a_write_under_way_leaves_no_file_at_exit)
{
    fv_fixture f;
    pthread_t writer;
    void *is_written = NULL;
    files in = make_files("json");
    lf_open_named(&f, "amd-bar");
    layer_device *device = layer_device_of(f.device);
    CHECK_EQ(find_interim(&in), 1);
    CHECK_EQ(pthread_create(&writer, NULL, write_slowly, &device->interim), 0);
    while (!atomic_load(&is_writing))
        usleep(100);
    layer_interim_remove(device);
    CHECK(!pthread_join(writer, &is_written) && is_written);
    CHECK_EQ(find_interim(&in), 0);
    fv_fixture_close(&f);
    remove_files(&in);
}

UNIT_ALONE(vulkan_layer_interim, a_forked_child_leaves_the_file_of_its_parent_alone)
{
    fv_fixture f;
    files in = make_files("json");
    lf_open_named(&f, "amd-bar");
    VkDeviceMemory memory = lf_allocate(&f, 1000, 0, NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        lf_allocate(&f, 1000, 0, NULL);
        lf_release(&f, memory);
        child_end(true);
    }
    CHECK(child_was_well(child));
    CHECK_EQ(find_interim(&in), 1);
    CHECK_EQ(number(in.interim, "client_allocations"), 1);
    CHECK_EQ(number(in.interim, "never_freed"), 1);
    lf_release(&f, memory);
    fv_fixture_close(&f);
    remove_files(&in);
}

/* A program that executes another one has the same process number as that one. */
UNIT_ALONE(vulkan_layer_interim, a_file_with_the_same_name_stays)
{
    fv_fixture f;
    char taken[4 * PATH];
    files in = make_files("json");
    lf_open_named(&f, "amd-bar");
    CHECK_EQ(find_interim(&in), 1);
    snprintf(taken, sizeof taken, "%s", in.interim);
    fv_fixture_close(&f);
    CHECK_EQ(find_interim(&in), 0);
    for (unsigned i = 0; i < 4; i++) { /* the second device has the number 2 */
        char *end_of_name = strrchr(taken, '-');
        snprintf(end_of_name, 32, "-%u.partial", i + 1);
        FILE *file = fopen(taken, "w");
        CHECK(file && fputs("theirs", file) >= 0 && !fclose(file));
    }
    lf_open_named(&f, "amd-bar");
    lf_release(&f, lf_allocate(&f, 1000, 0, NULL));
    CHECK_EQ(find_interim(&in), 5);
    fv_fixture_close(&f);
    CHECK_EQ(find_interim(&in), 4);
    CHECK_STR(lf_read(in.interim), "theirs");
    remove_files(&in);
}

/* A relative path is one of the working directory in which the device is created. */
UNIT_ALONE(vulkan_layer_interim, a_program_may_change_its_working_directory)
{
    fv_fixture f;
    char before[PATH_MAX];
    CHECK(getcwd(before, sizeof before) != NULL);
    files in = make_files("json");
    setenv("QUIRE_LAYER_STATS_FILE", "statistics", 1);
    CHECK(!chdir(in.folder));
    lf_open_named(&f, "amd-bar");
    CHECK(!chdir("/"));
    VkDeviceMemory memory = lf_allocate(&f, 1000, 0, NULL);
    CHECK_EQ(find_interim(&in), 1);
    CHECK_EQ(number(in.interim, "client_allocations"), 1);
    lf_release(&f, memory);
    fv_fixture_close(&f);
    CHECK_EQ(find_interim(&in), 0);
    CHECK_EQ(number(in.statistics, "client_allocations"), 1);
    CHECK(!chdir(before));
    remove_files(&in);
}

/* A pipe gets only the final statistics, and a folder without permission is reported once. */
UNIT_ALONE(vulkan_layer_interim, without_a_regular_file_there_is_none)
{
    fv_fixture f;
    files in = make_files("json");
    setenv("QUIRE_LAYER_STATS_FILE", "/dev/null", 1);
    lf_open_named(&f, "amd-bar");
    lf_release(&f, lf_allocate(&f, 1000, 0, NULL));
    fv_fixture_close(&f);
    CHECK_EQ(find_interim(&in), 0);
    setenv("QUIRE_LAYER_STATS_FILE", "/no/such/folder/statistics", 1);
    lf_open_named(&f, "amd-bar");
    lf_release(&f, lf_allocate(&f, 1000, 0, NULL));
    fv_fixture_close(&f);
    remove_files(&in);
}
