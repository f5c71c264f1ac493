/*
 * wrap.h - a backend made of another one: every function goes on to that of a subject's device,
 * but for those that the wrapping backend replaces. It becomes a subject again.
 */
#ifndef QUIRE_TESTS_CONTRACT_WRAP_H
#define QUIRE_TESTS_CONTRACT_WRAP_H

#include "tests/contract/contract.h"

/* First member of the wrapping backend's state, so that one pointer serves both. */
typedef struct contract_wrap {
    quire_backend table; /* entries may be replaced between wrap_begin and wrap_finish */
    const contract_subject *inner;
    contract_opened opened; /* the inner device: it makes no page of its own */
    quire_device_info info;
    const quire_backend *base; /* the inner table, and the state for it */
    void *state;
} contract_wrap;

/* Opens the inner device and fills in the table. Errors as the subject's. */
quire_result wrap_begin(contract_wrap *w, const contract_subject *inner,
                        const quire_host_memory *host);

/* Makes the device. On failure the inner one is ended. */
quire_result wrap_finish(contract_wrap *w, const quire_host_memory *host, contract_opened *opened);

/* What the table has: on to the inner backend. */
quire_result wrap_describe(void *state, quire_device_info *info);
void wrap_destroy(void *state); /* ends the inner device */
quire_result wrap_page_resize(void *state, const quire_native_page *page, uint64_t from,
                              uint64_t to);
quire_result wrap_copy_pages(void *state, const quire_copy_job *job);
quire_result wrap_stream_copy(void *state, uint64_t stream, const quire_copy_job *job);

/* What remains of the inner subject after the device's end. */
void wrap_close(contract_wrap *w);

#endif
