/*
 * fake_vulkan_loader.c - the fake Vulkan driver as an installed one: found by the real loader
 * through its manifest, with the real validation layer over it, on every built-in layout. A small
 * program runs in silence; a wrong one is told of by the layer and by the driver.
 *
 * Needs libvulkan1 and vulkan-validationlayers, and says so where they are not there.
 */
#include "tests/support/plain.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/vulkan/fake_vulkan.h"

#define LAYER "VK_LAYER_KHRONOS_validation"

static PFN_vkGetInstanceProcAddr get;
static bool has_layer;
static char report[] = "/tmp/fake-vulkan-report-XXXXXX";

typedef struct opened {
    VkInstance instance;
    VkDebugUtilsMessengerEXT messenger;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    uint32_t said; /* warnings and errors of the layer */
    char first[512];
} opened;

#define CALL(o, function) ((PFN_##function)(void (*)(void))get((o)->instance, #function))
#define CHECK_VK(result) CHECK_EQ((uint32_t)(result), (uint32_t)VK_SUCCESS)

static VkBool32 VKAPI_PTR hear(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                               VkDebugUtilsMessageTypeFlagsEXT types,
                               const VkDebugUtilsMessengerCallbackDataEXT *data, void *state)
{
    opened *o = state;
    (void)severity, (void)types;
    if (!o->said++)
        snprintf(o->first, sizeof o->first, "%s", data->pMessage);
    return VK_FALSE;
}

static void open_instance(opened *o)
{
    const char *layer = LAYER, *debug = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    VkDebugUtilsMessengerCreateInfoEXT messenger = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                           VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                       VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
        .pfnUserCallback = hear,
        .pUserData = o};
    VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                     .apiVersion = VK_API_VERSION_1_3};
    VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                 .pApplicationInfo = &application,
                                 .enabledLayerCount = has_layer,
                                 .ppEnabledLayerNames = &layer,
                                 .enabledExtensionCount = 1,
                                 .ppEnabledExtensionNames = &debug};
    uint32_t one = 1;
    CHECK_VK(CALL(o, vkCreateInstance)(&info, NULL, &o->instance));
    CHECK_VK(CALL(o, vkCreateDebugUtilsMessengerEXT)(o->instance, &messenger, NULL, &o->messenger));
    CHECK_VK(CALL(o, vkEnumeratePhysicalDevices)(o->instance, &one, &o->physical));
    CHECK_EQ(one, 1);
}

static void open_on(opened *o, const char *layout)
{
    *o = (opened){0};
    CHECK(!setenv("QUIRE_FAKE_LAYOUT", layout, 1));
    open_instance(o);
    VkPhysicalDeviceProperties properties;
    char name[64];
    snprintf(name, sizeof name, "fake %s", layout);
    CALL(o, vkGetPhysicalDeviceProperties)(o->physical, &properties);
    CHECK_STR(properties.deviceName, name);
    float priority = 1;
    const char *portability = "VK_KHR_portability_subset";
    VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                     .queueCount = 1,
                                     .pQueuePriorities = &priority};
    VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                               .queueCreateInfoCount = 1,
                               .pQueueCreateInfos = &queue,
                               .enabledExtensionCount = !strcmp(layout, "moltenvk"),
                               .ppEnabledExtensionNames = &portability};
    CHECK_VK(CALL(o, vkCreateDevice)(o->physical, &info, NULL, &o->device));
    CALL(o, vkGetDeviceQueue)(o->device, 0, 0, &o->queue);
}

static void end(opened *o)
{
    CALL(o, vkDestroyDevice)(o->device, NULL);
    CALL(o, vkDestroyDebugUtilsMessengerEXT)(o->instance, o->messenger, NULL);
    CALL(o, vkDestroyInstance)(o->instance, NULL);
}

/* ---- a small program ---------------------------------------------------------------------- */

/* The first type among those allowed that the host sees. */
static uint32_t visible_type(opened *o, uint32_t allowed, bool *coherent)
{
    VkPhysicalDeviceMemoryProperties memory;
    CALL(o, vkGetPhysicalDeviceMemoryProperties)(o->physical, &memory);
    for (uint32_t i = 0; i < memory.memoryTypeCount; i++) {
        VkMemoryPropertyFlags flags = memory.memoryTypes[i].propertyFlags;
        *coherent = flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
        if (allowed >> i & 1 && flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)
            return i;
    }
    check_failed(__FILE__, __LINE__, "no type is visible");
}

/* Two buffers in one memory: the first is filled and copied to the second. Large enough that best
 * practices have nothing to say. */
enum { SIZE = 1 << 20 };

typedef struct pair {
    VkBuffer buffers[2];
    VkDeviceMemory memory;
    uint64_t second; /* where the other begins */
    bool coherent;
} pair;

static pair make_pair(opened *o)
{
    pair made;
    VkMemoryRequirements needs;
    VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                               .size = SIZE,
                               .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                        VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_VK(CALL(o, vkCreateBuffer)(o->device, &info, NULL, &made.buffers[i]));
        CALL(o, vkGetBufferMemoryRequirements)(o->device, made.buffers[i], &needs);
    }
    VkMemoryAllocateInfo memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                   .allocationSize = needs.size * 2,
                                   .memoryTypeIndex =
                                       visible_type(o, needs.memoryTypeBits, &made.coherent)};
    CHECK_VK(CALL(o, vkAllocateMemory)(o->device, &memory, NULL, &made.memory));
    made.second = needs.size;
    CHECK_VK(CALL(o, vkBindBufferMemory)(o->device, made.buffers[0], made.memory, 0));
    CHECK_VK(CALL(o, vkBindBufferMemory)(o->device, made.buffers[1], made.memory, made.second));
    return made;
}

static void end_pair(opened *o, const pair *made)
{
    CALL(o, vkDestroyBuffer)(o->device, made->buffers[0], NULL);
    CALL(o, vkDestroyBuffer)(o->device, made->buffers[1], NULL);
    CALL(o, vkFreeMemory)(o->device, made->memory, NULL);
}

static void record(opened *o, const pair *on, VkCommandBuffer commands)
{
    VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                      .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                               .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                               .dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT};
    VkBufferCopy region = {0, 0, SIZE};
    CHECK_VK(CALL(o, vkBeginCommandBuffer)(commands, &begin));
    CALL(o, vkCmdFillBuffer)(commands, on->buffers[0], 0, VK_WHOLE_SIZE, 0x12345678);
    CALL(o, vkCmdPipelineBarrier)
    (commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &barrier, 0,
     NULL, 0, NULL);
    CALL(o, vkCmdCopyBuffer)(commands, on->buffers[0], on->buffers[1], 1, &region);
    barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    CALL(o, vkCmdPipelineBarrier)
    (commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, NULL,
     0, NULL);
    CHECK_VK(CALL(o, vkEndCommandBuffer)(commands));
}

static void run(opened *o, const pair *on)
{
    VkCommandPool pool;
    VkCommandBuffer commands;
    VkCommandPoolCreateInfo of_pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    CHECK_VK(CALL(o, vkCreateCommandPool)(o->device, &of_pool, NULL, &pool));
    VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                        .commandPool = pool,
                                        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                        .commandBufferCount = 1};
    CHECK_VK(CALL(o, vkAllocateCommandBuffers)(o->device, &info, &commands));
    record(o, on, commands);
    VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                           .commandBufferCount = 1,
                           .pCommandBuffers = &commands};
    CHECK_VK(CALL(o, vkQueueSubmit)(o->queue, 1, &submit, VK_NULL_HANDLE));
    CHECK_VK(CALL(o, vkQueueWaitIdle)(o->queue));
    CALL(o, vkDestroyCommandPool)(o->device, pool, NULL);
}

static void read_back(opened *o, const pair *on)
{
    void *data;
    VkMappedMemoryRange range = {.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
                                 .memory = on->memory,
                                 .size = VK_WHOLE_SIZE};
    CHECK_VK(CALL(o, vkMapMemory)(o->device, on->memory, 0, VK_WHOLE_SIZE, 0, &data));
    if (!on->coherent)
        CHECK_VK(CALL(o, vkInvalidateMappedMemoryRanges)(o->device, 1, &range));
    const uint32_t *words = (const uint32_t *)(const void *)((const char *)data + on->second);
    for (uint32_t i = 0; i < SIZE / 4; i++)
        CHECK_EQ(words[i], 0x12345678);
    CALL(o, vkUnmapMemory)(o->device, on->memory);
}

/* ---- the cases ---------------------------------------------------------------------------- */

/* The driver wrote no line that begins with this. */
static bool is_reported(const char *beginning)
{
    char line[1024];
    bool found = false;
    FILE *file = fopen(report, "r");
    CHECK(file);
    while (fgets(line, sizeof line, file))
        found |= !strncmp(line, beginning, strlen(beginning));
    fclose(file);
    return found;
}

static void every_layout_runs_in_silence(void)
{
    for (uint32_t i = 0; i < fv_layout_count; i++) {
        opened o;
        open_on(&o, fv_layouts[i].name);
        pair made = make_pair(&o);
        run(&o, &made);
        read_back(&o, &made);
        end_pair(&o, &made);
        end(&o);
        if (o.said)
            check_failed(__FILE__, __LINE__, "on %s the layer said %u times: %s",
                         fv_layouts[i].name, o.said, o.first);
        CHECK(is_reported("calls vkAllocateMemory 1"));
        if (is_reported("message") || is_reported("live"))
            check_failed(__FILE__, __LINE__, "the driver has something to say of %s",
                         fv_layouts[i].name);
    }
}

/* Both notice, which proves that both were asked. */
static void a_leak_is_noticed_by_layer_and_driver(void)
{
    opened o;
    open_on(&o, "amd-bar");
    pair made = make_pair(&o);
    CALL(&o, vkDestroyBuffer)(o.device, made.buffers[0], NULL);
    CALL(&o, vkFreeMemory)(o.device, made.memory, NULL);
    end(&o);
    CHECK(
        is_reported("message ERROR VUID-vkDestroyDevice-device-00378: vkDestroyDevice: a buffer"));
    CHECK_EQ(o.said > 0, has_layer);
}

static void a_fault_comes_through(void)
{
    opened o;
    CHECK(!setenv("QUIRE_FAKE_FAIL", "vkAllocateMemory 1 -2", 1));
    open_on(&o, "lavapipe");
    VkDeviceMemory memory;
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                 .allocationSize = SIZE};
    VkResult result = CALL(&o, vkAllocateMemory)(o.device, &info, NULL, &memory);
    CHECK_EQ((uint32_t)result, (uint32_t)VK_ERROR_OUT_OF_DEVICE_MEMORY);
    end(&o);
    CHECK(!unsetenv("QUIRE_FAKE_FAIL"));
    CHECK(!is_reported("message"));
}

/* Opens and ends a device in a process of its own; the signal that ended it, or 0. */
static int signal_of_another_process(void)
{
    fflush(stdout);
    pid_t child = fork();
    int status = 0;
    if (!child) {
        opened o;
        CHECK(freopen("/dev/null", "w", stderr));
        open_on(&o, "amd-bar");
        end(&o);
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void options_come_from_the_environment(void)
{
    opened o;
    CHECK(!setenv("QUIRE_FAKE_FLAGS", "odd-sizes,stale,late,dirty", 1));
    CHECK(!setenv("QUIRE_FAKE_CAPACITY", "0 4000000", 1));
    open_on(&o, "adreno");
    pair made = make_pair(&o);
    CHECK_EQ(made.second % 2, 1); /* the odd size, by which the second is misplaced */
    end_pair(&o, &made);
    VkDeviceMemory memory;
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                 .allocationSize = 4000001};
    VkResult result = CALL(&o, vkAllocateMemory)(o.device, &info, NULL, &memory);
    CHECK_EQ((uint32_t)result, (uint32_t)VK_ERROR_OUT_OF_DEVICE_MEMORY);
    end(&o);
    CHECK(is_reported("message ERROR VUID-VkBindBufferMemoryInfo-memoryOffset-01036"));
    CHECK(!unsetenv("QUIRE_FAKE_CAPACITY"));
    CHECK_EQ(signal_of_another_process(), 0);
    CHECK(!setenv("QUIRE_FAKE_FLAGS", "odd-size", 1));
    CHECK_EQ(signal_of_another_process(), SIGABRT);
    CHECK(!unsetenv("QUIRE_FAKE_FLAGS"));
}

static bool find_layer(void)
{
    VkLayerProperties all[64];
    uint32_t count = 64;
    opened none = {0};
    (void)CALL(&none, vkEnumerateInstanceLayerProperties)(&count, all);
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(all[i].layerName, LAYER))
            return true;
    return false;
}

/* Only the fake, and no layer that the machine has turned on by itself. */
static void prepare(void)
{
    int fd = mkstemp(report);
    CHECK(fd >= 0 && !close(fd));
    CHECK(!setenv("VK_ICD_FILENAMES", FAKE_VULKAN_MANIFEST, 1));
    CHECK(!setenv("VK_DRIVER_FILES", FAKE_VULKAN_MANIFEST, 1));
    CHECK(!setenv("NODEVICE_SELECT", "1", 1));
    CHECK(!setenv("QUIRE_FAKE_REPORT", report, 1));
}

int main(void)
{
    const char *preload = getenv("LD_PRELOAD");
    if (preload && strstr(preload, "vgpreload")) {
        plain_skip("the fake driver through the loader", "valgrind counts the layer's own leaks");
        return plain_end();
    }
    prepare();
    void *loader = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!loader) {
        plain_skip("the fake driver through the loader", "there is no libvulkan.so.1");
        return plain_end();
    }
    void *symbol = dlsym(loader, "vkGetInstanceProcAddr");
    memcpy(&get, &symbol, sizeof get); /* for which C has no cast */
    CHECK(get);
    has_layer = find_layer();
    if (!has_layer)
        plain_skip("the validation layer over the fake driver", "there is no " LAYER);
    plain_case("every layout runs in silence", every_layout_runs_in_silence);
    plain_case("a leak is noticed by layer and driver", a_leak_is_noticed_by_layer_and_driver);
    plain_case("a fault comes through", a_fault_comes_through);
    plain_case("options come from the environment", options_come_from_the_environment);
    unlink(report);
    return plain_end();
}
