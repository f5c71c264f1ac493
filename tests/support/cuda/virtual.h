/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * virtual.h - addresses of the fake CUDA driver: what is reserved, and what is mapped there.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_VIRTUAL_H
#define QUIRE_TESTS_SUPPORT_CUDA_VIRTUAL_H

#include "tests/support/cuda/span.h"

typedef struct fc_reservation {
    uint64_t base, size;
} fc_reservation;

/* The range lies in one reservation. */
bool fc_is_reserved(uint64_t base, uint64_t size);

/* Adds a message if the driver needs an idle device and work is not done. */
void fc_check_idle(fc_call call);

/* The reservation that the address lies in, or NULL. */
fc_reservation *fc_reservation_at(uint64_t address);

/* Gives back all addresses; nothing is mapped there any more. */
void fc_reservations_end(void);

#endif
