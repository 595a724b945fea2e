/* Blocks: nodes that become a segment. By the names that exporters give them, else by what repeats. */

/* Whether two parts or more stand behind this place of a scope. */
static int gcpi_onnx_nests(gcpi_excerpt scope, size_t at)
{
    int parts = 0;
    for (; at < scope.size; at++) parts += scope.at[at] == '/';
    return parts > 1;
}
/* The block that a node belongs to, by the scope that exporters write: the outermost part that ends in a number, as
   layer1.0 in /layer1/layer1.0/conv1/Conv, or encoder_layer_0 in /encoder/encoder_layer_0/mlp/Gemm and in
   /encoder/encoder_layer_0/Add behind it. (conv_1 in /conv_1/Conv is a layer.) now: the block of the node before. */
static gcpi_excerpt gcpi_onnx_scope(const gcpi_onnx_node *n, gcpi_excerpt now)
{
    gcpi_excerpt scope = n->name, rest = n->message, pair;
    while (gcpi_wire_each(&rest, GCPI_NODE_METADATA, &pair))
        if (gcpi_excerpt_is(gcpi_wire_find(pair, 1), "namespace")) scope = gcpi_wire_find(pair, 2);
    for (size_t i = 0, begin = 0; i < scope.size; i++) {
        const unsigned char c = scope.at[i];
        if (c == '/') {
            begin = i + 1;
            continue;
        }
        const int ends = i + 1 == scope.size || scope.at[i + 1] == '/' || scope.at[i + 1] == ':';
        size_t digits = i + 1;
        if (!ends || c < '0' || c > '9') continue;
        while (digits > begin && scope.at[digits - 1] >= '0' && scope.at[digits - 1] <= '9') digits--;
        if (digits == begin || (scope.at[digits - 1] != '.' && scope.at[digits - 1] != '_')) continue;
        const gcpi_excerpt part = gcpi_excerpt_of(scope.at + begin, i + 1 - begin);
        if (scope.at[digits - 1] == '.' || gcpi_onnx_nests(scope, i) || gcpi_excerpt_equal(part, now)) return part;
    }
    return gcpi_excerpt_of("", 0);
}
/* What a node is but for its names: its op, attributes and the sizes that it makes. */
static uint64_t gcpi_onnx_likeness(gcpi_onnx *m, const gcpi_onnx_node *n)
{
    const gcpi_onnx_value *y = gcpi_onnx_out(m, n, 0);
    gcpi_excerpt rest = n->message, attribute;
    uint64_t hash = gcpi_excerpt_hash(n->op) + (uint64_t)n->inputs;
    while (gcpi_wire_each(&rest, GCPI_NODE_ATTRIBUTE, &attribute))
        hash = hash * 1099511628211u + gcpi_excerpt_hash(attribute);
    for (int i = 0; y && i < y->rank; i++) hash = hash * 1099511628211u + (uint64_t)y->d[i];
    return hash;
}
/* How often the first `length` are repeated there. */
static int gcpi_onnx_repeats(const uint64_t *like, int count, int length)
{
    int times = 1;
    while ((times + 1) * length <= count && !memcmp(like, like + times * length, (size_t)length * sizeof *like))
        times++;
    return times;
}
/* Runs of alike nodes, each of at least 3 nodes, that are repeated at once. */
static void gcpi_onnx_blocks_repeated(gcpi_onnx_node **nodes, const uint64_t *like, int count)
{
    int block = 0;
    for (int first = 0; first < count;) {
        int length = 0, times = 1;
        for (int l = 3; 2 * l <= count - first; l++) {
            const int t = like[first] == like[first + l] ? gcpi_onnx_repeats(like + first, count - first, l) : 1;
            if (t > 1 && t * l > times * length) {
                length = l;
                times = t;
            }
        }
        for (int i = 0; i < length * times; i++) {
            nodes[first + i]->block = block + 1 + i / length;
            nodes[first + i]->block_name = gcpi_excerpt_of("block", 5);
        }
        block += times;
        first += length ? length * times : 1;
    }
}
/* Numbers the blocks of the nodes that are recorded; 0: a node of none. */
static void gcpi_onnx_blocks(gcpi_onnx *m)
{
    const int most = GCPI_MIN(m->node_count, 4096); /* nodes among which repeats are looked for */
    const ptrdiff_t scratch = m->arena->scratch;
    gcpi_onnx_node **nodes = GCPI_SCRATCH(m->arena, gcpi_onnx_node *, most);
    uint64_t *like = nodes ? GCPI_SCRATCH(m->arena, uint64_t, most) : NULL;
    gcpi_excerpt now = gcpi_excerpt_of("", 0);
    int count = 0, block = 0;
    for (int i = 0; i < m->node_count; i++) {
        gcpi_onnx_node *n = &m->nodes[i];
        n->block = 0;
        if (!n->needed) continue;
        n->block_name = gcpi_onnx_scope(n, now);
        if (!gcpi_excerpt_equal(n->block_name, now)) block++;
        now = n->block_name;
        n->block = now.size ? block : 0;
        if (like && count < most) {
            like[count] = gcpi_onnx_likeness(m, n);
            nodes[count] = n;
        }
        count++;
    }
    if (!block && like && count <= most) gcpi_onnx_blocks_repeated(nodes, like, count);
    m->arena->scratch = scratch;
}
