#if defined(__clang__)
#pragma STDC FP_CONTRACT DEFAULT
#endif
#if defined(__clang__) && (defined(__x86_64__) || defined(__i386__))
#pragma float_control(pop)
#elif defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#elif defined(_MSC_VER) && !defined(__clang__)
#pragma float_control(pop)
#endif
