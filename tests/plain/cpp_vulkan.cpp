/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cpp_vulkan.cpp - quire/vulkan.hpp on the fake driver: who owns memory and native objects.
 */
#include "tests/plain/cpp.h"

#include "quire/vulkan.hpp"

extern "C" {
#include "tests/support/vulkan/fake_vulkan.h"
}

static fv_driver *driver;

static quire::device open_fake()
{
    quire_vulkan_options options = {};
    options.get_instance_proc_addr = fv_door(driver);
    return quire::device::open(quire_vulkan_open, &options).value();
}

static VkBufferCreateInfo buffer_info()
{
    VkBufferCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.size = 4096;
    info.usage = VK_BUFFER_USAGE_VERTEX_BUFFER_BIT;
    return info;
}

static VkImageCreateInfo image_info()
{
    VkImageCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO;
    info.imageType = VK_IMAGE_TYPE_2D;
    info.format = VK_FORMAT_R8G8B8A8_UNORM;
    info.extent = {64, 64, 1};
    info.mipLevels = info.arrayLayers = 1;
    info.samples = VK_SAMPLE_COUNT_1_BIT;
    info.usage = VK_IMAGE_USAGE_SAMPLED_BIT;
    return info;
}

static void test_created()
{
    quire::device device = open_fake();
    quire::memory memory = quire::memory::create(device).value();
    quire::buffer kept;
    {
        auto buffer = quire::vulkan::create_buffer(device, {}, buffer_info()).value();
        auto image = quire::vulkan::create_image(device, {}, image_info()).value();
        auto second = quire::vulkan::create_buffer(memory, buffer_info()).value();
        auto picture = quire::vulkan::create_image(memory, image_info()).value();
        CHECK(quire::vulkan::native(buffer).value() != quire::vulkan::native(second).value());
        CHECK(quire::vulkan::native(image).value() != quire::vulkan::native(picture).value());
        CHECK(quire::vulkan::range_of(image).value().memory != VK_NULL_HANDLE);
        CHECK(quire::vulkan::page_buffer_of(second).value().buffer != VK_NULL_HANDLE);
        kept = std::move(buffer);
    }
    CHECK(fv_live(driver, FV_IMAGE) == 0);
    device = quire::device(); /* it and its default memory live as long as the buffer */
    memory = quire::memory();
    CHECK(quire::vulkan::native(kept).value() != VK_NULL_HANDLE);
    kept = quire::buffer();
    CHECK(fv_live(driver, FV_DEVICE) == 0 && fv_live(driver, FV_BUFFER) == 0);
}

static void test_placed()
{
    quire::device device = open_fake();
    quire::memory memory = quire::memory::create(device).value();
    quire_vulkan_handles handles;
    CHECK(quire_vulkan_get_handles(device.handle(), &handles) == QUIRE_SUCCESS);
    const auto function = [&](const char *name) {
        return handles.get_instance_proc_addr(handles.instance, name);
    };
    const auto create_buffer = reinterpret_cast<PFN_vkCreateBuffer>(function("vkCreateBuffer"));
    const auto create_image = reinterpret_cast<PFN_vkCreateImage>(function("vkCreateImage"));
    const auto end_buffer = reinterpret_cast<PFN_vkDestroyBuffer>(function("vkDestroyBuffer"));
    const auto end_image = reinterpret_cast<PFN_vkDestroyImage>(function("vkDestroyImage"));
    const VkBufferCreateInfo info = buffer_info();
    const VkImageCreateInfo picture_info = image_info();
    VkBuffer buffers[2];
    VkImage images[2];
    for (int i = 0; i < 2; i++) {
        CHECK(!create_buffer(handles.device, &info, nullptr, &buffers[i]));
        CHECK(!create_image(handles.device, &picture_info, nullptr, &images[i]));
    }
    {
        auto first = quire::vulkan::place_buffer(device, {}, buffers[0]).value();
        auto second = quire::vulkan::place_buffer(memory, buffers[1]).value();
        auto third = quire::vulkan::place_image(device, {}, images[0]).value();
        auto fourth = quire::vulkan::place_image(memory, images[1]).value();
        CHECK(quire::vulkan::native(second).value() == buffers[1]);
        CHECK(quire::vulkan::native(third).value() == images[0]);
        CHECK(first && fourth);
    }
    /* the program's remain, and in checked builds a buffer of quire over the page */
    CHECK(fv_live(driver, FV_BUFFER) >= 2 && fv_live(driver, FV_IMAGE) == 2);
    for (int i = 0; i < 2; i++) {
        end_buffer(handles.device, buffers[i], nullptr);
        end_image(handles.device, images[i], nullptr);
    }
}

static void test_refusals()
{
    quire::device device = open_fake(), none;
    quire::memory empty;
    VkBufferCreateInfo wrong = buffer_info();
    wrong.size = 0;
    CHECK(quire::vulkan::create_buffer(device, {}, wrong).code() == QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK(quire::vulkan::create_buffer(none, {}, buffer_info()).code() ==
          QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK(quire::vulkan::create_image(empty, image_info()).code() == QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK(quire::vulkan::place_buffer(device, {}, VkBuffer()).code() ==
          QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK(quire::vulkan::native(quire::buffer()).code() == QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK(quire::vulkan::native(quire::image()).code() == QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK(fv_live(driver, FV_BUFFER) == 0);
}

int main()
{
    driver = fv_create(nullptr);
    run_case("buffers and images of create infos", test_created);
    run_case("the program's buffers and images", test_placed);
    run_case("refusals leave nothing", test_refusals);
    CHECK(fv_message_count(driver, FV_ERROR) == 0);
    fv_destroy(driver);
    std::printf("1..%d\n", cases);
}
