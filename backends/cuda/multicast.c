/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * multicast.c - multicast objects: memory of several devices behind one address. The driver does
 * not say what is bound to one, so quire keeps a record of each binding. An object belongs to no
 * memory: the bound pages stay in theirs.
 */
#include <string.h>

#include "backends/cuda/device.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- records ------------------------------------------------------------------------------ */

/* A device that this process added, and the object's addresses for it. */
typedef struct qi_cuda_multicast_device {
    int ordinal;
    qi_cu_ptr reserved; /* 0: none */
    bool is_mapped;
    bool is_ready;     /* mapped and accessible */
    bool is_in_change; /* a thread maps it, and pauses without the mutex */
} qi_cuda_multicast_device;

/* Memory of a device that this process bound. */
typedef struct qi_cuda_binding {
    struct qi_cuda_binding *next;
    int device;
    uint64_t offset, size; /* bytes, in the object */
} qi_cuda_binding;

struct quire_cuda_multicast {
    qi_cuda *cuda;
    qi_cu_handle handle;
    uint64_t size; /* bytes, rounded up */
    uint64_t granularity, recommended;
    quire_cuda_handle_types types; /* by which it can be exported */
    qi_cu_result fabric_code; /* why it has no fabric handle; 0: it has one, or none was asked */
    bool is_imported;
    uint32_t team_size;
    uint32_t device_count;
    qi_cuda_multicast_device *devices;
    /* Protects `bindings` and the addresses of devices, also during calls of the driver: threads
       that change the same object wait for each other. Everything else is constant. */
    pthread_mutex_t mutex;
    qi_cuda_binding *bindings;
};

/* What the caller says about an object, in either kind of options. */
typedef struct qi_cuda_multicast_team {
    uint64_t size;
    const int32_t *devices;
    uint32_t device_count, team_size;
} qi_cuda_multicast_team;

/* Gives the record its handle, from the caller's options. In the context. */
typedef quire_result (*qi_cuda_multicast_maker)(quire_cuda_multicast *multicast,
                                                const void *options);

/* ---- the object --------------------------------------------------------------------------- */

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

/*
 * Creates a record, lets `make` give it a handle, and adds the devices. On failure nothing is left.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (the device has no multicast), OUT_OF_HOST_MEMORY, errors
 * of `make` and of the driver.
 */
static quire_result make_object(quire_device *device, const qi_cuda_multicast_team *team,
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

/* ---- creation ----------------------------------------------------------------------------- */

/* Queries both granularities for an object with these handle types. In the context. */
static qi_cu_result query_granularity(quire_cuda_multicast *m, quire_cuda_handle_types types)
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
    *code = query_granularity(m, types);
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
    return result ? result : make_object(device, &team, create, o, multicast);
}

/* ---- description -------------------------------------------------------------------------- */

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

/* ---- export to other processes ------------------------------------------------------------ */

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

/* ---- import ------------------------------------------------------------------------------- */

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
    qi_cu_result code =
        query_granularity(m, o->type == QUIRE_CUDA_IMPORT_FD ? QUIRE_CUDA_FD : QUIRE_CUDA_FABRIC);
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
    return result ? result : make_object(device, &team, import_object, o, multicast);
}

/* ---- records of bindings ------------------------------------------------------------------ */

/*
 * Pages are bound by their handle, other memory by its address. Unbinding with other numbers than
 * those of the bind is undefined. All records change with the mutex.
 */

static bool overlaps(const qi_cuda_binding *b, int device, uint64_t offset, uint64_t size)
{
    return b->device == device && b->offset < offset + size && offset < b->offset + b->size;
}

/* Adds a record. WRONG_STATE if memory of the device is bound in the range. */
static quire_result record(quire_cuda_multicast *m, int device, uint64_t offset, uint64_t size)
{
    for (const qi_cuda_binding *b = m->bindings; b; b = b->next)
        if (overlaps(b, device, offset, size))
            return qi_fail_text(QUIRE_ERROR_WRONG_STATE,
                                "memory of device %d is bound at %llu already", device,
                                (unsigned long long)b->offset);
    qi_cuda_binding *made = qi_host_allocate(&m->cuda->host, 1, sizeof *made);
    if (!made)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a binding");
    *made =
        (qi_cuda_binding){.next = m->bindings, .device = device, .offset = offset, .size = size};
    m->bindings = made;
    return QUIRE_SUCCESS;
}

static void remove_record(quire_cuda_multicast *m, qi_cuda_binding **link)
{
    qi_cuda_binding *gone = *link;
    *link = gone->next;
    qi_host_release(&m->cuda->host, gone, 1, sizeof *gone);
}

static quire_result check_range(const quire_cuda_multicast *m, uint64_t offset, uint64_t size)
{
    if (!size || !qi_range_fits(offset, size, m->size))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                            "%b at %u do not lie in the %b of the multicast object", size, offset,
                            m->size);
    if ((offset | size) % m->granularity)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "offset %u or size %u: the multicast granularity is %u", offset, size,
                            m->granularity);
    return QUIRE_SUCCESS;
}

static quire_result check_page(const quire_cuda_multicast *m, uint64_t offset,
                               const qi_cuda_page *page)
{
    if (page->type != QI_CUDA_PAGE_VIRTUAL || page->elastic || page->chunk_count != 1 || page->host)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "a page can be bound only if it is device memory of one handle and not "
                       "elastic");
    /* an imported page is never kept, and shared already */
    if ((m->types || m->is_imported) && !page->types && !page->chunks->is_never_kept)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "a multicast object that is shared with other processes takes exportable "
                       "pages only");
    return check_range(m, offset, page->padded);
}

/* ---- binding ------------------------------------------------------------------------------ */

/* A call of the driver that binds. */
typedef struct bind_call {
    int device;
    uint64_t offset, size;
    qi_cu_handle handle; /* of memory; 0: by address */
    qi_cu_ptr address;
} bind_call;

/* In the context. */
static quire_result bind(const qi_cuda *cuda, quire_cuda_multicast *m, const bind_call *c)
{
    pthread_mutex_lock(&m->mutex);
    quire_result result = record(m, c->device, c->offset, c->size);
    if (!result) {
        qi_cu_result code =
            c->handle ? cuda->f.MulticastBindMem(m->handle, c->offset, c->handle, 0, c->size, 0)
                      : cuda->f.MulticastBindAddr(m->handle, c->offset, c->address, c->size, 0);
        if (code) {
            remove_record(m, &m->bindings);
            result = qi_cuda_fail(&cuda->f, code, "binding %s of device %d to a multicast object",
                                  qi_bytes(c->size).text, c->device);
        }
    }
    pthread_mutex_unlock(&m->mutex);
    return result;
}

/* The page may belong to another device than the object's: its own context serves. */
quire_result quire_cuda_multicast_bind(quire_cuda_multicast *m, uint64_t offset,
                                       quire_memory *memory, quire_allocation allocation)
{
    if (!m || !memory)
        return qi_fail_null("quire_cuda_multicast_bind", !m ? "multicast" : "memory");
    quire_native native;
    qi_cuda *cuda = NULL;
    quire_result result = qi_cuda_find_native(memory, allocation, &native, &cuda);
    if (result)
        return result;
    const qi_cuda_page *page = qi_cuda_page_of(&native.page);
    result = check_page(m, offset, page);
    if (!result && !cuda->f.MulticastBindMem)
        result = qi_fail(QUIRE_ERROR_UNSUPPORTED, "the driver of the page has no multicast");
    if (!result)
        result = qi_cuda_enter(cuda); /* the context of the page's device */
    if (result)
        return result;
    const bind_call call = {.device = cuda->device,
                            .offset = offset,
                            .size = page->padded,
                            .handle = page->chunks->handle};
    result = bind(cuda, m, &call);
    qi_cuda_leave(cuda);
    return result;
}

/* In the context. */
static quire_result query_device(const qi_cuda *cuda, qi_cu_ptr address, int *device)
{
    qi_cu_result code =
        cuda->f.PointerGetAttribute(device, QI_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
    return code ? quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, code,
                                     "0x%llx is not an address of device memory that the driver "
                                     "knows",
                                     (unsigned long long)address)
                : QUIRE_SUCCESS;
}

quire_result quire_cuda_multicast_bind_address(quire_cuda_multicast *m, uint64_t offset,
                                               uint64_t address, uint64_t size)
{
    if (!m)
        return qi_fail_null("quire_cuda_multicast_bind_address", "multicast");
    if (!address)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_cuda_multicast_bind_address: the address is 0");
    const qi_cuda *cuda = m->cuda;
    quire_result result = check_range(m, offset, size);
    if (!result && address % m->granularity)
        result =
            qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                         "address %x: the multicast granularity is %u", address, m->granularity);
    if (!result && (!cuda->f.MulticastBindAddr || !cuda->f.PointerGetAttribute))
        result = qi_fail(QUIRE_ERROR_UNSUPPORTED, "the driver binds no memory by its address");
    if (!result)
        result = qi_cuda_enter(cuda);
    if (result)
        return result;
    bind_call call = {.offset = offset, .size = size, .address = address};
    result = query_device(cuda, address, &call.device);
    if (!result)
        result = bind(cuda, m, &call);
    qi_cuda_leave(cuda);
    return result;
}

/* ---- unbinding ---------------------------------------------------------------------------- */

/* In the context, with the mutex. */
static qi_cu_result unbind(quire_cuda_multicast *m, qi_cuda_binding **link)
{
    const qi_cuda_binding *b = *link;
    qi_cu_result code = m->cuda->f.MulticastUnbind(m->handle, b->device, b->offset, b->size);
    if (!code || qi_cuda_is_lost(code))
        remove_record(m, link);
    return code;
}

quire_result quire_cuda_multicast_unbind(quire_cuda_multicast *m, int32_t ordinal, uint64_t offset,
                                         uint64_t size)
{
    if (!m)
        return qi_fail_null("quire_cuda_multicast_unbind", "multicast");
    quire_result result = check_range(m, offset, size);
    if (!result)
        result = qi_cuda_enter(m->cuda);
    if (result)
        return result;
    qi_cu_result code = QI_CUDA_SUCCESS;
    pthread_mutex_lock(&m->mutex);
    qi_cuda_binding **link = &m->bindings;
    while (*link &&
           ((*link)->device != ordinal || (*link)->offset != offset || (*link)->size != size))
        link = &(*link)->next;
    bool is_found = *link != NULL;
    if (is_found)
        code = unbind(m, link);
    pthread_mutex_unlock(&m->mutex);
    qi_cuda_leave(m->cuda);
    if (!is_found)
        return qi_fail_text(QUIRE_ERROR_WRONG_STATE,
                            "no memory of device %d was bound at %llu with %llu bytes", ordinal,
                            (unsigned long long)offset, (unsigned long long)size);
    return code ? qi_cuda_fail(&m->cuda->f, code, "cuMulticastUnbind of device %d", ordinal)
                : QUIRE_SUCCESS;
}

/* Removes all bindings. In the context, with the mutex. False: the driver refused; the rest can be
   retried. */
static bool unbind_all(quire_cuda_multicast *m)
{
    while (m->bindings) {
        qi_cu_result code = unbind(m, &m->bindings);
        if (code && !qi_cuda_is_lost(code))
            return false;
    }
    return true;
}

/* ---- addresses ---------------------------------------------------------------------------- */

/* One mapping for each device, which no other device accesses. */

/* INVALID_ARGUMENT if this process did not add the device. */
static quire_result find_device(const quire_cuda_multicast *m, int32_t ordinal,
                                qi_cuda_multicast_device **device)
{
    for (uint32_t i = 0; i < m->device_count; i++)
        if (m->devices[i].ordinal == ordinal) {
            *device = &m->devices[i];
            return QUIRE_SUCCESS;
        }
    return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                        "device %d was not added to the multicast object by this process", ordinal);
}

/* Removes the addresses of a device. In the context, with the mutex. False as for unbind_all. */
static bool unmap(quire_cuda_multicast *m, qi_cuda_multicast_device *device)
{
    const qi_cuda *cuda = m->cuda;
    qi_cu_result code =
        device->is_mapped ? cuda->f.MemUnmap(device->reserved, m->size) : QI_CUDA_SUCCESS;
    if (code && !qi_cuda_is_lost(code))
        return false;
    device->is_mapped = device->is_ready = false;
    code = device->reserved ? cuda->f.MemAddressFree(device->reserved, m->size) : QI_CUDA_SUCCESS;
    if (code && !qi_cuda_is_lost(code))
        return false;
    device->reserved = 0;
    return true;
}

/* In the context, with the mutex, which is released while the driver is not ready: other threads
   find that the mapping is being made. On failure unmap undoes what was done. */
static qi_cu_result map(quire_cuda_multicast *m, qi_cuda_multicast_device *device)
{
    const qi_cuda *cuda = m->cuda;
    const qi_cu_access_desc access = {
        .location = {.type = QI_CU_MEM_LOCATION_TYPE_DEVICE, .id = device->ordinal},
        .flags = QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    qi_cu_result code = cuda->f.MemAddressReserve(&device->reserved, m->size, m->granularity, 0, 0);
    if (code) {
        device->reserved = 0;
        return code;
    }
    code = cuda->f.MemMap(device->reserved, m->size, 0, m->handle, 0);
    if (code)
        return code;
    device->is_mapped = device->is_in_change = true;
    uint32_t pauses = 0;
    do
        code = cuda->f.MemSetAccess(device->reserved, m->size, &access, 1);
    while (qi_cuda_retry_access(code, &pauses, &m->mutex));
    device->is_in_change = false;
    device->is_ready = !code;
    return code;
}

/* Removes the remains of a failed attempt first. In the context. */
static quire_result map_once(quire_cuda_multicast *m, qi_cuda_multicast_device *device,
                             uint64_t *address)
{
    pthread_mutex_lock(&m->mutex);
    bool was_ready = device->is_ready || device->is_in_change;
    qi_cu_result code = QI_CUDA_SUCCESS;
    if (!was_ready)
        code = unmap(m, device) ? map(m, device) : QI_CUDA_ERROR_UNKNOWN;
    if (code)
        unmap(m, device);
    uint64_t reserved = device->reserved;
    pthread_mutex_unlock(&m->mutex);
    if (was_ready)
        return qi_fail_text(QUIRE_ERROR_WRONG_STATE,
                            "the multicast object is already mapped for device %d",
                            device->ordinal);
    if (code)
        return qi_cuda_fail(&m->cuda->f, code, "mapping a multicast object of %s for device %d",
                            qi_bytes(m->size).text, device->ordinal);
    *address = reserved;
    return QUIRE_SUCCESS;
}

quire_result quire_cuda_multicast_map(quire_cuda_multicast *m, int32_t ordinal, uint64_t *address)
{
    if (address)
        *address = 0;
    if (!m || !address)
        return qi_fail_null("quire_cuda_multicast_map", !m ? "multicast" : "address");
    qi_cuda_multicast_device *device = NULL;
    quire_result result = find_device(m, ordinal, &device);
    if (!result)
        result = qi_cuda_enter(m->cuda);
    if (result)
        return result;
    result = map_once(m, device, address);
    qi_cuda_leave(m->cuda);
    return result;
}

quire_result quire_cuda_multicast_unmap(quire_cuda_multicast *m, int32_t ordinal)
{
    if (!m)
        return qi_fail_null("quire_cuda_multicast_unmap", "multicast");
    qi_cuda_multicast_device *device = NULL;
    quire_result result = find_device(m, ordinal, &device);
    if (!result)
        result = qi_cuda_enter(m->cuda);
    if (result)
        return result;
    pthread_mutex_lock(&m->mutex);
    bool is_there = device->reserved && !device->is_in_change;
    bool is_done = is_there && unmap(m, device);
    pthread_mutex_unlock(&m->mutex);
    qi_cuda_leave(m->cuda);
    if (!is_there)
        return qi_fail_text(QUIRE_ERROR_WRONG_STATE,
                            "the multicast object is not mapped for device %d", ordinal);
    return is_done ? QUIRE_SUCCESS
                   : quire_backend_fail(QUIRE_ERROR_BACKEND_FAILURE, 0,
                                        "the driver refused to unmap the multicast object for "
                                        "device %d: it can be unmapped later",
                                        ordinal);
}

/* ---- destruction -------------------------------------------------------------------------- */

/* In the context. */
static bool destroy_object(quire_cuda_multicast *m)
{
    for (uint32_t i = 0; i < m->device_count; i++)
        if (!unmap(m, &m->devices[i]))
            return false;
    if (!unbind_all(m))
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
