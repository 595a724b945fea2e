/* feed.h - inputs for tests that do not care what is in them. */
#ifndef FEED_H
#define FEED_H
#include "gcp.h"
#include <stdio.h>
#include <string.h>

/* Zeros, which are labels, too: of inputs by their path, "a b c". */
static inline gcp_code feed_zeros(gcp_plan *plan, const char *paths)
{
    static const gcp_real zeros[1 << 16];
    char path[64];
    gcp_code code = GCP_OK;
    for (size_t n; *paths && !code; paths += n + (paths[n] == ' ')) {
        n = strcspn(paths, " ");
        snprintf(path, sizeof path, "%.*s", (int)n, paths);
        code = gcp_write(plan, gcp_find(plan->tape, path), zeros);
    }
    return code;
}
#endif
