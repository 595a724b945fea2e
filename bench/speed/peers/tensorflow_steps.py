"""TensorFlow's end of bench/steps: the step is one tf.function. Checkpointed, recompute_grad: tf.recompute_grad around groups of four layers."""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

from worker import BATCH, CHANNELS, HALVED, image_size, serve

STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))        # of ResNet-50: width, blocks


def variable(*shape):
    fan_in = 1
    for n in shape[:-1]:
        fan_in *= n
    return tf.Variable(tf.random.normal(shape, stddev=(2 / fan_in) ** 0.5))


def seed_layers(network):
    """Functions of x; the variables they read, in order."""
    layers, variables, inputs, size = [], [], 1, image_size(network)
    for outputs in CHANNELS[network]:
        w, b = variable(5, 5, inputs, outputs), tf.Variable(tf.zeros([outputs]))
        layers.append(lambda x, w=w, b=b: tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, 1, "SAME"), b)))
        variables += [w, b]
        inputs = outputs
    if HALVED[network]:
        layers.append(lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"))
        size //= 2
    layers.append(lambda x: tf.reshape(x, [BATCH, -1]))
    for n, m, activate in ((inputs * size * size, 32, True), (32, 10, False)):
        w, b = variable(n, m), tf.Variable(tf.zeros([m]))
        layers.append(lambda x, w=w, b=b, activate=activate: tf.nn.relu(tf.matmul(x, w) + b) if activate else tf.matmul(x, w) + b)
        variables += [w, b]
    return layers, variables


def resnet50_layers():
    variables = []

    def conv_norm(inputs, outputs, k, stride=1):
        w, scale, offset = variable(k, k, inputs, outputs), tf.Variable(tf.ones([outputs])), tf.Variable(tf.zeros([outputs]))
        variables.extend([w, scale, offset])
        p = k // 2
        return lambda x: tf.compat.v1.nn.fused_batch_norm(
            tf.nn.conv2d(x, w, stride, [[0, 0], [p, p], [p, p], [0, 0]]), scale, offset, is_training=True)[0]

    def block(inputs, width, stride):
        a, b, c = conv_norm(inputs, width, 1), conv_norm(width, width, 3, stride), conv_norm(width, 4 * width, 1)
        project = (lambda x: x) if inputs == 4 * width else conv_norm(inputs, 4 * width, 1, stride)
        return lambda x: tf.nn.relu(c(tf.nn.relu(b(tf.nn.relu(a(x))))) + project(x))

    stem = conv_norm(3, 64, 7, 2)
    layers = [lambda x: tf.nn.max_pool2d(tf.nn.relu(stem(x)), 3, 2, [[0, 0], [1, 1], [1, 1], [0, 0]])]
    inputs = 64
    for stage, (width, blocks) in enumerate(STAGES):
        for i in range(blocks):
            layers.append(block(inputs, width, 2 if stage and not i else 1))
            inputs = 4 * width
    w, b = variable(inputs, 1000), tf.Variable(tf.zeros([1000]))
    variables.extend([w, b])
    layers.append(lambda x: tf.matmul(tf.reduce_mean(x, [1, 2]), w) + b)
    return layers, variables


def main():
    network, mode, threads = sys.argv[1:4]
    if network not in (*CHANNELS, "resnet50") or mode not in ("plain", "checkpointed", "recompute_grad"):
        sys.exit(1)
    tf.config.threading.set_intra_op_parallelism_threads(int(threads))
    tf.config.threading.set_inter_op_parallelism_threads(1)
    resnet = network == "resnet50"
    layers, variables = resnet50_layers() if resnet else seed_layers(network)
    batch, size, channels, classes = (8, 224, 3, 1000) if resnet else (BATCH, image_size(network), 1, 10)
    images, labels = tf.random.normal([batch, size, size, channels]), tf.random.uniform([batch], 0, classes, tf.int32)
    slots = [tf.Variable(tf.zeros_like(v)) for v in variables] if resnet else None
    if mode != "plain":
        groups = [layers[i:i + 4] for i in range(0, len(layers), 4)]

        def chain(group):
            def run(x):
                for layer in group:
                    x = layer(x)
                return x
            return run
        layers = [tf.recompute_grad(chain(group)) for group in groups[:-1]] + [chain(groups[-1])]

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            x = images
            for layer in layers:
                x = layer(x)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x))
        for i, (v, g) in enumerate(zip(variables, tape.gradient(loss, variables))):
            if slots:
                slots[i].assign(0.9 * slots[i] + g)
                g = slots[i]
            v.assign_sub(0.001 * g)
        return loss

    serve(tf.__version__, lambda: step().numpy())


if __name__ == "__main__":
    main()
