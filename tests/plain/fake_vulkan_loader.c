/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fake_vulkan_loader.c - the fake Vulkan driver as an installed one: found by the real loader
 * through its manifest, with the real validation layer over it. A small program runs without a
 * message on every built-in layout; the layer and the driver report misuse under the same number.
 *
 * Needs libvulkan1 and vulkan-validationlayers; skipped with a message without them.
 */
#include "tests/support/plain.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/vulkan/loaded.h"

/* ---- a small program ---------------------------------------------------------------------- */

/* The first allowed memory type that is host-visible. */
static uint32_t visible_type(loaded *l, uint32_t allowed, bool *coherent)
{
    VkPhysicalDeviceMemoryProperties memory;
    CALL(l, vkGetPhysicalDeviceMemoryProperties)(l->physical, &memory);
    for (uint32_t i = 0; i < memory.memoryTypeCount; i++) {
        VkMemoryPropertyFlags flags = memory.memoryTypes[i].propertyFlags;
        *coherent = flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
        if (allowed >> i & 1 && flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)
            return i;
    }
    check_failed(__FILE__, __LINE__, "no type is visible");
}

/* Two buffers in one memory: the first is filled and copied to the second. Large enough that best
   practices report nothing. */
enum { SIZE = 1 << 20 };

typedef struct pair {
    VkBuffer buffers[2];
    VkDeviceMemory memory;
    uint64_t second; /* where the other begins */
    bool coherent;
} pair;

static pair make_pair(loaded *l)
{
    pair made;
    VkMemoryRequirements needs;
    VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                               .size = SIZE,
                               .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                        VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_VK(CALL(l, vkCreateBuffer)(l->device, &info, NULL, &made.buffers[i]));
        CALL(l, vkGetBufferMemoryRequirements)(l->device, made.buffers[i], &needs);
    }
    VkMemoryAllocateInfo memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                   .allocationSize = needs.size * 2,
                                   .memoryTypeIndex =
                                       visible_type(l, needs.memoryTypeBits, &made.coherent)};
    CHECK_VK(CALL(l, vkAllocateMemory)(l->device, &memory, NULL, &made.memory));
    made.second = needs.size;
    CHECK_VK(CALL(l, vkBindBufferMemory)(l->device, made.buffers[0], made.memory, 0));
    CHECK_VK(CALL(l, vkBindBufferMemory)(l->device, made.buffers[1], made.memory, made.second));
    return made;
}

static void end_pair(loaded *l, const pair *made)
{
    CALL(l, vkDestroyBuffer)(l->device, made->buffers[0], NULL);
    CALL(l, vkDestroyBuffer)(l->device, made->buffers[1], NULL);
    CALL(l, vkFreeMemory)(l->device, made->memory, NULL);
}

static void record(loaded *l, const pair *on, VkCommandBuffer commands)
{
    VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                      .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                               .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                               .dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT};
    VkBufferCopy region = {0, 0, SIZE};
    CHECK_VK(CALL(l, vkBeginCommandBuffer)(commands, &begin));
    CALL(l, vkCmdFillBuffer)(commands, on->buffers[0], 0, VK_WHOLE_SIZE, 0x12345678);
    CALL(l, vkCmdPipelineBarrier)
    (commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &barrier, 0,
     NULL, 0, NULL);
    CALL(l, vkCmdCopyBuffer)(commands, on->buffers[0], on->buffers[1], 1, &region);
    barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    CALL(l, vkCmdPipelineBarrier)
    (commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, NULL,
     0, NULL);
    CHECK_VK(CALL(l, vkEndCommandBuffer)(commands));
}

static void run(loaded *l, const pair *on)
{
    VkCommandPool pool;
    VkCommandBuffer commands;
    VkCommandPoolCreateInfo of_pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    CHECK_VK(CALL(l, vkCreateCommandPool)(l->device, &of_pool, NULL, &pool));
    VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                        .commandPool = pool,
                                        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                        .commandBufferCount = 1};
    CHECK_VK(CALL(l, vkAllocateCommandBuffers)(l->device, &info, &commands));
    record(l, on, commands);
    VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                           .commandBufferCount = 1,
                           .pCommandBuffers = &commands};
    CHECK_VK(CALL(l, vkQueueSubmit)(l->queue, 1, &submit, VK_NULL_HANDLE));
    CHECK_VK(CALL(l, vkQueueWaitIdle)(l->queue));
    CALL(l, vkDestroyCommandPool)(l->device, pool, NULL);
}

static void read_back(loaded *l, const pair *on)
{
    void *data;
    VkMappedMemoryRange range = {.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
                                 .memory = on->memory,
                                 .size = VK_WHOLE_SIZE};
    CHECK_VK(CALL(l, vkMapMemory)(l->device, on->memory, 0, VK_WHOLE_SIZE, 0, &data));
    if (!on->coherent)
        CHECK_VK(CALL(l, vkInvalidateMappedMemoryRanges)(l->device, 1, &range));
    const uint32_t *words = (const uint32_t *)(const void *)((const char *)data + on->second);
    for (uint32_t i = 0; i < SIZE / 4; i++)
        CHECK_EQ(words[i], 0x12345678);
    CALL(l, vkUnmapMemory)(l->device, on->memory);
}

/* ---- the cases ---------------------------------------------------------------------------- */

static void every_layout_runs_in_silence(void)
{
    for (uint32_t i = 0; i < fv_layout_count; i++) {
        loaded l;
        loaded_open(&l, fv_layouts[i].name);
        pair made = make_pair(&l);
        run(&l, &made);
        read_back(&l, &made);
        end_pair(&l, &made);
        loaded_close(&l);
        if (l.said)
            check_failed(__FILE__, __LINE__, "on %s the layer said %u times: %s",
                         fv_layouts[i].name, l.said, l.first);
        CHECK(loaded_reported("calls vkAllocateMemory 1"));
        if (loaded_reported("message") || loaded_reported("live"))
            check_failed(__FILE__, __LINE__, "the driver has something to say of %s",
                         fv_layouts[i].name);
    }
}

/* Both report it, which proves that both were called. */
static void a_leak_is_noticed_by_layer_and_driver(void)
{
    loaded l;
    loaded_open(&l, "amd-bar");
    pair made = make_pair(&l);
    CALL(&l, vkDestroyBuffer)(l.device, made.buffers[0], NULL);
    CALL(&l, vkFreeMemory)(l.device, made.memory, NULL);
    loaded_close(&l);
    CHECK(loaded_reported(
        "message ERROR VUID-vkDestroyDevice-device-00378: vkDestroyDevice: a buffer"));
    CHECK_EQ(l.said > 0, loaded_has_layer());
}

static void a_fault_comes_through(void)
{
    loaded l;
    CHECK(!setenv("QUIRE_FAKE_FAIL", "vkAllocateMemory 1 -2", 1));
    loaded_open(&l, "lavapipe");
    VkDeviceMemory memory;
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                 .allocationSize = SIZE};
    VkResult result = CALL(&l, vkAllocateMemory)(l.device, &info, NULL, &memory);
    CHECK_EQ((uint32_t)result, (uint32_t)VK_ERROR_OUT_OF_DEVICE_MEMORY);
    loaded_close(&l);
    CHECK(!unsetenv("QUIRE_FAKE_FAIL"));
    CHECK(!loaded_reported("message"));
}

/* Opens and destroys a device in a child process; returns the signal that ended it, or 0. */
static int signal_of_another_process(void)
{
    fflush(stdout);
    pid_t child = fork();
    int status = 0;
    if (!child) {
        loaded l;
        CHECK(freopen("/dev/null", "w", stderr));
        loaded_open(&l, "amd-bar");
        loaded_close(&l);
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void options_come_from_the_environment(void)
{
    loaded l;
    CHECK(!setenv("QUIRE_FAKE_FLAGS", "odd-sizes,stale,late,dirty", 1));
    CHECK(!setenv("QUIRE_FAKE_CAPACITY", "0 4000000", 1));
    loaded_open(&l, "adreno");
    pair made = make_pair(&l);
    CHECK_EQ(made.second % 2, 1); /* the odd size, by which the second is misplaced */
    end_pair(&l, &made);
    VkDeviceMemory memory;
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                 .allocationSize = 4000001};
    VkResult result = CALL(&l, vkAllocateMemory)(l.device, &info, NULL, &memory);
    CHECK_EQ((uint32_t)result, (uint32_t)VK_ERROR_OUT_OF_DEVICE_MEMORY);
    loaded_close(&l);
    CHECK(loaded_reported("message ERROR VUID-VkBindBufferMemoryInfo-memoryOffset-01036"));
    CHECK(!unsetenv("QUIRE_FAKE_CAPACITY"));
    CHECK_EQ(signal_of_another_process(), 0);
    CHECK(!setenv("QUIRE_FAKE_FLAGS", "odd-size", 1));
    CHECK_EQ(signal_of_another_process(), SIGABRT);
    CHECK(!unsetenv("QUIRE_FAKE_FLAGS"));
}

/* ---- the same rules under the same numbers ------------------------------------------------ */

typedef struct misuse {
    const char *rule; /* the end of its id, which names the rule */
    void (*body)(loaded *l, const pair *on);
    const char *later; /* the id in newer layers; NULL means the same */
} misuse;

static void allocate_nothing(loaded *l, const pair *on)
{
    VkDeviceMemory memory;
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    (void)on;
    (void)CALL(l, vkAllocateMemory)(l->device, &info, NULL, &memory);
}

static void allocate_of_no_type(loaded *l, const pair *on)
{
    VkDeviceMemory memory;
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                 .allocationSize = SIZE,
                                 .memoryTypeIndex = 31};
    (void)on;
    (void)CALL(l, vkAllocateMemory)(l->device, &info, NULL, &memory);
}

static void map_twice(loaded *l, const pair *on)
{
    void *data;
    (void)CALL(l, vkMapMemory)(l->device, on->memory, 0, 16, 0, &data);
    (void)CALL(l, vkMapMemory)(l->device, on->memory, 0, 16, 0, &data);
}

static void map_too_much(loaded *l, const pair *on)
{
    void *data;
    (void)CALL(l, vkMapMemory)(l->device, on->memory, 64, on->second * 2, 0, &data);
}

static void unmap_what_is_not_mapped(loaded *l, const pair *on)
{
    CALL(l, vkUnmapMemory)(l->device, on->memory);
}

static void flush(loaded *l, const pair *on, uint64_t offset, uint64_t size)
{
    VkMappedMemoryRange range = {.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
                                 .memory = on->memory,
                                 .offset = offset,
                                 .size = size};
    void *data;
    (void)CALL(l, vkMapMemory)(l->device, on->memory, 0, 4096, 0, &data);
    (void)CALL(l, vkFlushMappedMemoryRanges)(l->device, 1, &range);
}

static void flush_from_within_an_atom(loaded *l, const pair *on)
{
    flush(l, on, 8, 256);
}

static void flush_half_an_atom(loaded *l, const pair *on)
{
    flush(l, on, 0, 100);
}

static void flush_beyond_the_mapping(loaded *l, const pair *on)
{
    flush(l, on, 0, 8192);
}

static void bind_again(loaded *l, const pair *on)
{
    (void)CALL(l, vkBindBufferMemory)(l->device, on->buffers[0], on->memory, on->second);
}

/* Binds a third buffer, with this offset. */
static void bind_at(loaded *l, const pair *on, uint64_t offset)
{
    VkBuffer buffer;
    VkMemoryRequirements needs;
    VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                               .size = SIZE,
                               .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT};
    CHECK_VK(CALL(l, vkCreateBuffer)(l->device, &info, NULL, &buffer));
    CALL(l, vkGetBufferMemoryRequirements)(l->device, buffer, &needs);
    (void)CALL(l, vkBindBufferMemory)(l->device, buffer, on->memory, offset);
    CALL(l, vkDestroyBuffer)(l->device, buffer, NULL);
}

static void bind_misaligned(loaded *l, const pair *on)
{
    bind_at(l, on, 1);
}

static void bind_beyond_the_memory(loaded *l, const pair *on)
{
    bind_at(l, on, on->second + 4096);
}

static void fill_an_odd_part(loaded *l, const pair *on)
{
    (void)on;
    VkCommandPool pool;
    VkCommandBuffer commands;
    VkCommandPoolCreateInfo of_pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    CHECK_VK(CALL(l, vkCreateCommandPool)(l->device, &of_pool, NULL, &pool));
    VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                        .commandPool = pool,
                                        .commandBufferCount = 1};
    CHECK_VK(CALL(l, vkAllocateCommandBuffers)(l->device, &info, &commands));
    CHECK_VK(CALL(l, vkBeginCommandBuffer)(commands, &begin));
    CALL(l, vkCmdFillBuffer)(commands, on->buffers[0], 2, 8, 0);
    CALL(l, vkDestroyCommandPool)(l->device, pool, NULL);
}

static const misuse MISUSES[] = {
    {"allocationSize-00638", allocate_nothing, "allocationSize-07897"},
    {"pAllocateInfo-01714", allocate_of_no_type, NULL},
    {"vkMapMemory-memory-00678", map_twice, NULL},
    {"vkMapMemory-size-00681", map_too_much, NULL},
    {"vkUnmapMemory-memory-00689", unmap_what_is_not_mapped, NULL},
    {"offset-00687", flush_from_within_an_atom, NULL},
    {"size-01390", flush_half_an_atom, NULL},
    {"size-00685", flush_beyond_the_mapping, NULL},
    {"buffer-07459", bind_again, NULL},
    {"memoryOffset-01036", bind_misaligned, NULL},
    {"size-01037", bind_beyond_the_memory, NULL},
    {"vkCmdFillBuffer-dstOffset-00025", fill_an_odd_part, NULL},
};

static void misuse_is_told_by_layer_and_driver_alike(void)
{
    for (size_t i = 0; i < sizeof MISUSES / sizeof *MISUSES; i++) {
        loaded l;
        loaded_open(&l, "incoherent");
        pair made = make_pair(&l);
        MISUSES[i].body(&l, &made);
        end_pair(&l, &made);
        loaded_close(&l);
        if (!loaded_reported_with(MISUSES[i].rule))
            check_failed(__FILE__, __LINE__, "the driver does not say %s", MISUSES[i].rule);
        if (loaded_has_layer() && !(MISUSES[i].later && strstr(l.first, MISUSES[i].later)))
            CHECK_HAS(l.first, MISUSES[i].rule);
    }
}

int main(void)
{
    const char *missing = loaded_prepare(FAKE_VULKAN_MANIFEST);
    if (missing) {
        plain_skip("the fake driver through the loader", missing);
        return plain_end();
    }
    if (!loaded_has_layer())
        plain_skip("the validation layer over the fake driver", "it is not installed");
    plain_case("every layout runs without a message", every_layout_runs_in_silence);
    plain_case("layer and driver report a leak", a_leak_is_noticed_by_layer_and_driver);
    plain_case("layer and driver report the same misuse", misuse_is_told_by_layer_and_driver_alike);
    plain_case("an injected fault reaches the program", a_fault_comes_through);
    plain_case("options come from the environment", options_come_from_the_environment);
    loaded_end();
    return plain_end();
}
