/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * device_members.h - the memories of a device, and whether a device can be destroyed.
 *
 * The list is linked by next_of_device of a memory, in the order of creation. The device's lock
 * protects it; these functions acquire the lock. Invariant: memory_count is the length of the list.
 */
#ifndef QUIRE_SRC_CORE_MEMORY_DEVICE_MEMBERS_H
#define QUIRE_SRC_CORE_MEMORY_DEVICE_MEMBERS_H

#include "src/core/device/device.h"

void qi_device_add_memory(quire_device *device, quire_memory *memory);

/*
 * Adds a default memory of its kind, unless the device has one already or is being destroyed.
 * *present receives the one that the device has then; NULL: the device is being destroyed. Returns
 * whether the memory was added.
 */
bool qi_device_add_default(quire_device *device, quire_memory *memory, quire_memory **present);

/* From now on the memory is not the default memory of its kind. It stays in the list. */
void qi_device_forget_default(quire_device *device, quire_memory *memory);

/* The memory must be in the list. Other threads do not visit it any more. */
void qi_device_remove_memory(quire_device *device, quire_memory *memory);

/*
 * Check that nothing of the device is left. The first: no memory that the program created, and no
 * stream. The names of live memories go to the log as well. The second, once the device's own
 * memories have no allocations: no destroyed stream that allocations still name. That does not
 * count in the child of a fork. Fail with BUSY.
 */
QUIRE_MUST_USE quire_result qi_device_check_unused(quire_device *device);
QUIRE_MUST_USE quire_result qi_device_check_stream_records(quire_device *device);

#endif
