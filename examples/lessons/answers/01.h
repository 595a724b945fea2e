"Backward reads what went into each layer and what came out. One layer's output is the next one's input, so 8 layers\n"
"keep 8 arrays: 8 x 1,000 x 4 bytes. The first input is there anyway."
