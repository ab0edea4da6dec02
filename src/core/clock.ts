/** Returns milliseconds since some moment, as `performance.now` does. */
export type Clock = () => number;
