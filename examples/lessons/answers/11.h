"Away and back are 2 x 1,000,000 bytes; in 4 ms they pass at 2,000,000 / 0.004 = 500,000,000 bytes a second. A\n"
"convolution takes long for its bytes, so it is copied; a ReLU takes next to no time, so it runs again."
