/* gcp.c - the implementation, for projects that compile it once: cc -O2 -c gcp.c. Others define GCP_IMPLEMENTATION in a
   file of their own. */
#define GCP_IMPLEMENTATION
#include "gcp.h"
#if !defined(__has_include)
#include "gcp_io.h"
#include "gcp_onnx.h"
#else
#if __has_include("gcp_io.h")            /* without it there are no files */
#include "gcp_io.h"
#if __has_include("gcp_onnx.h")          /* without it there are no models of others */
#include "gcp_onnx.h"
#endif
#endif
#endif
