/*
 * multicast_bind.c - memory behind multicast objects: pages by their handle, other memory by its
 * address.
 *
 * The driver does not say what is bound, and unbinding with other numbers than those of the bind is
 * undefined. quire therefore records its bindings.
 */
#include "backends/cuda/multicast.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- records: all with the mutex --------------------------------------------------------- */

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

/* ---- checks ----------------------------------------------------------------------------- */

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
                       "a page can be bound only if it is device memory of one handle and does "
                       "not grow");
    /* an imported page is never kept, and shared already */
    if ((m->types || m->is_imported) && !page->types && !page->chunks->is_never_kept)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "a multicast object that is shared with other processes takes exportable "
                       "pages only");
    return check_range(m, offset, page->padded);
}

/* ---- binding ---------------------------------------------------------------------------- */

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
static quire_result find_device(const qi_cuda *cuda, qi_cu_ptr address, int *device)
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
    result = find_device(cuda, address, &call.device);
    if (!result)
        result = bind(cuda, m, &call);
    qi_cuda_leave(cuda);
    return result;
}

/* ---- unbinding -------------------------------------------------------------------------- */

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

bool qi_cuda_multicast_unbind_all(quire_cuda_multicast *m)
{
    while (m->bindings) {
        qi_cu_result code = unbind(m, &m->bindings);
        if (code && !qi_cuda_is_lost(code))
            return false;
    }
    return true;
}
