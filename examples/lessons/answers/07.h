"3 x 32 x 32 x 16 x 4. The least budget has besides the weights and their gradients, the input, scratch, and what\n"
"must be there to make that layer's input again."
