/* Embedding. Backward: positions are sorted by their entry, those of one entry in order (keys: entry << 32 |
   position). Then a block an entry adds the gradients of its positions. */

GCPI_DEVICE size_t gcpi_entry(const int *ids, size_t i, size_t entries)
{
    return ids[i] < 0 || (size_t)ids[i] >= entries ? 0 : (size_t)ids[i];
}
__global__ void gcpi_embedding_kernel(gcp_view y, const int *ids, gcp_view table, size_t entries)
{
    const gcpi_cuda_array from = gcpi_pixel_of(table, gcpi_entry(ids, blockIdx.x, entries)),
                          to = gcpi_pixel_of(y, blockIdx.x);
    for (int c = (int)threadIdx.x; c < table.shape.d[3]; c += (int)blockDim.x) gcpi_set(to, c, gcpi_get(from, c));
}
/* Sorts each 256 keys: a key's place is how many are less. */
__global__ void gcpi_sort_kernel(const int *ids, size_t count, size_t entries, uint64_t *keys)
{
    __shared__ uint64_t block[256];
    const size_t i = gcpi_thread();
    const uint64_t key = i < count ? (uint64_t)gcpi_entry(ids, i, entries) << 32 | i : UINT64_MAX;
    unsigned place = 0;
    block[threadIdx.x] = key;
    __syncthreads();
    for (int k = 0; k < 256; k++) place += block[k] < key;
    if (i < count) keys[(size_t)blockIdx.x * 256 + place] = key;
}
/* Merges pairs of sorted runs: a key moves on by how many of the other run are less. */
__global__ void gcpi_merge_kernel(const uint64_t *from, uint64_t *to, size_t count, size_t run)
{
    const size_t i = gcpi_thread();
    if (i >= count) return;
    const size_t own = i / run, pair = own / 2 * 2 * run, first = (own ^ 1) * run;
    size_t low = first < count ? first : count, high = first + run < count ? first + run : count;
    const size_t begin = low;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (from[middle] < from[i]) low = middle + 1;
        else high = middle;
    }
    to[pair + (i - own * run) + (low - begin)] = from[i];
}
__global__ void gcpi_embedding_back_kernel(gcp_view d, const uint64_t *keys, gcp_view dy, size_t count)
{
    const size_t me = blockIdx.x, entry = (size_t)(keys[me] >> 32);
    if (me && keys[me - 1] >> 32 == entry) return;
    for (int c = (int)threadIdx.x; c < d.shape.d[3]; c += (int)blockDim.x) {
        float *to = (float *)d.data + (ptrdiff_t)entry * d.pitch + c, sum = *to;
        for (size_t i = me; i < count && keys[i] >> 32 == entry; i++) sum += gcpi_value(dy, (unsigned)keys[i], c);
        *to = sum;
    }
}
void gcpi_cuda_embedding(gcp_view y, gcp_view ids, gcp_view table, cudaStream_t stream)
{
    GCP_LAUNCH(gcpi_embedding_kernel, (unsigned)gcpi_count_of(ids.shape), 128, 0, stream, y, (const int *)ids.data,
               table, gcpi_pixels_of(table.shape));
}
size_t gcpi_cuda_embedding_workspace(gcp_shape ids) { return 2 * gcpi_count_of(ids) * sizeof(uint64_t); }
void gcpi_cuda_embedding_back(gcp_view d, gcp_view ids, gcp_view dy, void *workspace, cudaStream_t stream)
{
    const gcp_view none = {};
    const size_t count = gcpi_count_of(ids.shape);
    uint64_t *keys = (uint64_t *)workspace, *other = keys + count;
    if (!d.accumulate) gcpi_cuda_map(GCPI_FN_FILL, d, none, none, 0, 0, stream);
    GCPI_EACH(gcpi_sort_kernel, count, (const int *)ids.data, count, gcpi_pixels_of(d.shape), keys);
    for (size_t run = 256; run < count; run *= 2) {
        GCPI_EACH(gcpi_merge_kernel, count, (const uint64_t *)keys, other, count, run);
        uint64_t *merged = other;
        other = keys;
        keys = merged;
    }
    GCP_LAUNCH(gcpi_embedding_back_kernel, (unsigned)count, 128, 0, stream, d, (const uint64_t *)keys, dy, count);
}
