/*
 * stubs.c - the functions of quire/plugin.h in a build without the backend. They zero their outputs
 * and fail with UNSUPPORTED.
 */
#include "quire/plugin.h"
#include "src/base/result.h"
#include "src/base/stub.h"

static quire_result refuse(void)
{
    return qi_fail(QUIRE_ERROR_UNSUPPORTED, "this build of quire has no plugin backend");
}

quire_result quire_plugin_open(const quire_plugin_options *options, quire_device **device)
{
    UNUSED(options);
    CLEAR(device, NULL);
    return refuse();
}

quire_result quire_plugin_get_info(quire_device *device, quire_plugin_info *info)
{
    UNUSED(device);
    CLEAR(info, (quire_plugin_info){0});
    return refuse();
}

const char *quire_plugin_function_name(uint32_t bit)
{
    UNUSED(bit);
    return NULL;
}

quire_result quire_plugin_get_policy(quire_device *device, quire_paddle_strategy strategy,
                                     quire_page_policy *policy)
{
    UNUSED(device);
    UNUSED(strategy);
    CLEAR(policy, (quire_page_policy){0});
    return refuse();
}

quire_result quire_plugin_stream_wrap(quire_device *device, void *plugin_stream, const char *name,
                                      quire_stream **stream)
{
    UNUSED(device);
    UNUSED(plugin_stream);
    UNUSED(name);
    CLEAR(stream, NULL);
    return refuse();
}

quire_result quire_plugin_get_stream(quire_stream *stream, void **plugin_stream)
{
    UNUSED(stream);
    CLEAR(plugin_stream, NULL);
    return refuse();
}
