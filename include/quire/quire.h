/*
 * quire/quire.h - includes everything that most programs need.
 *
 * A *device* is one backend opened on one physical device. A *memory* manages *pages*: blocks of
 * one memory kind that it gets from the backend. An *allocation* is a range of a page. A *buffer*
 * or an *image* is an allocation with a native object (VkBuffer, VkImage, ...) bound to it. The
 * page, offset and size of each can be queried.
 *
 *     quire_device *device = NULL;
 *     quire_host_open(&(quire_host_options){0}, &device);                   // quire/host.h
 *     quire_memory *memory = NULL;
 *     quire_memory_create(device, &(quire_memory_options){0}, &memory);     // device-local
 *     quire_buffer weights;
 *     quire_buffer_create(memory, &(quire_buffer_options){.size = 1024}, &weights);
 *     quire_allocation_info info;
 *     quire_allocation_get_info(memory, weights.allocation, &info);         // page, offset, size
 *     quire_free(memory, weights.allocation);
 *     quire_memory_destroy(&memory);
 *     quire_device_destroy(&device);
 *
 * Read in this order: base.h (conventions), device.h, memory.h, allocation.h, resource.h. The rest
 * can wait until you need it. Each backend has a header of its own with the function that opens its
 * devices: host.h, vulkan.h, cuda.h, plugin.h. To write a backend, read backend.h.
 *
 * Thread-safety: any thread may call any function on a live device or memory at any time. A destroy
 * call requires that no other call on the object runs or follows. Exceptions are stated at the
 * function. quire holds no lock while it calls a backend, a log sink or a walk callback.
 */
#ifndef QUIRE_QUIRE_H
#define QUIRE_QUIRE_H

#include "quire/allocation.h" /* allocate, free, map, read, write, views */
#include "quire/base.h"       /* results, last error, log, host memory callbacks */
#include "quire/device.h"     /* devices, heaps, memory kinds, budgets */
#include "quire/insight.h"    /* statistics, walk, owner of an address, JSON, picture */
#include "quire/memory.h"     /* memories, page policy, trim, limits */
#include "quire/preset.h"     /* page policies of other allocators */
#include "quire/resource.h"   /* buffers and images */
#include "quire/space.h"      /* the range allocator alone */
#include "quire/stream.h"     /* streams, points, stream-ordered allocation and free */
#include "quire/transfer.h"   /* copies and fills */

#endif
