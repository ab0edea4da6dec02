import { LlamaGymError } from "../../src/core/errors.js";
import type { GraphDevice } from "../../src/engine/graph/emitter.js";
import { gradient, topologicalSort } from "../../src/engine/graph/gradient.js";
import type { Node } from "../../src/engine/graph/node.js";
import { input, weight } from "../../src/engine/graph/ops/leaves.js";
import { add, cast, mul } from "../../src/engine/graph/ops/elementwise.js";
import { reduceSum } from "../../src/engine/graph/ops/reduce.js";
import { compile, type CompiledGraph, type NamedTensorType } from "../../src/engine/graph/compile.js";
import type { Runtime } from "../../src/engine/runtime/runtime.js";
import type { Session } from "../../src/engine/runtime/session.js";
import { dtypes, type DType, type TypedArray } from "../../src/engine/tensor/dtype.js";
import { RandomStream } from "../../src/core/random/random-stream.js";
import type { Tensor } from "../../src/engine/tensor/tensor.js";
import {
  count,
  evaluateShape,
  makeSymbolicDims,
  type Dims,
  type InputSpec,
  type OperationCase,
  type Sizes,
} from "./case.js";
import type { PlainArray } from "./plain.js";

const FLOAT32_TOLERANCE = 2e-5;
/** Step of the central differences, taken in float64. */
const STEP = 1e-4;

interface BuiltCase {
  readonly specs: Readonly<Record<string, InputSpec>>;
  readonly outputs: readonly Node[];
  readonly graph: CompiledGraph;
  readonly mismatches: readonly string[];
}

/**
 * Runs a case with static and with named dimensions, and says what is wrong: values against the reference, gradients
 * against central differences of it.
 */
export async function findMismatches(
  runtime: Runtime,
  operation: unknown,
  operationCase: OperationCase,
): Promise<string[]> {
  const frozen = sampleFrozenInputs(operationCase);
  const [first] = operationCase.sizes;
  const graphs = operationCase.sizes.map((sizes) => ({ dims: sizes as Dims, runs: [sizes] }));
  if (Object.keys(first).length > 0) graphs.push({ dims: makeSymbolicDims(first), runs: [...operationCase.sizes] });
  const built = graphs.map(({ dims, runs }) => ({ graph: buildCase(operationCase, dims), runs }));

  const used = topologicalSort(built.flatMap(({ graph }) => graph.outputs)).map((node) => node.operation as unknown);
  const mismatches = used.includes(operation) ? [] : ["the case does not use its operation"];
  for (const { graph, runs } of built) {
    mismatches.push(...graph.mismatches);
    for (const device of listDevices(graph.graph, runtime)) {
      await withSession(runtime, graph, device, frozen, async (session) => {
        for (const sizes of runs) {
          const found = await checkRun(session, graph, operationCase, sizes, frozen);
          mismatches.push(...found.map((text) => `written for ${device}, ${JSON.stringify(sizes)}: ${text}`));
        }
      });
    }
  }
  return mismatches;
}

/** The devices for which the graph is written in forms of its own; the processor runs them all. */
function listDevices(graph: CompiledGraph, { device }: Runtime): readonly GraphDevice[] {
  const bytes = (form: GraphDevice) =>
    Buffer.from(graph.serialize(({ name }) => ({ file: name, offset: 0, byteLength: 0 }), form));
  return device === "cpu" && !bytes("webgpu").equals(bytes("cpu")) ? ["cpu", "webgpu"] : [device];
}

function buildCase(operationCase: OperationCase, dims: Dims): BuiltCase {
  const specs = operationCase.inputs(dims);
  const nodes = Object.fromEntries(
    Object.entries(specs).map(([name, { dtype, shape, frozen }]) => [
      name,
      frozen ? weight(name, dtype, shape as readonly number[]) : input(name, dtype, shape),
    ]),
  );
  const built = operationCase.build(nodes, dims);
  const outputs = Array.isArray(built) ? (built as readonly Node[]) : [built as Node];
  const loss = outputs
    .map((value, i) => reduceSum(mul(cast(value, "float32"), input(`cotangent${i}`, "float32", value.shape))))
    .reduce((left, right) => add(left, right));
  const { differentiable } = operationCase;
  const mismatches = Object.keys(nodes)
    .filter((name) => !differentiable.includes(name) && dependsOn(loss, nodes[name]))
    .map((name) => `a gradient flows to ${name}`);
  const parameters = differentiable.map((name) => nodes[name]);
  const gradients = parameters.length === 0 ? [] : gradient(loss, parameters);
  const graph = compile({
    ...Object.fromEntries(outputs.map((value, i) => [`value${i}`, value])),
    ...Object.fromEntries(gradients.map((value, i) => [`gradient of ${differentiable[i]}`, value])),
  });
  return { specs, outputs, graph, mismatches };
}

function dependsOn(loss: Node, parameter: Node): boolean {
  try {
    return gradient(loss, [parameter]).length > 0;
  } catch (error) {
    if (error instanceof LlamaGymError && error.message.includes("does not depend on parameter")) return false;
    throw error;
  }
}

type Values = Readonly<Record<string, PlainArray>>;

async function checkRun(
  session: Session,
  { specs, outputs, graph }: BuiltCase,
  operationCase: OperationCase,
  sizes: Sizes,
  frozen: Values,
): Promise<string[]> {
  const random = new RandomStream(Object.values(sizes).reduce((seed, size) => seed * 10 + size, 7));
  const values = { ...frozen, ...sampleInputs(specs, random, sizes, false) };
  const cotangents = outputs.map(({ shape }) => {
    const size = evaluateShape(shape, sizes);
    return { shape: size, data: Array.from({ length: count(size) }, () => Math.fround(random.normal())) };
  });
  const feeds: Record<string, Tensor> = {};
  for (const { name, dtype } of graph.inputs) {
    const given = name.startsWith("cotangent") ? cotangents[Number(name.slice("cotangent".length))] : values[name];
    feeds[name] = toTensor(dtype, given);
  }
  const results = await session.run(feeds);

  const expected = toArray(operationCase.reference(values, sizes));
  const mismatches =
    expected.length === outputs.length ? [] : [`${outputs.length} outputs, ${expected.length} expected`];
  expected.forEach((value, i) => {
    const { dtype, shape } = outputs[i];
    if (results[`value${i}`].dtype !== dtype)
      mismatches.push(`value ${i} is ${results[`value${i}`].dtype}, not ${dtype}`);
    const inferredShape = evaluateShape(shape, sizes).join();
    if (inferredShape !== value.shape.join())
      mismatches.push(`value ${i} is [${inferredShape}] by its rule, not [${value.shape.join()}]`);
    mismatches.push(
      ...findDifferences(results[`value${i}`], value, operationCase.tolerance).map((text) => `value ${i} ${text}`),
    );
  });
  const referenceLoss = (at: Values) => {
    const outputArrays = toArray((operationCase.gradientReference ?? operationCase.reference)(at, sizes));
    return outputArrays.reduce((total, { data }, i) => total + dot(data, cotangents[i].data), 0);
  };
  for (const name of operationCase.differentiable) {
    const { shape, data } = values[name];
    const numericGradient = data.map((_, i) => {
      const perturbedLoss = (delta: number) =>
        referenceLoss({ ...values, [name]: { shape, data: data.with(i, data[i] + delta) } });
      return (perturbedLoss(STEP) - perturbedLoss(-STEP)) / (2 * STEP);
    });
    const found = findDifferences(
      results[`gradient of ${name}`],
      { shape, data: numericGradient },
      operationCase.tolerance,
    );
    mismatches.push(...found.map((text) => `gradient of ${name} ${text}`));
  }
  return mismatches;
}

/** Where a tensor differs from what is expected; errors are relative to the larger of 1 and the expected value. */
export function findDifferences(actual: Tensor, expected: PlainArray, tolerance = FLOAT32_TOLERANCE): string[] {
  if (actual.shape.join() !== expected.shape.join())
    return [`has shape [${actual.shape.join()}], expected [${expected.shape.join()}]`];
  return expected.data.flatMap((value, i) => {
    const got = Number(actual.data[i]);
    const close = Object.is(got, value) || Math.abs(got - value) <= tolerance * Math.max(1, Math.abs(value));
    return close ? [] : [`at ${i} is ${got}, expected ${value}`];
  });
}

function sampleInputs(specs: BuiltCase["specs"], random: RandomStream, sizes: Sizes, frozen: boolean): Values {
  const selected = Object.entries(specs).filter(([, spec]) => (spec.frozen ?? false) === frozen);
  return Object.fromEntries(
    selected.map(([name, { dtype, shape, values }]) => {
      const size = evaluateShape(shape, sizes);
      const data = values(random, count(size), sizes);
      return [name, { shape: size, data: dtype === "float32" ? data.map(Math.fround) : data }];
    }),
  );
}

/** Frozen weights have static shapes and one value for all runs. */
function sampleFrozenInputs(operationCase: OperationCase): Values {
  const [sizes] = operationCase.sizes;
  return sampleInputs(operationCase.inputs(makeSymbolicDims(sizes)), new RandomStream(5), sizes, true);
}

async function withSession(
  runtime: Runtime,
  { graph }: BuiltCase,
  device: GraphDevice,
  frozen: Values,
  use: (session: Session) => Promise<void>,
): Promise<void> {
  const buffers = graph.weights.map(({ name, dtype }) => {
    const { data } = toTensor(dtype, frozen[name]);
    return { name, data: new Uint8Array(data.buffer) };
  });
  const locate = ({ name }: NamedTensorType) => ({
    file: name,
    offset: 0,
    byteLength: buffers.find((buffer) => buffer.name === name)!.data.byteLength,
  });
  const deviceGraph: CompiledGraph = { ...graph, serialize: (place) => graph.serialize(place, device) };
  const session = await runtime.createSession(deviceGraph, { buffers, locate });
  await use(session);
  await session.release();
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

function dot(a: readonly number[], b: readonly number[]): number {
  return a.reduce((total, value, i) => total + value * b[i], 0);
}

function toArray(value: PlainArray | readonly PlainArray[]): readonly PlainArray[] {
  return Array.isArray(value) ? (value as readonly PlainArray[]) : [value as PlainArray];
}
