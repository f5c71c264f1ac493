/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * broken_streams.h - the spoiled stream functions of a broken backend.
 */
#ifndef QUIRE_TESTS_CONTRACT_BROKEN_STREAMS_H
#define QUIRE_TESTS_CONTRACT_BROKEN_STREAMS_H

#include "tests/contract/broken_bytes.h"

/* Puts the spoiled functions into a table that has streams. */
void broken_streams_replace(quire_backend *table);

#endif
