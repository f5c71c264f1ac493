/*
 * chunk.c - allocation handles of the driver: made, kept for further pages, released.
 *
 * Making a handle costs milliseconds whatever its size, so that the settings may have some of them
 * kept. Of kept ones nothing but the size, the kind and what they can be exported as matters. They
 * are given back before memory is said to be short.
 */
#include "backends/cuda/cuda.h"
#include "src/base/result.h"

/* ---- kept ones ---------------------------------------------------------------------------- */

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

static bool keep(qi_cuda *cuda, qi_cuda_chunk *chunk)
{
    if (chunk->is_foreign || chunk->size > cuda->settings.kept_bytes)
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

static qi_cuda_chunk *take_any_kept(qi_cuda *cuda)
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

/* ---- given back --------------------------------------------------------------------------- */

static bool release(qi_cuda *cuda, qi_cuda_chunk *chunk)
{
    qi_cu_result code = chunk->is_callers ? QI_CUDA_SUCCESS : cuda->f.MemRelease(chunk->handle);
    if (code && !qi_cuda_is_lost(code))
        return false;
    qi_host_release(&cuda->host, chunk, 1, sizeof *chunk);
    return true;
}

bool qi_cuda_chunk_give(qi_cuda *cuda, qi_cuda_chunk *chunk)
{
    return keep(cuda, chunk) || release(cuda, chunk);
}

bool qi_cuda_release_chunks(qi_cuda *cuda)
{
    qi_cuda_chunk *refused = NULL, *chunk = NULL;
    if (qi_cuda_has_forked(cuda))
        return true;
    while ((chunk = take_any_kept(cuda)) != NULL)
        if (!release(cuda, chunk)) {
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

/* ---- made --------------------------------------------------------------------------------- */

/* What a fabric handle came to, told by quire_cuda_get_info. */
static void note_fabric(qi_cuda *cuda, qi_cu_result code)
{
    qi_atomic_store_release_u32(&cuda->fabric_code, code);
    qi_atomic_store_release_u32(&cuda->fabric,
                                code ? QUIRE_CUDA_FABRIC_REFUSED : QUIRE_CUDA_FABRIC_GRANTED);
}

static qi_cu_result create(qi_cuda *cuda, const qi_cuda_kind *kind, qi_cuda_chunk *chunk)
{
    qi_cu_allocation_prop prop = qi_cuda_prop(cuda, kind, chunk->types);
    qi_cu_result code = cuda->f.MemCreate(&chunk->handle, chunk->size, &prop, 0);
    if (!(chunk->types & QUIRE_CUDA_FABRIC))
        return code;
    if (!code || (code != QI_CUDA_ERROR_OUT_OF_MEMORY && !qi_cuda_is_lost(code)))
        note_fabric(cuda, code);
    return code;
}

static bool is_fabric_refused(qi_cuda *cuda)
{
    return qi_atomic_load_acquire_u32(&cuda->fabric) == QUIRE_CUDA_FABRIC_REFUSED;
}

/* Without the fabric handle where that is refused; again once what is kept was given back. */
static qi_cu_result create_somehow(qi_cuda *cuda, const qi_cuda_kind *kind, qi_cuda_chunk *chunk)
{
    qi_cu_result code = create(cuda, kind, chunk);
    if (code && chunk->types & QUIRE_CUDA_FABRIC && chunk->types & QUIRE_CUDA_FD &&
        is_fabric_refused(cuda)) {
        chunk->types = QUIRE_CUDA_FD;
        code = create(cuda, kind, chunk);
    }
    pthread_mutex_lock(&cuda->mutex);
    bool has_kept = cuda->kept != NULL;
    pthread_mutex_unlock(&cuda->mutex);
    if (code != QI_CUDA_ERROR_OUT_OF_MEMORY || !has_kept)
        return code;
    qi_cuda_release_chunks(cuda);
    return create(cuda, kind, chunk);
}

void qi_cuda_chunk_look(const qi_cuda *cuda, qi_cuda_chunk *chunk)
{
    qi_cu_allocation_prop granted = {.type = 0};
    if (!cuda->f.MemGetAllocationPropertiesFromHandle ||
        cuda->f.MemGetAllocationPropertiesFromHandle(&granted, chunk->handle))
        return;
    chunk->is_compressed = granted.allocFlags.compressionType == QI_CU_MEM_ALLOCATION_COMP_GENERIC;
    chunk->is_rdma_capable = granted.allocFlags.gpuDirectRDMACapable != 0;
    chunk->is_decompressible =
        (granted.allocFlags.usage & QI_CU_MEM_CREATE_USAGE_HW_DECOMPRESS) != 0;
}

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

quire_result qi_cuda_chunk_take(qi_cuda *cuda, uint32_t kind, uint64_t size,
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
    qi_cu_result code = create_somehow(cuda, of, chunk);
    if (code) {
        qi_host_release(&cuda->host, chunk, 1, sizeof *chunk);
        return qi_cuda_fail(&cuda->f, code, "cuMemCreate of %s of memory kind %u",
                            qi_bytes(size).text, kind);
    }
    if (of->page_kind == QUIRE_CUDA_COMPRESSED || of->page_kind == QUIRE_CUDA_REGISTERED ||
        cuda->settings.hardware_decompression)
        qi_cuda_chunk_look(cuda, chunk);
    *out = chunk;
    return QUIRE_SUCCESS;
}

quire_result qi_cuda_chunk_adopt(qi_cuda *cuda, uint32_t kind, uint64_t size, qi_cu_handle handle,
                                 qi_cuda_chunk **out)
{
    qi_cuda_chunk *chunk = new_chunk(cuda, kind, size);
    if (!chunk)
        return QUIRE_ERROR_OUT_OF_HOST_MEMORY;
    chunk->handle = handle;
    chunk->is_foreign = true;
    qi_cuda_chunk_look(cuda, chunk);
    *out = chunk;
    return QUIRE_SUCCESS;
}
