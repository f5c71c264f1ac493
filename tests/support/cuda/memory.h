/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory.h - physical memory of the fake CUDA driver, which a handle identifies.
 *
 * Memory lives while it has references (handles, each released once) or uses (mappings, tiles of
 * arrays, bindings to multicast objects).
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_MEMORY_H
#define QUIRE_TESTS_SUPPORT_CUDA_MEMORY_H

#include "tests/support/cuda/bytes.h"

struct fc_multicast;

typedef struct fc_memory {
    fc_object object;
    uint32_t references, uses;
    qi_cu_allocation_prop prop; /* as granted */
    uint64_t size, granularity;
    int place;    /* a device or FC_HOST */
    bool charged; /* its bytes count there; memory of another process does not */
    fc_bytes bytes;
    dev_t file_system; /* of the file, if it has a separate one */
    ino_t file;
    struct fc_multicast *multicast; /* the multicast object of the handle; NULL: none */
} fc_memory;

/* Creates memory with one reference. */
fc_memory *fc_memory_new(const qi_cu_allocation_prop *prop, uint64_t size);

/* Removes a reference or a use. The last one destroys the memory. */
void fc_memory_unreference(fc_memory *memory);
void fc_memory_unuse(fc_memory *memory);

/* Destroys the memory whatever references and uses it has. */
void fc_memory_end(fc_memory *memory);

void fc_memory_reference(fc_memory *memory);

/* Records which file has the bytes, if they have one of their own. */
void fc_memory_note_file(fc_memory *memory);

/* Finds memory by a live handle; NULL and a message if there is none. */
fc_memory *fc_memory_find(fc_call call, qi_cu_handle handle);

/* Begins a call on physical memory or addresses. */
qi_cu_result fc_enter_virtual(fc_call call);

/* The error of properties for new memory; 0 if they are valid. */
qi_cu_result fc_properties_check(const qi_cu_allocation_prop *prop);

uint64_t fc_granularity(const qi_cu_allocation_prop *prop, bool recommended);

/* Returns true if any device has the feature. */
bool fc_any_device_has(uint32_t feature);

#endif
