/*
 * multicast_share.c - multicast objects of several processes: export and import.
 */
#include <string.h>

#include "backends/cuda/multicast.h"
#include "src/base/result.h"

/* ---- export ----------------------------------------------------------------------------- */

static quire_result export_handle(const quire_cuda_multicast *m, quire_cuda_handle_types type,
                                  void *shared)
{
    const qi_cuda *cuda = m->cuda;
    if (!(m->types & type) && m->fabric_code && type == QUIRE_CUDA_FABRIC)
        return qi_cuda_fail(&cuda->f, m->fabric_code,
                            "the driver refused the fabric handle of the multicast object");
    if (!(m->types & type))
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                            "the multicast object cannot be exported as handle type %u: it was "
                            "created for types %x",
                            type, m->types);
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    qi_cu_result code = cuda->f.MemExportToShareableHandle
                            ? cuda->f.MemExportToShareableHandle(shared, m->handle, type, 0)
                            : QI_CUDA_ERROR_NOT_SUPPORTED;
    qi_cuda_leave(cuda);
    return code ? qi_cuda_fail(&cuda->f, code, "cuMemExportToShareableHandle of a multicast object")
                : QUIRE_SUCCESS;
}

quire_result quire_cuda_multicast_export_fd(const quire_cuda_multicast *m, int *descriptor)
{
    if (descriptor)
        *descriptor = -1;
    if (!m || !descriptor)
        return qi_fail_null("quire_cuda_multicast_export_fd", !m ? "multicast" : "descriptor");
    quire_result result = export_handle(m, QUIRE_CUDA_FD, descriptor);
    if (result)
        *descriptor = -1;
    return result;
}

quire_result quire_cuda_multicast_export_fabric(const quire_cuda_multicast *m, void *fabric)
{
    qi_cu_fabric_handle handle = {.data = {0}};
    if (fabric)
        memset(fabric, 0, QUIRE_CUDA_FABRIC_SIZE);
    if (!m || !fabric)
        return qi_fail_null("quire_cuda_multicast_export_fabric", !m ? "multicast" : "fabric");
    quire_result result = export_handle(m, QUIRE_CUDA_FABRIC, &handle);
    if (!result)
        memcpy(fabric, handle.data, QUIRE_CUDA_FABRIC_SIZE);
    return result;
}

/* ---- import ----------------------------------------------------------------------------- */

static quire_result check_import(const quire_cuda_multicast_import_options *o)
{
    if (o->type != QUIRE_CUDA_IMPORT_FD && o->type != QUIRE_CUDA_IMPORT_FABRIC)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "import type %u cannot make a multicast object", (uint64_t)o->type);
    if (o->type == QUIRE_CUDA_IMPORT_FD ? o->descriptor < 0 : !o->fabric)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "an import of a negative descriptor or a null fabric handle");
    if (!o->team_size)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "an import of a team of no devices");
    return qi_check_unused(o, "quire_cuda_multicast_import_options");
}

static qi_cu_result import_handle(quire_cuda_multicast *m,
                                  const quire_cuda_multicast_import_options *o)
{
    const qi_cuda_functions *f = &m->cuda->f;
    qi_cu_fabric_handle fabric;
    qi_cu_result code = QI_CUDA_ERROR_NOT_SUPPORTED;
    if (f->MemImportFromShareableHandle && o->type == QUIRE_CUDA_IMPORT_FD)
        code = f->MemImportFromShareableHandle(&m->handle, (void *)(intptr_t)o->descriptor,
                                               QI_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    else if (f->MemImportFromShareableHandle) {
        memcpy(fabric.data, o->fabric, sizeof fabric.data);
        code = f->MemImportFromShareableHandle(&m->handle, &fabric, QI_CU_MEM_HANDLE_TYPE_FABRIC);
    }
    if (code)
        m->handle = 0;
    return code;
}

/* In the context. */
static quire_result import_object(quire_cuda_multicast *m, const void *options)
{
    const quire_cuda_multicast_import_options *o = options;
    const qi_cuda *cuda = m->cuda;
    qi_cu_result code = qi_cuda_multicast_query(
        m, o->type == QUIRE_CUDA_IMPORT_FD ? QUIRE_CUDA_FD : QUIRE_CUDA_FABRIC);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuMulticastGetGranularity");
    if (!m->granularity || m->size % m->granularity)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "a multicast object of %u byte%s: its granularity is %u", m->size,
                            m->granularity);
    code = import_handle(m, o);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuMemImportFromShareableHandle of a multicast object");
    m->is_imported = true;
    return QUIRE_SUCCESS;
}

quire_result quire_cuda_multicast_import(quire_device *device,
                                         const quire_cuda_multicast_import_options *o,
                                         quire_cuda_multicast **multicast)
{
    if (multicast)
        *multicast = NULL;
    if (!o || !multicast)
        return qi_fail_null("quire_cuda_multicast_import", !o ? "options" : "multicast");
    const qi_cuda_multicast_team team = {.size = o->size,
                                         .devices = o->devices,
                                         .device_count = o->device_count,
                                         .team_size = o->team_size};
    quire_result result = check_import(o);
    return result ? result : qi_cuda_multicast_make(device, &team, import_object, o, multicast);
}
