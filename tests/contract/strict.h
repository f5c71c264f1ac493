/*
 * strict.h - a subject whose non-coherent host-visible kinds really are incoherent: the host maps a
 * copy of the page, and only flush and invalidate synchronize the two. It reveals a missing flush,
 * one that is too short and one that is too wide on a backend whose memory is coherent.
 */
#ifndef QUIRE_TESTS_CONTRACT_STRICT_H
#define QUIRE_TESTS_CONTRACT_STRICT_H

#include "tests/contract/contract.h"

/* For a subject whose `options` are the subject to wrap, which must copy to and from every kind. */
quire_result strict_open(const contract_subject *subject, const quire_host_memory *host,
                         contract_opened *opened);
void strict_close(void *own);
quire_result strict_set_budget(void *own, uint32_t heap, uint64_t bytes);

#endif
