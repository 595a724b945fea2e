/* gcp.c - the implementation, for projects that compile it once: cc -O2 -c gcp.c. Others define GCP_IMPLEMENTATION in a
   file of their own. */
#define GCP_IMPLEMENTATION
#include "gcp.h"
#include "gcp_io.h"
