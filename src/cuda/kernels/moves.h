/* Elements moved by strides: concat and slice along any axis, transpose. */

struct gcpi_moves { gcpi_cuda_moved m; size_t count; };
__global__ void gcpi_moved_kernel(gcpi_moves v)
{
    size_t i = gcpi_thread();
    ptrdiff_t to = 0, from = 0;
    if (i >= v.count) return;
    for (int k = 3; k >= 0; k--) {
        const ptrdiff_t at = (ptrdiff_t)(i % (size_t)v.m.size[k]);
        i /= (size_t)v.m.size[k];
        to += at * v.m.ts[k];
        from += at * v.m.fs[k];
    }
    gcpi_set(v.m.to, to, gcpi_get(v.m.from, from), v.m.accumulate);
}
/* Where `from` lies side by side along another axis (across) than `to` does, 32 by 32 elements go through shared
   memory. */
struct gcpi_turns { gcpi_cuda_moved m; int across, rest[2]; unsigned tiles[2]; };
__global__ void gcpi_turned_kernel(gcpi_turns v)
{
    __shared__ float tile[32][33];
    const unsigned column = threadIdx.x % 32, row = threadIdx.x / 32, rows = (unsigned)v.m.size[v.across],
                   columns = (unsigned)v.m.size[3];
    unsigned block = blockIdx.x;
    const unsigned r = block % v.tiles[0] * 32, c = block / v.tiles[0] % v.tiles[1] * 32;
    block /= v.tiles[0] * v.tiles[1];
    const ptrdiff_t a = (ptrdiff_t)(block % (unsigned)v.m.size[v.rest[0]]),
                    b = (ptrdiff_t)(block / (unsigned)v.m.size[v.rest[0]]);
    const gcpi_cuda_array from = gcpi_at(v.m.from, a * v.m.fs[v.rest[0]] + b * v.m.fs[v.rest[1]]),
                          to = gcpi_at(v.m.to, a * v.m.ts[v.rest[0]] + b * v.m.ts[v.rest[1]]);
    for (unsigned k = row; k < 32; k += 8)
        if (c + k < columns && r + column < rows)
            tile[k][column] = gcpi_get(from, (ptrdiff_t)(c + k) * v.m.fs[3] + r + column);
    __syncthreads();
    for (unsigned k = row; k < 32; k += 8) {
        if (r + k >= rows || c + column >= columns) continue;
        gcpi_set(to, (ptrdiff_t)(r + k) * v.m.ts[v.across] + c + column, tile[column][k], v.m.accumulate);
    }
}
void gcpi_cuda_move(const gcpi_cuda_moved *m, cudaStream_t stream)
{
    gcpi_moves moves = { *m, (size_t)m->size[0] * (size_t)m->size[1] * (size_t)m->size[2] * (size_t)m->size[3] };
    gcpi_turns t = { *m, -1, { 0, 0 }, { 0, 0 } };
    for (int k = 0; k < 3 && m->fs[3] != 1 && m->ts[3] == 1; k++) if (m->fs[k] == 1 && m->size[k] > 1) t.across = k;
    if (t.across < 0) { GCPI_EACH(gcpi_moved_kernel, moves.count, moves); return; }
    for (int k = 0, n = 0; k < 3; k++) if (k != t.across) t.rest[n++] = k;
    t.tiles[0] = gcpi_blocks((size_t)m->size[t.across], 32);
    t.tiles[1] = gcpi_blocks((size_t)m->size[3], 32);
    const unsigned matrices = (unsigned)m->size[t.rest[0]] * (unsigned)m->size[t.rest[1]];
    GCP_LAUNCH(gcpi_turned_kernel, t.tiles[0] * t.tiles[1] * matrices, 256, 0, stream, t);
}
