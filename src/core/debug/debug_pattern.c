/*
 * debug_pattern.c - fills, compares and poisons spans of pages (see debug_pattern.h). No lock is
 * held, because filling and comparing call the backend.
 */
#include "src/core/debug/debug_pattern.h"

#include <string.h>

#include "src/base/bits.h"
#include "src/base/poison.h"
#include "src/base/result.h"
#include "src/core/page/map.h"

/* Bytes of one copy by the backend; the buffer lies on the stack. */
enum { CHUNK = 8 * 1024 };

/*
 * 1 GiB. Larger pages stay unpoisoned: the tools keep at least one byte for every eight, and would
 * need gigabytes for elastic pages, which are mostly address space.
 */
static const uint64_t MAX_POISONED = UINT64_C(1) << 30;

/* ---- poison ------------------------------------------------------------------------------- */

static unsigned char *host_at(const qi_page *page, uint64_t offset)
{
    return (unsigned char *)page->native.host + offset;
}

static bool can_be_poisoned(const qi_page *page)
{
    return !page->native.on_demand && page->native.host && page->native.native.size <= MAX_POISONED;
}

void qi_debug_pattern_unpoison(const qi_page *page, qi_span span)
{
    if (can_be_poisoned(page))
        qi_unpoison(host_at(page, span.begin), span.end - span.begin);
}

void qi_debug_pattern_poison(const qi_page *page, qi_span span)
{
    if (can_be_poisoned(page))
        qi_poison(host_at(page, span.begin), span.end - span.begin);
}

/* ---- filling ------------------------------------------------------------------------------ */

static bool is_coherent(const quire_memory *memory)
{
    return (memory->flags & QUIRE_HOST_COHERENT) != 0;
}

/* Rounds outwards to atoms, which stays inside the range: ranges consist of whole atoms. */
static quire_result flush(quire_memory *memory, const qi_page *page, qi_span span)
{
    if (is_coherent(memory))
        return QUIRE_SUCCESS;
    uint64_t start = qi_align_down(span.begin, memory->atom);
    uint64_t end = span.end + qi_padding(span.end, memory->atom);
    return qi_device_flush(memory->device, &memory->calls, &page->native, start, end - start);
}

static bool is_mappable(const quire_memory *memory)
{
    return (memory->flags & QUIRE_HOST_VISIBLE) != 0;
}

static quire_result set_mapped(quire_memory *memory, qi_page *page, qi_span span,
                               unsigned char byte)
{
    char *host;
    quire_result result = qi_page_map_begin(memory, page, &host);
    if (result)
        return result;
    qi_debug_pattern_unpoison(page, span);
    memset(host + span.begin, byte, span.end - span.begin);
    result = flush(memory, page, span);
    qi_page_map_end(memory, page);
    return result;
}

static quire_result copy_in(quire_memory *memory, const qi_page *page, qi_span span,
                            unsigned char byte)
{
    unsigned char chunk[CHUNK];
    memset(chunk, byte, sizeof chunk);
    quire_result result = QUIRE_SUCCESS;
    for (uint64_t at = span.begin; at < span.end && !result; at += CHUNK) {
        uint64_t left = span.end - at;
        result = qi_device_copy_to_page(memory->device, &memory->calls, &page->native, at, chunk,
                                        left < CHUNK ? left : CHUNK);
    }
    return result;
}

bool qi_debug_pattern_put(quire_memory *memory, qi_page *page, qi_span span, unsigned char byte)
{
    if (span.begin == span.end)
        return true;
    qi_error before;
    qi_error_save(&before);
    quire_result result = is_mappable(memory) ? set_mapped(memory, page, span, byte)
                                              : copy_in(memory, page, span, byte);
    if (result)
        qi_error_restore(&before);
    return !result;
}

/* ---- comparing ---------------------------------------------------------------------------- */

/* Counts the bytes that differ, and stores the first one. `at` is the position of bytes[0]. */
static void compare(const unsigned char *bytes, uint64_t size, uint64_t at, unsigned char byte,
                    qi_difference *difference)
{
    if (bytes[0] == byte && !memcmp(bytes, bytes + 1, size - 1)) /* every byte equals the next */
        return;
    for (uint64_t i = 0; i < size; i++) {
        if (bytes[i] == byte)
            continue;
        if (!difference->count++) {
            difference->at = at + i;
            difference->value = bytes[i];
        }
    }
}

/* Rounds outwards to atoms. Beside live bytes, a first atom that is shared is excluded. */
static quire_result invalidate(quire_memory *memory, const qi_page *page, qi_span span,
                               bool beside_live)
{
    if (is_coherent(memory))
        return QUIRE_SUCCESS;
    uint64_t before = beside_live ? 0 : span.begin % memory->atom;
    uint64_t start = span.begin - before, end = span.end;
    start += qi_padding(start, memory->atom);
    end += qi_padding(end, memory->atom);
    if (start == end)
        return QUIRE_SUCCESS;
    return qi_device_invalidate(memory->device, &memory->calls, &page->native, start, end - start);
}

static quire_result compare_mapped(quire_memory *memory, qi_page *page, qi_span span,
                                   unsigned char byte, bool beside_live, qi_difference *difference)
{
    char *host;
    quire_result result = qi_page_map_begin(memory, page, &host);
    if (result)
        return result;
    result = invalidate(memory, page, span, beside_live);
    qi_debug_pattern_unpoison(page, span);
    if (!result)
        compare((unsigned char *)host + span.begin, span.end - span.begin, span.begin, byte,
                difference);
    qi_debug_pattern_poison(page, span);
    qi_page_map_end(memory, page);
    return result;
}

static quire_result compare_copy(quire_memory *memory, const qi_page *page, qi_span span,
                                 unsigned char byte, qi_difference *difference)
{
    unsigned char chunk[CHUNK];
    quire_result result = QUIRE_SUCCESS;
    for (uint64_t at = span.begin; at < span.end && !result; at += CHUNK) {
        uint64_t size = span.end - at < CHUNK ? span.end - at : CHUNK;
        result = qi_device_copy_from_page(memory->device, &memory->calls, &page->native, at, chunk,
                                          size);
        if (!result)
            compare(chunk, size, at, byte, difference);
    }
    return result;
}

bool qi_debug_pattern_differs(quire_memory *memory, qi_page *page, qi_span span, unsigned char byte,
                              bool beside_live, qi_difference *difference)
{
    *difference = (qi_difference){0};
    if (span.begin == span.end)
        return false;
    qi_error before;
    qi_error_save(&before);
    quire_result result = is_mappable(memory)
                              ? compare_mapped(memory, page, span, byte, beside_live, difference)
                              : compare_copy(memory, page, span, byte, difference);
    if (result)
        qi_error_restore(&before);
    return difference->count != 0;
}

/* ---- edges -------------------------------------------------------------------------------- */

/* The two edges of a span. Of a short span the first edge is all and the second is empty. */
static void split(qi_span whole, qi_span edges[2])
{
    edges[0] = whole;
    edges[1] = (qi_span){whole.end, whole.end};
    if (whole.end - whole.begin <= 2 * QI_DEBUG_PATTERN_EDGE)
        return;
    edges[0].end = whole.begin + QI_DEBUG_PATTERN_EDGE;
    edges[1].begin = whole.end - QI_DEBUG_PATTERN_EDGE;
}

bool qi_debug_pattern_put_edges(quire_memory *memory, qi_page *page, qi_span span,
                                unsigned char byte)
{
    qi_span edges[2];
    split(span, edges);
    return qi_debug_pattern_put(memory, page, edges[0], byte) &&
           qi_debug_pattern_put(memory, page, edges[1], byte);
}

bool qi_debug_pattern_edges_differ(quire_memory *memory, qi_page *page, qi_span span,
                                   unsigned char byte, bool beside_live, qi_difference *difference)
{
    qi_span edges[2];
    split(span, edges);
    return qi_debug_pattern_differs(memory, page, edges[0], byte, beside_live, difference) ||
           qi_debug_pattern_differs(memory, page, edges[1], byte, beside_live, difference);
}
