/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/quire.h - includes everything that most programs need.
 *
 * A *device* is one backend opened on one physical device. A *memory* manages *pages*: blocks of
 * one memory kind that it gets from the backend. An *allocation* is a range of a page. A *buffer*
 * or an *image* is an allocation with a native object (VkBuffer, VkImage, ...) bound to it. The
 * page, offset and size of each can be queried.
 *
 *     quire_device *device = NULL;
 *     quire_host_open(NULL, &device);                                       // quire/host.h
 *     quire_memory *memory = NULL;
 *     quire_memory_create(device, NULL, &memory);                           // device-local
 *     quire_buffer weights;
 *     quire_allocation_info info;                                           // page, offset, size
 *     quire_buffer_create(memory, &(quire_buffer_options){.size = 1024, .info = &info}, &weights);
 *     quire_free(memory, weights.allocation);
 *     quire_memory_destroy(&memory);
 *     quire_device_destroy(&device);
 *
 * Most programs need only these functions:
 *  - quire_host_open, quire_vulkan_open or quire_cuda_open opens a device; quire_device_destroy;
 *  - quire_memory_create with quire_memory_options.kind; quire_memory_destroy;
 *  - quire_allocate, quire_buffer_create and quire_image_create; quire_free frees all three; their
 *    forms quire_device_allocate and so on (default_memory.h) need no memory;
 *  - quire_map and quire_unmap for memory that the host can reach, quire_write and quire_read for
 *    every memory, quire_copy between memories;
 *  - quire_free_on_stream for what a stream of the device still uses;
 *  - quire_last_error has the sentence of a failure, quire_memory_get_stats the use of a memory.
 *
 * Read in this order: the conventions in base.h; quire_memory_options in memory.h;
 * quire_allocation_options and the functions after it in allocation.h; resource.h. The rest can
 * wait until you need it. Each backend has a header of its own with the function that opens its
 * devices: host.h, vulkan.h, cuda.h, plugin.h. To write a backend, read backend.h.
 *
 * Thread-safety: any thread may call any function on a live device or memory at any time. A destroy
 * call requires that no other call on the object runs or follows. Exceptions are stated at the
 * function. quire holds no lock while it calls a backend, a log sink or a walk callback.
 */
#ifndef QUIRE_QUIRE_H
#define QUIRE_QUIRE_H

/* clang-format off: in the order in which to read them */
#include "quire/base.h"           /* results, last error, log, host memory callbacks */
#include "quire/device.h"         /* devices, heaps, memory kinds, budgets */
#include "quire/memory.h"         /* memories, page policy, trim, limits */
#include "quire/allocation.h"     /* allocate, free, map, read, write, views, find by address */
#include "quire/resource.h"       /* buffers and images */
#include "quire/default_memory.h" /* the same without creating a memory */
#include "quire/transfer.h"       /* copies and fills */
#include "quire/stream.h"         /* streams, points, memory in the order of streams */
#include "quire/elastic.h"        /* memory for parts of an allocation */
#include "quire/compact.h"        /* allocations move so that pages become free */
#include "quire/evict.h"          /* allocations leave their pages, and wake elsewhere */
#include "quire/insight.h"        /* statistics, walk, events, JSON, picture */
#include "quire/export.h"         /* files for viewers of other programs */
#include "quire/record.h"         /* what is allocated and freed, as a trace */
#include "quire/preset.h"         /* page policies of other allocators */
#include "quire/space.h"          /* the range allocator alone */
#include "quire/plan.h"           /* offsets for ranges with known lifetimes */
/* clang-format on */

#endif
