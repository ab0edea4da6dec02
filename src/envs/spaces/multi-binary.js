import { invalidArgument } from "../../core/errors.js";
import { isNumberArray, nestArray, numbersFromJson } from "./arrays.js";
import { formatShape } from "./array-text.js";
import { checkWeights } from "./discrete.js";
import { Space } from "./space.js";
import { countElements } from "../../core/count-elements.js";
/** Arrays of zeros and ones. */
export class MultiBinary extends Space {
    n;
    shape;
    size;
    constructor(n) {
        const shape = typeof n === "number" ? [n] : [...n];
        super(shape);
        this.n = n;
        if (shape.length === 0 || shape.some((extent) => !Number.isInteger(extent) || extent <= 0))
            throw invalidArgument(`n (counts) have to be positive, actual value: ${JSON.stringify(n)}`);
        this.shape = shape;
        this.size = countElements(shape);
    }
    /** Samples a member; a mask has 0 or 1 for a fixed element and 2 for a random one. */
    sample(options = {}) {
        this.rejectMaskWithProbability(options);
        if (options.probability !== undefined) {
            const probabilities = checkWeights(options.probability, this.size, "probability");
            return Int8Array.from(probabilities, (probability) => (this.random.random() <= probability ? 1 : 0));
        }
        const tossCoins = () => Int8Array.from(this.random.integersArray(0, 2, this.size, "int8"));
        if (options.mask === undefined)
            return tossCoins();
        const mask = checkWeights(options.mask, this.size, "mask");
        if (mask.some((value) => value !== 0 && value !== 1 && value !== 2))
            throw invalidArgument(`All values of the mask must be 0, 1 or 2, actual values: ${mask.join(", ")}`);
        return tossCoins().map((toss, i) => (mask[i] === 2 ? toss : mask[i]));
    }
    contains(value) {
        return (isNumberArray(value) && value.length === this.size && Array.from(value).every((bit) => bit === 0 || bit === 1));
    }
    encode(value) {
        return nestArray(value, this.shape);
    }
    decode(json) {
        return Int8Array.from(this.checkMember(numbersFromJson(json)));
    }
    get flatSize() {
        return this.size;
    }
    flatten(value) {
        return Array.from(value);
    }
    unflatten(flat) {
        return Int8Array.from(this.checkMember(Array.from(flat)));
    }
    toString() {
        return `MultiBinary(${typeof this.n === "number" ? this.n : formatShape(this.shape)})`;
    }
}
