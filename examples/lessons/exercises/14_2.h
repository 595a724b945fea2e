/* Exercise 2. Write the second half of a block: a layer norm, a dense layer 4 times as wide, gelu, a dense layer of
   the old width, and x added to it; all of it in a segment, so that one row of WIDTH numbers waits for each word.
   The tape is x.tape. */
static gcp_tensor exercise_2(gcp_tensor x)
{
    return x;                            /* yours */
}
