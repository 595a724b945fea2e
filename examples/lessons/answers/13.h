"The gradients are cut into 4 parts. In 3 rounds each worker sends a part that is added up, in 3 more a part that is\n"
"finished: 6 x 250,000 bytes. With 1,000 workers it would be 1,998,000: hardly more."
