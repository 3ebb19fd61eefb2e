/*
 * step_time.c - fixed and affine step times, in whole nanoseconds.
 *
 * Products are formed in 128 bits, so no input can overflow.
 */
#include "pagedkv/model.h"

#include "pagedkv/err.h"

static int64_t affine_ns(const struct pkv_step_time *law, const struct pkv_step_work *work)
{
    __int128 prefill = (__int128)work->num_prefill_tokens * law->per_prefill_token_ns;
    __int128 sum = prefill > law->base_ns ? prefill : law->base_ns;
    sum += (__int128)work->num_decodes * law->per_decode_ns;
    sum += (__int128)work->num_context_tokens * law->per_context_token_ns;
    return sum < PKV_LONGEST_STEP_NS ? (int64_t)sum : PKV_LONGEST_STEP_NS;
}

int64_t pkv_step_time_ns(const struct pkv_step_time *law, const struct pkv_step_work *work)
{
    switch (law->law) {
    case PKV_STEP_TIME_FIXED:
        return law->fixed_ns < PKV_LONGEST_STEP_NS ? law->fixed_ns : PKV_LONGEST_STEP_NS;
    case PKV_STEP_TIME_AFFINE:
        return affine_ns(law, work);
    case PKV_STEP_TIME_LAW_COUNT:
        break;
    }
    PKV_UNREACHABLE("a step time law");
}

const char *pkv_step_time_law_name(enum pkv_step_time_law law)
{
#define PKV_NAME(sym, word) [sym] = word,
    static const char *const names[] = {PKV_STEP_TIME_LAWS(PKV_NAME)};
#undef PKV_NAME
    PKV_ASSERT((unsigned)law < PKV_STEP_TIME_LAW_COUNT);
    return names[law];
}
