import { invalidArgument } from "../../core/errors.js";
import { formatArray } from "./array-text.js";
import { flattenNested, findHotIndex, isNumberArray, nestArray, numbersFromJson, } from "./arrays.js";
import { checkWeights, sampleMasked, sampleWeighted } from "./discrete.js";
import { Space } from "./space.js";
import { countElements } from "../../core/count-elements.js";
/** Arrays of integers, element i in start[i] ... start[i] + nvec[i] - 1. */
export class MultiDiscrete extends Space {
    shape;
    nvec;
    start;
    constructor(nvec, { start } = {}) {
        const counts = flattenNested(nvec, "nvec");
        const starts = start === undefined ? { values: counts.values.map(() => 0), shape: counts.shape } : flattenNested(start, "start");
        super(counts.shape);
        if (starts.shape.join() !== counts.shape.join())
            throw invalidArgument(`start and nvec (counts) should have the same shape, got [${starts.shape.join()}] and [${counts.shape.join()}]`);
        if (counts.values.length === 0 || counts.values.some((count) => !(Number.isInteger(count) && count > 0)))
            throw invalidArgument(`nvec (counts) have to be positive, actual value: ${JSON.stringify(counts.values)}`);
        if (starts.values.some((value, i) => !Number.isInteger(value) || Math.abs(value) + counts.values[i] > 2147483647))
            throw invalidArgument("MultiDiscrete holds 32-bit integers; nvec or start is too large or not an integer.");
        this.shape = counts.shape;
        this.nvec = Int32Array.from(counts.values);
        this.start = Int32Array.from(starts.values);
    }
    /** Samples a member; a mask or probability is a list with one entry per element, nested like the space. */
    sample(options = {}) {
        this.rejectMaskWithProbability(options);
        const { mask, probability } = options;
        if (mask !== undefined) {
            const parts = this.splitWeights(mask, "mask");
            return this.nvec.map((count, i) => this.start[i] + sampleMasked(this.random, count, parts[i]));
        }
        if (probability !== undefined) {
            const parts = this.splitWeights(probability, "probability");
            return this.nvec.map((count, i) => this.start[i] + this.sampleWeightedElement(count, parts[i]));
        }
        return this.nvec.map((count, i) => Math.floor(this.random.random() * count) + this.start[i]);
    }
    sampleWeightedElement(count, probability) {
        return sampleWeighted(this.random, count, normalizeWeights(checkWeights(probability, count, "probability")));
    }
    splitWeights(weights, name) {
        let parts = [weights];
        for (const extent of this.shape) {
            parts = parts.flatMap((part) => {
                if (!Array.isArray(part) || part.length !== extent)
                    throw invalidArgument(`The ${name} must be a list with an entry for each of ${extent} elements.`);
                return part;
            });
        }
        return parts;
    }
    contains(value) {
        return (isNumberArray(value) &&
            value.length === this.nvec.length &&
            this.nvec.every((count, i) => Number.isInteger(value[i]) && value[i] >= this.start[i] && value[i] < this.start[i] + count));
    }
    equals(other) {
        if (!(other instanceof MultiDiscrete) || !super.equals(other))
            return false;
        return this.nvec.every((count, i) => count === other.nvec[i] && this.start[i] === other.start[i]);
    }
    encode(value) {
        return nestArray(value, this.shape);
    }
    decode(json) {
        return Int32Array.from(this.checkMember(numbersFromJson(json)));
    }
    get flatSize() {
        return this.nvec.reduce((total, count) => total + count, 0);
    }
    flatten(value) {
        return Array.from(this.nvec).flatMap((count, i) => Array.from({ length: count }, (_, k) => (k === value[i] - this.start[i] ? 1 : 0)));
    }
    unflatten(flat) {
        let offset = 0;
        const values = this.nvec.map((count, i) => {
            const value = this.start[i] + findHotIndex(flat, offset, count);
            offset += count;
            return value;
        });
        return this.checkMember(values);
    }
    toString() {
        const text = (values) => formatArray(values, this.shape, "integer");
        const start = this.start.every((value) => value === 0) ? "" : `, start=${text(this.start)}`;
        return `MultiDiscrete(${text(this.nvec)}${start})`;
    }
    /** Number of elements. */
    get size() {
        return countElements(this.shape);
    }
}
function normalizeWeights(weights) {
    const sum = weights.reduce((total, weight) => total + weight, 0);
    return Math.abs(sum - 1) > 1e-8 ? weights : weights.map((weight) => weight / sum);
}
