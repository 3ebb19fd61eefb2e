/*
 * assert_text.h - the sentence of a failed assertion, for a debugger, a core dump, or a handler of
 * SIGABRT in the program. Empty while the program is right.
 */
#ifndef PKV_BASE_ASSERT_TEXT_H
#define PKV_BASE_ASSERT_TEXT_H

extern char pkv_assert_text[512];

#endif
