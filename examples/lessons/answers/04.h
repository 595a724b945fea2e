"The segment's output crosses its border: it is kept. Its 3 inner outputs are dropped, so 8 - 3 = 5 tensors wait.\n"
"Backward makes the 3 again from what went into the segment, which layer 1 left anyway."
