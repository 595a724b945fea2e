"0.1 x 10 = 1 after the first run, 0.9 x 1 + 0.1 x 10 after the second. PyTorch's checkpoint does just that\n"
"(issue 96136); a tutorial advised to take the square root of the 0.9, so that two updates make one."
