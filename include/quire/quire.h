/*
 * quire/quire.h - devices, memories, allocations, buffers, images, mapping and transfers.
 *
 * A *device* is one backend opened on one physical device. A *memory* is a list of *pages*, blocks
 * of one memory kind taken from the backend. *Allocations* are placed in pages; *buffers* and
 * *images* are allocations with a native object bound to them. Each can be asked where it lies.
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
 * Thread-safety: any thread may call anything on a live device or memory at any time; destroying
 * needs that no other call on the object is running or still to come. No lock is held while a
 * backend, log or walk callback runs. See quire/base.h for the conventions of all functions.
 */
#ifndef QUIRE_QUIRE_H
#define QUIRE_QUIRE_H

#include "quire/allocation.h" /* allocate, reserve and commit, map, write and read, views */
#include "quire/base.h"       /* results, last error, log, host memory callbacks */
#include "quire/device.h"     /* devices, heaps, memory kinds, intents */
#include "quire/insight.h"    /* statistics, walk, owner of an address, JSON, picture */
#include "quire/memory.h"     /* memories, page policy, trim */
#include "quire/preset.h"     /* page policies of other allocators */
#include "quire/resource.h"   /* buffers and images */
#include "quire/space.h"      /* the range allocator alone */
#include "quire/stream.h"     /* streams, points, memory in their order */
#include "quire/transfer.h"   /* copies and fills */

#endif
