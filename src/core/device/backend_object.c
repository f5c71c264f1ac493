/*
 * backend_object.c - calls that create, bind and destroy native objects, and query their
 * requirements and addresses (see device.h).
 *
 * Except for the query of an image's requirements these calls are counted and not timed. No lock is
 * held.
 */
#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/device/backend_call.h"

uint64_t qi_device_address(quire_device *device, qi_calls *calls, const qi_device_page *page,
                           uint64_t buffer)
{
    if (!qi_device_offers(device, QUIRE_BACKEND_DEVICE_ADDRESS))
        return 0;
    qi_backend_call call = qi_backend_call_begin_untimed();
    uint64_t address = device->table.device_address(device->state, &page->native, buffer);
    qi_ignore(qi_backend_call_end_untimed(device, calls, call, QUIRE_SUCCESS));
    return address;
}

/* No page satisfies a size of 0, an alignment that is no power of two, or an empty mask. */
static quire_result check_requirements(const quire_requirements *requirements)
{
    if (requirements->size && qi_is_power_of_two(requirements->alignment) &&
        requirements->kind_mask)
        return QUIRE_SUCCESS;
    return qi_fail_with(
        QUIRE_ERROR_BACKEND_FAILURE,
        "the backend requires %u byte%s, alignment %u, memory kinds %x for an object",
        requirements->size, requirements->alignment, requirements->kind_mask);
}

quire_result qi_device_image_requirements(quire_device *device, qi_calls *calls,
                                          const quire_image_options *options,
                                          quire_requirements *requirements)
{
    if (!qi_device_offers(device, QUIRE_BACKEND_IMAGES))
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "backend %s has no images",
                            device->info.backend);
    *requirements = (quire_requirements){0};
    qi_backend_call call = qi_backend_call_begin();
    quire_result result =
        qi_backend_call_end(device, calls, call,
                            device->table.image_requirements(device->state, options, requirements));
    return result ? result : check_requirements(requirements);
}

quire_result qi_device_object_create(quire_device *device, qi_calls *calls,
                                     const quire_object_request *request, uint64_t *native,
                                     quire_requirements *requirements)
{
    *requirements = (quire_requirements){0};
    *native = 0;
    qi_backend_call call = qi_backend_call_begin_untimed();
    quire_result result = qi_backend_call_end_untimed(
        device, calls, call,
        device->table.object_create(device->state, request, native, requirements));
    if (result)
        return result;
    result = check_requirements(requirements);
    if (result && *native && !request->borrowed)
        qi_device_object_destroy(device, calls, request->object, *native);
    return result;
}

quire_result qi_device_object_bind(quire_device *device, qi_calls *calls, quire_object object,
                                   uint64_t native, const qi_device_page *page, uint64_t offset)
{
    qi_backend_call call = qi_backend_call_begin_untimed();
    return qi_backend_call_end_untimed(
        device, calls, call,
        device->table.object_bind(device->state, object, native, &page->native, offset));
}

void qi_device_object_destroy(quire_device *device, qi_calls *calls, quire_object object,
                              uint64_t native)
{
    qi_backend_call call = qi_backend_call_begin_untimed();
    device->table.object_destroy(device->state, object, native);
    qi_backend_call_end_untimed(device, calls, call, QUIRE_SUCCESS);
}
