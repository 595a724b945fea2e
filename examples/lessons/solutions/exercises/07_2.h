static size_t exercise_2(network *net, double most)
{
    size_t low = least(net) - 64, high = keep_all(net).bytes;
    while (high - low > 64) {
        const size_t middle = low + (high - low) / 2;
        const gcp_plan plan = in_bytes(net, middle);
        if (within(&plan, most)) high = middle;
        else low = middle;
    }
    return high;
}
