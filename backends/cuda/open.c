/*
 * open.c - a device on its primary context, or on the caller's: the driver's library, which of its
 * devices, its context. What was made is kept in the state and ended with it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cuda/cuda.h"
#include "src/base/result.h"
#include "src/base/wanted.h"

static const char *const DEVICE_VARIABLE = "QUIRE_CUDA_DEVICE";

enum { OLDEST_DRIVER = 11020, MAX_LISTED = 512 };

/* ---- settings ----------------------------------------------------------------------------- */

static quire_result check_lists(const quire_cuda_settings *s)
{
    if (s->peer_count > QI_CUDA_MOST_PEERS)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "%u peers: %u at most", s->peer_count,
                            QI_CUDA_MOST_PEERS);
    if (s->peer_count && !s->peers)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "peers are counted and their list is null");
    for (uint32_t i = 0; i < s->peer_count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (s->peers[i] == s->peers[j])
                return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT, "peer %d is named twice",
                                    s->peers[i]);
    return QUIRE_SUCCESS;
}

quire_result qi_cuda_check_settings(const quire_cuda_settings *s)
{
    const uint32_t all = (UINT32_C(1) << QUIRE_CUDA_PAGE_KINDS) - 1;
    if (s->kinds & ~all)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "unknown page kinds %x", s->kinds & ~all);
    if (s->export_types & ~(QUIRE_CUDA_FD | QUIRE_CUDA_FABRIC))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "unknown handle types %x",
                            s->export_types);
    if (s->numa_nodes && s->kinds && !(s->kinds & QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_HOST_NUMA)))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "host nodes are named, and no pages of host NUMA are wanted");
    quire_result result = check_lists(s);
    return result ? result : qi_check_unused(s, "quire_cuda_settings");
}

static void take_settings(qi_cuda *cuda, const quire_cuda_settings *asked)
{
    cuda->settings = *asked;
    cuda->settings.peers = NULL; /* the caller's, until the end of the call */
    cuda->peer_count = asked->peer_count;
    for (uint32_t i = 0; i < asked->peer_count; i++)
        cuda->peers[i] = asked->peers[i];
    if (!cuda->settings.export_types)
        cuda->settings.export_types = QUIRE_CUDA_FD;
    cuda->log = asked->device.log;
}

/* ---- the driver --------------------------------------------------------------------------- */

static quire_result start_driver(qi_cuda *cuda, const char *library)
{
    quire_result result = qi_cuda_open_library(library, &cuda->library);
    if (!result)
        result = qi_cuda_load(&cuda->f, cuda->library);
    if (result)
        return result;
    qi_cu_result code = cuda->f.Init(0);
    if (code == QI_CUDA_ERROR_STUB_LIBRARY)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, code,
                                  "CUDA driver not found: the library is the Toolkit's stub");
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuInit");
    code = cuda->f.DriverGetVersion(&cuda->driver_version);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuDriverGetVersion");
    if (cuda->driver_version < OLDEST_DRIVER)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "the CUDA driver is of version %d.%d: 11.2 is the least",
                            cuda->driver_version / 1000, cuda->driver_version % 1000 / 10);
    return QUIRE_SUCCESS;
}

/* ---- which device ------------------------------------------------------------------------- */

/* The devices that there are, for the sentence of a refusal. */
typedef struct listing {
    char text[MAX_LISTED];
    size_t length;
} listing;

static void list(listing *l, int ordinal, const char *name)
{
    if (l->length >= sizeof l->text)
        return;
    int more = snprintf(l->text + l->length, sizeof l->text - l->length, "%s%d '%s'",
                        l->length ? ", " : "", ordinal, name);
    l->length += more > 0 ? (size_t)more : 0;
}

static quire_result look_at(qi_cuda *cuda, int ordinal, char *name, size_t size)
{
    qi_cu_result code = cuda->f.DeviceGet(&cuda->device, ordinal);
    if (!code)
        code = cuda->f.DeviceGetName(name, (int)size, cuda->device);
    return code ? qi_cuda_fail(&cuda->f, code, "asking for device %d", ordinal) : QUIRE_SUCCESS;
}

static quire_result select_device(qi_cuda *cuda, const char *asked)
{
    const char *wanted = asked ? asked : getenv(DEVICE_VARIABLE);
    listing there = {.text = "none"};
    int count = 0;
    qi_cu_result code = cuda->f.DeviceGetCount(&count);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuDeviceGetCount");
    for (int i = 0; i < count; i++) {
        char name[sizeof cuda->name] = "";
        quire_result result = look_at(cuda, i, name, sizeof name);
        if (result)
            return result;
        if (qi_is_wanted(wanted, (uint32_t)i, name))
            return QUIRE_SUCCESS;
        list(&there, i, name);
    }
    return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "no CUDA device fits '%s'; there is: %s",
                        wanted ? wanted : "", there.text);
}

/* ---- public calls ------------------------------------------------------------------------- */

static quire_result make_state(const quire_cuda_settings *settings, qi_cuda **out)
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
    take_settings(cuda, settings);
    *out = cuda;
    return QUIRE_SUCCESS;
}

void qi_cuda_end(qi_cuda *cuda)
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

quire_result quire_cuda_open(const quire_cuda_options *options, quire_device **device)
{
    if (device)
        *device = NULL;
    if (!device)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_cuda_open: device is null");
    const quire_cuda_options resolved = options ? *options : (quire_cuda_options){.device = NULL};
    qi_cuda *cuda = NULL;
    quire_result result = qi_check_unused(&resolved, "quire_cuda_options");
    if (!result)
        result = make_state(&resolved.settings, &cuda);
    if (result)
        return result;
    result = start_driver(cuda, resolved.library);
    if (!result)
        result = select_device(cuda, resolved.device);
    if (!result)
        result = retain_primary(cuda);
    if (!result)
        result = qi_cuda_make_device(cuda, &resolved.settings, device);
    if (result)
        qi_cuda_end(cuda);
    return result;
}

/* The device that a context is of. */
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

quire_result quire_cuda_wrap(const quire_cuda_wrap_options *options, quire_device **device)
{
    if (device)
        *device = NULL;
    if (!options || !device)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_cuda_wrap: options or device is null");
    if (!options->context)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_cuda_wrap: the context is null");
    qi_cuda *cuda = NULL;
    quire_result result = qi_check_unused(options, "quire_cuda_wrap_options");
    if (!result)
        result = make_state(&options->settings, &cuda);
    if (result)
        return result;
    result = start_driver(cuda, options->library);
    if (!result)
        result = find_device(cuda, options->context);
    if (!result)
        result = qi_cuda_make_device(cuda, &options->settings, device);
    if (result)
        qi_cuda_end(cuda);
    return result;
}
