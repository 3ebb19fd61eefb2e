/*
 * test_json_scan.c - the JSON scanner: what RFC 8259 allows and nothing else, places, comparison.
 */
#include "trace/json_scan.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define NUM(array) ((int)(sizeof(array) / sizeof *(array)))

static struct pkv_json scan(const char *text)
{
    struct pkv_json j;
    pkv_json_init(&j, "rows.jsonl", 7, text, strlen(text));
    return j;
}

/* 0 when the text is one JSON value and nothing else. */
static int scan_all(const char *text, struct pkv_json_value *out, struct pkv_err *err)
{
    struct pkv_json j = scan(text);
    return pkv_json_value(&j, out, err) < 0 ? -1 : pkv_json_end(&j, err);
}

static const char *const good[] = {
    "0", "-0", "12", "-1.5", "1e5", "1E+5", "0.25e-3", "true", "false", "null", "\"\"",
    "\"a\\\"b\\\\c\\/\\b\\f\\n\\r\\t\"", "\"\\u00e9\\ud83d\\ude00\"",
    "\"\xc3\xa9\xf0\x9f\x98\x80\"",
    "[]", "[ ]", "[1]", "[1,[2,[3]]]", "{}", "{\"a\":1}",
    " { \"a\" : [ 1 , null ] , \"b\" : { } } ",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[0]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
};

START_TEST(takes_good_values)
{
    struct pkv_err err = {0};
    struct pkv_json_value value;
    ck_assert_msg(scan_all(good[_i], &value, &err) == 0, "%s: %s", good[_i], err.text);
    ck_assert_int_ne(value.kind, PKV_JSON_NONE);
}
END_TEST

static const struct {
    const char *text;
    uint32_t column;
} bad[] = {
    {"", 1}, {" ", 2}, {"nul", 1}, {"tru", 1}, {"NaN", 1}, {"Infinity", 1}, {"-", 1}, {"+1", 1},
    {"01", 1}, {"-01", 1}, {"1.", 1}, {".5", 1}, {"1e", 1}, {"1e+", 1}, {"0x1", 2}, {"1 2", 3},
    {"\"", 1}, {"\"a", 1}, {"\"a\\", 3}, {"\"\\x\"", 2}, {"\"\\u12\"", 2}, {"\"\\u0000\"", 2},
    {"\"\\ud800\"", 2}, {"\"\\ud800\\u0041\"", 2}, {"\"\\udc00\"", 2}, {"\"a\nb\"", 3},
    {"\"\x80\"", 2}, {"\"\xc0\xaf\"", 2}, {"\"\xe0\x80\xaf\"", 2}, {"\"\xed\xa0\x80\"", 2},
    {"\"\xf4\x90\x80\x80\"", 2}, {"\"\xc3", 2}, {"'a'", 1}, {"[", 2}, {"[1", 3}, {"[1,", 4},
    {"[1,]", 4}, {"[,1]", 2}, {"[1 2]", 4}, {"[1]]", 4}, {"{", 2}, {"{\"a\"}", 5},
    {"{\"a\":}", 6}, {"{\"a\":1,}", 8}, {"{a:1}", 2}, {"{\"a\":1 \"b\":2}", 8}, {"{1:2}", 2},
    {"{\"a\":1", 7}, {"[1}", 3}, {"{\"a\":1]", 7}, {"// c", 1},
    {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[0]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", 33},
};

START_TEST(refuses_bad_values_with_their_place)
{
    struct pkv_err err = {0};
    ck_assert_msg(scan_all(bad[_i].text, NULL, &err) < 0, "%s was taken", bad[_i].text);
    ck_assert_int_eq(err.code, PKV_ERR_INPUT);
    ck_assert_str_eq(err.path, "rows.jsonl");
    ck_assert_uint_eq(err.line, 7);
    ck_assert_msg(err.column == bad[_i].column, "%s: column %u: %s", bad[_i].text, err.column,
                  err.text);
    ck_assert_uint_gt(strlen(err.text), 10);
}
END_TEST

START_TEST(every_cut_of_a_row_is_an_error)
{
    static const char row[] = "{\"a\": [1, \"x\\u00e9\", {\"b\": null}], \"c\": -1.5e3, \"d\": true}";
    for (size_t length = 0; length < sizeof row - 1; length++) {
        struct pkv_json j;
        struct pkv_err err = {0};
        /* A copy of exactly this size, so that a sanitizer sees a look beyond its end. */
        char *cut = malloc(length ? length : 1);
        memcpy(cut, row, length);
        pkv_json_init(&j, "rows.jsonl", 1, cut, length);
        ck_assert_int_eq(pkv_json_value(&j, NULL, &err), -1);
        ck_assert_uint_le(err.column, length + 1);
        free(cut);
    }
    ck_assert_int_eq(scan_all(row, NULL, NULL), 0);
}
END_TEST

START_TEST(walks_members_in_order)
{
    struct pkv_json j = scan("{\"x\": 5, \"list\": [1, 2], \"s\": \"a\\nb\", \"n\": -3}");
    struct pkv_json_text key, text;
    uint64_t n = 0, items[2] = {0};
    int64_t negative = 0;
    size_t num = 0;
    char plain[8] = "";
    ck_assert_int_eq(pkv_json_enter_object(&j, NULL), 0);
    ck_assert_int_eq(pkv_json_next_member(&j, &key, NULL), 1);
    ck_assert(pkv_json_text_is(&key, "x") && !pkv_json_text_is(&key, "xy"));
    ck_assert_int_eq(pkv_json_u64(&j, 100, &n, NULL), 0);
    ck_assert_uint_eq(n, 5);
    ck_assert_int_eq(pkv_json_next_member(&j, &key, NULL), 1);
    ck_assert_int_eq(pkv_json_enter_array(&j, NULL), 0);
    ck_assert_int_eq(pkv_json_u64_items(&j, items, 1, &num, NULL), 1);
    ck_assert_uint_eq(items[0], 1);
    ck_assert_int_eq(pkv_json_u64_items(&j, items, 2, &num, NULL), 0);
    ck_assert_uint_eq(num, 1);
    ck_assert_uint_eq(items[0], 2);
    ck_assert_int_eq(pkv_json_next_member(&j, &key, NULL), 1);
    ck_assert_int_eq(pkv_json_string(&j, &text, NULL), 0);
    ck_assert_uint_eq(text.column, 31);
    ck_assert(text.has_escapes && pkv_json_text_is(&text, "a\nb"));
    ck_assert_uint_eq(pkv_json_unescape(&text, plain), 3);
    ck_assert_str_eq(plain, "a\nb");
    ck_assert_int_eq(pkv_json_next_member(&j, &key, NULL), 1);
    ck_assert_int_eq(pkv_json_i64(&j, &negative, NULL), 0);
    ck_assert_int_eq(negative, -3);
    ck_assert_int_eq(pkv_json_next_member(&j, &key, NULL), 0);
    ck_assert_int_eq(pkv_json_end(&j, NULL), 0);
}
END_TEST

static const struct {
    const char *text;
    uint64_t max;
    const char *said;       /* NULL = it is taken */
} whole[] = {
    {"5", 5, NULL}, {"18446744073709551615", UINT64_MAX, NULL}, {"0", 0, NULL},
    {"6", 5, "6 is larger than 5"},
    {"18446744073709551616", UINT64_MAX,
     "18446744073709551616 is larger than 18446744073709551615"},
    {"-1", 5, "-1 is negative"}, {"1.5", 5, "1.5 is not a whole number"},
    {"1e0", 5, "1e0 is not a whole number"}, {"007", 9, "this is not a number as JSON writes them"},
    {"\"5\"", 5, "a whole number should stand here, not a string"},
    {"null", 5, "a whole number should stand here, not null"},
    {"NaN", 5, "a whole number should stand here, not 'N'"},
    {"", 5, "the row ends here where a whole number should stand"},
};

START_TEST(whole_numbers)
{
    /* Alone, and followed by what usually follows: two ways through the scanner. */
    for (int i = 0; i < 2; i++) {
        char text[64];
        uint64_t value;
        struct pkv_err err = {0};
        if (i == 1 && !*whole[_i].text)
            continue;
        strcpy(text, whole[_i].text);
        strcat(text, i == 1 ? "," : "");
        struct pkv_json j = scan(text);
        int status = pkv_json_u64(&j, whole[_i].max, &value, &err);
        ck_assert_int_eq(status, whole[_i].said ? -1 : 0);
        if (status < 0)
            ck_assert_str_eq(err.text, whole[_i].said);
        else
            ck_assert_uint_eq(value, strtoull(whole[_i].text, NULL, 10));
    }
}
END_TEST

START_TEST(unescapes_to_utf8)
{
    struct pkv_json j = scan("\"\\u00e9\\u20ac\\ud83d\\ude00z\"");
    struct pkv_json_text text;
    char out[32] = "";
    ck_assert_int_eq(pkv_json_string(&j, &text, NULL), 0);
    size_t length = pkv_json_unescape(&text, out);
    ck_assert_str_eq(out, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z");
    ck_assert_uint_le(length, text.length);
}
END_TEST

static const struct {
    const char *a, *b;
    const char *path;       /* of the difference; NULL = equal */
} pairs[] = {
    {"1", "1", NULL}, {"1", "2", ""}, {"1", "1.0", NULL}, {"100", "1e2", NULL},
    {"0.001", "1e-3", NULL}, {"1.5", "15e-1", NULL}, {"0", "-0.0", NULL}, {"0", "0e9", NULL},
    {"1", "-1", ""}, {"1", "10", ""}, {"1.5", "1.50001", ""}, {"0.1", "0.01", ""},
    {"12345678901234567890", "12345678901234567891", ""},
    {"\"a\"", "\"a\"", NULL}, {"\"\\u0061\"", "\"a\"", NULL}, {"\"a\"", "\"ab\"", ""},
    {"true", "true", NULL}, {"true", "false", ""}, {"null", "0", ""}, {"1", "\"1\"", ""},
    {"[1,2]", "[1, 2]", NULL}, {"[1,2]", "[1]", "[1]"}, {"[1]", "[1,2]", "[1]"},
    {"[1,2,3]", "[1,9,3]", "[1]"}, {"[]", "{}", ""},
    {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", NULL},
    {"{\"a\":1}", "{\"a\":1,\"b\":2}", "b"}, {"{\"a\":1,\"b\":2}", "{\"a\":1}", "b"},
    {"{\"blocks\":{\"r1\":[[5,6,7]]}}", "{\"blocks\":{\"r1\":[[5,6,8]]}}", "blocks.r1[0][2]"},
    {"{\"a\":[],\"b\":{}}", "{\"b\":{},\"a\":[]}", NULL},
    {"{\"\\u0061\":1}", "{\"a\":1}", NULL},
};

START_TEST(compares_values)
{
    struct pkv_json_value a, b;
    struct pkv_json_difference difference;
    ck_assert_int_eq(scan_all(pairs[_i].a, &a, NULL), 0);
    ck_assert_int_eq(scan_all(pairs[_i].b, &b, NULL), 0);
    bool same = pkv_json_equal(&a, &b, &difference);
    ck_assert_int_eq(same, pairs[_i].path == NULL);
    ck_assert_int_eq(pkv_json_equal(&b, &a, NULL), same);
    if (!same)
        ck_assert_str_eq(difference.path, pairs[_i].path);
}
END_TEST

START_TEST(difference_has_both_sides)
{
    struct pkv_json_value a, b;
    struct pkv_json_difference d;
    ck_assert_int_eq(scan_all("{\"free\": 5, \"x\": 1}", &a, NULL), 0);
    ck_assert_int_eq(scan_all("{\"x\": 1, \"free\": 12}", &b, NULL), 0);
    ck_assert(!pkv_json_equal(&a, &b, &d));
    ck_assert(d.a.raw.length == 1 && memcmp(d.a.raw.text, "5", 1) == 0);
    ck_assert(d.b.raw.length == 2 && memcmp(d.b.raw.text, "12", 2) == 0);
    ck_assert_int_eq(scan_all("{\"x\": 1}", &b, NULL), 0);
    ck_assert(!pkv_json_equal(&a, &b, &d));
    ck_assert_int_eq(d.b.kind, PKV_JSON_NONE);
    ck_assert(!pkv_json_equal(&b, &a, &d));
    ck_assert_int_eq(d.a.kind, PKV_JSON_NONE);
    ck_assert_int_eq(d.b.kind, PKV_JSON_NUMBER);
}
END_TEST

START_TEST(reopens_a_value)
{
    struct pkv_json j = scan("[[1], [2, 3]]"), inner;
    struct pkv_json_value value;
    struct pkv_err err = {0};
    uint64_t n;
    ck_assert_int_eq(pkv_json_enter_array(&j, NULL), 0);
    ck_assert_int_eq(pkv_json_next_item(&j, NULL), 1);
    ck_assert_int_eq(pkv_json_value(&j, &value, NULL), 0);
    ck_assert_int_eq(pkv_json_next_item(&j, NULL), 1);
    ck_assert_int_eq(pkv_json_value(&j, &value, NULL), 0);
    ck_assert_int_eq(pkv_json_next_item(&j, NULL), 0);
    pkv_json_reopen(&inner, &j, &value);
    ck_assert_int_eq(pkv_json_enter_array(&inner, NULL), 0);
    ck_assert_int_eq(pkv_json_need_item(&inner, "a number", NULL), 0);
    ck_assert_int_eq(pkv_json_u64(&inner, 9, &n, NULL), 0);
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(pkv_json_need_array_end(&inner, &err), -1);
    ck_assert_uint_eq(err.column, 11);      /* still counted from the row's beginning */
}
END_TEST

int main(void)
{
    Suite *s = suite_create("json_scan");
    TCase *c = tcase_create("json_scan");
    tcase_add_loop_test(c, takes_good_values, 0, NUM(good));
    tcase_add_loop_test(c, refuses_bad_values_with_their_place, 0, NUM(bad));
    tcase_add_test(c, every_cut_of_a_row_is_an_error);
    tcase_add_test(c, walks_members_in_order);
    tcase_add_loop_test(c, whole_numbers, 0, NUM(whole));
    tcase_add_test(c, unescapes_to_utf8);
    tcase_add_loop_test(c, compares_values, 0, NUM(pairs));
    tcase_add_test(c, difference_has_both_sides);
    tcase_add_test(c, reopens_a_value);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
