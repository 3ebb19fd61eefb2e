/*
 * test_units.c - numbers as people write them. Expected values are arithmetic by hand.
 */
#include "base/units.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define NUM(array) ((int)(sizeof(array) / sizeof *(array)))

static const struct {
    const char *text;
    uint64_t max;
    int status;
    uint64_t value;
    const char *why;
} whole[] = {
    {"0", 10, 0, 0, NULL},
    {"42", 100, 0, 42, NULL},
    {"4294967295", UINT32_MAX, 0, UINT32_MAX, NULL},
    {"4294967296", UINT32_MAX, -1, 0, "is larger than 4294967295"},
    {"18446744073709551615", UINT64_MAX, 0, UINT64_MAX, NULL},
    {"18446744073709551616", UINT64_MAX, -1, 0, "is larger than 18446744073709551615"},
    {"99999999999999999999999", UINT64_MAX, -1, 0, "is larger than 18446744073709551615"},
    {"101", 100, -1, 0, "is larger than 100"},
    {"-5", 100, -1, 0, "is negative"},
    {"12k", 100, -1, 0, "is not a whole number"},
    {"1.5", 100, -1, 0, "is not a whole number"},
    {"1e3", 100, -1, 0, "is not a whole number"},
    {"nan", 100, -1, 0, "is not a whole number"},
    {" 1", 100, -1, 0, "is not a whole number"},
    {"0x10", 100, -1, 0, "is not a whole number"},
    {"", 100, -1, 0, "is empty"},
};

START_TEST(parse_u64)
{
    uint64_t value = 77;
    const char *why = NULL;
    const char *text = whole[_i].text;
    int status = pkv_parse_u64(text, strlen(text), whole[_i].max, &value, &why);
    ck_assert_int_eq(status, whole[_i].status);
    ck_assert_uint_eq(value, status ? 77 : whole[_i].value);
    if (status)
        ck_assert_str_eq(why, whole[_i].why);
    ck_assert_int_eq(pkv_parse_u64(text, strlen(text), whole[_i].max, &value, NULL), status);
}
END_TEST

static const struct {
    const char *text;
    int status;
    int64_t value;
    const char *why;
} signed_whole[] = {
    {"0", 0, 0, NULL},
    {"-0", 0, 0, NULL},
    {"-7", 0, -7, NULL},
    {"9223372036854775807", 0, INT64_MAX, NULL},
    {"-9223372036854775808", 0, INT64_MIN, NULL},
    {"9223372036854775808", -1, 0, "is larger than 9223372036854775807"},
    {"-9223372036854775809", -1, 0, "is smaller than -9223372036854775808"},
    {"-", -1, 0, "is not a whole number"},
    {"--1", -1, 0, "is not a whole number"},
    {"1.0", -1, 0, "is not a whole number"},
    {"", -1, 0, "is empty"},
};

START_TEST(parse_i64)
{
    int64_t value = 77;
    const char *why = NULL;
    const char *text = signed_whole[_i].text;
    int status = pkv_parse_i64(text, strlen(text), &value, &why);
    ck_assert_int_eq(status, signed_whole[_i].status);
    ck_assert_int_eq(value, status ? 77 : signed_whole[_i].value);
    if (status)
        ck_assert_str_eq(why, signed_whole[_i].why);
}
END_TEST

static const struct {
    const char *text;
    int status;
    double value;
} doubles[] = {
    {"0.9", 0, 0.9},       {"-2.5e3", 0, -2500},
    {"1e-7", 0, 1e-7},     {".5", 0, 0.5},
    {"5.", 0, 5},          {"0.1000000000000000055511151231257827", 0, 0.1},
    {"inf", -1, 0},        {"nan", -1, 0},
    {"0x1p3", -1, 0},      {"1e400", -1, 0},
    {"1,5", -1, 0},        {"", -1, 0},
    {"1e", -1, 0},         {".", -1, 0},
    {"1 ", -1, 0},         {"+-1", -1, 0},
};

START_TEST(parse_double)
{
    double value = 77;
    const char *why = NULL;
    const char *text = doubles[_i].text;
    int status = pkv_parse_double(text, strlen(text), &value, &why);
    ck_assert_int_eq(status, doubles[_i].status);
    ck_assert_double_eq(value, status ? 77 : doubles[_i].value);
    ck_assert(status == 0 || why);
}
END_TEST

#define MS INT64_C(1000000)
#define S INT64_C(1000000000)
static const struct {
    const char *text;
    int64_t unit;
    int status;
    int64_t value;
} decimals[] = {
    {"46.926808", MS, 0, 46926808},
    {"3536999", MS, 0, INT64_C(3536999000000)},
    {"0.0000019", MS, 0, 1},                       /* 1.9 ns: cut, not rounded */
    {"-0.0000019", MS, 0, -1},
    {"5.8926549999999995", S, 0, INT64_C(5892654999)},
    {"1e3", MS, 0, S},
    {"2.5E-3", S, 0, 2500000},
    {"1500e-3", S, 0, 1500000000},
    {"0.1", S, 0, 100000000},                      /* no double in between */
    {"9223372036854.775807", MS, 0, INT64_MAX},
    {"9223372036854.775808", MS, -1, 0},
    {"9223372036.854775807999", S, 0, INT64_MAX},
    {"1e30", MS, -1, 0},
    {"1e99999999999999999999", MS, -1, 0},
    {"0e99999999999999999999", MS, 0, 0},
    {"1e-99999999999999999999", MS, 0, 0},
    {"000000000000000000000000012.5", MS, 0, 12500000},
    {"12k", MS, -1, 0},
    {"", MS, -1, 0},
    {"1.2.3", MS, -1, 0},
    {"-", MS, -1, 0},
};

START_TEST(parse_decimal_ns)
{
    int64_t value = 77;
    const char *why = NULL;
    const char *text = decimals[_i].text;
    int status = pkv_parse_decimal_ns(text, strlen(text), decimals[_i].unit, &value, &why);
    ck_assert_int_eq(status, decimals[_i].status);
    ck_assert_int_eq(value, status ? 77 : decimals[_i].value);
    ck_assert(status == 0 || why);
}
END_TEST

static const struct {
    const char *text;
    int64_t scale;
    int status;
    int64_t value;
    const char *why;
} scaled[] = {
    {"0.7", 1000, 0, 700, NULL},
    {"1", 1000, 0, 1000, NULL},
    {"-0.25", 100, 0, -25, NULL},
    {"-2.5", 10, 0, -25, NULL},
    {"0.140", 100, 0, 14, NULL},
    {"0.145", 100, -1, 0, "has more than 2 decimals"},
    {"1.", 100, -1, 0, "is not a number"},
    {".5", 100, -1, 0, "is not a number"},
    {"1e2", 100, -1, 0, "is not a whole number"},
    {"0.5x", 100, -1, 0, "is not a number"},
    {"9223372036854775807", 10, -1, 0, "is out of range"},
    {"", 10, -1, 0, "is empty"},
};

START_TEST(parse_scaled)
{
    int64_t value = 77;
    const char *why = NULL, *text = scaled[_i].text;
    int status = pkv_parse_scaled(text, strlen(text), scaled[_i].scale, &value, &why);
    ck_assert_int_eq(status, scaled[_i].status);
    ck_assert_int_eq(value, status ? 77 : scaled[_i].value);
    if (status)
        ck_assert_str_eq(why, scaled[_i].why);
}
END_TEST

static const struct {
    const char *text;
    int64_t bare;
    int status;
    int64_t value;
} times[] = {
    {"1ms", 1, 0, MS},            {"2.5s", 1, 0, 2500000000},
    {"10us", 1, 0, 10000},        {"3ns", 1, 0, 3},
    {"2m", 1, 0, 120 * S},        {"2min", 1, 0, 120 * S},
    {"1.5h", 1, 0, 5400 * S},     {"0.00000000012h", 1, 0, 432},
    {"7", MS, 0, 7 * MS},         {"0.5", S, 0, 500000000},
    {"1 ms", 1, 0, MS},           {"1ks", 1, -1, 0},
    {"ms", 1, -1, 0},             {"", 1, -1, 0},
    {"3000000h", 1, -1, 0},       {"1msx", 1, -1, 0},
};

START_TEST(parse_time_ns)
{
    int64_t value = 77;
    const char *why = NULL;
    const char *text = times[_i].text;
    int status = pkv_parse_time_ns(text, strlen(text), times[_i].bare, &value, &why);
    ck_assert_int_eq(status, times[_i].status);
    ck_assert_int_eq(value, status ? 77 : times[_i].value);
    ck_assert(status == 0 || why);
}
END_TEST

static const struct {
    const char *text;
    int status;
    uint64_t value;
} bytes[] = {
    {"4096B", 0, 4096}, {"0", 0, 0}, {"0.0", 0, 0},
    {"4096", -1, 0}, {"25", -1, 0}, {"0.5", -1, 0}, {"1e9", -1, 0},
    {"40GiB", 0, UINT64_C(42949672960)},
    {"80GB", 0, UINT64_C(80000000000)},
    {"512MiB", 0, UINT64_C(536870912)},
    {"1TiB", 0, UINT64_C(1099511627776)},
    {"1.5KiB", 0, 1536},
    {"0.1GiB", 0, 107374182},                      /* 107374182.4: cut */
    {"16777216TiB", -1, 0},                        /* 2^64 */
    {"16777215TiB", 0, UINT64_C(18446742974197923840)},
    {"-1GB", -1, 0},
    {"40 GiB", 0, UINT64_C(42949672960)},
    {"40gib", -1, 0},
    {"GiB", -1, 0},
    {"", -1, 0},
};

START_TEST(parse_bytes)
{
    uint64_t value = 77;
    const char *why = NULL;
    const char *text = bytes[_i].text;
    int status = pkv_parse_bytes(text, strlen(text), &value, &why);
    ck_assert_int_eq(status, bytes[_i].status);
    ck_assert_uint_eq(value, status ? 77 : bytes[_i].value);
    ck_assert(status == 0 || why);
}
END_TEST

START_TEST(format_count)
{
    char out[32];
    ck_assert_str_eq(pkv_format_count(0, out), "0");
    ck_assert_str_eq(pkv_format_count(999, out), "999");
    ck_assert_str_eq(pkv_format_count(1000, out), "1,000");
    ck_assert_str_eq(pkv_format_count(1234567, out), "1,234,567");
    ck_assert_str_eq(pkv_format_count(UINT64_MAX, out), "18,446,744,073,709,551,615");
}
END_TEST

static const struct {
    int64_t ns;
    const char *text;
} durations[] = {
    {0, "0 ns"},                  {999, "999 ns"},
    {12345, "12.3 us"},           {12345678, "12.3 ms"},
    {1500000000, "1.50 s"},       {59989999999, "59.99 s"},
    {2048000000, "2.05 s"},       {2044999999, "2.04 s"},
    {999949, "999.9 us"},         {999950, "1.0 ms"},
    {999950000, "1.00 s"},        {59995000000, "1 min 0 s"},
    {3599 * S + S / 2, "1 h 0 min"}, {3629 * S, "1 h 0 min"},
    {3630 * S, "1 h 1 min"},      {3599 * S, "59 min 59 s"},
    {123 * S, "2 min 3 s"},       {7380 * S, "2 h 3 min"},
    {-1500000000, "-1.50 s"},     {INT64_MIN, "-2562047 h 47 min"},
};

START_TEST(format_duration)
{
    char out[64];
    ck_assert_str_eq(pkv_format_duration(durations[_i].ns, out, sizeof out), durations[_i].text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("units");
    TCase *c = tcase_create("units");
    tcase_add_loop_test(c, parse_u64, 0, NUM(whole));
    tcase_add_loop_test(c, parse_i64, 0, NUM(signed_whole));
    tcase_add_loop_test(c, parse_double, 0, NUM(doubles));
    tcase_add_loop_test(c, parse_decimal_ns, 0, NUM(decimals));
    tcase_add_loop_test(c, parse_scaled, 0, NUM(scaled));
    tcase_add_loop_test(c, parse_time_ns, 0, NUM(times));
    tcase_add_loop_test(c, parse_bytes, 0, NUM(bytes));
    tcase_add_test(c, format_count);
    tcase_add_loop_test(c, format_duration, 0, NUM(durations));
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
