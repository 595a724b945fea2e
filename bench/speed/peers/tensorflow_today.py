"""The twins of examples/networks/transformer.h, mobile.h and modern.h, each a list of functions, as torch_today.py has them in PyTorch."""
import tensorflow as tf

from tensorflow_layers import chain, conv, conv_norm, dense, depthwise, filled, layer_norm, mean, normal
from sizes import CONVNEXT, EFFICIENTNET, MOBILENET, rounded


def attention(own, width, heads, causal):
    qkv, project = dense(own, width, 3 * width), dense(own, width, width)

    def run(x):
        n, tokens, _ = x.shape
        q, k, v = tf.unstack(tf.transpose(tf.reshape(qkv(x), [n, tokens, 3, heads, width // heads]), [2, 0, 3, 1, 4]))
        scores = tf.matmul(q, k, transpose_b=True) * (width // heads) ** -0.5
        if causal:
            scores += tf.constant(-1e9) * (1 - tf.linalg.band_part(tf.ones([tokens, tokens]), -1, 0))
        y = tf.matmul(tf.nn.softmax(scores), v)
        return project(tf.reshape(tf.transpose(y, [0, 2, 1, 3]), [n, tokens, width]))
    return run


def block(own, width, heads, causal, eps):
    mix = chain(layer_norm(own, width, eps), attention(own, width, heads, causal))
    widen = chain(layer_norm(own, width, eps), dense(own, width, 4 * width, lambda x: tf.nn.gelu(x, approximate=causal)),
                  dense(own, 4 * width, width))

    def run(x):
        x = x + mix(x)
        return x + widen(x)
    return run


def patches(own, width, image):
    tokens = (image // 16) ** 2
    cut, token = conv(own, 3, width, 16, 16, bias=True, pad=False), normal(own, 1, 1, width, deviation=0.02)
    positions = normal(own, 1, tokens + 1, width, deviation=0.02)

    def run(x):
        words = tf.reshape(cut(x), [x.shape[0], tokens, width])
        return tf.concat([tf.tile(token, [x.shape[0], 1, 1]), words], 1) + positions
    return run


def vit(own, width, depth, heads, image, classes):
    layers = [patches(own, width, image)] + [block(own, width, heads, False, 1e-6) for _ in range(depth)]
    return layers + [chain(layer_norm(own, width, 1e-6), lambda x: x[:, 0], dense(own, width, classes))]


def gpt2(own, width, depth, heads, tokens, words):
    table, positions = normal(own, words, width, deviation=0.02), normal(own, 1, tokens, width, deviation=0.02)
    layers = [lambda ids: tf.gather(table, ids) + positions] + [block(own, width, heads, True, 1e-5) for _ in range(depth)]
    last = layer_norm(own, width)
    return layers + [lambda x: tf.matmul(tf.reshape(last(x), [-1, width]), table, transpose_b=True)]


def gate(own, channels, hidden, inside, outside):
    narrow, widen = dense(own, channels, hidden, inside), dense(own, hidden, channels, outside)
    return lambda x: x * tf.reshape(widen(narrow(mean(x))), [x.shape[0], 1, 1, channels])


def bottleneck(own, inputs, k, wide, out, stride, squeeze, activation, inside, outside, eps):
    parts = [conv_norm(own, inputs, wide, 1, 1, activation, eps)] if wide != inputs else []
    parts.append(conv_norm(own, wide, wide, k, stride, activation, eps, apart=True))
    parts += [gate(own, wide, squeeze, inside, outside)] if squeeze else []
    f = chain(*parts, conv_norm(own, wide, out, 1, 1, None, eps))
    return (lambda x: x + f(x)) if stride == 1 and inputs == out else f


def hard_sigmoid(x):
    return tf.nn.relu6(x + 3) * (1 / 6)


def hard_swish(x):
    return x * hard_sigmoid(x)


def dropped(x):
    return tf.nn.dropout(x, 0.2)


def mobilenet_v3_small(own, classes):
    layers, inputs = [conv_norm(own, 3, 16, 3, 2, hard_swish, 1e-3)], 16
    for k, wide, out, gated, swish, stride in MOBILENET:
        layers.append(bottleneck(own, inputs, k, wide, out, stride, rounded(wide / 4) if gated else 0, hard_swish if swish else tf.nn.relu,
                                 tf.nn.relu, hard_sigmoid, 1e-3))
        inputs = out
    head = [conv_norm(own, inputs, 576, 1, 1, hard_swish, 1e-3), mean, dense(own, 576, 1024, hard_swish)]
    return layers + [chain(*head, dropped, dense(own, 1024, classes))]


def efficientnet_b0(own, classes):
    layers, inputs = [conv_norm(own, 3, 32, 3, 2, tf.nn.silu, 1e-5)], 32
    for expansion, k, out, count, stride in EFFICIENTNET:
        for i in range(count):
            layers.append(bottleneck(own, inputs, k, inputs * expansion, out, 1 if i else stride, inputs // 4, tf.nn.silu, tf.nn.silu,
                                     tf.nn.sigmoid, 1e-5))
            inputs = out
    return layers + [chain(conv_norm(own, inputs, 1280, 1, 1, tf.nn.silu, 1e-5), mean, dropped, dense(own, 1280, classes))]


def convnext_block(own, width):
    f = chain(depthwise(own, width, 7, bias=True), layer_norm(own, width, 1e-6), dense(own, width, 4 * width, tf.nn.gelu),
              dense(own, 4 * width, width))
    scale = filled(own, 1e-6, width)
    return lambda x: x + scale * f(x)


def convnext_t(own, classes):
    layers, inputs = [], 3
    for width, depth in CONVNEXT:
        if layers:
            layers.append(chain(layer_norm(own, inputs, 1e-6), conv(own, inputs, width, 2, 2, bias=True, pad=False)))
        else:
            layers.append(chain(conv(own, inputs, width, 4, 4, bias=True, pad=False), layer_norm(own, width, 1e-6)))
        layers += [convnext_block(own, width) for _ in range(depth)]
        inputs = width
    return layers + [chain(mean, layer_norm(own, inputs, 1e-6), dense(own, inputs, classes))]
