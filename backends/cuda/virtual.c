/*
 * virtual.c - pages of virtual memory management: chunks of physical memory, mapped one after the
 * other into a range of addresses; and tile pools, one chunk each, which have no addresses.
 *
 * In this order: chunks, addresses, mappings, access for the whole range at once. A mapping grants
 * nobody access. Taken down in the reverse order, each mapping whole as it was made, and never
 * under running work: the driver does not wait for it (quire_cuda_settings.unsynchronized).
 */
#include "backends/cuda/cuda.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- making ------------------------------------------------------------------------------- */

/* What a page can be exported as. */
static quire_result choose_types(const qi_cuda *cuda, const quire_page_request *request,
                                 quire_cuda_handle_types *types)
{
    quire_cuda_page_kind page_kind = cuda->kinds[request->kind].page_kind;
    *types = 0;
    if (!request->exportable && page_kind != QUIRE_CUDA_REGISTERED)
        return QUIRE_SUCCESS;
    if (page_kind == QUIRE_CUDA_HOST || page_kind == QUIRE_CUDA_TILES || !cuda->offers.fd)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "pages of memory kind %u cannot be exported", request->kind);
    *types = cuda->settings.export_types;
    if (!cuda->offers.fabric)
        *types &= ~QUIRE_CUDA_FABRIC;
    return QUIRE_SUCCESS;
}

/* What is exported, registered or mapped to arrays must be one handle. */
static uint64_t chunk_size(const qi_cuda *cuda, const qi_cuda_page *page)
{
    const qi_cuda_kind *kind = &cuda->kinds[page->kind];
    uint64_t size = 0;
    if (page->types || page->make == QI_CUDA_POOL || !cuda->settings.chunk_size ||
        qi_align_up_overflows(cuda->settings.chunk_size, kind->granularity, &size))
        return page->padded;
    return size;
}

static quire_result take_chunks(qi_cuda *cuda, qi_cuda_page *page)
{
    uint64_t unit = chunk_size(cuda, page);
    qi_cuda_chunk **link = &page->chunks;
    for (uint64_t left = page->padded; left;) {
        uint64_t size = left < unit ? left : unit;
        quire_result result = qi_cuda_chunk_take(cuda, page->kind, size, page->types, link);
        if (result)
            return result;
        page->types = (*link)->types; /* what was granted */
        page->chunk_count++;
        link = &(*link)->next;
        left -= size;
    }
    return QUIRE_SUCCESS;
}

/* Who may read and write pages of a kind when they are made. */
static size_t list_access(const qi_cuda *cuda, const qi_cuda_kind *kind, qi_cu_access_desc *list)
{
    size_t count = 0;
    qi_cu_location home = qi_cuda_prop(cuda, kind, 0).location;
    list[count++].location =
        (qi_cu_location){.type = QI_CU_MEM_LOCATION_TYPE_DEVICE, .id = cuda->device};
    for (uint32_t i = 0; i < cuda->peer_count; i++)
        list[count++].location =
            (qi_cu_location){.type = QI_CU_MEM_LOCATION_TYPE_DEVICE, .id = cuda->peers[i]};
    if (home.type != QI_CU_MEM_LOCATION_TYPE_DEVICE)
        list[count++].location = home;
    for (size_t i = 0; i < count; i++)
        list[i].flags = QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return count;
}

static quire_result map_chunks(qi_cuda *cuda, qi_cuda_page *page)
{
    qi_cu_ptr at = page->reserved;
    for (qi_cuda_chunk *chunk = page->chunks; chunk; chunk = chunk->next) {
        qi_cu_result code = cuda->f.MemMap(at, chunk->size, 0, chunk->handle, 0);
        if (code)
            return qi_cuda_fail(&cuda->f, code, "cuMemMap of %s", qi_bytes(chunk->size).text);
        chunk->is_mapped = true;
        at += chunk->size;
    }
    return QUIRE_SUCCESS;
}

quire_result qi_cuda_virtual_map(qi_cuda *cuda, uint64_t alignment, qi_cuda_page *page)
{
    const qi_cuda_kind *kind = &cuda->kinds[page->kind];
    qi_cu_access_desc list[QUIRE_CUDA_MOST_ACCESSES];
    uint64_t wanted = alignment > kind->granularity ? alignment : kind->granularity;
    qi_cu_result code = cuda->f.MemAddressReserve(&page->reserved, page->padded, wanted, 0, 0);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuMemAddressReserve of %s of addresses",
                            qi_bytes(page->padded).text);
    quire_result result = map_chunks(cuda, page);
    if (result)
        return result;
    code = cuda->f.MemSetAccess(page->reserved, page->padded, list, list_access(cuda, kind, list));
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuMemSetAccess of %s", qi_bytes(page->padded).text);
    page->address = page->reserved;
    if (kind->description.flags & QUIRE_HOST_VISIBLE)
        page->host = (void *)(uintptr_t)page->reserved; /* the host has the devices' addresses */
    return QUIRE_SUCCESS;
}

quire_result qi_cuda_virtual_make(qi_cuda *cuda, const quire_page_request *request,
                                  qi_cuda_page *page)
{
    if (cuda->kinds[page->kind].page_kind == QUIRE_CUDA_TILES)
        page->make = QI_CUDA_POOL;
    quire_result result = choose_types(cuda, request, &page->types);
    if (!result)
        result = take_chunks(cuda, page);
    if (result || page->make == QI_CUDA_POOL)
        return result;
    return qi_cuda_virtual_map(cuda, request->alignment, page);
}

/* ---- taking down -------------------------------------------------------------------------- */

static bool unmap(qi_cuda *cuda, qi_cuda_page *page)
{
    qi_cu_ptr at = page->reserved;
    for (qi_cuda_chunk *chunk = page->chunks; chunk; chunk = chunk->next) {
        qi_cu_result code = chunk->is_mapped ? cuda->f.MemUnmap(at, chunk->size) : QI_CUDA_SUCCESS;
        if (code && !qi_cuda_is_lost(code))
            return false;
        chunk->is_mapped = false;
        at += chunk->size;
    }
    return true;
}

bool qi_cuda_virtual_take_down(qi_cuda *cuda, qi_cuda_page *page)
{
    if (!unmap(cuda, page))
        return false;
    for (qi_cuda_chunk *next = NULL; page->chunks; page->chunks = next) {
        next = page->chunks->next;
        if (!qi_cuda_chunk_give(cuda, page->chunks))
            return false;
    }
    qi_cu_result code = QI_CUDA_SUCCESS;
    if (page->reserved)
        code = cuda->f.MemAddressFree(page->reserved, page->padded);
    if (code && !qi_cuda_is_lost(code))
        return false;
    page->reserved = 0;
    return true;
}
