/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fake_cuda_library.c - the fake CUDA driver as programs find the real one: a library opened by
 * name. dlsym and cuGetProcAddress find its functions, unless they are hidden.
 */
#include "tests/support/plain.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cuda/fake_cuda.h"

typedef const fc_control *(*control_function)(void);

static void *open_library(void)
{
    void *library = dlopen(FAKE_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        check_failed(__FILE__, __LINE__, "%s", dlerror());
    return library;
}

static void *find(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found)
        check_failed(__FILE__, __LINE__, "there is no %s", name);
    return found;
}

/* Converts a data pointer to a function pointer, for which C has no cast. */
#define FIND(type, variable, library, name)                                                        \
    do {                                                                                           \
        void *found = find((library), (name));                                                     \
        memcpy(&(variable), &found, sizeof found);                                                 \
    } while (0)

static const fc_control *control_of(void *library)
{
    control_function function;
    FIND(control_function, function, library, "fake_cuda");
    return function();
}

static void symbols_are_those_of_the_version_and_not_hidden(void)
{
    void *library = open_library();
    const fc_control *control = control_of(library);
    control->reset(&(fc_options){.version = 11020});
    CHECK(dlsym(library, "cuInit") && dlsym(library, "cuMemAlloc_v2"));
    CHECK(!dlsym(library, "cuGetProcAddress") && !dlsym(library, "cuGetProcAddress_v2"));
    CHECK(!dlsym(library, "cuMulticastCreate"));
    control->reset(&(fc_options){.version = 11030});
    CHECK(dlsym(library, "cuGetProcAddress") && !dlsym(library, "cuGetProcAddress_v2"));
    control->reset(NULL);
    CHECK(dlsym(library, "cuGetProcAddress_v2") && dlsym(library, "cuMulticastCreate"));
    CHECK(control->hide("cuMemCreate") && control->hide("cuGetProcAddress_v2"));
    CHECK(!dlsym(library, "cuMemCreate") && !dlsym(library, "cuGetProcAddress_v2"));
    CHECK(dlsym(library, "cuGetProcAddress"));
    control->heal();
    CHECK(dlsym(library, "cuMemCreate"));
    CHECK(!dlclose(library));
}

static void both_ways_find_the_same_functions(void)
{
    void *library = open_library(), *function;
    qi_cu_query_result why;
    const fc_control *control = control_of(library);
    control->reset(NULL);
#define X(name, suffix, version, presence, parameters)                                             \
    CHECK(!control->find("cu" #name, &function, version, 0, &why));                                \
    CHECK(function == find(library, "cu" #name #suffix));
    QI_CU_FUNCTIONS(X)
#undef X
    CHECK(!dlclose(library));
}

static void options_come_from_the_environment(void)
{
    CHECK(!setenv("QUIRE_FAKE_CUDA_MODELS", "a100,orin", 1));
    CHECK(!setenv("QUIRE_FAKE_CUDA_VERSION", "12020", 1));
    CHECK(!setenv("QUIRE_FAKE_CUDA_FAIL", "cuDeviceGetCount 1 4", 1));
    CHECK(!setenv("QUIRE_FAKE_CUDA_HIDE", "cuMemMap", 1));
    void *library = open_library();
    qi_cu_fn_Init init;
    qi_cu_fn_DriverGetVersion get_version;
    qi_cu_fn_DeviceGetCount get_count;
    int version, count;
    FIND(qi_cu_fn_Init, init, library, "cuInit");
    FIND(qi_cu_fn_DriverGetVersion, get_version, library, "cuDriverGetVersion");
    FIND(qi_cu_fn_DeviceGetCount, get_count, library, "cuDeviceGetCount");
    CHECK(!dlsym(library, "cuMemMap"));
    CHECK(!get_version(&version) && version == 12020);
    CHECK(!init(0));
    CHECK_EQ(get_count(&count), QI_CUDA_ERROR_DEINITIALIZED);
    CHECK(!get_count(&count) && count == 2);
    CHECK(!dlclose(library));
    CHECK(!unsetenv("QUIRE_FAKE_CUDA_MODELS") && !unsetenv("QUIRE_FAKE_CUDA_VERSION") &&
          !unsetenv("QUIRE_FAKE_CUDA_FAIL") && !unsetenv("QUIRE_FAKE_CUDA_HIDE"));
}

static void a_wrong_option_ends_the_program(void)
{
    int status;
    pid_t child = fork();
    if (!child) {
        qi_cu_fn_Init init;
        (void)!freopen("/dev/null", "w", stderr);
        setenv("QUIRE_FAKE_CUDA_MODELS", "no-such-model", 1);
        void *found = dlsym(open_library(), "cuInit");
        memcpy(&init, &found, sizeof found);
        (void)init(0);
        _exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) || WEXITSTATUS(status));
}

static bool has_line(const char *path, const char *text)
{
    char line[256];
    bool found = false;
    FILE *file = fopen(path, "r");
    CHECK(file);
    while (fgets(line, sizeof line, file))
        found |= !strncmp(line, text, strlen(text));
    fclose(file);
    return found;
}

static void the_report_tells_what_is_alive(void)
{
    char path[] = "/tmp/fake-cuda-report-XXXXXX";
    int fd = mkstemp(path);
    qi_cu_fn_Init init;
    qi_cu_fn_MemCreate create;
    qi_cu_handle handle;
    qi_cu_allocation_prop prop = {.type = QI_CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {QI_CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CHECK(fd >= 0 && !close(fd) && !setenv("QUIRE_FAKE_CUDA_REPORT", path, 1));
    void *library = open_library();
    FIND(qi_cu_fn_Init, init, library, "cuInit");
    FIND(qi_cu_fn_MemCreate, create, library, "cuMemCreate");
    CHECK(!init(0) && !create(&handle, 2 << 20, &prop, 0));
    CHECK(!dlclose(library));
    CHECK(!unsetenv("QUIRE_FAKE_CUDA_REPORT"));
    CHECK(has_line(path, "calls cuMemCreate 1"));
    CHECK(has_line(path, "peak 0 2097152"));
    CHECK(has_line(path, "live 1 physical memory"));
    CHECK(!has_line(path, "message"));
    unlink(path);
}

int main(void)
{
    plain_case("options come from the environment", options_come_from_the_environment);
    plain_case("a wrong option ends the program", a_wrong_option_ends_the_program);
    plain_case("the report lists live objects", the_report_tells_what_is_alive);
    plain_case("symbols are those of the version and not hidden",
               symbols_are_those_of_the_version_and_not_hidden);
    plain_case("both ways find the same functions", both_ways_find_the_same_functions);
    return plain_end();
}
