"With C(n, k) for n! / (k! (n - k)!): 4 states reverse C(4 + 4, 4) = 70 steps if none is run more than r = 4 times,\n"
"so 4 x 64 runs are enough; and C(8, 5) = 56 of them can be left out."
