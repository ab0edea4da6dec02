import { invalidArgument } from "../../core/errors.js";
import { Space } from "./space.js";
/** A space whose members have one value per part. */
export class CompositeSpace extends Space {
    names;
    partSpaces;
    constructor(names, spaces) {
        super();
        this.names = names;
        this.partSpaces = names.map((name) => {
            const space = spaces[name];
            if (space instanceof Space)
                return space;
            throw invalidArgument(`Element ${name} of the ${this.constructor.name} is not a Space: ${String(space)}`);
        });
    }
    get parts() {
        return this.partSpaces;
    }
    /** Splits a member into one value per part. */
    split(value) {
        return this.names.map((name) => value[name]);
    }
    seed(seed) {
        const { parts } = this;
        if (seed === undefined)
            return this.join(parts.map((space) => space.seed()));
        const hasSeeds = typeof seed === "object";
        if (hasSeeds && !this.hasStructure(seed))
            throw this.structureError("seeds");
        const seeds = (hasSeeds ? this.split(seed) : this.drawPartSeeds(seed, parts.length));
        return this.join(parts.map((space, i) => space.seed(seeds[i])));
    }
    /** Samples a member; a mask or probability has one entry per part, undefined or null for an unrestricted part. */
    sample(options = {}) {
        this.rejectMaskWithProbability(options);
        const { mask, probability } = options;
        const weights = mask ?? probability;
        const isKnown = (name) => this.names.includes(name);
        if (Array.isArray(weights) ? !this.hasStructure(weights) : !Object.keys(weights ?? {}).every(isKnown))
            throw this.structureError("masks");
        return this.join(this.parts.map((space, i) => {
            const part = (weights?.[this.names[i]] ?? undefined);
            return space.sample(mask === undefined ? { probability: part } : { mask: part });
        }));
    }
    contains(value) {
        return this.hasStructure(value) && this.split(value).every((part, i) => this.parts[i].contains(part));
    }
    encode(value) {
        return this.join(this.split(value).map((part, i) => this.parts[i].encode(part)));
    }
    decode(json) {
        if (!this.hasStructure(json))
            return this.checkMember(json);
        return this.join(this.split(json).map((part, i) => this.parts[i].decode(part)));
    }
    get flatSize() {
        let size = 0;
        for (const { flatSize } of this.parts) {
            if (flatSize === undefined)
                return undefined;
            size += flatSize;
        }
        return size;
    }
    flatten(value) {
        return this.split(value).flatMap((part, i) => this.parts[i].flatten(part));
    }
    unflatten(flat) {
        const { flatSize } = this;
        if (flatSize !== flat.length)
            throw invalidArgument(`Expected ${flatSize ?? "no"} numbers for ${this.toString()}, got ${flat.length}.`);
        const all = Array.from(flat);
        let offset = 0;
        return this.join(this.parts.map((space) => space.unflatten(all.slice(offset, (offset += space.flatSize)))));
    }
    structureError(subject) {
        return invalidArgument(`The ${subject} of ${this.toString()} must have one entry per part: ${this.names.join(", ")}.`);
    }
}
/** Tuples with one value per space. */
export class Tuple extends CompositeSpace {
    constructor(spaces) {
        super(Array.from(spaces, (_, i) => String(i)), spaces);
    }
    get spaces() {
        return this.parts;
    }
    join(values) {
        return values;
    }
    withParts(parts) {
        return new Tuple(parts);
    }
    hasStructure(value) {
        return Array.isArray(value) && value.length === this.parts.length;
    }
    toString() {
        return `Tuple(${this.parts.join(", ")})`;
    }
}
/** Objects with one value per named space. Names are sorted, as in Gymnasium. */
export class Dict extends CompositeSpace {
    constructor(spaces) {
        // Python sorts strings by code point.
        super(Object.keys(spaces).sort((a, b) => (a < b ? -1 : 1)), spaces);
    }
    get spaces() {
        return this.join(this.parts);
    }
    join(values) {
        return Object.fromEntries(this.names.map((name, i) => [name, values[i]]));
    }
    withParts(parts) {
        return new Dict(Object.fromEntries(this.names.map((name, i) => [name, parts[i]])));
    }
    hasStructure(value) {
        if (typeof value !== "object" || value === null || Array.isArray(value))
            return false;
        return Object.keys(value).length === this.names.length && this.names.every((name) => Object.hasOwn(value, name));
    }
    toString() {
        return `Dict(${this.names.map((name, i) => `'${name}': ${this.parts[i].toString()}`).join(", ")})`;
    }
}
