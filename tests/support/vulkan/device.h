/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * device.h - logical devices and queues of the fake driver.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_DEVICE_H
#define QUIRE_TESTS_SUPPORT_VULKAN_DEVICE_H

#include "tests/support/vulkan/driver.h"

/* Family 0 supports everything, family 1 compute and transfer, family 2 transfer. Family 3 exists
   only with FV_SPARSE_APART: it binds sparse objects, and the others do not. */
#define FV_FAMILIES 4
#define FV_FAMILY_QUEUES 2

typedef struct fv_submission fv_submission;

typedef struct fv_queue {
    fv_object object;
    uint32_t family;
    bool used;                   /* created with the device */
    fv_submission *first, *last; /* not complete, in order */
} fv_queue;

struct fv_device {
    fv_object object;
    fv_instance *instance;
    fv_physical_device *physical;
    uint32_t version; /* the lower of the device's and the one that the application requested */
    uint32_t extensions, features; /* enabled ones */
    uint64_t allocations;          /* memory objects alive */
    uint64_t next_address;         /* of memory, as the device sees it */
    bool asked_ahead;              /* requirements were queried without an object */
    uint32_t polls;                /* queries whether work is complete */
    fv_queue queues[FV_FAMILIES][FV_FAMILY_QUEUES];
};

/* device.c: destroys a device. Reports and destroys the objects that still exist on it. */
void fv_device_end(fv_device *device);

/* device.c: destroys an object of a device (0: none). pending: the id of the message if work that
   is not done uses it; NULL: no message. */
void fv_object_destroy(VkDevice device, fv_call call, fv_kind kind, uint64_t object,
                       const char *pending);

/* features.c: the features that a device creation requests. Returns false if one is not offered. */
bool fv_features_asked(const fv_physical_device *physical, const VkDeviceCreateInfo *info,
                       uint32_t *features);

/* external.c: what a driver with this layout can do with a handle type of external memory. No
   features: it does not know the type. */
VkExternalMemoryProperties fv_external_properties(const fv_driver *driver, const fv_layout *layout,
                                                  VkExternalMemoryHandleTypeFlags type);
/* properties.c: the number of queue families, and what one of them supports. */
uint32_t fv_family_count(const fv_physical_device *physical);
VkQueueFlags fv_family_flags(const fv_physical_device *physical, uint32_t family);

static inline fv_driver *fv_driver_of(const fv_device *device)
{
    return device->object.driver;
}

static inline const fv_layout *fv_layout_of(const fv_device *device)
{
    return &device->physical->layout;
}

#endif
