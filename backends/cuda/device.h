/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * device.h - what a CUDA device offers and reports: its capabilities, its memory kinds, its
 * description; and whose device a handle names.
 */
#ifndef QUIRE_BACKENDS_CUDA_DEVICE_H
#define QUIRE_BACKENDS_CUDA_DEVICE_H

#include "backends/cuda/cuda.h"

/* Reads the attributes of the device, without regard to the driver's functions. */
QUIRE_MUST_USE quire_result qi_cuda_query_capabilities(const qi_cuda *cuda,
                                                       qi_cuda_capabilities *capabilities);

/* Clears every capability for which the driver lacks a function. */
void qi_cuda_match_functions(const qi_cuda *cuda, qi_cuda_capabilities *capabilities);

/* ---- memory kinds ------------------------------------------------------------------------- */

/* The names of the page kinds in messages and, with dashes, in QUIRE_CUDA_KINDS. */
extern const char *const qi_cuda_kind_names[QUIRE_CUDA_PAGE_KINDS];

/* Adds the memory kinds that the settings request. UNSUPPORTED if the device lacks one. In the
   context. */
QUIRE_MUST_USE quire_result qi_cuda_add_kinds(qi_cuda *cuda);

/* Sets the granularities of a kind of virtual memory management. In the context. */
QUIRE_MUST_USE quire_result qi_cuda_find_granularity(const qi_cuda *cuda, qi_cuda_kind *kind);

/* Returns true if the device has a memory kind of this page kind. */
bool qi_cuda_has_kind(const qi_cuda *cuda, quire_cuda_page_kind page_kind);

/* Returns true if pages of the kind can be elastic: limits.elastic_kinds. */
bool qi_cuda_kind_is_elastic(const qi_cuda_kind *kind);

/* The properties of a chunk of a kind that can be exported as `types`. */
qi_cu_allocation_prop qi_cuda_allocation_prop(const qi_cuda *cuda, const qi_cuda_kind *kind,
                                              quire_cuda_handle_types types);

/* Rounds a page size up to the granularity of a kind. OUT_OF_DEVICE_MEMORY if the size exceeds the
   heap or overflows. */
QUIRE_MUST_USE quire_result qi_cuda_round_size(const qi_cuda *cuda, uint32_t kind, uint64_t size,
                                               uint64_t *padded);

/* ---- describing --------------------------------------------------------------------------- */

/* Entries of the backend table. */
quire_result qi_cuda_describe(void *state, quire_device_info *info);
quire_result qi_cuda_heap_budget(void *state, uint32_t heap, quire_heap_budget *budget);

/* ---- whose device it is ------------------------------------------------------------------- */

/* Returns the state of a device of this backend. NULL after reporting INVALID_ARGUMENT for another
   device, or NOT_PERMITTED in a forked child. */
qi_cuda *qi_cuda_of(const quire_device *device);

/* Finds the native page and offset of an allocation in a memory of this backend. */
QUIRE_MUST_USE quire_result qi_cuda_find_native(const quire_memory *memory,
                                                quire_allocation allocation, quire_native *native,
                                                qi_cuda **cuda);

/* Finds the device state of a memory of this backend, and the memory's information. */
QUIRE_MUST_USE quire_result qi_cuda_of_memory(const quire_memory *memory, quire_memory_info *info,
                                              qi_cuda **cuda);

#endif
