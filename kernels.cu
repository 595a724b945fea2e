/* kernels.cu - the kernels of gcp_cuda.h. MIT licence, see gcp.h.

   gcp_cuda.h says how to compile it; the single file to copy is dist/kernels.cu. The same text compiles as C++ against
   the host emulation in hostcuda, where every line is run. What that asks of it: launches only by GCP_LAUNCH, dynamic
   shared memory only by GCP_DYN_SHARED, PTX only in wrappers that have a host twin, warp collectives with explicit
   masks, at most 256 threads a block. No atomics: every sum has one order, given by shapes. Products that are meant to
   be fused say fmaf (compile with -fmad=false).

   Which kernels serve an op (gcpi_NAME_kernel, in the order of their launches), and in which room they are:
     op                            forward                   backward                                     room
     conv2d (implicit GEMM)        gather (of halves: map    transpose_weights, gather                    implicit
                                   of the weights before it)
     conv_transpose2d              transpose_weights, gather gather                                       implicit
       either's weights, bias                                weights, weights_sum; sum_blocks, sum_finish wgrad, reduce
       with groups (depthwise)     direct                    direct; direct_weights, weights_sum          grouped
       with stride and dilation    gather                    direct; weights, weights_sum                 grouped
       what follows conv2d         in gather's epilogue: an addition, ReLU, or statistics, then sum_finish  implicit
     conv2d 1x1 (stride 1, no padding), linear, matmul, where channels are by fours (halves: eights): cuBLAS
     batch_stats                   sum_blocks, sum_finish; in inference running_stats                     reduce, norms
     batch_norm                    apply or apply_fours      sum_blocks, sum_finish, batch_norm_back      norms
     layer_norm                    layer_norm                layer_norm_back (moments), sum_blocks,
                                                             sum_finish, layer_norm_back                  norms
     attention                     attention                 attention_rows, attention_keys               attend
     softmax, log_softmax          softmax                   softmax_back                                 distribution
     add, relu, leaky_relu, relu6, clamp: apply or apply_fours   map; rectify_back                        elementwise
       (batch_norm, add and relu behind each other: one apply)
     concat, slice along other axes than channels, transpose: moved or turned both ways                   moves
     concat, slice, pointwise ops (ops/pointwise_table.h): map both ways                                  elementwise
     mul, sub, div, ..., add of other shapes: pair (mul of equal ones: map)  pair; sum_blocks, sum_finish  pairs
     bias                          map                       map; sum_blocks, sum_finish                  reduce
     reshape, dropout              reshape, dropout          the same                                     elementwise
     max_pool, avg_pool, global_avg_pool: pool               pool_back                                    windows
     group_norm                    group_norm                group_norm (moments), sums, group_norm_back      groups
     upsample                      upsample                  upsample_back                                windows
     embedding                     embedding                 map (zeros), sort, merge, embedding_back     lookup
     cross_entropy                 cross_entropy, finish     count_labels, cross_entropy_back             losses
     mse, mean                     reduce, finish            mse_back, map                                losses
     .clip_norm                    reduce, finish for each gradient; norm_finish                          updates
     updates, the loss's gradient  sgd or adam for GCP_MAX_UPDATES parameters; map                          updates

   Operands are floats or, in a plan with GCP_STORE_BF16, halves: bfloat16. Kernels that move memory load and store
   either (units.h); those of products have a version for each kind of tile (tiles.h). */

#if !defined(GCPI_ONE_FILE) && defined(__has_include)
#if !__has_include("src/cuda/kernels/units.h")
#error "kernels.cu needs its rooms, the folder src/ beside it; the single file to copy is dist/kernels.cu"
#endif
#endif
#include "gcp_cuda.h"

#include "src/cuda/kernels/units.h"        /* Launching kernels; elements of tensors */
#include "src/cuda/kernels/reduce.h"       /* Sums over pixels */
#include "src/cuda/kernels/tiles.h"        /* Products of tiles in shared memory: copies, FP32, TF32, bfloat16 */
#include "src/cuda/kernels/implicit.h"     /* Gather: forward, and backward data */
#include "src/cuda/kernels/wgrad.h"        /* Backward weights */
#include "src/cuda/kernels/grouped.h"      /* Convolution: the direct kernels; which kernel runs, with what */
#include "src/ops/pointwise_table.h"       /* The pointwise ops, an entry each */
#include "src/ops/pairs_table.h"           /* The ops of two operands a and b, for both machines */
#include "src/cuda/kernels/elementwise.h"  /* Elementwise ops, reshape, dropout */
#include "src/cuda/kernels/pairs.h"        /* Ops of two operands, of which one may be spread over the other */
#include "src/cuda/kernels/moves.h"        /* Elements moved by strides: concat and slice along any axis, transpose */
#include "src/cuda/kernels/windows.h"      /* Windows: pooling and upsampling */
#include "src/cuda/kernels/norms.h"        /* Batch-norm and layer-norm */
#include "src/cuda/kernels/distribution.h" /* Softmax and its logarithm: a warp a pixel */
#include "src/cuda/kernels/attend.h"       /* Attention: tiles of 32 rows and 32 keys */
#include "src/cuda/kernels/lookup.h"       /* Embedding */
#include "src/cuda/kernels/losses.h"       /* Losses */
#include "src/cuda/kernels/groups.h"       /* Group-norm: a block of 256 threads for a group of a sample's channels */
#include "src/cuda/kernels/updates.h"      /* Updates */
