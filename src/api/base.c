/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * base.c - the public functions of quire/base.h: the version, names and sentences of results, and
 * the thread's last error. No function requires a lock.
 */
#include "quire/base.h"

#include "src/base/result.h"

#define STRINGIFY_(x) #x
#define STRINGIFY(x) STRINGIFY_(x)

const char *quire_version(void)
{
    return STRINGIFY(QUIRE_VERSION_MAJOR) "." STRINGIFY(QUIRE_VERSION_MINOR) "." STRINGIFY(
        QUIRE_VERSION_PATCH);
}

const char *quire_result_name(quire_result result)
{
    switch (result) {
#define RESULT_NAME(name, value, sentence)                                                         \
    case name:                                                                                     \
        return #name;
        QUIRE_RESULTS(RESULT_NAME)
#undef RESULT_NAME
    }
    return "unknown result";
}

const char *quire_result_sentence(quire_result result)
{
    switch (result) {
#define RESULT_SENTENCE(name, value, sentence)                                                     \
    case name:                                                                                     \
        return sentence;
        QUIRE_RESULTS(RESULT_SENTENCE)
#undef RESULT_SENTENCE
    }
    return "unknown result";
}

const char *quire_last_error(void)
{
    return qi_error_sentence();
}

quire_result quire_last_result(void)
{
    return qi_error_result();
}

int64_t quire_last_native_code(void)
{
    return qi_error_native_code();
}
