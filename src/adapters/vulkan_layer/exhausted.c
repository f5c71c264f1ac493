/*
 * exhausted.c - what the layer does when the memory of the driver is exhausted.
 *
 * If no page can be made quire tries smaller ones, each with a call of the driver, before it
 * refuses a request. The layer remembers the size that was refused, and passes such requests on
 * without asking quire until the program frees memory. Memory can also be freed unseen, by another
 * process or with a swapchain; therefore quire is asked for one of RETRY requests nevertheless.
 *
 * Threads may refuse and free at the same time. A wrong answer is harmless: the driver is asked
 * instead of quire, or quire in vain.
 */
#include "src/adapters/vulkan_layer/layer.h"
#include "src/base/result.h"

static const uint64_t RETRY = 64;

uint64_t layer_releases(const layer_device *device)
{
    return qi_atomic_load_acquire_u64(&device->counts.freed) +
           qi_atomic_load_acquire_u64(&device->counts.passed_free);
}

bool layer_is_exhausted(const layer_device *device, layer_store *store, uint64_t size)
{
    uint64_t refused = qi_atomic_load_u64(&store->refused_size);
    if (!refused || size < refused ||
        qi_atomic_load_u64(&store->refused_after) != layer_releases(device))
        return false;
    return (qi_atomic_add_u64(&store->skipped, 1) + 1) % RETRY != 0;
}

void layer_note_refused(layer_store *store, uint64_t size, uint64_t releases)
{
    uint64_t refused = qi_atomic_load_u64(&store->refused_size);
    uint64_t after = qi_atomic_load_u64(&store->refused_after);
    if (refused && (after > releases || (after == releases && refused < size)))
        return;
    qi_atomic_store_release_u64(&store->refused_size, size);
    qi_atomic_store_release_u64(&store->refused_after, releases);
}

void layer_note_served(layer_store *store, uint64_t size)
{
    uint64_t refused = qi_atomic_load_u64(&store->refused_size);
    if (refused && refused <= size)
        qi_atomic_store_release_u64(&store->refused_size, 0);
}

bool layer_trim(layer_device *device)
{
    uint32_t count = qi_atomic_load_acquire_u32(&device->store_count);
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t released = 0;
        qi_ignore(quire_memory_trim(device->stores[i].memory, 0, &released));
        total += released;
    }
    return total != 0;
}
