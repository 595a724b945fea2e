#define GCP_IMPLEMENTATION
#include "gcp.h"
