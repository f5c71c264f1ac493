/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * contract.h - one suite for every backend: what each must guarantee through quire's public calls
 * and through its own table (quire/backend.h).
 *
 * A backend NAME joins with one file, tests/contract/NAME.c, that defines NAME_subjects, an array
 * of subjects that ends with NULL, and with an entry of contract_backends in
 * tests/contract/meson.build. A *subject* describes how a device is opened. The scenarios query the
 * device for its features and test every memory kind. A subject that returns UNSUPPORTED when it is
 * opened is skipped on this machine, and the reason is printed. tests/contract/host.c is an
 * example.
 */
#ifndef QUIRE_TESTS_CONTRACT_CONTRACT_H
#define QUIRE_TESTS_CONTRACT_CONTRACT_H

#include "quire/quire.h"
#include "quire/backend.h"
#include "tests/support/plain.h"
#include "tests/support/random.h"

typedef struct contract_subject contract_subject;

/* The device and the state that a subject opened. */
typedef struct contract_opened {
    quire_device *device;
    void *own; /* private to the subject, for its other functions */
} contract_opened;

struct contract_subject {
    const char *name;
    const void *options; /* private to the subject, for `open` */

    /*
     * Opens a device that allocates its records from `host`. Returns UNSUPPORTED if the device is
     * unavailable on this machine.
     */
    quire_result (*open)(const contract_subject *subject, const quire_host_memory *host,
                         contract_opened *opened);

    /*
     * Called after the device is closed: checks that nothing is left and releases `own`. May be
     * NULL.
     */
    void (*close)(void *own);

    /*
     * Reads a page as the device sees it, without any mapping. NULL: copy_from_page is used if the
     * backend offers it for the kind.
     */
    bool (*look)(void *own, const quire_native_page *page, uint64_t offset, void *data,
                 uint64_t size);

    /*
     * Makes the backend report this budget of a heap, 0 for none. NULL: the budget cannot be set.
     */
    quire_result (*set_budget)(void *own, uint32_t heap, uint64_t bytes);

    /* Hints. {0} stands for a backend that follows quire/backend.h and uses its heap alone. */
    bool one_thread;   /* follows the rules except the one on several threads */
    bool is_shared;    /* others use the heaps too: the bytes in use change by themselves */
    uint64_t max_fill; /* heaps up to this size are filled completely; 0 means 64 MiB */
};

/* ---- scenarios ------------------------------------------------------------------------------ */

/* A device of the subject, opened for one scenario. */
typedef struct contract_world {
    const contract_subject *subject;
    test_memory host_memory;
    contract_opened opened;
    quire_device *device; /* the one of `opened` */
    quire_device_info info;
    quire_backend_features features;
    const quire_backend *table; /* the backend's table and state, for calls without the core */
    void *state;
} contract_world;

/* A statement that holds for every backend, about the device or about each of its kinds. */
typedef struct contract_scenario {
    const char *name;
    void (*body)(contract_world *w);
    void (*of_kind)(contract_world *w, uint32_t kind);
    bool (*applies)(const contract_world *w); /* NULL means always */
    bool by_core;                             /* the core refuses a backend that violates it */
    bool is_exact; /* not in checked builds, whose red zones take bytes beside each allocation */
} contract_scenario;

/* One array per chapter; each ends with a scenario without a name. */
extern const contract_scenario contract_description[];
extern const contract_scenario contract_pages[];
extern const contract_scenario contract_placement[];
extern const contract_scenario contract_contents[];
extern const contract_scenario contract_copies[];
extern const contract_scenario contract_streams[];
extern const contract_scenario contract_buffers[];
extern const contract_scenario contract_images[];
extern const contract_scenario contract_limits[];
extern const contract_scenario contract_elastic[];
extern const contract_scenario contract_lazy[];
extern const contract_scenario contract_sleep[];
extern const contract_scenario contract_compact[];
extern const contract_scenario contract_compact_random[];
extern const contract_scenario contract_life[];
extern const contract_scenario contract_threads[];

/*
 * Runs every scenario with a subject, or only one of them (NULL means all), as cases of plain.h. A
 * subject that cannot be opened counts as one skipped case.
 */
void contract_run(const contract_subject *subject, const contract_scenario *only);

/* The scenarios of all chapters by number; NULL after the last. */
const contract_scenario *contract_scenario_at(uint32_t index);

/* ---- worlds --------------------------------------------------------------------------------- */

/* Opens a device. For a second one in the same scenario no failure is acceptable. */
quire_result world_open(contract_world *w, const contract_subject *subject);

/* Closes it and checks that all host memory was returned. */
void world_close(contract_world *w);

#endif
