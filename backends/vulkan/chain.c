/*
 * chain.c - the pNext chain of VkMemoryAllocateInfo: first the backend's structs, then those of the
 * caller of quire_vulkan_memory_create.
 */
#include "backends/vulkan/chain.h"

#include "backends/vulkan/device.h"
#include "backends/vulkan/handle_type.h"
#include "src/base/result.h"

/* The priority of memory whose creator did not set one, as VK_EXT_memory_priority defines it. */
static const float DEFAULT_PRIORITY = 0.5f;

static float priority_of(const quire_page_request *request)
{
    if (request->priority == 0)
        return DEFAULT_PRIORITY;
    return request->priority > 0 ? request->priority : 0; /* QUIRE_PRIORITY_LOWEST */
}

/* ---- the backend's structs ------------------------------------------------------------------- */

/* Puts a struct at the front of the chain. */
static void add(qi_vulkan_chain *c, void *link)
{
    VkBaseOutStructure *added = link;
    added->pNext = (VkBaseOutStructure *)(uintptr_t)c->info.pNext;
    c->info.pNext = link;
}

static void add_dedicated(qi_vulkan_chain *c, quire_object object, uint64_t native)
{
    c->dedicated.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO;
    if (object == QUIRE_OBJECT_BUFFER)
        c->dedicated.buffer = QI_VULKAN_HANDLE(VkBuffer, native);
    else
        c->dedicated.image = QI_VULKAN_HANDLE(VkImage, native);
    add(c, &c->dedicated);
}

static void add_exported(qi_vulkan_chain *c, const qi_vulkan *vulkan)
{
    c->exported.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO;
    c->exported.handleTypes = vulkan->settings.export_types;
    add(c, &c->exported);
}

/* Imported memory can be dedicated to an object of the caller's. */
static quire_result add_imported(qi_vulkan_chain *c, const quire_vulkan_import *import)
{
    if (import->buffer)
        add_dedicated(c, QUIRE_OBJECT_BUFFER, QI_VULKAN_NUMBER(import->buffer));
    if (import->image)
        add_dedicated(c, QUIRE_OBJECT_IMAGE, QI_VULKAN_NUMBER(import->image));
    quire_result result = qi_vulkan_describe_import(import, &c->imported);
    if (!result)
        add(c, &c->imported);
    return result;
}

bool qi_vulkan_makes_zeros(const qi_vulkan *vulkan, const quire_page_request *request)
{
    bool is_protected =
        vulkan->memory.memoryTypes[request->kind].propertyFlags & VK_MEMORY_PROPERTY_PROTECTED_BIT;
    return request->zero && vulkan->enabled.zero_initialize && !request->description &&
           !is_protected;
}

/*
 * Each struct is added at the front, so that the caller's structs remain at the end. An imported
 * page is not exportable.
 */
quire_result qi_vulkan_chain_describe(const qi_vulkan *vulkan, const quire_page_request *request,
                                      qi_vulkan_chain *c)
{
    c->info = (VkMemoryAllocateInfo){
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .pNext = request->extra.pointer,
        .allocationSize = request->size,
        .memoryTypeIndex = request->kind,
    };
    c->flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
    if (vulkan->enabled.device_address)
        c->flags.flags |= VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    if (qi_vulkan_makes_zeros(vulkan, request))
        c->flags.flags |= QI_VULKAN_ZERO_BIT;
    if (c->flags.flags)
        add(c, &c->flags);
    if (vulkan->enabled.memory_priority) {
        c->priority.sType = VK_STRUCTURE_TYPE_MEMORY_PRIORITY_ALLOCATE_INFO_EXT;
        c->priority.priority = priority_of(request);
        add(c, &c->priority);
    }
    if (request->native)
        add_dedicated(c, request->object, request->native);
    if (request->description)
        return add_imported(c, request->description);
    if (!request->exportable)
        return QUIRE_SUCCESS;
    add_exported(c, vulkan);
    /* The creation of the object has checked a page that is dedicated to it. */
    return request->native ? QUIRE_SUCCESS : qi_vulkan_check_page_export(vulkan);
}

/* ---- the caller's structs -------------------------------------------------------------------- */

/* The structs that the backend adds to the chain of some pages, so that a caller must not add them,
   and what the caller can use instead. */
static const struct {
    VkStructureType type;
    const char *name;
} OWN[] = {
    {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
     "VkMemoryAllocateFlagsInfo: pages have device addresses where the device has them enabled, "
     "and zeros where an option asks for them"},
    {VK_STRUCTURE_TYPE_MEMORY_PRIORITY_ALLOCATE_INFO_EXT,
     "VkMemoryPriorityAllocateInfoEXT: see quire_memory_options.priority"},
    {VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO,
     "VkMemoryDedicatedAllocateInfo: objects get one where the driver wants it, and imports by "
     "quire_vulkan_import.buffer and .image"},
    {VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
     "VkExportMemoryAllocateInfo: see quire_intent.exportable"},
    {VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
     "VkImportMemoryFdInfoKHR: see quire_vulkan_import_range"},
    {VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
     "VkImportMemoryHostPointerInfoEXT: see quire_vulkan_import_range"},
    {VK_STRUCTURE_TYPE_IMPORT_MEMORY_WIN32_HANDLE_INFO_KHR,
     "VkImportMemoryWin32HandleInfoKHR: see quire_vulkan_import_range"},
};

/* Vulkan also forbids two structs of one type in a chain. */
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
    const quire_vulkan_memory_options given =
        own ? *own : (quire_vulkan_memory_options){.next = NULL};
    if (memory)
        *memory = NULL;
    if (!memory)
        return qi_fail_null("quire_vulkan_memory_create", "memory");
    if (!qi_vulkan_of(device))
        return quire_last_result();
    quire_result result = check(&given);
    return result ? result
                  : quire_memory_create_with(device, options,
                                             (quire_page_extra){.pointer = given.next}, memory);
}
