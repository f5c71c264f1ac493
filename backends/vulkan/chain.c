/*
 * chain.c - what is chained to VkMemoryAllocateInfo for a page: the backend's own structs, and
 * behind them what the caller of quire_vulkan_memory_create wants there.
 */
#include "backends/vulkan/chain.h"

#include "src/base/result.h"

static const float DEFAULT_PRIORITY = 0.5f;

/* ---- the backend's own -------------------------------------------------------------------- */

static void add(qi_vulkan_chain *c, void *link)
{
    VkBaseOutStructure *added = link;
    added->pNext = (VkBaseOutStructure *)(uintptr_t)c->info.pNext;
    c->info.pNext = link;
}

static void add_dedicated(qi_vulkan_chain *c, const quire_page_request *request)
{
    c->dedicated.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO;
    if (request->object == QUIRE_OBJECT_BUFFER)
        c->dedicated.buffer = QI_VULKAN_HANDLE(VkBuffer, request->native);
    else
        c->dedicated.image = QI_VULKAN_HANDLE(VkImage, request->native);
    add(c, &c->dedicated);
}

static void add_exported(qi_vulkan_chain *c, const qi_vulkan *vulkan)
{
    c->exported.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO;
    c->exported.handleTypes = vulkan->settings.export_types;
    add(c, &c->exported);
}

quire_result qi_vulkan_chain_describe(const qi_vulkan *vulkan, const quire_page_request *request,
                                      qi_vulkan_chain *c)
{
    c->info = (VkMemoryAllocateInfo){
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .pNext = request->extra.pointer,
        .allocationSize = request->size,
        .memoryTypeIndex = request->kind,
    };
    if (vulkan->enabled.device_address) {
        c->flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
        c->flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
        add(c, &c->flags);
    }
    if (vulkan->enabled.memory_priority) {
        c->priority.sType = VK_STRUCTURE_TYPE_MEMORY_PRIORITY_ALLOCATE_INFO_EXT;
        c->priority.priority = request->priority > 0 ? request->priority : DEFAULT_PRIORITY;
        add(c, &c->priority);
    }
    if (request->native)
        add_dedicated(c, request);
    if (request->exportable && !request->description)
        add_exported(c, vulkan);
    if (!request->description)
        return QUIRE_SUCCESS;
    quire_result result = qi_vulkan_describe_import(request->description, &c->imported);
    if (!result)
        add(c, &c->imported);
    return result;
}

/* ---- the caller's ------------------------------------------------------------------------- */

/* What the above would make a second one of, for one page or another, and what to do instead. */
static const struct {
    VkStructureType type;
    const char *name;
} OWN[] = {
    {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
     "VkMemoryAllocateFlagsInfo: pages have device addresses where the device has them enabled"},
    {VK_STRUCTURE_TYPE_MEMORY_PRIORITY_ALLOCATE_INFO_EXT,
     "VkMemoryPriorityAllocateInfoEXT: see quire_memory_options.priority"},
    {VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO,
     "VkMemoryDedicatedAllocateInfo: see quire_vulkan_object_options.dedicated"},
    {VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
     "VkExportMemoryAllocateInfo: see quire_intent.exportable"},
    {VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
     "VkImportMemoryFdInfoKHR: see quire_vulkan_import_range"},
    {VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
     "VkImportMemoryHostPointerInfoEXT: see quire_vulkan_import_range"},
    {VK_STRUCTURE_TYPE_IMPORT_MEMORY_WIN32_HANDLE_INFO_KHR,
     "VkImportMemoryWin32HandleInfoKHR: see quire_vulkan_import_range"},
};

static quire_result check_link(const VkBaseInStructure *link)
{
    for (size_t i = 0; i < sizeof OWN / sizeof *OWN; i++)
        if (OWN[i].type == link->sType)
            return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT, "quire chains its own %s",
                                OWN[i].name);
    for (const VkBaseInStructure *later = link->pNext; later; later = later->pNext)
        if (later->sType == link->sType)
            return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                                "a struct of type %u is chained twice", (uint64_t)link->sType);
    return QUIRE_SUCCESS;
}

static quire_result check(const quire_vulkan_memory_options *own)
{
    quire_result result = qi_check_unused(own, "quire_vulkan_memory_options");
    const VkBaseInStructure *link = own->next;
    for (; link && !result; link = link->pNext)
        result = check_link(link);
    return result;
}

quire_result quire_vulkan_memory_create(quire_device *device, const quire_memory_options *options,
                                        const quire_vulkan_memory_options *own,
                                        quire_memory **memory)
{
    const quire_vulkan_memory_options asked =
        own ? *own : (quire_vulkan_memory_options){.next = NULL};
    if (memory)
        *memory = NULL;
    if (!memory)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_vulkan_memory_create: memory is null");
    if (!qi_vulkan_of(device))
        return quire_last_result();
    quire_result result = check(&asked);
    return result ? result
                  : quire_memory_create_with(device, options,
                                             (quire_page_extra){.pointer = asked.next}, memory);
}
