/*
 * probe.c - reads everything that describes a device when it is opened, and checks the settings
 * against it.
 */
#include <string.h>

#include "backends/cuda/cuda.h"
#include "src/base/log.h"
#include "src/base/result.h"

/* ---- all of it -------------------------------------------------------------------------- */

static qi_cu_result can_reach(const qi_cuda *cuda, int peer, int *can)
{
    *can = 0;
    return cuda->f.DeviceCanAccessPeer ? cuda->f.DeviceCanAccessPeer(can, peer, cuda->device)
                                       : QI_CUDA_ERROR_NOT_SUPPORTED;
}

/* The peers must be able to access this device. The message names the one that cannot. */
static quire_result check_peers(const qi_cuda *cuda)
{
    for (uint32_t i = 0; i < cuda->peer_count; i++) {
        int can;
        if (cuda->peers[i] == cuda->device)
            return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "device %u is its own peer",
                                (uint64_t)cuda->device);
        qi_cu_result code = can_reach(cuda, cuda->peers[i], &can);
        if (code)
            return qi_cuda_fail(&cuda->f, code, "cuDeviceCanAccessPeer of device %d",
                                cuda->peers[i]);
        if (!can)
            return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "device %d cannot reach device %d",
                                cuda->peers[i], cuda->device);
    }
    return QUIRE_SUCCESS;
}

/* Makes all other devices peers that the user's variable allows. If one of them cannot be, there
   are none, and device pages do without virtual memory management. */
static quire_result find_peers(qi_cuda *cuda)
{
    int count = 0, can;
    qi_cu_result code = cuda->f.DeviceGetCount(&count);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuDeviceGetCount");
    for (int i = 0; i < count; i++) {
        if (i == cuda->device || (i < 64 && !(cuda->allowed_peers >> i & 1)))
            continue;
        if (cuda->peer_count == QI_CUDA_MAX_PEERS || can_reach(cuda, i, &can) || !can) {
            cuda->peer_count = 0;
            cuda->settings.without |= QUIRE_CUDA_WITHOUT_VIRTUAL_MEMORY;
            qi_log(&cuda->log, QUIRE_LOG_INFO,
                   "device %d cannot reach device '%s': its pages are plain", i, cuda->name);
            return QUIRE_SUCCESS;
        }
        cuda->peers[cuda->peer_count++] = i;
    }
    return QUIRE_SUCCESS;
}

static bool has_settable_access(const qi_cuda *cuda, const qi_cuda_kind *kind)
{
    if (kind->page_kind == QUIRE_CUDA_POOL)
        return cuda->pool.options.source == QUIRE_CUDA_POOL_OWN;
    return kind->is_virtual && kind->page_kind != QUIRE_CUDA_TILES;
}

/* Peers need virtual memory management or a pool of quire: access to other pages is not set. */
static quire_result check_virtual(qi_cuda *cuda)
{
    for (uint32_t i = 0; i < cuda->kind_count; i++)
        if (has_settable_access(cuda, &cuda->kinds[i]))
            return QUIRE_SUCCESS;
    if (cuda->settings.reachable_peers)
        cuda->peer_count = 0;
    return cuda->peer_count
               ? qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                              "peers are named, and '%s' has no pages of virtual memory management",
                              cuda->name)
               : QUIRE_SUCCESS;
}

static quire_result check_export(const qi_cuda *cuda)
{
    if (cuda->settings.export_types == QUIRE_CUDA_FABRIC && !cuda->capabilities.fabric)
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
    code = cuda->f.DeviceGetName(cuda->name, sizeof cuda->name, cuda->device);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuDeviceGetName");
    qi_cu_uuid uuid;
    if (cuda->f.DeviceGetUuid && !cuda->f.DeviceGetUuid(&uuid, cuda->device))
        memcpy(cuda->uuid, uuid.bytes, sizeof cuda->uuid);
    quire_result result = qi_cuda_query_capabilities(cuda, &cuda->capabilities);
    if (result)
        return result;
    qi_cuda_match_functions(cuda, &cuda->capabilities);
    qi_atomic_init_u32(&cuda->fabric, cuda->capabilities.fabric ? QUIRE_CUDA_FABRIC_UNTRIED
                                                                : QUIRE_CUDA_FABRIC_ABSENT);
    result = check_export(cuda);
    if (!result)
        result = cuda->settings.reachable_peers ? find_peers(cuda) : check_peers(cuda);
    if (!result)
        result = qi_cuda_add_kinds(cuda);
    if (!result)
        result = qi_cuda_try_kinds(cuda);
    return result ? result : check_virtual(cuda);
}
