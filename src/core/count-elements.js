export function countElements(shape) {
    let count = 1;
    for (const dim of shape)
        count *= dim;
    return count;
}
