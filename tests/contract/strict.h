/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * strict.h - a subject that checks each flush and invalidate against the rules of quire/backend.h,
 * and whose host bytes differ from those of a new page. The wrapped backend keeps the two apart.
 */
#ifndef QUIRE_TESTS_CONTRACT_STRICT_H
#define QUIRE_TESTS_CONTRACT_STRICT_H

#include "tests/contract/contract.h"

/* For a subject whose `options` are the subject to wrap. */
quire_result strict_open(const contract_subject *subject, const quire_host_memory *host,
                         contract_opened *opened);
void strict_close(void *own);
quire_result strict_set_budget(void *own, uint32_t heap, uint64_t bytes);

#endif
