/*
 * startup_private.h - a start-up log being read, between the files that do it.
 */
#ifndef PKV_SCENARIO_STARTUP_PRIVATE_H
#define PKV_SCENARIO_STARTUP_PRIVATE_H

#include "pagedkv/scenario.h"

struct startup_reader {
    struct pkv_startup_log *log;
    uint64_t line;
    uint64_t overfull_line;          /* where one rank too many printed its memory; 0 = none */
    bool is_v0, is_v1;               /* as its lines tell */
    uint64_t bad_line;               /* where a number first was above what any engine has; 0 = nowhere */
    uint64_t bad_most;
    char bad_key[40], bad_number[40];   /* its key and its digits, cut to what fits */
    bool has_cache_word;             /* prefix caching was said to be on or off */
};

/* Digits, with commas between them; *text goes behind them. False = none, or too many. */
bool line_take_count(const char **text, uint64_t *out);
/* A decimal in hundredths; further digits are left out. */
bool line_take_hundredths(const char *text, uint32_t *out);
/* What stands behind a phrase; NULL = it is not in the line. */
const char *line_after(const char *line, const char *phrase);
/* The value of a setting, written key=value, 'key': value or "key": value; NULL = not in the line. */
const char *line_setting(const char *line, const char *key);
/* A word, in quotes or not; None is none, and leaves *out as it is. */
void line_set_word(const char *line, const char *key, char *out, size_t size);

/* A count of at most `most`; false = there is none, or it is larger, which is kept as the first bad
 * number of the log. *text, which may be NULL, goes behind it. */
bool startup_take(struct startup_reader *r, const char *key, const char **text, uint64_t most,
                  uint64_t *out);
void startup_read_settings(struct startup_reader *r, const char *line);
/* Settings in brackets of their own within the line, which are blank in it afterwards. */
void startup_read_nested(struct startup_reader *r, char *line);

#endif
