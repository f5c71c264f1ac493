/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * kit.h - helpers of the contract's scenarios: memories that suit any device, patterns, and pages
 * created through the backend's table alone.
 */
#ifndef QUIRE_TESTS_CONTRACT_KIT_H
#define QUIRE_TESTS_CONTRACT_KIT_H

#include "tests/contract/contract.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)

static inline uint64_t kit_round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* ---- kinds ---------------------------------------------------------------------------------- */

/*
 * Returns whether bytes of such a kind can be allocated and written on every device. Lazily
 * allocated and protected kinds cannot. AMD's special kinds need a feature that quire does not
 * enable. Vulkan's drivers place only images in kinds without any flag. Bytes of CUDA's tile pools
 * are inaccessible.
 */
bool kit_holds_contents(const contract_world *w, uint32_t kind);

/* Only native objects can be placed in the kind: it has no bytes. */
bool kit_is_for_objects(const contract_world *w, uint32_t kind);

/* Pages of the kind, or of some kind, can grow in place. */
bool kit_grows(const contract_world *w, uint32_t kind);
bool kit_has_growth(const contract_world *w);

bool kit_is_visible(const contract_world *w, uint32_t kind);
/* Whether elastic pages of the kind can be mapped. */
bool kit_maps_elastic(const contract_world *w, uint32_t kind);
bool kit_is_coherent(const contract_world *w, uint32_t kind);
bool kit_offers(const contract_world *w, quire_backend_features feature);

/*
 * Returns whether quire_write and quire_read support the kind, according to its flags and the
 * features.
 */
bool kit_can_write(const contract_world *w, uint32_t kind);
bool kit_can_read(const contract_world *w, uint32_t kind);
bool kit_can_both(const contract_world *w, uint32_t kind);

/* ---- memories ------------------------------------------------------------------------------- */

/* Size in bytes of the pages that the scenarios use: small, and allowed by the device. */
uint64_t kit_page_size(const contract_world *w);

/* The largest alignment of the memories: 2 MiB, or less if a heap is small. */
uint64_t kit_largest_alignment(const contract_world *w, uint32_t kind);

/*
 * Creates a memory of one kind. Values of pages and alignment that `more` (may be NULL) leaves open
 * are chosen to suit the device.
 */
quire_memory *kit_memory(const contract_world *w, uint32_t kind, const quire_memory_options *more);

quire_allocation kit_allocate(quire_memory *memory, const quire_allocation_options *options);

#define ALLOCATE(memory, ...) kit_allocate((memory), &(quire_allocation_options){__VA_ARGS__})

quire_allocation_info kit_info(quire_memory *memory, quire_allocation allocation);
quire_native kit_native(quire_memory *memory, quire_allocation allocation);
quire_memory_stats kit_stats(quire_memory *memory);

/* Destroys a memory without live allocations, after checking its records. */
void kit_end(quire_memory **memory);

/*
 * Returns whether the native address, or the offset in the page if there is no address, is a
 * multiple of the alignment.
 */
bool kit_is_aligned(const quire_native *native, uint64_t alignment);

/* ---- patterns ------------------------------------------------------------------------------- */

enum { KIT_LONGEST = 65536 };

/* Bytes from `offset` on of the endless pattern of a key. */
void kit_fill(uint64_t key, uint64_t offset, void *bytes, uint64_t size);
void kit_expect(uint64_t key, uint64_t offset, const void *bytes, uint64_t size);

/*
 * Writes, or checks, the pattern in an allocation: in all of it up to KIT_LONGEST, otherwise at
 * both ends.
 */
void kit_write(quire_memory *memory, quire_allocation allocation, uint64_t size, uint64_t key);
void kit_read(quire_memory *memory, quire_allocation allocation, uint64_t size, uint64_t key);

/* ---- pages without the core ----------------------------------------------------------------- */

typedef struct kit_page {
    quire_native_page native;
    uint32_t kind;
    unsigned char *pointer; /* of a host-visible kind */
} kit_page;

/* Creates a page through the table, and maps it if its kind is host-visible. */
quire_result kit_page_try(const contract_world *w, const quire_page_request *request,
                          kit_page *page);
kit_page kit_page_make(const contract_world *w, uint32_t kind, uint64_t size);
void kit_page_end(const contract_world *w, kit_page *page);

/*
 * Address of a page as reported by device_address, which must be the same each time and keep the
 * last error. Returns 0 if there is none or the backend lacks the function.
 */
uint64_t kit_device_address(const contract_world *w, const quire_native_page *page);

/*
 * Reads and writes as the device does. Returns false if the backend has no such copy for the kind.
 */
bool kit_look(const contract_world *w, const quire_native_page *page, uint64_t offset, void *data,
              uint64_t size);
bool kit_put(const contract_world *w, const quire_native_page *page, uint64_t offset,
             const void *data, uint64_t size);

/*
 * Writes and reads a page by any means of the backend. Returns false if the page is inaccessible.
 */
bool kit_page_write(const contract_world *w, const kit_page *page, uint64_t offset,
                    const void *data, uint64_t size);
bool kit_page_read(const contract_world *w, const kit_page *page, uint64_t offset, void *data,
                   uint64_t size);

/*
 * Calls flush or invalidate of the table, rounded outwards to whole atoms. Does nothing for
 * coherent kinds.
 */
void kit_page_flush(const contract_world *w, const kit_page *page, uint64_t offset, uint64_t size);
void kit_page_invalidate(const contract_world *w, const kit_page *page, uint64_t offset,
                         uint64_t size);

#endif
