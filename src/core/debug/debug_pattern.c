/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * debug_pattern.c - fills, compares and poisons spans of pages (see debug_pattern.h). No lock is
 * held, because filling and comparing call the backend.
 */
#include "src/core/debug/debug_pattern.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/base/bits.h"
#include "src/base/poison.h"
#include "src/base/result.h"
#include "src/base/text.h"
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

/*
 * Compares a span with a byte. Returns false if all bytes are equal, and if they cannot be read.
 * Poisons the span afterwards. `beside_live`: the same atom may hold bytes of the caller that the
 * host wrote and did not flush; that atom is then not invalidated.
 */
static bool differs(quire_memory *memory, qi_page *page, qi_span span, unsigned char byte,
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

static bool edges_differ(quire_memory *memory, qi_page *page, qi_span span, unsigned char byte,
                         bool beside_live, qi_difference *difference)
{
    qi_span edges[2];
    split(span, edges);
    return differs(memory, page, edges[0], byte, beside_live, difference) ||
           differs(memory, page, edges[1], byte, beside_live, difference);
}

/* ---- corruption --------------------------------------------------------------------------- */

/*
 * A slot in quarantine has no live bytes beside its zones. Otherwise the atoms at the edges may
 * hold bytes of the caller (see differs).
 */
bool qi_corruption_find(quire_memory *memory, uint32_t slot, qi_corruption *corruption)
{
    const qi_slot *record = qi_memory_slot(memory, slot);
    qi_page *page = qi_memory_page(memory, slot);
    const qi_watch *watch = &record->watch;
    if (!watch->is_written)
        return false;
    uint64_t offset = record->offset, tail = offset + watch->tail;
    qi_difference *difference = &corruption->difference;
    corruption->place = QI_CORRUPTION_BEFORE;
    if (differs(memory, page, (qi_span){offset - watch->front, offset}, QI_ZONE, !watch->is_held,
                difference))
        return true;
    corruption->place = QI_CORRUPTION_AFTER;
    if (edges_differ(memory, page, (qi_span){tail, offset + watch->end}, QI_ZONE, !watch->is_held,
                     difference))
        return true;
    corruption->place = QI_CORRUPTION_AFTER_FREE;
    return watch->is_held &&
           edges_differ(memory, page, (qi_span){offset, tail}, QI_FREED, false, difference);
}

/* Returns the handle that the caller has, or had before the free: messages name it. */
static uint64_t handle_of(const qi_slots *slots, uint32_t slot)
{
    uint64_t word = qi_atomic_load_acquire_u64(qi_slot_state(slots, slot));
    return qi_handle(slots->tag, qi_slot_generation(word), slot);
}

/* Requires the shard lock, which guards names. */
static void print_allocation(const quire_memory *memory, uint32_t slot, char *text, size_t room)
{
    const qi_slot *record = qi_memory_slot(memory, slot);
    const char *name = record->meta ? record->meta->name : NULL;
    if (record->watch.name)
        name = record->watch.name;
    snprintf(text, room,
             "'%.100s' (%#" PRIx64 ", %" PRIu64 " byte%s at page %u offset %" PRIu64
             ", user data %" PRIu64 ")",
             name ? name : "(unnamed)", handle_of(&memory->slots, slot), record->requested,
             qi_plural(record->requested), record->tally->page->number, record->offset,
             qi_slot_user_data(record));
}

qi_corruption_sentence qi_corruption_describe(quire_memory *memory, uint32_t slot,
                                              const qi_corruption *corruption)
{
    static const char *const WHAT[] = {
        [QI_CORRUPTION_BEFORE] = "overwritten before its first byte",
        [QI_CORRUPTION_AFTER] = "overwritten after its last byte",
        [QI_CORRUPTION_AFTER_FREE] = "written after it was freed",
    };
    char allocation[QI_CORRUPTION_TEXT / 2];
    qi_lock *lock = &qi_shard_of_slot(memory, slot)->lock;
    qi_lock_acquire(lock);
    print_allocation(memory, slot, allocation, sizeof allocation);
    qi_lock_release(lock);
    const qi_difference *found = &corruption->difference;
    int64_t at = (int64_t)(found->at - qi_memory_slot(memory, slot)->offset);
    qi_corruption_sentence sentence;
    snprintf(sentence.text, sizeof sentence.text,
             "memory '%.100s': allocation %s was %s: %" PRIu64 " byte%s, the first at byte %" PRId64
             ", which is 0x%02x",
             memory->name, allocation, WHAT[corruption->place], found->count,
             qi_plural(found->count), at, found->value);
    qi_make_printable(sentence.text);
    return sentence;
}

void qi_corruption_report(const quire_memory *memory, const char *sentence)
{
    const quire_log *log = &memory->device->log;
    if (log->write)
        qi_log(log, QUIRE_LOG_ERROR, "%s", sentence);
    else
        fprintf(stderr, "quire: %s\n", sentence);
}
