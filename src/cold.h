/* From here to warm.h: code that runs once per plan or step. Where the user optimises at all, gcc takes -Og for it and
   compiles gcp.h in three quarters of the time; plans and steps take as long as before. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#ifdef __OPTIMIZE__
#pragma GCC optimize("Og")
#endif
#endif
