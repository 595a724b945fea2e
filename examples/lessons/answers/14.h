"8 x 256 x 256 x 4 bytes, for one block and one text. With 1,024 words it would be 16 times as much."
