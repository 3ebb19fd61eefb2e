/*
 * scenario_fixture.h - a folder of its own for each test, and scenarios written into it.
 */
#ifndef TESTS_SCENARIO_FIXTURE_H
#define TESTS_SCENARIO_FIXTURE_H

#include "pagedkv/scenario.h"

/* Checked fixture: makes the folder and, after the test, removes it. Paths are relative to where
 * the tests run. */
void fixture_begin(void);
void fixture_end(void);

/* Path of a file under the folder (NULL = of the folder); valid until the fifth next call. */
const char *fixture_path(const char *name);
void fixture_write(const char *name, const char *text);
void fixture_make_dir(const char *name);

/* Load the text as scenario.yaml in the folder, which must be right. */
struct pkv_scenario *fixture_load(const char *text, const struct pkv_setting *settings,
                                  size_t num_settings);
/* The same with pairs key, value of --set, the last key NULL. */
struct pkv_scenario *fixture_load_set(const char *text, const char *const *pairs);

/* The least that is a scenario. */
#define MINIMAL "kv: {num_blocks: 100}\ntraffic: {trace: t.jsonl}\n"

#endif
