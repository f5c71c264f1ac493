/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
// renderer.cpp - a small renderer as users of the Vulkan Memory Allocator write it in C++: meshes,
// uniforms and a texture through staging buffers, a depth image, a frame that is read back.
// VMA_HEADER is the only difference between its two builds.
//
// The quads lie on whole pixels, so that the program knows every pixel and checks it.
#include <array>
#include <cstring>
#include <vector>

#include VMA_HEADER

#include "tests/clients/vma/machine.h"
#include "tests/clients/vma/quad_pipeline.h"

namespace
{

constexpr uint32_t side = 64;  // of the frame, in pixels
constexpr uint32_t texels = 8; // of the texture's side
constexpr VkFormat color_format = VK_FORMAT_R8G8B8A8_UNORM;
constexpr VkFormat depth_format = VK_FORMAT_D32_SFLOAT;

// ---- objects with their memory ------------------------------------------------------------------

class buffer
{
  public:
    buffer(VmaAllocator allocator, const char *name, VkDeviceSize size, VkBufferUsageFlags usage,
           const VmaAllocationCreateInfo &how)
        : allocator_(allocator)
    {
        VkBufferCreateInfo info = {};
        info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
        info.size = size;
        info.usage = usage;
        MUST(vmaCreateBuffer(allocator, &info, &how, &handle_, &allocation_, &place_));
        vmaSetAllocationName(allocator, allocation_, name);
    }
    ~buffer()
    {
        vmaDestroyBuffer(allocator_, handle_, allocation_);
    }
    buffer(const buffer &) = delete;
    buffer &operator=(const buffer &) = delete;

    VkBuffer handle() const
    {
        return handle_;
    }
    bool is_host_visible() const
    {
        VkMemoryPropertyFlags flags = 0;
        vmaGetAllocationMemoryProperties(allocator_, allocation_, &flags);
        return (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0;
    }
    // Persistently mapped buffers; the counted map of another one.
    void write(const void *bytes, size_t size)
    {
        void *at = place_.pMappedData;
        if (!at)
            MUST(vmaMapMemory(allocator_, allocation_, &at));
        std::memcpy(at, bytes, size);
        MUST(vmaFlushAllocation(allocator_, allocation_, 0, VK_WHOLE_SIZE));
        if (!place_.pMappedData)
            vmaUnmapMemory(allocator_, allocation_);
    }
    std::vector<uint8_t> read(size_t size) const
    {
        std::vector<uint8_t> bytes(size);
        MUST(vmaInvalidateAllocation(allocator_, allocation_, 0, VK_WHOLE_SIZE));
        MUST_HOLD(place_.pMappedData != nullptr);
        std::memcpy(bytes.data(), place_.pMappedData, size);
        return bytes;
    }

  private:
    VmaAllocator allocator_;
    VkBuffer handle_ = VK_NULL_HANDLE;
    VmaAllocation allocation_ = VK_NULL_HANDLE;
    VmaAllocationInfo place_ = {};
};

class image
{
  public:
    image(const machine &m, VmaAllocator allocator, VkFormat format, uint32_t extent,
          VkImageUsageFlags usage, VkImageAspectFlags aspect, const VmaAllocationCreateInfo &how)
        : device_(m.device), allocator_(allocator)
    {
        VkImageCreateInfo info = {};
        info.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO;
        info.imageType = VK_IMAGE_TYPE_2D;
        info.format = format;
        info.extent = {extent, extent, 1};
        info.mipLevels = 1;
        info.arrayLayers = 1;
        info.samples = VK_SAMPLE_COUNT_1_BIT;
        info.usage = usage;
        MUST(vmaCreateImage(allocator, &info, &how, &handle_, &allocation_, nullptr));
        VkImageViewCreateInfo view = {};
        view.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO;
        view.image = handle_;
        view.viewType = VK_IMAGE_VIEW_TYPE_2D;
        view.format = format;
        view.subresourceRange = {aspect, 0, 1, 0, 1};
        MUST(vkCreateImageView(device_, &view, nullptr, &view_));
    }
    ~image()
    {
        vkDestroyImageView(device_, view_, nullptr);
        vmaDestroyImage(allocator_, handle_, allocation_);
    }
    image(const image &) = delete;
    image &operator=(const image &) = delete;

    VkImage handle() const
    {
        return handle_;
    }
    VkImageView view() const
    {
        return view_;
    }

  private:
    VkDevice device_;
    VmaAllocator allocator_;
    VkImage handle_ = VK_NULL_HANDLE;
    VkImageView view_ = VK_NULL_HANDLE;
    VmaAllocation allocation_ = VK_NULL_HANDLE;
};

// ---- ways to allocate ---------------------------------------------------------------------------

VmaAllocationCreateInfo on_device(VmaAllocationCreateFlags flags = 0)
{
    VmaAllocationCreateInfo how = {};
    how.usage = VMA_MEMORY_USAGE_AUTO;
    how.flags = flags;
    how.priority = 1;
    return how;
}

VmaAllocationCreateInfo staging()
{
    return on_device(VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT |
                     VMA_ALLOCATION_CREATE_MAPPED_BIT);
}

VmaAllocationCreateInfo readback()
{
    return on_device(VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT |
                     VMA_ALLOCATION_CREATE_MAPPED_BIT);
}

// Where the host can write to device memory, no staging buffer is needed.
VmaAllocationCreateInfo uniforms()
{
    return on_device(VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT |
                     VMA_ALLOCATION_CREATE_HOST_ACCESS_ALLOW_TRANSFER_INSTEAD_BIT);
}

// ---- the scene ----------------------------------------------------------------------------------

struct vertex {
    float x, y, depth, u, v;
};

struct view {
    std::array<float, 4> scale; // of positions, and their offset
    std::array<float, 4> tint;
};

// Two quads of 32 x 32 pixels that overlap; the second is behind the first.
struct quad {
    uint32_t x, y;
    float depth;
};
constexpr uint32_t quad_side = 32;
constexpr std::array<quad, 2> quads = {{{8, 8, 0.25F}, {24, 24, 0.75F}}};
constexpr view picture = {{2.0F / side, 2.0F / side, -1, -1}, {1, 1, 0, 1}};
constexpr std::array<uint16_t, 12> indices = {0, 1, 2, 2, 1, 3, 4, 5, 6, 6, 5, 7};

std::array<vertex, 8> vertices()
{
    std::array<vertex, 8> all = {};
    for (uint32_t i = 0; i < all.size(); i++) {
        const quad &q = quads[i / 4];
        const uint32_t right = i % 2;
        const uint32_t down = i / 2 % 2;
        all[i] = {static_cast<float>(q.x + right * quad_side),
                  static_cast<float>(q.y + down * quad_side), q.depth, static_cast<float>(right),
                  static_cast<float>(down)};
    }
    return all;
}

using pixel = std::array<uint8_t, 4>;

pixel texel(uint32_t x, uint32_t y)
{
    return {static_cast<uint8_t>(x * 30), static_cast<uint8_t>(y * 30),
            static_cast<uint8_t>(255 - x - y), 255};
}

std::vector<pixel> texture()
{
    std::vector<pixel> all;
    for (uint32_t i = 0; i < texels * texels; i++)
        all.push_back(texel(i % texels, i / texels));
    return all;
}

// The picture, computed on the host: the first quad hides the second.
pixel expected(uint32_t x, uint32_t y)
{
    for (const quad &q : quads) {
        if (x < q.x || y < q.y || x >= q.x + quad_side || y >= q.y + quad_side)
            continue;
        pixel color = texel((x - q.x) * texels / quad_side, (y - q.y) * texels / quad_side);
        color[2] = 0; // the tint
        return color;
    }
    return {0, 0, 0, 255};
}

// ---- a frame ------------------------------------------------------------------------------------

class renderer
{
  public:
    renderer()
    {
        machine_open(&m_);
        VmaAllocatorCreateInfo info = {};
        info.physicalDevice = m_.physical_device;
        info.device = m_.device;
        info.instance = m_.instance;
        info.vulkanApiVersion = VK_API_VERSION_1_3;
        MUST(vmaCreateAllocator(&info, &allocator_));
        quad_pipeline_create(&pipeline_, &m_, color_format, depth_format);
    }

    void draw()
    {
        const auto corners = vertices();
        const auto colors = texture();
        buffer mesh = make("vertices", sizeof corners, VK_BUFFER_USAGE_VERTEX_BUFFER_BIT);
        buffer order = make("indices", sizeof indices, VK_BUFFER_USAGE_INDEX_BUFFER_BIT);
        image surface(m_, allocator_, color_format, texels,
                      VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT,
                      VK_IMAGE_ASPECT_COLOR_BIT, on_device());
        buffer views(allocator_, "uniforms", sizeof picture,
                     VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
                     uniforms());
        upload(mesh, corners.data(), sizeof corners);
        upload(order, indices.data(), sizeof indices);
        upload(surface, colors);
        if (views.is_host_visible())
            views.write(&picture, sizeof picture);
        else
            upload(views, &picture, sizeof picture);
        quad_frame frame = {};
        frame.vertices = mesh.handle();
        frame.indices = order.handle();
        frame.uniforms = views.handle();
        frame.texture = surface.view();
        frame.side = side;
        frame.index_count = indices.size();
        draw(frame);
    }

    int close()
    {
        VmaTotalStatistics all;
        vmaCalculateStatistics(allocator_, &all);
        MUST_HOLD(all.total.statistics.allocationCount == 0);
        vmaDestroyAllocator(allocator_);
        quad_pipeline_destroy(&pipeline_, &m_);
        return machine_close(&m_);
    }

  private:
    buffer make(const char *name, VkDeviceSize size, VkBufferUsageFlags usage)
    {
        return buffer(allocator_, name, size, usage | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
                      on_device());
    }

    void upload(const buffer &to, const void *bytes, size_t size)
    {
        buffer from(allocator_, "staging", size, VK_BUFFER_USAGE_TRANSFER_SRC_BIT, staging());
        from.write(bytes, size);
        const VkBufferCopy copy = {0, 0, size};
        machine_begin(&m_);
        vkCmdCopyBuffer(m_.commands, from.handle(), to.handle(), 1, &copy);
        machine_submit(&m_);
    }

    void upload(const image &to, const std::vector<pixel> &colors)
    {
        const size_t size = colors.size() * sizeof(pixel);
        buffer from(allocator_, "staging", size, VK_BUFFER_USAGE_TRANSFER_SRC_BIT, staging());
        from.write(colors.data(), size);
        VkBufferImageCopy copy = {};
        copy.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
        copy.imageExtent = {texels, texels, 1};
        machine_begin(&m_);
        machine_transition(&m_, to.handle(), VK_IMAGE_ASPECT_COLOR_BIT, VK_IMAGE_LAYOUT_UNDEFINED,
                           VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL);
        vkCmdCopyBufferToImage(m_.commands, from.handle(), to.handle(),
                               VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &copy);
        machine_transition(&m_, to.handle(), VK_IMAGE_ASPECT_COLOR_BIT,
                           VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL,
                           VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL);
        machine_submit(&m_);
    }

    void draw(quad_frame &frame)
    {
        const size_t size = sizeof(pixel) * side * side;
        image color(m_, allocator_, color_format, side,
                    VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT,
                    VK_IMAGE_ASPECT_COLOR_BIT,
                    on_device(VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT));
        image depth(m_, allocator_, depth_format, side, VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT,
                    VK_IMAGE_ASPECT_DEPTH_BIT,
                    on_device(VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT));
        buffer pixels(allocator_, "readback", size, VK_BUFFER_USAGE_TRANSFER_DST_BIT, readback());
        frame.color = color.view();
        frame.depth = depth.view();
        VkBufferImageCopy copy = {};
        copy.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
        copy.imageExtent = {side, side, 1};
        machine_begin(&m_);
        machine_transition(&m_, color.handle(), VK_IMAGE_ASPECT_COLOR_BIT,
                           VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL);
        machine_transition(&m_, depth.handle(), VK_IMAGE_ASPECT_DEPTH_BIT,
                           VK_IMAGE_LAYOUT_UNDEFINED,
                           VK_IMAGE_LAYOUT_DEPTH_STENCIL_ATTACHMENT_OPTIMAL);
        quad_pipeline_draw(&pipeline_, &m_, &frame);
        machine_transition(&m_, color.handle(), VK_IMAGE_ASPECT_COLOR_BIT,
                           VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL,
                           VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
        vkCmdCopyImageToBuffer(m_.commands, color.handle(), VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL,
                               pixels.handle(), 1, &copy);
        machine_submit(&m_);
        check(pixels.read(size));
    }

    static void check(const std::vector<uint8_t> &bytes)
    {
        for (uint32_t i = 0; i < side * side; i++) {
            const pixel color = expected(i % side, i / side);
            MUST_HOLD(!std::memcmp(color.data(), bytes.data() + i * sizeof color, sizeof color));
        }
        machine_print_hash("renderer", bytes.data(), bytes.size());
    }

    machine m_ = {};
    VmaAllocator allocator_ = VK_NULL_HANDLE;
    quad_pipeline pipeline_ = {};
};

} // namespace

int main()
{
    renderer r;
    r.draw();
    return r.close();
}
