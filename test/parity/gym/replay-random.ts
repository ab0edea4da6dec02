import { RandomStream, SeedSequence, type IntegerDtype } from "../../../src/core/random/random-stream.js";
import { decodeNumber, nestArrays, elementCount, type Json } from "./json-values.js";

/** A method of NumPy's generator, its arguments, keyword arguments and result. */
type RandomCall = [method: string, args: Json[], kwargs: Record<string, Json>, result: Json];

export interface RandomCase {
  readonly seed: number | string;
  readonly state: Json;
  readonly seed_sequence_u32: Json;
  readonly seed_sequence_u64: Json;
  readonly groups: Record<string, { readonly calls: RandomCall[]; readonly state_after: Json }>;
}

/** Makes the same calls as the recording; gives the case as it comes out here. */
export function replayRandom(recorded: RandomCase): RandomCase {
  const seed = BigInt(recorded.seed);
  const groups: RandomCase["groups"] = {};
  for (const [name, { calls }] of Object.entries(recorded.groups)) {
    const stream = new RandomStream(seed);
    const replayed = calls.map(([method, args, kwargs]): RandomCall => [
      method,
      args,
      kwargs,
      callMethod(stream, method, args, kwargs),
    ]);
    groups[name] = { calls: replayed, state_after: encodeState(stream) };
  }
  const words = new SeedSequence(seed).generateState(8);
  return {
    seed: recorded.seed,
    state: encodeState(new RandomStream(seed)),
    seed_sequence_u32: [...words],
    seed_sequence_u64: [0, 2, 4, 6].map((i) => ((BigInt(words[i + 1]) << 32n) | BigInt(words[i])).toString()),
    groups,
  };
}

function encodeState(stream: RandomStream): Json {
  const { state, inc, hasUint32, uinteger } = stream.getState();
  return { state, inc, has_uint32: hasUint32, uinteger };
}

function callMethod(stream: RandomStream, method: string, args: Json[], kwargs: Record<string, Json>): Json {
  const size = kwargs["size"];
  const shape =
    size === undefined || size === null ? undefined : Array.isArray(size) ? size.map(Number) : [Number(size)];
  const drawArray = (draw: () => Json): Json =>
    shape === undefined ? draw() : nestArrays(Array.from({ length: elementCount(shape) }, draw), shape);
  switch (method) {
    case "random_raw":
      return Array.from({ length: Number(args[0]) }, () => encodeBigInt(stream.bits64()));
    case "random":
      return drawArray(() => (kwargs["dtype"] === "float32" ? stream.randomFloat32() : stream.random()));
    case "integers":
      return drawIntegers(stream, args, kwargs, shape);
    case "normal":
    case "standard_normal":
      return drawArray(() => stream.normal(toNumber(args[0], 0), toNumber(args[1], 1)));
    case "exponential":
      return drawArray(() => stream.exponential(toNumber(args[0], 1)));
    case "uniform":
      return drawUniform(stream, args, drawArray);
    case "geometric":
      return drawArray(() => stream.geometric(toNumber(args[0], NaN)));
    case "choice":
      return drawChoice(stream, args[0], kwargs, shape);
    case "permutation": {
      const values = Array.isArray(args[0]) ? [...args[0]] : Array.from({ length: Number(args[0]) }, (_, i) => i);
      stream.shuffle(values);
      return values;
    }
    case "shuffle_list":
    case "shuffle_array":
      return stream.permutation(Number(args[0]));
    case "shuffle_rows": {
      const [rows, columns] = args.map(Number);
      return stream.permutation(rows).map((row) => Array.from({ length: columns }, (_, i) => row * columns + i));
    }
    default:
      throw new Error(`The generator's method ${method} is not known.`);
  }
}

function toNumber(value: Json | undefined, fallback: number): number {
  return value === undefined ? fallback : Number(decodeNumber(value));
}

function encodeBigInt(value: bigint): Json {
  return value > 2n ** 53n || value < -(2n ** 53n) ? value.toString() : Number(value);
}

function drawIntegers(
  stream: RandomStream,
  args: Json[],
  kwargs: Record<string, Json>,
  shape: number[] | undefined,
): Json {
  const [low, high] = args.length > 1 ? args : [0, args[0]];
  const dtype = (kwargs["dtype"] as IntegerDtype | undefined) ?? "int64";
  const last = BigInt(high as number | string) - (kwargs["endpoint"] === true ? 0n : 1n);
  const first = BigInt(low as number | string);
  const cast = (value: number): Json => (dtype === "bool" ? value === 1 : value);
  if (dtype === "int64") {
    const draw = () => encodeBigInt(stream.integers64(first, last));
    return shape === undefined ? draw() : nestArrays(Array.from({ length: elementCount(shape) }, draw), shape);
  }
  const values = stream.integersArray(
    Number(first),
    Number(last) + 1,
    shape === undefined ? 1 : elementCount(shape),
    dtype,
  );
  return shape === undefined ? cast(values[0]) : nestArrays(values.map(cast), shape);
}

function drawUniform(stream: RandomStream, [low = 0, high = 1]: Json[], drawArray: (draw: () => Json) => Json): Json {
  if (!Array.isArray(low) && !Array.isArray(high)) return drawArray(() => stream.uniform(Number(low), Number(high)));
  const length = Array.isArray(low) ? low.length : (high as Json[]).length;
  const boundAt = (bound: Json, i: number) => Number(Array.isArray(bound) ? bound[i] : bound);
  return Array.from({ length }, (_, i) => stream.uniform(boundAt(low, i), boundAt(high, i)));
}

function drawChoice(stream: RandomStream, from: Json, kwargs: Record<string, Json>, shape: number[] | undefined): Json {
  const values = Array.isArray(from) ? from : undefined;
  const count = values?.length ?? Number(from);
  const valueAt = (index: number): Json => (values === undefined ? index : values[index]);
  const probabilities = kwargs["p"] as number[] | undefined;
  const size = shape === undefined ? 1 : elementCount(shape);
  const indices =
    kwargs["replace"] === false
      ? stream.sampleIndices(count, size, { probabilities, shuffle: kwargs["shuffle"] !== false })
      : Array.from({ length: size }, () => stream.choiceIndex(count, { probabilities }));
  return shape === undefined ? valueAt(indices[0]) : nestArrays(indices.map(valueAt), shape);
}
