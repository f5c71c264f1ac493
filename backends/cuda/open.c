/*
 * open.c - creates the state of a device on its primary context or on the caller's context: loads
 * the driver, selects the device, finds the context.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cuda.h"
#include "src/base/result.h"
#include "src/base/text.h"

static const char *const DEVICE_VARIABLE = "QUIRE_CUDA_DEVICE";

/* 11.2: the first driver with everything that the backend requires. */
enum { MIN_DRIVER = 11020, MAX_LISTED = 512 };

/* ---- settings --------------------------------------------------------------------------- */

/* What the settings point to is valid until the call returns only, and is copied. */
static void copy_settings(qi_cuda *cuda, const quire_cuda_settings *requested)
{
    cuda->settings = *requested;
    cuda->settings.peers = NULL;
    cuda->settings.pool = NULL;
    if (requested->pool)
        cuda->pool.options = *requested->pool;
    cuda->peer_count = requested->peer_count;
    for (uint32_t i = 0; i < requested->peer_count; i++)
        cuda->peers[i] = requested->peers[i];
    if (!cuda->settings.export_types)
        cuda->settings.export_types = QUIRE_CUDA_FD;
    cuda->log = requested->device.log;
}

/* ---- the driver ------------------------------------------------------------------------- */

static quire_result start_driver(qi_cuda *cuda, const char *library)
{
    quire_result result = qi_cuda_read_variables(cuda);
    if (!result)
        result = qi_cuda_open_library(library, &cuda->library);
    if (!result)
        result = qi_cuda_load(&cuda->f, cuda->library);
    if (result)
        return result;
    qi_cu_result code = cuda->f.Init(0);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuInit");
    code = cuda->f.DriverGetVersion(&cuda->driver_version);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuDriverGetVersion");
    if (cuda->driver_version < MIN_DRIVER)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "the CUDA driver has version %d.%d: 11.2 is the minimum",
                            cuda->driver_version / 1000, cuda->driver_version % 1000 / 10);
    return QUIRE_SUCCESS;
}

/* ---- which device ----------------------------------------------------------------------- */

/* The devices of the machine, for the message of a refusal. */
typedef struct listing {
    char text[MAX_LISTED];
    size_t length;
} listing;

/* The text is cut off where the buffer is full. */
static void list(listing *l, int ordinal, const char *name)
{
    if (l->length >= sizeof l->text)
        return;
    int more = snprintf(l->text + l->length, sizeof l->text - l->length, "%s%d '%s'",
                        l->length ? ", " : "", ordinal, name);
    l->length += more > 0 ? (size_t)more : 0;
}

/* Sets cuda->device. */
static quire_result query_device_name(qi_cuda *cuda, int ordinal, char *name, size_t size)
{
    qi_cu_result code = cuda->f.DeviceGet(&cuda->device, ordinal);
    if (!code)
        code = cuda->f.DeviceGetName(name, (int)size, cuda->device);
    return code ? qi_cuda_fail(&cuda->f, code, "querying device %d", ordinal) : QUIRE_SUCCESS;
}

/* Selects the first device that matches the options, or the environment variable, or any. */
static quire_result select_device(qi_cuda *cuda, const char *requested)
{
    const char *wanted = requested ? requested : getenv(DEVICE_VARIABLE);
    listing there = {.text = "none"};
    int count = 0;
    qi_cu_result code = cuda->f.DeviceGetCount(&count);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuDeviceGetCount");
    for (int i = 0; i < count; i++) {
        char name[sizeof cuda->name] = "";
        quire_result result = query_device_name(cuda, i, name, sizeof name);
        if (result)
            return result;
        if (qi_is_wanted(wanted, (uint32_t)i, name))
            return QUIRE_SUCCESS;
        list(&there, i, name);
    }
    return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "no CUDA device matches '%s'; available: %s",
                        wanted ? wanted : "", there.text);
}

/* ---- the state -------------------------------------------------------------------------- */

/* Validates the settings before it allocates. On failure nothing is left. */
static quire_result create_state(const quire_cuda_settings *settings, qi_cuda **out)
{
    qi_host host;
    quire_result result = qi_cuda_check_settings(settings);
    if (!result)
        result = qi_host_init(&host, settings->device.host_memory);
    if (result)
        return result;
    qi_cuda *cuda = qi_host_allocate(&host, 1, sizeof *cuda);
    if (!cuda)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a CUDA device");
    cuda->host = host;
    if (pthread_mutex_init(&cuda->mutex, NULL)) {
        qi_host_release(&host, cuda, 1, sizeof *cuda);
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no mutex for a CUDA device");
    }
    copy_settings(cuda, settings);
    *out = cuda;
    return QUIRE_SUCCESS;
}

void qi_cuda_release_state(qi_cuda *cuda)
{
    if (cuda->is_primary && !qi_cuda_has_forked(cuda))
        cuda->f.DevicePrimaryCtxRelease(cuda->device);
    qi_cuda_close_library(cuda->library);
    pthread_mutex_destroy(&cuda->mutex);
    qi_host host = cuda->host;
    qi_host_release(&host, cuda, 1, sizeof *cuda);
}

static quire_result retain_primary(qi_cuda *cuda)
{
    qi_cu_result code = cuda->f.DevicePrimaryCtxRetain(&cuda->context, cuda->device);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuDevicePrimaryCtxRetain of device %d", cuda->device);
    cuda->is_primary = true;
    return QUIRE_SUCCESS;
}

/* Finds the device of the caller's context. Fails if the context cannot be made current. */
static quire_result find_device(qi_cuda *cuda, void *context)
{
    cuda->context = context;
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    qi_cu_result code = cuda->f.CtxGetDevice(&cuda->device);
    qi_cuda_leave(cuda);
    return code ? qi_cuda_fail(&cuda->f, code, "cuCtxGetDevice") : QUIRE_SUCCESS;
}

/* ---- both ways -------------------------------------------------------------------------- */

quire_result qi_cuda_open_primary(const quire_cuda_options *options, qi_cuda **out)
{
    qi_cuda *cuda = NULL;
    quire_result result = create_state(&options->settings, &cuda);
    if (result)
        return result;
    result = start_driver(cuda, options->library);
    if (!result)
        result = select_device(cuda, options->device);
    if (!result)
        result = retain_primary(cuda);
    if (result)
        qi_cuda_release_state(cuda);
    else
        *out = cuda;
    return result;
}

quire_result qi_cuda_open_context(const quire_cuda_wrap_options *options, qi_cuda **out)
{
    qi_cuda *cuda = NULL;
    quire_result result = create_state(&options->settings, &cuda);
    if (result)
        return result;
    result = start_driver(cuda, options->library);
    if (!result)
        result = find_device(cuda, options->context);
    if (result)
        qi_cuda_release_state(cuda);
    else
        *out = cuda;
    return result;
}
