/*
 * multicast.c - creating, describing and destroying multicast objects.
 */
#include "backends/cuda/multicast.h"

#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- the record ------------------------------------------------------------------------- */

static quire_result check_team(const qi_cuda_multicast_team *t)
{
    if (!t->size)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "a multicast object of size 0");
    if (t->device_count && !t->devices)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "a multicast object: device_count is set and devices is null");
    if (t->device_count > t->team_size)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "%u device%s in a team of %u",
                            t->device_count, t->team_size);
    for (uint32_t i = 0; i < t->device_count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (t->devices[i] == t->devices[j])
                return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT, "device %d is named twice",
                                    t->devices[i]);
    return QUIRE_SUCCESS;
}

static void release_record(quire_cuda_multicast *m)
{
    qi_cuda *cuda = m->cuda;
    while (m->bindings) {
        qi_cuda_binding *gone = m->bindings;
        m->bindings = gone->next;
        qi_host_release(&cuda->host, gone, 1, sizeof *gone);
    }
    if (m->devices)
        qi_host_release(&cuda->host, m->devices, m->device_count, sizeof *m->devices);
    pthread_mutex_destroy(&m->mutex);
    qi_host_release(&cuda->host, m, 1, sizeof *m);
}

static quire_result create_record(qi_cuda *cuda, const qi_cuda_multicast_team *team,
                                  quire_cuda_multicast **out)
{
    quire_cuda_multicast *m = qi_host_allocate(&cuda->host, 1, sizeof *m);
    if (!m)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a multicast object");
    m->cuda = cuda;
    m->size = team->size;
    m->team_size = team->team_size;
    m->device_count = team->device_count;
    pthread_mutex_init(&m->mutex, NULL);
    if (m->device_count)
        m->devices = qi_host_allocate(&cuda->host, m->device_count, sizeof *m->devices);
    if (m->device_count && !m->devices) {
        release_record(m);
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a multicast object");
    }
    for (uint32_t i = 0; i < m->device_count; i++)
        m->devices[i].ordinal = team->devices[i];
    *out = m;
    return QUIRE_SUCCESS;
}

static quire_result add_devices(const quire_cuda_multicast *m)
{
    for (uint32_t i = 0; i < m->device_count; i++) {
        qi_cu_result code = m->cuda->f.MulticastAddDevice(m->handle, m->devices[i].ordinal);
        if (code)
            return qi_cuda_fail(&m->cuda->f, code, "cuMulticastAddDevice of device %d",
                                m->devices[i].ordinal);
    }
    return QUIRE_SUCCESS;
}

static quire_result make_in_context(quire_cuda_multicast *m, qi_cuda_multicast_maker make,
                                    const void *options)
{
    quire_result result = qi_cuda_enter(m->cuda);
    if (result)
        return result;
    result = make(m, options);
    if (!result)
        result = add_devices(m);
    if (result && m->handle)
        m->cuda->f.MemRelease(m->handle);
    qi_cuda_leave(m->cuda);
    return result;
}

quire_result qi_cuda_multicast_make(quire_device *device, const qi_cuda_multicast_team *team,
                                    qi_cuda_multicast_maker make, const void *options,
                                    quire_cuda_multicast **out)
{
    quire_cuda_multicast *m = NULL;
    qi_cuda *cuda = qi_cuda_of(device);
    if (!cuda)
        return quire_last_result();
    quire_result result = check_team(team);
    if (!result && !cuda->capabilities.multicast)
        result = qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "'%s' has no multicast", cuda->name);
    if (!result)
        result = create_record(cuda, team, &m);
    if (result)
        return result;
    result = make_in_context(m, make, options);
    if (result)
        release_record(m);
    else
        *out = m;
    return result;
}

/* ---- creation --------------------------------------------------------------------------- */

qi_cu_result qi_cuda_multicast_query(quire_cuda_multicast *m, quire_cuda_handle_types types)
{
    const qi_cuda *cuda = m->cuda;
    const qi_cu_multicast_prop prop = {
        .numDevices = m->team_size, .size = m->size, .handleTypes = types};
    size_t least = 0, recommended = 0;
    qi_cu_result code =
        cuda->f.MulticastGetGranularity(&least, &prop, QI_CU_MULTICAST_GRANULARITY_MINIMUM);
    if (!code)
        code = cuda->f.MulticastGetGranularity(&recommended, &prop,
                                               QI_CU_MULTICAST_GRANULARITY_RECOMMENDED);
    m->granularity = least;
    m->recommended = recommended;
    return code;
}

static quire_result check_granularity(const quire_cuda_multicast *m)
{
    return qi_is_power_of_two(m->granularity) && qi_is_power_of_two(m->recommended)
               ? QUIRE_SUCCESS
               : quire_backend_fail(QUIRE_ERROR_BACKEND_FAILURE, 0,
                                    "the multicast granularity is %llu bytes, or %llu",
                                    (unsigned long long)m->granularity,
                                    (unsigned long long)m->recommended);
}

static quire_result create_object(quire_cuda_multicast *m, quire_cuda_handle_types types,
                                  qi_cu_result *code)
{
    const qi_cuda *cuda = m->cuda;
    uint64_t size = 0;
    *code = qi_cuda_multicast_query(m, types);
    if (*code)
        return qi_cuda_fail(&cuda->f, *code, "cuMulticastGetGranularity");
    quire_result result = check_granularity(m);
    if (result)
        return result;
    uint64_t unit = cuda->settings.recommended_granularity ? m->recommended : m->granularity;
    if (qi_align_up_overflows(m->size, unit, &size))
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, 0,
                                  "a multicast object of %llu bytes", (unsigned long long)m->size);
    const qi_cu_multicast_prop prop = {
        .numDevices = m->team_size, .size = size, .handleTypes = types};
    *code = cuda->f.MulticastCreate(&m->handle, &prop);
    if (*code) {
        m->handle = 0;
        return qi_cuda_fail(&cuda->f, *code, "cuMulticastCreate of %s", qi_bytes(size).text);
    }
    m->size = size;
    m->types = types;
    return QUIRE_SUCCESS;
}

/* A fabric handle that the driver refuses is left out if a descriptor may replace it. */
static quire_result create(quire_cuda_multicast *m, const void *options)
{
    quire_cuda_handle_types types = ((const quire_cuda_multicast_options *)options)->handle_types;
    qi_cu_result code = QI_CUDA_SUCCESS;
    if (types & QUIRE_CUDA_FABRIC && !m->cuda->capabilities.fabric) {
        if (types == QUIRE_CUDA_FABRIC)
            return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "'%s' has no fabric handles",
                                m->cuda->name);
        types = QUIRE_CUDA_FD;
    }
    qi_error before;
    qi_error_save(&before);
    quire_result result = create_object(m, types, &code);
    bool is_refused = code == QI_CUDA_ERROR_NOT_PERMITTED || code == QI_CUDA_ERROR_NOT_SUPPORTED;
    if (!is_refused || types != (QUIRE_CUDA_FD | QUIRE_CUDA_FABRIC))
        return result;
    m->fabric_code = code;
    qi_error_restore(&before);
    return create_object(m, QUIRE_CUDA_FD, &code);
}

quire_result quire_cuda_multicast_create(quire_device *device,
                                         const quire_cuda_multicast_options *o,
                                         quire_cuda_multicast **multicast)
{
    if (multicast)
        *multicast = NULL;
    if (!o || !multicast)
        return qi_fail_null("quire_cuda_multicast_create", !o ? "options" : "multicast");
    const qi_cuda_multicast_team team = {.size = o->size,
                                         .devices = o->devices,
                                         .device_count = o->device_count,
                                         .team_size =
                                             o->team_size ? o->team_size : o->device_count};
    quire_result result = qi_check_unused(o, "quire_cuda_multicast_options");
    if (!result && o->handle_types & ~(QUIRE_CUDA_FD | QUIRE_CUDA_FABRIC))
        result =
            qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "unknown handle types %x", o->handle_types);
    if (!result && !o->device_count && !o->team_size)
        result = qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "a multicast object without devices");
    return result ? result : qi_cuda_multicast_make(device, &team, create, o, multicast);
}

/* ---- description ------------------------------------------------------------------------ */

quire_result quire_cuda_multicast_get_info(const quire_cuda_multicast *m,
                                           quire_cuda_multicast_info *info)
{
    if (info)
        *info = (quire_cuda_multicast_info){.handle = 0};
    if (!m || !info)
        return qi_fail_null("quire_cuda_multicast_get_info", !m ? "multicast" : "info");
    quire_result result = qi_cuda_check_process(m->cuda);
    if (result)
        return result;
    *info = (quire_cuda_multicast_info){
        .handle = m->handle,
        .size = m->size,
        .granularity = m->granularity,
        .recommended = m->recommended,
        .team_size = m->team_size,
        .export_types = m->types,
        .fabric_code = (int32_t)m->fabric_code,
        .is_imported = m->is_imported,
    };
    return QUIRE_SUCCESS;
}

/* ---- destruction ------------------------------------------------------------------------ */

/* In the context. */
static bool destroy_object(quire_cuda_multicast *m)
{
    for (uint32_t i = 0; i < m->device_count; i++)
        if (!qi_cuda_multicast_unmap(m, &m->devices[i]))
            return false;
    if (!qi_cuda_multicast_unbind_all(m))
        return false;
    qi_cu_result code = m->cuda->f.MemRelease(m->handle);
    return !code || qi_cuda_is_lost(code);
}

/* A forked child releases the record only. A lost device counts as destroyed. */
quire_result quire_cuda_multicast_destroy(quire_cuda_multicast **multicast)
{
    if (!multicast)
        return qi_fail_null("quire_cuda_multicast_destroy", "multicast");
    quire_cuda_multicast *m = *multicast;
    if (!m)
        return QUIRE_SUCCESS;
    const qi_cuda *cuda = m->cuda;
    if (!qi_cuda_has_forked(cuda)) { /* the parent still uses the handle */
        quire_result result = qi_cuda_enter(cuda);
        if (result && result != QUIRE_ERROR_DEVICE_LOST)
            return result;
        bool is_done = destroy_object(m) || result;
        if (!result)
            qi_cuda_leave(cuda);
        if (!is_done)
            return quire_backend_fail(QUIRE_ERROR_BACKEND_FAILURE, 0,
                                      "the driver refused to release the multicast object: it "
                                      "remains, and can be destroyed later");
    }
    *multicast = NULL;
    release_record(m);
    return QUIRE_SUCCESS;
}
