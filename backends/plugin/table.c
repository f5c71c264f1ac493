/*
 * table.c - the backend's table, made for each plugin: it announces what the plugin's functions can
 * do, so that the core does without the rest in the way it does with every backend.
 */
#include "backends/plugin/plugin.h"

static void add_copies(const qi_pd_interface *f, quire_backend *t)
{
    if (qi_plugin_can_copy(f, QI_PLUGIN_H2D)) {
        t->features |= QUIRE_BACKEND_COPY_TO_PAGE;
        t->copy_to_page = qi_plugin_copy_to_page;
    }
    if (qi_plugin_can_copy(f, QI_PLUGIN_D2H)) {
        t->features |= QUIRE_BACKEND_COPY_FROM_PAGE;
        t->copy_from_page = qi_plugin_copy_from_page;
    }
    if (qi_plugin_can_copy(f, QI_PLUGIN_D2D)) {
        t->features |= QUIRE_BACKEND_COPY_PAGES;
        t->copy_pages = qi_plugin_copy_pages;
    }
    if (qi_plugin_can_copy(f, QI_PLUGIN_P2P)) {
        t->features |= QUIRE_BACKEND_COPY_PEER;
        t->copy_peer = qi_plugin_copy_pages;
    }
    if (f->device_memory_set) {
        t->features |= QUIRE_BACKEND_FILL;
        t->fill_page = qi_plugin_fill_page;
    }
}

static void add_streams(const qi_pd_interface *f, quire_backend *t)
{
    if (!qi_plugin_has_streams(f))
        return;
    t->features |= QUIRE_BACKEND_STREAMS;
    t->stream_create = qi_plugin_stream_create;
    t->stream_destroy = qi_plugin_stream_destroy;
    t->stream_mark = qi_plugin_stream_mark;
    t->stream_passed = qi_plugin_stream_passed;
    t->stream_await = qi_plugin_stream_await;
    if (qi_plugin_has_order(f)) {
        t->features |= QUIRE_BACKEND_STREAM_ORDER;
        t->stream_order = qi_plugin_stream_order;
    }
    if (f->async_memory_copy_h2d || f->async_memory_copy_d2h || f->async_memory_copy_d2d ||
        f->async_memory_copy_p2p) {
        t->features |= QUIRE_BACKEND_STREAM_COPY;
        t->stream_copy = qi_plugin_stream_copy;
    }
}

void qi_plugin_fill_table(const qi_pd_interface *f, quire_backend *table)
{
    *table = (quire_backend){
        .size = sizeof *table,
        .name = "plugin",
        .features = QUIRE_BACKEND_IMAGES | QUIRE_BACKEND_FORK,
        .image_requirements = qi_plugin_image_requirements,
        .describe = qi_plugin_describe,
        .page_create = qi_plugin_page_create,
        .page_destroy = qi_plugin_page_destroy,
        .destroy = qi_plugin_end,
        .fork_prepare = qi_plugin_fork_prepare,
        .fork_done = qi_plugin_fork_done,
        .fork_child = qi_plugin_fork_child,
    };
    if ((f->host_memory_allocate && f->host_memory_deallocate) ||
        (f->unified_memory_allocate && f->unified_memory_deallocate)) {
        table->features |= QUIRE_BACKEND_MAP;
        table->map = qi_plugin_page_map;
        table->unmap = qi_plugin_page_unmap;
    }
    if (f->device_memory_stats) {
        table->features |= QUIRE_BACKEND_BUDGET;
        table->heap_budget = qi_plugin_heap_budget;
    }
    add_copies(f, table);
    add_streams(f, table);
}
