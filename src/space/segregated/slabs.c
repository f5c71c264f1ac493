/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * slabs.c - takes the lowest free slot of the first slab in the list of the class. If the list is
 * empty it makes a slab, and halves its slots until the fit has a range for it. The host memory of
 * the records is in slabs_records.c, the check in slabs_check.c.
 */
#include "src/space/segregated/slabs.h"

#include "src/base/bits.h"
#include "src/base/handle.h"
#include "src/base/result.h"
#include "src/space/segregated/lists.h"

enum {
    EIGHTHS = 3,            /* log2 of the classes per power of two */
    FIRST_SLOTS = 4,        /* slots of the first slabs of a class */
    FEWEST_SLOTS = 2,       /* with fewer a slab saves nothing */
    SHARE_OF_CLASS = 8,     /* a slab grows to an eighth of the slots of its class */
    MAX_SLAB_BYTES = 262144 /* bytes */
};

/* ---- classes ------------------------------------------------------------------------------ */

/* The class of a slot for `granules`; *stride gets the granules of a slot. */
static inline uint32_t slab_class(uint32_t granules, uint32_t *stride)
{
    uint32_t shift = qi_highest_bit(granules | 1u << EIGHTHS) - EIGHTHS;
    uint32_t steps = (granules + (1u << shift) - 1) >> shift; /* 8 to 16, or less */
    *stride = steps << shift;
    return (shift << EIGHTHS) + steps;
}

/* Puts a slab at the head of the list of its class. */
static void list_push(qi_slabs *slabs, uint32_t number)
{
    qi_slab *slab = &slabs->items[number];
    qi_slab_class *class = &slabs->classes[slab->class];
    slab->before = 0;
    slab->next = class->head;
    slabs->items[class->head].before = number; /* 0 is scratch */
    class->head = number;
}

static void list_remove(qi_slabs *slabs, const qi_slab *slab)
{
    slabs->items[slab->next].before = slab->before;
    if (slab->before)
        slabs->items[slab->before].next = slab->next;
    else
        slabs->classes[slab->class].head = slab->next;
}

/* ---- slabs -------------------------------------------------------------------------------- */

/* Bits of the slots that are not worn out. Slots of a new slab start at first_generation. */
static uint64_t fresh_slots(qi_slabs *slabs, uint32_t number, uint32_t slots, bool is_new)
{
    uint64_t bits = 0;
    uint32_t *generations = slabs->generations + (size_t)number * QI_SLAB_SLOTS;
    for (uint32_t i = 0; is_new && i < QI_SLAB_SLOTS; i++)
        generations[i] = slabs->first_generation;
    for (uint32_t i = 0; i < slots; i++)
        bits |= (uint64_t)(generations[i] <= QI_LAST_GENERATION) << i;
    return bits;
}

/* Starts a slab on an allocated range. Requires a slab number from qi_slabs_reserve_number. */
static uint32_t begin_slab(qi_segregated *s, const quire_placement *at, uint32_t class,
                           uint32_t stride)
{
    qi_slabs *slabs = s->slabs;
    uint32_t number = slabs->unused, node = qi_handle_slot(at->range.id);
    bool is_new = !number;
    if (is_new)
        number = slabs->top++;
    else
        slabs->unused = slabs->items[number].next;
    uint32_t slots = s->nodes[node].size / stride;
    slabs->items[number] = (qi_slab){
        .free = fresh_slots(slabs, number, slots, is_new),
        .offset = s->nodes[node].offset,
        .node = node,
        .region = at->region,
        .stride = (uint16_t)stride,
        .class = (uint8_t) class,
        .slots = (uint8_t)slots,
    };
    s->nodes[node].owner |= QI_SLAB_MARK;
    s->nodes[node].next = number; /* replaces the low half of the user value */
    s->space.live_count--;        /* the statistics count slots, not the node */
    s->space.live_bytes -= at->size;
    slabs->classes[class].slots += slots;
    slabs->classes[class].empty = number;
    slabs->slots += slots;
    slabs->empty++;
    slabs->count++;
    list_push(slabs, number);
    return number;
}

/* Releases a slab without a live slot; its node becomes free. */
static void end_slab(qi_segregated *s, uint32_t number)
{
    qi_slabs *slabs = s->slabs;
    qi_slab *slab = &slabs->items[number];
    uint32_t node = slab->node;
    if (slab->free)
        list_remove(slabs, slab);
    slabs->classes[slab->class].slots -= slab->slots;
    if (slabs->classes[slab->class].empty == number)
        slabs->classes[slab->class].empty = 0;
    slabs->slots -= slab->slots;
    slabs->empty--;
    slabs->count--;
    slab->node = 0;
    if (!slab->worn) {
        slab->next = slabs->unused;
        slabs->unused = number;
    }
    s->nodes[node].owner &= ~QI_SLAB_MARK;
    s->nodes[node].generation++;
    qi_node_free(s, node);
}

bool qi_slabs_release_empty(qi_segregated *s)
{
    qi_slabs *slabs = s->slabs;
    bool any = slabs->empty != 0;
    for (uint32_t i = 0; i < QI_SLAB_CLASSES && slabs->empty; i++)
        if (slabs->classes[i].empty)
            end_slab(s, slabs->classes[i].empty);
    return any;
}

/* The maximum number of slots of the next slab of a class. */
static uint32_t slots_for(const qi_segregated *s, uint32_t class, uint32_t stride)
{
    uint64_t max = MAX_SLAB_BYTES / (stride * s->space.granule);
    uint32_t slots = max < FIRST_SLOTS ? (uint32_t)max : FIRST_SLOTS;
    while (slots < QI_SLAB_SLOTS && slots < max &&
           slots * SHARE_OF_CLASS <= s->slabs->classes[class].slots)
        slots *= 2;
    return slots;
}

/* Creates a slab. *number is 0 if the fit has no range for even the smallest slab. */
static quire_result make_slab(qi_segregated *s, uint32_t class, uint32_t stride, uint32_t *number)
{
    quire_space *space = &s->space;
    *number = 0;
    quire_result result = qi_slabs_reserve_number(s);
    if (result)
        return result;
    uint64_t alignment = (stride & (0 - stride)) * space->granule;
    if (alignment > space->max_alignment)
        alignment = space->max_alignment;
    for (uint32_t slots = slots_for(s, class, stride); slots >= FEWEST_SLOTS; slots /= 2) {
        quire_placement at;
        uint64_t size = (uint64_t)slots * stride * space->granule;
        result = s->slabs->allocate(space, size, alignment, 0, QI_TRY, &at);
        if (!result)
            *number = begin_slab(s, &at, class, stride);
        if (result != QUIRE_ERROR_NO_SPACE)
            return result;
    }
    return QUIRE_SUCCESS;
}

/* ---- slots -------------------------------------------------------------------------------- */

static void describe(const qi_segregated *s, uint32_t index, uint64_t user, quire_placement *out)
{
    const qi_slabs *slabs = s->slabs;
    const qi_slab *slab = &slabs->items[index / QI_SLAB_SLOTS];
    uint64_t offset = slab->offset + (uint64_t)(index % QI_SLAB_SLOTS) * slab->stride;
    *out = (quire_placement){
        .range.id = qi_handle(s->space.tag, slabs->generations[index], QI_SLAB_SLOT | index),
        .region = slab->region,
        .offset = offset * s->space.granule - s->space.regions[slab->region].start,
        .size = slab->stride * s->space.granule,
        .user = user,
    };
}

/* Whether the slot with this index (without QI_SLAB_SLOT) is live in this generation. */
static inline bool is_live(const qi_slabs *slabs, uint32_t index, uint32_t generation)
{
    return index / QI_SLAB_SLOTS < slabs->top && slabs->generations[index] == generation &&
           generation & 1;
}

/* Allocates a slot of a slab that has a free one. */
static void take_slot(qi_segregated *s, uint32_t number, uint64_t user, quire_placement *placement)
{
    qi_slabs *slabs = s->slabs;
    qi_slab *slab = &slabs->items[number];
    uint32_t index = number * QI_SLAB_SLOTS + qi_lowest_bit(slab->free);
    slab->free &= slab->free - 1;
    if (!slab->free)
        list_remove(slabs, slab);
    if (slab->live++ == 0) {
        slabs->classes[slab->class].empty = 0;
        slabs->empty--;
    }
    slabs->generations[index]++;
    if (slabs->users)
        slabs->users[index] = user;
    s->space.live_count++;
    s->space.live_bytes += slab->stride * s->space.granule;
    describe(s, index, user, placement);
}

/* Allocates from the fit without slabs. Releases cached empty slabs before it fails. */
static quire_result allocate_large(qi_segregated *s, uint64_t size, uint64_t alignment,
                                   uint64_t user, uint32_t flags, quire_placement *placement)
{
    quire_space *space = &s->space;
    if (!s->slabs->empty)
        return s->slabs->allocate(space, size, alignment, user, flags, placement);
    quire_result result = s->slabs->allocate(
        space, size, alignment, user, (flags & ~(uint32_t)QI_EXHAUSTIVE) | QI_TRY, placement);
    if (result != QUIRE_ERROR_NO_SPACE)
        return result;
    qi_slabs_release_empty(s);
    return s->slabs->allocate(space, size, alignment, user, flags, placement);
}

/* Creates a slab and allocates its first slot. NO_SPACE if no slab could be created. */
static quire_result allocate_in_new_slab(qi_segregated *s, uint32_t class, uint32_t stride,
                                         uint64_t user, quire_placement *placement)
{
    uint32_t number = 0;
    quire_result result = make_slab(s, class, stride, &number);
    if (!result && number)
        result = qi_slabs_reserve_user(s, user);
    if (!result && number)
        take_slot(s, number, user, placement);
    return result ? result : number ? QUIRE_SUCCESS : QUIRE_ERROR_NO_SPACE;
}

/*
 * A request above 4 KiB or for an optimal image, and any that no slab can serve, goes to the fit.
 */
quire_result qi_slabs_allocate(quire_space *space, uint64_t size, uint64_t alignment, uint64_t user,
                               uint32_t flags, quire_placement *placement)
{
    qi_segregated *s = qi_segregated_of(space);
    qi_slabs *slabs = s->slabs;
    uint64_t rest = size - 1, align_mask = alignment - !!alignment;
    if (rest >= QI_SLAB_MAX_BYTES || align_mask >= QI_SLAB_MAX_BYTES || alignment & align_mask ||
        align_mask >= space->max_alignment || flags & QI_OPTIMAL)
        return allocate_large(s, size, alignment, user, flags, placement);
    uint32_t stride = 0;
    uint32_t granules = (uint32_t)((rest | align_mask) >> s->granule_shift) + 1;
    uint32_t class = slab_class(granules, &stride);
    uint32_t number = slabs->classes[class].head;
    quire_result result = number ? qi_slabs_reserve_user(s, user) : QUIRE_SUCCESS;
    if (number && !result)
        take_slot(s, number, user, placement);
    else if (!result)
        result = allocate_in_new_slab(s, class, stride, user, placement);
    if (result == QUIRE_ERROR_NO_SPACE)
        return allocate_large(s, size, alignment, user, flags, placement);
    if (result)
        *placement = (quire_placement){0};
    return result;
}

/* The slot becomes stale; its bit stays clear until release_claimed. */
bool qi_slabs_claim(qi_segregated *s, uint32_t slot, uint32_t generation)
{
    uint32_t index = slot & (QI_SLAB_SLOT - 1);
    if (!is_live(s->slabs, index, generation))
        return false;
    s->slabs->generations[index]++;
    s->space.live_count--;
    s->space.live_bytes -= s->slabs->items[index / QI_SLAB_SLOTS].stride * s->space.granule;
    return true;
}

void qi_slabs_unclaim(qi_segregated *s, uint32_t slot)
{
    uint32_t index = slot & (QI_SLAB_SLOT - 1);
    s->slabs->generations[index]--;
    s->space.live_count++;
    s->space.live_bytes += s->slabs->items[index / QI_SLAB_SLOTS].stride * s->space.granule;
}

/*
 * Frees a claimed slot, or retires it if its generations are used up. A slab without a live slot is
 * kept as the cache of its class; a second one is released.
 */
void qi_slabs_release_claimed(qi_segregated *s, uint32_t slot)
{
    qi_slabs *slabs = s->slabs;
    uint32_t index = slot & (QI_SLAB_SLOT - 1), number = index / QI_SLAB_SLOTS;
    qi_slab *slab = &slabs->items[number];
    uint64_t before = slab->free;
    if (slabs->generations[index] <= QI_LAST_GENERATION) {
        slab->free = before | UINT64_C(1) << index % QI_SLAB_SLOTS;
        if (!before)
            list_push(slabs, number);
    } else {
        slab->worn = 1;
    }
    if (--slab->live)
        return;
    slabs->empty++;
    if (slabs->classes[slab->class].empty || !slab->free)
        end_slab(s, number);
    else
        slabs->classes[slab->class].empty = number;
}

/* A range above 4 KiB goes to the fit. The general form reports a handle that is not live. */
quire_result qi_slabs_free(quire_space *space, quire_range range)
{
    qi_segregated *s = qi_segregated_of(space);
    uint32_t slot = qi_handle_slot(range.id);
    bool is_slot = slot & QI_SLAB_SLOT;
    if (!is_slot && (slot >= space->pool.top || !qi_node_is_slab(&s->nodes[slot])))
        return s->slabs->free_range(space, range);
    if (!is_slot || qi_handle_tag(range.id) != space->tag ||
        !qi_slabs_claim(s, slot, qi_handle_generation(range.id)))
        return qi_space_free(space, range);
    qi_slabs_release_claimed(s, slot);
    return QUIRE_SUCCESS;
}

bool qi_slabs_get(const qi_segregated *s, uint32_t slot, uint32_t generation, quire_placement *out)
{
    uint32_t index = slot & (QI_SLAB_SLOT - 1);
    if (!is_live(s->slabs, index, generation))
        return false;
    describe(s, index, s->slabs->users ? s->slabs->users[index] : 0, out);
    return true;
}

bool qi_slabs_set_user(qi_segregated *s, uint32_t slot, uint32_t generation, uint64_t user)
{
    uint32_t index = slot & (QI_SLAB_SLOT - 1);
    if (!is_live(s->slabs, index, generation))
        return false;
    if (s->slabs->users) /* otherwise every value is 0, this one too */
        s->slabs->users[index] = user;
    return true;
}

void qi_slabs_clear(qi_segregated *s)
{
    qi_slabs *slabs = s->slabs;
    uint64_t slots = (uint64_t)slabs->top * QI_SLAB_SLOTS;
    for (uint32_t i = 0; i < slots; i++)
        if (slabs->generations[i] & 1 && qi_slabs_claim(s, i, slabs->generations[i]))
            qi_slabs_release_claimed(s, i);
    qi_slabs_release_empty(s);
}

bool qi_slabs_walk(const qi_segregated *s, uint32_t node,
                   bool (*visit)(void *, const quire_space_item *), void *user)
{
    uint32_t number = s->nodes[node].next;
    const qi_slab *slab = &s->slabs->items[number];
    for (uint32_t i = 0; i < slab->slots; i++) {
        quire_placement at;
        uint32_t index = number * QI_SLAB_SLOTS + i;
        describe(s, index, s->slabs->users ? s->slabs->users[index] : 0, &at);
        quire_space_item item = {.region = at.region, .offset = at.offset, .size = at.size};
        item.is_free = !(s->slabs->generations[index] & 1);
        if (!item.is_free) {
            item.range = at.range;
            item.user = at.user;
        }
        if (!visit(user, &item))
            return false;
    }
    return true;
}
