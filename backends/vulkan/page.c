/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * page.c - a page is one VkDeviceMemory, allocated with a pNext chain of what its kind and its
 * request need. A buffer that covers the page serves copies and device addresses.
 *
 * The first caller that needs that buffer creates it. If several threads do so at the same time one
 * of them publishes its buffer with a compare-and-exchange, and the others destroy theirs. No lock
 * is held.
 */
#include "backends/vulkan/page.h"

#include "backends/vulkan/device.h"
#include "backends/vulkan/external.h"
#include "backends/vulkan/functions.h"
#include "backends/vulkan/object.h"
#include "backends/vulkan/queues.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- VkMemoryAllocateInfo ----------------------------------------------------------------- */

/* The priority of memory whose creator did not set one, as VK_EXT_memory_priority defines it. */
static const float DEFAULT_PRIORITY = 0.5f;

/* The chain of a page: first these structs, then those of the caller of quire_vulkan_memory_create.
   The structs point to each other, so that a chain must not be moved or copied. */
typedef struct allocate_chain {
    VkMemoryAllocateInfo info;
    VkMemoryAllocateFlagsInfo flags;
    VkMemoryPriorityAllocateInfoEXT priority;
    VkMemoryDedicatedAllocateInfo dedicated;
    VkExportMemoryAllocateInfo exported;
    qi_vulkan_import_link imported;
} allocate_chain;

static float priority_of(const quire_page_request *request)
{
    if (request->priority == 0)
        return DEFAULT_PRIORITY;
    return request->priority > 0 ? request->priority : 0; /* QUIRE_PRIORITY_LOWEST */
}

/* Puts a struct at the front of the chain. */
static void add(allocate_chain *c, void *link)
{
    VkBaseOutStructure *added = link;
    added->pNext = (VkBaseOutStructure *)(uintptr_t)c->info.pNext;
    c->info.pNext = link;
}

static void add_dedicated(allocate_chain *c, quire_object object, uint64_t native)
{
    c->dedicated.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO;
    if (object == QUIRE_OBJECT_BUFFER)
        c->dedicated.buffer = QI_VULKAN_HANDLE(VkBuffer, native);
    else
        c->dedicated.image = QI_VULKAN_HANDLE(VkImage, native);
    add(c, &c->dedicated);
}

static void add_exported(allocate_chain *c, const qi_vulkan *vulkan)
{
    c->exported.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO;
    c->exported.handleTypes = vulkan->settings.export_types;
    add(c, &c->exported);
}

/* Imported memory can be dedicated to an object of the caller's. */
static quire_result add_imported(allocate_chain *c, const quire_vulkan_import *import)
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

/* Whether the driver makes the page with zeros: it can, and the page is wanted so. Vulkan makes
   neither imported nor protected memory with zeros. */
static bool makes_zeros(const qi_vulkan *vulkan, const quire_page_request *request)
{
    bool is_protected =
        vulkan->memory.memoryTypes[request->kind].propertyFlags & VK_MEMORY_PROPERTY_PROTECTED_BIT;
    return request->zero && vulkan->enabled.zero_initialize && !request->description &&
           !is_protected;
}

/*
 * Fills in the chain for a page. Each struct is added at the front, so that the caller's structs
 * remain at the end. An imported page is not exportable. UNSUPPORTED: the platform cannot import
 * the memory, or the device cannot export it.
 */
static quire_result describe_chain(const qi_vulkan *vulkan, const quire_page_request *request,
                                   allocate_chain *c)
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
    if (makes_zeros(vulkan, request))
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

/* ---- the caller's structs of VkMemoryAllocateInfo ----------------------------------------- */

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

/* ---- creation ----------------------------------------------------------------------------- */

/*
 * A device also lists memory kinds that need a feature; without the feature they must not be used.
 * A request larger than the heap is invalid, although some drivers grant it.
 */
quire_result qi_vulkan_check_kind(const qi_vulkan *vulkan, uint32_t kind, uint64_t size)
{
    uint64_t heap_size =
        vulkan->memory.memoryHeaps[vulkan->memory.memoryTypes[kind].heapIndex].size;
    if (size > heap_size)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, 0,
                                  "a page of %s: the heap of memory kind %u has %s in total",
                                  qi_bytes(size).text, kind, qi_bytes(heap_size).text);
    VkMemoryPropertyFlags flags = vulkan->memory.memoryTypes[kind].propertyFlags;
    if (flags & VK_MEMORY_PROPERTY_PROTECTED_BIT && !vulkan->enabled.protected_memory)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "memory kind %u is protected, and the device was created without "
                                  "the feature protectedMemory",
                                  kind);
    if (flags & (QUIRE_DEVICE_COHERENT | QUIRE_DEVICE_UNCACHED) && !vulkan->enabled.device_coherent)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "memory kind %u is device-coherent, and the device was created "
                                  "without the feature deviceCoherentMemory",
                                  kind);
    return QUIRE_SUCCESS;
}

/* The create info of the buffer that covers a page. */
typedef struct cover {
    VkBufferCreateInfo info;
    VkExternalMemoryBufferCreateInfo external;
} cover;

static void describe_cover(const qi_vulkan *vulkan, const qi_vulkan_page *page, cover *c)
{
    c->external = (VkExternalMemoryBufferCreateInfo){
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
        .handleTypes = page->external,
    };
    c->info = (VkBufferCreateInfo){
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .pNext = page->external ? &c->external : NULL,
        .size = page->size,
        .usage = vulkan->settings.page_usage,
    };
    qi_vulkan_share(vulkan, &c->info);
}

/*
 * Returns the number of bytes to allocate for a page. With some drivers the buffer over a page
 * needs a few bytes more than the page has. If the need is unknown, or exceeds a limit, the page
 * gets its requested size. Dedicated and imported pages must have exactly the requested size.
 */
static uint64_t size_with_cover(const qi_vulkan *vulkan, const quire_page_request *request,
                                const qi_vulkan_page *page)
{
    cover c;
    quire_requirements requirements = {.size = 0};
    if (request->native || request->description || request->size > vulkan->max_buffer_size)
        return request->size;
    describe_cover(vulkan, page, &c);
    qi_error before;
    qi_error_save(&before);
    quire_result result = qi_vulkan_query_buffer(vulkan, &c.info, &requirements);
    qi_error_restore(&before);
    bool is_larger =
        !result && requirements.kind_mask >> request->kind & 1 && requirements.size > request->size;
    return is_larger && requirements.size <= vulkan->usual_page_size &&
                   !qi_vulkan_check_kind(vulkan, request->kind, requirements.size)
               ? requirements.size
               : request->size;
}

/* Returns the handle types that a buffer over the page must declare. */
static VkExternalMemoryHandleTypeFlags external_of(const quire_page_request *request,
                                                   const allocate_chain *c)
{
    const quire_vulkan_import *import = request->description;
    return import ? (VkExternalMemoryHandleTypeFlags)import->type : c->exported.handleTypes;
}

/* Counts the VkDeviceMemory and allocates it. */
static quire_result allocate_counted(qi_vulkan *vulkan, const VkMemoryAllocateInfo *info,
                                     VkDeviceMemory *memory)
{
    quire_result result = qi_vulkan_count_memory(vulkan);
    if (result)
        return result;
    VkResult code = vulkan->f.AllocateMemory(vulkan->device, info, vulkan->callbacks, memory);
    if (!code)
        return QUIRE_SUCCESS;
    *memory = VK_NULL_HANDLE; /* undefined after a failure */
    qi_vulkan_uncount_memory(vulkan);
    return qi_vulkan_fail(code, "vkAllocateMemory of %s of memory kind %u",
                          qi_bytes(info->allocationSize).text, info->memoryTypeIndex);
}

quire_result qi_vulkan_memory_make(qi_vulkan *vulkan, const quire_page_request *request,
                                   VkDeviceMemory *memory)
{
    allocate_chain c = {.info = {.pNext = NULL}};
    quire_result result = qi_vulkan_check_kind(vulkan, request->kind, request->size);
    if (!result)
        result = describe_chain(vulkan, request, &c);
    return result ? result : allocate_counted(vulkan, &c.info, memory);
}

void qi_vulkan_memory_free(qi_vulkan *vulkan, VkDeviceMemory memory)
{
    vulkan->f.FreeMemory(vulkan->device, memory, vulkan->callbacks);
    qi_vulkan_uncount_memory(vulkan);
}

/* The chain points into itself: it lives on the stack until vkAllocateMemory returns. */
static quire_result allocate(qi_vulkan *vulkan, const quire_page_request *request,
                             qi_vulkan_page *page)
{
    allocate_chain c = {.info = {.pNext = NULL}};
    quire_result result = qi_vulkan_check_kind(vulkan, request->kind, request->size);
    if (!result)
        result = describe_chain(vulkan, request, &c);
    if (result)
        return result;
    page->external = external_of(request, &c);
    page->is_exportable = c.exported.handleTypes != 0;
    page->allocated = size_with_cover(vulkan, request, page);
    c.info.allocationSize = page->allocated;
    return allocate_counted(vulkan, &c.info, &page->memory);
}

/* The object that a page is for: quire's, or the caller's for an import. */
static void set_dedicated(qi_vulkan_page *page, const quire_page_request *request)
{
    const qi_vulkan_description *own = request->object_description;
    const quire_vulkan_import *import = request->description;
    page->dedicated_to = request->object;
    page->dedicated_native = request->native;
    if (request->object == QUIRE_OBJECT_BUFFER)
        page->dedicated_usage = own ? *own->usage : QI_VULKAN_TRANSFERS;
    if (import && import->buffer) {
        page->dedicated_to = QUIRE_OBJECT_BUFFER;
        page->dedicated_native = QI_VULKAN_NUMBER(import->buffer);
    } else if (import && import->image) {
        page->dedicated_to = QUIRE_OBJECT_IMAGE;
        page->dedicated_native = QI_VULKAN_NUMBER(import->image);
    }
}

/* The record of the page lives until qi_vulkan_page_destroy_now, which can be later than the
   call of page_destroy. */
quire_result qi_vulkan_page_create(void *state, const quire_page_request *request,
                                   quire_native_page *out)
{
    qi_vulkan *vulkan = state;
    qi_vulkan_page *page = qi_host_allocate(&vulkan->host, 1, sizeof *page);
    if (!page)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                  "no host memory for a page record");
    page->size = request->size;
    page->kind = request->kind;
    set_dedicated(page, request);
    quire_result result = allocate(vulkan, request, page);
    if (result) {
        qi_host_release(&vulkan->host, page, 1, sizeof *page);
        return result;
    }
    qi_vulkan_set_name(vulkan, VK_OBJECT_TYPE_DEVICE_MEMORY, QI_VULKAN_NUMBER(page->memory),
                       request->label);
    *out = (quire_native_page){
        .handle = QI_VULKAN_NUMBER(page->memory),
        .size = request->size,
        .data = (uintptr_t)page,
        .is_zero = makes_zeros(vulkan, request),
    };
    return QUIRE_SUCCESS;
}

/* vkFreeMemory also unmaps the memory. An elastic page has none any more. */
void qi_vulkan_page_destroy_now(qi_vulkan *vulkan, qi_vulkan_page *page)
{
    uint64_t buffer = qi_atomic_load_acquire_u64(&page->buffer);
    if (buffer)
        vulkan->f.DestroyBuffer(vulkan->device, QI_VULKAN_HANDLE(VkBuffer, buffer),
                                vulkan->callbacks);
    if (page->memory)
        qi_vulkan_memory_free(vulkan, page->memory);
    qi_host_release(&vulkan->host, page, 1, sizeof *page);
}

/* ---- mapping ------------------------------------------------------------------------------ */

/* Maps the whole page. Vulkan allows one mapping of a VkDeviceMemory, which the core keeps. */
quire_result qi_vulkan_page_map(void *state, const quire_native_page *native, void **pointer)
{
    const qi_vulkan *vulkan = state;
    const qi_vulkan_page *page = qi_vulkan_page_of(native);
    if (page->elastic)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "an elastic page cannot be mapped: each of its chunks is a "
                                  "VkDeviceMemory of its own");
    VkResult code = vulkan->f.MapMemory(vulkan->device, page->memory, 0, VK_WHOLE_SIZE, 0, pointer);
    return code ? qi_vulkan_fail(code, "vkMapMemory of a page of %s", qi_bytes(page->size).text)
                : QUIRE_SUCCESS;
}

void qi_vulkan_page_unmap(void *state, const quire_native_page *native)
{
    const qi_vulkan *vulkan = state;
    vulkan->f.UnmapMemory(vulkan->device, qi_vulkan_page_of(native)->memory);
}

/* Returns a range in Vulkan's form. The core passes whole atoms; only the end of the page may be no
   multiple of the atom, and VK_WHOLE_SIZE is valid there. */
static VkMappedMemoryRange range_of(const quire_native_page *native, uint64_t offset, uint64_t size)
{
    return (VkMappedMemoryRange){
        .sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
        .memory = qi_vulkan_page_of(native)->memory,
        .offset = offset,
        .size = offset + size >= native->size ? VK_WHOLE_SIZE : size,
    };
}

quire_result qi_vulkan_page_flush(void *state, const quire_native_page *native, uint64_t offset,
                                  uint64_t size)
{
    const qi_vulkan *vulkan = state;
    VkMappedMemoryRange range = range_of(native, offset, size);
    VkResult code = vulkan->f.FlushMappedMemoryRanges(vulkan->device, 1, &range);
    return code ? qi_vulkan_fail(code, "vkFlushMappedMemoryRanges") : QUIRE_SUCCESS;
}

quire_result qi_vulkan_page_invalidate(void *state, const quire_native_page *native,
                                       uint64_t offset, uint64_t size)
{
    const qi_vulkan *vulkan = state;
    VkMappedMemoryRange range = range_of(native, offset, size);
    VkResult code = vulkan->f.InvalidateMappedMemoryRanges(vulkan->device, 1, &range);
    return code ? qi_vulkan_fail(code, "vkInvalidateMappedMemoryRanges") : QUIRE_SUCCESS;
}

/* The core passes at most QUIRE_MAX_RANGES ranges: the list is on the callers' stacks. */
static void list_ranges(const quire_page_range *ranges, uint32_t count, VkMappedMemoryRange *list)
{
    for (uint32_t i = 0; i < count; i++)
        list[i] = range_of(ranges[i].page, ranges[i].offset, ranges[i].size);
}

quire_result qi_vulkan_page_flush_many(void *state, const quire_page_range *ranges, uint32_t count)
{
    const qi_vulkan *vulkan = state;
    VkMappedMemoryRange list[QUIRE_MAX_RANGES];
    list_ranges(ranges, count, list);
    VkResult code = vulkan->f.FlushMappedMemoryRanges(vulkan->device, count, list);
    return code ? qi_vulkan_fail(code, "vkFlushMappedMemoryRanges, ranges: %u", count)
                : QUIRE_SUCCESS;
}

quire_result qi_vulkan_page_invalidate_many(void *state, const quire_page_range *ranges,
                                            uint32_t count)
{
    const qi_vulkan *vulkan = state;
    VkMappedMemoryRange list[QUIRE_MAX_RANGES];
    list_ranges(ranges, count, list);
    VkResult code = vulkan->f.InvalidateMappedMemoryRanges(vulkan->device, count, list);
    return code ? qi_vulkan_fail(code, "vkInvalidateMappedMemoryRanges, ranges: %u", count)
                : QUIRE_SUCCESS;
}

/* ---- the buffer over a page --------------------------------------------------------------- */

/* Checks that a new buffer can be bound to the page at offset 0. */
static quire_result check_page_buffer(const qi_vulkan *vulkan, const qi_vulkan_page *page,
                                      VkBuffer buffer)
{
    VkBufferMemoryRequirementsInfo2 info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2, .buffer = buffer};
    VkMemoryDedicatedRequirements dedicated = {.sType =
                                                   VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS};
    VkMemoryRequirements2 requirements = {.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2,
                                          .pNext = &dedicated};
    vulkan->f.GetBufferMemoryRequirements2(vulkan->device, &info, &requirements);
    if (dedicated.requiresDedicatedAllocation)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "the driver requires a dedicated page for such a buffer, so that "
                                  "none can cover a shared page");
    if (!(requirements.memoryRequirements.memoryTypeBits >> page->kind & 1))
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0, "memory kind %u cannot hold a buffer",
                                  page->kind);
    if (requirements.memoryRequirements.size > page->allocated)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0, "a buffer over a page of %s needs %s",
                                  qi_bytes(page->allocated).text,
                                  qi_bytes(requirements.memoryRequirements.size).text);
    return QUIRE_SUCCESS;
}

/* The create info that the buffer over a page would have must be valid on the device. */
static quire_result check_cover(const qi_vulkan *vulkan, const qi_vulkan_page *page)
{
    if (page->size > vulkan->max_buffer_size)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "a page of %s: the largest buffer of the device has %s, so that "
                                  "none can cover the page",
                                  qi_bytes(page->size).text,
                                  qi_bytes(vulkan->max_buffer_size).text);
    return qi_vulkan_check_page_buffer(vulkan, qi_vulkan_types_of(page));
}

/* Creates the buffer and binds it, without publishing it. */
static quire_result make_page_buffer(const qi_vulkan *vulkan, const qi_vulkan_page *page,
                                     VkBuffer *buffer)
{
    cover c;
    quire_result result = check_cover(vulkan, page);
    if (result)
        return result;
    describe_cover(vulkan, page, &c);
    VkResult code = vulkan->f.CreateBuffer(vulkan->device, &c.info, vulkan->callbacks, buffer);
    if (code)
        return qi_vulkan_fail(code, "vkCreateBuffer over a page of %s", qi_bytes(page->size).text);
    result = check_page_buffer(vulkan, page, *buffer);
    if (!result) {
        code = vulkan->f.BindBufferMemory(vulkan->device, *buffer, page->memory, 0);
        if (code)
            result = qi_vulkan_fail(code, "vkBindBufferMemory over a page");
    }
    if (result)
        vulkan->f.DestroyBuffer(vulkan->device, *buffer, vulkan->callbacks);
    return result;
}

quire_result qi_vulkan_page_buffer(qi_vulkan *vulkan, const quire_native_page *native,
                                   VkBuffer *buffer)
{
    qi_vulkan_page *page = qi_vulkan_page_of(native);
    uint64_t existing = qi_atomic_load_acquire_u64(&page->buffer);
    if (!existing && page->dedicated_to == QUIRE_OBJECT_BUFFER)
        existing = page->dedicated_native; /* it covers the page */
    if (existing) {
        *buffer = QI_VULKAN_HANDLE(VkBuffer, existing);
        return QUIRE_SUCCESS;
    }
    if (page->dedicated_to == QUIRE_OBJECT_IMAGE)
        return quire_backend_fail(
            QUIRE_ERROR_UNSUPPORTED, 0,
            "the page is dedicated to an image, so that no buffer can cover it: "
            "see quire_lluvia_image_write");
    VkBuffer created = VK_NULL_HANDLE;
    quire_result result = make_page_buffer(vulkan, page, &created);
    if (result)
        return result;
    *buffer = created;
    bool is_ours = false; /* the weak exchange may fail although no buffer exists */
    while (!existing && !is_ours)
        is_ours = qi_atomic_exchange_if_u64(&page->buffer, &existing, QI_VULKAN_NUMBER(created));
    if (!is_ours) { /* another thread published its buffer first */
        vulkan->f.DestroyBuffer(vulkan->device, created, vulkan->callbacks);
        *buffer = QI_VULKAN_HANDLE(VkBuffer, existing);
    }
    return QUIRE_SUCCESS;
}

quire_result qi_vulkan_copy_buffer(qi_vulkan *vulkan, const quire_native_page *native,
                                   VkBufferUsageFlags usage, VkBuffer *buffer)
{
    const qi_vulkan_page *page = qi_vulkan_page_of(native);
    if (page->dedicated_to == QUIRE_OBJECT_BUFFER && usage & ~page->dedicated_usage)
        return quire_backend_fail(
            QUIRE_ERROR_UNSUPPORTED, 0,
            "the page is dedicated to a buffer of the caller that is not known to have the usage "
            "VK_BUFFER_USAGE_TRANSFER_%s_BIT, which this copy needs",
            usage == VK_BUFFER_USAGE_TRANSFER_SRC_BIT ? "SRC" : "DST");
    return qi_vulkan_page_buffer(vulkan, native, buffer);
}
