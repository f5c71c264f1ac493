/*
 * open_features.c - the features of a device of quire's own: those that quire uses, merged with the
 * chain of the program.
 *
 * Vulkan permits each struct once, and no single struct beside the struct of a core version that
 * contains it. Therefore a feature of quire goes into the program's struct if the chain has one
 * with a member for it, and into a struct of quire's own otherwise. The structs of quire precede
 * the program's chain, whose links stay unchanged.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "backends/vulkan/open.h"
#include "backends/vulkan/result.h"
#include "src/base/result.h"

/* ---- structs of features --------------------------------------------------------------------- */

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

/* ---- what the device does not have ----------------------------------------------------------- */

typedef struct text_list {
    char text[512];
    size_t length;
} text_list;

static void add(text_list *list, const char *text)
{
    if (list->length < sizeof list->text)
        list->length +=
            (size_t)snprintf(list->text + list->length, sizeof list->text - list->length, "%s%s",
                             list->length ? ", " : "", text);
}

/* Adds the members that a struct of the program sets and the device does not have. */
static void add_missing(const opening *o, VkBaseOutStructure *given, const qi_vulkan_known *known,
                        text_list *missing)
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
            add(missing, known->members[i]);
}

static quire_result check_features(const opening *o)
{
    text_list missing = {.length = 0};
    for (VkBaseOutStructure *link = o->options->chain; link; link = link->pNext) {
        const qi_vulkan_known *known = qi_vulkan_find_known(link->sType);
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
    text_list unknown = {.length = 0};
    for (VkBaseOutStructure *link = o->options->chain; link; link = link->pNext) {
        char number[32];
        snprintf(number, sizeof number, "%d", (int)link->sType);
        const qi_vulkan_known *known = qi_vulkan_find_known(link->sType);
        if (!known || !known->count)
            add(&unknown, number);
    }
    return qi_vulkan_fail(
        VK_ERROR_FEATURE_NOT_PRESENT,
        "vkCreateDevice on '%s': a feature in the structs of the chain with sType "
        "%s",
        device, unknown.length ? unknown.text : "(none)");
}

/* ---- what quire uses ------------------------------------------------------------------------- */

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
         qi_vulkan_extensions_has_taken(e, VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME)))
        chain(o, &o->address, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES);
    if (version >= VK_API_VERSION_1_2 ||
        qi_vulkan_extensions_has_taken(e, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME))
        chain(o, &o->timeline, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES);
    if (version >= VK_API_VERSION_1_3 ||
        qi_vulkan_extensions_has_taken(e, VK_KHR_MAINTENANCE_4_EXTENSION_NAME))
        chain(o, &o->maintenance4, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES);
    if (qi_vulkan_extensions_has_taken(e, VK_EXT_MEMORY_PRIORITY_EXTENSION_NAME))
        chain(o, &o->priority, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PRIORITY_FEATURES_EXT);
    if (qi_vulkan_extensions_has_taken(e, VK_EXT_PAGEABLE_DEVICE_LOCAL_MEMORY_EXTENSION_NAME))
        chain(o, &o->pageable,
              VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PAGEABLE_DEVICE_LOCAL_MEMORY_FEATURES_EXT);
    if (qi_vulkan_extensions_has_taken(e, QI_VULKAN_ZERO_EXTENSION))
        chain(o, &o->zero, QI_VULKAN_ZERO_FEATURES);
    o->get_features(o->physical_device, &o->features);
    o->features.features.robustBufferAccess = VK_FALSE;
    o->address.bufferDeviceAddressCaptureReplay = VK_FALSE;
    o->address.bufferDeviceAddressMultiDevice = VK_FALSE;
}

/* ---- merging --------------------------------------------------------------------------------- */

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
