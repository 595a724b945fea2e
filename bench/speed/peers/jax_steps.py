"""JAX's end of bench/steps: the step is one jit, weights donated. Checkpointed: jax.checkpoint around groups of four layers."""
import os
import sys

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=true")
import jax
import jax.numpy as jnp
from jax import lax

from sizes import CHANNELS, HALVED, INPUTS
from worker import serve


def conv(x, p):
    return jax.nn.relu(lax.conv_general_dilated(x, p[0], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + p[1])


def pool(x, p):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def dense(x, p):
    return jax.nn.relu(x.reshape(x.shape[0], -1) @ p[0] + p[1])


def logits(x, p):
    return x @ p[0] + p[1]


def network_of(network, size):
    key = iter(jax.random.split(jax.random.key(1), 32))
    layers, weights, inputs = [], [], 1

    def add(layer, *shape):
        layers.append(layer)
        weights.append((0.05 * jax.random.normal(next(key), shape), jnp.zeros(shape[-1])) if shape else ())

    for outputs in CHANNELS[network]:
        add(conv, 5, 5, inputs, outputs)
        inputs = outputs
    if HALVED[network]:
        add(pool)
        size //= 2
    add(dense, inputs * size * size, 32)
    add(logits, 32, 10)
    return layers, weights


def main():
    network, mode, _ = sys.argv[1:4]                  # threads: as many as there are cores
    if mode not in ("plain", "checkpointed"):
        return
    batch, size, channels, _ = INPUTS[network]
    if network not in CHANNELS or size > 64:
        sys.exit(1)
    layers, weights = network_of(network, size)
    images = jax.random.normal(jax.random.key(2), (batch, size, size, channels))
    labels = jnp.zeros(batch, jnp.int32)

    def part(first, last):
        def run(x, w):
            for layer, p in zip(layers[first:last], w):
                x = layer(x, p)
            return x
        return run if mode == "plain" or last >= len(layers) else jax.checkpoint(run)

    def loss(w):
        x = images
        for i in range(0, len(layers), 4):
            x = part(i, i + 4)(x, w[i:i + 4])
        return -jnp.mean(jax.nn.log_softmax(x)[jnp.arange(batch), labels])

    def update(w):
        value, g = jax.value_and_grad(loss)(w)
        return value, jax.tree.map(lambda a, b: a - 0.001 * b, w, g)

    compiled = jax.jit(update, donate_argnums=0)
    state = [weights]

    def step():
        value, state[0] = compiled(state[0])
        value.block_until_ready()

    serve(jax.__version__, step)


if __name__ == "__main__":
    main()
