/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * driver.c - each function is requested in the version that quire declares, so that a newer driver
 * returns no later form. Also translates error codes by a table, and makes the context current, in
 * the relaxed capture mode, around the calls of the backend.
 */
#include "backends/cuda/driver.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backends/cuda/cuda.h"
#include "src/base/result.h"

static const char *const LIBRARY = "libcuda.so.1";

/* Bytes of a function name with "cu", suffix and terminator. */
enum { MAX_NAME = 64 };

/* ---- the library -------------------------------------------------------------------------- */

quire_result qi_cuda_open_library(const char *path, void **library)
{
    const char *wanted = path && *path ? path : LIBRARY;
    *library = dlopen(wanted, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (*library)
        return QUIRE_SUCCESS;
    const char *reason = dlerror();
    return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "CUDA driver not found: %s",
                        reason ? reason : wanted);
}

void qi_cuda_close_library(void *library)
{
    if (library)
        dlclose(library);
}

/* ---- the functions ------------------------------------------------------------------------ */

/*
 * quire requests each function from cuGetProcAddress with the version that introduced the form
 * declared in abi_functions.h. A newer driver then returns that form and no later one. Drivers
 * before CUDA 11.3 have no cuGetProcAddress; there, and for functions that cuGetProcAddress does
 * not know, the symbols of the library are looked up.
 */

typedef enum presence { REQUIRED, OPTIONAL } presence;

/* One function of the table. */
typedef struct row {
    const char *name;   /* without the prefix "cu" */
    const char *suffix; /* of the symbol */
    int version;
    presence presence;
    size_t offset; /* in qi_cuda_functions */
} row;

static const row rows[] = {
#define ROW(name, suffix, version, presence, parameters)                                           \
    {#name, #suffix, version, presence, offsetof(qi_cuda_functions, name)},
    QI_CU_FUNCTIONS(ROW)
#undef ROW
};

/* cuGetProcAddress since 12.0, and before. */
typedef qi_cu_result (*finder)(const char *, void **, int, uint64_t, qi_cu_query_result *);
typedef qi_cu_result (*old_finder)(const char *, void **, int, uint64_t);

typedef struct source {
    void *library;
    finder find;
    old_finder find_old;
} source;

/* Function pointers have the size of object pointers on every system with dlsym. */
static void *symbol_of(void *library, const char *name, const char *suffix)
{
    char whole[MAX_NAME];
    snprintf(whole, sizeof whole, "cu%s%s", name, suffix);
    return dlsym(library, whole);
}

/* Returns NULL if the driver has no cuGetProcAddress, or if that does not know the function. */
static void *query(const source *s, const row *r)
{
    char whole[MAX_NAME];
    void *found = NULL;
    qi_cu_query_result why = 0;
    qi_cu_result code = QI_CUDA_SUCCESS;
    snprintf(whole, sizeof whole, "cu%s", r->name);
    if (s->find)
        code = s->find(whole, &found, r->version, QI_CU_GET_PROC_ADDRESS_LEGACY_STREAM, &why);
    else if (s->find_old)
        code = s->find_old(whole, &found, r->version, QI_CU_GET_PROC_ADDRESS_LEGACY_STREAM);
    return code ? NULL : found;
}

static void *find_function(const source *s, const row *r)
{
    void *found = query(s, r);
    return found ? found : symbol_of(s->library, r->name, r->suffix);
}

quire_result qi_cuda_load(qi_cuda_functions *functions, void *library)
{
    source s = {.library = library};
    void *finders[] = {symbol_of(library, "GetProcAddress", "_v2"),
                       symbol_of(library, "GetProcAddress", "")};
    memcpy(&s.find, &finders[0], sizeof s.find);
    memcpy(&s.find_old, &finders[1], sizeof s.find_old);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *found = find_function(&s, &rows[i]);
        if (!found && rows[i].presence == REQUIRED)
            return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "the CUDA driver has no cu%s",
                                rows[i].name);
        memcpy((char *)functions + rows[i].offset, &found, sizeof found);
    }
    return QUIRE_SUCCESS;
}

/* ---- error codes -------------------------------------------------------------------------- */

/* What a code becomes. The advice says what to do, for codes whose name does not. */
typedef struct meaning {
    qi_cu_result code;
    quire_result result;
    const char *advice; /* NULL: none */
} meaning;

#define NO_CUDA "CUDA no longer works in this process: end it and start it again"
#define NO_DEVICE "check nvidia-smi, CUDA_VISIBLE_DEVICES, and that the container has the GPU"
#define NO_MPS "check the log of the MPS control daemon"

/*
 * Grouped by result. After the codes of a lost device every call in the context returns the same
 * code until the process ends, except DEINITIALIZED, with which the driver has shut down, as at the
 * end of a process, and CONTEXT_IS_DESTROYED.
 */
static const meaning MEANINGS[] = {
    {QI_CUDA_ERROR_DEINITIALIZED, QUIRE_ERROR_DEVICE_LOST, NULL},
    {QI_CUDA_ERROR_CONTEXT_IS_DESTROYED, QUIRE_ERROR_DEVICE_LOST, NULL},
    {QI_CUDA_ERROR_ECC_UNCORRECTABLE, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_NVLINK_UNCORRECTABLE, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_CONTAINED, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_ILLEGAL_ADDRESS, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_LAUNCH_TIMEOUT, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_ASSERT, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_HARDWARE_STACK_ERROR, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_ILLEGAL_INSTRUCTION, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_MISALIGNED_ADDRESS, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_INVALID_ADDRESS_SPACE, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_INVALID_PC, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_LAUNCH_FAILED, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_TENSOR_MEMORY_LEAK, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_MPS_CLIENT_TERMINATED, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_EXTERNAL_DEVICE, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},

    {QI_CUDA_ERROR_INVALID_VALUE, QUIRE_ERROR_INVALID_ARGUMENT, NULL},
    {QI_CUDA_ERROR_INVALID_HANDLE, QUIRE_ERROR_INVALID_ARGUMENT, NULL},
    {QI_CUDA_ERROR_OUT_OF_MEMORY, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, NULL},

    {QI_CUDA_ERROR_STUB_LIBRARY, QUIRE_ERROR_UNSUPPORTED,
     "CUDA driver not found: the library is the Toolkit's stub"},
    {QI_CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, QUIRE_ERROR_UNSUPPORTED, "install a newer driver"},
    {QI_CUDA_ERROR_NO_DEVICE, QUIRE_ERROR_UNSUPPORTED, NO_DEVICE},
    {QI_CUDA_ERROR_INVALID_DEVICE, QUIRE_ERROR_UNSUPPORTED, NO_DEVICE},
    {QI_CUDA_ERROR_DEVICE_NOT_LICENSED, QUIRE_ERROR_UNSUPPORTED,
     "the virtual GPU has no licence: check the service nvidia-gridd"},
    {QI_CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, QUIRE_ERROR_UNSUPPORTED, NULL},
    {QI_CUDA_ERROR_NOT_SUPPORTED, QUIRE_ERROR_UNSUPPORTED, NULL},
    {QI_CUDA_ERROR_SYSTEM_NOT_READY, QUIRE_ERROR_UNSUPPORTED,
     "start the daemons that the machine needs, such as nvidia-fabricmanager for NVSwitch"},
    {QI_CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, QUIRE_ERROR_UNSUPPORTED,
     "libcuda.so.1 and the kernel module have different versions: restart the machine after an "
     "update of the driver"},
    {QI_CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, QUIRE_ERROR_UNSUPPORTED,
     "remove the libraries of cuda-compat from the search path: they do not support this GPU"},

    {QI_CUDA_ERROR_NOT_INITIALIZED, QUIRE_ERROR_NOT_PERMITTED,
     "a child of a fork cannot use CUDA if its parent had used it: start it with exec"},
    {QI_CUDA_ERROR_DEVICE_UNAVAILABLE, QUIRE_ERROR_NOT_PERMITTED,
     "the compute mode forbids the device, or reserves it for another process: nvidia-smi -q -d "
     "COMPUTE shows it"},
    {QI_CUDA_ERROR_NOT_PERMITTED, QUIRE_ERROR_NOT_PERMITTED, NULL},
    {QI_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, QUIRE_ERROR_NOT_PERMITTED, NULL},
    {QI_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, QUIRE_ERROR_NOT_PERMITTED, NULL},
    {QI_CUDA_ERROR_STREAM_CAPTURE_ISOLATION, QUIRE_ERROR_NOT_PERMITTED, NULL},
    {QI_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, QUIRE_ERROR_NOT_PERMITTED, NULL},
    {QI_CUDA_ERROR_CAPTURED_EVENT, QUIRE_ERROR_NOT_PERMITTED, NULL},

    {QI_CUDA_ERROR_NOT_READY, QUIRE_ERROR_BACKEND_FAILURE,
     "other threads kept the driver busy for about a second: try again"},

    {QI_CUDA_ERROR_MPS_CONNECTION_FAILED, QUIRE_ERROR_BACKEND_FAILURE, NO_MPS},
    {QI_CUDA_ERROR_MPS_RPC_FAILURE, QUIRE_ERROR_BACKEND_FAILURE, NO_MPS},
    {QI_CUDA_ERROR_MPS_SERVER_NOT_READY, QUIRE_ERROR_BACKEND_FAILURE, NO_MPS},
    {QI_CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, QUIRE_ERROR_BACKEND_FAILURE, NO_MPS},
    {QI_CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, QUIRE_ERROR_BACKEND_FAILURE, NO_MPS},
    {QI_CUDA_ERROR_UNKNOWN, QUIRE_ERROR_BACKEND_FAILURE,
     "the driver gives no reason: nvidia-smi and the log of the kernel (dmesg) may"},
};

/* Codes that the table lacks, newer ones included, are BACKEND_FAILURE. */
static const meaning *find_meaning(qi_cu_result code)
{
    static const meaning other = {.result = QUIRE_ERROR_BACKEND_FAILURE};
    for (size_t i = 0; i < sizeof MEANINGS / sizeof *MEANINGS; i++)
        if (MEANINGS[i].code == code)
            return &MEANINGS[i];
    return &other;
}

quire_result qi_cuda_result(qi_cu_result code)
{
    return find_meaning(code)->result;
}

bool qi_cuda_is_lost(qi_cu_result code)
{
    return find_meaning(code)->result == QUIRE_ERROR_DEVICE_LOST;
}

/* The driver may not know the code, or may lack cuGetErrorName: the name is then "unknown". */
quire_result qi_cuda_fail(const qi_cuda_functions *f, qi_cu_result code, const char *format, ...)
{
    char what[256];
    const char *name = NULL;
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (!f->GetErrorName || f->GetErrorName(code, &name) || !name)
        name = "unknown";
    const meaning *found = find_meaning(code);
    return quire_backend_fail(found->result, code, "%s: %s (CUresult %u)%s%s", what, name, code,
                              found->advice ? ": " : "", found->advice ? found->advice : "");
}

/* ---- forks -------------------------------------------------------------------------------- */

bool qi_cuda_has_forked(const qi_cuda *cuda)
{
    return cuda->has_forked;
}

quire_result qi_cuda_check_process(const qi_cuda *cuda)
{
    if (!qi_cuda_has_forked(cuda))
        return QUIRE_SUCCESS;
    return quire_backend_fail(
        QUIRE_ERROR_NOT_PERMITTED, 0,
        "the device was opened before a fork: CUDA does not work in the child");
}

/* The fork holds the mutex, so that the child finds the lists of the state consistent. */
void qi_cuda_fork_prepare(void *state)
{
    qi_cuda *cuda = state;
    pthread_mutex_lock(&cuda->mutex);
}

void qi_cuda_fork_done(void *state)
{
    qi_cuda *cuda = state;
    pthread_mutex_unlock(&cuda->mutex);
}

/* CUDA does not work in a forked child: from now on no call of the driver is made here. */
void qi_cuda_fork_child(void *state, const uint64_t heap_bytes[QUIRE_MAX_HEAPS])
{
    qi_cuda *cuda = state;
    (void)heap_bytes;
    cuda->has_forked = true;
}

/* ---- the context -------------------------------------------------------------------------- */

/*
 * Each thread has a stack of contexts. Pushing and popping restores the context that was current
 * before a call, also if there was none.
 *
 * While a stream captures a graph, the driver refuses calls that a graph could not contain, such as
 * cuMemAlloc or cuEventQuery, and invalidates the graph. Nothing that quire does belongs into a
 * caller's graph, so every call of quire runs in the relaxed capture mode, which permits them.
 */

/* How often the calling thread has entered contexts and not left them, and its capture mode before
   the first time. */
static _Thread_local struct {
    uint32_t depth;
    bool is_changed; /* false: the driver lacks modes */
    qi_cu_capture_mode mode;
} thread;

qi_cu_result qi_cuda_push(const qi_cuda *cuda)
{
    qi_cu_result code = cuda->f.CtxPushCurrent(cuda->context);
    if (code || thread.depth++ || !cuda->f.ThreadExchangeStreamCaptureMode)
        return code;
    thread.mode = QI_CU_STREAM_CAPTURE_MODE_RELAXED;
    thread.is_changed = !cuda->f.ThreadExchangeStreamCaptureMode(&thread.mode);
    return QI_CUDA_SUCCESS;
}

quire_result qi_cuda_enter(const qi_cuda *cuda)
{
    quire_result result = qi_cuda_check_process(cuda);
    if (result)
        return result;
    qi_cu_result code = qi_cuda_push(cuda);
    return code ? qi_cuda_fail(&cuda->f, code, "cuCtxPushCurrent") : QUIRE_SUCCESS;
}

void qi_cuda_leave(const qi_cuda *cuda)
{
    qi_cu_context popped = NULL;
    if (!--thread.depth && thread.is_changed) {
        cuda->f.ThreadExchangeStreamCaptureMode(&thread.mode);
        thread.is_changed = false;
    }
    cuda->f.CtxPopCurrent(&popped); /* fails only if the driver has shut down */
}

/* ---- captures ----------------------------------------------------------------------------- */

/* The legacy default stream answers IMPLICIT while a stream that waits for it captures. */
bool qi_cuda_is_capturing(const qi_cuda *cuda, qi_cu_stream stream)
{
    qi_cu_capture_status status = QI_CU_STREAM_CAPTURE_STATUS_NONE;
    if (!cuda->f.StreamIsCapturing)
        return false;
    qi_cu_result code = cuda->f.StreamIsCapturing(stream, &status);
    return code ? code == QI_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
                : status != QI_CU_STREAM_CAPTURE_STATUS_NONE;
}

quire_result qi_cuda_enter_default(const qi_cuda *cuda)
{
    quire_result result = qi_cuda_enter(cuda);
    if (result || !qi_cuda_is_capturing(cuda, NULL))
        return result;
    qi_cuda_leave(cuda);
    return quire_backend_fail(
        QUIRE_ERROR_NOT_PERMITTED, QI_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
        "a stream that waits for the default stream captures a graph, so the default stream "
        "cannot be used now: copy and fill on a stream of quire's own, or after the capture");
}

/* ---- a driver that is not ready ----------------------------------------------------------- */

/* The pauses double from the first to the longest: about a second in all. */
enum { FIRST_PAUSE_NS = 50000, MAX_DOUBLINGS = 9, MAX_PAUSES = 47 };

bool qi_cuda_pause(uint32_t *pauses, pthread_mutex_t *held)
{
    if (*pauses == MAX_PAUSES)
        return false;
    uint32_t doublings = *pauses < MAX_DOUBLINGS ? *pauses : MAX_DOUBLINGS;
    const struct timespec time = {.tv_nsec = (long)FIRST_PAUSE_NS << doublings};
    ++*pauses;
    if (held)
        pthread_mutex_unlock(held);
    nanosleep(&time, NULL);
    if (held)
        pthread_mutex_lock(held);
    return true;
}

bool qi_cuda_retry_access(qi_cu_result code, uint32_t *pauses, pthread_mutex_t *held)
{
    return code == QI_CUDA_ERROR_NOT_READY && qi_cuda_pause(pauses, held);
}
