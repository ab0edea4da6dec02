import type { JsonValue } from "../../../src/core/json.js";
import type { SampleMask } from "../../../src/envs/spaces/space.js";
import { spaceFromJson } from "../../../src/envs/spaces/space-json.js";
import { largestDifference, encodeValue, type Json } from "./json-values.js";

export interface SpaceCase {
  readonly space: JsonValue;
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
const FLATTEN_SIZE_LIMIT = 500;

/** The largest error of a space's text, seeds, samples and flat form, and where it is. */
export function replaySpace(recorded: SpaceCase): { error: number; path: string } {
  const space = spaceFromJson(recorded.space);
  const { mask, probability } = recorded;
  const seedReturns = encodeValue(space.seed(recorded.seed), (name) => name);
  const samples = recorded.samples.map(() => space.sample({ mask, probability }));
  const result: { [key: string]: Json } = {
    repr: space.toString(),
    seed_returns: seedReturns,
    samples: samples.map((sample) => space.encode(sample) as Json),
  };
  const size = space.flatSize;
  if (size !== undefined && size < FLATTEN_SIZE_LIMIT) {
    result["flatdim"] = size;
    result["flatten_first"] = space.flatten(samples[0]);
  }
  const { repr, seed_returns, flatdim, flatten_first = null } = recorded;
  const expected: { [key: string]: Json } = { repr, seed_returns, samples: recorded.samples };
  return largestDifference(result, flatdim === undefined ? expected : { ...expected, flatdim, flatten_first });
}
