/*
 * json_string.c - strings of JSON: their end, their escapes, their characters.
 *
 * A string that was scanned is known to be good UTF-8 with good escapes, so reading its characters
 * later cannot fail. U+0000 is refused: the strings of this library end with it.
 */
#include <string.h>

#include "trace/json_private.h"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The four digits of \uXXXX, or -1. */
static int32_t hex4(const char *at, const char *end)
{
    int32_t value = 0;
    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(at[i]);
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* \uXXXX, or two of them that make one character. *at stands behind the 'u'. */
static int32_t unicode_escape(const char **at, const char *end)
{
    int32_t high = hex4(*at, end);
    if (high < 0 || high == 0 || (high >= 0xdc00 && high <= 0xdfff))
        return -1;
    *at += 4;
    if (high < 0xd800 || high > 0xdbff)
        return high;
    if (end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u')
        return -1;
    int32_t low = hex4(*at + 2, end);
    if (low < 0xdc00 || low > 0xdfff)
        return -1;
    *at += 6;
    return 0x10000 + (high - 0xd800) * 0x400 + (low - 0xdc00);
}

static int32_t escape(const char **at, const char *end)
{
    if (*at == end)
        return -1;
    switch (*(*at)++) {
    case '"':  return '"';
    case '\\': return '\\';
    case '/':  return '/';
    case 'b':  return '\b';
    case 'f':  return '\f';
    case 'n':  return '\n';
    case 'r':  return '\r';
    case 't':  return '\t';
    case 'u':  return unicode_escape(at, end);
    default:   return -1;
    }
}

/* A character of more than one byte: shortest form, no surrogates, at most U+10FFFF. */
static int32_t multibyte(const char **at, const char *end)
{
    static const int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char lead = (unsigned char)**at;
    int length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || end - *at < length)
        return -1;
    int32_t c = lead & (0xff >> (length + 1));
    for (int i = 1; i < length; i++) {
        unsigned char byte = (unsigned char)(*at)[i];
        if ((byte & 0xc0) != 0x80)
            return -1;
        c = c * 64 + (byte & 0x3f);
    }
    if (c < least[length] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return -1;
    *at += length;
    return c;
}

int32_t pkv_json_next_char(const char **at, const char *end)
{
    unsigned char c = (unsigned char)**at;
    if (c == '\\') {
        (*at)++;
        return escape(at, end);
    }
    if (c >= 0x80)
        return multibyte(at, end);
    if (c < 0x20)
        return -1;
    (*at)++;
    return c;
}

static int bad_char(struct pkv_json *j, const char *at, struct pkv_err *err)
{
    unsigned char c = (unsigned char)*at;
    j->at = at;
    if (c == '\\')
        return pkv_json_fail(j, err, "this escape is not allowed in a string");
    if (c >= 0x80)
        return pkv_json_fail(j, err, "byte 0x%02x in a string is not UTF-8", c);
    return pkv_json_fail(j, err, "control character 0x%02x in a string", c);
}

static inline bool is_plain(char c)
{
    return (unsigned char)c >= 0x20 && (unsigned char)c < 0x80 && c != '"' && c != '\\';
}

int pkv_json_string(struct pkv_json *j, struct pkv_json_text *out, struct pkv_err *err)
{
    enum pkv_json_kind kind = pkv_json_peek(j);
    if (kind != PKV_JSON_STRING)
        return pkv_json_fail(j, err, "a string should stand here, not %s",
                             pkv_json_kind_name(kind));
    *out = (struct pkv_json_text){.column = pkv_json_column(j), .text = j->at + 1};
    for (const char *at = out->text;;) {
        while (at < j->end && is_plain(*at))
            at++;
        if (at == j->end)
            break;
        if (*at == '"') {
            out->length = (size_t)(at - out->text);
            j->at = at + 1;
            return 0;
        }
        const char *from = at;
        out->has_escapes |= *at == '\\';
        if (pkv_json_next_char(&at, j->end) < 0)
            return bad_char(j, from, err);
    }
    return pkv_json_fail(j, err, "the string that begins here has no end");
}

static size_t encode(int32_t c, char *out)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

size_t pkv_json_unescape(const struct pkv_json_text *string, char *out)
{
    const char *at = string->text, *end = at + string->length;
    size_t used = 0;
    if (!string->has_escapes) {
        memcpy(out, at, string->length);
        return string->length;
    }
    while (at < end)
        used += encode(pkv_json_next_char(&at, end), out + used);
    return used;
}

bool pkv_json_text_is(const struct pkv_json_text *string, const char *word)
{
    const char *at = string->text, *end = at + string->length;
    size_t length = strlen(word);
    if (!string->has_escapes)
        return string->length == length && memcmp(at, word, length) == 0;
    size_t done = 0;
    while (at < end) {
        char utf8[4];
        size_t num = encode(pkv_json_next_char(&at, end), utf8);
        if (num > length - done || memcmp(utf8, word + done, num) != 0)
            return false;
        done += num;
    }
    return done == length;
}
