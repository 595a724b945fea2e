"The 5 layers on the way down all wait for their partners on the way up, and the sixth for the seventh: 5 + 1.\n"
"Cut there, and 6 tensors are kept for a segment of 6 layers: nothing is won."
