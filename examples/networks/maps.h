/* maps.h - what other implementations call the weights of networks here, for gcp_load with GCP_STYLE_TORCH: of
   torchvision and, where it says so, timm or transformers. */
#ifndef NETWORKS_MAPS_H
#define NETWORKS_MAPS_H

static const char mobilenet_v2_map[] =
    "stem[0]/conv/* features.0.0.*\nstem[0]/conv_norm/* features.0.1.*\n"
    "block[0]/depthwise/* features.1.conv.0.0.*\nblock[0]/depthwise_norm/* features.1.conv.0.1.*\n"
    "block[0]/project/* features.1.conv.1.*\nblock[0]/project_norm/* features.1.conv.2.*\n"
    "block[{i}]/expand/* features.{i+1}.conv.0.0.*\nblock[{i}]/expand_norm/* features.{i+1}.conv.0.1.*\n"
    "block[{i}]/depthwise/* features.{i+1}.conv.1.0.*\nblock[{i}]/depthwise_norm/* features.{i+1}.conv.1.1.*\n"
    "block[{i}]/project/* features.{i+1}.conv.2.*\nblock[{i}]/project_norm/* features.{i+1}.conv.3.*\n"
    "head[0]/conv/* features.18.0.*\nhead[0]/conv_norm/* features.18.1.*\nhead[0]/classes/* classifier.1.*\n";

/* Both sizes: a gate moves what comes behind it, and the first block of the large one expands nothing. */
#define MOBILENET_V3_MAP(head)                                                                                       \
    "stem[0]/conv/* features.0.0.*\nstem[0]/conv_norm/* features.0.1.*\n"                                            \
    "head[0]/conv/* features." head ".0.*\nhead[0]/conv_norm/* features." head ".1.*\n"                              \
    "head[0]/wide/* classifier.0.*\nhead[0]/classes/* classifier.3.*\n"                                              \
    "block[0]/depthwise/* features.1.block.0.0.*\nblock[0]/depthwise_norm/* features.1.block.0.1.*\n"
#define MOBILENET_V3_BLOCKS                                                                                          \
    "block[{i}]/expand/* features.{i+1}.block.0.0.*\nblock[{i}]/expand_norm/* features.{i+1}.block.0.1.*\n"          \
    "block[{i}]/depthwise/* features.{i+1}.block.1.0.*\nblock[{i}]/depthwise_norm/* features.{i+1}.block.1.1.*\n"    \
    "block[{i}]/squeeze/* features.{i+1}.block.2.fc1.*\nblock[{i}]/excite/* features.{i+1}.block.2.fc2.*\n"
#define MOBILENET_V3_LAST(i, j, k)                                                                                   \
    "block[" i "]/project/* features." j ".block." k ".0.*\n"                                                         \
    "block[" i "]/project_norm/* features." j ".block." k ".1.*\n"
static const char mobilenet_v3_small_map[] =
    MOBILENET_V3_MAP("12") "block[0]/squeeze/* features.1.block.1.fc1.*\nblock[0]/excite/* features.1.block.1.fc2.*\n"
    MOBILENET_V3_LAST("0", "1", "2") MOBILENET_V3_LAST("1", "2", "2") MOBILENET_V3_LAST("2", "3", "2")
    MOBILENET_V3_LAST("{i}", "{i+1}", "3") MOBILENET_V3_BLOCKS;
static const char mobilenet_v3_large_map[] =
    MOBILENET_V3_MAP("16") MOBILENET_V3_LAST("0", "1", "1") MOBILENET_V3_LAST("1", "2", "2")
    MOBILENET_V3_LAST("2", "3", "2") MOBILENET_V3_LAST("6", "7", "2") MOBILENET_V3_LAST("7", "8", "2")
    MOBILENET_V3_LAST("8", "9", "2") MOBILENET_V3_LAST("9", "10", "2") MOBILENET_V3_LAST("{i}", "{i+1}", "3")
    MOBILENET_V3_BLOCKS;

#define EFFICIENTNET_BLOCKS                                                                                          \
    "stem[0]/conv/* features.0.0.*\nstem[0]/conv_norm/* features.0.1.*\nhead[0]/classes/* classifier.1.*\n"          \
    "stage{s}[{i}]/expand/* features.{s}.{i}.block.0.0.*\nstage{s}[{i}]/expand_norm/* features.{s}.{i}.block.0.1.*\n" \
    "stage{s}[{i}]/depthwise/* features.{s}.{i}.block.1.0.*\n"                                                       \
    "stage{s}[{i}]/depthwise_norm/* features.{s}.{i}.block.1.1.*\n"                                                  \
    "stage{s}[{i}]/squeeze/* features.{s}.{i}.block.2.fc1.*\nstage{s}[{i}]/excite/* features.{s}.{i}.block.2.fc2.*\n" \
    "stage{s}[{i}]/project/* features.{s}.{i}.block.3.0.*\nstage{s}[{i}]/project_norm/* features.{s}.{i}.block.3.1.*\n"
static const char efficientnet_b0_map[] =
    "stage1[0]/depthwise/* features.1.0.block.0.0.*\nstage1[0]/depthwise_norm/* features.1.0.block.0.1.*\n"
    "stage1[0]/squeeze/* features.1.0.block.1.fc1.*\nstage1[0]/excite/* features.1.0.block.1.fc2.*\n"
    "stage1[0]/project/* features.1.0.block.2.0.*\nstage1[0]/project_norm/* features.1.0.block.2.1.*\n"
    "head[0]/conv/* features.8.0.*\nhead[0]/conv_norm/* features.8.1.*\n" EFFICIENTNET_BLOCKS;
static const char efficientnet_v2_s_map[] =
    "stage2[{i}]/project/* features.2.{i}.block.1.0.*\nstage2[{i}]/project_norm/* features.2.{i}.block.1.1.*\n"
    "stage3[{i}]/project/* features.3.{i}.block.1.0.*\nstage3[{i}]/project_norm/* features.3.{i}.block.1.1.*\n"
    "head[0]/conv/* features.7.0.*\nhead[0]/conv_norm/* features.7.1.*\n" EFFICIENTNET_BLOCKS;

static const char shufflenet_v2_map[] =
    "stem[0]/conv/* conv1.0.*\nstem[0]/conv_norm/* conv1.1.*\n"
    "stage{s}[{i}]/aside_depthwise/* stage{s}.{i}.branch1.0.*\n"
    "stage{s}[{i}]/aside_depthwise_norm/* stage{s}.{i}.branch1.1.*\n"
    "stage{s}[{i}]/aside/* stage{s}.{i}.branch1.2.*\nstage{s}[{i}]/aside_norm/* stage{s}.{i}.branch1.3.*\n"
    "stage{s}[{i}]/first/* stage{s}.{i}.branch2.0.*\nstage{s}[{i}]/first_norm/* stage{s}.{i}.branch2.1.*\n"
    "stage{s}[{i}]/depthwise/* stage{s}.{i}.branch2.3.*\nstage{s}[{i}]/depthwise_norm/* stage{s}.{i}.branch2.4.*\n"
    "stage{s}[{i}]/last/* stage{s}.{i}.branch2.5.*\nstage{s}[{i}]/last_norm/* stage{s}.{i}.branch2.6.*\n"
    "head[0]/conv/* conv5.0.*\nhead[0]/conv_norm/* conv5.1.*\nhead[0]/classes/* fc.*\n";

/* timm's */
static const char ghostnet_map[] =
    "stem[0]/conv/* conv_stem.*\nstem[0]/conv_norm/* bn1.*\n"
    "stage{s}[{i}]/ghost{g}[0]/primary/* blocks.{s}.{i}.ghost{g}.primary_conv.0.*\n"
    "stage{s}[{i}]/ghost{g}[0]/primary_norm/* blocks.{s}.{i}.ghost{g}.primary_conv.1.*\n"
    "stage{s}[{i}]/ghost{g}[0]/cheap/* blocks.{s}.{i}.ghost{g}.cheap_operation.0.*\n"
    "stage{s}[{i}]/ghost{g}[0]/cheap_norm/* blocks.{s}.{i}.ghost{g}.cheap_operation.1.*\n"
    "stage{s}[{i}]/depthwise/* blocks.{s}.{i}.conv_dw.*\nstage{s}[{i}]/depthwise_norm/* blocks.{s}.{i}.bn_dw.*\n"
    "stage{s}[{i}]/squeeze/* blocks.{s}.{i}.se.conv_reduce.*\nstage{s}[{i}]/excite/* blocks.{s}.{i}.se.conv_expand.*\n"
    "stage{s}[{i}]/aside_depthwise/* blocks.{s}.{i}.shortcut.0.*\n"
    "stage{s}[{i}]/aside_depthwise_norm/* blocks.{s}.{i}.shortcut.1.*\n"
    "stage{s}[{i}]/aside/* blocks.{s}.{i}.shortcut.2.*\nstage{s}[{i}]/aside_norm/* blocks.{s}.{i}.shortcut.3.*\n"
    "head[0]/conv/* blocks.9.0.conv.*\nhead[0]/conv_norm/* blocks.9.0.bn1.*\n"
    "head[0]/wide/* conv_head.*\nhead[0]/classes/* classifier.*\n";

static const char regnet_y_map[] =
    "stem[0]/conv/* stem.0.*\nstem[0]/conv_norm/* stem.1.*\nhead[0]/classes/* fc.*\n"
    "stage{s}[{i}]/first/* trunk_output.block{s}.block{s}-{i}.f.a.0.*\n"
    "stage{s}[{i}]/first_norm/* trunk_output.block{s}.block{s}-{i}.f.a.1.*\n"
    "stage{s}[{i}]/grouped/* trunk_output.block{s}.block{s}-{i}.f.b.0.*\n"
    "stage{s}[{i}]/grouped_norm/* trunk_output.block{s}.block{s}-{i}.f.b.1.*\n"
    "stage{s}[{i}]/squeeze/* trunk_output.block{s}.block{s}-{i}.f.se.fc1.*\n"
    "stage{s}[{i}]/excite/* trunk_output.block{s}.block{s}-{i}.f.se.fc2.*\n"
    "stage{s}[{i}]/last/* trunk_output.block{s}.block{s}-{i}.f.c.0.*\n"
    "stage{s}[{i}]/last_norm/* trunk_output.block{s}.block{s}-{i}.f.c.1.*\n"
    "stage{s}[{i}]/aside/* trunk_output.block{s}.block{s}-{i}.proj.0.*\n"
    "stage{s}[{i}]/aside_norm/* trunk_output.block{s}.block{s}-{i}.proj.1.*\n";

static const char convnext_t_map[] =
    "stage0[0]/down/* features.0.0.*\nstage0[0]/stem_norm/* features.0.1.*\n"
    "stage{s}[{i}]/down_norm/* features.{s}.0.*\nstage{s}[{i}]/down/* features.{s}.1.*\n"
    "stage{s}[{i}]/depthwise/* features.{s}.{i}.block.0.*\nstage{s}[{i}]/norm/* features.{s}.{i}.block.2.*\n"
    "stage{s}[{i}]/expand/* features.{s}.{i}.block.3.*\nstage{s}[{i}]/contract/* features.{s}.{i}.block.5.*\n"
    "stage{s}[{i}]/scale features.{s}.{i}.layer_scale\n"
    "head[0]/norm/* classifier.0.*\nhead[0]/classes/* classifier.2.*\n";

/* timm's */
static const char mlp_mixer_map[] =
    "patches[0]/conv2d[0]/* stem.proj.*\nblock[{i}]/norm{n}/* blocks.{i}.norm{n}.*\n"
    "block[{i}]/tokens{n}/* blocks.{i}.mlp_tokens.fc{n}.*\nblock[{i}]/channels{n}/* blocks.{i}.mlp_channels.fc{n}.*\n"
    "head[0]/norm/* norm.*\nhead[0]/classes/* head.*\n";

static const char swin_t_map[] =
    "stage0[0]/patches/* features.0.0.*\nstage0[0]/patches_norm/* features.0.2.*\n"
    "stage{s}[{i}]/norm{n}/* features.{s}.{i}.norm{n}.*\n"
    "stage{s}[{i}]/table features.{s}.{i}.attn.relative_position_bias_table\n- *.relative_position_index\n"
    "stage{s}[{i}]/qkv/* features.{s}.{i}.attn.qkv.*\nstage{s}[{i}]/project/* features.{s}.{i}.attn.proj.*\n"
    "stage{s}[{i}]/expand/* features.{s}.{i}.mlp.0.*\nstage{s}[{i}]/contract/* features.{s}.{i}.mlp.3.*\n"
    "stage{s}[{i}]/merge_norm/* features.{s}.norm.*\nstage{s}[{i}]/merge/* features.{s}.reduction.*\n"
    "head[0]/norm/* norm.*\nhead[0]/classes/* head.*\n";

/* timm's ViT and DeiT */
static const char vit_map[] =
    "patches[0]/class cls_token\npatches[0]/positions pos_embed\npatches[0]/conv2d[0]/* patch_embed.proj.*\n"
    "block[{i}]/layer_norm[{n}]/* blocks.{i}.norm{n+1}.*\nblock[{i}]/qkv/* blocks.{i}.attn.qkv.*\n"
    "block[{i}]/project/* blocks.{i}.attn.proj.*\nblock[{i}]/expand/* blocks.{i}.mlp.fc1.*\n"
    "block[{i}]/contract/* blocks.{i}.mlp.fc2.*\nhead[0]/layer_norm[0]/* norm.*\nhead[0]/linear[0]/* head.*\n";

/* Of Hugging Face's transformers; its dense layers have their inputs first. */
static const char gpt2_map[] =
    "words transformer.wte.weight\nwords_in[0]/positions transformer.wpe.weight\n"
    "block[{i}]/layer_norm[0]/* transformer.h.{i}.ln_1.*\nblock[{i}]/layer_norm[1]/* transformer.h.{i}.ln_2.*\n"
    "block[{i}]/qkv/weight transformer.h.{i}.attn.c_attn.weight io\n"
    "block[{i}]/project/weight transformer.h.{i}.attn.c_proj.weight io\n"
    "block[{i}]/expand/weight transformer.h.{i}.mlp.c_fc.weight io\n"
    "block[{i}]/contract/weight transformer.h.{i}.mlp.c_proj.weight io\n"
    "block[{i}]/qkv/* transformer.h.{i}.attn.c_attn.*\nblock[{i}]/project/* transformer.h.{i}.attn.c_proj.*\n"
    "block[{i}]/expand/* transformer.h.{i}.mlp.c_fc.*\nblock[{i}]/contract/* transformer.h.{i}.mlp.c_proj.*\n"
    "head[0]/layer_norm[0]/* transformer.ln_f.*\n";

#endif
