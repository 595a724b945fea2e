"""TensorFlow's end of bench/steps: the step is one tf.function. Checkpointed, recompute_grad: tf.recompute_grad around groups of four layers; of
DenseNet-BC, around what each layer joins, its norm, ReLU and 1x1 convolution, as in PyTorch."""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

from sizes import CHANNELS, HALVED, INPUTS, RESNET50
from tensorflow_layers import chain, conv, conv_norm, dense, mean, norm
from tensorflow_today import convnext_t, efficientnet_b0, gpt2, mobilenet_v3_small, vit
from worker import serve

relu = tf.nn.relu


def seed(own, network, size):
    layers, inputs = [], 1
    for outputs in CHANNELS[network]:
        layers.append(chain(conv(own, inputs, outputs, 5, bias=True), relu))
        inputs = outputs
    if HALVED[network]:
        layers.append(lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"))
        size //= 2
    flat = inputs * size * size
    return layers + [lambda x: tf.reshape(x, [-1, flat]), dense(own, flat, 32, relu), dense(own, 32, 10)]


def residual(own, inputs, outputs, stride, f):
    project = conv_norm(own, inputs, outputs, 1, stride) if stride > 1 or inputs != outputs else lambda x: x
    return lambda x: relu(f(x) + project(x))


def bottleneck(own, inputs, width, stride):
    f = chain(conv_norm(own, inputs, width, 1, 1, relu), conv_norm(own, width, width, 3, stride, relu), conv_norm(own, width, 4 * width, 1))
    return residual(own, inputs, 4 * width, stride, f)


def resnet50(own, classes):
    layers, inputs = [chain(conv_norm(own, 3, 64, 7, 2, relu), lambda x: tf.nn.max_pool2d(x, 3, 2, [[0, 0], [1, 1], [1, 1], [0, 0]]))], 64
    for stage, (width, blocks) in enumerate(RESNET50):
        for i in range(blocks):
            layers.append(bottleneck(own, inputs, width, 2 if stage and not i else 1))
            inputs = 4 * width
    return layers + [chain(mean, dense(own, inputs, classes))]


def basic(own, inputs, outputs, stride):
    f = chain(conv_norm(own, inputs, outputs, 3, stride, relu), conv_norm(own, outputs, outputs, 3))
    return residual(own, inputs, outputs, stride, f)


def resnet18_cifar(own, classes):
    layers, inputs = [conv_norm(own, 3, 64, 3, 1, relu)], 64
    for stage in range(4):
        for i in range(2):
            layers.append(basic(own, inputs, 64 << stage, 2 if stage and not i else 1))
            inputs = 64 << stage
    return layers + [chain(mean, dense(own, inputs, classes))]


def norm_relu_conv(own, inputs, outputs, k):
    return chain(norm(own, inputs), relu, conv(own, inputs, outputs, k))


def dense_block(own, inputs, depth, growth, again):
    parts = []
    for i in range(depth):
        narrow, grow = norm_relu_conv(own, inputs + i * growth, 4 * growth, 1), norm_relu_conv(own, 4 * growth, growth, 3)
        join = lambda *features, narrow=narrow: narrow(tf.concat(features, 3))
        parts.append((tf.recompute_grad(join) if again else join, grow))

    def run(x):
        features = [x]
        for join, grow in parts:
            features.append(grow(join(*features)))
        return tf.concat(features, 3)
    return run


def densenet_bc(own, again, classes, depth=16, growth=12):
    layers, inputs = [conv(own, 3, 2 * growth, 3)], 2 * growth
    for i in range(3):
        layers.append(dense_block(own, inputs, depth, growth, again))
        inputs += depth * growth
        if i < 2:
            layers.append(chain(norm_relu_conv(own, inputs, inputs // 2, 1), lambda x: tf.nn.avg_pool2d(x, 2, 2, "VALID")))
            inputs //= 2
    return layers + [chain(norm(own, inputs), relu, mean, dense(own, inputs, classes))]


def layers_of(own, network, again, size, classes):
    make = {"resnet50": lambda: resnet50(own, classes), "resnet18_cifar": lambda: resnet18_cifar(own, classes),
            "densenet_bc": lambda: densenet_bc(own, again, classes), "vit_small": lambda: vit(own, 384, 12, 6, size, classes),
            "vit_tiny": lambda: vit(own, 192, 12, 3, size, classes), "gpt2": lambda: gpt2(own, 768, 12, 12, size, classes),
            "mobilenet_v3_small": lambda: mobilenet_v3_small(own, classes), "efficientnet_b0": lambda: efficientnet_b0(own, classes),
            "convnext_t": lambda: convnext_t(own, classes)}
    return make.get(network, lambda: seed(own, network, size))()


def grouped(layers):
    groups = [chain(*layers[i:i + 4]) for i in range(0, len(layers), 4)]
    return [tf.recompute_grad(group) for group in groups[:-1]] + groups[-1:]


def main():
    network, mode, threads = sys.argv[1:4]
    if network not in INPUTS or mode not in ("plain", "checkpointed", "recompute_grad"):
        sys.exit(1)
    tf.config.threading.set_intra_op_parallelism_threads(int(threads))
    tf.config.threading.set_inter_op_parallelism_threads(1)
    batch, size, channels, classes = INPUTS[network]
    own, again = [], mode != "plain"
    layers = layers_of(own, network, again, size, classes)
    if again and network != "densenet_bc":
        layers = grouped(layers)
    if network == "gpt2":                             # words, and the next ones
        images, labels = (tf.random.uniform(shape, 0, classes, tf.int32) for shape in ([batch, size], [batch * size]))
    else:
        images, labels = tf.random.normal([batch, size, size, channels]), tf.random.uniform([batch], 0, classes, tf.int32)
    slots = [tf.Variable(tf.zeros_like(v)) for v in own] if "net" in network else None

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, chain(*layers)(images)))
        for i, (v, g) in enumerate(zip(own, tape.gradient(loss, own))):
            g = tf.convert_to_tensor(g)               # a table's rows, of a gather alone
            if slots:
                slots[i].assign(0.9 * slots[i] + g)
                g = slots[i]
            v.assign_sub(0.001 * g)
        return loss

    serve(tf.__version__, lambda: step().numpy())


if __name__ == "__main__":
    main()
