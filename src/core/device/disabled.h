/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * disabled.h - refuses calls on a device that did not survive a fork.
 *
 * A header of its own, because code below the record of a device (src/core/slot) refuses the
 * handles of such a device with the same sentence. It owns no data and needs no lock.
 */
#ifndef QUIRE_SRC_CORE_DEVICE_DISABLED_H
#define QUIRE_SRC_CORE_DEVICE_DISABLED_H

#include "quire/base.h"

#define QI_DISABLED_SENTENCE                                                                       \
    "the device was opened before a fork and does not survive it: in the child it can only be "    \
    "destroyed"

/* Fails with NOT_PERMITTED: for a call on a disabled device. */
quire_result qi_refuse_disabled(void);

#endif
