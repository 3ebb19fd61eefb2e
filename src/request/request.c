/*
 * request.c - a request's status and the ways between them. The only writer of status.
 */
#include "pagedkv/request.h"

#include <inttypes.h>
#include <stdio.h>

const char *pkv_request_status_name(enum pkv_request_status status)
{
#define PKV_NAME(sym, word) [sym] = word,
    static const char *const names[] = {PKV_REQUEST_STATUSES(PKV_NAME)};
#undef PKV_NAME
    PKV_ASSERT((unsigned)status < PKV_REQUEST_STATUS_COUNT);
    return names[status];
}

static bool may_become(enum pkv_request_status from, enum pkv_request_status to)
{
    switch (from) {
    case PKV_REQUEST_WAITING:
        return to == PKV_REQUEST_RUNNING || to == PKV_REQUEST_ABORTED ||
               to == PKV_REQUEST_REJECTED || to == PKV_REQUEST_UNFINISHED;
    case PKV_REQUEST_RUNNING:
        return to != PKV_REQUEST_WAITING && to != PKV_REQUEST_REJECTED &&
               to != PKV_REQUEST_RESUMING;
    case PKV_REQUEST_SWAPPED:
        return to == PKV_REQUEST_RUNNING || to == PKV_REQUEST_RESUMING ||
               to == PKV_REQUEST_ABORTED || to == PKV_REQUEST_UNFINISHED;
    case PKV_REQUEST_RESUMING:
    case PKV_REQUEST_PREEMPTED:
        return to == PKV_REQUEST_RUNNING || to == PKV_REQUEST_ABORTED ||
               to == PKV_REQUEST_COMPLETED || to == PKV_REQUEST_UNFINISHED;
    case PKV_REQUEST_COMPLETED:
    case PKV_REQUEST_ABORTED:
    case PKV_REQUEST_REJECTED:
    case PKV_REQUEST_UNFINISHED:
    case PKV_REQUEST_STATUS_COUNT:
        break;
    }
    return false;
}

void pkv_request_set_status(struct pkv_request *request, enum pkv_request_status status)
{
    PKV_ASSERT(request->status != status && may_become(request->status, status));
    request->status = status;
}

struct pkv_request_ref pkv_request_ref(struct pkv_request *request)
{
    return (struct pkv_request_ref){request, request->generation};
}

struct pkv_request *pkv_request_get(struct pkv_request_ref ref)
{
    return ref.request && ref.request->generation == ref.generation ? ref.request : NULL;
}

size_t pkv_request_id(const struct pkv_request *request, char *out, size_t size)
{
    int length = request->id ? snprintf(out, size, "%s", request->id)
                             : snprintf(out, size, "%" PRIu64, request->row);
    return length < 0 ? 0 : (size_t)length;
}
