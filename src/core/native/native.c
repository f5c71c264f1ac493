/*
 * native.c - binds and destroys the native objects of allocations in the backend.
 */
#include "src/core/native/native.h"

#include "src/space/space.h"

quire_result qi_native_bind(quire_memory *memory, uint32_t slot, quire_object object,
                            uint64_t native)
{
    if (!native)
        return QUIRE_SUCCESS;
    return qi_device_object_bind(memory->device, &memory->calls, object, native,
                                 &qi_memory_page(memory, slot)->native,
                                 qi_memory_slot(memory, slot)->offset);
}

void qi_native_destroy(quire_memory *memory, qi_slot *record)
{
    uint64_t native = qi_slot_native(record);
    if (!native || record->extras & QI_EXTRA_BORROWED)
        return;
    /*
     * The release that follows reads the range's record. Fetching it now hides the cache miss
     * behind the backend's call. The lock is needed because records move when their table grows.
     */
    qi_shard *shard = qi_shard_of(memory, record);
    qi_lock_acquire(&shard->lock);
    qi_space_fetch(shard->space, record->range);
    qi_lock_release(&shard->lock);
    record->native = 0;
    qi_device_object_destroy(memory->device, &memory->calls, record->object, native);
}
