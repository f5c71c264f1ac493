/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * onnx_client.c - runs a model in ONNX Runtime with an allocator of choice and prints one line of
 * JSON: version, hash of the outputs, times, resident memory, statistics.
 *
 * usage: onnx_client LIBRARY MODEL ALLOCATOR RUNS SHAPE...
 *   ALLOCATOR  arena: the runtime's own; malloc: its arena is off; quire; threads: quire, and four
 *              threads run the session at the same time; sessions: two sessions, each with an
 *              allocator of quire of its own; limit=BYTES: quire with a limit
 *   SHAPE      of the input, such as 1x3x224x224; each run uses each of them
 *
 * ONNX_CLIENT_TRACE names a file for the trace of the first allocator, ONNX_CLIENT_KEEP_HEAP keeps
 * the heap (quire_onnxruntime_options.keep_heap).
 */
#include <dlfcn.h>
#include <onnxruntime_c_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "quire/onnxruntime.h"

enum { MAX_DIMENSIONS = 8, MAX_SESSIONS = 2, THREADS = 4 };

static const OrtApi *api;

typedef struct client {
    OrtEnv *env;
    uint32_t count; /* of sessions */
    OrtSession *sessions[MAX_SESSIONS];
    OrtAllocator *allocators[MAX_SESSIONS]; /* NULL: the runtime's own */
} client;

#define CHECK(call)                                                                                \
    do {                                                                                           \
        OrtStatus *status_ = (call);                                                               \
        if (status_) {                                                                             \
            fprintf(stderr, "%s: %s\n", #call, api->GetErrorMessage(status_));                     \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void require(quire_result result)
{
    if (result) {
        fprintf(stderr, "%s\n", quire_last_error());
        exit(1);
    }
}

/* Of processor time: the machine may be busy with other work. */
static double microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* A line of /proc/self/status, in KiB. */
static uint64_t status_kib(const char *key)
{
    char line[256];
    uint64_t kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (!strncmp(line, key, strlen(key)))
            kib = strtoull(line + strlen(key) + 1, NULL, 10);
    }
    if (file)
        fclose(file);
    return kib;
}

static uint64_t add_to_hash(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static OrtSession *create_session(OrtEnv *env, const char *model, const char *mode)
{
    OrtSessionOptions *options;
    OrtSession *session;
    bool is_own = !strcmp(mode, "arena") || !strcmp(mode, "malloc");
    CHECK(api->CreateSessionOptions(&options));
    CHECK(api->SetIntraOpNumThreads(options, 1)); /* the same sums in every run */
    if (!strcmp(mode, "malloc"))
        CHECK(api->DisableCpuMemArena(options));
    if (!is_own)
        CHECK(api->AddSessionConfigEntry(options, "session.use_env_allocators", "1"));
    CHECK(api->CreateSession(env, model, options, &session));
    api->ReleaseSessionOptions(options);
    return session;
}

static void unregister(OrtEnv *env, OrtAllocator *allocator)
{
    const OrtMemoryInfo *info;
    CHECK(api->AllocatorGetInfo(allocator, &info));
    CHECK(api->UnregisterAllocator(env, info));
}

/* A session keeps the allocator that is registered while it is created. */
static void open_sessions(client *c, const OrtApiBase *base, const char *model, const char *mode)
{
    const quire_onnxruntime_options options = {
        .limit = strncmp(mode, "limit=", 6) ? 0 : strtoull(mode + 6, NULL, 10),
        .keep_heap = getenv("ONNX_CLIENT_KEEP_HEAP") != NULL,
        .trace_file = getenv("ONNX_CLIENT_TRACE")};
    c->count = !strcmp(mode, "sessions") ? 2 : 1;
    for (uint32_t i = 0; i < c->count; i++) {
        if (strcmp(mode, "arena") && strcmp(mode, "malloc")) {
            require(quire_onnxruntime_create(base, i ? NULL : &options, &c->allocators[i]));
            CHECK(api->RegisterAllocator(c->env, c->allocators[i]));
        }
        c->sessions[i] = create_session(c->env, model, mode);
        if (c->allocators[i])
            unregister(c->env, c->allocators[i]);
    }
}

static void close_sessions(client *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        api->ReleaseSession(c->sessions[i]);
        require(quire_onnxruntime_destroy(&c->allocators[i]));
    }
}

/* Reads a shape such as 1x3x224x224 and returns a tensor of it. */
static OrtValue *create_input(const char *text, float **data)
{
    int64_t shape[MAX_DIMENSIONS];
    size_t dimensions = 0, count = 1;
    OrtMemoryInfo *info;
    OrtValue *value;
    uint32_t noise = 1;
    for (char *end; *text; text = *end ? end + 1 : end) {
        shape[dimensions] = strtol(text, &end, 10);
        count *= (size_t)shape[dimensions++];
    }
    *data = malloc(count * sizeof **data);
    for (size_t i = 0; i < count; i++) {
        noise = noise * 1664525 + 1013904223;
        (*data)[i] = (float)(noise >> 8) / (float)(1 << 24) - 0.5F;
    }
    CHECK(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &info));
    CHECK(api->CreateTensorWithDataAsOrtValue(info, *data, count * sizeof **data, shape, dimensions,
                                              ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
    api->ReleaseMemoryInfo(info);
    return value;
}

static uint64_t hash_output(uint64_t hash, OrtValue *output)
{
    OrtTensorTypeAndShapeInfo *info;
    size_t count;
    void *data;
    CHECK(api->GetTensorTypeAndShape(output, &info));
    CHECK(api->GetTensorShapeElementCount(info, &count));
    api->ReleaseTensorTypeAndShapeInfo(info);
    CHECK(api->GetTensorMutableData(output, &data));
    return add_to_hash(hash, data, count * sizeof(float));
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Runs the model with every shape, and returns the hash of all outputs. The model has one input
   without a weight, which is the first, and one output. */
static uint64_t run(OrtSession *session, char **shapes, double *took)
{
    OrtAllocator *allocator;
    char *input_name, *output_name;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    CHECK(api->GetAllocatorWithDefaultOptions(&allocator));
    CHECK(api->SessionGetInputName(session, 0, allocator, &input_name));
    CHECK(api->SessionGetOutputName(session, 0, allocator, &output_name));
    *took = 0;
    for (; *shapes; shapes++) {
        float *data;
        OrtValue *input = create_input(*shapes, &data), *output = NULL;
        double start = microseconds();
        CHECK(api->Run(session, NULL, (const char *const *)&input_name,
                       (const OrtValue *const *)&input, 1, (const char *const *)&output_name, 1,
                       &output));
        *took += microseconds() - start;
        hash = hash_output(hash, output);
        api->ReleaseValue(output);
        api->ReleaseValue(input);
        free(data);
    }
    CHECK(api->AllocatorFree(allocator, input_name));
    CHECK(api->AllocatorFree(allocator, output_name));
    return hash;
}

static void print_number(const char *key, uint64_t value)
{
    printf(", \"%s\": %llu", key, (unsigned long long)value);
}

static void print_statistics(const OrtAllocator *allocator)
{
    quire_onnxruntime_stats stats;
    require(quire_onnxruntime_get_stats(allocator, &stats));
    printf("{\"allocations\": %llu", (unsigned long long)stats.allocations);
    print_number("reserves", stats.reserves);
    print_number("bad_frees", stats.bad_frees);
    print_number("failures", stats.memory.failures);
    print_number("requested_bytes", stats.requested_bytes);
    print_number("max_allocation", stats.max_allocation);
    print_number("peak_requested_bytes", stats.memory.peak_requested_bytes);
    print_number("peak_reserved_bytes", stats.memory.peak_reserved_bytes);
    print_number("pages_created", stats.memory.pages_created);
}

/* Numbers in OrtApi of functions since 1.22 and 1.23, which the installed header may lack. */
enum { GET_KEY_VALUE_PAIRS = 298, RELEASE_KEY_VALUE_PAIRS = 300, ALLOCATOR_GET_STATS = 319 };

/* What the runtime itself reports about the allocator of a session. */
static void print_runtime_statistics(const char *version, const OrtSession *session)
{
    void *const *table = (void *const *)api;
    OrtStatus *(*get_stats)(const OrtAllocator *, void **);
    void (*get_pairs)(const void *, const char *const **, const char *const **, size_t *);
    void (*release_pairs)(void *);
    OrtMemoryInfo *info;
    OrtAllocator *allocator;
    const char *const *keys, *const *values;
    void *pairs;
    size_t count;
    if (strtol(version + 2, NULL, 10) < 23)
        return;
    *(void **)&get_stats = table[ALLOCATOR_GET_STATS];
    *(void **)&get_pairs = table[GET_KEY_VALUE_PAIRS];
    *(void **)&release_pairs = table[RELEASE_KEY_VALUE_PAIRS];
    CHECK(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &info));
    CHECK(api->CreateAllocator(session, info, &allocator));
    CHECK(get_stats(allocator, &pairs));
    get_pairs(pairs, &keys, &values, &count);
    printf(", \"runtime\": {\"count\": %zu", count);
    for (size_t i = 0; i < count; i++)
        printf(", \"%s\": %s", keys[i], values[i]);
    printf("}");
    release_pairs(pairs);
    api->ReleaseAllocator(allocator);
    api->ReleaseMemoryInfo(info);
}

typedef struct worker {
    pthread_t thread;
    OrtSession *session;
    int runs;
    char **shapes;
    uint64_t hash;
    double took;
} worker;

static void *work(void *argument)
{
    worker *w = argument;
    for (int i = 0; i < w->runs; i++)
        w->hash = add_to_hash(w->hash, &(uint64_t){run(w->session, w->shapes, &w->took)}, 8);
    return NULL;
}

/* Several threads run the session at the same time; each of their runs must have the result. */
static bool run_threads(const client *c, int runs, char **shapes, uint64_t hash)
{
    worker workers[THREADS];
    uint64_t expected = 0;
    bool is_same = true;
    for (int i = 0; i < runs; i++)
        expected = add_to_hash(expected, &hash, sizeof hash);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.session = c->sessions[0], .runs = runs, .shapes = shapes};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            abort();
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        is_same = is_same && workers[i].hash == expected;
    }
    return is_same;
}

/* Runs the sessions in turn and prints the object without its closing brace. */
static void run_all(client *c, const char *version, int runs, char **shapes, bool has_threads)
{
    double *took = malloc((size_t)runs * sizeof *took);
    uint64_t hash = 0;
    for (int i = 0; i < runs; i++) {
        took[i] = 0;
        for (uint32_t j = 0; j < c->count; j++) {
            double once;
            uint64_t other = run(c->sessions[j], shapes, &once);
            if (hash && other != hash) {
                fprintf(stderr, "a run has another result\n");
                exit(1);
            }
            hash = other;
            took[i] += once;
        }
    }
    if (has_threads && !run_threads(c, runs, shapes, hash)) {
        fprintf(stderr, "a run in a thread has another result\n");
        exit(1);
    }
    qsort(took, (size_t)runs, sizeof *took, compare);
    printf("{\"version\": \"%s\", \"hash\": \"%016llx\"", version, (unsigned long long)hash);
    print_number("run_us", (uint64_t)took[runs / 2]);
    free(took);
}

int main(int count, char **arguments)
{
    client c = {.count = 0};
    const OrtApiBase *(*get_base)(void);
    if (count < 6)
        return 2;
    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    *(void **)&get_base = dlsym(library, "OrtGetApiBase");
    api = get_base()->GetApi(ORT_API_VERSION);
    CHECK(api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "client", &c.env));
    CHECK(api->DisableTelemetryEvents(c.env));
    double start = microseconds();
    open_sessions(&c, get_base(), arguments[2], arguments[3]);
    uint64_t created = (uint64_t)(microseconds() - start);

    run_all(&c, get_base()->GetVersionString(), atoi(arguments[4]), arguments + 5,
            !strcmp(arguments[3], "threads"));
    print_number("create_us", created);
    print_number("rss_kib", status_kib("VmRSS"));
    print_number("peak_rss_kib", status_kib("VmHWM"));
    printf(", \"allocators\": [");
    for (uint32_t i = 0; i < c.count && c.allocators[i]; i++) {
        printf("%s", i ? ", " : "");
        print_statistics(c.allocators[i]);
        print_runtime_statistics(get_base()->GetVersionString(), c.sessions[i]);
        printf("}");
    }
    puts("]}");
    close_sessions(&c);
    api->ReleaseEnv(c.env);
    return 0;
}
