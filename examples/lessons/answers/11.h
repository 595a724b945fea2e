"Away and back are 2 x 1,000,000 bytes, and 4 ms is the time for them. A convolution takes long for its bytes, so it\n"
"is copied; a ReLU takes next to no time, so it runs again."
