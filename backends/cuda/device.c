/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * device.c - a capability requires an attribute of the device and the functions of the driver. The
 * memory kinds are those that the settings or the user's variable request, or else the usual ones.
 * Also granularities, budgets, the description for the core, and the state behind public handles.
 */
#include "backends/cuda/device.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- capabilities ------------------------------------------------------------------------- */

/*
 * A capability requires the attribute of the device and the driver's functions for it. An attribute
 * that an older driver does not know counts as 0.
 */

static const uint64_t TEXTURE_ALIGNMENT = 512; /* bytes, if the device reports none */

/* The first drivers with chunks of host memory at a node, with the attribute for that, and with
   chunks at no particular node. */
enum { HOST_NUMA_DRIVER = 12020, HOST_NUMA_ATTRIBUTE_DRIVER = 12090, HOST_DRIVER = 13000 };

/* Reads an attribute. *value is `otherwise` if the driver does not know the attribute. */
static quire_result query(const qi_cuda *cuda, qi_cu_attribute attribute, int otherwise, int *value)
{
    *value = otherwise;
    qi_cu_result code = cuda->f.DeviceGetAttribute(value, attribute, cuda->device);
    if (!code)
        return QUIRE_SUCCESS;
    *value = otherwise;
    if (code == QI_CUDA_ERROR_INVALID_VALUE || code == QI_CUDA_ERROR_NOT_SUPPORTED)
        return QUIRE_SUCCESS;
    return qi_cuda_fail(&cuda->f, code, "cuDeviceGetAttribute of attribute %u", attribute);
}

static uint64_t power_or(int value, uint64_t otherwise)
{
    return value > 0 && qi_is_power_of_two((uint64_t)value) ? (uint64_t)value : otherwise;
}

static bool has_virtual_functions(const qi_cuda_functions *f)
{
    return f->MemGetAllocationGranularity && f->MemCreate && f->MemRelease &&
           f->MemAddressReserve && f->MemAddressFree && f->MemMap && f->MemUnmap && f->MemSetAccess;
}

static bool has_multicast_functions(const qi_cuda_functions *f)
{
    return f->MulticastCreate && f->MulticastAddDevice && f->MulticastBindMem &&
           f->MulticastUnbind && f->MulticastGetGranularity;
}

static bool has_pool_functions(const qi_cuda_functions *f)
{
    return f->MemPoolCreate && f->MemPoolDestroy && f->MemPoolSetAttribute &&
           f->MemPoolGetAttribute && f->MemPoolTrimTo && f->MemPoolSetAccess &&
           f->MemPoolGetAccess && f->DeviceGetMemPool && f->DeviceGetDefaultMemPool &&
           f->MemAllocFromPoolAsync && f->MemFreeAsync;
}

void qi_cuda_match_functions(const qi_cuda *cuda, qi_cuda_capabilities *o)
{
    const qi_cuda_functions *f = &cuda->f;
    o->virtual_memory &= has_virtual_functions(f);
    o->fd &= o->virtual_memory && f->MemExportToShareableHandle != NULL;
    o->fabric &= o->virtual_memory && f->MemExportToShareableHandle != NULL;
    o->dma_buf &= f->MemGetHandleForAddressRange != NULL;
    o->rdma &= o->virtual_memory;
    o->compression &= o->virtual_memory && f->MemGetAllocationPropertiesFromHandle != NULL;
    o->multicast &= o->virtual_memory && has_multicast_functions(f);
    o->host_numa &= o->virtual_memory && cuda->driver_version >= HOST_NUMA_DRIVER;
    o->host &= o->virtual_memory && cuda->driver_version >= HOST_DRIVER;
    o->pools &= has_pool_functions(f);
    o->managed &= f->MemAllocManaged != NULL;
    bool has_arrays = o->virtual_memory && f->MemMapArrayAsync && f->Array3DCreate &&
                      f->ArrayDestroy && f->MipmappedArrayCreate && f->MipmappedArrayDestroy;
    o->deferred_mapping_arrays &=
        has_arrays && f->ArrayGetMemoryRequirements && f->MipmappedArrayGetMemoryRequirements;
    o->sparse_arrays &=
        has_arrays && f->ArrayGetSparseProperties && f->MipmappedArrayGetSparseProperties;
    o->host_register &= f->MemHostRegister != NULL && f->MemHostUnregister != NULL;
}

quire_result qi_cuda_query_capabilities(const qi_cuda *cuda, qi_cuda_capabilities *o)
{
    const struct {
        qi_cu_attribute attribute;
        bool *target;
    } table[] = {
        {QI_CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED, &o->virtual_memory},
        {QI_CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, &o->fd},
        {QI_CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, &o->fabric},
        {QI_CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, &o->dma_buf},
        {QI_CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, &o->rdma},
        {QI_CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED, &o->compression},
        {QI_CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, &o->multicast},
        {QI_CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, &o->host},
        /* managed pages are mapped for the host all the time, also while work runs */
        {QI_CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, &o->managed},
        {QI_CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, &o->host_register},
        {QI_CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, &o->deferred_mapping_arrays},
        {QI_CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, &o->pools},
        {QI_CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED, &o->sparse_arrays},
    };
    int value = 0;
    quire_result result = QUIRE_SUCCESS;
    for (size_t i = 0; i < sizeof table / sizeof *table && !result; i++) {
        result = query(cuda, table[i].attribute, 0, &value);
        *table[i].target = value > 0;
    }
    if (!result) /* a trial allocation decides if the driver does not know the attribute */
        result = query(cuda, QI_CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                       cuda->driver_version < HOST_NUMA_ATTRIBUTE_DRIVER, &value);
    o->host_numa = value > 0;
    if (!result)
        result = query(cuda, QI_CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, -1, &o->numa_node);
    if (!result)
        result = query(cuda, QI_CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 0, &value);
    o->texture_alignment = power_or(value, TEXTURE_ALIGNMENT);
    if (!result)
        result = query(cuda, QI_CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 0, &value);
    o->row_alignment = power_or(value, TEXTURE_ALIGNMENT);
    return result;
}

/* ---- granularity -------------------------------------------------------------------------- */

/* The driver reports the granularity for exactly the properties that the pages of a kind have. */

qi_cu_allocation_prop qi_cuda_allocation_prop(const qi_cuda *cuda, const qi_cuda_kind *kind,
                                              quire_cuda_handle_types types)
{
    qi_cu_allocation_prop prop = {
        .type = QI_CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = types,
        .location = {.type = QI_CU_MEM_LOCATION_TYPE_DEVICE, .id = cuda->device},
    };
    if (kind->page_kind == QUIRE_CUDA_HOST_NUMA)
        prop.location =
            (qi_cu_location){.type = QI_CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = kind->node};
    if (kind->page_kind == QUIRE_CUDA_HOST)
        prop.location = (qi_cu_location){.type = QI_CU_MEM_LOCATION_TYPE_HOST};
    if (cuda->settings.hardware_decompression &&
        prop.location.type == QI_CU_MEM_LOCATION_TYPE_DEVICE)
        prop.allocFlags.usage = QI_CU_MEM_CREATE_USAGE_HW_DECOMPRESS;
    if (kind->page_kind == QUIRE_CUDA_TILES)
        prop.allocFlags.usage = QI_CU_MEM_CREATE_USAGE_TILE_POOL;
    if (kind->page_kind == QUIRE_CUDA_COMPRESSED)
        prop.allocFlags.compressionType = QI_CU_MEM_ALLOCATION_COMP_GENERIC;
    prop.allocFlags.gpuDirectRDMACapable = kind->is_rdma;
    return prop;
}

/* Raises *least to the granularity of exactly these properties. */
static quire_result raise_granularity(const qi_cuda *cuda, const qi_cu_allocation_prop *prop,
                                      qi_cu_granularity option, uint64_t *least)
{
    size_t size = 0;
    qi_cu_result code = cuda->f.MemGetAllocationGranularity(&size, prop, option);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuMemGetAllocationGranularity");
    if (!qi_is_power_of_two(size))
        return quire_backend_fail(QUIRE_ERROR_BACKEND_FAILURE, 0,
                                  "the driver's granularity is %zu bytes, not a power of two",
                                  size);
    qi_raise(least, size);
    return QUIRE_SUCCESS;
}

/* Covers exportable memory as well. The driver may refuse the fabric handle; pages are then created
   without it, so its granularity does not count. */
static quire_result raise_both(const qi_cuda *cuda, const qi_cuda_kind *kind,
                               qi_cu_granularity option, uint64_t *least)
{
    qi_cu_allocation_prop prop = qi_cuda_allocation_prop(cuda, kind, 0);
    quire_result result = raise_granularity(cuda, &prop, option, least);
    if (result || !cuda->capabilities.fd || kind->page_kind == QUIRE_CUDA_HOST ||
        kind->page_kind == QUIRE_CUDA_TILES)
        return result;
    qi_error before;
    qi_error_save(&before);
    prop.requestedHandleTypes = cuda->settings.export_types;
    result = raise_granularity(cuda, &prop, option, least);
    if (result && prop.requestedHandleTypes & QUIRE_CUDA_FABRIC) {
        qi_error_restore(&before);
        prop.requestedHandleTypes = QUIRE_CUDA_FD;
        result = raise_granularity(cuda, &prop, option, least);
    }
    return result;
}

/* Memory that several devices access has the coarsest of their granularities. */
static quire_result raise_peers(const qi_cuda *cuda, const qi_cuda_kind *kind,
                                qi_cu_granularity option, uint64_t *least)
{
    quire_result result = QUIRE_SUCCESS;
    qi_cu_allocation_prop prop = qi_cuda_allocation_prop(cuda, kind, 0);
    if (prop.location.type != QI_CU_MEM_LOCATION_TYPE_DEVICE ||
        kind->page_kind == QUIRE_CUDA_TILES) /* arrays are mapped for one device only */
        return QUIRE_SUCCESS;
    for (uint32_t i = 0; i < cuda->peer_count && !result; i++) {
        prop = (qi_cu_allocation_prop){
            .type = QI_CU_MEM_ALLOCATION_TYPE_PINNED,
            .location = {.type = QI_CU_MEM_LOCATION_TYPE_DEVICE, .id = cuda->peers[i]}};
        result = raise_granularity(cuda, &prop, option, least);
    }
    return result;
}

/* Memory for registration always uses the recommended granularity. */
quire_result qi_cuda_find_granularity(const qi_cuda *cuda, qi_cuda_kind *kind)
{
    uint64_t least = 1, recommended = 1;
    quire_result result = raise_both(cuda, kind, QI_CU_MEM_ALLOC_GRANULARITY_MINIMUM, &least);
    if (!result)
        result = raise_peers(cuda, kind, QI_CU_MEM_ALLOC_GRANULARITY_MINIMUM, &least);
    if (!result)
        result = raise_both(cuda, kind, QI_CU_MEM_ALLOC_GRANULARITY_RECOMMENDED, &recommended);
    if (!result)
        result = raise_peers(cuda, kind, QI_CU_MEM_ALLOC_GRANULARITY_RECOMMENDED, &recommended);
    qi_raise(&recommended, least);
    bool is_coarse =
        cuda->settings.recommended_granularity || kind->page_kind == QUIRE_CUDA_REGISTERED;
    kind->recommended = recommended;
    kind->granularity = is_coarse ? recommended : least;
    return result;
}

/* ---- memory kinds ------------------------------------------------------------------------- */

const char *const qi_cuda_kind_names[QUIRE_CUDA_PAGE_KINDS] = {
    "device",    "plain", "compressed", "registered", "pinned", "combined",
    "host NUMA", "host",  "managed",    "tile pools", "pool",
};

static bool is_offered(const qi_cuda_capabilities *o, quire_cuda_page_kind page_kind)
{
    switch (page_kind) {
    case QUIRE_CUDA_COMPRESSED:
        return o->compression;
    case QUIRE_CUDA_REGISTERED:
        return o->rdma && o->fd;
    case QUIRE_CUDA_HOST_NUMA:
        return o->host_numa;
    case QUIRE_CUDA_HOST:
        return o->host;
    case QUIRE_CUDA_MANAGED:
        return o->managed;
    case QUIRE_CUDA_POOL:
        return o->pools;
    case QUIRE_CUDA_TILES:
        return o->deferred_mapping_arrays || o->sparse_arrays;
    default:
        return true;
    }
}

static const quire_memory_flags CACHED =
    QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT | QUIRE_HOST_CACHED;

static const uint64_t PLAIN_GRANULARITY = 64 << 10;

/* A kind before its granularity is known. Kinds without virtual memory keep PLAIN_GRANULARITY. */
static qi_cuda_kind describe_kind(const qi_cuda *cuda, quire_cuda_page_kind page_kind, int node)
{
    qi_cuda_kind kind = {.page_kind = page_kind, .node = node, .granularity = PLAIN_GRANULARITY};
    switch (page_kind) {
    case QUIRE_CUDA_DEVICE:
        kind.is_virtual = cuda->capabilities.virtual_memory &&
                          !(cuda->settings.without & QUIRE_CUDA_WITHOUT_VIRTUAL_MEMORY);
        kind.description.flags = QUIRE_DEVICE_LOCAL;
        break;
    case QUIRE_CUDA_COMPRESSED:
    case QUIRE_CUDA_REGISTERED:
        kind.is_virtual = true;
        kind.is_rdma = page_kind == QUIRE_CUDA_REGISTERED;
        kind.description.flags = QUIRE_DEVICE_LOCAL;
        break;
    case QUIRE_CUDA_TILES:
        kind.is_virtual = true;
        kind.description.flags = QUIRE_DEVICE_LOCAL | QUIRE_OBJECTS_ONLY;
        break;
    case QUIRE_CUDA_PLAIN:
    case QUIRE_CUDA_POOL:
        kind.description.flags = QUIRE_DEVICE_LOCAL;
        break;
    case QUIRE_CUDA_COMBINED:
        kind.description.flags = QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT;
        break;
    case QUIRE_CUDA_HOST_NUMA:
    case QUIRE_CUDA_HOST:
        kind.is_virtual = true;
        kind.description.flags = CACHED;
        break;
    case QUIRE_CUDA_PINNED:
    case QUIRE_CUDA_MANAGED:
        kind.description.flags = CACHED;
        break;
    }
    kind.description.heap = kind.description.flags & QUIRE_DEVICE_LOCAL ? 0 : 1;
    return kind;
}

/* Tile pools have no addresses. Pages for registration are one chunk, which keeps its size. */
bool qi_cuda_kind_is_elastic(const qi_cuda_kind *kind)
{
    return kind->is_virtual && kind->page_kind != QUIRE_CUDA_TILES &&
           kind->page_kind != QUIRE_CUDA_REGISTERED;
}

/* Returns true for a result by which a driver refuses what an attribute promises, as in a
   container. */
static bool is_refusal(quire_result result)
{
    return result == QUIRE_ERROR_UNSUPPORTED || result == QUIRE_ERROR_NOT_PERMITTED ||
           result == QUIRE_ERROR_INVALID_ARGUMENT;
}

/* Adds one kind. A refused device kind falls back to cuMemAlloc. */
static quire_result add_kind(qi_cuda *cuda, quire_cuda_page_kind page_kind, int node)
{
    if (cuda->kind_count == QUIRE_MAX_KINDS)
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED, "more than %u memory kinds", QUIRE_MAX_KINDS);
    qi_cuda_kind kind = describe_kind(cuda, page_kind, node);
    qi_error before;
    qi_error_save(&before);
    quire_result result = kind.is_virtual ? qi_cuda_find_granularity(cuda, &kind) : QUIRE_SUCCESS;
    if (is_refusal(result) && page_kind == QUIRE_CUDA_DEVICE) {
        qi_error_restore(&before);
        cuda->capabilities.virtual_memory = false; /* cuMemAlloc remains */
        qi_cuda_match_functions(cuda, &cuda->capabilities);
        kind = describe_kind(cuda, page_kind, node);
    } else if (result) {
        return result;
    }
    if (cuda->settings.hardware_decompression && page_kind == QUIRE_CUDA_DEVICE && !kind.is_virtual)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "device pages of '%s' are not of virtual memory management, which "
                            "hardware decompression requires",
                            cuda->name);
    if (!kind.is_virtual && kind.description.flags & QUIRE_DEVICE_LOCAL)
        cuda->page_alignment = QI_CUDA_ALIGNMENT; /* aligning further would waste device memory */
    cuda->kinds[cuda->kind_count++] = kind;
    return QUIRE_SUCCESS;
}

bool qi_cuda_has_kind(const qi_cuda *cuda, quire_cuda_page_kind page_kind)
{
    for (uint32_t i = 0; i < cuda->kind_count; i++)
        if (cuda->kinds[i].page_kind == page_kind)
            return true;
    return false;
}

/* Adds one kind for each host node of the settings, or for the nearest node if they name none. */
static quire_result add_nodes(qi_cuda *cuda)
{
    uint64_t nodes = cuda->settings.numa_nodes;
    int nearest = cuda->capabilities.numa_node;
    quire_result result = QUIRE_SUCCESS;
    if (!nodes)
        return add_kind(cuda, QUIRE_CUDA_HOST_NUMA, nearest < 0 ? 0 : nearest);
    for (; nodes && !result; nodes &= nodes - 1)
        result = add_kind(cuda, QUIRE_CUDA_HOST_NUMA, (int)qi_lowest_bit(nodes));
    return result;
}

/* The kinds that the settings name, or else those that the variable allows, or else the usual ones.
   Memory of host nodes is not usual: no intent selects it, and some drivers crash at it. */
static uint32_t wanted_kinds(const qi_cuda *cuda)
{
    const quire_cuda_settings *s = &cuda->settings;
    uint32_t usual = QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_DEVICE) |
                     QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_PINNED) |
                     QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_COMBINED);
    if (s->kinds)
        return s->kinds;
    return (cuda->allowed_kinds ? cuda->allowed_kinds : usual) |
           (s->numa_nodes ? QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_HOST_NUMA) : 0);
}

static quire_result check_kind(const qi_cuda *cuda, quire_cuda_page_kind page_kind)
{
    if (cuda->allowed_kinds && !(cuda->allowed_kinds & QUIRE_CUDA_KIND_BIT(page_kind)))
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "the variable QUIRE_CUDA_KINDS leaves out pages of kind %s",
                            qi_cuda_kind_names[page_kind]);
    return is_offered(&cuda->capabilities, page_kind)
               ? QUIRE_SUCCESS
               : qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "'%s' has no pages of kind %s", cuda->name,
                              qi_cuda_kind_names[page_kind]);
}

quire_result qi_cuda_add_kinds(qi_cuda *cuda)
{
    uint32_t wanted = wanted_kinds(cuda);
    quire_result result = QUIRE_SUCCESS;
    for (int i = 0; i < QUIRE_CUDA_PAGE_KINDS && !result; i++) {
        quire_cuda_page_kind page_kind = (quire_cuda_page_kind)i;
        if (!(wanted >> i & 1))
            continue;
        result = check_kind(cuda, page_kind);
        if (!result)
            result =
                page_kind == QUIRE_CUDA_HOST_NUMA ? add_nodes(cuda) : add_kind(cuda, page_kind, -1);
    }
    return result;
}

/* ---- page sizes --------------------------------------------------------------------------- */

/* RAM of the machine now, in bytes, because virtual machines grow. 1 TiB if the system does not
   report it. */
static uint64_t host_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_C(1) << 40;
}

/*
 * Compares with the heap first: some drivers accept requests for host memory that does not exist.
 */
quire_result qi_cuda_round_size(const qi_cuda *cuda, uint32_t kind, uint64_t size, uint64_t *padded)
{
    const qi_cuda_kind *of = &cuda->kinds[kind];
    uint64_t max = of->description.heap ? host_bytes() : cuda->device_bytes;
    if (size > max || qi_align_up_overflows(size, of->granularity, padded))
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, 0,
                                  "%s requested: the heap of memory kind %u has %s in total",
                                  qi_bytes(size).text, kind, qi_bytes(max).text);
    return QUIRE_SUCCESS;
}

/* ---- describing --------------------------------------------------------------------------- */

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
    info->heaps[1] = (quire_heap){.size = host_bytes()};
    info->kind_count = cuda->kind_count;
    for (uint32_t i = 0; i < cuda->kind_count; i++)
        info->kinds[i] = cuda->kinds[i].description;
    info->limits = (quire_limits){
        .page_granularity = cuda->kinds[0].granularity,
        .page_alignment = cuda->page_alignment,
        .buffer_alignment = QI_CUDA_ALIGNMENT,
        .image_row_alignment = cuda->capabilities.row_alignment,
        .max_chunks = cuda->settings.max_chunks,
        .elastic_rules = cuda->settings.elastic_rules,
    };
    for (uint32_t i = 0; i < cuda->kind_count; i++) {
        const qi_cuda_kind *kind = &cuda->kinds[i];
        if (!qi_cuda_kind_is_elastic(kind))
            continue;
        info->limits.elastic_kinds |= UINT64_C(1) << i;
        if (info->limits.elastic_granularity < kind->granularity)
            info->limits.elastic_granularity = kind->granularity;
    }
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
        budget->budget = host_bytes();
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

/* ---- whose device it is ------------------------------------------------------------------- */

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

/* ---- public calls ------------------------------------------------------------------------- */

quire_result quire_cuda_get_info(const quire_device *device, quire_cuda_info *info)
{
    if (!info)
        return qi_fail_null("quire_cuda_get_info", "info");
    *info = (quire_cuda_info){.context = NULL};
    qi_cuda *cuda = qi_cuda_of(device);
    if (!cuda)
        return quire_last_result();
    const qi_cuda_capabilities *o = &cuda->capabilities;
    pthread_mutex_lock(&cuda->mutex); /* of kept_bytes */
    uint64_t kept = cuda->kept_bytes;
    pthread_mutex_unlock(&cuda->mutex);
    *info = (quire_cuda_info){
        .context = cuda->context,
        .ordinal = cuda->device,
        .driver_version = (uint32_t)cuda->driver_version,
        .is_primary = cuda->is_primary,
        .has_virtual_memory = o->virtual_memory,
        .has_fd = o->fd,
        .has_dma_buf = o->dma_buf,
        .has_rdma = o->rdma,
        .has_compression = o->compression,
        .has_multicast = o->multicast,
        .has_host_numa = o->host_numa,
        .has_host = o->host,
        .has_deferred_arrays = o->deferred_mapping_arrays,
        .has_sparse_arrays = o->sparse_arrays,
        .has_pools = o->pools,
        .numa_node = o->numa_node,
        .fabric = (quire_cuda_fabric)qi_atomic_load_acquire_u32(&cuda->fabric),
        .fabric_code = (int32_t)qi_atomic_load_u32(&cuda->fabric_code),
        .kept_bytes = kept,
    };
    memcpy(info->uuid, cuda->uuid, sizeof info->uuid);
    return QUIRE_SUCCESS;
}

quire_result quire_cuda_get_kind_info(const quire_device *device, uint32_t kind,
                                      quire_cuda_kind_info *info)
{
    if (!info)
        return qi_fail_null("quire_cuda_get_kind_info", "info");
    *info = (quire_cuda_kind_info){.node = 0};
    const qi_cuda *cuda = qi_cuda_of(device);
    if (!cuda)
        return quire_last_result();
    if (kind >= cuda->kind_count)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                            "there is no memory kind %u: the device has %u", kind,
                            cuda->kind_count);
    const qi_cuda_kind *found = &cuda->kinds[kind];
    *info = (quire_cuda_kind_info){
        .page_kind = found->page_kind,
        .node = found->node,
        .is_virtual_memory = found->is_virtual,
        .granularity = found->granularity,
        .recommended = found->recommended,
        .is_rdma_capable = found->is_rdma,
        .export_types = found->types,
    };
    return QUIRE_SUCCESS;
}

/* A node of -1 matches every node. */
quire_result quire_cuda_find_kind(const quire_device *device, quire_cuda_page_kind page_kind,
                                  int32_t node, uint32_t *kind)
{
    if (kind)
        *kind = 0;
    if (!kind)
        return qi_fail_null("quire_cuda_find_kind", "kind");
    const qi_cuda *cuda = qi_cuda_of(device);
    if (!cuda)
        return quire_last_result();
    if ((uint32_t)page_kind >= QUIRE_CUDA_PAGE_KINDS || node < -1)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                            "unknown page kind %d, or unknown node %d", (int)page_kind, node);
    for (uint32_t i = 0; i < cuda->kind_count; i++)
        if (cuda->kinds[i].page_kind == page_kind && (node < 0 || cuda->kinds[i].node == node)) {
            *kind = i;
            return QUIRE_SUCCESS;
        }
    return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "device '%s' has no pages of kind %d, node %d",
                        cuda->name, (int)page_kind, node);
}

/* The page lives as long as the allocation, so its record is read without a lock. */
quire_result quire_cuda_get_range(const quire_memory *memory, quire_allocation allocation,
                                  quire_cuda_range *range)
{
    if (range)
        *range = (quire_cuda_range){.size = 0};
    if (!memory || !range)
        return qi_fail_null("quire_cuda_get_range", !memory ? "memory" : "range");
    quire_native native;
    qi_cuda *cuda = NULL;
    quire_result result = qi_cuda_find_native(memory, allocation, &native, &cuda);
    if (result)
        return result;
    const qi_cuda_page *page = qi_cuda_page_of(&native.page);
    const qi_cuda_chunk *first = page->chunks;
    if (page->elastic) { /* other chunks may come and go; those of the allocation stay */
        first = page->elastic->chunks[native.offset / page->elastic->chunk_size];
        pthread_mutex_lock(&cuda->mutex);
    }
    *range = (quire_cuda_range){
        .address = page->address ? page->address + native.offset : 0,
        .size = native.size,
        .host = page->host ? (char *)page->host + native.offset : NULL,
        .page_address = page->address,
        .page_offset = native.offset,
        .page_size = page->requested,
        .padded_size = page->padded,
        .handle = first ? first->handle : 0,
        .chunk_size = first ? first->size : 0,
        .handle_count = page->chunk_count,
        .is_compressed = first && first->is_compressed,
        .is_rdma_capable = first && first->is_rdma_capable,
        .is_decompressible = first && first->is_decompressible,
        .is_borrowed = page->type == QI_CUDA_PAGE_BORROWED || page->type == QI_CUDA_PAGE_OPENED,
        .export_types = page->types,
    };
    if (page->elastic)
        pthread_mutex_unlock(&cuda->mutex);
    return QUIRE_SUCCESS;
}
