/*
 * report.h - writes the report of a replay as JSON, for replay and tune.
 */
#ifndef QUIRE_SRC_TOOL_REPORT_H
#define QUIRE_SRC_TOOL_REPORT_H

#include "quire/trace.h"
#include "src/base/json.h"

/* Adds the fields of the report to the open JSON object; docs/formats.md lists the keys. */
void write_report(qi_json *json, const quire_replay_report *report);

#endif
