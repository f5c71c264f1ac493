/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * base.h - what the other files share: results and lines, host memory, and names and texts in it.
 */
#ifndef QUIRE_SRC_ADAPTERS_VMA_BASE_H
#define QUIRE_SRC_ADAPTERS_VMA_BASE_H

#include "quire/quire.h"
#include "quire/vma/types.h"

/* ---- results and lines -------------------------------------------------------------------- */

/* Each failure sets the sentence of quire_last_error. Functions that return nothing print it. */

/* Returns the VkResult of a failed call of quire: the driver's own code, if it has one. */
VkResult qi_vma_result(quire_result result);

/* Sets the last error of the thread and returns `code`. The format is that of printf. */
VkResult qi_vma_fail(VkResult code, const char *format, ...) QUIRE_PRINTF(2, 3);

/* Writes the last error of the thread to stderr as a line of `function`, which returns nothing. */
void qi_vma_print(const char *function);

/* Takes the lines of quire's log, from warnings on. */
extern const quire_log QI_VMA_LOG;

/* Lines of the calling thread go to `log` from now on; NULL: to stderr. */
void qi_vma_send_lines(quire_vma_leak_log log);

/*
 * Destroys a memory unless allocations live in it. Then it writes a line for each of the first 16
 * and one that counts all, and fails.
 */
quire_result qi_vma_destroy_memory(quire_memory **memory);

/* ---- host memory -------------------------------------------------------------------------- */

/*
 * Host memory of the adapter's records, by the callbacks of the program. Must not be moved while it
 * is in use: `memory` points to the callbacks.
 */
typedef struct qi_vma_host {
    VkAllocationCallbacks callbacks; /* {0}: malloc and free */
    quire_host_memory memory;        /* for quire; {0}: malloc and free */
} qi_vma_host;

/* Whether the callbacks are complete, or NULL. Sets the last error otherwise. */
bool qi_vma_host_can_use(const VkAllocationCallbacks *callbacks);

/* NULL callbacks mean malloc and free. */
void qi_vma_host_begin(qi_vma_host *host, const VkAllocationCallbacks *callbacks);

/* The callbacks for the driver; NULL: its own. */
const VkAllocationCallbacks *qi_vma_host_callbacks(const qi_vma_host *host);

/* Allocates zeroed bytes. Returns NULL and sets the last error if there are none. */
void *qi_vma_host_allocate(const qi_vma_host *host, size_t size);

/* NULL releases nothing. */
void qi_vma_host_release(const qi_vma_host *host, void *pointer);

/* ---- names -------------------------------------------------------------------------------- */

/* Replaces a name by a copy of another; NULL: none. Returns false, sets the last error and leaves
   the name if host memory is exhausted. */
bool qi_vma_name_set(const qi_vma_host *host, char **name, const char *text);

/* ---- texts -------------------------------------------------------------------------------- */

/* A text that grows. */
typedef struct qi_vma_text {
    const qi_vma_host *host;
    char *data; /* NULL: none yet */
    size_t size, room;
    bool has_failed;
} qi_vma_text;

/* A quire_sink for a qi_vma_text. */
bool qi_vma_text_write(void *user, const char *piece, size_t size);

void qi_vma_text_add(qi_vma_text *text, const char *piece);

/* Returns the text, which the caller releases. NULL and a last error: something has failed. */
char *qi_vma_text_end(qi_vma_text *text);

#endif
