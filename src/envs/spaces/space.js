import { excerpt } from "../../core/format.js";
import { invalidArgument } from "../../core/errors.js";
import { createSeededStream } from "../seeded-stream.js";
/**
 * The set of valid observations or actions. `seed` and `sample` draw the same values as Gymnasium; `toString` prints the
 * same text. Arrays are flat and row-major, with their extents in `shape`.
 */
export class Space {
    /** Extents of an array space; undefined for other spaces. */
    shape;
    stream;
    constructor(shape) {
        this.shape = shape;
    }
    /** Length of the result of `flatten`; undefined when members have no fixed length. */
    get flatSize() {
        return undefined;
    }
    /** Flattens a member to numbers: arrays unchanged, categories one-hot, parts concatenated. */
    flatten(_value) {
        throw invalidArgument(`${this.toString()} has no fixed size, so its members cannot be flattened.`);
    }
    /** Restores a member from the numbers of `flatten`. */
    unflatten(_flat) {
        throw invalidArgument(`${this.toString()} has no fixed size, so its members cannot be unflattened.`);
    }
    /** Spaces that the space consists of. */
    get parts() {
        return [];
    }
    /** Compares the sets, ignoring their random streams. */
    equals(other) {
        return (this.constructor === other.constructor &&
            this.toString() === other.toString() &&
            this.parts.every((part, i) => part.equals(other.parts[i])));
    }
    /** Seeds the random streams of the space and its parts. Returns the seeds in the space's structure. */
    seed(seed) {
        return this.startStream(seed);
    }
    get random() {
        if (this.stream === undefined)
            this.startStream();
        return this.stream;
    }
    startStream(seed) {
        if (typeof seed === "object")
            throw invalidArgument(`${this.toString()} takes one seed, got ${JSON.stringify(seed)}.`);
        const seeded = createSeededStream(seed);
        this.stream = seeded.stream;
        return seeded.seed;
    }
    /** Draws one seed for each of `count` parts. */
    drawPartSeeds(seed, count) {
        this.startStream(seed);
        return Array.from({ length: count }, () => this.random.integers(0, 2147483647));
    }
    /** Seeds the space's own stream, then those of its parts; for spaces that draw from both. */
    seedWithParts(seed) {
        const { parts } = this;
        if (seed === undefined)
            return [this.startStream(), ...parts.map((space) => space.seed())];
        const isList = Array.isArray(seed);
        const seeds = isList ? seed : [seed, ...this.drawPartSeeds(seed, parts.length)];
        if (seeds.length !== parts.length + 1)
            throw invalidArgument(`${this.constructor.name} takes ${parts.length + 1} seeds, got ${seeds.length}.`);
        return [this.startStream(seeds[0]), ...parts.map((space, i) => space.seed(seeds[i + 1]))];
    }
    /** @throws INVALID_ARGUMENT for a mask or probability, which the space does not support. */
    rejectMask(options) {
        if (options?.mask !== undefined || options?.probability !== undefined)
            throw invalidArgument(`${this.constructor.name}.sample supports neither a mask nor a probability.`);
    }
    rejectMaskWithProbability({ mask, probability }) {
        if (mask !== undefined && probability !== undefined)
            throw invalidArgument("Only one of `mask` or `probability` can be given to sample.");
    }
    /** Returns `value` if it is in the space. @throws INVALID_ARGUMENT otherwise. */
    checkMember(value) {
        if (this.contains(value))
            return value;
        throw invalidArgument(`${formatValue(value)} is not in ${this.toString()}.`);
    }
    /** Copies the state of the random streams of `other`. */
    copyStream(other) {
        this.startStream(0);
        this.random.setState(other.random.getState());
    }
    /** Advances the random stream by one number. */
    skipDraw() {
        this.random.random();
    }
}
/** Formats a value for an error message, truncated. */
export function formatValue(value) {
    const plain = ArrayBuffer.isView(value) ? Array.from(value) : value;
    return excerpt(JSON.stringify(plain) ?? typeof value, 120);
}
