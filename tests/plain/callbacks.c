/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * callbacks.c - callbacks that use the memory they are called for, at every place where the library
 * calls one, on the host backend and on the fake one. callbacks_*.c cover the other backends.
 */
#include "quire/host.h"
#include "tests/support/callbacks.h"
#include "tests/support/fake.h"
#include "tests/support/plain.h"

static void open_host(quire_log log, quire_device **device)
{
    CHECK_OK(quire_host_open(&(quire_host_options){.device.log = log}, device));
}

static void close_host(void)
{
}

static fake_backend fake;

static void open_fake(quire_log log, quire_device **device)
{
    fake_init(&fake);
    fake_offer_growth(&fake);
    fake_offer_budget(&fake);
    const quire_device_options options = {.log = log};
    CHECK_OK(quire_device_create(&fake.table, &fake, &options, device));
}

static void close_fake(void)
{
    CHECK_EQ(fake.pages, 0);
    CHECK_EQ(fake.page_bytes, 0);
    CHECK_EQ(fake.objects, 0);
    CHECK(fake.ended);
}

static void on_the_host(void)
{
    for (uint32_t kind = 0; kind < 2; kind++)
        callbacks_try(&(callbacks_subject){64 * 1024, kind, open_host, close_host});
}

static void on_the_fake(void)
{
    for (uint32_t kind = 1; kind < 3; kind++)
        callbacks_try(&(callbacks_subject){64 * 1024, kind, open_fake, close_fake});
}

int main(void)
{
    plain_case("callbacks on the host backend", on_the_host);
    plain_case("callbacks on the fake backend", on_the_fake);
    return plain_end();
}
