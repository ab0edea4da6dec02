/**
 * What a synchronous environment gives at once and an asynchronous one later. Awaiting it is right
 * for both.
 */
export type MaybePromise<T> = T | Promise<T>;

/**
 * `next(value)`, without a promise when none is there: a synchronous environment stays synchronous
 * in its wrappers.
 */
export function andThen<T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}
