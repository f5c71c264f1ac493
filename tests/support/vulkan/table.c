/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * table.c - vkGetInstanceProcAddr and vkGetDeviceProcAddr: they return only the functions of
 * entries.h that the version and the enabled extensions contain.
 */
#include "tests/support/vulkan/table.h"

#include <string.h>

#include "tests/support/vulkan/device.h"

#define NO_EXTENSION UINT32_MAX
#define FV_EXT_NONE NO_EXTENSION

typedef struct row {
    const char *name;
    PFN_vkVoidFunction function;
    fv_scope scope;
    uint32_t version; /* 0: no core function */
    uint32_t extension;
} row;

static const row ROWS[FV_CALL_COUNT] = {
#define X(function, scope, version, extension, codes)                                              \
    {#function, (PFN_vkVoidFunction)(void (*)(void))fv_##function, scope, version,                 \
     (uint32_t)FV_EXT_##extension},
    FV_ENTRIES(X)
#undef X
};

static const struct {
    const char *name;
    fv_call call;
} ALIASES[] = {
#define Y(alias, function) {#alias, FV_CALL_##function},
    FV_ALIASES(Y)
#undef Y
};

static bool is_hidden(fv_driver *driver, const row *found)
{
    bool hidden = false;
    pthread_mutex_lock(&driver->lock);
    for (uint32_t i = 0; i < driver->hidden_count; i++)
        hidden |= !strcmp(driver->hidden[i], found->name);
    pthread_mutex_unlock(&driver->lock);
    return hidden;
}

/* Returns the row of a name. *by_extension: the function is available only by its extension. */
static const row *find(fv_driver *driver, const char *name, bool *by_extension)
{
    const row *found = NULL;
    *by_extension = false;
    for (uint32_t i = 0; i < FV_CALL_COUNT && !found; i++)
        found = strcmp(ROWS[i].name, name) ? NULL : &ROWS[i];
    for (size_t i = 0; i < sizeof ALIASES / sizeof *ALIASES && !found; i++)
        if (!strcmp(ALIASES[i].name, name)) {
            found = &ROWS[ALIASES[i].call];
            *by_extension = true;
        }
    return found && !is_hidden(driver, found) ? found : NULL;
}

static bool has(const row *found, bool by_extension, uint32_t version, uint32_t extensions)
{
    if (!by_extension && found->version && version >= found->version)
        return true;
    return found->extension != NO_EXTENSION && (by_extension || !found->version) &&
           extensions & (UINT32_C(1) << found->extension);
}

PFN_vkVoidFunction fv_instance_function(fv_driver *driver, fv_instance *instance, const char *name)
{
    bool by_extension;
    const row *found = find(driver, name, &by_extension);
    if (!found)
        return NULL;
    if (found->scope == FV_GLOBAL)
        return found->function; /* vkGetInstanceProcAddr is also returned with an instance */
    if (!instance)
        return NULL;
    /* A device can offer more than the instance enabled, so that all device functions are
       returned. */
    if (found->scope == FV_OF_DEVICE && found->extension != FV_EXT_DEBUG_UTILS)
        return found->function;
    return has(found, by_extension, instance->version, instance->extensions) ? found->function
                                                                             : NULL;
}

PFN_vkVoidFunction fv_physical_device_function(fv_driver *driver, const char *name)
{
    bool by_extension;
    const row *found = find(driver, name, &by_extension);
    return found && found->scope == FV_OF_PHYSICAL_DEVICE ? found->function : NULL;
}

PFN_vkVoidFunction fv_device_function(fv_device *device, const char *name)
{
    bool by_extension;
    const row *found = find(device->object.driver, name, &by_extension);
    if (!found || found->scope != FV_OF_DEVICE)
        return NULL;
    uint32_t extensions = device->extensions | device->instance->extensions;
    return has(found, by_extension, device->version, extensions) ? found->function : NULL;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL fv_vkGetInstanceProcAddr(VkInstance instance,
                                                                  const char *name)
{
    return fv_instance_function(fv_current(), (fv_instance *)instance, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL fv_vkGetDeviceProcAddr(VkDevice device, const char *name)
{
    fv_device *self = (fv_device *)device;
    if (!fv_object_check(&self->object, FV_CALL_vkGetDeviceProcAddr, FV_DEVICE))
        return NULL;
    return fv_device_function(self, name);
}
