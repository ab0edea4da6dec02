import { invalidArgument } from "../../core/errors.js";
import { Space } from "./space.js";
/** A value of one of several spaces, with the index of that space. */
export class OneOf extends Space {
    spaces;
    constructor(spaces) {
        super();
        if (spaces.length === 0)
            throw invalidArgument("Empty `OneOf` spaces are not supported.");
        this.spaces = spaces;
    }
    get parts() {
        return this.spaces;
    }
    seed(seed) {
        return this.seedWithParts(seed);
    }
    /** Samples a member; a mask or probability is a list with one entry per space, undefined or null for an unrestricted one. */
    sample(options = {}) {
        this.rejectMaskWithProbability(options);
        const { spaces } = this;
        const weights = options.mask ?? options.probability;
        if (weights !== undefined && !(Array.isArray(weights) && weights.length === spaces.length))
            throw invalidArgument(`OneOf takes a list of ${spaces.length} masks, one for each space.`);
        const index = this.random.integers(0, spaces.length);
        const part = weights?.[index] ?? undefined;
        return [index, spaces[index].sample(options.mask === undefined ? { probability: part } : { mask: part })];
    }
    contains(value) {
        if (!Array.isArray(value) || value.length !== 2)
            return false;
        const [index, inner] = value;
        return Number.isInteger(index) && this.spaces[index]?.contains(inner) === true;
    }
    encode([index, value]) {
        return [index, this.spaces[index].encode(value)];
    }
    decode(json) {
        const [index, inner] = Array.isArray(json) ? json : [];
        const space = typeof index === "number" ? this.spaces[index] : undefined;
        return space === undefined ? this.checkMember(json) : [index, space.decode(inner)];
    }
    get flatSize() {
        const sizes = this.spaces.map((space) => space.flatSize);
        return sizes.includes(undefined) ? undefined : 1 + Math.max(...sizes);
    }
    /** Returns the index and the flat value, padded with its first number to the longest part's size. */
    flatten([index, value]) {
        const flat = this.spaces[index].flatten(value);
        const missing = (this.flatSize ?? 0) - 1 - flat.length;
        return [index, ...flat, ...Array.from({ length: missing }, () => flat[0])];
    }
    unflatten(flat) {
        const space = this.spaces[flat[0]];
        if (space === undefined)
            return this.checkMember(Array.from(flat));
        return [flat[0], space.unflatten(Array.from(flat).slice(1, 1 + (space.flatSize ?? 0)))];
    }
    toString() {
        return `OneOf(${this.spaces.join(", ")})`;
    }
}
