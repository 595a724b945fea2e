"8 outputs of 1,000 floats wait. gcp_linear's own output waits for nobody: tanh's backward reads what tanh made. So\n"
"tanh works in place, in the same bytes."
