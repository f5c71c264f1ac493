/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_open_own.c - what the program adds to a device of quire's own: extensions, a chain of
 * features, and queues. On the fake driver; on a real one: vulkan_open.c. The fake driver has two
 * queues in each of three families, and with FV_SPARSE_APART in a fourth one that only binds sparse
 * objects.
 */
#include "tests/support/unit.h"
#include "tests/support/vulkan_bench.h"
#include "tests/support/vulkan_native.h"

#define INVALID QUIRE_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof *(array)))

static VkPhysicalDeviceVulkan12Features of_1_2;
static VkPhysicalDeviceVulkan13Features of_1_3;
static VkPhysicalDeviceFeatures2 core;

/* A chain of the three structs, in an order in which no struct of quire comes last. */
static void *whole_chain(void)
{
    core = (VkPhysicalDeviceFeatures2){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    of_1_3 = (VkPhysicalDeviceVulkan13Features){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES, .pNext = &core};
    of_1_2 = (VkPhysicalDeviceVulkan12Features){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .pNext = &of_1_3};
    return &of_1_2;
}

static quire_vulkan_features features_of(quire_device *device)
{
    quire_vulkan_features features;
    CHECK_OK(quire_vulkan_get_features(device, &features));
    return features;
}

static void expect_refused(vulkan_bench *b, quire_vulkan_options options, quire_result result,
                           const char *part)
{
    CHECK(!vulkan_bench_open_with(b, options));
    CHECK_EQ(b->result, result);
    CHECK_HAS(quire_last_error(), part);
    CHECK(!b->device);
    CHECK_EQ(fv_live(b->driver, FV_DEVICE), 0);
    CHECK_EQ(fv_live(b->driver, FV_INSTANCE), 0);
}

/* ---- extensions ------------------------------------------------------------------------------ */

/* AMD's kinds need an extension and a feature that quire does not enable itself. */
VULKAN_UNIT_EACH(vulkan_open_own, an_extension_and_its_feature_are_enabled, i, 2)
{
    static const char *const names[] = {"VK_AMD_device_coherent_memory", "VK_EXT_memory_budget"};
    VkPhysicalDeviceCoherentMemoryFeaturesAMD coherent = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COHERENT_MEMORY_FEATURES_AMD,
        .deviceCoherentMemory = VK_TRUE};
    const quire_kind_request request = {.required = QUIRE_DEVICE_COHERENT | QUIRE_DEVICE_UNCACHED};
    quire_allocation a;
    uint32_t kind;
    vulkan_bench_begin(b, "amd-bar", 0);
    quire_vulkan_options own = {.device = NULL};
    if (i)
        own = (quire_vulkan_options){
            .device_extensions = names, .device_extension_count = COUNT(names), .chain = &coherent};
    CHECK(vulkan_bench_open_with(b, own));
    CHECK_EQ(features_of(b->device).device_coherent_memory, i);
    CHECK(features_of(b->device).memory_budget);
    CHECK_OK(quire_device_choose_kind(b->device, &request, &kind));
    quire_memory *memory =
        vulkan_bench_memory(b, &(quire_memory_options){.kind.mask = UINT32_C(1) << kind});
    CHECK(memory != NULL);
    quire_result result = quire_allocate(memory, &(quire_allocation_options){.size = 1000}, &a);
    CHECK_EQ(result, i ? QUIRE_SUCCESS : UNSUPPORTED);
}

/* The program's VK_EXT_buffer_device_address excludes the extension and the feature of the same
   name that quire enables otherwise. */
UNIT(vulkan_open_own, the_older_extension_of_device_addresses_excludes_the_newer_one)
{
    static const char *const names[] = {"VK_EXT_buffer_device_address"};
    static const uint32_t versions[] = {VK_API_VERSION_1_1, VK_API_VERSION_1_2, VK_API_VERSION_1_3};
    for (uint32_t i = 0; i < 2 * COUNT(versions); i++) {
        vulkan_bench b;
        fv_layout layout = *fv_layout_named("amd-bar");
        const quire_vulkan_options options = {.device_extensions = names,
                                              .device_extension_count = 1,
                                              .chain = i % 2 && i > 1 ? whole_chain() : NULL};
        layout.api_version = versions[i / 2];
        of_1_2.pNext = layout.api_version < VK_API_VERSION_1_3 ? (void *)&core : (void *)&of_1_3;
        layout.extensions |= FV_BIT(ADDRESS_EXT) | FV_BIT(ADDRESS);
        vulkan_bench_begin_with(&b, &(fv_options){.layouts = {&layout}});
        CHECK(vulkan_bench_open_with(&b, options));
        CHECK(!features_of(b.device).buffer_device_address);
        CHECK_EQ(of_1_2.bufferDeviceAddress, VK_FALSE);
        vulkan_bench_end(&b); /* the driver reports both */
        vulkan_bench_start_with(&b, &(fv_options){.layouts = {&layout}});
        CHECK(features_of(b.device).buffer_device_address);
        vulkan_bench_end(&b);
    }
}

VULKAN_UNIT_ON(vulkan_open_own, extensions_of_the_instance_are_enabled,
               vulkan_bench_begin(b, NULL, 0))
{
    static const char *const names[] = {"VK_EXT_debug_utils"};
    CHECK(vulkan_bench_open_with(
        b, (quire_vulkan_options){.instance_extensions = names, .instance_extension_count = 1}));
    CHECK(features_of(b->device).debug_utils);
}

VULKAN_UNIT_ON(vulkan_open_own, all_missing_extensions_are_named, vulkan_bench_begin(b, NULL, 0))
{
    static const char *const names[] = {"VK_EXT_memory_budget", "VK_QUIRE_one", "VK_QUIRE_two"};
    static const char *const holes[] = {"VK_EXT_memory_budget", NULL};
    expect_refused(b,
                   (quire_vulkan_options){.device_extensions = names, .device_extension_count = 3},
                   UNSUPPORTED, "does not have the extensions: VK_QUIRE_one, VK_QUIRE_two");
    CHECK_HAS(quire_last_error(), "fake amd-bar");
    expect_refused(
        b, (quire_vulkan_options){.instance_extensions = &names[1], .instance_extension_count = 2},
        UNSUPPORTED, "the Vulkan loader does not have the extensions: VK_QUIRE_one, VK_QUIRE_two");
    expect_refused(b,
                   (quire_vulkan_options){.device_extensions = holes, .device_extension_count = 2},
                   INVALID, "null");
    expect_refused(b, (quire_vulkan_options){.device_extension_count = 1}, INVALID, "null");
    expect_refused(b, (quire_vulkan_options){.instance_extension_count = UINT32_MAX}, INVALID,
                   "null");
}

/* ---- the chain ------------------------------------------------------------------------------- */

/* Whatever structs the chain has, quire uses the same features as without it. The driver reports a
   struct that occurs twice or beside the struct of a core version that contains it. */
VULKAN_UNIT_EACH(vulkan_open_own, the_chain_is_merged_with_the_features_of_quire, i, 8)
{
    void *chain = NULL;
    vulkan_bench_begin(b, "amd-rebar", 0);
    whole_chain();
    core.pNext = of_1_3.pNext = of_1_2.pNext = NULL;
    if (i & 1)
        chain = &core;
    if (i & 2) {
        of_1_3.pNext = chain;
        chain = &of_1_3;
    }
    if (i & 4) {
        of_1_2.pNext = chain;
        chain = &of_1_2;
    }
    CHECK(vulkan_bench_open_with(b, (quire_vulkan_options){.chain = chain}));
    const quire_vulkan_features f = features_of(b->device);
    CHECK(f.buffer_device_address && f.timeline_semaphore && f.maintenance4);
    CHECK(f.memory_priority && f.sparse_binding && f.sparse_residency_buffer);
    /* what is enabled can be read in the chain */
    CHECK_EQ(core.features.sparseBinding, i & 1 ? VK_TRUE : VK_FALSE);
    CHECK_EQ(core.features.robustBufferAccess, VK_FALSE);
    CHECK_EQ(of_1_3.maintenance4, i & 2 ? VK_TRUE : VK_FALSE);
    CHECK_EQ(of_1_3.synchronization2, VK_FALSE);
    CHECK_EQ(of_1_2.timelineSemaphore, i & 4 ? VK_TRUE : VK_FALSE);
    CHECK_EQ(of_1_2.bufferDeviceAddress, i & 4 ? VK_TRUE : VK_FALSE);
}

VULKAN_UNIT_ON(vulkan_open_own, single_structs_are_merged_too,
               vulkan_bench_begin(b, "amd-rebar", 0))
{
    VkPhysicalDeviceMaintenance4Features maintenance = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES};
    VkPhysicalDeviceMemoryPriorityFeaturesEXT priority = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PRIORITY_FEATURES_EXT,
        .pNext = &maintenance};
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, .pNext = &priority};
    VkPhysicalDeviceBufferDeviceAddressFeatures address = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES,
        .pNext = &timeline};
    CHECK(vulkan_bench_open_with(b, (quire_vulkan_options){.chain = &address}));
    CHECK(maintenance.maintenance4 && priority.memoryPriority && timeline.timelineSemaphore);
    CHECK(address.bufferDeviceAddress && !address.bufferDeviceAddressCaptureReplay);
    const quire_vulkan_features f = features_of(b->device);
    CHECK(f.buffer_device_address && f.timeline_semaphore && f.maintenance4 && f.memory_priority);
}

/* quire enables robust access only on request. */
VULKAN_UNIT_ON(vulkan_open_own, the_programs_own_features_are_enabled,
               vulkan_bench_begin(b, NULL, 0))
{
    whole_chain();
    core.features.robustBufferAccess = VK_TRUE;
    of_1_3.synchronization2 = VK_TRUE;
    CHECK(vulkan_bench_open_with(b, (quire_vulkan_options){.chain = &of_1_2}));
    uint32_t enabled = fv_features_of(vulkan_bench_handles(b).device);
    CHECK(enabled & FV_SYNC2 && enabled & FV_ROBUST);
}

VULKAN_UNIT_ON(vulkan_open_own, missing_features_are_named, vulkan_bench_begin(b, NULL, 0))
{
    whole_chain();
    core.features.geometryShader = VK_TRUE;
    core.features.inheritedQueries = VK_TRUE;
    of_1_2.drawIndirectCount = VK_TRUE;
    of_1_3.dynamicRendering = VK_TRUE;
    const quire_vulkan_options options = {.chain = &of_1_2};
    expect_refused(b, options, UNSUPPORTED,
                   "the device does not have the features: drawIndirectCount, dynamicRendering, "
                   "geometryShader, inheritedQueries");
    CHECK(!core.features.sparseBinding && !of_1_2.timelineSemaphore && !of_1_3.maintenance4);
}

/* The driver alone knows the members of other structs. */
VULKAN_UNIT_ON(vulkan_open_own, a_refused_struct_that_quire_does_not_know_is_named_by_number,
               vulkan_bench_begin(b, NULL, 0))
{
    VkPhysicalDevice8BitStorageFeatures small = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES,
        .storageBuffer8BitAccess = VK_TRUE};
    VkPhysicalDeviceFeatures2 plain = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                       .pNext = &small};
    CHECK(fv_fail(b->driver, &(fv_fault){.function = "vkCreateDevice",
                                         .call = 1,
                                         .result = VK_ERROR_FEATURE_NOT_PRESENT}));
    expect_refused(b, (quire_vulkan_options){.chain = &plain}, UNSUPPORTED, "sType 1000177000");
    CHECK(!plain.features.sparseBinding); /* as before */
    CHECK(plain.pNext == &small && !small.pNext);
    CHECK(vulkan_bench_open_with(b, (quire_vulkan_options){.chain = &plain}));
}

VULKAN_UNIT_ON(vulkan_open_own, a_failure_leaves_the_chain_as_it_was,
               vulkan_bench_begin(b, NULL, 0))
{
    const quire_vulkan_options options = {.chain = whole_chain()};
    core.features.sparseBinding = VK_TRUE; /* set by the program: stays */
    b->host_memory.fail_at = b->host_memory.calls + 4;
    for (uint64_t at = 1; at < 40; at++) {
        b->host_memory.fail_at = b->host_memory.calls + at;
        if (vulkan_bench_open_with(b, options))
            break;
        CHECK_EQ(b->result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        CHECK(core.features.sparseBinding && !core.features.sparseResidencyBuffer);
        CHECK(!of_1_2.timelineSemaphore && !of_1_3.maintenance4);
    }
    b->host_memory.fail_at = 0;
    CHECK(b->device && core.features.sparseResidencyBuffer && of_1_2.timelineSemaphore);
}

VULKAN_UNIT_ON(vulkan_open_own, a_wrong_chain_is_refused, vulkan_bench_begin(b, "nvidia-11", 0))
{
    VkPhysicalDeviceFeatures2 second = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    whole_chain();
    expect_refused(b, (quire_vulkan_options){.chain = &of_1_2}, UNSUPPORTED,
                   "VkPhysicalDeviceVulkan12Features: the device is created with Vulkan 1.1");
    core.pNext = &second;
    expect_refused(b, (quire_vulkan_options){.chain = &core}, INVALID, "twice");
    core.pNext = NULL;
    VkDeviceGroupDeviceCreateInfo group = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_GROUP_DEVICE_CREATE_INFO, .physicalDeviceCount = 2};
    expect_refused(b, (quire_vulkan_options){.chain = &group}, UNSUPPORTED, "group");
    CHECK(vulkan_bench_open_with(b, (quire_vulkan_options){.chain = &core}));
}

/* The headers may lack the struct. quire itself asks for 1.3. */
VULKAN_UNIT_EACH(vulkan_open_own, features_of_1_4_ask_for_an_instance_of_1_4, i, 3)
{
    const uint32_t version = VK_MAKE_API_VERSION(0, 1, 4, 0);
    VkBaseOutStructure later = {.sType = (VkStructureType)55};
    const quire_vulkan_options options = {.chain = i == 1 ? NULL : &later};
    fv_layout layout = *fv_layout_named("amd-bar");
    layout.api_version = i == 2 ? VK_API_VERSION_1_3 : version;
    vulkan_bench_begin_with(b, &(fv_options){.layouts = {&layout}, .instance_version = version});
    if (i == 2)
        expect_refused(b, options, UNSUPPORTED, "VkPhysicalDeviceVulkan14Features");
    else {
        CHECK(vulkan_bench_open_with(b, options));
        const quire_vulkan_handles h = vulkan_bench_handles(b);
        CHECK_EQ(h.api_version, i ? VK_API_VERSION_1_3 : version);
    }
}

/* ---- queues ---------------------------------------------------------------------------------- */

static void submit_nothing(const quire_vulkan_handles *h, VkQueue queue)
{
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO};
    CHECK_EQ(VULKAN_CALL(*h, vkQueueSubmit)(queue, 1, &info, VK_NULL_HANDLE), 0);
}

VULKAN_UNIT_ON(vulkan_open_own, further_queues_are_of_the_smallest_family,
               vulkan_bench_begin(b, NULL, 0))
{
    static const VkQueueFlags wishes[] = {VK_QUEUE_TRANSFER_BIT, VK_QUEUE_GRAPHICS_BIT, 0,
                                          VK_QUEUE_COMPUTE_BIT, VK_QUEUE_TRANSFER_BIT};
    static const uint32_t families[] = {2, 0, 2, 1, 1};
    quire_vulkan_queue queues[COUNT(wishes)], none;
    quire_vulkan_handles h;
    CHECK(vulkan_bench_open_with(
        b, (quire_vulkan_options){.queues = wishes, .queue_count = COUNT(wishes)}));
    CHECK_OK(quire_vulkan_get_handles(b->device, &h));
    for (uint32_t i = 0; i < COUNT(wishes); i++) {
        CHECK_OK(quire_vulkan_get_queue(b->device, i, &queues[i]));
        CHECK_EQ(queues[i].family, families[i]);
        CHECK(queues[i].queue && queues[i].queue != h.queue);
        CHECK(!queues[i].lock && !queues[i].unlock);
        for (uint32_t k = 0; k < i; k++)
            CHECK(queues[i].queue != queues[k].queue);
        submit_nothing(&h, queues[i].queue);
    }
    CHECK_FAILS(quire_vulkan_get_queue(b->device, COUNT(wishes), &none), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK(!none.queue);
    CHECK_FAILS(quire_vulkan_get_queue(b->device, UINT32_MAX, &none), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_FAILS(quire_vulkan_get_queue(b->device, 0, NULL), INVALID);
    /* a stream of quire on one of them */
    quire_stream *stream = NULL;
    quire_point point;
    CHECK_OK(quire_vulkan_stream_wrap(b->device, &(quire_vulkan_stream_options){.queue = queues[0]},
                                      &stream));
    CHECK_OK(quire_stream_mark(stream, &point));
    CHECK_OK(quire_stream_destroy(&stream));
}

VULKAN_UNIT_ON(vulkan_open_own, a_queue_that_does_not_exist_is_named,
               vulkan_bench_begin(b, NULL, 0))
{
    const VkQueueFlags video = 0x20; /* VK_QUEUE_VIDEO_DECODE_BIT_KHR */
    const VkQueueFlags graphics[] = {VK_QUEUE_GRAPHICS_BIT, VK_QUEUE_GRAPHICS_BIT,
                                     VK_QUEUE_GRAPHICS_BIT};
    static const VkQueueFlags many[QUIRE_VULKAN_MAX_QUEUES + 1];
    expect_refused(b, (quire_vulkan_options){.queue_flags = video}, UNSUPPORTED,
                   "queue_flags 0x20");
    expect_refused(b, (quire_vulkan_options){.queues = &video, .queue_count = 1}, UNSUPPORTED,
                   "queues[0]: none with the flags 0x20");
    /* the family has two */
    expect_refused(b, (quire_vulkan_options){.queues = graphics, .queue_count = 3}, UNSUPPORTED,
                   "queues[2]");
    expect_refused(b,
                   (quire_vulkan_options){
                       .queue_flags = VK_QUEUE_GRAPHICS_BIT, .queues = graphics, .queue_count = 2},
                   UNSUPPORTED, "queues[1]");
    expect_refused(b, (quire_vulkan_options){.queue_count = 1}, INVALID, "queues is null");
    expect_refused(
        b, (quire_vulkan_options){.queues = many, .queue_count = QUIRE_VULKAN_MAX_QUEUES + 1},
        INVALID, "queue_count is 17: 16 at most");
    CHECK(vulkan_bench_open_with(b, (quire_vulkan_options){.queue_flags = VK_QUEUE_GRAPHICS_BIT,
                                                           .queues = graphics,
                                                           .queue_count = 1}));
}

VULKAN_UNIT_ON(vulkan_open_own, sparse_queue_and_wishes_share_a_family,
               vulkan_bench_begin(b, NULL, FV_SPARSE_APART))
{
    static const VkQueueFlags wishes[] = {VK_QUEUE_SPARSE_BINDING_BIT};
    quire_vulkan_queue queue;
    CHECK(vulkan_bench_open_with(b, (quire_vulkan_options){.queues = wishes, .queue_count = 1}));
    const quire_vulkan_handles h = vulkan_bench_handles(b);
    CHECK_OK(quire_vulkan_get_queue(b->device, 0, &queue));
    CHECK_EQ(queue.family, h.sparse_family);
    CHECK(queue.queue != h.sparse_queue);
}

/* Opens a device with these queues, and checks their families. */
static void open_with_queues(vulkan_bench *b, const VkQueueFlags *wishes, const uint32_t *families,
                             uint32_t count, quire_vulkan_handles *h)
{
    vulkan_bench_begin(b, NULL, FV_SPARSE_APART);
    CHECK(
        vulkan_bench_open_with(b, (quire_vulkan_options){.queues = wishes, .queue_count = count}));
    CHECK_OK(quire_vulkan_get_handles(b->device, h));
    for (uint32_t i = 0; i < count; i++) {
        quire_vulkan_queue queue;
        CHECK_OK(quire_vulkan_get_queue(b->device, i, &queue));
        CHECK_EQ(queue.family, families[i]);
        CHECK(queue.queue && queue.queue != h->queue && queue.queue != h->sparse_queue);
        submit_nothing(h, queue.queue);
    }
    submit_nothing(h, h->queue);
}

VULKAN_UNIT(vulkan_open_own, a_wish_that_has_a_choice_leaves_the_only_family_to_another)
{
    static const VkQueueFlags wishes[] = {0, 0, 0, 0, VK_QUEUE_SPARSE_BINDING_BIT};
    static const uint32_t families[] = {2, 2, 1, 1, 3};
    quire_vulkan_handles h;
    open_with_queues(b, wishes, families, COUNT(wishes), &h);
    CHECK_EQ(h.queue_family, 0);
    CHECK_EQ(h.sparse_family, 3);
    CHECK(h.sparse_queue != NULL);
}

/* The device's queue only needs to compute. */
VULKAN_UNIT(vulkan_open_own, the_queue_of_the_device_leaves_the_only_family_to_a_wish)
{
    static const VkQueueFlags wishes[] = {VK_QUEUE_GRAPHICS_BIT, VK_QUEUE_GRAPHICS_BIT};
    static const uint32_t families[] = {0, 0};
    quire_vulkan_handles h;
    open_with_queues(b, wishes, families, COUNT(wishes), &h);
    CHECK_EQ(h.queue_family, 1);
    CHECK_EQ(h.sparse_family, 3);
    CHECK(h.sparse_queue != NULL);
}

VULKAN_UNIT(vulkan_open_own, wishes_come_before_the_sparse_queue)
{
    static const VkQueueFlags wishes[] = {VK_QUEUE_SPARSE_BINDING_BIT, VK_QUEUE_SPARSE_BINDING_BIT};
    static const uint32_t families[] = {3, 3};
    quire_vulkan_handles h;
    open_with_queues(b, wishes, families, COUNT(wishes), &h);
    CHECK(h.sparse_queue == NULL);
}
