/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_renderer.c - a renderer of tiles that gets a VkDevice from its host program and owns its
 * Vulkan objects. quire places them.
 *
 * The host program has made instance and device, and its create infos are gone. The renderer uses
 * two queue families where the device has them: one uploads the tiles, the other draws the frame.
 *
 *     cc vulkan_renderer.c $(pkg-config --cflags --libs quire vulkan) && ./a.out
 *
 * The exit status is 77 if the machine has no Vulkan device.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <quire/quire.h>
#include <quire/vulkan.h>
#include <vulkan/vulkan.h>

enum { TILE = 32, COLUMNS = 8, SIDE = TILE * COLUMNS, TILES = 4, MAX_FAMILIES = 16 };
enum { TILE_BYTES = 4 * TILE * TILE, ATLAS_BYTES = TILES * TILE_BYTES, NO_DEVICE = 77 };
static const uint64_t FRAME_BYTES = UINT64_C(4) * SIDE * SIDE;

/* Both leave the calling function, which returns bool, if the call fails. */
#define QUIRE(call)                                                                                \
    do {                                                                                           \
        if (call) {                                                                                \
            fprintf(stderr, "%s\n", quire_last_error());                                           \
            return false;                                                                          \
        }                                                                                          \
    } while (0)
#define VULKAN(call)                                                                               \
    do {                                                                                           \
        VkResult code_ = (call);                                                                   \
        if (code_) {                                                                               \
            fprintf(stderr, #call " returns %d\n", (int)code_);                                    \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

/* ---- the host program ----------------------------------------------------------------------- */

typedef struct worker {
    uint32_t family;
    VkQueue queue;
    VkCommandPool pool;
    VkCommandBuffer commands;
} worker;

typedef struct host {
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    worker draw, upload; /* of one family where the device has no other */
} host;

/* Chooses a family that draws, and another one that copies if there is one. */
static bool find_families(host *h)
{
    VkQueueFamilyProperties families[MAX_FAMILIES];
    uint32_t count = MAX_FAMILIES;
    vkGetPhysicalDeviceQueueFamilyProperties(h->physical, &count, families);
    h->draw.family = h->upload.family = UINT32_MAX;
    for (uint32_t i = count; i-- > 0;)
        if (families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT)
            h->draw.family = i;
    for (uint32_t i = 0; i < count; i++)
        if (i != h->draw.family &&
            families[i].queueFlags & (VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT))
            h->upload.family = i;
    if (h->upload.family == UINT32_MAX)
        h->upload.family = h->draw.family;
    return h->draw.family != UINT32_MAX;
}

static bool open_device(host *h)
{
    const float priority = 1.0f;
    bool is_one = h->draw.family == h->upload.family;
    VkDeviceQueueCreateInfo queues[2] = {
        {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
         .queueFamilyIndex = h->draw.family,
         .queueCount = 1,
         .pQueuePriorities = &priority},
        {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
         .queueFamilyIndex = h->upload.family,
         .queueCount = 1,
         .pQueuePriorities = &priority},
    };
    VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                               .queueCreateInfoCount = is_one ? 1 : 2,
                               .pQueueCreateInfos = queues};
    VULKAN(vkCreateDevice(h->physical, &info, NULL, &h->device));
    vkGetDeviceQueue(h->device, h->draw.family, 0, &h->draw.queue);
    vkGetDeviceQueue(h->device, h->upload.family, 0, &h->upload.queue);
    return true;
}

/* Returns whether there is a device; *is_wrong: something failed. */
static bool open_host(host *h, bool *is_wrong)
{
    VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                     .apiVersion = VK_API_VERSION_1_1};
    VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                 .pApplicationInfo = &application};
    uint32_t count = 1;
    *is_wrong = false;
    if (vkCreateInstance(&info, NULL, &h->instance))
        return false;
    VkResult result = vkEnumeratePhysicalDevices(h->instance, &count, &h->physical);
    if (result < 0 || !count || !find_families(h))
        return false;
    *is_wrong = !open_device(h);
    return !*is_wrong;
}

static void close_host(host *h)
{
    if (h->device)
        vkDestroyDevice(h->device, NULL);
    if (h->instance)
        vkDestroyInstance(h->instance, NULL);
}

/* ---- the renderer and its memory ------------------------------------------------------------ */

/* What the renderer owns. Each handle of quire is all that its memory needs. */
typedef struct renderer {
    host *host;
    quire_device *memory;   /* quire's view of the host's device */
    quire_allocation tiles; /* host-visible bytes, a part of a buffer of quire's own */
    quire_vulkan_range tiles_at;
    VkBuffer atlas, output; /* the renderer's buffers and image, and their places */
    quire_buffer atlas_at, output_at;
    VkImage frame;
    quire_image frame_at;
    const unsigned char *pixels; /* of `output` */
} renderer;

/* The host has told its version and what it enabled, which is nothing here. */
static bool wrap_device(renderer *r)
{
    const host *h = r->host;
    const uint32_t families[2] = {h->draw.family, h->upload.family};
    const quire_vulkan_wrap_options options = {
        .instance = h->instance,
        .physical_device = h->physical,
        .device = h->device,
        .get_instance_proc_addr = vkGetInstanceProcAddr,
        .api_version = VK_API_VERSION_1_1,
        .settings = {.queue_families = families,
                     .queue_family_count = families[0] == families[1] ? 1 : 2},
    };
    QUIRE(quire_vulkan_wrap(&options, &r->memory));
    /* A small program: pages of 1 MiB, for every kind that it will use. */
    QUIRE(quire_device_set_default_options(
        r->memory, &(quire_memory_options){.pages = {.page_size = 1 << 20}}));
    return true;
}

/* Tile i has the colour i in all its bytes. */
static bool make_tiles(renderer *r)
{
    quire_memory *memory = NULL;
    quire_allocation_info place;
    const quire_kind_request upload = {.intent = QUIRE_INTENT_UPLOAD};
    const quire_allocation_options options = {
        .size = ATLAS_BYTES, .alignment = 16, .name = "tiles", .mapped = true, .info = &place};
    QUIRE(quire_device_allocate(r->memory, &upload, &options, &memory, &r->tiles));
    for (int i = 0; i < TILES; i++)
        memset((char *)place.host + i * TILE_BYTES, i + 1, TILE_BYTES);
    QUIRE(quire_flush(memory, r->tiles, 0, 0));
    QUIRE(quire_vulkan_page_buffer(memory, r->tiles, &r->tiles_at));
    return true;
}

/* Creates a buffer of the renderer's own, shared by the two families, and lets quire place it. */
static bool make_buffer(renderer *r, const char *name, uint64_t size, quire_intent intent,
                        VkBuffer *buffer, quire_buffer *at)
{
    const uint32_t families[2] = {r->host->draw.family, r->host->upload.family};
    bool is_one = families[0] == families[1];
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = size,
        .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
        .sharingMode = is_one ? VK_SHARING_MODE_EXCLUSIVE : VK_SHARING_MODE_CONCURRENT,
        .queueFamilyIndexCount = is_one ? 0 : 2,
        .pQueueFamilyIndices = families,
    };
    quire_memory *memory = NULL;
    quire_allocation_info place;
    const quire_kind_request kinds = {.intent = intent};
    const quire_vulkan_object_options options = {.name = name,
                                                 .mapped = intent == QUIRE_INTENT_HOST_READ,
                                                 .create_info = &info,
                                                 .info = &place};
    VULKAN(vkCreateBuffer(r->host->device, &info, NULL, buffer));
    QUIRE(quire_vulkan_device_buffer_place(r->memory, &kinds, *buffer, &options, &memory, at));
    printf("%s: page %" PRIu32 ", offset %" PRIu64 ", size %" PRIu64 "\n", name, place.page,
           place.offset, place.size);
    if (place.host)
        r->pixels = place.host;
    return true;
}

static bool make_frame(renderer *r)
{
    VkImageCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
        .imageType = VK_IMAGE_TYPE_2D,
        .format = VK_FORMAT_R8G8B8A8_UNORM,
        .extent = {SIDE, SIDE, 1},
        .mipLevels = 1,
        .arrayLayers = 1,
        .samples = VK_SAMPLE_COUNT_1_BIT,
        .usage = VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT,
    };
    quire_memory *memory = NULL;
    const quire_vulkan_object_options options = {.name = "frame", .create_info = &info};
    VULKAN(vkCreateImage(r->host->device, &info, NULL, &r->frame));
    QUIRE(quire_vulkan_device_image_place(r->memory, NULL, r->frame, &options, &memory,
                                          &r->frame_at));
    return true;
}

/* ---- commands ------------------------------------------------------------------------------- */

static bool begin(const host *h, worker *w)
{
    VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                    .queueFamilyIndex = w->family};
    VULKAN(vkCreateCommandPool(h->device, &pool, NULL, &w->pool));
    VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                        .commandPool = w->pool,
                                        .commandBufferCount = 1};
    VULKAN(vkAllocateCommandBuffers(h->device, &info, &w->commands));
    VkCommandBufferBeginInfo first = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    VULKAN(vkBeginCommandBuffer(w->commands, &first));
    return true;
}

/* Submits the commands and waits for them. */
static bool finish(const host *h, const worker *w)
{
    VkFence fence = VK_NULL_HANDLE;
    VkFenceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                           .commandBufferCount = 1,
                           .pCommandBuffers = &w->commands};
    VULKAN(vkEndCommandBuffer(w->commands));
    VULKAN(vkCreateFence(h->device, &info, NULL, &fence));
    VkResult result = vkQueueSubmit(w->queue, 1, &submit, fence);
    if (!result)
        result = vkWaitForFences(h->device, 1, &fence, VK_TRUE, UINT64_MAX);
    vkDestroyFence(h->device, fence, NULL);
    vkDestroyCommandPool(h->device, w->pool, NULL);
    VULKAN(result);
    return true;
}

static bool upload_tiles(const renderer *r)
{
    worker *w = &r->host->upload;
    const VkBufferCopy all = {.srcOffset = r->tiles_at.buffer_offset, .size = ATLAS_BYTES};
    if (!begin(r->host, w))
        return false;
    vkCmdCopyBuffer(w->commands, r->tiles_at.buffer, r->atlas, 1, &all);
    return finish(r->host, w);
}

static void change_layout(VkCommandBuffer commands, VkImage image, VkImageLayout before,
                          VkImageLayout after)
{
    bool is_first = before == VK_IMAGE_LAYOUT_UNDEFINED;
    VkImageMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
        .srcAccessMask = is_first ? 0 : VK_ACCESS_TRANSFER_WRITE_BIT,
        .dstAccessMask = is_first ? VK_ACCESS_TRANSFER_WRITE_BIT : VK_ACCESS_TRANSFER_READ_BIT,
        .oldLayout = before,
        .newLayout = after,
        .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
        .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
        .image = image,
        .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1},
    };
    vkCmdPipelineBarrier(
        commands, is_first ? VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT : VK_PIPELINE_STAGE_TRANSFER_BIT,
        VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, NULL, 0, NULL, 1, &barrier);
}

static int tile_at(int column, int row)
{
    return (3 * row + column) % TILES;
}

/* Each cell of the frame gets a tile of the atlas; then the frame goes to the output. */
static bool draw_frame(const renderer *r)
{
    worker *w = &r->host->draw;
    VkBufferImageCopy cells[COLUMNS * COLUMNS];
    const VkImageSubresourceLayers layers = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
    for (int i = 0; i < COLUMNS * COLUMNS; i++) {
        int column = i % COLUMNS, row = i / COLUMNS;
        cells[i] = (VkBufferImageCopy){
            .bufferOffset = (VkDeviceSize)(tile_at(column, row) * TILE_BYTES),
            .imageSubresource = layers,
            .imageOffset = {column * TILE, row * TILE, 0},
            .imageExtent = {TILE, TILE, 1},
        };
    }
    const VkBufferImageCopy whole = {.imageSubresource = layers, .imageExtent = {SIDE, SIDE, 1}};
    const VkMemoryBarrier to_host = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                     .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                     .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
    if (!begin(r->host, w))
        return false;
    change_layout(w->commands, r->frame, VK_IMAGE_LAYOUT_UNDEFINED,
                  VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL);
    vkCmdCopyBufferToImage(w->commands, r->atlas, r->frame, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL,
                           COLUMNS * COLUMNS, cells);
    change_layout(w->commands, r->frame, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL,
                  VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
    vkCmdCopyImageToBuffer(w->commands, r->frame, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, r->output,
                           1, &whole);
    vkCmdPipelineBarrier(w->commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0,
                         1, &to_host, 0, NULL, 0, NULL);
    return finish(r->host, w);
}

/* ---- the program ---------------------------------------------------------------------------- */

static bool check(const renderer *r)
{
    quire_memory *memory = NULL;
    QUIRE(quire_device_owner(r->memory, r->output_at.allocation, &memory));
    QUIRE(quire_invalidate(memory, r->output_at.allocation, 0, 0));
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            if (r->pixels[4 * (y * SIDE + x)] != tile_at(x / TILE, y / TILE) + 1) {
                fprintf(stderr, "pixel %d, %d has %d\n", x, y, r->pixels[4 * (y * SIDE + x)]);
                return false;
            }
    printf("%d x %d pixels are right, drawn by %s\n", SIDE, SIDE,
           r->host->draw.family == r->host->upload.family ? "one queue family"
                                                          : "two queue families");
    return true;
}

static bool render(renderer *r)
{
    return wrap_device(r) && make_tiles(r) &&
           make_buffer(r, "atlas", ATLAS_BYTES, QUIRE_INTENT_DEVICE, &r->atlas, &r->atlas_at) &&
           make_buffer(r, "output", FRAME_BYTES, QUIRE_INTENT_HOST_READ, &r->output,
                       &r->output_at) &&
           make_frame(r) && upload_tiles(r) && draw_frame(r) && check(r);
}

/* The objects are the renderer's; quire takes their memory back. */
static void end(renderer *r)
{
    const quire_allocation all[] = {r->tiles, r->atlas_at.allocation, r->output_at.allocation,
                                    r->frame_at.allocation};
    if (r->atlas)
        vkDestroyBuffer(r->host->device, r->atlas, NULL);
    if (r->output)
        vkDestroyBuffer(r->host->device, r->output, NULL);
    if (r->frame)
        vkDestroyImage(r->host->device, r->frame, NULL);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].id)
            quire_device_free(r->memory, all[i]);
    if (quire_device_destroy(&r->memory))
        fprintf(stderr, "%s\n", quire_last_error());
}

int main(void)
{
    host h = {.instance = NULL};
    bool is_wrong = false;
    if (!open_host(&h, &is_wrong)) {
        close_host(&h);
        if (!is_wrong)
            fputs("no Vulkan device that draws\n", stderr);
        return is_wrong ? 1 : NO_DEVICE;
    }
    renderer r = {.host = &h};
    bool is_right = render(&r);
    end(&r);
    close_host(&h);
    return is_right ? 0 : 1;
}
