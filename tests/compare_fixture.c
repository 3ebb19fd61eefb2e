/*
 * compare_fixture.c - comparisons of small grids: load, run, look for a text.
 */
#include "compare_fixture.h"

#include <string.h>

#include <check.h>

#include "scenario_fixture.h"

struct pkv_grid *grid_of(const char *text)
{
    struct pkv_err err = {0};
    struct pkv_grid *grid;

    fixture_write("scenario.yaml", text);
    grid = pkv_grid_load(fixture_path("scenario.yaml"), NULL, 0, NULL, 0, &err);
    ck_assert_msg(grid != NULL, "%s:%d: %s", err.path, (int)err.line, err.text);
    return grid;
}

struct pkv_compare *compare_of(const struct pkv_grid *grid, unsigned threads,
                                      uint32_t seeds)
{
    const struct pkv_compare_config config = {.grid = grid, .num_threads = threads,
                                              .num_seeds = seeds, .check = true};
    struct pkv_err err = {0};
    struct pkv_compare *c = pkv_compare_run(&config, NULL, &err);

    ck_assert_msg(c != NULL, "%s", err.text);
    return c;
}

void expect_has(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "no '%s' in\n%.2000s", part, text);
}
