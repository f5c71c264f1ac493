/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * environment.c - the fake CUDA driver as a library that programs load. Its options come from the
 * environment until fc_reset is called. Lists are separated by commas.
 *
 *   QUIRE_FAKE_CUDA_MODELS    names of models, one device each; "none": no device; unset: "h200"
 *   QUIRE_FAKE_CUDA_FLAGS     late, dirty, crashes-at-node, quiet (no messages on stderr), peers
 *                             (all devices are peers)
 *   QUIRE_FAKE_CUDA_VERSION   version of the driver, such as 11020
 *   QUIRE_FAKE_CUDA_FAIL      "function 3": its third call fails; "function 3+": that call and all
 *                             later ones; "* 3": the third call of all that can fail. A code may
 *                             follow: "cuMemCreate 1 2"
 *   QUIRE_FAKE_CUDA_HIDE      functions that the driver lacks
 *   QUIRE_FAKE_CUDA_SLOW      "function microseconds", or "* 1" for the delays of an A100
 *   QUIRE_FAKE_CUDA_REPORT    a file that receives calls, peaks, live objects and messages when the
 *                             process ends or the library is closed
 *
 * An invalid value ends the program, so that no test runs with other options than it requests.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cuda/driver.h"
#include "tests/support/settings.h"

static pid_t process; /* the process that opened the library: its forks write no report */

static _Noreturn void refuse(const char *name, const char *value)
{
    settings_refuse("fake cuda", name, value);
}

static void each_part(const char *name, void (*take)(const char *part, void *state), void *state)
{
    settings_each("fake cuda", name, take, state);
}

static void take_model(const char *part, void *state)
{
    fc_options *options = state;
    uint32_t at = 0;
    if (!strcmp(part, "none")) {
        options->no_devices = true;
        return;
    }
    while (at < FC_MAX_DEVICES && options->models[at])
        at++;
    if (at == FC_MAX_DEVICES || !fc_model_named(part))
        refuse("QUIRE_FAKE_CUDA_MODELS", part);
    options->models[at] = fc_model_named(part);
}

static void take_flag(const char *part, void *state)
{
    fc_options *options = state;
    static const struct {
        const char *name;
        uint32_t flag;
    } FLAGS[] = {
        {"late", FC_LATE},
        {"dirty", FC_DIRTY},
        {"crashes-at-node", FC_CRASHES_AT_NODE},
    };
    if (!strcmp(part, "quiet")) {
        options->flags &= ~FC_PRINT;
        return;
    }
    if (!strcmp(part, "peers")) {
        for (uint32_t i = 0; i < FC_MAX_DEVICES; i++)
            options->peers[i] = UINT32_MAX;
        return;
    }
    for (size_t i = 0; i < sizeof FLAGS / sizeof *FLAGS; i++)
        if (!strcmp(FLAGS[i].name, part)) {
            options->flags |= FLAGS[i].flag;
            return;
        }
    refuse("QUIRE_FAKE_CUDA_FLAGS", part);
}

static void take_hidden(const char *part, void *state)
{
    (void)state;
    if (!fc_hide(part))
        refuse("QUIRE_FAKE_CUDA_HIDE", part);
}

static void take_fault(const char *value)
{
    char function[FC_NAME_SIZE], plus = 0;
    unsigned long long call;
    unsigned code = 0;
    int fields = sscanf(value, "%63s %llu%c %u", function, &call, &plus, &code);
    fc_fault fault = {.function = strcmp(function, "*") ? function : NULL,
                      .call = call,
                      .from_then = plus == '+',
                      .result = code};
    if (fields < 2 || !call || (plus && plus != '+' && plus != ' ') || !fc_fail(&fault))
        refuse("QUIRE_FAKE_CUDA_FAIL", value);
}

static void take_slowness(const char *value)
{
    char function[FC_NAME_SIZE];
    unsigned microseconds;
    if (sscanf(value, "%63s %u", function, &microseconds) != 2)
        refuse("QUIRE_FAKE_CUDA_SLOW", value);
    fc_slow(strcmp(function, "*") ? function : NULL, microseconds);
}

/* Returns 0 if the variable is not set. */
static unsigned long number_of(const char *name, unsigned long most)
{
    const char *value = getenv(name);
    char *end;
    if (!value)
        return 0;
    unsigned long number = strtoul(value, &end, 10);
    if (*end || end == value || !number || number > most)
        refuse(name, value);
    return number;
}

static void start(void)
{
    fc_options options = {.flags = FC_PRINT};
    each_part("QUIRE_FAKE_CUDA_MODELS", take_model, &options);
    each_part("QUIRE_FAKE_CUDA_FLAGS", take_flag, &options);
    options.version = (int)number_of("QUIRE_FAKE_CUDA_VERSION", 99990);
    fc_reset(&options);
    each_part("QUIRE_FAKE_CUDA_HIDE", take_hidden, NULL);
    if (getenv("QUIRE_FAKE_CUDA_FAIL"))
        take_fault(getenv("QUIRE_FAKE_CUDA_FAIL"));
    if (getenv("QUIRE_FAKE_CUDA_SLOW"))
        take_slowness(getenv("QUIRE_FAKE_CUDA_SLOW"));
}

__attribute__((constructor)) static void begin(void)
{
    process = getpid();
    fc_starter = start;
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("QUIRE_FAKE_CUDA_REPORT");
    FILE *file = path && process == getpid() ? fopen(path, "w") : NULL;
    if (file) {
        fc_report(file);
        fclose(file);
    }
    fc_reset(NULL); /* its leaks are not leaks of the program */
}
