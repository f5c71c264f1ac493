/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * facts.c - what a CUDA driver and its device are and do, asked without quire: the first program of
 * a run on a device that quire has not met.
 *
 *     facts [LIBRARY]
 *
 * Prints a line per fact, without a buffer. Each step runs in a child, so that a step that ends its
 * process costs no other. Exits with 0 even then: a fact is no failure.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/cuda_kernel.h"
#include "tests/gpu/clock.h"
#include "tests/support/check.h"
#include "tests/support/cuda_direct.h"
#include "tests/support/plain.h"

#define MIB ((size_t)1 << 20)
#define STEP_SECONDS 30

static const char *driver = "libcuda.so.1";

/* ---- what steps share ----------------------------------------------------------------------- */

static void answer(const char *what, qi_cu_result code)
{
    printf("%s: %u %s\n", what, code, cuda_direct_name(code));
}

#define ANSWER(call) answer(#call, call)

static cuda_kernels kernels;

static void load_kernels(void)
{
    const char *reason = cuda_kernels_load(cuda_direct_library(), &kernels);
    if (reason)
        check_failed(__FILE__, __LINE__, "%s", reason);
}

/* Keeps the device busy for a quarter of a second, in a stream of its own. */
static void keep_busy(void)
{
    static qi_cu_stream stream;
    if (!stream) {
        load_kernels();
        MUST(cu.StreamCreate(&stream, QI_CU_STREAM_NON_BLOCKING));
    }
    MUST(cuda_kernel_spin(&kernels, 250 * 1000 * 1000, stream));
}

/* ---- the driver and the device -------------------------------------------------------------- */

static void ask_driver(void)
{
    int version = 0, count = 0;
    size_t total = 0, free = 0;
    char name[256] = "", path[PATH_MAX];
    Dl_info info;
    void *symbol = cuda_direct_find("cuInit");
    if (symbol && dladdr(symbol, &info) && realpath(info.dli_fname, path))
        printf("library: %s\n", strrchr(path, '/') + 1); /* its name has the version */
    MUST(cu.DriverGetVersion(&version));
    MUST(cu.DeviceGetCount(&count));
    MUST(cu.DeviceGetName(name, sizeof name, 0));
    MUST(cu.DeviceTotalMem(&total, 0));
    MUST(cu.MemGetInfo(&free, &total));
    printf("driver version: %d\ndevices: %d\nname: %s\nbytes: %zu, free %zu\n", version, count,
           name, total, free);
    for (int i = 1; i < count; i++) {
        int can = 0;
        MUST(cu.DeviceCanAccessPeer(&can, 0, i));
        printf("device 0 reaches device %d: %d\n", i, can);
    }
    if (count == 1)
        puts("device 0 reaches others: skipped: one GPU");
}

static void ask_attributes(void)
{
    for (qi_cu_attribute attribute = 1; attribute <= 160; attribute++) {
        int value = 0;
        qi_cu_result code = cu.DeviceGetAttribute(&value, attribute, 0);
        if (!code)
            printf("attribute %u: %d\n", attribute, value);
        else
            printf("attribute %u: no value, %u\n", attribute, code);
    }
}

/* ---- memory with properties ----------------------------------------------------------------- */

typedef struct property_set {
    const char *name;
    qi_cu_handle_type types;
    unsigned char is_rdma, is_compressed;
    qi_cu_location location;
} property_set;

static property_set sets[] = {
    {"plain", 0, 0, 0, {QI_CU_MEM_LOCATION_TYPE_DEVICE, 0}},
    {"FD", QI_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0, 0, {QI_CU_MEM_LOCATION_TYPE_DEVICE, 0}},
    {"RDMA", 0, 1, 0, {QI_CU_MEM_LOCATION_TYPE_DEVICE, 0}},
    {"FD and RDMA",
     QI_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
     1,
     0,
     {QI_CU_MEM_LOCATION_TYPE_DEVICE, 0}},
    {"FABRIC", QI_CU_MEM_HANDLE_TYPE_FABRIC, 0, 0, {QI_CU_MEM_LOCATION_TYPE_DEVICE, 0}},
    {"compressed", 0, 0, 1, {QI_CU_MEM_LOCATION_TYPE_DEVICE, 0}},
    {"HOST", 0, 0, 0, {QI_CU_MEM_LOCATION_TYPE_HOST, 0}},
    {"HOST_NUMA 0", 0, 0, 0, {QI_CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}},
    {"HOST_NUMA 0 with FD",
     QI_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
     0,
     0,
     {QI_CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}},
    {"HOST_NUMA 1", 0, 0, 0, {QI_CU_MEM_LOCATION_TYPE_HOST_NUMA, 1}},
    {"HOST_NUMA_CURRENT", 0, 0, 0, {QI_CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0}},
};
enum { SET_COUNT = sizeof sets / sizeof *sets };

static const property_set *set; /* of the running step */

static const qi_cu_access_desc WRITES = {{QI_CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                         QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

static qi_cu_allocation_prop properties_of(const property_set *s)
{
    qi_cu_allocation_prop p = {.type = QI_CU_MEM_ALLOCATION_TYPE_PINNED,
                               .requestedHandleTypes = s->types,
                               .location = s->location};
    p.allocFlags.gpuDirectRDMACapable = s->is_rdma;
    p.allocFlags.compressionType = s->is_compressed;
    return p;
}

typedef struct mapping {
    qi_cu_handle handle;
    qi_cu_ptr at;
    double us[6]; /* reserve, create, map, access, unmap, release */
} mapping;

static qi_cu_result map_new(mapping *m, const property_set *s, size_t size)
{
    const qi_cu_allocation_prop p = properties_of(s);
    double t0 = now_us();
    MUST(cu.MemAddressReserve(&m->at, size, 0, 0, 0));
    double t1 = now_us();
    qi_cu_result code = cu.MemCreate(&m->handle, size, &p, 0);
    if (code)
        return answer("create", code), code;
    double t2 = now_us();
    code = cu.MemMap(m->at, size, 0, m->handle, 0);
    if (code)
        return answer("map", code), code;
    double t3 = now_us();
    code = cu.MemSetAccess(m->at, size, &WRITES, 1);
    if (code)
        return answer("access", code), code;
    double t4 = now_us();
    m->us[0] += t1 - t0, m->us[1] += t2 - t1, m->us[2] += t3 - t2, m->us[3] += t4 - t3;
    return 0;
}

static void unmap(mapping *m, size_t size)
{
    double t0 = now_us();
    MUST(cu.MemUnmap(m->at, size));
    double t1 = now_us();
    MUST(cu.MemRelease(m->handle));
    double t2 = now_us();
    MUST(cu.MemAddressFree(m->at, size));
    m->us[4] += t1 - t0, m->us[5] += t2 - t1;
}

static void time_size(size_t size, int repetitions)
{
    mapping m = {.at = 0};
    for (int i = 0; i < repetitions; i++) {
        if (map_new(&m, set, size))
            return;
        unmap(&m, size);
    }
    for (int i = 0; i < 6; i++)
        m.us[i] /= repetitions;
    printf("%s, %zu MiB, mean of %d, us: reserve %.1f create %.1f map %.1f access %.1f unmap %.1f "
           "release %.1f\n",
           set->name, size / MIB, repetitions, m.us[0], m.us[1], m.us[2], m.us[3], m.us[4],
           m.us[5]);
}

static void ask_set(void)
{
    const qi_cu_allocation_prop p = properties_of(set);
    size_t size = 0;
    for (qi_cu_granularity option = 0; option < 2; option++) {
        qi_cu_result code = cu.MemGetAllocationGranularity(&size, &p, option);
        printf("granularity, %s: %zu, %u\n", option ? "recommended" : "minimum", size, code);
        if (code)
            return;
    }
    time_size(2 * MIB, 1);
    time_size(2 * MIB, 50);
    time_size(32 * MIB, 20);
    time_size(256 * MIB, 10);
    mapping m = {.at = 0};
    if (map_new(&m, set, 2 * MIB))
        return;
    qi_cu_allocation_prop granted;
    if (!cu.MemGetAllocationPropertiesFromHandle(&granted, m.handle))
        printf("granted: types %u, RDMA %d, compression %d\n", granted.requestedHandleTypes,
               granted.allocFlags.gpuDirectRDMACapable, granted.allocFlags.compressionType);
    ANSWER(cu.MemsetD8(m.at, 1, 2 * MIB));
    ANSWER(cu.CtxSynchronize());
    unmap(&m, 2 * MIB);
}

/* ---- what waits ------------------------------------------------------------------------------ */

static void time_busy(const char *what, double start, qi_cu_result code)
{
    printf("during a kernel: %s: %u, %.0f us\n", what, code, now_us() - start);
}

#define BUSY(call)                                                                                 \
    do {                                                                                           \
        keep_busy();                                                                               \
        double start = now_us();                                                                   \
        time_busy(#call, start, call);                                                             \
        MUST(cu.CtxSynchronize());                                                                 \
    } while (0)

static void ask_what_waits(void)
{
    qi_cu_ptr block = 0, other = 0;
    void *pinned = NULL;
    size_t free, total;
    qi_cu_event event;
    qi_cu_stream stream;
    mapping m = {.at = 0};
    const qi_cu_allocation_prop p = properties_of(&sets[0]);
    MUST(cu.MemAlloc(&block, 32 * MIB));
    keep_busy(); /* loads the kernels */
    MUST(cu.CtxSynchronize());
    BUSY(cu.MemGetInfo(&free, &total));
    BUSY(cu.MemCreate(&m.handle, 32 * MIB, &p, 0));
    BUSY(cu.MemAddressReserve(&m.at, 32 * MIB, 0, 0, 0));
    BUSY(cu.MemMap(m.at, 32 * MIB, 0, m.handle, 0));
    BUSY(cu.MemSetAccess(m.at, 32 * MIB, &WRITES, 1));
    BUSY(cu.MemUnmap(m.at, 32 * MIB));
    BUSY(cu.MemRelease(m.handle));
    BUSY(cu.MemAddressFree(m.at, 32 * MIB));
    BUSY(cu.MemAlloc(&other, 32 * MIB));
    BUSY(cu.MemFree(other));
    BUSY(cu.MemHostAlloc(&pinned, 32 * MIB, 0));
    BUSY(cu.MemsetD8((qi_cu_ptr)(uintptr_t)pinned, 1, 32 * MIB));
    BUSY(cu.MemFreeHost(pinned));
    BUSY(cu.StreamCreate(&stream, QI_CU_STREAM_NON_BLOCKING));
    BUSY(cu.EventCreate(&event, QI_CU_EVENT_DISABLE_TIMING));
    BUSY(cu.EventRecord(event, stream));
    BUSY(cu.EventQuery(event));
    BUSY(cu.EventDestroy(event));
    BUSY(cu.StreamDestroy(stream));
    MUST(cu.MemFree(block));
}

/* Whether a call that looks synchronous returns before the device has done its work. */
static void ask_what_returns_early(void)
{
    const size_t size = 256 * MIB;
    qi_cu_ptr a, b;
    static char host[4096];
    MUST(cu.MemAlloc(&a, size));
    MUST(cu.MemAlloc(&b, size));
    load_kernels();
    for (int round = 0; round < 2; round++) {
        double t0 = now_us();
        MUST(cu.MemcpyDtoD(b, a, size));
        double t1 = now_us();
        MUST(cu.StreamSynchronize(NULL));
        printf("cuMemcpyDtoD of 256 MiB: returns after %.0f us, has ended after %.0f\n", t1 - t0,
               now_us() - t0);
        t0 = now_us();
        MUST(cu.MemsetD8(b, 1, size));
        t1 = now_us();
        MUST(cu.StreamSynchronize(NULL));
        printf("cuMemsetD8 of 256 MiB: returns after %.0f us, has ended after %.0f\n", t1 - t0,
               now_us() - t0);
        MUST(cuda_kernel_spin(&kernels, 100 * 1000 * 1000, NULL));
        t0 = now_us();
        MUST(cu.MemcpyHtoD(a, host, sizeof host));
        t1 = now_us();
        MUST(cu.StreamSynchronize(NULL));
        printf(
            "cuMemcpyHtoD of 4 KiB behind a kernel: returns after %.0f us, has ended after %.0f\n",
            t1 - t0, now_us() - t0);
    }
}

static void ask_several_mappings(void)
{
    mapping m[4] = {{.at = 0}};
    const qi_cu_allocation_prop p = properties_of(&sets[0]);
    qi_cu_ptr range;
    MUST(cu.MemAddressReserve(&range, 8 * MIB, 0, 0, 0));
    for (size_t i = 0; i < 4; i++) {
        MUST(cu.MemCreate(&m[i].handle, 2 * MIB, &p, 0));
        MUST(cu.MemMap(range + i * 2 * MIB, 2 * MIB, 0, m[i].handle, 0));
    }
    ANSWER(cu.MemSetAccess(range, 8 * MIB, &WRITES, 1));
    ANSWER(cu.MemsetD8(range, 1, 8 * MIB));
    ANSWER(cu.MemUnmap(range + MIB, MIB));
    ANSWER(cu.MemUnmap(range + 2 * MIB, 4 * MIB));
    ANSWER(cu.MemUnmap(range, 8 * MIB));
    ANSWER(cu.MemUnmap(range, 2 * MIB));
    ANSWER(cu.MemUnmap(range + 6 * MIB, 2 * MIB));
    mapping part = {.at = 0};
    MUST(cu.MemCreate(&part.handle, 4 * MIB, &p, 0));
    ANSWER(cu.MemMap(range, 2 * MIB, 0, part.handle, 0));
    ANSWER(cu.MemMap(range, 2 * MIB, 2 * MIB, part.handle, 0));
    ANSWER(cu.MemMap(range, 4 * MIB, 0, part.handle, 0));
    ANSWER(cu.MemUnmap(range, 2 * MIB));
}

static void ask_nothing(void)
{
    qi_cu_ptr pointer = 77;
    ANSWER(cu.MemAllocAsync(&pointer, 0, NULL));
    printf("its pointer: %llu\n", (unsigned long long)pointer);
    ANSWER(cu.MemFreeAsync(pointer, NULL));
}

/* ---- streams and errors ---------------------------------------------------------------------- */

typedef qi_cu_result (*get_resource)(qi_cu_device device, void *resource, int type);
typedef qi_cu_result (*generate)(qi_cu_resources *made, void *resources, unsigned count);

/* Streams of green contexts: whose events may be recorded in them, and which context they name */
static void ask_green(void)
{
    static _Alignas(16) char resource[1024];
    void *found[] = {cuda_direct_find("cuDeviceGetDevResource"),
                     cuda_direct_find("cuDevResourceGenerateDesc")};
    get_resource get;
    generate make;
    qi_cu_resources resources = NULL;
    qi_cu_green green = NULL;
    qi_cu_stream stream = NULL;
    qi_cu_context of = NULL, own = NULL;
    qi_cu_event event, inside;
    if (!found[0] || !found[1]) {
        puts("the driver has no green contexts");
        return;
    }
    memcpy(&get, &found[0], sizeof get);
    memcpy(&make, &found[1], sizeof make);
    ANSWER(get(0, resource, 1));
    ANSWER(make(&resources, resource, 1));
    ANSWER(cu.GreenCtxCreate(&green, resources, 0, 1));
    ANSWER(cu.GreenCtxStreamCreate(&stream, green, QI_CU_STREAM_NON_BLOCKING, 0));
    if (!stream)
        return;
    MUST(cu.CtxFromGreenCtx(&own, green));
    ANSWER(cu.StreamGetCtx(stream, &of));
    printf("the stream's context: %s\n", of == own                     ? "the green one"
                                         : of == cuda_direct_context() ? "the primary one"
                                                                       : "another");
    MUST(cu.EventCreate(&event, QI_CU_EVENT_DISABLE_TIMING));
    puts("an event of the primary context:");
    ANSWER(cu.EventRecord(event, stream));
    ANSWER(cu.EventQuery(event));
    ANSWER(cu.StreamWaitEvent(stream, event, 0));
    MUST(cu.CtxPushCurrent(own));
    puts("the same with the green context current:");
    ANSWER(cu.EventRecord(event, stream));
    MUST(cu.EventCreate(&inside, QI_CU_EVENT_DISABLE_TIMING));
    puts("an event of the green context:");
    ANSWER(cu.EventRecord(inside, stream));
    MUST(cu.CtxPopCurrent(NULL));
    puts("the same with the primary context current:");
    ANSWER(cu.EventRecord(inside, stream));
    ANSWER(cu.EventQuery(inside));
    ANSWER(cu.StreamWaitEvent(NULL, inside, 0));
    ANSWER(cu.StreamWaitEvent(stream, inside, 0));
    ANSWER(cu.EventRecord(inside, NULL));
}

static void ask_sticky(void)
{
    qi_cu_ptr block, range, new_block = 0;
    qi_cu_event event, recorded, made, unused;
    qi_cu_stream stream, fresh;
    qi_cu_handle handle = 0;
    size_t free, total;
    int value;
    void *pinned = NULL;
    const qi_cu_allocation_prop p = properties_of(&sets[0]);
    load_kernels();
    MUST(cu.MemAlloc(&block, MIB));
    MUST(cu.StreamCreate(&stream, QI_CU_STREAM_NON_BLOCKING));
    MUST(cu.EventCreate(&event, QI_CU_EVENT_DISABLE_TIMING));
    MUST(cu.EventCreate(&unused, QI_CU_EVENT_DISABLE_TIMING));
    MUST(cu.EventCreate(&recorded, QI_CU_EVENT_DISABLE_TIMING));
    MUST(cu.EventRecord(recorded, stream));
    MUST(cu.CtxSynchronize());
    MUST(cuda_kernel_store(&kernels, 16, NULL));
    ANSWER(cu.CtxSynchronize());
    ANSWER(cu.MemGetInfo(&free, &total));
    ANSWER(cu.DeviceGetAttribute(&value, 102, 0));
    ANSWER(cu.MemCreate(&handle, 2 * MIB, &p, 0));
    ANSWER(cu.MemAddressReserve(&range, 2 * MIB, 0, 0, 0));
    ANSWER(cu.MemMap(range, 2 * MIB, 0, handle, 0));
    ANSWER(cu.MemSetAccess(range, 2 * MIB, &WRITES, 1));
    ANSWER(cu.MemUnmap(range, 2 * MIB));
    ANSWER(cu.MemRelease(handle));
    ANSWER(cu.MemAddressFree(range, 2 * MIB));
    ANSWER(cu.MemAlloc(&new_block, MIB));
    ANSWER(cu.MemHostAlloc(&pinned, 4096, 0));
    ANSWER(cu.StreamQuery(NULL));
    ANSWER(cu.StreamQuery(stream));
    ANSWER(cu.StreamSynchronize(stream));
    ANSWER(cu.StreamCreate(&fresh, QI_CU_STREAM_NON_BLOCKING));
    ANSWER(cu.EventQuery(recorded));
    ANSWER(cu.EventQuery(unused));
    ANSWER(cu.EventRecord(event, stream));
    ANSWER(cu.EventCreate(&made, QI_CU_EVENT_DISABLE_TIMING));
    ANSWER(cu.EventDestroy(event));
    ANSWER(cu.MemFree(block));
    ANSWER(cu.StreamDestroy(stream));
    ANSWER(cu.CtxPushCurrent(cuda_direct_context()));
    ANSWER(cu.CtxPopCurrent(NULL));
    ANSWER(cu.DevicePrimaryCtxRelease(0));
}

/* The documents leave it undefined. */
static void ask_destroyed_stream(void)
{
    qi_cu_stream stream;
    qi_cu_event event;
    qi_cu_capture_status status;
    MUST(cu.StreamCreate(&stream, QI_CU_STREAM_NON_BLOCKING));
    MUST(cu.EventCreate(&event, QI_CU_EVENT_DISABLE_TIMING));
    MUST(cu.StreamDestroy(stream));
    ANSWER(cu.StreamIsCapturing(stream, &status));
    ANSWER(cu.EventRecord(event, stream));
    ANSWER(cu.StreamQuery(stream));
}

/* ---- the steps ------------------------------------------------------------------------------- */

/* Runs a step in a child, which alone calls the driver. Returns false if it ended early. */
static bool run_step(const char *name, void (*run)(void))
{
    int status = 0;
    printf("== %s\n", name);
    pid_t child = fork();
    if (child == 0) {
        alarm(STEP_SECONDS);
        cuda_direct_open(driver);
        run();
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        puts("# the step could not be started");
    else if (WIFSIGNALED(status))
        printf("# signal %d ended the step\n", WTERMSIG(status));
    else if (WEXITSTATUS(status))
        printf("# the step ended early, exit status %d\n", WEXITSTATUS(status));
    return child > 0 && !status;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    if (argc > 1)
        driver = argv[1];
    if (!run_step("driver", ask_driver))
        return 0;
    run_step("attributes", ask_attributes);
    for (int i = 0; i < SET_COUNT; i++) {
        set = &sets[i];
        run_step(set->name, ask_set);
    }
    run_step("what waits for a kernel", ask_what_waits);
    run_step("what returns early", ask_what_returns_early);
    run_step("several mappings in one call", ask_several_mappings);
    run_step("0 bytes of a pool", ask_nothing);
    run_step("streams of a green context", ask_green);
    run_step("an error that stays", ask_sticky);
    run_step("a destroyed stream", ask_destroyed_stream);
    return 0;
}
