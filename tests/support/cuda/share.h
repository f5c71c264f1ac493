/*
 * share.h - physical memory of the fake CUDA driver that another process may have too.
 *
 * Behind its bytes the file says what they are, so that an importer knows their size and place.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_SHARE_H
#define QUIRE_TESTS_SUPPORT_CUDA_SHARE_H

#include "tests/support/cuda/memory.h"

#define FC_TRAILER_SIZE 4096

/* Writes behind the bytes what they are. */
void fc_share_prepare(fc_memory *memory);

/* Memory that is alive and lies in the file of this descriptor; NULL: there is none. */
fc_memory *fc_share_known(int fd);

#endif
