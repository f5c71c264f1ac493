/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
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

/* Acquires a chunk that can be exported as `types`: a kept one, or a new one. chunk->types may lack
   the fabric handle that the driver refused. */
QUIRE_MUST_USE quire_result qi_cuda_chunk_acquire(qi_cuda *cuda, uint32_t kind, uint64_t size,
                                                  quire_cuda_handle_types types,
                                                  qi_cuda_chunk **chunk);

/* Keeps or releases a chunk that is not mapped. If the driver refuses, it is kept beyond the limit.
 */
void qi_cuda_chunk_release(qi_cuda *cuda, qi_cuda_chunk *chunk);

/* Releases all kept chunks. Returns false if the driver refused some; they stay kept. */
bool qi_cuda_release_kept_chunks(qi_cuda *cuda);

/* Releases the chunks that are kept beyond the limit, until the driver refuses one. */
void qi_cuda_retry_kept(qi_cuda *cuda);

/* Releases all kept chunks if a call of the driver ran out of memory. Returns true if the call can
   be repeated. */
bool qi_cuda_make_room(qi_cuda *cuda, qi_cu_result code);

/* ---- chunks side by side ------------------------------------------------------------------ */

/* In the context. For the list from `chunk` on; the first lies at address `at`. */

/* Maps those that are not mapped. On failure some may be. */
QUIRE_MUST_USE quire_result qi_cuda_chunks_map(const qi_cuda *cuda, qi_cuda_chunk *chunk,
                                               qi_cu_ptr at);

/* Returns false at the first refusal. is_mapped lets a retry skip what is unmapped already. */
bool qi_cuda_chunks_unmap(const qi_cuda *cuda, qi_cuda_chunk *chunk, qi_cu_ptr at);

/* Sets access for `size` bytes: all chunks. On failure some may have it. */
qi_cu_result qi_cuda_chunks_access(const qi_cuda *cuda, const qi_cuda_chunk *chunk, qi_cu_ptr at,
                                   uint64_t size, const qi_cu_access_desc *list, uint32_t count);

/* The same for everyone who has access to the page. While the driver is not ready it waits, and
   releases and reacquires the mutex of an elastic page. */
QUIRE_MUST_USE quire_result qi_cuda_chunks_open(qi_cuda *cuda, const qi_cuda_page *page,
                                                const qi_cuda_chunk *chunk, qi_cu_ptr at,
                                                uint64_t size);

/* ---- pages -------------------------------------------------------------------------------- */

/* In the context. */

/* Reserves the page's addresses. */
QUIRE_MUST_USE quire_result qi_cuda_virtual_reserve(const qi_cuda *cuda, uint64_t alignment,
                                                    qi_cuda_page *page);

/* On failure the page holds what was created; the caller destroys it. */
QUIRE_MUST_USE quire_result qi_cuda_virtual_create(qi_cuda *cuda, const quire_page_request *request,
                                                   qi_cuda_page *page);

/* Reserves addresses, maps the page's chunks and sets access. On failure the page holds what was
   created. */
QUIRE_MUST_USE quire_result qi_cuda_virtual_map(qi_cuda *cuda, uint64_t alignment,
                                                qi_cuda_page *page);

/* Returns false if the driver refused a step; the rest can be retried. */
bool qi_cuda_virtual_destroy(qi_cuda *cuda, qi_cuda_page *page);

/* Lists who may access new pages of a kind: at most QUIRE_CUDA_MAX_ACCESSES. */
uint32_t qi_cuda_list_access(const qi_cuda *cuda, const qi_cuda_kind *kind,
                             qi_cu_access_desc *list);

#endif
