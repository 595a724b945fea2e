/* kernels.cpp - gcp's kernels, the CUDA runtime and cuBLAS as one C++ file for the CPU. */
#define HOSTCUDA_IMPLEMENTATION
#ifdef __clang__
/* gcp_gpu has default initialisers in C++; a C program never sees that */
#pragma clang diagnostic ignored "-Wreturn-type-c-linkage"
#endif
#include "cublasLt.h"
#include "../kernels.cu"
