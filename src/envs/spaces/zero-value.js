import { Box } from "./box.js";
import { CompositeSpace } from "./composite.js";
import { Discrete } from "./discrete.js";
import { Graph } from "./graph.js";
import { MultiBinary } from "./multi-binary.js";
import { MultiDiscrete } from "./multi-discrete.js";
import { OneOf } from "./one-of.js";
import { Sequence } from "./sequence.js";
import { Text } from "./text.js";
/** Returns the member of a space closest to zero. */
export function createZeroValue(space) {
    return createZero(space);
}
function createZero(space) {
    if (space instanceof Box) {
        const { low, high } = space;
        return space.array(Array.from(low, (bound, i) => (bound > 0 ? bound : Math.min(0, high[i]))));
    }
    if (space instanceof Discrete)
        return space.start;
    if (space instanceof MultiDiscrete)
        return Int32Array.from(space.start);
    if (space instanceof MultiBinary)
        return new Int8Array(space.flatSize);
    if (space instanceof Text)
        return space.characters[0].repeat(space.minLength);
    if (space instanceof CompositeSpace)
        return space.join(space.parts.map(createZero));
    if (space instanceof OneOf)
        return [0, createZero(space.spaces[0])];
    if (space instanceof Sequence)
        return [];
    if (space instanceof Graph)
        return { nodes: [createZero(space.nodeSpace)] };
    return space.sample();
}
