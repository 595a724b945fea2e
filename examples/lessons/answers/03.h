"Batch x height x width x channels x 4 bytes = 32 x 28 x 28 x 16 x 4. The kernel's size has no part in it: with a\n"
"larger one the layer takes more time, but its output is as large."
