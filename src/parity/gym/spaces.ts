import { Box } from "../../envs/spaces/box.js";
import type { BoxDtype } from "../../envs/spaces/box-dtype.js";
import { Dict } from "../../envs/spaces/dict.js";
import { Discrete } from "../../envs/spaces/discrete.js";
import { Graph } from "../../envs/spaces/graph.js";
import { MultiBinary } from "../../envs/spaces/multi-binary.js";
import { MultiDiscrete } from "../../envs/spaces/multi-discrete.js";
import { OneOf } from "../../envs/spaces/one-of.js";
import { Sequence } from "../../envs/spaces/sequence.js";
import type { SampleMask, Space } from "../../envs/spaces/space.js";
import { Text } from "../../envs/spaces/text.js";
import { Tuple } from "../../envs/spaces/tuple.js";
import { LlamaGymError } from "../../errors.js";
import { decodeNumber, difference, encode, type Json } from "./values.js";

type Spec = { [key: string]: Json };

export interface SpaceCase {
  readonly space: Spec;
  readonly seed: number;
  readonly mask?: SampleMask;
  readonly probability?: SampleMask;
  readonly repr: string;
  readonly seed_returns: Json;
  readonly samples: Json[];
  readonly flatdim?: number;
  readonly flatten_first?: Json;
}

/** Spaces larger than this are recorded without flattening. */
const FLATTENED_BELOW = 500;

type Nested = number | Nested[];

function numbers(value: Json): Nested {
  return Array.isArray(value) ? value.map(numbers) : Number(decodeNumber(value));
}

/** A space out of its fixture description. */
export function spaceFrom(spec: Spec): Space {
  const list = (name: string) => (spec[name] as Spec[]).map(spaceFrom);
  switch (spec["type"]) {
    case "Discrete":
      return new Discrete(Number(spec["n"]), { start: Number(spec["start"] ?? 0) });
    case "Box": {
      const bound = (name: string) => numbers(spec[name]) as number | number[];
      const shape = (spec["shape"] as number[] | null) ?? undefined;
      return new Box(bound("low"), bound("high"), { shape, dtype: spec["dtype"] as BoxDtype });
    }
    case "MultiBinary":
      return new MultiBinary(spec["n"] as number | number[]);
    case "MultiDiscrete":
      return new MultiDiscrete(spec["nvec"] as number[], { start: spec["start"] as number[] | undefined });
    case "Text":
      return new Text(Number(spec["max_length"]), {
        minLength: spec["min_length"] as number | undefined,
        charset: spec["charset"] as string | undefined,
      });
    case "Tuple":
      return new Tuple(list("spaces"));
    case "OneOf":
      return new OneOf(list("spaces"));
    case "Dict": {
      const parts = Object.entries(spec["spaces"] as { [key: string]: Spec });
      return new Dict(Object.fromEntries(parts.map(([name, part]) => [name, spaceFrom(part)])));
    }
    case "Sequence":
      return new Sequence(spaceFrom(spec["space"] as Spec));
    case "Graph": {
      const edges = spec["edge_space"] as Spec | null | undefined;
      return new Graph(spaceFrom(spec["node_space"] as Spec), edges ? spaceFrom(edges) : undefined);
    }
    default:
      throw new LlamaGymError("FORMAT_UNSUPPORTED", `The space ${JSON.stringify(spec["type"])} is not known.`);
  }
}

/** The largest error of a space's text, seeds, samples and flat form, and where it is. */
export function replaySpace(recorded: SpaceCase): { error: number; path: string } {
  const space = spaceFrom(recorded.space);
  const { mask, probability } = recorded;
  const seedReturns = encode(space.seed(recorded.seed));
  const samples = recorded.samples.map(() => space.sample({ mask, probability }));
  const result: { [key: string]: Json } = {
    repr: space.toString(),
    seed_returns: seedReturns,
    samples: samples.map((sample) => space.encode(sample) as Json),
  };
  const size = space.flatSize;
  if (size !== undefined && size < FLATTENED_BELOW) {
    result["flatdim"] = size;
    result["flatten_first"] = space.flatten(samples[0]);
  }
  const { repr, seed_returns, flatdim, flatten_first = null } = recorded;
  const expected: { [key: string]: Json } = { repr, seed_returns, samples: recorded.samples };
  return difference(result, flatdim === undefined ? expected : { ...expected, flatdim, flatten_first });
}
