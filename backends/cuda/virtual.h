/*
 * virtual.h - pages of virtual memory management, and the chunks of physical memory that they
 * consist of.
 */
#ifndef QUIRE_BACKENDS_CUDA_VIRTUAL_H
#define QUIRE_BACKENDS_CUDA_VIRTUAL_H

#include "backends/cuda/cuda.h"

/* ---- chunks ------------------------------------------------------------------------------- */

/* In the context, except qi_cuda_release_kept_chunks in a forked child. */

/* Creates a record for a handle that exists. The chunk owns the handle. */
QUIRE_MUST_USE quire_result qi_cuda_chunk_import(qi_cuda *cuda, uint32_t kind, uint64_t size,
                                                 qi_cu_handle handle, qi_cuda_chunk **chunk);

/* Releases all kept chunks. Returns false if the driver refused some; they stay kept. */
bool qi_cuda_release_kept_chunks(qi_cuda *cuda);

/* Releases all kept chunks if a call of the driver ran out of memory. Returns true if the call can
   be repeated. */
bool qi_cuda_make_room(qi_cuda *cuda, qi_cu_result code);

/* ---- pages -------------------------------------------------------------------------------- */

/* In the context. */

/* On failure the page holds what was created; the caller destroys it. */
QUIRE_MUST_USE quire_result qi_cuda_virtual_create(qi_cuda *cuda, const quire_page_request *request,
                                                   qi_cuda_page *page);

/* Reserves addresses, maps the page's chunks and sets access. On failure the page holds what was
   created. */
QUIRE_MUST_USE quire_result qi_cuda_virtual_map(qi_cuda *cuda, uint64_t alignment,
                                                qi_cuda_page *page);

/*
 * Maps `size` further bytes behind the mapped bytes of an elastic page and sets access: `count`
 * chunks from elastic->end up to *end. Does not change the page's record. On failure the caller
 * releases the chunks from elastic->end on. Requires the resize mutex. Releases and reacquires it
 * while the driver is not ready.
 */
QUIRE_MUST_USE quire_result qi_cuda_virtual_extend(qi_cuda *cuda, const qi_cuda_page *page,
                                                   uint64_t size, qi_cuda_chunk ***end,
                                                   uint32_t *count);

/* Unmaps and releases the chunks from *link on; the first lies at address `at`. Returns false if
   the driver refused; the chunks that it did not take remain in the list. */
bool qi_cuda_virtual_release_chunks(qi_cuda *cuda, qi_cuda_chunk **link, qi_cu_ptr at);

/* Returns false if the driver refused a step; the rest can be retried. */
bool qi_cuda_virtual_destroy(qi_cuda *cuda, qi_cuda_page *page);

/* Lists who may access new pages of a kind: at most QUIRE_CUDA_MAX_ACCESSES. */
uint32_t qi_cuda_list_access(const qi_cuda *cuda, const qi_cuda_kind *kind,
                             qi_cu_access_desc *list);

#endif
