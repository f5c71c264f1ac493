/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * virtual.c - pages of virtual memory management: chunks of physical memory, mapped one after the
 * other into a range of addresses; and tile pools, which are one chunk without addresses. Released
 * chunks may be kept for further pages.
 *
 * Order of creation: chunks, addresses, mappings, access for the whole range at once. A mapping
 * without access is accessible to nobody. Destruction runs in the reverse order and unmaps whole
 * mappings, as the driver requires. The driver does not wait for work that uses the addresses: the
 * caller waits first if it must (stream.c).
 */
#include "backends/cuda/virtual.h"

#include "backends/cuda/device.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- kept chunks -------------------------------------------------------------------------- */

/*
 * Creating a chunk costs milliseconds whatever its size, so settings.kept_bytes may keep released
 * ones. A kept chunk is reused for equal size, kind and handle types. All kept chunks are released
 * before out of memory is reported.
 */

/* Removes and returns a kept chunk that matches, or returns NULL. */
static qi_cuda_chunk *take_kept(qi_cuda *cuda, uint32_t kind, uint64_t size,
                                quire_cuda_handle_types types)
{
    pthread_mutex_lock(&cuda->mutex);
    qi_cuda_chunk **link = &cuda->kept, *found = NULL;
    while (*link && ((*link)->kind != kind || (*link)->size != size || (*link)->types != types))
        link = &(*link)->next;
    found = *link;
    if (found) {
        *link = found->next;
        cuda->kept_bytes -= size;
        found->next = NULL;
    }
    pthread_mutex_unlock(&cuda->mutex);
    return found;
}

/* Requires the mutex. */
static void push_kept(qi_cuda *cuda, qi_cuda_chunk *chunk)
{
    chunk->next = cuda->kept;
    cuda->kept = chunk;
    cuda->kept_bytes += chunk->size;
}

/* Returns false if the chunk must be released: it is never kept, or the limit is reached. */
static bool keep_chunk(qi_cuda *cuda, qi_cuda_chunk *chunk)
{
    if (chunk->is_never_kept || chunk->size > cuda->settings.kept_bytes)
        return false;
    pthread_mutex_lock(&cuda->mutex);
    bool has_room = cuda->kept_bytes <= cuda->settings.kept_bytes - chunk->size;
    if (has_room)
        push_kept(cuda, chunk);
    pthread_mutex_unlock(&cuda->mutex);
    return has_room;
}

/* Beyond the limit: the driver refused to release the chunk. */
static void keep_refused(qi_cuda *cuda, qi_cuda_chunk *chunk)
{
    pthread_mutex_lock(&cuda->mutex);
    push_kept(cuda, chunk);
    pthread_mutex_unlock(&cuda->mutex);
}

static qi_cuda_chunk *pop_kept(qi_cuda *cuda)
{
    pthread_mutex_lock(&cuda->mutex);
    qi_cuda_chunk *first = cuda->kept;
    if (first) {
        cuda->kept = first->next;
        cuda->kept_bytes -= first->size;
    }
    pthread_mutex_unlock(&cuda->mutex);
    return first;
}

/* ---- releasing chunks --------------------------------------------------------------------- */

/* Returns false if the driver refused; the chunk is then unchanged. */
static bool release_handle(qi_cuda *cuda, qi_cuda_chunk *chunk)
{
    qi_cu_result code =
        chunk->is_caller_owned ? QI_CUDA_SUCCESS : cuda->f.MemRelease(chunk->handle);
    if (code && !qi_cuda_is_lost(code))
        return false;
    qi_host_release(&cuda->host, chunk, 1, sizeof *chunk);
    return true;
}

/* Keeps or releases a chunk that is not mapped. Returns false if the driver refused the release;
   the chunk is then unchanged and the caller's. */
static bool release_chunk(qi_cuda *cuda, qi_cuda_chunk *chunk)
{
    return keep_chunk(cuda, chunk) || release_handle(cuda, chunk);
}

void qi_cuda_chunk_release(qi_cuda *cuda, qi_cuda_chunk *chunk)
{
    if (!release_chunk(cuda, chunk))
        keep_refused(cuda, chunk);
}

/* Releases chunks without the mutex, because the driver may take long. Refused ones return to the
   list, beyond the limit if other chunks were kept in between. */
bool qi_cuda_release_kept_chunks(qi_cuda *cuda)
{
    qi_cuda_chunk *refused = NULL, *chunk = NULL;
    if (qi_cuda_has_forked(cuda))
        return true;
    while ((chunk = pop_kept(cuda)) != NULL)
        if (!release_handle(cuda, chunk)) {
            chunk->next = refused;
            refused = chunk;
        }
    bool all = !refused;
    while ((chunk = refused) != NULL) {
        refused = chunk->next;
        keep_refused(cuda, chunk);
    }
    return all;
}

void qi_cuda_retry_kept(qi_cuda *cuda)
{
    qi_cuda_chunk *chunk = NULL;
    do {
        pthread_mutex_lock(&cuda->mutex);
        bool is_beyond = cuda->kept_bytes > cuda->settings.kept_bytes;
        pthread_mutex_unlock(&cuda->mutex);
        chunk = is_beyond ? pop_kept(cuda) : NULL;
    } while (chunk && release_handle(cuda, chunk));
    if (chunk)
        keep_refused(cuda, chunk);
}

bool qi_cuda_make_room(qi_cuda *cuda, qi_cu_result code)
{
    pthread_mutex_lock(&cuda->mutex);
    bool has_kept = cuda->kept != NULL;
    pthread_mutex_unlock(&cuda->mutex);
    if (code != QI_CUDA_ERROR_OUT_OF_MEMORY || !has_kept)
        return false;
    qi_cuda_release_kept_chunks(cuda);
    return true;
}

quire_result quire_cuda_release_kept(quire_device *device)
{
    qi_cuda *cuda = qi_cuda_of(device);
    if (!cuda)
        return quire_last_result();
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    bool all = qi_cuda_release_kept_chunks(cuda);
    qi_cuda_leave(cuda);
    return all ? QUIRE_SUCCESS
               : quire_backend_fail(QUIRE_ERROR_BACKEND_FAILURE, 0,
                                    "the driver did not release all handles: the others stay kept");
}

/* ---- creating chunks ---------------------------------------------------------------------- */

/* Records whether the driver creates fabric handles, for quire_cuda_get_info and later chunks. */
static void record_fabric(qi_cuda *cuda, qi_cu_result code)
{
    qi_atomic_store_release_u32(&cuda->fabric_code, code);
    qi_atomic_store_release_u32(&cuda->fabric,
                                code ? QUIRE_CUDA_FABRIC_REFUSED : QUIRE_CUDA_FABRIC_GRANTED);
}

/* Out of memory and a lost device say nothing about fabric handles and are not recorded. */
static qi_cu_result create_chunk(qi_cuda *cuda, const qi_cuda_kind *kind, qi_cuda_chunk *chunk)
{
    qi_cu_allocation_prop prop = qi_cuda_allocation_prop(cuda, kind, chunk->types);
    qi_cu_result code = cuda->f.MemCreate(&chunk->handle, chunk->size, &prop, 0);
    if (!(chunk->types & QUIRE_CUDA_FABRIC))
        return code;
    if (!code || (code != QI_CUDA_ERROR_OUT_OF_MEMORY && !qi_cuda_is_lost(code)))
        record_fabric(cuda, code);
    return code;
}

static bool is_fabric_refused(qi_cuda *cuda)
{
    return qi_atomic_load_acquire_u32(&cuda->fabric) == QUIRE_CUDA_FABRIC_REFUSED;
}

/* Retries without the fabric handle if the driver refuses that one, and after releasing all kept
   chunks if memory is exhausted. */
static qi_cu_result create_with_fallback(qi_cuda *cuda, const qi_cuda_kind *kind,
                                         qi_cuda_chunk *chunk)
{
    qi_cu_result code = create_chunk(cuda, kind, chunk);
    if (code && chunk->types & QUIRE_CUDA_FABRIC && chunk->types & QUIRE_CUDA_FD &&
        is_fabric_refused(cuda)) {
        chunk->types = QUIRE_CUDA_FD;
        code = create_chunk(cuda, kind, chunk);
    }
    return qi_cuda_make_room(cuda, code) ? create_chunk(cuda, kind, chunk) : code;
}

/* Queries which of the requested properties the driver granted. */
static void query_chunk(const qi_cuda *cuda, qi_cuda_chunk *chunk)
{
    qi_cu_allocation_prop granted = {.type = 0};
    if (!cuda->f.MemGetAllocationPropertiesFromHandle ||
        cuda->f.MemGetAllocationPropertiesFromHandle(&granted, chunk->handle))
        return;
    chunk->types &= granted.requestedHandleTypes;
    chunk->is_compressed = granted.allocFlags.compressionType == QI_CU_MEM_ALLOCATION_COMP_GENERIC;
    chunk->is_rdma_capable = granted.allocFlags.gpuDirectRDMACapable != 0;
    chunk->is_decompressible =
        (granted.allocFlags.usage & QI_CU_MEM_CREATE_USAGE_HW_DECOMPRESS) != 0;
}

/* Reports OUT_OF_HOST_MEMORY and returns NULL on failure. */
static qi_cuda_chunk *new_chunk(qi_cuda *cuda, uint32_t kind, uint64_t size)
{
    qi_cuda_chunk *chunk = qi_host_allocate(&cuda->host, 1, sizeof *chunk);
    if (!chunk) {
        qi_ignore(quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                     "no host memory for a record of an allocation handle"));
        return NULL;
    }
    chunk->kind = kind;
    chunk->size = size;
    return chunk;
}

/* A fabric handle that was refused once is not requested again, if a descriptor may replace it. */
quire_result qi_cuda_chunk_acquire(qi_cuda *cuda, uint32_t kind, uint64_t size,
                                   quire_cuda_handle_types types, qi_cuda_chunk **out)
{
    const qi_cuda_kind *of = &cuda->kinds[kind];
    if (types == (QUIRE_CUDA_FD | QUIRE_CUDA_FABRIC) && is_fabric_refused(cuda))
        types = QUIRE_CUDA_FD;
    *out = take_kept(cuda, kind, size, types);
    if (*out)
        return QUIRE_SUCCESS;
    qi_cuda_chunk *chunk = new_chunk(cuda, kind, size);
    if (!chunk)
        return QUIRE_ERROR_OUT_OF_HOST_MEMORY;
    chunk->types = types;
    qi_cu_result code = create_with_fallback(cuda, of, chunk);
    if (code) {
        qi_host_release(&cuda->host, chunk, 1, sizeof *chunk);
        return qi_cuda_fail(&cuda->f, code, "cuMemCreate of %s of memory kind %u",
                            qi_bytes(size).text, kind);
    }
    if (of->page_kind == QUIRE_CUDA_COMPRESSED || of->is_rdma || of->types ||
        cuda->settings.hardware_decompression)
        query_chunk(cuda, chunk);
    *out = chunk;
    return QUIRE_SUCCESS;
}

quire_result qi_cuda_chunk_import(qi_cuda *cuda, uint32_t kind, uint64_t size, qi_cu_handle handle,
                                  qi_cuda_chunk **out)
{
    qi_cuda_chunk *chunk = new_chunk(cuda, kind, size);
    if (!chunk)
        return QUIRE_ERROR_OUT_OF_HOST_MEMORY;
    chunk->handle = handle;
    chunk->is_never_kept = true;
    query_chunk(cuda, chunk);
    *out = chunk;
    return QUIRE_SUCCESS;
}

/* ---- creating pages ----------------------------------------------------------------------- */

/* The handle types that a page can be exported as. UNSUPPORTED if the request needs some and the
   kind has none. */
static quire_result choose_types(const qi_cuda *cuda, const quire_page_request *request,
                                 quire_cuda_handle_types *types)
{
    quire_cuda_page_kind page_kind = cuda->kinds[request->kind].page_kind;
    bool is_one_handle = !cuda->settings.chunk_size;
    *types = is_one_handle ? cuda->kinds[request->kind].types : 0;
    if (!request->exportable && page_kind != QUIRE_CUDA_REGISTERED)
        return QUIRE_SUCCESS;
    if (page_kind == QUIRE_CUDA_HOST || page_kind == QUIRE_CUDA_TILES || !cuda->capabilities.fd)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "pages of memory kind %u cannot be exported", request->kind);
    *types = cuda->settings.export_types;
    if (!cuda->capabilities.fabric)
        *types &= ~QUIRE_CUDA_FABRIC;
    return QUIRE_SUCCESS;
}

/* A page that is exported, registered or mapped to arrays must be one chunk. */
static uint64_t chunk_size(const qi_cuda *cuda, const qi_cuda_page *page)
{
    const qi_cuda_kind *kind = &cuda->kinds[page->kind];
    uint64_t size = 0;
    if (page->types || page->type == QI_CUDA_PAGE_TILES || !cuda->settings.chunk_size ||
        qi_align_up_overflows(cuda->settings.chunk_size, kind->granularity, &size))
        return UINT64_MAX;
    return size;
}

/* Gives the page its chunks. On failure it has those that were acquired. */
static quire_result take_chunks(qi_cuda *cuda, qi_cuda_page *page)
{
    uint64_t unit = chunk_size(cuda, page);
    qi_cuda_chunk **end = &page->chunks;
    for (uint64_t left = page->padded; left;) {
        uint64_t part = left < unit ? left : unit;
        quire_result result = qi_cuda_chunk_acquire(cuda, page->kind, part, page->types, end);
        if (result)
            return result;
        page->chunk_count++;
        end = &(*end)->next;
        left -= part;
    }
    return QUIRE_SUCCESS;
}

/* The device, its peers, and for host memory the host. */
uint32_t qi_cuda_list_access(const qi_cuda *cuda, const qi_cuda_kind *kind, qi_cu_access_desc *list)
{
    uint32_t count = 0;
    qi_cu_location home = qi_cuda_allocation_prop(cuda, kind, 0).location;
    list[count++].location =
        (qi_cu_location){.type = QI_CU_MEM_LOCATION_TYPE_DEVICE, .id = cuda->device};
    for (uint32_t i = 0; i < cuda->peer_count; i++)
        list[count++].location =
            (qi_cu_location){.type = QI_CU_MEM_LOCATION_TYPE_DEVICE, .id = cuda->peers[i]};
    if (home.type != QI_CU_MEM_LOCATION_TYPE_DEVICE)
        list[count++].location = home;
    for (uint32_t i = 0; i < count; i++)
        list[i].flags = QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return count;
}

quire_result qi_cuda_chunks_map(const qi_cuda *cuda, qi_cuda_chunk *chunk, qi_cu_ptr at)
{
    for (; chunk; at += chunk->size, chunk = chunk->next) {
        if (chunk->is_mapped)
            continue;
        qi_cu_result code = cuda->f.MemMap(at, chunk->size, 0, chunk->handle, 0);
        if (code == QI_CUDA_ERROR_NOT_SUPPORTED && chunk->is_never_kept) /* seen on an H100 */
            return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, code,
                                      "an import of %s: the memory has another size, and drivers "
                                      "map memory as a whole only",
                                      qi_bytes(chunk->size).text);
        if (code)
            return qi_cuda_fail(&cuda->f, code, "cuMemMap of %s", qi_bytes(chunk->size).text);
        chunk->is_mapped = true;
    }
    return QUIRE_SUCCESS;
}

/* On WSL2 memory becomes resident when access is set, and NOT_READY may then mean that there is
   none (microsoft/WSL #41176). */
static bool is_exhausted(const qi_cuda *cuda, uint64_t size)
{
    size_t free = 0, total = 0;
    return !cuda->f.MemGetInfo(&free, &total) && free < size;
}

/* Returns true if the call is to be repeated: after a pause, and once more after releasing kept
   handles, whose memory it may need. */
static bool retries(qi_cuda *cuda, qi_cu_result code, uint32_t *pauses, bool *made_room,
                    pthread_mutex_t *held)
{
    if (qi_cuda_retry_access(code, pauses, held))
        return true;
    if (code != QI_CUDA_ERROR_NOT_READY || *made_room)
        return false;
    *pauses = 0;
    *made_room = qi_cuda_make_room(cuda, QI_CUDA_ERROR_OUT_OF_MEMORY);
    return *made_room;
}

/* Drivers set the access of chunks side by side in one call. A driver that refuses that gets a call
   for each. */
qi_cu_result qi_cuda_chunks_access(const qi_cuda *cuda, const qi_cuda_chunk *chunk, qi_cu_ptr at,
                                   uint64_t size, const qi_cu_access_desc *list, uint32_t count)
{
    qi_cu_result code = cuda->f.MemSetAccess(at, size, list, count);
    if (code != QI_CUDA_ERROR_INVALID_VALUE || !chunk || !chunk->next)
        return code;
    for (code = QI_CUDA_SUCCESS; chunk && !code; chunk = chunk->next) {
        code = cuda->f.MemSetAccess(at, chunk->size, list, count);
        at += chunk->size;
    }
    return code;
}

/* One call of the driver costs tens of microseconds whatever the size. */
quire_result qi_cuda_chunks_open(qi_cuda *cuda, const qi_cuda_page *page,
                                 const qi_cuda_chunk *chunk, qi_cu_ptr at, uint64_t size)
{
    qi_cu_access_desc made[QUIRE_CUDA_MAX_ACCESSES];
    const qi_cu_access_desc *list = page->elastic ? page->elastic->access : made;
    pthread_mutex_t *held = page->elastic ? &page->elastic->mutex : NULL;
    qi_cu_result code = QI_CUDA_SUCCESS;
    uint32_t pauses = 0;
    bool made_room = false;
    do { /* the list may change in a pause */
        uint32_t count = page->elastic ? page->elastic->access_count
                                       : qi_cuda_list_access(cuda, &cuda->kinds[page->kind], made);
        if (count)
            code = qi_cuda_chunks_access(cuda, chunk, at, size, list, count);
        else
            code = QI_CUDA_SUCCESS;
    } while (retries(cuda, code, &pauses, &made_room, held));
    if (code == QI_CUDA_ERROR_NOT_READY && is_exhausted(cuda, size))
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, code,
                                  "cuMemSetAccess of %s: CUDA_ERROR_NOT_READY (CUresult %u), and "
                                  "the device has less free memory than that",
                                  qi_bytes(size).text, code);
    return code ? qi_cuda_fail(&cuda->f, code, "cuMemSetAccess of %s", qi_bytes(size).text)
                : QUIRE_SUCCESS;
}

/* Bytes of reserved addresses. */
static uint64_t address_bytes(const qi_cuda_page *page)
{
    return page->elastic ? page->elastic->count * page->elastic->chunk_size : page->padded;
}

quire_result qi_cuda_virtual_reserve(const qi_cuda *cuda, uint64_t alignment, qi_cuda_page *page)
{
    const qi_cuda_kind *kind = &cuda->kinds[page->kind];
    uint64_t wanted = alignment > kind->granularity ? alignment : kind->granularity;
    uint64_t size = address_bytes(page);
    qi_cu_result code = cuda->f.MemAddressReserve(&page->reserved, size, wanted, 0, 0);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuMemAddressReserve of %s of addresses",
                            qi_bytes(size).text);
    page->address = page->reserved;
    if (kind->description.flags & QUIRE_HOST_VISIBLE)
        page->host = (void *)(uintptr_t)page->reserved; /* host and devices share addresses */
    return QUIRE_SUCCESS;
}

quire_result qi_cuda_virtual_map(qi_cuda *cuda, uint64_t alignment, qi_cuda_page *page)
{
    quire_result result = qi_cuda_virtual_reserve(cuda, alignment, page);
    if (!result)
        result = qi_cuda_chunks_map(cuda, page->chunks, page->reserved);
    return result ? result
                  : qi_cuda_chunks_open(cuda, page, page->chunks, page->reserved, page->padded);
}

/* All chunks have the types of the first one: only a page of one chunk is exportable. */
quire_result qi_cuda_virtual_create(qi_cuda *cuda, const quire_page_request *request,
                                    qi_cuda_page *page)
{
    if (cuda->kinds[page->kind].page_kind == QUIRE_CUDA_TILES)
        page->type = QI_CUDA_PAGE_TILES;
    quire_result result = choose_types(cuda, request, &page->types);
    if (!result)
        result = take_chunks(cuda, page);
    if (!result)
        page->types = page->chunks->types; /* granted by the driver */
    if (result || page->type == QI_CUDA_PAGE_TILES)
        return result;
    return qi_cuda_virtual_map(cuda, request->alignment, page);
}

/* ---- destroying pages --------------------------------------------------------------------- */

/* Unmaps the chunks from `chunk` up to `end`, which are mapped side by side. */
static qi_cu_result unmap_run(const qi_cuda *cuda, qi_cuda_chunk *chunk, const qi_cuda_chunk *end,
                              qi_cu_ptr at, uint64_t size)
{
    qi_cu_result code = cuda->f.MemUnmap(at, size);
    if (code && !qi_cuda_is_lost(code))
        return code;
    for (; chunk != end; chunk = chunk->next)
        chunk->is_mapped = false;
    return QI_CUDA_SUCCESS;
}

/* Drivers unmap a run of mappings in one call. The documentation promises that for one mapping
   only, so a refused run is unmapped one by one. */
static qi_cu_result unmap_side_by_side(const qi_cuda *cuda, qi_cuda_chunk *chunk,
                                       const qi_cuda_chunk *end, qi_cu_ptr at, uint64_t size)
{
    qi_cu_result code = unmap_run(cuda, chunk, end, at, size);
    if (code != QI_CUDA_ERROR_INVALID_VALUE || chunk->next == end)
        return code;
    for (code = QI_CUDA_SUCCESS; chunk != end && !code; chunk = chunk->next) {
        code = unmap_run(cuda, chunk, chunk->next, at, chunk->size);
        at += chunk->size;
    }
    return code;
}

bool qi_cuda_chunks_unmap(const qi_cuda *cuda, qi_cuda_chunk *chunk, qi_cu_ptr at)
{
    while (chunk) {
        qi_cuda_chunk *end = chunk;
        uint64_t size = 0;
        for (; end && end->is_mapped; end = end->next)
            size += end->size;
        if (size && unmap_side_by_side(cuda, chunk, end, at, size))
            return false;
        at += size;
        for (chunk = end; chunk && !chunk->is_mapped; chunk = chunk->next)
            at += chunk->size;
    }
    return true;
}

bool qi_cuda_virtual_destroy(qi_cuda *cuda, qi_cuda_page *page)
{
    if (!qi_cuda_chunks_unmap(cuda, page->chunks, page->reserved))
        return false;
    for (qi_cuda_chunk *next = NULL; page->chunks; page->chunks = next) {
        next = page->chunks->next;
        if (!release_chunk(cuda, page->chunks))
            return false;
    }
    qi_cu_result code = QI_CUDA_SUCCESS;
    if (page->reserved)
        code = cuda->f.MemAddressFree(page->reserved, address_bytes(page));
    return !code || qi_cuda_is_lost(code);
}
