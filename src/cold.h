/* From here to warm.h: what runs once a plan or once an instruction. gcc takes -Og for it where the user optimises at
   all, and compiles gcp.h in three quarters of the time; plans and steps take as long as before. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#ifdef __OPTIMIZE__
#pragma GCC optimize("Og")
#endif
#endif
