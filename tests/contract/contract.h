/*
 * contract.h - one suite for every backend: what each must hold through quire's public calls and
 * through its own table (quire/backend.h).
 *
 * A backend NAME joins with one file, tests/contract/NAME.c, that defines NAME_subjects, an array
 * of subjects that ends with NULL, and with its line among contract_backends in tests/meson.build.
 * A *subject* tells how a device is opened; the scenarios ask the device itself what it is, and go
 * over every memory kind it has. One that answers UNSUPPORTED when it is opened is skipped on this
 * machine, with the reason. tests/contract/host.c is an example.
 */
#ifndef QUIRE_TESTS_CONTRACT_CONTRACT_H
#define QUIRE_TESTS_CONTRACT_CONTRACT_H

#include "quire/quire.h"
#include "quire/backend.h"
#include "tests/support/plain.h"
#include "tests/support/random.h"

typedef struct contract_subject contract_subject;

/* What a subject opened. */
typedef struct contract_opened {
    quire_device *device;
    void *own; /* the subject's own, for its other functions */
} contract_opened;

struct contract_subject {
    const char *name;
    const void *options; /* the subject's own, for `open` */

    /* Opens a device that takes its records from `host`. UNSUPPORTED: not on this machine. */
    quire_result (*open)(const contract_subject *subject, const quire_host_memory *host,
                         contract_opened *opened);

    /* After the device's end: checks that nothing is left and releases `own`. May be NULL. */
    void (*close)(void *own);

    /* Reads a page as the device sees it, past any mapping. NULL: copy_from_page does, where it is
       offered and serves the kind. */
    bool (*look)(void *own, const quire_native_page *page, uint64_t offset, void *data,
                 uint64_t size);

    /* Makes the backend tell this budget of a heap, 0 for none. NULL: it is not for us to set. */
    quire_result (*set_budget)(void *own, uint32_t heap, uint64_t bytes);

    /* Hints; {0} is a backend as quire/backend.h wants it, with a heap to itself. */
    bool one_thread;   /* keeps the rules but for the one of several threads */
    bool is_shared;    /* others use the heaps too: what is in use moves by itself */
    uint64_t max_fill; /* heaps up to this size are filled to the end; 0: 64 MiB */
};

/* ---- scenarios ------------------------------------------------------------------------------ */

/* A device of the subject, opened for one scenario. */
typedef struct contract_world {
    const contract_subject *subject;
    test_memory host_memory;
    contract_opened opened;
    quire_device *device; /* that of `opened` */
    quire_device_info info;
    quire_backend_features features;
    const quire_backend *table; /* its table and state, to be called without the core */
    void *state;
} contract_world;

/* A sentence that holds for every backend: of the device, or of each of its kinds. */
typedef struct contract_scenario {
    const char *name;
    void (*body)(contract_world *w);
    void (*of_kind)(contract_world *w, uint32_t kind);
    bool (*applies)(const contract_world *w); /* NULL: always */
    bool by_core;                             /* the core refuses a backend that does not hold it */
} contract_scenario;

/* By chapter, each ends with a scenario without a name. */
extern const contract_scenario contract_description[];
extern const contract_scenario contract_pages[];
extern const contract_scenario contract_placement[];
extern const contract_scenario contract_contents[];
extern const contract_scenario contract_copies[];
extern const contract_scenario contract_streams[];
extern const contract_scenario contract_buffers[];
extern const contract_scenario contract_images[];
extern const contract_scenario contract_limits[];
extern const contract_scenario contract_growth[];
extern const contract_scenario contract_life[];
extern const contract_scenario contract_threads[];

/*
 * Every scenario with a subject, or only one of them (NULL: all), as cases of plain.h. A subject
 * that cannot be opened is one skip.
 */
void contract_run(const contract_subject *subject, const contract_scenario *only);

/* The scenarios of all chapters by number; NULL behind the last. */
const contract_scenario *contract_scenario_at(uint32_t index);

/* ---- worlds --------------------------------------------------------------------------------- */

/* Opens a device; of a second one in the same scenario nothing may be refused. */
quire_result world_open(contract_world *w, const contract_subject *subject);

/* Ends it, and checks that all host memory came back. */
void world_close(contract_world *w);

#endif
