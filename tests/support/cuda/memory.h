/*
 * memory.h - physical memory of the fake CUDA driver: what a handle stands for.
 *
 * It lives while it has references (handles, each to be released once) or uses (mappings, tiles of
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
    bool charged; /* its bytes are counted there: another process's are not */
    fc_bytes bytes;
    dev_t file_system; /* of the file, where it has one of its own */
    ino_t file;
    struct fc_multicast *multicast; /* it is such an object, and has no bytes; NULL: it is none */
} fc_memory;

/* Made and referenced once. */
fc_memory *fc_memory_new(const qi_cu_allocation_prop *prop, uint64_t size);

/* One reference or use fewer; ends it with the last. */
void fc_memory_unreference(fc_memory *memory);
void fc_memory_unuse(fc_memory *memory);

/* Whatever there are. */
void fc_memory_end(fc_memory *memory);

void fc_memory_reference(fc_memory *memory);

/* By a handle that is not yet released; NULL and a message: there is none. */
fc_memory *fc_memory_find(fc_call call, qi_cu_handle handle);

/* Begins a call for physical memory or addresses. */
qi_cu_result fc_enter_virtual(fc_call call);

/* What is wrong with properties, for memory to be made; 0: nothing. */
qi_cu_result fc_properties_check(const qi_cu_allocation_prop *prop);

uint64_t fc_granularity(const qi_cu_allocation_prop *prop, bool recommended);

/* Any device has the feature. */
bool fc_any_device_has(uint32_t feature);

#endif
