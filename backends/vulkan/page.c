/*
 * page.c - pages: VkDeviceMemory with what its kind, its object and the caller ask for.
 *
 * Besides the core's record a page has one of its own, for the buffer that covers it. That buffer
 * is made by whoever wants it first; of several threads that do one wins, and no lock is held.
 */
#include "backends/vulkan/chain.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- making ------------------------------------------------------------------------------- */

/* Kinds of features that are not enabled are there, and must not be used; nor may more be asked for
   than a heap has, which some drivers grant all the same. */
static quire_result check_kind(const qi_vulkan *vulkan, uint32_t kind, uint64_t size)
{
    uint64_t most = vulkan->memory.memoryHeaps[vulkan->memory.memoryTypes[kind].heapIndex].size;
    if (size > most)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, 0,
                                  "%s asked: the heap of memory kind %u has %s in all",
                                  qi_bytes(size).text, kind, qi_bytes(most).text);
    VkMemoryPropertyFlags flags = vulkan->memory.memoryTypes[kind].propertyFlags;
    if (flags & VK_MEMORY_PROPERTY_PROTECTED_BIT && !vulkan->enabled.protected_memory)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "memory kind %u is protected, and the device was made without "
                                  "the feature protectedMemory",
                                  kind);
    if (flags & (QUIRE_DEVICE_COHERENT | QUIRE_DEVICE_UNCACHED) && !vulkan->enabled.device_coherent)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "memory kind %u is device-coherent, and the device was made "
                                  "without the feature deviceCoherentMemory",
                                  kind);
    return QUIRE_SUCCESS;
}

/* The buffer that covers a page. */
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
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
    };
}

/*
 * What is allocated for a page: as many bytes as the buffer over it will take, which with some
 * drivers is a little more. Where that cannot be known, or is too much, the page is as asked.
 */
static uint64_t size_with_cover(const qi_vulkan *vulkan, const quire_page_request *request,
                                const qi_vulkan_page *page)
{
    cover c;
    quire_requirements needs = {.size = 0};
    if (request->native || request->description)
        return request->size;
    describe_cover(vulkan, page, &c);
    qi_error before = qi_error_save();
    quire_result result = qi_vulkan_buffer_needs(vulkan, &c.info, &needs);
    qi_error_restore(&before);
    bool is_wanted = !result && needs.kind_mask >> request->kind & 1 && needs.size > request->size;
    return is_wanted && needs.size <= vulkan->max_page &&
                   !check_kind(vulkan, request->kind, needs.size)
               ? needs.size
               : request->size;
}

static VkExternalMemoryHandleTypeFlags external_of(const quire_page_request *request,
                                                   const qi_vulkan_chain *c)
{
    const quire_vulkan_import *import = request->description;
    return import ? (VkExternalMemoryHandleTypeFlags)import->type : c->exported.handleTypes;
}

static quire_result allocate(qi_vulkan *vulkan, const quire_page_request *request,
                             qi_vulkan_page *page)
{
    qi_vulkan_chain c = {.info = {.pNext = NULL}};
    quire_result result = check_kind(vulkan, request->kind, request->size);
    if (!result)
        result = qi_vulkan_chain_describe(vulkan, request, &c);
    if (result)
        return result;
    page->external = external_of(request, &c);
    page->is_exportable = c.exported.handleTypes != 0;
    page->allocated = size_with_cover(vulkan, request, page);
    c.info.allocationSize = page->allocated;
    VkResult code =
        vulkan->f.AllocateMemory(vulkan->device, &c.info, vulkan->callbacks, &page->memory);
    return code ? qi_vulkan_fail(code, "vkAllocateMemory of %s of memory kind %u",
                                 qi_bytes(request->size).text, request->kind)
                : QUIRE_SUCCESS;
}

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
    page->tied = request->object;
    page->tied_native = request->native;
    quire_result result = allocate(vulkan, request, page);
    if (result) {
        qi_host_release(&vulkan->host, page, 1, sizeof *page);
        return result;
    }
    qi_vulkan_name(vulkan, VK_OBJECT_TYPE_DEVICE_MEMORY, QI_VULKAN_NUMBER(page->memory),
                   request->label);
    *out = (quire_native_page){
        .handle = QI_VULKAN_NUMBER(page->memory),
        .size = request->size,
        .data = (uintptr_t)page,
    };
    return QUIRE_SUCCESS;
}

void qi_vulkan_page_destroy(void *state, const quire_native_page *native)
{
    qi_vulkan_late_free(state, qi_vulkan_page_of(native));
}

void qi_vulkan_page_free(qi_vulkan *vulkan, qi_vulkan_page *page)
{
    uint64_t buffer = qi_atomic_load_acquire_u64(&page->buffer);
    if (buffer)
        vulkan->f.DestroyBuffer(vulkan->device, QI_VULKAN_HANDLE(VkBuffer, buffer),
                                vulkan->callbacks);
    vulkan->f.FreeMemory(vulkan->device, page->memory, vulkan->callbacks);
    qi_host_release(&vulkan->host, page, 1, sizeof *page);
}

/* ---- mapping ------------------------------------------------------------------------------ */

quire_result qi_vulkan_page_map(void *state, const quire_native_page *native, void **pointer)
{
    const qi_vulkan *vulkan = state;
    const qi_vulkan_page *page = qi_vulkan_page_of(native);
    VkResult code = vulkan->f.MapMemory(vulkan->device, page->memory, 0, VK_WHOLE_SIZE, 0, pointer);
    return code ? qi_vulkan_fail(code, "vkMapMemory of a page of %s", qi_bytes(page->size).text)
                : QUIRE_SUCCESS;
}

void qi_vulkan_page_unmap(void *state, const quire_native_page *native)
{
    const qi_vulkan *vulkan = state;
    vulkan->f.UnmapMemory(vulkan->device, qi_vulkan_page_of(native)->memory);
}

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
    return code ? qi_vulkan_fail(code, "vkFlushMappedMemoryRanges of %u ranges", count)
                : QUIRE_SUCCESS;
}

quire_result qi_vulkan_page_invalidate_many(void *state, const quire_page_range *ranges,
                                            uint32_t count)
{
    const qi_vulkan *vulkan = state;
    VkMappedMemoryRange list[QUIRE_MAX_RANGES];
    list_ranges(ranges, count, list);
    VkResult code = vulkan->f.InvalidateMappedMemoryRanges(vulkan->device, count, list);
    return code ? qi_vulkan_fail(code, "vkInvalidateMappedMemoryRanges of %u ranges", count)
                : QUIRE_SUCCESS;
}

/* ---- the buffer over a page --------------------------------------------------------------- */

static quire_result check_page_buffer(const qi_vulkan *vulkan, const qi_vulkan_page *page,
                                      VkBuffer buffer)
{
    VkBufferMemoryRequirementsInfo2 info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2, .buffer = buffer};
    VkMemoryRequirements2 needs = {.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2};
    vulkan->f.GetBufferMemoryRequirements2(vulkan->device, &info, &needs);
    if (!(needs.memoryRequirements.memoryTypeBits >> page->kind & 1))
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0, "no buffer can lie in memory kind %u",
                                  page->kind);
    if (needs.memoryRequirements.size > page->allocated)
        return quire_backend_fail(
            QUIRE_ERROR_UNSUPPORTED, 0, "a buffer over a page of %s would take %s",
            qi_bytes(page->allocated).text, qi_bytes(needs.memoryRequirements.size).text);
    return QUIRE_SUCCESS;
}

static quire_result make_page_buffer(const qi_vulkan *vulkan, const qi_vulkan_page *page,
                                     VkBuffer *buffer)
{
    cover c;
    describe_cover(vulkan, page, &c);
    VkResult code = vulkan->f.CreateBuffer(vulkan->device, &c.info, vulkan->callbacks, buffer);
    if (code)
        return qi_vulkan_fail(code, "vkCreateBuffer over a page of %s", qi_bytes(page->size).text);
    quire_result result = check_page_buffer(vulkan, page, *buffer);
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
    uint64_t there = qi_atomic_load_acquire_u64(&page->buffer);
    if (!there && page->tied == QUIRE_OBJECT_BUFFER)
        there = page->tied_native;
    if (there) {
        *buffer = QI_VULKAN_HANDLE(VkBuffer, there);
        return QUIRE_SUCCESS;
    }
    if (page->tied == QUIRE_OBJECT_IMAGE)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "the driver wants the page for one image: no buffer can lie over "
                                  "it; see quire_vulkan_image_write");
    VkBuffer made = VK_NULL_HANDLE;
    quire_result result = make_page_buffer(vulkan, page, &made);
    if (result)
        return result;
    *buffer = made;
    bool is_ours = false;
    while (!there && !is_ours)
        is_ours = qi_atomic_exchange_if_u64(&page->buffer, &there, QI_VULKAN_NUMBER(made));
    if (!is_ours) { /* another thread's was first */
        vulkan->f.DestroyBuffer(vulkan->device, made, vulkan->callbacks);
        *buffer = QI_VULKAN_HANDLE(VkBuffer, there);
    }
    return QUIRE_SUCCESS;
}
