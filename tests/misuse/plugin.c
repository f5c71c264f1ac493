/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * plugin.c - every function of quire/plugin.h with nulls, unknown values and devices of
 * another backend: the documented code, a sentence, zeroed outputs, nothing changed. No plugin is
 * needed: what is wrong with plugins is in tests/unit/backends/plugin/plugin_open.c.
 */
#include <stdio.h>

#include "quire/plugin.h"
#include "tests/misuse/misuse.h"
#include "tests/support/state.h"

static bench b;

static void begin(void)
{
    bench_begin(&b, true);
    CHECK(bench_open(&b));
    refusal_begin(&b);
}

static void refuses(quire_result code, quire_plugin_options options)
{
    quire_device *device;
    REFUSE_OUT(code, device, quire_plugin_open(&options, &device));
}

static void opening(void)
{
    quire_device *device;
    begin();
    REFUSE(INVALID, quire_plugin_open(NULL, NULL));
    REFUSE(INVALID, quire_plugin_open(&(quire_plugin_options){.path = "p.so"}, NULL));
    REFUSE_OUT(INVALID, device, quire_plugin_open(NULL, &device));
    refuses(INVALID, (quire_plugin_options){.path = NULL});
    refuses(INVALID, (quire_plugin_options){.path = ""});
    refuses(INVALID, (quire_plugin_options){.path = "p.so", .alignment = 3});
    refuses(INVALID, (quire_plugin_options){.path = "p.so", .alignment = UINT64_MAX});
    for (int i = 0; i < 4; i++) {
        quire_plugin_options own = {.path = "p.so"}, core = {.path = "libc.so.6"};
        own.unused[i] = 1;
        refuses(INVALID, own);
        core.device_options.unused[i] = 1;
        refuses(UNSUPPORTED, core); /* the file is checked first */
    }
    refuses(UNSUPPORTED, (quire_plugin_options){.path = "/nonexistent/plugin.so"});
    CHECK_HAS(quire_last_error(), "the plugin cannot be loaded");
    refuses(UNSUPPORTED, (quire_plugin_options){.path = "libc.so.6"});
    CHECK_HAS(quire_last_error(), "libc.so.6 has no InitPlugin");
    bench_end(&b);
}

static void asking(void)
{
    quire_plugin_info info;
    quire_page_policy policy;
    begin();
    REFUSE_OUT(INVALID, info, quire_plugin_get_info(NULL, &info));
    REFUSE_OUT(INVALID, info, quire_plugin_get_info(b.device, &info));
    REFUSE(INVALID, quire_plugin_get_info(b.device, NULL));
    REFUSE_OUT(INVALID, policy, quire_plugin_get_policy(NULL, QUIRE_PADDLE_AUTO_GROWTH, &policy));
    REFUSE_OUT(INVALID, policy,
               quire_plugin_get_policy(b.device, QUIRE_PADDLE_AUTO_GROWTH, &policy));
    REFUSE_OUT(INVALID, policy,
               quire_plugin_get_policy(b.device, (quire_paddle_strategy)7, &policy));
    REFUSE(INVALID, quire_plugin_get_policy(b.device, QUIRE_PADDLE_AUTO_GROWTH, NULL));
    HARMLESS(&b, CHECK(!quire_plugin_function_name(UINT32_MAX)));
    bench_end(&b);
}

static void streams(void)
{
    quire_stream *stream, *held = NULL;
    void *plugin_stream;
    int something;
    begin();
    REFUSE_OUT(INVALID, stream, quire_plugin_stream_wrap(NULL, &something, NULL, &stream));
    REFUSE_OUT(INVALID, stream, quire_plugin_stream_wrap(b.device, &something, "s", &stream));
    REFUSE_OUT(INVALID, stream, quire_plugin_stream_wrap(b.device, NULL, "s", &stream));
    REFUSE(INVALID, quire_plugin_stream_wrap(b.device, &something, "s", NULL));
    REFUSE_OUT(INVALID, plugin_stream, quire_plugin_get_stream(NULL, &plugin_stream));
    CHECK_OK(quire_stream_create(b.device, &(quire_stream_options){.capture = true}, &held));
    refusal_begin(&b);
    REFUSE_OUT(INVALID, plugin_stream, quire_plugin_get_stream(held, &plugin_stream));
    REFUSE(INVALID, quire_plugin_get_stream(held, NULL));
    CHECK_OK(quire_stream_destroy(&held));
    bench_end(&b);
}

/* ---- the area ------------------------------------------------------------------------------- */

static const misuse_case cases[] = {
    {"opening", opening},
    {"asking", asking},
    {"streams", streams},
    {NULL, NULL},
};

static const char *const headers[] = {"plugin.h", NULL};

const misuse_area misuse_plugin = {"plugin", NULL, NULL, cases, headers};
