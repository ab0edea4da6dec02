import { invalidArgument } from "../../core/errors.js";
import { findHotIndex } from "./arrays.js";
import { Space } from "./space.js";
/** The integers start ... start + n - 1. */
export class Discrete extends Space {
    n;
    start;
    constructor(n, { start = 0 } = {}) {
        super([]);
        if (!Number.isSafeInteger(n) || !Number.isSafeInteger(start))
            throw invalidArgument(`Discrete takes integers, actual values: n=${n}, start=${start}`);
        if (n <= 0)
            throw invalidArgument(`n (counts) have to be positive, actual value: ${n}`);
        this.n = n;
        this.start = start;
    }
    /** Samples a member; returns `start` for a mask of zeros. */
    sample(options = {}) {
        this.rejectMaskWithProbability(options);
        const { mask, probability } = options;
        if (mask !== undefined)
            return this.start + sampleMasked(this.random, this.n, mask);
        if (probability !== undefined)
            return this.start + sampleWeighted(this.random, this.n, probability);
        return this.start + this.random.integers(0, this.n);
    }
    contains(value) {
        return Number.isInteger(value) && value >= this.start && value < this.start + this.n;
    }
    encode(value) {
        return value;
    }
    decode(json) {
        return this.checkMember(json);
    }
    get flatSize() {
        return this.n;
    }
    flatten(value) {
        const flat = Array.from({ length: this.n }, () => 0);
        flat[value - this.start] = 1;
        return flat;
    }
    unflatten(flat) {
        return this.checkMember(this.start + findHotIndex(flat, 0, this.n));
    }
    toString() {
        return this.start === 0 ? `Discrete(${this.n})` : `Discrete(${this.n}, start=${this.start})`;
    }
}
/** Draws an index that the mask allows; 0 when it allows none. */
export function sampleMasked(random, count, mask) {
    const flags = checkWeights(mask, count, "mask");
    if (flags.some((flag) => flag !== 0 && flag !== 1))
        throw invalidArgument(`All values of the mask must be 0 or 1, actual values: ${flags.join(", ")}`);
    const valid = flags.flatMap((flag, i) => (flag === 1 ? [i] : []));
    return valid.length === 0 ? 0 : random.choice(valid);
}
/** Draws an index by its probability. */
export function sampleWeighted(random, count, probability) {
    const probabilities = checkWeights(probability, count, "probability");
    const sum = probabilities.reduce((total, value) => total + value, 0);
    if (probabilities.some((value) => !(value >= 0 && value <= 1)) || Math.abs(sum - 1) > 1e-8)
        throw invalidArgument(`Probabilities must be in [0, 1] and add up to 1, actual values: ${probabilities.join(", ")} (sum ${sum})`);
    return random.choiceIndex(count, { probabilities });
}
/** Reads `count` numbers from a mask or probability. */
export function checkWeights(weights, count, name) {
    const isList = Array.isArray(weights) || ArrayBuffer.isView(weights);
    const values = isList ? Array.from(weights) : [];
    if (!isList || values.length !== count || values.some((value) => typeof value !== "number"))
        throw invalidArgument(`The ${name} must be ${count} numbers, got ${JSON.stringify(weights)}.`);
    return values;
}
