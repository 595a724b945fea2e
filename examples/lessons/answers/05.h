"The input and the ends of 5 segments are kept: 36/6 = 6 tensors. (The sixth end is used up by the first backward.)\n"
"Backward holds the inside of one segment at a time, 5, and one gradient, which works in place: 6 + 5 + 1."
