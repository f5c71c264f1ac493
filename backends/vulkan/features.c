/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * features.c - the extensions and features of a device of quire's own: those that quire uses,
 * merged with those of the program; and what the backend says about them.
 *
 * Vulkan permits each struct of features once, and no single struct beside the struct of a core
 * version that contains it. Therefore a feature of quire goes into the program's struct if the
 * chain has one with a member for it, and into a struct of quire's own otherwise. The structs of
 * quire precede the program's chain, whose links stay unchanged.
 */
#include "backends/vulkan/features.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "backends/vulkan/device.h"
#include "backends/vulkan/functions.h"
#include "backends/vulkan/open.h"
#include "backends/vulkan/queues.h"
#include "src/base/log.h"
#include "src/base/result.h"

/* Names for a message, separated by commas. */
typedef struct name_list {
    char text[512];
    size_t length;
} name_list;

/* Appends a name. Cuts the list at `size` bytes. */
static void add(name_list *list, size_t size, const char *name)
{
    if (list->length < size)
        list->length += (size_t)snprintf(list->text + list->length, size - list->length, "%s%s",
                                         list->length ? ", " : "", name);
}

/* ---- extensions --------------------------------------------------------------------------- */

bool qi_vulkan_extensions_offer(const qi_vulkan_extensions *e, const char *name)
{
    for (uint32_t i = 0; i < e->offered_count; i++)
        if (!strcmp(e->offered[i].extensionName, name))
            return true;
    return false;
}

static bool has_taken(const qi_vulkan_extensions *e, const char *name)
{
    for (uint32_t i = 0; i < e->taken_count; i++)
        if (!strcmp(e->taken[i], name))
            return true;
    return false;
}

bool qi_vulkan_has_old_addresses(const qi_vulkan_extensions *extensions)
{
    return has_taken(extensions, VK_EXT_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME);
}

/* The program may name an extension that quire takes too. */
bool qi_vulkan_extensions_take(qi_vulkan_extensions *e, const char *name)
{
    if (!qi_vulkan_extensions_offer(e, name))
        return false;
    if (!has_taken(e, name))
        e->taken[e->taken_count++] = name;
    return true;
}

quire_result qi_vulkan_extensions_require(qi_vulkan_extensions *e, const char *const *names,
                                          uint32_t count, const char *owner)
{
    name_list missing = {.length = 0};
    for (uint32_t i = 0; i < count; i++)
        if (!qi_vulkan_extensions_take(e, names[i]))
            add(&missing, sizeof missing.text, names[i]);
    return missing.length ? qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                                         "%s does not have the extensions: %s", owner, missing.text)
                          : QUIRE_SUCCESS;
}

/* Lists the extensions of a device, or of the loader if `device` is NULL. */
static VkResult list_extensions(const opening *o, VkPhysicalDevice device, uint32_t *count,
                                VkExtensionProperties *out)
{
    return device ? o->list_device_extensions(device, NULL, count, out)
                  : o->list_instance_extensions(NULL, count, out);
}

void qi_vulkan_extensions_release(opening *o, qi_vulkan_extensions *e)
{
    qi_host_release(&o->vulkan->host, e->offered, e->capacity, sizeof *e->offered);
    qi_host_release(&o->vulkan->host, e->taken, e->taken_capacity, sizeof *e->taken);
    *e = (qi_vulkan_extensions){.offered = NULL};
}

static quire_result refuse_memory(void)
{
    return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a list of extensions");
}

quire_result qi_vulkan_extensions_read(opening *o, VkPhysicalDevice device, uint32_t further,
                                       qi_vulkan_extensions *e)
{
    qi_host *host = &o->vulkan->host;
    uint32_t capacity = 0, room = further + QI_VULKAN_MAX_EXTENSIONS;
    VkResult code = list_extensions(o, device, &capacity, NULL);
    if (code)
        return qi_vulkan_fail(code, "listing the extensions of Vulkan");
    e->taken = qi_host_allocate(host, room, sizeof *e->taken);
    if (!e->taken)
        return refuse_memory();
    e->taken_capacity = room;
    if (!capacity)
        return QUIRE_SUCCESS;
    e->offered = qi_host_allocate(host, capacity, sizeof *e->offered);
    if (!e->offered)
        return refuse_memory();
    e->capacity = capacity;
    e->offered_count = e->capacity;
    code = list_extensions(o, device, &e->offered_count, e->offered);
    /* VK_INCOMPLETE: the number has grown since the first call. The list is long enough. */
    if (!code || code == VK_INCOMPLETE)
        return QUIRE_SUCCESS;
    return qi_vulkan_fail(code, "listing the extensions of Vulkan");
}

/* ---- structs whose members quire can name ------------------------------------------------- */

/* A struct of features: a header, then VkBool32 members. */
typedef struct known_struct {
    VkStructureType type;
    uint32_t version; /* the lowest version of a device that knows it; 0: of an extension */
    const char *name;
    uint32_t count; /* of the members */
    const char *const *members;
} known_struct;

/* In the order of their declaration. */
static const char *const CORE[] = {"robustBufferAccess",
                                   "fullDrawIndexUint32",
                                   "imageCubeArray",
                                   "independentBlend",
                                   "geometryShader",
                                   "tessellationShader",
                                   "sampleRateShading",
                                   "dualSrcBlend",
                                   "logicOp",
                                   "multiDrawIndirect",
                                   "drawIndirectFirstInstance",
                                   "depthClamp",
                                   "depthBiasClamp",
                                   "fillModeNonSolid",
                                   "depthBounds",
                                   "wideLines",
                                   "largePoints",
                                   "alphaToOne",
                                   "multiViewport",
                                   "samplerAnisotropy",
                                   "textureCompressionETC2",
                                   "textureCompressionASTC_LDR",
                                   "textureCompressionBC",
                                   "occlusionQueryPrecise",
                                   "pipelineStatisticsQuery",
                                   "vertexPipelineStoresAndAtomics",
                                   "fragmentStoresAndAtomics",
                                   "shaderTessellationAndGeometryPointSize",
                                   "shaderImageGatherExtended",
                                   "shaderStorageImageExtendedFormats",
                                   "shaderStorageImageMultisample",
                                   "shaderStorageImageReadWithoutFormat",
                                   "shaderStorageImageWriteWithoutFormat",
                                   "shaderUniformBufferArrayDynamicIndexing",
                                   "shaderSampledImageArrayDynamicIndexing",
                                   "shaderStorageBufferArrayDynamicIndexing",
                                   "shaderStorageImageArrayDynamicIndexing",
                                   "shaderClipDistance",
                                   "shaderCullDistance",
                                   "shaderFloat64",
                                   "shaderInt64",
                                   "shaderInt16",
                                   "shaderResourceResidency",
                                   "shaderResourceMinLod",
                                   "sparseBinding",
                                   "sparseResidencyBuffer",
                                   "sparseResidencyImage2D",
                                   "sparseResidencyImage3D",
                                   "sparseResidency2Samples",
                                   "sparseResidency4Samples",
                                   "sparseResidency8Samples",
                                   "sparseResidency16Samples",
                                   "sparseResidencyAliased",
                                   "variableMultisampleRate",
                                   "inheritedQueries"};
static const char *const OF_1_1[] = {"storageBuffer16BitAccess",
                                     "uniformAndStorageBuffer16BitAccess",
                                     "storagePushConstant16",
                                     "storageInputOutput16",
                                     "multiview",
                                     "multiviewGeometryShader",
                                     "multiviewTessellationShader",
                                     "variablePointersStorageBuffer",
                                     "variablePointers",
                                     "protectedMemory",
                                     "samplerYcbcrConversion",
                                     "shaderDrawParameters"};
static const char *const OF_1_2[] = {"samplerMirrorClampToEdge",
                                     "drawIndirectCount",
                                     "storageBuffer8BitAccess",
                                     "uniformAndStorageBuffer8BitAccess",
                                     "storagePushConstant8",
                                     "shaderBufferInt64Atomics",
                                     "shaderSharedInt64Atomics",
                                     "shaderFloat16",
                                     "shaderInt8",
                                     "descriptorIndexing",
                                     "shaderInputAttachmentArrayDynamicIndexing",
                                     "shaderUniformTexelBufferArrayDynamicIndexing",
                                     "shaderStorageTexelBufferArrayDynamicIndexing",
                                     "shaderUniformBufferArrayNonUniformIndexing",
                                     "shaderSampledImageArrayNonUniformIndexing",
                                     "shaderStorageBufferArrayNonUniformIndexing",
                                     "shaderStorageImageArrayNonUniformIndexing",
                                     "shaderInputAttachmentArrayNonUniformIndexing",
                                     "shaderUniformTexelBufferArrayNonUniformIndexing",
                                     "shaderStorageTexelBufferArrayNonUniformIndexing",
                                     "descriptorBindingUniformBufferUpdateAfterBind",
                                     "descriptorBindingSampledImageUpdateAfterBind",
                                     "descriptorBindingStorageImageUpdateAfterBind",
                                     "descriptorBindingStorageBufferUpdateAfterBind",
                                     "descriptorBindingUniformTexelBufferUpdateAfterBind",
                                     "descriptorBindingStorageTexelBufferUpdateAfterBind",
                                     "descriptorBindingUpdateUnusedWhilePending",
                                     "descriptorBindingPartiallyBound",
                                     "descriptorBindingVariableDescriptorCount",
                                     "runtimeDescriptorArray",
                                     "samplerFilterMinmax",
                                     "scalarBlockLayout",
                                     "imagelessFramebuffer",
                                     "uniformBufferStandardLayout",
                                     "shaderSubgroupExtendedTypes",
                                     "separateDepthStencilLayouts",
                                     "hostQueryReset",
                                     "timelineSemaphore",
                                     "bufferDeviceAddress",
                                     "bufferDeviceAddressCaptureReplay",
                                     "bufferDeviceAddressMultiDevice",
                                     "vulkanMemoryModel",
                                     "vulkanMemoryModelDeviceScope",
                                     "vulkanMemoryModelAvailabilityVisibilityChains",
                                     "shaderOutputViewportIndex",
                                     "shaderOutputLayer",
                                     "subgroupBroadcastDynamicId"};
static const char *const OF_1_3[] = {"robustImageAccess",
                                     "inlineUniformBlock",
                                     "descriptorBindingInlineUniformBlockUpdateAfterBind",
                                     "pipelineCreationCacheControl",
                                     "privateData",
                                     "shaderDemoteToHelperInvocation",
                                     "shaderTerminateInvocation",
                                     "subgroupSizeControl",
                                     "computeFullSubgroups",
                                     "synchronization2",
                                     "textureCompressionASTC_HDR",
                                     "shaderZeroInitializeWorkgroupMemory",
                                     "dynamicRendering",
                                     "shaderIntegerDotProduct",
                                     "maintenance4"};
static const char *const ADDRESS[] = {"bufferDeviceAddress", "bufferDeviceAddressCaptureReplay",
                                      "bufferDeviceAddressMultiDevice"};
static const char *const TIMELINE[] = {"timelineSemaphore"};
static const char *const MAINTENANCE[] = {"maintenance4"};
static const char *const GUARDED[] = {"protectedMemory"};
static const char *const SYNCHRONIZATION[] = {"synchronization2"};
static const char *const PRIORITY[] = {"memoryPriority"};
static const char *const PAGEABLE[] = {"pageableDeviceLocalMemory"};
static const char *const ZERO[] = {"zeroInitializeDeviceMemory"};
static const char *const COHERENT[] = {"deviceCoherentMemory"};

static const known_struct KNOWN[] = {
    {QI_VULKAN_FEATURES_1_4, QI_VULKAN_VERSION_1_4, "VkPhysicalDeviceVulkan14Features", 0, NULL},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, VK_API_VERSION_1_0, "VkPhysicalDeviceFeatures2",
     sizeof CORE / sizeof *CORE, CORE},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, VK_API_VERSION_1_2,
     "VkPhysicalDeviceVulkan11Features", sizeof OF_1_1 / sizeof *OF_1_1, OF_1_1},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, VK_API_VERSION_1_2,
     "VkPhysicalDeviceVulkan12Features", sizeof OF_1_2 / sizeof *OF_1_2, OF_1_2},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES, VK_API_VERSION_1_3,
     "VkPhysicalDeviceVulkan13Features", sizeof OF_1_3 / sizeof *OF_1_3, OF_1_3},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES, 0,
     "VkPhysicalDeviceBufferDeviceAddressFeatures", sizeof ADDRESS / sizeof *ADDRESS, ADDRESS},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, 0,
     "VkPhysicalDeviceTimelineSemaphoreFeatures", sizeof TIMELINE / sizeof *TIMELINE, TIMELINE},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES, 0,
     "VkPhysicalDeviceMaintenance4Features", sizeof MAINTENANCE / sizeof *MAINTENANCE, MAINTENANCE},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROTECTED_MEMORY_FEATURES, 0,
     "VkPhysicalDeviceProtectedMemoryFeatures", sizeof GUARDED / sizeof *GUARDED, GUARDED},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES, 0,
     "VkPhysicalDeviceSynchronization2Features", sizeof SYNCHRONIZATION / sizeof *SYNCHRONIZATION,
     SYNCHRONIZATION},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PRIORITY_FEATURES_EXT, 0,
     "VkPhysicalDeviceMemoryPriorityFeaturesEXT", sizeof PRIORITY / sizeof *PRIORITY, PRIORITY},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PAGEABLE_DEVICE_LOCAL_MEMORY_FEATURES_EXT, 0,
     "VkPhysicalDevicePageableDeviceLocalMemoryFeaturesEXT", sizeof PAGEABLE / sizeof *PAGEABLE,
     PAGEABLE},
    {QI_VULKAN_ZERO_FEATURES, 0, "VkPhysicalDeviceZeroInitializeDeviceMemoryFeaturesEXT",
     sizeof ZERO / sizeof *ZERO, ZERO},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COHERENT_MEMORY_FEATURES_AMD, 0,
     "VkPhysicalDeviceCoherentMemoryFeaturesAMD", sizeof COHERENT / sizeof *COHERENT, COHERENT},
};

static const known_struct *find_known(VkStructureType type)
{
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        if (KNOWN[i].type == type)
            return &KNOWN[i];
    return NULL;
}

/* ---- the program's chain ------------------------------------------------------------------ */

/* In all of them VkBool32 members follow the header. */
static VkBool32 *members_of(void *link)
{
    return (VkBool32 *)(void *)((char *)link + sizeof(VkBaseOutStructure));
}
_Static_assert(offsetof(VkPhysicalDeviceFeatures2, features) == sizeof(VkBaseOutStructure) &&
                   offsetof(VkPhysicalDeviceTimelineSemaphoreFeatures, timelineSemaphore) ==
                       sizeof(VkBaseOutStructure),
               "the members follow the header");

enum { CORE_MEMBERS = sizeof(VkPhysicalDeviceFeatures) / sizeof(VkBool32) };

static VkBaseOutStructure *find(void *chain, VkStructureType type)
{
    VkBaseOutStructure *link = chain;
    while (link && link->sType != type)
        link = link->pNext;
    return link;
}

quire_result qi_vulkan_check_chain(const void *chain)
{
    for (const VkBaseInStructure *link = chain; link; link = link->pNext)
        for (const VkBaseInStructure *next = link->pNext; next; next = next->pNext)
            if (next->sType == link->sType)
                return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                                    "the chain has a struct with sType %u twice",
                                    (uint64_t)link->sType);
    return QUIRE_SUCCESS;
}

/* ---- what the device does not have -------------------------------------------------------- */

/* Adds the members that a struct of the program sets and the device does not have. */
static void add_missing(const opening *o, VkBaseOutStructure *given, const known_struct *known,
                        name_list *missing)
{
    union {
        VkBaseOutStructure header;
        VkPhysicalDeviceFeatures2 largest;
    } offered = {.header = {.sType = given->sType}};
    VkPhysicalDeviceFeatures2 query = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                       .pNext = &offered};
    bool is_core = given->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    o->get_features(o->physical_device, is_core ? &offered.largest : &query);
    const VkBool32 *has = members_of(&offered), *wants = members_of(given);
    for (uint32_t i = 0; i < known->count; i++)
        if (wants[i] && !has[i])
            add(missing, sizeof missing->text, known->members[i]);
}

static quire_result check_features(const opening *o)
{
    name_list missing = {.length = 0};
    for (VkBaseOutStructure *link = o->options->chain; link; link = link->pNext) {
        const known_struct *known = find_known(link->sType);
        if (known && known->version > o->device_version)
            return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                                "the chain has a %s: the device is created with Vulkan %u.%u",
                                known->name, VK_API_VERSION_MAJOR(o->device_version),
                                VK_API_VERSION_MINOR(o->device_version));
        if (known)
            add_missing(o, link, known, &missing);
    }
    return missing.length ? qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                                         "the device does not have the features: %s", missing.text)
                          : QUIRE_SUCCESS;
}

quire_result qi_vulkan_refuse_features(const opening *o, const char *device)
{
    name_list unknown = {.length = 0};
    for (VkBaseOutStructure *link = o->options->chain; link; link = link->pNext) {
        char number[32];
        snprintf(number, sizeof number, "%d", (int)link->sType);
        const known_struct *known = find_known(link->sType);
        if (!known || !known->count)
            add(&unknown, sizeof unknown.text, number);
    }
    return qi_vulkan_fail(
        VK_ERROR_FEATURE_NOT_PRESENT,
        "vkCreateDevice on '%s': a feature in the structs of the chain with sType "
        "%s",
        device, unknown.length ? unknown.text : "(none)");
}

/* ---- what quire uses ---------------------------------------------------------------------- */

/* Puts a struct in front of quire's structs. */
static void chain(opening *o, void *link, VkStructureType type)
{
    VkBaseOutStructure *added = link;
    added->sType = type;
    added->pNext = o->features.pNext;
    o->features.pNext = added;
}

/* Queries the features that quire uses. Those that cost speed or are of no use here are dropped. */
static void query_features(opening *o)
{
    const qi_vulkan_extensions *e = &o->of_device;
    uint32_t version = o->device_version;
    o->features =
        (VkPhysicalDeviceFeatures2){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    if (!qi_vulkan_has_old_addresses(e) &&
        (version >= VK_API_VERSION_1_2 ||
         has_taken(e, VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME)))
        chain(o, &o->address, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES);
    if (version >= VK_API_VERSION_1_2 || has_taken(e, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME))
        chain(o, &o->timeline, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES);
    if (version >= VK_API_VERSION_1_3 || has_taken(e, VK_KHR_MAINTENANCE_4_EXTENSION_NAME))
        chain(o, &o->maintenance4, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES);
    if (has_taken(e, VK_EXT_MEMORY_PRIORITY_EXTENSION_NAME))
        chain(o, &o->priority, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PRIORITY_FEATURES_EXT);
    if (has_taken(e, VK_EXT_PAGEABLE_DEVICE_LOCAL_MEMORY_EXTENSION_NAME))
        chain(o, &o->pageable,
              VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PAGEABLE_DEVICE_LOCAL_MEMORY_FEATURES_EXT);
    if (has_taken(e, QI_VULKAN_ZERO_EXTENSION))
        chain(o, &o->zero, QI_VULKAN_ZERO_FEATURES);
    o->get_features(o->physical_device, &o->features);
    o->features.features.robustBufferAccess = VK_FALSE;
    o->address.bufferDeviceAddressCaptureReplay = VK_FALSE;
    o->address.bufferDeviceAddressMultiDevice = VK_FALSE;
}

/* ---- merging ------------------------------------------------------------------------------ */

static void raise(opening *o, VkBool32 *member, VkBool32 is_wanted)
{
    if (!is_wanted || *member)
        return;
    *member = VK_TRUE;
    o->raised[o->raised_count++] = member;
}

void qi_vulkan_lower_features(opening *o)
{
    while (o->raised_count)
        *o->raised[--o->raised_count] = VK_FALSE;
}

/* Sets quire's features of Vulkan 1.0 in the program's struct, if the chain has one. */
static bool raise_core(opening *o)
{
    VkBaseOutStructure *given = find(o->options->chain, o->features.sType);
    const VkBool32 *wanted = members_of(&o->features);
    for (uint32_t i = 0; given && i < CORE_MEMBERS; i++)
        raise(o, members_of(given) + i, wanted[i]);
    return given;
}

/* Sets a feature in the single struct of its kind, or at `offset` in the struct of the core version
   `core`. Returns whether the chain has one of the two. */
static bool raise_single(opening *o, void *own, VkStructureType core, size_t offset)
{
    VkBool32 is_wanted = *members_of(own);
    VkBaseOutStructure *single = find(o->options->chain, ((VkBaseOutStructure *)own)->sType);
    VkBaseOutStructure *given = core ? find(o->options->chain, core) : NULL;
    if (single)
        raise(o, members_of(single), is_wanted);
    else if (given)
        raise(o, (VkBool32 *)(void *)((char *)given + offset), is_wanted);
    return single || given;
}

quire_result qi_vulkan_choose_features(opening *o)
{
    const VkStructureType of_1_2 = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                          of_1_3 = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
                          none = (VkStructureType)0;
    quire_result result = check_features(o);
    if (result)
        return result;
    query_features(o);
    const struct {
        void *own;
        VkStructureType core;
        size_t offset;
    } singles[] = {
        {&o->address, of_1_2, offsetof(VkPhysicalDeviceVulkan12Features, bufferDeviceAddress)},
        {&o->timeline, of_1_2, offsetof(VkPhysicalDeviceVulkan12Features, timelineSemaphore)},
        {&o->maintenance4, of_1_3, offsetof(VkPhysicalDeviceVulkan13Features, maintenance4)},
        {&o->priority, none, 0},
        {&o->pageable, none, 0},
        {&o->zero, none, 0},
    };
    VkBaseOutStructure *first = o->options->chain;
    for (size_t i = 0; i < sizeof singles / sizeof *singles; i++) {
        VkBaseOutStructure *own = singles[i].own;
        if (!own->sType || raise_single(o, own, singles[i].core, singles[i].offset))
            continue;
        own->pNext = first;
        first = own;
    }
    if (!raise_core(o)) {
        o->features.pNext = first;
        first = (VkBaseOutStructure *)(void *)&o->features;
    }
    o->device_info.pNext = first;
    return QUIRE_SUCCESS;
}

/* ---- what is in use ----------------------------------------------------------------------- */

/* Nothing of Vulkan says so, and a create info that is missing or incomplete turns a feature off
   without an error. */

static quire_vulkan_features features_of(const qi_vulkan *vulkan)
{
    const qi_vulkan_enabled *enabled = &vulkan->enabled;
    return (quire_vulkan_features){
        .buffer_device_address = enabled->device_address,
        .timeline_semaphore = enabled->timeline,
        .maintenance4 = enabled->maintenance4,
        .memory_budget = enabled->memory_budget,
        .memory_priority = enabled->memory_priority,
        .pageable_memory = enabled->pageable,
        .zero_initialize = enabled->zero_initialize,
        .protected_memory = enabled->protected_memory,
        .device_coherent_memory = enabled->device_coherent,
        .external_memory_fd = enabled->external_fd,
        .external_memory_dma_buf = enabled->dma_buf,
        .external_memory_host = enabled->host_pointer,
        .external_memory_win32 = enabled->win32,
        .debug_utils = enabled->debug_utils,
        .sparse_queue = qi_vulkan_has_sparse_queue(vulkan),
        .sparse_binding = enabled->sparse_binding,
        .sparse_residency_buffer = enabled->sparse_buffer,
        .sparse_residency_image_2d = enabled->sparse_image_2d,
        .sparse_residency_image_3d = enabled->sparse_image_3d,
        .sparse_residency_aliased = enabled->sparse_aliased,
        .sparse_residency_samples = enabled->sparse_samples,
    };
}

quire_result quire_vulkan_get_features(const quire_device *device, quire_vulkan_features *features)
{
    if (!features)
        return qi_fail_null("quire_vulkan_get_features", "features");
    *features = (quire_vulkan_features){.sparse_residency_samples = 0};
    const qi_vulkan *vulkan = qi_vulkan_of(device);
    if (!vulkan)
        return quire_last_result();
    *features = features_of(vulkan);
    return QUIRE_SUCCESS;
}

/* ---- the log ------------------------------------------------------------------------------ */

/* Bytes of each list: two of them fit into a line of the log. */
enum { LOGGED_NAMES = 480 };

/* Protected memory and the features of one vendor or system are not listed when they are absent. */
void qi_vulkan_log_features(const qi_vulkan *vulkan, const quire_log *log)
{
    const quire_vulkan_features f = features_of(vulkan);
    const struct {
        const char *name;
        bool is_used, is_special;
    } all[] = {
        {"bufferDeviceAddress", f.buffer_device_address, false},
        {"timelineSemaphore", f.timeline_semaphore, false},
        {"maintenance4", f.maintenance4, false},
        {"memory budget", f.memory_budget, false},
        {"memory priority", f.memory_priority, false},
        {"pageableDeviceLocalMemory", f.pageable_memory, true},
        {"zeroInitializeDeviceMemory", f.zero_initialize, true},
        {"protectedMemory", f.protected_memory, true},
        {"deviceCoherentMemory", f.device_coherent_memory, true},
        {"external memory fd", f.external_memory_fd, false},
        {"dma-buf", f.external_memory_dma_buf, false},
        {"external memory host", f.external_memory_host, false},
        {"external memory win32", f.external_memory_win32, true},
        {"debug utils", f.debug_utils, false},
        {"sparse queue", f.sparse_queue, false},
        {"sparseBinding", f.sparse_binding, false},
        {"sparseResidencyBuffer", f.sparse_residency_buffer, false},
        {"sparseResidencyImage2D", f.sparse_residency_image_2d, false},
        {"sparseResidencyImage3D", f.sparse_residency_image_3d, false},
        {"sparseResidencyAliased", f.sparse_residency_aliased, true},
    };
    name_list used = {.length = 0}, absent = {.length = 0};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].is_used)
            add(&used, LOGGED_NAMES, all[i].name);
        else if (!all[i].is_special)
            add(&absent, LOGGED_NAMES, all[i].name);
    }
    qi_log(log, QUIRE_LOG_INFO, "optional features of Vulkan in use: %s; not enabled: %s",
           used.length ? used.text : "none", absent.length ? absent.text : "none");
}
