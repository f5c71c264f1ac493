/*
 * strict.h - a subject whose host-visible kinds that are not coherent are not: what the host maps
 * is a copy of the page, which flush and invalidate bring together with it, and nothing else does.
 * It makes a forgotten, a too short and a too wide flush visible on a backend whose memory is
 * coherent.
 */
#ifndef QUIRE_TESTS_CONTRACT_STRICT_H
#define QUIRE_TESTS_CONTRACT_STRICT_H

#include "tests/contract/contract.h"

/* For a subject whose `options` are the subject to wrap: one that copies to and from every kind. */
quire_result strict_open(const contract_subject *subject, const quire_host_memory *host,
                         contract_opened *opened);
void strict_close(void *own);
quire_result strict_set_budget(void *own, uint32_t heap, uint64_t bytes);

#endif
