#define GCP_IMPLEMENTATION
#include "gcp.h"
#include "gcp_cuda.h"
#include "gcp_io.h"
