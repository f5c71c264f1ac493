/*
 * chunk.c - acquires chunks, keeps them for further pages, and releases them.
 *
 * Creating a chunk costs milliseconds whatever its size, so settings.kept_bytes may keep released
 * ones. A kept chunk is reused for equal size, kind and handle types. All kept chunks are released
 * before out of memory is reported.
 */
#include "backends/cuda/page.h"
#include "src/base/result.h"

/* ---- kept chunks ------------------------------------------------------------------------ */

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

/* Returns false if the chunk must be released: it is never kept, or the limit is reached. */
static bool keep(qi_cuda *cuda, qi_cuda_chunk *chunk)
{
    if (chunk->is_never_kept || chunk->size > cuda->settings.kept_bytes)
        return false;
    pthread_mutex_lock(&cuda->mutex);
    bool has_room = cuda->kept_bytes <= cuda->settings.kept_bytes - chunk->size;
    if (has_room) {
        chunk->next = cuda->kept;
        cuda->kept = chunk;
        cuda->kept_bytes += chunk->size;
    }
    pthread_mutex_unlock(&cuda->mutex);
    return has_room;
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

/* ---- releasing -------------------------------------------------------------------------- */

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

bool qi_cuda_chunk_release(qi_cuda *cuda, qi_cuda_chunk *chunk)
{
    return keep(cuda, chunk) || release_handle(cuda, chunk);
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
        pthread_mutex_lock(&cuda->mutex);
        chunk->next = cuda->kept;
        cuda->kept = chunk;
        cuda->kept_bytes += chunk->size;
        pthread_mutex_unlock(&cuda->mutex);
    }
    return all;
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

/* ---- creating --------------------------------------------------------------------------- */

/* Records whether the driver creates fabric handles, for quire_cuda_get_info and later chunks. */
static void record_fabric(qi_cuda *cuda, qi_cu_result code)
{
    qi_atomic_store_release_u32(&cuda->fabric_code, code);
    qi_atomic_store_release_u32(&cuda->fabric,
                                code ? QUIRE_CUDA_FABRIC_REFUSED : QUIRE_CUDA_FABRIC_GRANTED);
}

/* Out of memory and a lost device say nothing about fabric handles and are not recorded. */
static qi_cu_result create(qi_cuda *cuda, const qi_cuda_kind *kind, qi_cuda_chunk *chunk)
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
    qi_cu_result code = create(cuda, kind, chunk);
    if (code && chunk->types & QUIRE_CUDA_FABRIC && chunk->types & QUIRE_CUDA_FD &&
        is_fabric_refused(cuda)) {
        chunk->types = QUIRE_CUDA_FD;
        code = create(cuda, kind, chunk);
    }
    return qi_cuda_make_room(cuda, code) ? create(cuda, kind, chunk) : code;
}

void qi_cuda_chunk_query(const qi_cuda *cuda, qi_cuda_chunk *chunk)
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
        qi_cuda_chunk_query(cuda, chunk);
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
    qi_cuda_chunk_query(cuda, chunk);
    *out = chunk;
    return QUIRE_SUCCESS;
}
