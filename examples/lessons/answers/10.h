"4 x 8 x 1,024 x 4 bytes: 0.13 MB of 50.5. To run again what makes them is work for nothing. With a batch of 8,000\n"
"it would be another matter: only activations grow with the batch."
