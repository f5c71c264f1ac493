/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/default_memory.h - allocations, buffers and images without creating a memory first.
 *
 *     quire_memory *memory = NULL;
 *     quire_buffer buffer;
 *     const quire_buffer_options options = {.size = 4096, .host_write = true};
 *     quire_device_buffer_create(device, NULL, &options, &memory, &buffer);
 *     quire_write(memory, buffer.allocation, 0, data, 4096);
 *     quire_free(memory, buffer.allocation);
 *
 * A device owns one memory of each of its kinds: the default memories. The
 * functions whose names begin with quire_device_ choose the memory kind and use the default memory
 * of that kind. If it is full they use the next best kind. They write the memory, which the other
 * functions need. Create memories of your own for pages of other sizes, limits, or exports.
 *
 * quire/vulkan.h has the same for Vulkan's create infos: quire_vulkan_device_buffer_create and
 * quire_vulkan_device_image_create.
 *
 * Thread-safety: any thread may call any function on a live device.
 */
#ifndef QUIRE_DEFAULT_MEMORY_H
#define QUIRE_DEFAULT_MEMORY_H

#include "quire/resource.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Writes the default memory of a kind, an index into quire_device_info.kinds. The first call for a
 * kind makes the memory, with the options {0} or those of quire_device_set_default_options, and the
 * name "default memory of kind 3". It is a memory like any other, with these differences:
 *  - quire_memory_destroy returns INVALID_ARGUMENT. quire_device_destroy destroys it, and returns
 *    BUSY for whatever quire_memory_destroy would return it.
 *  - quire_memory_destroy_all destroys it with everything in it. The next call of this function
 *    makes another one.
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE (no such kind), OUT_OF_HOST_MEMORY, WRONG_STATE (the
 * device is being destroyed). On failure *memory is NULL.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_device_default_memory(quire_device *device,
                                                                  uint32_t kind,
                                                                  quire_memory **memory);

/*
 * Sets the options of default memories that are made from now on, for each kind that options->kind
 * allows: its `required` flags and `mask`, {0} for all kinds. The struct is copied. NULL options
 * mean {0}. The name must be NULL, the other fields of `kind` must be 0.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (no kind fits, or an option is not available with one of
 * them), WRONG_STATE (the default memory of one of them exists), OUT_OF_HOST_MEMORY. On failure
 * nothing is changed.
 */
QUIRE_API QUIRE_MUST_USE quire_result
quire_device_set_default_options(quire_device *device, const quire_memory_options *options);

/*
 * Allocate a raw range, or create a buffer or an image, in the default memory of the best kind that
 * has room. Write the memory that it lies in. On failure *memory is NULL.
 *
 * The request says which kinds may be chosen; NULL means {0}. The kind must also be able to hold
 * the object. Without an intent and flags, host_read and host_write of the options are the intent
 * of the same names; `mapped` without host_read counts as host_write. If these are not set either,
 * device-local kinds are preferred, and others are used when those are full: to refuse the others,
 * request QUIRE_INTENT_DEVICE. host_read, host_write and mapped require a host-visible kind in any
 * case. QUIRE_OBJECTS_ONLY is preferred for an object that only such kinds can hold, unless the
 * request avoids it.
 *
 * The order of the kinds is that of quire_device_choose_kind. The next kind is tried after
 * OUT_OF_DEVICE_MEMORY, OVER_BUDGET, TOO_MANY_PAGES, TOO_MANY_ALLOCATIONS, OUT_OF_RANGE and
 * UNSUPPORTED. A kind without a required flag is never used. A native object is created once and
 * serves all kinds, unless binding it has failed. A memory that refuses counts a failure.
 *
 * Errors as quire_allocate, quire_buffer_create and quire_image_create, and as
 * quire_device_choose_kind; UNSUPPORTED also if no kind of the request can hold the object. If all
 * kinds refuse, the error is that of the first.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_device_allocate(quire_device *device,
                                                            const quire_kind_request *kinds,
                                                            const quire_allocation_options *options,
                                                            quire_memory **memory,
                                                            quire_allocation *allocation);
QUIRE_API QUIRE_MUST_USE quire_result quire_device_buffer_create(
    quire_device *device, const quire_kind_request *kinds, const quire_buffer_options *options,
    quire_memory **memory, quire_buffer *buffer);
QUIRE_API QUIRE_MUST_USE quire_result quire_device_image_create(quire_device *device,
                                                                const quire_kind_request *kinds,
                                                                const quire_image_options *options,
                                                                quire_memory **memory,
                                                                quire_image *image);

#ifdef __cplusplus
}
#endif

#endif
