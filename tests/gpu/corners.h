/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * corners.h - what the cases of corners.c share, and those of the files corner_*.c.
 */
#ifndef QUIRE_TESTS_GPU_CORNERS_H
#define QUIRE_TESTS_GPU_CORNERS_H

#include "quire/cuda.h"
#include "quire/quire.h"

/* A device with one memory, as most programs have. */
typedef struct corner {
    quire_device *device;
    quire_cuda_info info;
    quire_memory *memory;
} corner;

/* NULL settings and options mean {0}. */
void corner_open(corner *c, const quire_cuda_settings *settings,
                 const quire_memory_options *options);
void corner_close(corner *c);
quire_allocation corner_allocate(corner *c, uint64_t size);

enum { CORNER_BYTES = 100 };

/* A word for corner_run, which does not change it. */
static inline char *corner_text(const char *text)
{
    return (char *)(uintptr_t)text;
}

/* Runs this program with the words in a new process. Returns its exit status; 128 if a signal ended
   it. */
int corner_run(char *const *words);

/* corner_share.c: pages and multicast objects in two processes. corner_import is the other process
   of a page and corner_team that of a multicast object; they take the words behind the option. */
void another_process_shares_a_page(void);
void another_process_opens_a_legacy_handle(void);
bool has_legacy_handles(void);
void multicast_binds_pages_and_addresses(void);
void another_process_imports_a_multicast_object(void);
int corner_import(char **words);
int corner_team(char **words);

/* corner_pools.c */
void streams_use_pages_of_a_pool(void);
void a_pool_is_shared_with_the_program(void);
void a_pool_is_refused_without_one(void);

/* corner_peers.c: another device copies to and from pages of quire. */
bool has_peer(void);
void a_peer_copies_to_and_from_a_page(void);
void a_peer_copies_to_and_from_a_pool(void);

/* corner_captures.c: a stream captures in each mode, while quire creates, fills and destroys pages
   in the thread that captures, or in another one. */
void capture_in_the_same_thread_survives(void);
void capture_in_another_thread_survives(void);

#endif
