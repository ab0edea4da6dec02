import { invalidArgument } from "../../core/errors.js";
import { Box } from "./box.js";
import { getDtypeEntry } from "./box-dtype.js";
import { Dict } from "./composite.js";
import { OneOf } from "./one-of.js";
import { Text } from "./text.js";
import { Tuple } from "./composite.js";
/** Returns the smallest type for the values of both, by NumPy's promotion rules. */
function promoteDtypes(a, b) {
    if (a === b)
        return a;
    const [first, second] = [getDtypeEntry(a), getDtypeEntry(b)];
    if (first.kind === "float" || second.kind === "float") {
        // float32 represents 16-bit integers exactly.
        const fits = [a, b].every((dtype) => dtype === "float32" || getDtypeEntry(dtype).max <= 65535);
        return fits ? "float32" : "float64";
    }
    const order = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "int64"];
    const holdsBoth = (dtype) => [first, second].every(({ min, max }) => getDtypeEntry(dtype).min <= min && getDtypeEntry(dtype).max >= max);
    return order.find(holdsBoth) ?? "int64";
}
/** Returns the Box that `space.flatten` maps into, with Gymnasium's bounds and element type. */
export function flattenSpace(space) {
    if (space instanceof Box) {
        const box = space;
        return new Box(box.low, box.high, { shape: [box.flatSize], dtype: box.dtype });
    }
    if (space instanceof Text)
        return createFlatBox(0, space.characters.length, space.maxLength, "int32");
    if (space instanceof Tuple || space instanceof Dict) {
        const parts = Object.values(space.spaces).map(flattenSpace);
        const bounds = (side) => parts.flatMap((part) => Array.from(part[side]));
        const dtype = parts.map((part) => part.dtype).reduce(promoteDtypes);
        return new Box(bounds("low"), bounds("high"), { dtype: dtype });
    }
    if (space instanceof OneOf)
        return flattenOneOf(space);
    if (space.flatSize === undefined)
        throw invalidArgument(`${space.toString()} has no fixed size and cannot be flattened to a Box.`);
    return createFlatBox(0, 1, space.flatSize, space.constructor.name === "MultiBinary" ? "int8" : "int64");
}
function createFlatBox(low, high, size, dtype) {
    return new Box(low, high, { shape: [size], dtype: dtype });
}
/** Index of the part, followed by the largest part's size within the bounds of all parts. */
function flattenOneOf(space) {
    const parts = space.spaces.map(flattenSpace);
    const dtype = parts.map((part) => part.dtype).reduce(promoteDtypes);
    const size = Math.max(...parts.map((part) => part.flatSize));
    const low = Math.min(...parts.flatMap((part) => Array.from(part.low)));
    const high = Math.max(...parts.flatMap((part) => Array.from(part.high)));
    const rest = (bound) => Array.from({ length: size }, () => bound);
    return new Box([0, ...rest(low)], [parts.length - 1, ...rest(high)], { dtype: dtype });
}
