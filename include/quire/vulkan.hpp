/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/vulkan.hpp - the owners of quire/quire.hpp for objects of Vulkan: buffers and images from
 * Vulkan's create infos, and places for those that the program created. C++14, as quire.hpp.
 * quire::memory::adopt takes over a memory of quire_vulkan_memory_create.
 *
 *     auto device = quire::device::open(quire_vulkan_wrap, &wrap_options).value();
 *     auto vertices = quire::vulkan::create_buffer(device, {}, buffer_info).value();
 *     VkBuffer native = quire::vulkan::native(vertices).value();
 *
 * The owner of a placed object frees its memory; the VkBuffer or VkImage stays the program's, who
 * destroys it before or after. Thread-safety and errors are those of the functions of C in
 * quire/vulkan.h that the comments name.
 */
#ifndef QUIRE_VULKAN_HPP
#define QUIRE_VULKAN_HPP

#include "quire/quire.hpp"
#include "quire/vulkan.h"

namespace quire
{
namespace vulkan
{

/* ---- in a memory ---------------------------------------------------------------------------- */

/* quire_vulkan_buffer_create */
inline result<buffer> create_buffer(const memory &home, const VkBufferCreateInfo &info,
                                    const quire_vulkan_object_options &options = {})
{
    return detail::make<buffer, quire_buffer>(home, quire_vulkan_buffer_create, &info, &options);
}

/* quire_vulkan_image_create */
inline result<image> create_image(const memory &home, const VkImageCreateInfo &info,
                                  const quire_vulkan_object_options &options = {})
{
    return detail::make<image, quire_image>(home, quire_vulkan_image_create, &info, &options);
}

/* quire_vulkan_buffer_place */
inline result<buffer> place_buffer(const memory &home, VkBuffer native,
                                   const quire_vulkan_object_options &options = {})
{
    return detail::make<buffer, quire_buffer>(home, quire_vulkan_buffer_place, native, &options);
}

/* quire_vulkan_image_place */
inline result<image> place_image(const memory &home, VkImage native,
                                 const quire_vulkan_object_options &options = {})
{
    return detail::make<image, quire_image>(home, quire_vulkan_image_place, native, &options);
}

/* ---- in the default memory of the best kind that has room ------------------------------------ */

/* quire_vulkan_device_buffer_create */
inline result<buffer> create_buffer(const device &home, const quire_kind_request &kinds,
                                    const VkBufferCreateInfo &info,
                                    const quire_vulkan_object_options &options = {})
{
    return detail::make<buffer, quire_buffer>(home, quire_vulkan_device_buffer_create, &kinds,
                                              &info, &options);
}

/* quire_vulkan_device_image_create */
inline result<image> create_image(const device &home, const quire_kind_request &kinds,
                                  const VkImageCreateInfo &info,
                                  const quire_vulkan_object_options &options = {})
{
    return detail::make<image, quire_image>(home, quire_vulkan_device_image_create, &kinds, &info,
                                            &options);
}

/* quire_vulkan_device_buffer_place */
inline result<buffer> place_buffer(const device &home, const quire_kind_request &kinds,
                                   VkBuffer native, const quire_vulkan_object_options &options = {})
{
    return detail::make<buffer, quire_buffer>(home, quire_vulkan_device_buffer_place, &kinds,
                                              native, &options);
}

/* quire_vulkan_device_image_place */
inline result<image> place_image(const device &home, const quire_kind_request &kinds,
                                 VkImage native, const quire_vulkan_object_options &options = {})
{
    return detail::make<image, quire_image>(home, quire_vulkan_device_image_place, &kinds, native,
                                            &options);
}

/* ---- native handles -------------------------------------------------------------------------- */

/* quire_vulkan_buffer_get */
inline result<VkBuffer> native(const buffer &of)
{
    VkBuffer found = VK_NULL_HANDLE;
    const quire_result code = quire_vulkan_buffer_get(of.memory_handle(), {of.handle()}, &found);
    return detail::make_result(code, std::move(found));
}

/* quire_vulkan_image_get */
inline result<VkImage> native(const image &of)
{
    VkImage found = VK_NULL_HANDLE;
    const quire_result code = quire_vulkan_image_get(of.memory_handle(), {of.handle()}, &found);
    return detail::make_result(code, std::move(found));
}

/* quire_vulkan_get_range */
inline result<quire_vulkan_range> range_of(const placed &of)
{
    quire_vulkan_range range = {};
    const quire_result code = quire_vulkan_get_range(of.memory_handle(), of.handle(), &range);
    return detail::make_result(code, std::move(range));
}

/* quire_vulkan_page_buffer: with the buffer that covers the page */
inline result<quire_vulkan_range> page_buffer_of(const placed &of)
{
    quire_vulkan_range range = {};
    const quire_result code = quire_vulkan_page_buffer(of.memory_handle(), of.handle(), &range);
    return detail::make_result(code, std::move(range));
}

} // namespace vulkan
} // namespace quire

#endif
