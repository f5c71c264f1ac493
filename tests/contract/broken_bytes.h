/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * broken_bytes.h - the state of a broken backend, and the part of it that reaches the bytes of
 * pages: map, flush, invalidate, the copies and growth.
 */
#ifndef QUIRE_TESTS_CONTRACT_BROKEN_BYTES_H
#define QUIRE_TESTS_CONTRACT_BROKEN_BYTES_H

#include "tests/contract/broken.h"
#include "tests/contract/wrap.h"

enum { BROKEN_OTHER_SIZE = 1 << 20 };

typedef struct broken_backend {
    contract_wrap wrap;
    broken_thing thing;
    uint64_t atom;

    pthread_mutex_t lock;     /* protects the next four members */
    quire_native_page shared; /* handed out `uses` times */
    uint32_t uses, shared_kind;
    uint64_t first_object;
    unsigned char *other;         /* memory outside every page, BROKEN_OTHER_SIZE bytes */
    _Atomic uint64_t latest_size; /* bytes of the latest page request of any thread */
} broken_backend;

/* Puts the spoiled functions into a complete table. */
void broken_bytes_replace(quire_backend *table);

#endif
