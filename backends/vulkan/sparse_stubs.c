/*
 * sparse_stubs.c - the functions of quire/vulkan_sparse.h in a build without the backend, as those
 * of stubs.c.
 */
#include "quire/vulkan_sparse.h"
#include "src/base/result.h"
#include "src/base/stub.h"

static quire_result refuse(void)
{
    return qi_fail(
        QUIRE_ERROR_UNSUPPORTED,
        "this build of quire has no Vulkan backend: its build needs the Vulkan headers and "
        "volk");
}

quire_result quire_vulkan_sparse_buffer_create(quire_memory *memory, const VkBufferCreateInfo *info,
                                               const quire_vulkan_object_options *options,
                                               quire_vulkan_sparse **sparse)
{
    UNUSED(memory);
    UNUSED(info);
    UNUSED(options);
    CLEAR(sparse, NULL);
    return refuse();
}

quire_result quire_vulkan_sparse_image_create(quire_memory *memory, const VkImageCreateInfo *info,
                                              const quire_vulkan_object_options *options,
                                              quire_vulkan_sparse **sparse)
{
    UNUSED(memory);
    UNUSED(info);
    UNUSED(options);
    CLEAR(sparse, NULL);
    return refuse();
}

quire_result quire_vulkan_sparse_destroy(quire_vulkan_sparse **sparse)
{
    UNUSED(sparse);
    return refuse();
}

quire_result quire_vulkan_sparse_get_info(quire_vulkan_sparse *sparse,
                                          quire_vulkan_sparse_info *info)
{
    UNUSED(sparse);
    CLEAR(info, (quire_vulkan_sparse_info){.size = 0});
    return refuse();
}

quire_result quire_vulkan_sparse_get_part(quire_vulkan_sparse *sparse, uint64_t offset,
                                          quire_vulkan_part *part)
{
    UNUSED(sparse);
    UNUSED(offset);
    CLEAR(part, (quire_vulkan_part){.size = 0});
    return refuse();
}

quire_result quire_vulkan_sparse_bind(quire_vulkan_sparse *sparse, uint64_t offset, uint64_t size)
{
    UNUSED(sparse);
    UNUSED(offset);
    UNUSED(size);
    return refuse();
}

quire_result quire_vulkan_sparse_unbind(quire_vulkan_sparse *sparse, uint64_t offset, uint64_t size)
{
    UNUSED(sparse);
    UNUSED(offset);
    UNUSED(size);
    return refuse();
}

quire_result quire_vulkan_sparse_bind_region(quire_vulkan_sparse *sparse,
                                             const quire_vulkan_region *region)
{
    UNUSED(sparse);
    UNUSED(region);
    return refuse();
}

quire_result quire_vulkan_sparse_unbind_region(quire_vulkan_sparse *sparse,
                                               const quire_vulkan_region *region)
{
    UNUSED(sparse);
    UNUSED(region);
    return refuse();
}

quire_result quire_vulkan_sparse_find(quire_vulkan_sparse *sparse,
                                      const quire_vulkan_region *region, uint64_t *offset)
{
    UNUSED(sparse);
    UNUSED(region);
    CLEAR(offset, 0);
    return refuse();
}

quire_result quire_vulkan_alias_buffer_create(quire_memory *memory, quire_allocation allocation,
                                              const VkBufferCreateInfo *info,
                                              const quire_vulkan_alias_options *options,
                                              quire_vulkan_alias **alias)
{
    UNUSED(memory);
    UNUSED(allocation);
    UNUSED(info);
    UNUSED(options);
    CLEAR(alias, NULL);
    return refuse();
}

quire_result quire_vulkan_alias_image_create(quire_memory *memory, quire_allocation allocation,
                                             const VkImageCreateInfo *info,
                                             const quire_vulkan_alias_options *options,
                                             quire_vulkan_alias **alias)
{
    UNUSED(memory);
    UNUSED(allocation);
    UNUSED(info);
    UNUSED(options);
    CLEAR(alias, NULL);
    return refuse();
}

quire_result quire_vulkan_alias_destroy(quire_vulkan_alias **alias)
{
    UNUSED(alias);
    return refuse();
}

quire_result quire_vulkan_alias_get_info(quire_vulkan_alias *alias, quire_vulkan_alias_info *info)
{
    UNUSED(alias);
    CLEAR(info, (quire_vulkan_alias_info){.size = 0});
    return refuse();
}
