/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * subjects.h - the subjects that suite.c, the test of the suite itself, spoils.
 */
#ifndef QUIRE_TESTS_CONTRACT_SUBJECTS_H
#define QUIRE_TESTS_CONTRACT_SUBJECTS_H

#include "tests/contract/contract.h"

extern const contract_subject subject_host;   /* coherent, and device-only kinds */
extern const contract_subject subject_strict; /* kinds that must be flushed and invalidated */
extern const contract_subject subject_small;  /* heaps of a few MiB, which can be filled */
extern const contract_subject subject_fake;   /* native objects */

extern const contract_subject subject_not_coherent;

extern const contract_subject *const host_subjects[];
extern const contract_subject *const fake_subjects[];

#endif
