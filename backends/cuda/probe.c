/*
 * probe.c - what driver and device have, and the memory kinds that come of it.
 *
 * A device has something where its attribute says so and the driver has the functions for it. An
 * attribute that the driver does not know, because it is older, counts as 0. What an attribute
 * promises may still be refused when it is used (in a container, say): then the kind is left out,
 * unless the caller named it.
 */
#include <string.h>
#include <unistd.h>

#include "backends/cuda/cuda.h"
#include "src/base/bits.h"
#include "src/base/result.h"

static const uint64_t PLAIN_GRANULARITY = 64 << 10;
static const uint64_t TEXTURE_ALIGNMENT = 512; /* of a device that does not tell */

enum { HOST_NUMA_DRIVER = 12020, HOST_DRIVER = 13000 };

/* ---- attributes --------------------------------------------------------------------------- */

static quire_result ask(const qi_cuda *cuda, qi_cu_attribute attribute, int otherwise, int *value)
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

/* Withdraws what there are no functions for. */
static void match_functions(const qi_cuda *cuda, qi_cuda_offers *o)
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
    o->managed &= f->MemAllocManaged != NULL;
    bool has_arrays = o->virtual_memory && f->MemMapArrayAsync && f->Array3DCreate &&
                      f->ArrayDestroy && f->MipmappedArrayCreate && f->MipmappedArrayDestroy;
    o->deferred_arrays &=
        has_arrays && f->ArrayGetMemoryRequirements && f->MipmappedArrayGetMemoryRequirements;
    o->sparse_arrays &=
        has_arrays && f->ArrayGetSparseProperties && f->MipmappedArrayGetSparseProperties;
    o->host_register &= f->MemHostRegister != NULL && f->MemHostUnregister != NULL;
}

static quire_result ask_attributes(const qi_cuda *cuda, qi_cuda_offers *o)
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
        {QI_CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, &o->host_numa},
        {QI_CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, &o->host},
        {QI_CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, &o->managed}, /* the host may look at it
                                                                            while work runs */
        {QI_CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, &o->host_register},
        {QI_CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, &o->deferred_arrays},
        {QI_CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED, &o->sparse_arrays},
    };
    int value = 0;
    quire_result result = QUIRE_SUCCESS;
    for (size_t i = 0; i < sizeof table / sizeof *table && !result; i++) {
        result = ask(cuda, table[i].attribute, 0, &value);
        *table[i].target = value > 0;
    }
    if (!result)
        result = ask(cuda, QI_CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, -1, &o->numa_node);
    if (!result)
        result = ask(cuda, QI_CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 0, &value);
    o->texture_alignment = power_or(value, TEXTURE_ALIGNMENT);
    if (!result)
        result = ask(cuda, QI_CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 0, &value);
    o->row_alignment = power_or(value, TEXTURE_ALIGNMENT);
    return result;
}

/* ---- granularity -------------------------------------------------------------------------- */

qi_cu_allocation_prop qi_cuda_prop(const qi_cuda *cuda, const qi_cuda_kind *kind,
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
    if (kind->page_kind == QUIRE_CUDA_REGISTERED)
        prop.allocFlags.gpuDirectRDMACapable = 1;
    return prop;
}

/* Raises *least to the granularity of exactly this property. */
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

/* That of memory to be exported, too; a fabric may be refused, and is done without then. */
static quire_result raise_both(const qi_cuda *cuda, const qi_cuda_kind *kind,
                               qi_cu_granularity option, uint64_t *least)
{
    qi_cu_allocation_prop prop = qi_cuda_prop(cuda, kind, 0);
    quire_result result = raise_granularity(cuda, &prop, option, least);
    if (result || !cuda->offers.fd || kind->page_kind == QUIRE_CUDA_HOST ||
        kind->page_kind == QUIRE_CUDA_TILES)
        return result;
    qi_error before = qi_error_save();
    prop.requestedHandleTypes = cuda->settings.export_types;
    result = raise_granularity(cuda, &prop, option, least);
    if (result && prop.requestedHandleTypes & QUIRE_CUDA_FABRIC) {
        qi_error_restore(&before);
        prop.requestedHandleTypes = QUIRE_CUDA_FD;
        result = raise_granularity(cuda, &prop, option, least);
    }
    return result;
}

/* Memory that several devices reach is of the coarsest of their granularities. */
static quire_result raise_peers(const qi_cuda *cuda, const qi_cuda_kind *kind,
                                qi_cu_granularity option, uint64_t *least)
{
    quire_result result = QUIRE_SUCCESS;
    qi_cu_allocation_prop prop = qi_cuda_prop(cuda, kind, 0);
    if (prop.location.type != QI_CU_MEM_LOCATION_TYPE_DEVICE ||
        kind->page_kind == QUIRE_CUDA_TILES) /* arrays are mapped for one device */
        return QUIRE_SUCCESS;
    for (uint32_t i = 0; i < cuda->peer_count && !result; i++) {
        prop = (qi_cu_allocation_prop){
            .type = QI_CU_MEM_ALLOCATION_TYPE_PINNED,
            .location = {.type = QI_CU_MEM_LOCATION_TYPE_DEVICE, .id = cuda->peers[i]}};
        result = raise_granularity(cuda, &prop, option, least);
    }
    return result;
}

static quire_result find_granularity(const qi_cuda *cuda, qi_cuda_kind *kind)
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

/* ---- kinds -------------------------------------------------------------------------------- */

static const char *const names[QUIRE_CUDA_PAGE_KINDS] = {
    "device",   "plain",     "compressed", "registered", "pinned",
    "combined", "host NUMA", "host",       "managed",    "tile pools",
};

static bool is_offered(const qi_cuda_offers *o, quire_cuda_page_kind page_kind)
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
    case QUIRE_CUDA_TILES:
        return o->deferred_arrays || o->sparse_arrays;
    default:
        return true;
    }
}

static const quire_memory_flags CACHED =
    QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT | QUIRE_HOST_CACHED;

static qi_cuda_kind describe_kind(const qi_cuda *cuda, quire_cuda_page_kind page_kind, int node)
{
    qi_cuda_kind kind = {.page_kind = page_kind, .node = node, .granularity = PLAIN_GRANULARITY};
    switch (page_kind) {
    case QUIRE_CUDA_DEVICE:
        kind.is_virtual = cuda->offers.virtual_memory;
        kind.description.flags = QUIRE_DEVICE_LOCAL;
        break;
    case QUIRE_CUDA_COMPRESSED:
    case QUIRE_CUDA_REGISTERED:
        kind.is_virtual = true;
        kind.description.flags = QUIRE_DEVICE_LOCAL;
        break;
    case QUIRE_CUDA_TILES:
        kind.is_virtual = true;
        kind.description.flags = QUIRE_DEVICE_LOCAL | QUIRE_OBJECTS_ONLY;
        break;
    case QUIRE_CUDA_PLAIN:
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

/* What may be refused though an attribute promised it. */
static bool is_refusal(quire_result result)
{
    return result == QUIRE_ERROR_UNSUPPORTED || result == QUIRE_ERROR_NOT_PERMITTED ||
           result == QUIRE_ERROR_INVALID_ARGUMENT;
}

static quire_result add_kind(qi_cuda *cuda, quire_cuda_page_kind page_kind, int node, bool is_named)
{
    if (cuda->kind_count == QUIRE_MOST_KINDS)
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED, "more than %u memory kinds", QUIRE_MOST_KINDS);
    qi_cuda_kind kind = describe_kind(cuda, page_kind, node);
    qi_error before = qi_error_save();
    quire_result result = kind.is_virtual ? find_granularity(cuda, &kind) : QUIRE_SUCCESS;
    if (is_refusal(result) && page_kind == QUIRE_CUDA_DEVICE) {
        qi_error_restore(&before);
        cuda->offers.virtual_memory = false; /* what is left is cuMemAlloc */
        match_functions(cuda, &cuda->offers);
        kind = describe_kind(cuda, page_kind, node);
    } else if (is_refusal(result) && !is_named) {
        qi_error_restore(&before);
        return QUIRE_SUCCESS;
    } else if (result) {
        return result;
    }
    if (cuda->settings.hardware_decompression && page_kind == QUIRE_CUDA_DEVICE && !kind.is_virtual)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "'%s' has no virtual memory management, and so no pages that hardware "
                            "decompresses into",
                            cuda->name);
    if (!kind.is_virtual && kind.description.flags & QUIRE_DEVICE_LOCAL)
        cuda->page_alignment = QI_CUDA_ALIGNMENT; /* more would cost device memory */
    cuda->kinds[cuda->kind_count++] = kind;
    return QUIRE_SUCCESS;
}

/* One kind for each host node that is wanted. */
static quire_result add_nodes(qi_cuda *cuda, bool is_named)
{
    uint64_t nodes = cuda->settings.numa_nodes;
    int nearest = cuda->offers.numa_node;
    quire_result result = QUIRE_SUCCESS;
    if (!nodes)
        return add_kind(cuda, QUIRE_CUDA_HOST_NUMA, nearest < 0 ? 0 : nearest, is_named);
    for (; nodes && !result; nodes &= nodes - 1)
        result = add_kind(cuda, QUIRE_CUDA_HOST_NUMA, (int)qi_lowest_bit(nodes), true);
    return result;
}

static quire_result add_kinds(qi_cuda *cuda)
{
    const uint32_t usual =
        QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_DEVICE) | QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_PINNED) |
        QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_COMBINED) | QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_HOST_NUMA);
    uint32_t named = cuda->settings.kinds, wanted = named ? named : usual;
    quire_result result = QUIRE_SUCCESS;
    for (int i = 0; i < QUIRE_CUDA_PAGE_KINDS && !result; i++) {
        quire_cuda_page_kind page_kind = (quire_cuda_page_kind)i;
        bool is_named = named || (page_kind == QUIRE_CUDA_HOST_NUMA && cuda->settings.numa_nodes);
        if (!(wanted >> i & 1))
            continue;
        if (!is_offered(&cuda->offers, page_kind)) {
            if (is_named)
                return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "'%s' has no pages of kind %s",
                                    cuda->name, names[i]);
            continue;
        }
        result = page_kind == QUIRE_CUDA_HOST_NUMA ? add_nodes(cuda, is_named)
                                                   : add_kind(cuda, page_kind, -1, is_named);
    }
    return result;
}

/* ---- all of it ---------------------------------------------------------------------------- */

/* Other devices can reach this one's memory, or are refused by name. */
static quire_result check_peers(const qi_cuda *cuda)
{
    for (uint32_t i = 0; i < cuda->peer_count; i++) {
        int can = 0;
        if (cuda->peers[i] == cuda->device)
            return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "device %u is its own peer",
                                (uint64_t)cuda->device);
        qi_cu_result code = QI_CUDA_ERROR_NOT_SUPPORTED;
        if (cuda->f.DeviceCanAccessPeer)
            code = cuda->f.DeviceCanAccessPeer(&can, cuda->peers[i], cuda->device);
        if (code)
            return qi_cuda_fail(&cuda->f, code, "cuDeviceCanAccessPeer of device %d",
                                cuda->peers[i]);
        if (!can)
            return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "device %d cannot reach device %d",
                                cuda->peers[i], cuda->device);
    }
    return QUIRE_SUCCESS;
}

/* Who reaches other pages is not for us to say. */
static quire_result check_virtual(const qi_cuda *cuda)
{
    for (uint32_t i = 0; i < cuda->kind_count; i++)
        if (cuda->kinds[i].is_virtual && cuda->kinds[i].page_kind != QUIRE_CUDA_TILES)
            return QUIRE_SUCCESS;
    return cuda->peer_count
               ? qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                              "peers are named, and '%s' has no pages of virtual memory management",
                              cuda->name)
               : QUIRE_SUCCESS;
}

static quire_result check_export(const qi_cuda *cuda)
{
    if (cuda->settings.export_types == QUIRE_CUDA_FABRIC && !cuda->offers.fabric)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "'%s' has no fabric handles", cuda->name);
    return QUIRE_SUCCESS;
}

quire_result qi_cuda_probe(qi_cuda *cuda)
{
    size_t bytes = 0;
    qi_cu_result code = cuda->f.DeviceTotalMem(&bytes, cuda->device);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuDeviceTotalMem");
    cuda->device_bytes = bytes;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    cuda->host_bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_C(1) << 40;
    code = cuda->f.DeviceGetName(cuda->name, sizeof cuda->name, cuda->device);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuDeviceGetName");
    qi_cu_uuid uuid;
    if (cuda->f.DeviceGetUuid && !cuda->f.DeviceGetUuid(&uuid, cuda->device))
        memcpy(cuda->uuid, uuid.bytes, sizeof cuda->uuid);
    quire_result result = ask_attributes(cuda, &cuda->offers);
    if (result)
        return result;
    match_functions(cuda, &cuda->offers);
    qi_atomic_init_u32(&cuda->fabric,
                       cuda->offers.fabric ? QUIRE_CUDA_FABRIC_UNTRIED : QUIRE_CUDA_FABRIC_ABSENT);
    result = check_export(cuda);
    if (!result)
        result = check_peers(cuda);
    if (!result)
        result = add_kinds(cuda);
    return result ? result : check_virtual(cuda);
}
