/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * options.c - fills what the program leaves 0 from QUIRE_OPTIONS, checks the options, and resolves
 * them to fields of the memory's record before any host memory is allocated.
 */
#include "src/core/memory/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/bits.h"
#include "src/base/member.h"
#include "src/base/result.h"
#include "src/base/system.h"
#include "src/core/device/policy.h"

/* ---- the user's options ------------------------------------------------------------------- */

enum { MAX_WORD = 127 };
static const char SEPARATORS[] = " \t\n,";

static void warn_of_key(const quire_device *device, const char *key)
{
    char keys[768];
    size_t length = 0;
    for (size_t i = 0; i < QI_MEMBER_COUNT; i++)
        length += (size_t)snprintf(keys + length, sizeof keys - length, "%s%s", i ? ", " : "",
                                   qi_members[i].key);
    qi_log(&device->log, QUIRE_LOG_WARNING,
           "QUIRE_OPTIONS: '%s' is no option of a memory; the options are %s", key, keys);
}

/* Parses "key=value", or "key" for a flag that is true. Changes the word. */
static void read_word(quire_device *device, char *word)
{
    char *value = strchr(word, '=');
    if (value)
        *value++ = '\0';
    const qi_member *m = qi_member_find(word, strlen(word));
    uint64_t number = 1;
    if (!m)
        warn_of_key(device, word);
    else if (value ? !qi_member_parse(m, value, &number) : m->type != QI_MEMBER_FLAG)
        qi_log(&device->log, QUIRE_LOG_WARNING, "QUIRE_OPTIONS: %s takes %s, not '%s'", m->key,
               qi_member_wanted(m).text, value ? value : "");
    else
        qi_member_set(m, &device->user_options, number);
}

void qi_user_options_read(quire_device *device)
{
    const char *text = secure_getenv("QUIRE_OPTIONS");
    if (!text)
        return;
    for (text += strspn(text, SEPARATORS); *text; text += strspn(text, SEPARATORS)) {
        char word[MAX_WORD + 1];
        size_t length = strcspn(text, SEPARATORS);
        snprintf(word, sizeof word, "%.*s", (int)(length < MAX_WORD ? length : MAX_WORD), text);
        read_word(device, word);
        text += length;
    }
}

bool qi_user_options_fill(const quire_device *device, quire_memory_options *options)
{
    bool is_any = false;
    for (const qi_member *m = qi_members; m < qi_members + QI_MEMBER_COUNT; m++) {
        uint64_t value = qi_member_get(m, &device->user_options);
        if (!value || qi_member_get(m, options))
            continue;
        qi_member_set(m, options, value);
        is_any = true;
    }
    return is_any;
}

/* ---- checks and defaults ------------------------------------------------------------------ */

static const uint64_t DEFAULT_MAX_ALIGNMENT = UINT64_C(2) << 20;
enum { ADDRESSES_PER_BYTE = 4 }; /* so that a page with holes has stretches for large requests */

/* An elastic memory has one page, whose chunks have one size. */
static quire_result check_elastic(const quire_memory_options *options)
{
    const quire_page_policy *pages = &options->pages;
    if (options->address_space && !options->elastic)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_memory_options.address_space is set, and elastic is not");
    if (!options->elastic)
        return QUIRE_SUCCESS;
    if (options->shards > 1)
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                            "%u shard%s: an elastic memory has one page, which cannot be shared "
                            "out",
                            options->shards);
    if (options->fit.algorithm != QUIRE_FIT_SEGREGATED)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "an elastic memory: the fit %s knows no holes",
                            options->fit.algorithm <= QUIRE_FIT_LINEAR
                                ? qi_fit_words[options->fit.algorithm]
                                : "that is requested");
    if (pages->first_page_size || pages->growth_percent || pages->max_page || pages->growth ||
        pages->request_factor || pages->page_granularity || pages->classes[0].max_request)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "an elastic memory has one page: its policy has a size of chunks "
                       "(page_size) and no sizes of pages");
    if (pages->page_size && !qi_is_power_of_two(pages->page_size))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "a chunk of %u byte%s: that must be a power of two", pages->page_size);
    return QUIRE_SUCCESS;
}

static quire_result check_shards(const quire_memory_options *options)
{
    if (options->shards > QI_MAX_SHARDS)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "%u shard%s: most %u are allowed",
                            options->shards, QI_MAX_SHARDS);
    quire_result result = check_elastic(options);
    if (result)
        return result;
    if (options->shards > 1 && options->fit.algorithm == QUIRE_FIT_LINEAR)
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                            "%u shard%s: the linear fit works in one page, which cannot be shared "
                            "out",
                            options->shards);
    return QUIRE_SUCCESS;
}

/* Checks what does not depend on the device. */
static quire_result check_options(const quire_memory_options *options)
{
    quire_result result = check_shards(options);
    if (result)
        return result;
    if (options->name && strlen(options->name) > QUIRE_MAX_NAME)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "a name of %u byte%s: %u are allowed",
                            strlen(options->name), QUIRE_MAX_NAME);
    float priority = options->priority; /* NaN compares false */
    if (!(priority >= 0 && priority <= 1) && priority != QUIRE_PRIORITY_LOWEST)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                            "priority %g is not from 0 to 1, and not QUIRE_PRIORITY_LOWEST",
                            (double)priority);
    result = qi_check_unused(&options->fit, "quire_fit_options");
    return result ? result : qi_check_unused(options, "quire_memory_options");
}

/*
 * Returns the unit of sizes and alignments. On host-visible kinds that are not coherent,
 * allocations must not share an atom, because a flush writes whole atoms.
 */
static uint64_t atom_of(const quire_device *device, quire_memory_flags flags)
{
    bool flushed = flags & QUIRE_HOST_VISIBLE && !(flags & QUIRE_HOST_COHERENT);
    return flushed ? device->info.limits.non_coherent_atom : 1;
}

/* The percentage is computed in two parts, so that it does not overflow. */
quire_result qi_memory_resolve_limit(const quire_device *device, uint32_t kind, uint64_t given,
                                     uint64_t *bytes)
{
    const uint64_t none = QUIRE_PERCENT_OF_HEAP(0), most = 500;
    *bytes = given;
    if (given < none || given > QUIRE_PERCENT_OF_HEAP(most))
        return QUIRE_SUCCESS;
    uint64_t percent = given - none, size = device->info.heaps[device->info.kinds[kind].heap].size;
    if (!percent || percent > 100)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "a limit of %u percent of the heap: from 1 to 100", percent);
    *bytes = size / 100 * percent + size % 100 * percent / 100;
    *bytes += !*bytes; /* a share of 0 bytes must not become "no limit" */
    return QUIRE_SUCCESS;
}

/* Elastic pages are backed in chunks: small ones, and no more than a page may have. The chunk
   decides the default of an elastic memory's addresses, and given addresses raise the chunk. */
static void resolve_chunk(const quire_memory_options *options, uint64_t heap, quire_memory *memory)
{
    const quire_limits *limits = &memory->device->info.limits;
    const uint64_t least = limits->elastic_granularity;
    uint64_t most = QUIRE_MAX_CHUNKS;
    if (limits->max_chunks && limits->max_chunks < most)
        most = limits->max_chunks;
    memory->chunk = least;
    qi_raise(&memory->chunk,
             options->pages.page_size ? options->pages.page_size : QI_DEFAULT_CHUNK);
    memory->address_space = options->address_space;
    if (!options->address_space) {
        const uint64_t room = most * memory->chunk, page = limits->max_elastic_page;
        memory->address_space = heap < room / ADDRESSES_PER_BYTE ? heap * ADDRESSES_PER_BYTE : room;
        if (page && memory->address_space > page)
            memory->address_space = page;
    }
    while (memory->chunk <= (memory->address_space - 1) / most)
        memory->chunk *= 2;
}

/* UNSUPPORTED if the driver demands what would make an elastic page useless. */
static quire_result check_rules(const quire_device_info *info)
{
    if (info->limits.elastic_rules & QUIRE_ELASTIC_KEEPS_MEMORY)
        return qi_fail_text(
            QUIRE_ERROR_UNSUPPORTED,
            "an elastic memory: the driver of backend %s keeps the memory that a page "
            "loses until the page is destroyed (QUIRE_ELASTIC_KEEPS_MEMORY)",
            info->backend);
    if (info->limits.elastic_rules & QUIRE_ELASTIC_NEEDS_IDLE)
        return qi_fail_text(
            QUIRE_ERROR_UNSUPPORTED,
            "an elastic memory: pages of backend %s get and lose memory only while the "
            "device is idle (QUIRE_ELASTIC_NEEDS_IDLE)",
            info->backend);
    return QUIRE_SUCCESS;
}

static quire_result refuse_kind(const quire_device_info *info, uint32_t kind)
{
    const char *missing = info->limits.elastic_missing;
    return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                        "an elastic memory: pages of memory kind %" PRIu32
                        " of backend %s cannot be elastic%s%s",
                        kind, info->backend, missing ? ": " : "", missing ? missing : "");
}

/*
 * An elastic memory whose pages cannot be mapped has none of the host's flags: its bytes are copied
 * as those of a kind that is not host-visible. UNSUPPORTED if the request requires one of the
 * flags.
 */
static quire_result drop_host_flags(const quire_memory_options *options, quire_memory *memory)
{
    const quire_memory_flags host = QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT | QUIRE_HOST_CACHED;
    const quire_device_info *info = &memory->device->info;
    quire_kind_request request = {0};
    if (!options->elastic || !info->limits.elastic_unmapped)
        return QUIRE_SUCCESS;
    quire_result result = qi_kind_resolve(memory->device, &options->kind, &request);
    if (result)
        return result;
    if (request.required & host)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "an elastic memory: its request requires %s, and elastic pages of "
                            "backend %s cannot be mapped",
                            qi_flags(request.required & host).text, info->backend);
    memory->flags &= ~host;
    return QUIRE_SUCCESS;
}

static quire_result resolve_address_space(const quire_memory_options *options, quire_memory *memory)
{
    const quire_device_info *info = &memory->device->info;
    const uint64_t page = info->limits.max_elastic_page;
    if (!options->elastic)
        return QUIRE_SUCCESS;
    if (!(info->limits.elastic_kinds >> memory->kind & 1))
        return refuse_kind(info, memory->kind);
    quire_result result = check_rules(info);
    if (result)
        return result;
    if (page && options->address_space > page)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "an elastic memory with addresses of %s: an elastic page of backend "
                            "%s has at most %s",
                            qi_bytes(options->address_space).text, info->backend,
                            qi_bytes(page).text);
    memory->is_elastic = true;
    resolve_chunk(options, info->heaps[info->kinds[memory->kind].heap].size, memory);
    return QUIRE_SUCCESS;
}

/* The largest alignment is at least the atom, and pages must be aligned to the atom. */
static quire_result resolve_alignment(const quire_memory_options *options, quire_memory *memory)
{
    memory->atom = atom_of(memory->device, memory->flags);
    memory->max_alignment =
        options->fit.max_alignment ? options->fit.max_alignment : DEFAULT_MAX_ALIGNMENT;
    if (!qi_is_power_of_two(memory->max_alignment))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "largest alignment %u is not a power of two", memory->max_alignment);
    if (memory->max_alignment < memory->atom)
        memory->max_alignment = memory->atom;
    uint64_t base = memory->device->info.limits.page_alignment;
    if (base && base < memory->atom)
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                            "memory kind %u is flushed in atoms of %b, but the device aligns its "
                            "pages to %b only",
                            memory->kind, memory->atom, base);
    return QUIRE_SUCCESS;
}

/*
 * Returns the number of shards that the memory has, or may get if the options leave it open. The
 * fits first and linear and an elastic memory keep one: their placements are a promise. There are
 * at most as many as pages: a shard without a page searches the others for every request.
 */
static uint32_t max_shards_of(const quire_memory_options *options)
{
    if (options->shards)
        return options->shards;
    if (options->elastic || options->fit.algorithm == QUIRE_FIT_FIRST ||
        options->fit.algorithm == QUIRE_FIT_LINEAR)
        return 1;
    uint32_t most = qi_processor_count(), pages = options->pages.max_pages;
    if (pages && pages < most)
        most = pages;
    return most < QI_MAX_SHARDS ? most : QI_MAX_SHARDS;
}

/* Rounding images to 1 KiB or less loses few bytes. */
enum { LARGE_GRANULARITY = 1024 };

/*
 * Returns quire_memory.first_shard. Memories whose placements are a promise, or whose number of
 * pages is limited, have no pages for images alone.
 */
static uint32_t first_shard_of(const quire_device *device, const quire_memory_options *options)
{
    return device->info.limits.buffer_image_granularity > LARGE_GRANULARITY && !options->elastic &&
           options->fit.algorithm != QUIRE_FIT_FIRST &&
           options->fit.algorithm != QUIRE_FIT_LINEAR && !options->pages.max_pages &&
           max_shards_of(options) < QI_MAX_SHARDS;
}

quire_result qi_memory_resolve(quire_device *device, const quire_memory_options *options,
                               quire_memory *memory)
{
    const quire_kind_request open = {.required = QUIRE_DEVICE_LOCAL};
    quire_result result = check_options(options);
    if (!result)
        result = qi_kind_find(device, &options->kind, &open, &memory->kind);
    if (result)
        return result;
    memory->device = device;
    memory->flags = device->info.kinds[memory->kind].flags;
    result = drop_host_flags(options, memory);
    if (result)
        return result;
    memory->priority = options->priority;
    memory->within_budget = options->within_budget;
    memory->exportable = options->kind.intent & QUIRE_INTENT_EXPORT;
    memory->maps_on_demand = options->map_on_demand && memory->flags & QUIRE_HOST_VISIBLE;
    memory->fit = options->fit.algorithm;
    memory->clock = options->clock;
    memory->on_out_of_memory = options->on_out_of_memory;
    memory->first_shard = first_shard_of(device, options);
    memory->max_shards = memory->first_shard + max_shards_of(options);
    result = resolve_alignment(options, memory);
    if (!result)
        result = resolve_address_space(options, memory);
    uint64_t limit = 0;
    if (!result)
        result = qi_memory_resolve_limit(device, memory->kind, options->limit, &limit);
    if (result)
        return result;
    qi_account_set_limit(&memory->account, limit);
    memory->policy = qi_policy_resolve(&options->pages, device, memory->kind,
                                       options->fit.algorithm == QUIRE_FIT_LINEAR);
    return qi_policy_validate(&options->pages, &memory->policy);
}
