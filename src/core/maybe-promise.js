/** `next(value)`, without a promise when none is there: a synchronous environment stays synchronous in its wrappers. */
export function andThen(value, next) {
    return value instanceof Promise ? value.then(next) : next(value);
}
