import { LlamaGymError, invalidArgument } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { nestArray, type NestedNumbers } from "./arrays.js";
import { Box } from "./box.js";
import type { BoxDtype } from "./box-dtype.js";
import { Dict } from "./dict.js";
import { Discrete } from "./discrete.js";
import { Graph } from "./graph.js";
import { MultiBinary } from "./multi-binary.js";
import { MultiDiscrete } from "./multi-discrete.js";
import { OneOf } from "./one-of.js";
import { Sequence } from "./sequence.js";
import { formatValue, type Space } from "./space.js";
import { Text } from "./text.js";
import { Tuple } from "./tuple.js";

/** JSON description of a space, with Gymnasium's argument names. */
export type SpaceDescription = { readonly [name: string]: JsonValue };

/** Describes a space as JSON; `spaceFromJson` is the inverse. */
export function spaceToJson(space: Space): SpaceDescription {
  if (space instanceof Discrete) return { type: "Discrete", n: space.n, start: space.start };
  if (space instanceof Box) {
    const { low, high, shape, dtype } = space as Box<"float64">;
    return { type: "Box", low: nestArray(low, [low.length]), high: nestArray(high, [high.length]), shape, dtype };
  }
  if (space instanceof MultiBinary) return { type: "MultiBinary", n: space.n };
  if (space instanceof MultiDiscrete) {
    const nest = (values: Int32Array) => nestArray(values, space.shape);
    return { type: "MultiDiscrete", nvec: nest(space.nvec), start: nest(space.start) };
  }
  if (space instanceof Text) {
    const { maxLength, minLength, characters } = space;
    return { type: "Text", max_length: maxLength, min_length: minLength, charset: characters.join("") };
  }
  if (space instanceof Tuple) return { type: "Tuple", spaces: space.spaces.map(spaceToJson) };
  if (space instanceof OneOf) return { type: "OneOf", spaces: space.spaces.map(spaceToJson) };
  if (space instanceof Dict) {
    const parts = Object.entries(space.spaces).map(([name, part]) => [name, spaceToJson(part)]);
    return { type: "Dict", spaces: Object.fromEntries(parts) as SpaceDescription };
  }
  if (space instanceof Sequence) return { type: "Sequence", space: spaceToJson(space.featureSpace) };
  if (space instanceof Graph) {
    const { nodeSpace, edgeSpace } = space;
    return {
      type: "Graph",
      node_space: spaceToJson(nodeSpace),
      edge_space: edgeSpace === undefined ? null : spaceToJson(edgeSpace),
    };
  }
  throw invalidArgument(`${space.toString()} cannot be described as JSON: it is a space of your own.`);
}

/** Decodes nested numbers, with infinities as strings; the spaces validate them. */
function readNumbers(value: JsonValue): number | NestedNumbers {
  if (!Array.isArray(value)) return Number(value);
  return (value as readonly JsonValue[]).map(readNumbers) as NestedNumbers;
}

/** Creates a space from its description. @throws FORMAT_UNSUPPORTED for an unknown description. */
export function spaceFromJson(json: JsonValue): Space {
  const isObject = typeof json === "object" && json !== null && !Array.isArray(json);
  const description = (isObject ? json : {}) as SpaceDescription;
  const { type } = description;
  if (typeof type === "string" && Object.hasOwn(SPACE_READERS, type)) return SPACE_READERS[type](description);
  throw new LlamaGymError(
    "FORMAT_UNSUPPORTED",
    `${formatValue(json)} describes no space. Expected an object whose "type" is one of ${Object.keys(SPACE_READERS).join(", ")}.`,
  );
}

const readParts = ({ spaces }: SpaceDescription) => ((spaces ?? []) as readonly JsonValue[]).map(spaceFromJson);

const SPACE_READERS: Readonly<Record<string, (description: SpaceDescription) => Space>> = {
  Discrete: ({ n, start }) => new Discrete(Number(n), { start: Number(start ?? 0) }),
  Box: ({ low, high, shape, dtype }) =>
    new Box(readNumbers(low), readNumbers(high), {
      shape: (shape as number[] | null) ?? undefined,
      dtype: (dtype as BoxDtype | null) ?? undefined,
    }),
  MultiBinary: ({ n }) => new MultiBinary(n as number | number[]),
  MultiDiscrete: ({ nvec, start }) =>
    new MultiDiscrete(nvec as NestedNumbers, { start: (start as NestedNumbers | null) ?? undefined }),
  Text: ({ max_length, min_length, charset }) =>
    new Text(Number(max_length), {
      minLength: (min_length as number | null) ?? undefined,
      charset: (charset as string | null) ?? undefined,
    }),
  Tuple: (description) => new Tuple(readParts(description)),
  OneOf: (description) => new OneOf(readParts(description)),
  Dict: ({ spaces }) => {
    const fields = Object.entries((spaces ?? {}) as SpaceDescription);
    return new Dict(Object.fromEntries(fields.map(([name, part]) => [name, spaceFromJson(part)])));
  },
  Sequence: ({ space }) => new Sequence(spaceFromJson(space)),
  Graph: ({ node_space, edge_space }) => {
    const edges = edge_space ?? undefined;
    return new Graph(spaceFromJson(node_space), edges === undefined ? undefined : spaceFromJson(edges));
  },
};
