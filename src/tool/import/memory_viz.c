/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory_viz.c - reads the snapshots of torch.cuda.memory._dump_snapshot: a pickle of a dict, whose
 * keys are those of PyTorch's torch/csrc/cuda/Module.cpp and memory_snapshot.cpp.
 *
 *     {"segments": [{"device", "stream",
 *                    "blocks": [{"size", "requested_size", "state", "frames"}]}],
 *      "device_traces": [[{"action", "addr", "size", "stream", "time_us", "frames"}]]}
 *
 * "device_traces" has a list of entries for each device. Rows are those of one device, the first
 * with an "alloc": the file is read once and may be larger than the memory, so the entries of all
 * devices cannot be counted first, and a process uses one device as a rule. Its other devices have
 * empty lists or one entry of the snapshot itself. Without any "alloc", since PyTorch did not
 * record, rows are the live blocks of the segments of one device. The caller may name another one.
 *
 * A range is freed at "free_completed", from when on PyTorch may use the bytes again, and not at
 * "free_requested", after which streams may still use them.
 */
#include "src/tool/import/memory_viz.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/result.h"
#include "src/tool/import/pickle.h"

/* ---- the shape of a snapshot -------------------------------------------------------------- */

/* The texts that mean something, as the numbers that the reader of pickles gives them. */
typedef enum word {
    NO_WORD,
    ACTION,
    ADDR,
    SIZE,
    STREAM,
    TIME_US,
    FRAMES,
    REQUESTED_SIZE,
    STATE,
    DEVICE,
    FIELDS, /* above: the fields of entries, blocks and segments that are kept */
    SEGMENTS = FIELDS,
    DEVICE_TRACES,
    BLOCKS,
    NAME,
    FILENAME,
    LINE,
    ALLOC,
    FREE_COMPLETED,
    ACTIVE_ALLOCATED,
    UNKNOWN_FILE
} word;

static const char *const WORDS[] = {
    "action", "addr",   "size",           "stream",           "time_us", "frames", "requested_size",
    "state",  "device", "segments",       "device_traces",    "blocks",  "name",   "filename",
    "line",   "alloc",  "free_completed", "active_allocated", "??",      NULL};

/* Lists and dicts of which at most one is open at a time. */
typedef enum role {
    ROOT,
    SEGMENT_LIST,
    SEGMENT,
    BLOCK_LIST,
    BLOCK,
    TRACE_LIST,
    TRACE, /* the entries of a device */
    ENTRY,
    ROLES
} role;

/* Which role a new list or dict has, by what is below it. Those without a rule are plain. */
static const struct rule {
    role below;
    word key;
    pickle_kind kind;
    role begins;
} RULES[] = {
    {ROOT, SEGMENTS, PICKLE_LIST, SEGMENT_LIST}, {ROOT, DEVICE_TRACES, PICKLE_LIST, TRACE_LIST},
    {SEGMENT, BLOCKS, PICKLE_LIST, BLOCK_LIST},  {SEGMENT_LIST, NO_WORD, PICKLE_DICT, SEGMENT},
    {SEGMENT, NO_WORD, PICKLE_DICT, SEGMENT},    {BLOCK_LIST, NO_WORD, PICKLE_DICT, BLOCK},
    {BLOCK, NO_WORD, PICKLE_DICT, BLOCK},        {TRACE_LIST, NO_WORD, PICKLE_LIST, TRACE},
    {TRACE, NO_WORD, PICKLE_LIST, TRACE},        {TRACE, NO_WORD, PICKLE_DICT, ENTRY},
    {ENTRY, NO_WORD, PICKLE_DICT, ENTRY},
};

/* What a list may hold. */
static const struct element {
    role list, item;
    const char *problem;
} ELEMENTS[] = {
    {SEGMENT_LIST, SEGMENT, "a segment is no dict"},
    {BLOCK_LIST, BLOCK, "a block is no dict"},
    {TRACE_LIST, TRACE, "the trace of a device is no list"},
    {TRACE, ENTRY, "an entry of a trace is no dict"},
};

/* ---- the state ---------------------------------------------------------------------------- */

/* PyTorch rounds sizes and addresses to this (kMinBlockSize of its CUDACachingAllocator). */
enum { ALIGNMENT = 512 };

enum { NO_LABEL = PICKLE_MOST_NUMBER }; /* plain lists and dicts when their numbers are used up */

typedef struct frame {
    uint32_t name, file; /* texts */
    uint32_t line;
} frame;

/* A live block, for snapshots without a history. */
typedef struct block {
    uint64_t size, stream, device;
    uint32_t frames; /* as of label_of */
} block;

typedef struct record {
    bool is_open;
    pickle_value fields[FIELDS];
} record;

typedef struct snapshot {
    import_source *source;
    import_rows *rows;
    qi_host *host;
    pickle_reader pickle;
    bool has[ROLES];
    record entry, segment, block;
    pickle_pile frames; /* of plain dicts; dict 16 + i is frame i */
    pickle_pile lists;  /* uint32_t, of plain lists: their first useful frame + 1, or 0 */
    pickle_pile blocks;
    uint64_t first_block; /* of the open segment */
    uint64_t trace;       /* number of the open trace, from 1 */
    uint64_t chosen;      /* the trace that becomes rows, or 0: the first with an alloc */
    uint64_t unknown;     /* frees of the open trace without an alloc, while none is chosen */
    uint64_t unknown_all; /* likewise of all traces */
    uint64_t time_ns;     /* of the last row */
    qi_id_map live;       /* addresses + 1 to ids; 0 for an allocation of 0 bytes */
    qi_id_map streams;    /* streams + 1 to numbers */
} snapshot;

/* ---- labels ------------------------------------------------------------------------------- */

static const frame *frame_of(const snapshot *s, pickle_value value)
{
    if (value.kind != PICKLE_DICT || value.number < PICKLE_ROLES || value.number == NO_LABEL)
        return NULL;
    return pickle_pile_at(&s->frames, value.number - PICKLE_ROLES);
}

static bool is_useful(const snapshot *s, const frame *f)
{
    return f && f->file != UNKNOWN_FILE && *pickle_text(&s->pickle, f->file);
}

static void set_frame(snapshot *s, uint64_t dict, word key, pickle_value value)
{
    if (dict == NO_LABEL)
        return;
    frame *f = pickle_pile_at(&s->frames, dict - PICKLE_ROLES);
    if (key == NAME && value.kind == PICKLE_TEXT)
        f->name = (uint32_t)value.number;
    else if (key == FILENAME && value.kind == PICKLE_TEXT)
        f->file = (uint32_t)value.number;
    else if (key == LINE && value.kind == PICKLE_NUMBER && value.number <= UINT32_MAX)
        f->line = (uint32_t)value.number;
}

/* The first useful frame of a list stays its label. */
static void append_frame(snapshot *s, uint64_t list, pickle_value value)
{
    if (list == NO_LABEL)
        return;
    uint32_t *label = pickle_pile_at(&s->lists, list - PICKLE_ROLES);
    if (!*label && is_useful(s, frame_of(s, value)))
        *label = (uint32_t)(value.number - PICKLE_ROLES + 1);
}

/* The frame of a field "frames" + 1, or 0. */
static uint32_t label_of(const snapshot *s, pickle_value frames)
{
    if (frames.kind != PICKLE_LIST || frames.number < PICKLE_ROLES || frames.number == NO_LABEL)
        return 0;
    return *(uint32_t *)pickle_pile_at(&s->lists, frames.number - PICKLE_ROLES);
}

/* Writes "function file:line" with the file's name alone. */
static const char *label_text(const snapshot *s, uint32_t label, char *text, size_t size)
{
    text[0] = '\0';
    if (!label)
        return text;
    const frame *f = pickle_pile_at(&s->frames, label - 1);
    const char *name = pickle_text(&s->pickle, f->name);
    const char *file = pickle_text(&s->pickle, f->file);
    for (const char *c = file; *c; c++)
        if ((*c == '/' || *c == '\\') && c[1])
            file = c + 1;
    snprintf(text, size, "%s%s%s:%" PRIu32, name, *name ? " " : "", file, f->line);
    return text;
}

/* ---- rows --------------------------------------------------------------------------------- */

/* Streams are addresses of CUDA's objects. They become 0, 1, ... in the order of their rows. */
static bool number_stream(snapshot *s, uint64_t stream, uint64_t *number)
{
    const uint32_t *known = qi_id_map_find(&s->streams, stream + 1);
    *number = known ? *known : s->streams.count;
    return known || qi_id_map_add(&s->streams, s->host, stream + 1, (uint32_t)*number) ||
           pickle_exhausted(s->source);
}

static bool write_alloc(snapshot *s, uint64_t id, uint64_t size, uint64_t stream, uint32_t label)
{
    char text[2 * PICKLE_MOST_TEXT + 16];
    import_alloc(s->rows, id, size, ALIGNMENT, s->time_ns, stream,
                 label_text(s, label, text, sizeof text));
    return true;
}

/* Frees the range at an address. Returns false if none is live. */
static bool end_range(snapshot *s, uint64_t addr, uint64_t stream)
{
    const uint32_t *id = qi_id_map_find(&s->live, addr + 1);
    if (!id)
        return false;
    if (*id)
        import_free(s->rows, *id, s->time_ns, stream);
    qi_id_map_remove(&s->live, addr + 1);
    return true;
}

/*
 * Ids count the allocations. They are numbers of 32 bits, which would only repeat for a range that
 * outlives four billion others. An address that is given while its range lives was freed where
 * PyTorch did not record, so the range ends now. A range of 0 bytes has no rows.
 */
static bool begin_range(snapshot *s, uint64_t addr, uint64_t size, uint64_t stream)
{
    end_range(s, addr, stream);
    const uint32_t id = size ? (uint32_t)(s->rows->allocations % UINT32_MAX) + 1 : 0;
    if (!qi_id_map_add(&s->live, s->host, addr + 1, id))
        return pickle_exhausted(s->source);
    return !id || write_alloc(s, id, size, stream, label_of(s, s->entry.fields[FRAMES]));
}

/* ---- entries, blocks and segments --------------------------------------------------------- */

static bool get_number(snapshot *s, const record *from, word field, const char *what,
                       uint64_t *number)
{
    const pickle_value value = from->fields[field];
    *number = value.number;
    if (value.kind != PICKLE_NUMBER)
        return import_refuse_byte(s->source, "the %s of %s is no number from 0 to 2^63 - 1",
                                  WORDS[field - 1], what);
    return true;
}

/* A field that older versions of PyTorch lack. */
static bool get_number_or(snapshot *s, const record *from, word field, const char *what,
                          uint64_t absent, uint64_t *number)
{
    *number = absent;
    return from->fields[field].kind == PICKLE_MARK || get_number(s, from, field, what, number);
}

static void open_record(record *r)
{
    r->is_open = true;
    for (word field = NO_WORD; field < FIELDS; field++)
        r->fields[field] = (pickle_value){PICKLE_MARK, 0}; /* which no value is: absent */
}

/* Raises the time to that of the entry: times of rows do not fall. */
static bool advance(snapshot *s)
{
    uint64_t time_us;
    if (!get_number_or(s, &s->entry, TIME_US, "an entry", 0, &time_us))
        return false;
    if (time_us > UINT64_MAX / 1000)
        return import_refuse_byte(s->source, "the time_us of an entry has more than 64 bits in ns");
    if (time_us * 1000 > s->time_ns)
        s->time_ns = time_us * 1000;
    return true;
}

static bool take_alloc(snapshot *s)
{
    uint64_t addr, size, stream;
    if (!s->chosen) {
        s->chosen = s->trace;
        s->rows->left_out += s->unknown;
    }
    return get_number(s, &s->entry, ADDR, "an alloc", &addr) &&
           get_number(s, &s->entry, SIZE, "an alloc", &size) &&
           get_number_or(s, &s->entry, STREAM, "an alloc", 0, &stream) && advance(s) &&
           number_stream(s, stream, &stream) && begin_range(s, addr, size, stream);
}

static bool take_free(snapshot *s)
{
    uint64_t addr, stream;
    if (!get_number(s, &s->entry, ADDR, "a free_completed", &addr) ||
        !get_number_or(s, &s->entry, STREAM, "a free_completed", 0, &stream) || !advance(s))
        return false;
    if (!s->chosen) {
        s->unknown++;
        s->unknown_all++;
        return true;
    }
    if (!number_stream(s, stream, &stream))
        return false;
    s->rows->left_out += !end_range(s, addr, stream);
    return true;
}

/* Other actions concern PyTorch's segments and state. */
static bool end_entry(snapshot *s)
{
    const pickle_value action = s->entry.fields[ACTION];
    if (!s->entry.is_open)
        return true;
    s->entry.is_open = false;
    if (action.kind != PICKLE_TEXT)
        return import_refuse_byte(s->source, "an entry of a trace has no action");
    if (s->chosen && s->chosen != s->trace)
        return true;
    return action.number == ALLOC            ? take_alloc(s)
           : action.number == FREE_COMPLETED ? take_free(s)
                                             : true;
}

/* The requested size is what an allocator has to serve; older versions of PyTorch lack it. */
static bool end_block(snapshot *s)
{
    const record *r = &s->block;
    if (!r->is_open)
        return true;
    s->block.is_open = false;
    if (r->fields[STATE].kind != PICKLE_TEXT)
        return import_refuse_byte(s->source, "a block of a segment has no state");
    if (r->fields[STATE].number != ACTIVE_ALLOCATED)
        return true;
    uint64_t size, requested;
    if (!get_number(s, r, SIZE, "a block", &size) ||
        !get_number_or(s, r, REQUESTED_SIZE, "a block", size, &requested))
        return false;
    block *added = pickle_pile_add(&s->blocks);
    if (!added)
        return pickle_exhausted(s->source);
    *added =
        (block){.size = requested ? requested : size, .frames = label_of(s, r->fields[FRAMES])};
    return true;
}

/* Its blocks came before it. */
static bool end_segment(snapshot *s)
{
    if (!s->segment.is_open)
        return true;
    s->segment.is_open = false;
    uint64_t device, stream;
    if (!get_number_or(s, &s->segment, DEVICE, "a segment", 0, &device) ||
        !get_number_or(s, &s->segment, STREAM, "a segment", 0, &stream))
        return false;
    for (; s->first_block < s->blocks.count; s->first_block++) {
        block *b = pickle_pile_at(&s->blocks, s->first_block);
        b->device = device;
        b->stream = stream;
    }
    return true;
}

/* The rows of a snapshot without a history: the live blocks of the device that the caller names, or
   of the first that has any. */
static bool write_blocks(snapshot *s)
{
    for (uint64_t i = 0; i < s->blocks.count; i++) {
        const block *b = pickle_pile_at(&s->blocks, i), *first = pickle_pile_at(&s->blocks, 0);
        uint64_t stream, device = s->chosen ? s->chosen - 1 : first->device;
        if (b->device != device || !b->size)
            continue;
        if (!number_stream(s, b->stream, &stream) ||
            !write_alloc(s, s->rows->allocations + 1, b->size, stream, b->frames))
            return false;
    }
    return true;
}

/* ---- the shape's calls -------------------------------------------------------------------- */

static bool is_role(pickle_value value, role wanted)
{
    return (value.kind == PICKLE_LIST || value.kind == PICKLE_DICT) && value.number == wanted;
}

static bool begin_plain(snapshot *s, pickle_kind kind, uint64_t *number)
{
    pickle_pile *pile = kind == PICKLE_DICT ? &s->frames : &s->lists;
    *number = PICKLE_ROLES + pile->count;
    if (*number >= NO_LABEL)
        *number = NO_LABEL;
    else if (!pickle_pile_add(pile))
        return pickle_exhausted(s->source);
    return true;
}

static bool begin_role(snapshot *s, role begun)
{
    const bool had = s->has[begun];
    s->has[begun] = true;
    switch (begun) {
    case SEGMENT_LIST:
    case TRACE_LIST:
        if (had)
            return import_refuse_byte(s->source, "there are two lists %s",
                                      begun == TRACE_LIST ? "device_traces" : "segments");
        return true;
    case SEGMENT:
        if (!end_segment(s))
            return false;
        open_record(&s->segment);
        return true;
    case BLOCK:
        if (!end_block(s))
            return false;
        open_record(&s->block);
        return true;
    case TRACE:
        s->trace++;
        s->unknown = 0;
        if (!s->chosen)
            s->time_ns = 0;
        return true;
    case ENTRY:
        if (!end_entry(s))
            return false;
        open_record(&s->entry);
        return true;
    case ROOT:
    case BLOCK_LIST:
    case ROLES:
        break;
    }
    return true;
}

static bool begin(void *user, pickle_kind kind, pickle_value below, pickle_value key,
                  uint64_t *number)
{
    snapshot *s = user;
    const uint64_t key_word = key.kind == PICKLE_TEXT ? key.number : NO_WORD;
    if (kind == PICKLE_DICT && !s->pickle.count) {
        *number = ROOT;
        return begin_role(s, ROOT);
    }
    for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++)
        if (is_role(below, RULES[i].below) && RULES[i].key == key_word && RULES[i].kind == kind) {
            *number = RULES[i].begins;
            return begin_role(s, RULES[i].begins);
        }
    return begin_plain(s, kind, number);
}

/* Whether a dict takes a value: a list with a role has one place. */
static bool check_place(snapshot *s, uint64_t dict, uint64_t key, pickle_value value)
{
    for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++)
        if (RULES[i].key && dict == RULES[i].below && key == RULES[i].key)
            return is_role(value, RULES[i].begins) ||
                   import_refuse_byte(s->source, "the %s of a snapshot are no list of their own",
                                      WORDS[key - 1]);
    for (role r = ROOT; r < ROLES; r++)
        if (is_role(value, r))
            return import_refuse_byte(s->source, "a part of the snapshot is in the wrong dict");
    return true;
}

static bool set(void *user, uint64_t dict, pickle_value key, pickle_value value)
{
    snapshot *s = user;
    const uint64_t key_word = key.kind == PICKLE_TEXT ? key.number : NO_WORD;
    if (!check_place(s, dict, key_word, value))
        return false;
    record *r = dict == ENTRY     ? &s->entry
                : dict == BLOCK   ? &s->block
                : dict == SEGMENT ? &s->segment
                                  : NULL;
    if (dict >= PICKLE_ROLES)
        set_frame(s, dict, (word)key_word, value);
    else if (r && key_word < FIELDS)
        r->fields[key_word] = value;
    return true;
}

static bool append(void *user, uint64_t list, pickle_value value)
{
    snapshot *s = user;
    for (size_t i = 0; i < sizeof ELEMENTS / sizeof *ELEMENTS; i++)
        if (list == ELEMENTS[i].list && !is_role(value, ELEMENTS[i].item))
            return import_refuse_byte(s->source, "%s", ELEMENTS[i].problem);
    switch (list) {
    case TRACE_LIST:
        return true;
    case SEGMENT_LIST:
        return end_segment(s);
    case BLOCK_LIST:
        return end_block(s);
    case TRACE:
        return end_entry(s);
    default:
        break;
    }
    append_frame(s, list, value);
    return true;
}

/* ---- the reader --------------------------------------------------------------------------- */

static bool read_snapshot(snapshot *s)
{
    pickle_value result;
    if (!pickle_read(&s->pickle, &result))
        return false;
    if (!is_role(result, ROOT))
        return import_refuse_byte(s->source, "the pickle holds no dict");
    if (!s->has[TRACE_LIST] && !s->has[SEGMENT_LIST])
        return import_refuse_byte(s->source, "the dict has neither device_traces nor segments");
    if (s->rows->allocations)
        return true;
    s->time_ns = 0;
    s->rows->left_out += s->unknown_all;
    if (!write_blocks(s))
        return false;
    if (s->source->device && !s->rows->allocations)
        return import_refuse_byte(s->source, "device %s has no allocations", s->source->device);
    return true;
}

/* The number of the trace of the device that the caller names, from 1; 0: none is named. */
static uint64_t choose_trace(const import_source *source)
{
    return source->device ? strtoull(source->device, NULL, 10) + 1 : 0;
}

bool memory_viz_read(import_source *source, import_rows *rows, qi_host *host)
{
    static const pickle_shape shape = {begin, set, append};
    snapshot s = {.source = source, .rows = rows, .host = host, .chosen = choose_trace(source)};
    pickle_pile_begin(&s.frames, host, sizeof(frame));
    pickle_pile_begin(&s.lists, host, sizeof(uint32_t));
    pickle_pile_begin(&s.blocks, host, sizeof(block));
    const bool read = pickle_begin(&s.pickle, source, host, &shape, &s, WORDS) && read_snapshot(&s);
    pickle_end(&s.pickle);
    pickle_pile_end(&s.frames);
    pickle_pile_end(&s.lists);
    pickle_pile_end(&s.blocks);
    qi_id_map_finish(&s.live, host);
    qi_id_map_finish(&s.streams, host);
    return read;
}

bool import_memory_viz(import_source *source, import_rows *rows)
{
    qi_host host;
    if (qi_host_init(&host, NULL)) /* which only refuses callbacks */
        return import_refuse_byte(source, "host memory is exhausted");
    return memory_viz_read(source, rows, &host);
}
