/*
 * device.c - what a CUDA device reports to the core, and finding the state of a device or memory.
 */
#include <stdio.h>

#include "backends/cuda/cuda.h"
#include "src/base/result.h"

/* ---- describing ------------------------------------------------------------------------- */

/* An intent is served by the first kind. Returns true if pages of that kind can be exported. */
static bool is_exportable(const qi_cuda *cuda)
{
    switch (cuda->kinds[0].page_kind) {
    case QUIRE_CUDA_PLAIN:
    case QUIRE_CUDA_HOST:
    case QUIRE_CUDA_MANAGED:
    case QUIRE_CUDA_TILES:
    case QUIRE_CUDA_POOL:
        return false;
    default:
        return cuda->capabilities.fd && cuda->capabilities.host_register;
    }
}

quire_result qi_cuda_describe(void *state, quire_device_info *info)
{
    const qi_cuda *cuda = state;
    snprintf(info->name, sizeof info->name, "%s", cuda->name);
    info->heap_count = 2;
    info->heaps[0] = (quire_heap){.size = cuda->device_bytes, .flags = QUIRE_HEAP_DEVICE_LOCAL};
    info->heaps[1] = (quire_heap){.size = qi_cuda_host_bytes()};
    info->kind_count = cuda->kind_count;
    for (uint32_t i = 0; i < cuda->kind_count; i++)
        info->kinds[i] = cuda->kinds[i].description;
    info->limits = (quire_limits){
        .page_granularity = cuda->kinds[0].granularity,
        .page_alignment = cuda->page_alignment,
        .buffer_alignment = QI_CUDA_ALIGNMENT,
        .image_row_alignment = cuda->capabilities.row_alignment,
    };
    for (uint32_t i = 0; i < cuda->kind_count; i++)
        if (qi_cuda_kind_is_elastic(&cuda->kinds[i]))
            info->limits.elastic_kinds |= UINT64_C(1) << i;
    info->exportable = is_exportable(cuda);
    return QUIRE_SUCCESS;
}

/* Nanoseconds. cuMemGetInfo costs microseconds, on some systems milliseconds. */
static const uint64_t BUDGET_LIFETIME = 100000000;

/* Of the host heap only its present size is known. Of the device heap the driver counts the memory
   of all processes. Kept chunks count as free, because quire releases them before it reports that
   memory is exhausted. */
quire_result qi_cuda_heap_budget(void *state, uint32_t heap, quire_heap_budget *budget)
{
    qi_cuda *cuda = state;
    size_t free = 0, total = 0;
    budget->lifetime = BUDGET_LIFETIME;
    if (heap != 0) {
        budget->budget = qi_cuda_host_bytes();
        return QUIRE_SUCCESS;
    }
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    qi_cu_result code = cuda->f.MemGetInfo(&free, &total);
    qi_cuda_leave(cuda);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuMemGetInfo");
    pthread_mutex_lock(&cuda->mutex);
    uint64_t kept = cuda->kept_bytes;
    pthread_mutex_unlock(&cuda->mutex);
    uint64_t used = total > free ? total - free : 0;
    budget->budget = total;
    budget->usage = used > kept ? used - kept : 0;
    return QUIRE_SUCCESS;
}

/* ---- whose device is it ----------------------------------------------------------------- */

/* Both tables of table.c share this entry, and no other backend has it. */
qi_cuda *qi_cuda_of(const quire_device *device)
{
    const quire_backend *table = quire_device_backend(device);
    if (table && table->describe == qi_cuda_describe) {
        qi_cuda *cuda = quire_device_state(device);
        return qi_cuda_check_process(cuda) ? NULL : cuda;
    }
    qi_ignore(qi_fail_backend(device ? quire_device_backend(device)->name : NULL, "cuda"));
    return NULL;
}

static quire_result refuse_memory(void)
{
    return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the memory is not of the CUDA backend");
}

quire_result qi_cuda_of_memory(const quire_memory *memory, quire_memory_info *info, qi_cuda **cuda)
{
    quire_result result = quire_memory_get_info(memory, info);
    if (result)
        return result;
    *cuda = qi_cuda_of(info->device);
    return *cuda ? QUIRE_SUCCESS : refuse_memory();
}

quire_result qi_cuda_find_native(const quire_memory *memory, quire_allocation allocation,
                                 quire_native *native, qi_cuda **cuda)
{
    quire_result result = quire_allocation_get_native(memory, allocation, native);
    if (result)
        return result;
    *cuda = qi_cuda_of(native->device);
    return *cuda ? QUIRE_SUCCESS : refuse_memory();
}
