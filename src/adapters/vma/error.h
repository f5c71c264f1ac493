/*
 * error.h - VkResults of failures: each sets the sentence of quire_last_error, and functions that
 * return nothing print it.
 */
#ifndef QUIRE_SRC_ADAPTERS_VMA_ERROR_H
#define QUIRE_SRC_ADAPTERS_VMA_ERROR_H

#include "quire/quire.h"
#include "quire/vma/types.h"

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

#endif
