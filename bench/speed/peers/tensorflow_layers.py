"""Layers of TensorFlow's twins, channels last: each makes a function of x. The variables that it reads are added to `own`, in order."""
import tensorflow as tf


def filled(own, value, *shape):
    own.append(tf.Variable(tf.fill(shape, float(value))))
    return own[-1]


def normal(own, *shape, deviation=None):
    """Deviation: He's, of all dimensions but the last, where none is given."""
    fan_in = 1
    for n in shape[:-1]:
        fan_in *= n
    own.append(tf.Variable(tf.random.normal(shape, stddev=deviation or (2 / fan_in) ** 0.5)))
    return own[-1]


def chain(*layers):
    def run(x):
        for layer in layers:
            x = layer(x)
        return x
    return run


def padding(k, pad):
    p = k // 2 if pad else 0
    return [[0, 0], [p, p], [p, p], [0, 0]]


def conv(own, inputs, outputs, k, stride=1, bias=False, pad=True):
    w = normal(own, k, k, inputs, outputs)
    b = filled(own, 0, outputs) if bias else None
    around = padding(k, pad)
    return lambda x: tf.nn.bias_add(tf.nn.conv2d(x, w, stride, around), b) if bias else tf.nn.conv2d(x, w, stride, around)


def depthwise(own, channels, k, stride=1, bias=False):
    w = normal(own, k, k, channels, 1, deviation=(2 / (k * k)) ** 0.5)
    b = filled(own, 0, channels) if bias else None
    around, strides = padding(k, True), [1, stride, stride, 1]

    def run(x):
        y = tf.nn.depthwise_conv2d(x, w, strides, around)
        return tf.nn.bias_add(y, b) if bias else y
    return run


def norm(own, channels, eps=1e-5):
    scale, offset = filled(own, 1, channels), filled(own, 0, channels)
    return lambda x: tf.compat.v1.nn.fused_batch_norm(x, scale, offset, epsilon=eps, is_training=True)[0]


def conv_norm(own, inputs, outputs, k, stride=1, activation=None, eps=1e-5, apart=False):
    first = depthwise(own, inputs, k, stride) if apart else conv(own, inputs, outputs, k, stride)
    return chain(first, norm(own, outputs, eps), *([activation] if activation else []))


def layer_norm(own, channels, eps=1e-5):
    scale, offset = filled(own, 1, channels), filled(own, 0, channels)

    def run(x):
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, offset, scale, eps)
    return run


def dense(own, n, m, activation=None):
    w, b = normal(own, n, m), filled(own, 0, m)

    def run(x):
        rows = x if len(x.shape) == 2 else tf.reshape(x, [-1, n])        # a matmul of rank 3 is many small ones
        y = tf.nn.bias_add(tf.matmul(rows, w), b)
        y = activation(y) if activation else y
        return y if rows is x else tf.reshape(y, [*x.shape[:-1], m])
    return run


def mean(x):
    return tf.reduce_mean(x, [1, 2])
