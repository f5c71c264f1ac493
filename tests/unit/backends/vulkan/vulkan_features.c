/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_features.c - what a Vulkan device says about the optional features that it uses, and which
 * version it is of, on the fake driver.
 */
#include "tests/support/unit.h"
#include "tests/support/vulkan_bench.h"

#define INVALID QUIRE_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED

typedef struct heard {
    char lines[4][1024];
    uint32_t count;
} heard;

static void hear(void *user, quire_log_level level, const char *line)
{
    heard *h = user;
    if (level == QUIRE_LOG_INFO && h->count < 4)
        strncpy(h->lines[h->count++], line, sizeof h->lines[0] - 1);
}

static const char *line_with(const heard *h, const char *part)
{
    for (uint32_t i = 0; i < h->count; i++)
        if (strstr(h->lines[i], part))
            return h->lines[i];
    return "";
}

/* Wraps the bench's device with these create infos, or returns NULL. */
static quire_device *wrap(vulkan_bench *b, const VkInstanceCreateInfo *instance,
                          const VkDeviceCreateInfo *info, heard *h)
{
    quire_device *device = NULL;
    const quire_vulkan_handles handles = vulkan_bench_handles(b);
    quire_vulkan_wrap_options options = vulkan_bench_wrap(b);
    options.instance_info = instance;
    options.device_info = info;
    options.queue = (quire_vulkan_queue){.queue = handles.queue, .family = handles.queue_family};
    if (h)
        options.settings.device.log =
            (quire_log){.write = hear, .user = h, .level = QUIRE_LOG_INFO};
    b->result = quire_vulkan_wrap(&options, &device);
    CHECK_EQ(!device, !!b->result);
    return device;
}

VULKAN_UNIT_ON(vulkan_features, a_device_of_quires_own_uses_all_that_there_is,
               vulkan_bench_begin(b, "amd-rebar", 0))
{
    quire_vulkan_features f;
    static heard h; /* the device writes to it until its end */
    const quire_vulkan_settings settings = {
        .device.log = {.write = hear, .user = &h, .level = QUIRE_LOG_INFO}};
    CHECK(vulkan_bench_open(b, &settings));
    CHECK_OK(quire_vulkan_get_features(b->device, &f));
    CHECK(f.buffer_device_address && f.timeline_semaphore && f.maintenance4 && f.memory_budget);
    CHECK(f.memory_priority && f.pageable_memory);
    CHECK(f.external_memory_fd && f.external_memory_dma_buf);
    CHECK(f.external_memory_host && f.debug_utils && f.sparse_queue && f.sparse_binding);
    CHECK(f.sparse_residency_buffer && f.sparse_residency_image_2d && f.sparse_residency_image_3d);
    CHECK(!f.device_coherent_memory && !f.protected_memory && !f.external_memory_win32);
    CHECK_EQ(f.sparse_residency_samples, VK_SAMPLE_COUNT_4_BIT);
    const char *line = line_with(&h, "optional features of Vulkan in use: bufferDeviceAddress, ");
    CHECK_HAS(line, "sparse queue, sparseBinding");
    CHECK_HAS(line, "; not enabled: none");
}

/* The flags lie side by side; the padding behind them has any value. */
static bool has_same(const quire_vulkan_features *a, const quire_vulkan_features *b)
{
    enum { FLAGS = offsetof(quire_vulkan_features, sparse_residency_aliased) + sizeof(bool) };
    return !memcmp(a, b, FLAGS) && a->sparse_residency_samples == b->sparse_residency_samples;
}

/* The program forgot the create infos: nothing fails, and the log says what is missing. */
VULKAN_UNIT_ON(vulkan_features, create_infos_that_are_not_passed_are_noticed,
               vulkan_bench_start(b, "amd-rebar", 0))
{
    quire_vulkan_features f;
    heard h = {.count = 0};
    const quire_vulkan_features nothing = {.sparse_queue = true};
    quire_device *device = wrap(b, NULL, NULL, &h);
    CHECK_OK(quire_vulkan_get_features(device, &f));
    CHECK(has_same(&f, &nothing));
    const char *line = line_with(&h, "optional features of Vulkan in use: sparse queue;");
    CHECK_HAS(line, "not enabled: bufferDeviceAddress, timelineSemaphore, maintenance4, memory "
                    "budget, memory priority");
    CHECK_OK(quire_device_destroy(&device));
    CHECK_FAILS(quire_vulkan_get_features(b->device, NULL), INVALID);
    CHECK_FAILS(quire_vulkan_get_features(NULL, &f), INVALID);
}

/* The driver has the functions, and the create info has the names. */
VULKAN_UNIT_ON(vulkan_features, each_part_of_a_create_info_counts,
               vulkan_bench_start(b, "amd-rebar", 0))
{
    static const char *const names[] = {"VK_EXT_memory_budget", "VK_KHR_external_memory_fd",
                                        "VK_EXT_external_memory_dma_buf"};
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
        .timelineSemaphore = VK_TRUE};
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .apiVersion = VK_API_VERSION_1_2};
    const VkInstanceCreateInfo instance = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                           .pApplicationInfo = &application};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = &timeline,
                                     .enabledExtensionCount = 3,
                                     .ppEnabledExtensionNames = names};
    quire_vulkan_features f;
    quire_device *device = wrap(b, &instance, &info, NULL);
    CHECK_OK(quire_vulkan_get_features(device, &f));
    const quire_vulkan_features expected = {.timeline_semaphore = true,
                                            .memory_budget = true,
                                            .external_memory_fd = true,
                                            .external_memory_dma_buf = true,
                                            .sparse_queue = true};
    CHECK(has_same(&f, &expected));
    CHECK_OK(quire_device_destroy(&device));
}

/* ---- the version ----------------------------------------------------------------------------- */

VULKAN_UNIT_ON(vulkan_features, an_instance_without_a_version_is_of_vulkan_1_0,
               vulkan_bench_start(b, NULL, 0))
{
    const VkApplicationInfo nameless = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO},
                            old = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                   .apiVersion = VK_API_VERSION_1_0},
                            good = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                    .apiVersion = VK_API_VERSION_1_1};
    VkInstanceCreateInfo instance = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    quire_vulkan_handles handles;
    CHECK(!wrap(b, &instance, NULL, NULL));
    CHECK_EQ(b->result, UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "no apiVersion in pApplicationInfo");
    instance.pApplicationInfo = &nameless;
    CHECK(!wrap(b, &instance, NULL, NULL));
    CHECK_EQ(b->result, UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "no apiVersion in pApplicationInfo");
    instance.pApplicationInfo = &old;
    CHECK(!wrap(b, &instance, NULL, NULL));
    CHECK_EQ(b->result, UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "Vulkan 1.0: the backend needs 1.1");
    instance.pApplicationInfo = &good;
    quire_device *device = wrap(b, &instance, NULL, NULL);
    CHECK_OK(quire_device_destroy(&device));
    device = wrap(b, NULL, NULL, NULL); /* 1.1, as documented */
    CHECK_OK(quire_vulkan_get_handles(device, &handles));
    CHECK_EQ(handles.api_version, VK_API_VERSION_1_1);
    CHECK_OK(quire_device_destroy(&device));
}

/* ---- without create infos -------------------------------------------------------------------- */

typedef struct parts {
    uint32_t version;
    const char *instance_extensions[1];
    const char *device_extensions[2];
    VkPhysicalDeviceVulkan12Features of_1_2;
    VkPhysicalDeviceFeatures2 features;
} parts;

static void describe(parts *p)
{
    *p = (parts){
        .version = VK_API_VERSION_1_2,
        .instance_extensions = {"VK_EXT_debug_utils"},
        .device_extensions = {"VK_EXT_memory_budget", "VK_KHR_external_memory_fd"},
        .of_1_2 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                   .timelineSemaphore = true,
                   .bufferDeviceAddress = true},
        .features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                     .features = {.sparseBinding = true}},
    };
    p->features.pNext = &p->of_1_2;
}

static quire_vulkan_wrap_options options_of(vulkan_bench *b, const parts *p)
{
    quire_vulkan_handles handles;
    CHECK_OK(quire_vulkan_get_handles(b->device, &handles));
    quire_vulkan_wrap_options options = vulkan_bench_wrap(b);
    options.queue = (quire_vulkan_queue){.queue = handles.queue, .family = handles.queue_family};
    options.api_version = p->version;
    options.instance_extensions = p->instance_extensions;
    options.instance_extension_count = 1;
    options.device_extensions = p->device_extensions;
    options.device_extension_count = 2;
    options.features = &p->features;
    return options;
}

VULKAN_UNIT_ON(vulkan_features, names_and_features_stand_for_create_infos,
               vulkan_bench_start(b, "amd-rebar", 0))
{
    parts p;
    quire_device *device;
    quire_vulkan_features f, same;
    quire_vulkan_handles handles;
    describe(&p);
    quire_vulkan_wrap_options options = options_of(b, &p);
    CHECK_OK(quire_vulkan_wrap(&options, &device));
    CHECK_OK(quire_vulkan_get_features(device, &f));
    CHECK_OK(quire_vulkan_get_handles(device, &handles));
    CHECK_EQ(handles.api_version, VK_API_VERSION_1_2);
    CHECK(f.buffer_device_address && f.timeline_semaphore && f.memory_budget && f.debug_utils);
    CHECK(f.external_memory_fd && f.sparse_binding);
    CHECK(!f.maintenance4 && !f.memory_priority && !f.external_memory_host);
    CHECK_OK(quire_device_destroy(&device));

    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .apiVersion = p.version};
    const VkInstanceCreateInfo instance = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                           .pApplicationInfo = &application,
                                           .enabledExtensionCount = 1,
                                           .ppEnabledExtensionNames = p.instance_extensions};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = &p.features,
                                     .enabledExtensionCount = 2,
                                     .ppEnabledExtensionNames = p.device_extensions};
    device = wrap(b, &instance, &info, NULL);
    CHECK_OK(quire_vulkan_get_features(device, &same));
    CHECK(has_same(&f, &same));
    CHECK_OK(quire_device_destroy(&device));
}

/* Each object is described in one of the two ways. */
VULKAN_UNIT_ON(vulkan_features, one_object_may_have_a_create_info_and_the_other_none,
               vulkan_bench_start(b, "amd-rebar", 0))
{
    parts p;
    quire_device *device;
    quire_vulkan_features f;
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    describe(&p);
    quire_vulkan_wrap_options options = options_of(b, &p);
    options.device_info = &info;
    options.device_extension_count = 0;
    options.features = NULL;
    CHECK_OK(quire_vulkan_wrap(&options, &device));
    CHECK_OK(quire_vulkan_get_features(device, &f));
    CHECK(f.debug_utils && !f.timeline_semaphore && !f.memory_budget);
    CHECK_OK(quire_device_destroy(&device));
}

UNIT(vulkan_features, descriptions_that_contradict_are_refused)
{
    enum { CASES = 9 };
    static const char *const says[CASES] = {
        "instance_info, and api_version or instance_extensions",
        "instance_info, and api_version or instance_extensions",
        "device_info, and features or device_extensions",
        "device_info, and features or device_extensions",
        "features has sType 0",
        "quire_vulkan_wrap_options.instance_extensions is null",
        "quire_vulkan_wrap_options.device_extensions: name 1 is null",
        "quire_vulkan_wrap_options.device_extensions is null",
        "have Vulkan 1.0: the backend needs 1.1",
    };
    const VkInstanceCreateInfo instance = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    for (int i = 0; i < CASES; i++) {
        vulkan_bench b;
        parts p;
        quire_device *device;
        vulkan_bench_start(&b, "amd-rebar", 0);
        describe(&p);
        quire_vulkan_wrap_options options = options_of(&b, &p);
        options.instance_info = i < 2 ? &instance : NULL;
        options.api_version = i == 1 ? 0 : options.api_version;
        options.instance_extension_count = i == 0 ? 0 : 1;
        options.device_info = i == 2 || i == 3 ? &info : NULL;
        options.features = i == 3 ? NULL : options.features;
        options.device_extension_count = i == 2 ? 0 : 2;
        if (i == 4)
            p.features.sType = 0;
        if (i == 5)
            options.instance_extensions = NULL;
        if (i == 6)
            p.device_extensions[1] = NULL;
        if (i == 7)
            options.device_extensions = NULL;
        if (i == 8)
            options.api_version = VK_API_VERSION_1_0;
        CHECK_FAILS(quire_vulkan_wrap(&options, &device), i == 8 ? UNSUPPORTED : INVALID);
        CHECK_HAS(quire_last_error(), says[i]);
        vulkan_bench_end(&b);
    }
}
