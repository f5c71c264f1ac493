/*
 * find.c - looks addresses up in a memory or a device, and says why an address is refused.
 */
#include "src/core/find/find.h"

#include "src/base/result.h"
#include "src/core/find/addresses.h"

static quire_result refuse_address(const char *what, const char *name, uint64_t address)
{
    return qi_fail_text(QUIRE_ERROR_OUT_OF_RANGE,
                        "address 0x%llx belongs to no live allocation of %s '%s'",
                        (unsigned long long)address, what, name);
}

static quire_result find(quire_memory *memory, uint64_t address, qi_found *found)
{
    if (!memory->addresses)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "memory '%s' was created without quire_memory_options.find_by_address",
                            memory->name);
    return qi_addresses_find(memory, address, found)
               ? QUIRE_SUCCESS
               : refuse_address("memory", memory->name, address);
}

quire_result qi_find(quire_memory *memory, uint64_t address, quire_allocation *allocation)
{
    qi_found found;
    quire_result result = find(memory, address, &found);
    if (!result)
        *allocation = found.allocation;
    return result;
}

quire_result qi_find_start(quire_memory *memory, uint64_t address, quire_allocation *allocation)
{
    qi_found found;
    if (memory->addresses && qi_addresses_find_start(memory, address, allocation))
        return QUIRE_SUCCESS;
    quire_result result = find(memory, address, &found);
    if (result)
        return result;
    if (found.offset)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                            "address 0x%llx lies %llu bytes inside an allocation that starts at "
                            "0x%llx",
                            (unsigned long long)address, (unsigned long long)found.offset,
                            (unsigned long long)(address - found.offset));
    *allocation = found.allocation;
    return QUIRE_SUCCESS;
}

/* The lock of the device keeps its memories. */
quire_result qi_find_in_device(quire_device *device, uint64_t address, quire_memory **memory,
                               quire_allocation *allocation)
{
    qi_found found = {.offset = 0};
    bool is_any = false, is_found = false;
    qi_lock_acquire(&device->lock);
    quire_memory *m = device->memories;
    for (; m; m = m->next_of_device) {
        is_any |= m->addresses != NULL;
        is_found = m->addresses && qi_addresses_find(m, address, &found);
        if (is_found)
            break;
    }
    qi_lock_release(&device->lock);
    if (!is_any)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "no memory of the device has quire_memory_options.find_by_address");
    if (!is_found)
        return refuse_address("device", device->info.name, address);
    *memory = m;
    *allocation = found.allocation;
    return QUIRE_SUCCESS;
}
