/*
 * open_extensions.c - the extensions that the loader or a driver offers, and functions by name.
 */
#include <stdio.h>
#include <string.h>

#include "backends/vulkan/open.h"
#include "backends/vulkan/result.h"
#include "src/base/result.h"

bool qi_vulkan_extensions_offer(const qi_vulkan_extensions *e, const char *name)
{
    for (uint32_t i = 0; i < e->offered_count; i++)
        if (!strcmp(e->offered[i].extensionName, name))
            return true;
    return false;
}

bool qi_vulkan_extensions_has_taken(const qi_vulkan_extensions *e, const char *name)
{
    for (uint32_t i = 0; i < e->taken_count; i++)
        if (!strcmp(e->taken[i], name))
            return true;
    return false;
}

bool qi_vulkan_has_old_addresses(const qi_vulkan_extensions *extensions)
{
    return qi_vulkan_extensions_has_taken(extensions, VK_EXT_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME);
}

/* The program may name an extension that quire takes too. */
bool qi_vulkan_extensions_take(qi_vulkan_extensions *e, const char *name)
{
    if (!qi_vulkan_extensions_offer(e, name))
        return false;
    if (!qi_vulkan_extensions_has_taken(e, name))
        e->taken[e->taken_count++] = name;
    return true;
}

quire_result qi_vulkan_extensions_require(qi_vulkan_extensions *e, const char *const *names,
                                          uint32_t count, const char *owner)
{
    char list[512] = "";
    size_t length = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!qi_vulkan_extensions_take(e, names[i]) && length < sizeof list)
            length += (size_t)snprintf(list + length, sizeof list - length, "%s%s",
                                       length ? ", " : "", names[i]);
    return length ? qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "%s does not have the extensions: %s",
                                 owner, list)
                  : QUIRE_SUCCESS;
}

/* Lists the extensions of a device, or of the loader if `device` is NULL. */
static VkResult list_extensions(const opening *o, VkPhysicalDevice device, uint32_t *count,
                                VkExtensionProperties *out)
{
    return device ? o->list_device_extensions(device, NULL, count, out)
                  : o->list_instance_extensions(NULL, count, out);
}

void qi_vulkan_extensions_release(opening *o, qi_vulkan_extensions *e)
{
    qi_host_release(&o->vulkan->host, e->offered, e->capacity, sizeof *e->offered);
    qi_host_release(&o->vulkan->host, e->taken, e->taken_capacity, sizeof *e->taken);
    *e = (qi_vulkan_extensions){.offered = NULL};
}

static quire_result refuse_memory(void)
{
    return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a list of extensions");
}

quire_result qi_vulkan_extensions_read(opening *o, VkPhysicalDevice device, uint32_t further,
                                       qi_vulkan_extensions *e)
{
    qi_host *host = &o->vulkan->host;
    uint32_t capacity = 0, room = further + QI_VULKAN_MAX_EXTENSIONS;
    VkResult code = list_extensions(o, device, &capacity, NULL);
    if (code)
        return qi_vulkan_fail(code, "listing the extensions of Vulkan");
    e->taken = qi_host_allocate(host, room, sizeof *e->taken);
    if (!e->taken)
        return refuse_memory();
    e->taken_capacity = room;
    if (!capacity)
        return QUIRE_SUCCESS;
    e->offered = qi_host_allocate(host, capacity, sizeof *e->offered);
    if (!e->offered)
        return refuse_memory();
    e->capacity = capacity;
    e->offered_count = e->capacity;
    code = list_extensions(o, device, &e->offered_count, e->offered);
    /* VK_INCOMPLETE: the number has grown since the first call. The list is long enough. */
    if (!code || code == VK_INCOMPLETE)
        return QUIRE_SUCCESS;
    return qi_vulkan_fail(code, "listing the extensions of Vulkan");
}

quire_result qi_vulkan_load_instance_function(const opening *o, VkInstance instance,
                                              const char *name, PFN_vkVoidFunction *out)
{
    *out = o->get_instance(instance, name);
    return *out ? QUIRE_SUCCESS
                : qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "the Vulkan loader has no %s", name);
}
