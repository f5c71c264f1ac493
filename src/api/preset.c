/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * preset.c - the public functions of quire/preset.h: argument checks before core/device/policy.c.
 */
#include "quire/preset.h"

#include "src/base/result.h"
#include "src/core/device/policy.h"

quire_result quire_page_policy_preset(quire_preset preset, const quire_device *device,
                                      uint32_t kind, quire_page_policy *policy)
{
    if (policy)
        *policy = (quire_page_policy){0};
    if (!device || !policy)
        return qi_fail_null("quire_page_policy_preset", !device ? "device" : "policy");
    if (device->is_disabled)
        return qi_refuse_disabled();
    return qi_policy_preset(preset, device, kind, policy);
}

quire_result quire_page_policy_paddle(quire_paddle_strategy strategy,
                                      const quire_paddle_sizes *sizes, quire_page_policy *policy)
{
    if (policy)
        *policy = (quire_page_policy){0};
    if (!sizes || !policy)
        return qi_fail_null("quire_page_policy_paddle", !sizes ? "sizes" : "policy");
    quire_result result = qi_check_unused(sizes, "quire_paddle_sizes");
    return result ? result : qi_policy_paddle(strategy, sizes, policy);
}
