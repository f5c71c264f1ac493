/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * wrap.h - a backend that wraps another one: every function forwards to the device of a subject,
 * except those that the wrapping backend replaces. The result is a subject again.
 */
#ifndef QUIRE_TESTS_CONTRACT_WRAP_H
#define QUIRE_TESTS_CONTRACT_WRAP_H

#include "tests/contract/contract.h"

/* First member of the wrapping backend's state, so that one pointer serves both. */
typedef struct contract_wrap {
    quire_backend table; /* entries may be replaced between wrap_begin and wrap_finish */
    const contract_subject *inner;
    contract_opened opened; /* the inner device; it creates no page itself */
    quire_device_info info;
    const quire_backend *base; /* the inner table, and the state for it */
    void *state;
} contract_wrap;

/* Opens the inner device and fills in the table. Returns the errors of the subject. */
quire_result wrap_begin(contract_wrap *w, const contract_subject *inner,
                        const quire_host_memory *host);

/* Creates the device. Closes the inner one on failure. */
quire_result wrap_finish(contract_wrap *w, const quire_host_memory *host, contract_opened *opened);

/* The functions of the table: they forward to the inner backend. */
quire_result wrap_describe(void *state, quire_device_info *info);
void wrap_destroy(void *state); /* closes the inner device */
quire_result wrap_page_back(void *state, const quire_native_page *page, const quire_span *spans,
                            uint32_t count);
void wrap_page_unback(void *state, const quire_native_page *page, const quire_span *spans,
                      uint32_t count, bool moves);
quire_result wrap_copy_pages(void *state, const quire_copy_job *job);
quire_result wrap_stream_copy(void *state, uint64_t stream, const quire_copy_job *job);

/* Checks and releases the rest of the inner subject after the device was closed. */
void wrap_close(contract_wrap *w);

#endif
