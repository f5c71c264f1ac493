/*
 * kit.h - what the scenarios of the contract share: memories that suit any device, patterns, and
 * pages made by the backend's table alone.
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
 * Bytes of such a kind can be had and written on every device. Lazily allocated and protected ones
 * cannot, AMD's special ones want a feature that quire does not enable, in those without any flag
 * Vulkan's drivers put images only, and CUDA's tile pools have no bytes that anybody reaches.
 */
bool kit_holds_contents(const contract_world *w, uint32_t kind);

/* Native objects lie there, and nobody else: it has no bytes. */
bool kit_is_for_objects(const contract_world *w, uint32_t kind);

/* Pages grow in place: of a kind, of some kind. */
bool kit_grows(const contract_world *w, uint32_t kind);
bool kit_has_growth(const contract_world *w);

bool kit_is_visible(const contract_world *w, uint32_t kind);
bool kit_is_coherent(const contract_world *w, uint32_t kind);
bool kit_offers(const contract_world *w, quire_backend_features feature);

/* Whether quire_write, quire_read reach memory of the kind: as its flags and the features say. */
bool kit_can_write(const contract_world *w, uint32_t kind);
bool kit_can_read(const contract_world *w, uint32_t kind);
bool kit_can_both(const contract_world *w, uint32_t kind);

/* ---- memories ------------------------------------------------------------------------------- */

/* Bytes of the pages that the scenarios work with: small, and what the device can have. */
uint64_t kit_page_size(const contract_world *w);

/* The largest alignment of the memories: 2 MiB, less where a heap is small. */
uint64_t kit_largest_alignment(const contract_world *w, uint32_t kind);

/* Of one kind; what `more` (may be NULL) leaves open of pages and alignment suits the device. */
quire_memory *kit_memory(const contract_world *w, uint32_t kind, const quire_memory_options *more);

quire_allocation kit_allocate(quire_memory *memory, const quire_allocation_options *options);

#define ALLOCATE(memory, ...) kit_allocate((memory), &(quire_allocation_options){__VA_ARGS__})

quire_allocation_info kit_info(quire_memory *memory, quire_allocation allocation);
quire_native kit_native(quire_memory *memory, quire_allocation allocation);
quire_memory_stats kit_stats(quire_memory *memory);

/* Ends a memory in which nothing lives any more; its records are right. */
void kit_end(quire_memory **memory);

/* A multiple of the alignment at the native address, or in the page where there is no address. */
bool kit_is_aligned(const quire_native *native, uint64_t alignment);

/* ---- patterns ------------------------------------------------------------------------------- */

enum { KIT_LONGEST = 65536 };

/* Bytes from `offset` on of the endless pattern that belongs to a key. */
void kit_fill(uint64_t key, uint64_t offset, void *bytes, uint64_t size);
void kit_expect(uint64_t key, uint64_t offset, const void *bytes, uint64_t size);

/* An allocation's bytes become, or are, its pattern; whole up to KIT_LONGEST, else both ends. */
void kit_write(quire_memory *memory, quire_allocation allocation, uint64_t size, uint64_t key);
void kit_read(quire_memory *memory, quire_allocation allocation, uint64_t size, uint64_t key);

/* ---- pages without the core ----------------------------------------------------------------- */

typedef struct kit_page {
    quire_native_page native;
    uint32_t kind;
    unsigned char *pointer; /* of a host-visible kind */
} kit_page;

/* Makes a page with the table's own functions, and maps it where its kind is host-visible. */
quire_result kit_page_try(const contract_world *w, const quire_page_request *request,
                          kit_page *page);
kit_page kit_page_make(const contract_world *w, uint32_t kind, uint64_t size);
void kit_page_end(const contract_world *w, kit_page *page);

/* What device_address tells of a page: the same each time, and the last error stays. 0: none, or
   the backend has no such function. */
uint64_t kit_device_address(const contract_world *w, const quire_native_page *page);

/* Reads and writes as the device does. False: the backend has no such copy for the kind. */
bool kit_look(const contract_world *w, const quire_native_page *page, uint64_t offset, void *data,
              uint64_t size);
bool kit_put(const contract_world *w, const quire_native_page *page, uint64_t offset,
             const void *data, uint64_t size);

/* Writes and reads a page by whatever the backend has. False: nothing reaches it. */
bool kit_page_write(const contract_world *w, const kit_page *page, uint64_t offset,
                    const void *data, uint64_t size);
bool kit_page_read(const contract_world *w, const kit_page *page, uint64_t offset, void *data,
                   uint64_t size);

/* flush or invalidate by the table: outwards to whole atoms; nothing for coherent kinds. */
void kit_page_flush(const contract_world *w, const kit_page *page, uint64_t offset, uint64_t size);
void kit_page_invalidate(const contract_world *w, const kit_page *page, uint64_t offset,
                         uint64_t size);

#endif
