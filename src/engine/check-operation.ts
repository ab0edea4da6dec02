import { countElements } from "../core/numbers.js";
import { LlamaGymError } from "../core/errors.js";
import { RandomStream } from "../core/random/random-stream.js";
import { compareBytes } from "../core/bytes.js";
import { compile, type CompiledGraph } from "./graph/compile.js";
import { dim, evaluateDim, type Dim } from "./graph/dim.js";
import type { GraphDevice } from "./graph/emitter.js";
import { gradient, topologicalSort } from "./graph/gradient.js";
import type { Node, Operation } from "./graph/node.js";
import { add, cast, mul } from "./graph/ops/elementwise.js";
import { input, weight } from "./graph/ops/leaves.js";
import { reduceSum } from "./graph/ops/reduce.js";
import { Runtime } from "./runtime/runtime.js";
import { dtypes, type DType, type TypedArray } from "./tensor/dtype.js";
import type { Tensor } from "./tensor/tensor.js";

/** An array of numbers in row-major order. */
export interface PlainArray {
  readonly shape: readonly number[];
  readonly data: readonly number[];
}

/** Sizes of named dimensions. */
type Sizes = Readonly<Record<string, number>>;

/** An input of an operation's case. */
export interface OperationInput {
  readonly dtype: DType;
  readonly shape: readonly Dim[];
  /** Draws `count` values; `sizes` gives the named dimensions. */
  readonly values: (random: RandomStream, count: number, sizes: Sizes) => number[];
  /** Whether it is a frozen weight with static dimensions instead of an input of each run. */
  readonly frozen?: boolean;
}

/** A use of an operation: its graph and the same in plain arithmetic. */
export interface OperationCase {
  readonly title: string;
  /**
   * Sizes of the named dimensions. A graph is compiled for each, and one with symbolic dimensions
   * for all. Include 0.
   */
  readonly sizes: readonly Sizes[];
  readonly inputs: (dims: Readonly<Record<string, Dim>>) => Readonly<Record<string, OperationInput>>;
  readonly build: (
    inputs: Readonly<Record<string, Node>>,
    dims: Readonly<Record<string, Dim>>,
  ) => Node | readonly Node[];
  readonly reference: (
    inputs: Readonly<Record<string, PlainArray>>,
    sizes: Sizes,
  ) => PlainArray | readonly PlainArray[];
  /**
   * Inputs whose gradients must equal finite differences of the reference; no gradient may flow to
   * the others.
   */
  readonly differentiable: readonly string[];
  /**
   * Replaces `reference` in the finite differences, for operations whose gradient is not that of
   * their value.
   */
  readonly gradientReference?: OperationCase["reference"];
  /** Relative error allowed; default 2e-5, float32 rounding. */
  readonly tolerance?: number;
}

const FLOAT32_TOLERANCE = 2e-5;
/** Step of the central differences, which are computed in float64. */
const STEP = 1e-4;

/**
 * Checks an operation on cases: values, types and shapes against the reference and gradients
 * against finite differences, with static and symbolic dimensions, in the ONNX form of each device
 * that the runtime's device can run.
 *
 * @param runtime default: one on the CPU for this call.
 * @throws INVALID_STATE at the first violation.
 */
export async function checkOperation(
  operation: Operation<never>,
  cases: readonly OperationCase[],
  { runtime }: { readonly runtime?: Runtime } = {},
): Promise<void> {
  const ownRuntime = runtime ?? new Runtime({ device: "cpu", threads: 1 });
  try {
    for (const operationCase of cases) await checkCase(operation, operationCase, ownRuntime);
  } finally {
    if (runtime === undefined) await ownRuntime.close();
  }
}

async function checkCase(operation: Operation<never>, operationCase: OperationCase, runtime: Runtime): Promise<void> {
  const { sizes: allSizes, title } = operationCase;
  const symbolic = Object.fromEntries(Object.keys(allSizes[0]).map((name) => [name, dim(name)]));
  const frozen = drawInputs(operationCase.inputs(symbolic), new RandomStream(5), allSizes[0], true);
  const graphs = allSizes.map((sizes) => ({ built: buildCase(operationCase, sizes), runs: [sizes] }));
  if (Object.keys(symbolic).length > 0) graphs.push({ built: buildCase(operationCase, symbolic), runs: [...allSizes] });
  const nodes = topologicalSort(graphs.flatMap(({ built }) => built.outputs));
  if (!nodes.some((node) => (node.operation as unknown) === operation))
    throw violation(operation, title, "the case does not use the operation");
  for (const { built, runs } of graphs) {
    if (built.problem !== undefined) throw violation(operation, title, built.problem);
    for (const device of listDevices(built.graph, runtime)) {
      const found = await checkOnDevice(operationCase, built, runs, frozen, { runtime, device });
      if (found !== undefined) throw violation(operation, title, `${found} (${device})`);
    }
  }
}

function violation({ name }: Operation<never>, title: string, problem: string): LlamaGymError {
  return new LlamaGymError("INVALID_STATE", `checkOperation: ${name}, "${title}": ${problem}.`);
}

/**
 * Lists the devices for which the graph has its own form; the CPU also runs the forms of WebGPU.
 */
function listDevices(graph: CompiledGraph, { device }: Runtime): readonly GraphDevice[] {
  const serialize = (form: GraphDevice) =>
    graph.serialize(({ name }) => ({ file: name, offset: 0, byteLength: 0 }), form);
  return device === "cpu" && compareBytes(serialize("webgpu"), serialize("cpu")) !== 0 ? ["cpu", "webgpu"] : [device];
}

interface BuiltCase {
  readonly specs: Readonly<Record<string, OperationInput>>;
  readonly outputs: readonly Node[];
  readonly graph: CompiledGraph;
  readonly problem: string | undefined;
}

/**
 * Builds the values, and the gradients of their sum weighted by inputs "cotangent0", "cotangent1",
 * ...
 */
function buildCase(operationCase: OperationCase, dims: Readonly<Record<string, Dim>>): BuiltCase {
  const specs = operationCase.inputs(dims);
  const nodes = Object.fromEntries(
    Object.entries(specs).map(([name, { dtype, shape, frozen }]) => [
      name,
      frozen === true ? weight(name, dtype, shape as readonly number[]) : input(name, dtype, shape),
    ]),
  );
  const outputs = toArray<Node>(operationCase.build(nodes, dims));
  const loss = outputs
    .map((value, i) => reduceSum(mul(cast(value, "float32"), input(`cotangent${i}`, "float32", value.shape))))
    .reduce((left, right) => add(left, right));
  const { differentiable } = operationCase;
  const leak = Object.keys(nodes).find((name) => !differentiable.includes(name) && hasGradient(loss, nodes[name]));
  const gradients = gradient(
    loss,
    differentiable.map((name) => nodes[name]),
  );
  const graph = compile({
    ...Object.fromEntries(outputs.map((value, i) => [`value ${i}`, value])),
    ...Object.fromEntries(gradients.map((value, i) => [`gradient of ${differentiable[i]}`, value])),
  });
  return { specs, outputs, graph, problem: leak === undefined ? undefined : `a gradient flows to ${leak}` };
}

function hasGradient(loss: Node, parameter: Node): boolean {
  try {
    return gradient(loss, [parameter]).length > 0;
  } catch (error) {
    if (error instanceof LlamaGymError && error.message.includes("does not depend on parameter")) return false;
    throw error;
  }
}

type Values = Readonly<Record<string, PlainArray>>;

/** Returns the first problem of the case's graph, written for a device. */
async function checkOnDevice(
  operationCase: OperationCase,
  { specs, outputs, graph }: BuiltCase,
  runs: OperationCase["sizes"],
  frozen: Values,
  { runtime, device }: { readonly runtime: Runtime; readonly device: GraphDevice },
): Promise<string | undefined> {
  const buffers = graph.weights.map(({ name, dtype }) => {
    return { name, data: new Uint8Array(toTensor(dtype, frozen[name]).data.buffer) };
  });
  const byteLengths = new Map(buffers.map(({ name, data }) => [name, data.byteLength]));
  const session = await runtime.createSession(
    // Graphs for the CPU are written for this processor.
    { ...graph, serialize: (locate, own) => graph.serialize(locate, device === "cpu" ? own : device) },
    { buffers, locate: ({ name }) => ({ file: name, offset: 0, byteLength: byteLengths.get(name)! }) },
  );
  try {
    for (const sizes of runs) {
      const random = new RandomStream(Object.values(sizes).reduce((seed, size) => seed * 10 + size, 7));
      const values = { ...frozen, ...drawInputs(specs, random, sizes, false) };
      const cotangents = outputs.map(({ shape }) =>
        drawArray(shape, sizes, (count) => Array.from({ length: count }, () => Math.fround(random.normal()))),
      );
      const given: Values = {
        ...values,
        ...Object.fromEntries(cotangents.map((value, i) => [`cotangent${i}`, value])),
      };
      const feeds = graph.inputs.map(({ name, dtype }) => [name, toTensor(dtype, given[name])] as const);
      const results: Readonly<Record<string, Tensor>> = await session.run(Object.fromEntries(feeds));
      const problem =
        compareValues(operationCase, outputs, results, values, sizes) ??
        compareGradients(operationCase, cotangents, results, values, sizes);
      if (problem !== undefined) return `${problem} with sizes ${JSON.stringify(sizes)}`;
    }
    return undefined;
  } finally {
    await session.release();
  }
}

function compareValues(
  { reference, tolerance }: OperationCase,
  outputs: readonly Node[],
  results: Readonly<Record<string, Tensor>>,
  values: Values,
  sizes: Sizes,
): string | undefined {
  const expected = toArray<PlainArray>(reference(values, sizes));
  if (expected.length !== outputs.length) return `${outputs.length} outputs, expected ${expected.length}`;
  for (const [i, { dtype, shape }] of outputs.entries()) {
    const result = results[`value ${i}`];
    const inferred = evaluateShape(shape, sizes).join();
    if (result.dtype !== dtype) return `value ${i} is ${result.dtype}, expected ${dtype}`;
    if (inferred !== expected[i].shape.join())
      return `\`infer\` returns shape [${inferred}] for value ${i}, expected [${expected[i].shape.join()}]`;
    const difference = findDifference(result, expected[i], tolerance);
    if (difference !== undefined) return `value ${i} ${difference}`;
  }
  return undefined;
}

function compareGradients(
  { reference, gradientReference = reference, differentiable, tolerance }: OperationCase,
  cotangents: readonly PlainArray[],
  results: Readonly<Record<string, Tensor>>,
  values: Values,
  sizes: Sizes,
): string | undefined {
  const loss = (at: Values) =>
    toArray<PlainArray>(gradientReference(at, sizes)).reduce(
      (total, { data }, i) => data.reduce((sum, value, k) => sum + value * cotangents[i].data[k], total),
      0,
    );
  for (const name of differentiable) {
    const { shape, data } = values[name];
    const lossAt = (i: number, step: number) =>
      loss({ ...values, [name]: { shape, data: data.with(i, data[i] + step) } });
    const numeric = data.map((_, i) => (lossAt(i, STEP) - lossAt(i, -STEP)) / (2 * STEP));
    const difference = findDifference(results[`gradient of ${name}`], { shape, data: numeric }, tolerance);
    if (difference !== undefined) return `the gradient of ${name} ${difference}`;
  }
  return undefined;
}

/**
 * Describes the first difference; errors are relative to the larger of 1 and the expected value.
 */
export function findDifference(
  actual: Tensor,
  expected: PlainArray,
  tolerance = FLOAT32_TOLERANCE,
): string | undefined {
  if (actual.shape.join() !== expected.shape.join())
    return `has shape [${actual.shape.join()}], expected [${expected.shape.join()}]`;
  const at = expected.data.findIndex((value, i) => {
    const got = Number(actual.data[i]);
    return !Object.is(got, value) && !(Math.abs(got - value) <= tolerance * Math.max(1, Math.abs(value)));
  });
  return at < 0 ? undefined : `is ${actual.data[at]} at element ${at}, expected ${expected.data[at]}`;
}

function drawInputs(specs: BuiltCase["specs"], random: RandomStream, sizes: Sizes, frozen: boolean): Values {
  const chosen = Object.entries(specs).filter(([, spec]) => (spec.frozen ?? false) === frozen);
  return Object.fromEntries(
    chosen.map(([name, { dtype, shape, values }]) => {
      const drawn = drawArray(shape, sizes, (count) => values(random, count, sizes));
      return [name, dtype === "float32" ? { ...drawn, data: drawn.data.map(Math.fround) } : drawn];
    }),
  );
}

function drawArray(shape: readonly Dim[], sizes: Sizes, values: (count: number) => number[]): PlainArray {
  const staticShape = evaluateShape(shape, sizes);
  return { shape: staticShape, data: values(countElements(staticShape)) };
}

function evaluateShape(shape: readonly Dim[], sizes: Sizes): number[] {
  const known = new Map(Object.entries(sizes));
  return shape.map((size) => evaluateDim(size, known));
}

export function toTensor(dtype: DType, { shape, data }: PlainArray): Tensor {
  return { dtype, shape, data: toTypedArray(dtype, data) };
}

function toTypedArray(dtype: DType, data: readonly number[]): TypedArray {
  if (dtype === "int64") return BigInt64Array.from(data, BigInt);
  if (dtype === "int4" || dtype === "uint4") {
    const packed = new Uint8Array(Math.ceil(data.length / 2));
    data.forEach((value, i) => (packed[i >> 1] |= (value & 15) << (i % 2 === 0 ? 0 : 4)));
    return packed;
  }
  const array = new dtypes[dtype].arrayType(new ArrayBuffer(data.length * dtypes[dtype].bytes), 0, data.length);
  (array as Float32Array).set(data);
  return array;
}

function toArray<Value>(value: Value | readonly Value[]): readonly Value[] {
  return Array.isArray(value) ? (value as readonly Value[]) : [value as Value];
}
