/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fixture.h - the fake CUDA driver with a current context, for tests of the fake itself. Its
 * functions are found through its own cuGetProcAddress.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_FIXTURE_H
#define QUIRE_TESTS_SUPPORT_CUDA_FIXTURE_H

#include "tests/support/check.h"
#include "tests/support/cuda/fake_cuda.h"

/* cu.MemCreate and so on; NULL if the driver lacks the function. */
typedef struct fc_functions {
#define FC_MEMBER(name, suffix, version, presence, parameters) qi_cu_fn_##name name;
    QI_CU_FUNCTIONS(FC_MEMBER) FAKE_CUDA_MORE_FUNCTIONS(FC_MEMBER)
#undef FC_MEMBER
} fc_functions;

extern fc_functions cu;

/* Finds all functions without initialising the driver. */
void fc_fixture_load(const fc_options *options);

/* The same, and initialises the driver and makes the primary context of device 0 current. NULL
   means one "h200". */
qi_cu_context fc_fixture_open(const fc_options *options);

/* Closes the driver. Fails if there was a message or if an object is still alive. */
void fc_fixture_close(void);

/* Expects exactly one message, which contains the part, and removes it. */
void fc_fixture_expect(const char *part);

/* The call must succeed; or it must return exactly this code, written without QI_CUDA_ERROR_. */
#define CHECK_CU(call) fc_fixture_check(__FILE__, __LINE__, #call, (call), QI_CUDA_SUCCESS)
#define CHECK_CODE(call, code)                                                                     \
    fc_fixture_check(__FILE__, __LINE__, #call, (call), QI_CUDA_ERROR_##code)

void fc_fixture_check(const char *file, int line, const char *call, qi_cu_result actual,
                      qi_cu_result expected);

#define FC_MIB (UINT64_C(1) << 20)
#define FC_PIECE (2 * FC_MIB) /* the granularity of most models */

qi_cu_allocation_prop fc_on_device(int device);
qi_cu_access_desc fc_for_device(int device, qi_cu_access_flags flags);

/* Creates memory of device 0, reserves addresses, and maps memory at new addresses. Each must
   succeed. */
qi_cu_handle fc_make(uint64_t size);
qi_cu_ptr fc_reserve(uint64_t size);
qi_cu_ptr fc_mapped(uint64_t size, qi_cu_handle *handle);

/* Unmaps, frees the addresses, and releases the handle unless it is 0. */
void fc_unmapped(qi_cu_ptr pointer, uint64_t size, qi_cu_handle handle);

/* Writes a number to device memory and reads it back, with copies that must succeed. */
void fc_write(qi_cu_ptr to, uint64_t value);
uint64_t fc_read(qi_cu_ptr from);

#endif
