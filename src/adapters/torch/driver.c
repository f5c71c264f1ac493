/*
 * driver.c - two questions to the driver that quire does not ask for its callers. quire has opened
 * the library before.
 */
#include <dlfcn.h>
#include <string.h>

#include "src/adapters/torch/state.h"

typedef int driver_result;                                  /* CUresult; 0 is success */
enum { CAPTURE_STATUS_NONE = 0, CAPTURE_MODE_RELAXED = 2 }; /* as in cuda.h */

static struct driver {
    driver_result (*push)(void *context);
    driver_result (*pop)(void **context);
    driver_result (*wait)(void);
    driver_result (*exchange)(int *mode);
    driver_result (*is_capturing)(void *stream, int *status);
    bool is_complete;
} driver;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found;
}

static void load(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    driver.is_complete = library && find(library, "cuCtxPushCurrent_v2", &driver.push) &&
                         find(library, "cuCtxPopCurrent_v2", &driver.pop) &&
                         find(library, "cuCtxSynchronize", &driver.wait) &&
                         find(library, "cuThreadExchangeStreamCaptureMode", &driver.exchange) &&
                         find(library, "cuStreamIsCapturing", &driver.is_capturing);
}

static bool enter(void *context)
{
    pthread_once(&once, load);
    return driver.is_complete && !driver.push(context);
}

static void leave(void)
{
    void *popped = NULL;
    driver.pop(&popped);
}

/* The relaxed mode: a capture of another device does not forbid the call. */
bool torch_driver_wait(void *context)
{
    int mode = CAPTURE_MODE_RELAXED;
    if (!enter(context))
        return false;
    bool is_relaxed = !driver.exchange(&mode);
    driver_result result = driver.wait();
    if (is_relaxed)
        driver.exchange(&mode);
    leave();
    return !result;
}

bool torch_driver_captures(void *context, void *stream)
{
    int status = CAPTURE_STATUS_NONE;
    if (!enter(context))
        return true;
    driver_result result = driver.is_capturing(stream, &status);
    leave();
    return result || status != CAPTURE_STATUS_NONE;
}
