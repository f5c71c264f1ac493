/*
 * report.h - the report of a replay as JSON, for replay and tune.
 */
#ifndef QUIRE_SRC_CLI_REPORT_H
#define QUIRE_SRC_CLI_REPORT_H

#include "quire/trace.h"
#include "src/base/json.h"

/* Writes its figures as keys of the object that is open; see docs/formats.md. */
void write_report(qi_json *json, const quire_replay_report *report);

#endif
