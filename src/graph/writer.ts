import { create, toBinary } from "@bufbuild/protobuf";
import { LlamaGymError } from "../errors.js";
import { dtypes, type DType } from "../tensor/dtype.js";
import { sameShape, showShape, type Shape } from "./dim.js";
import { Emitter, MICROSOFT, valueInfo, type GraphDevice } from "./emitter.js";
import { topologicalOrder } from "./gradient.js";
import type { Node } from "./node.js";
import { ModelProtoSchema, TensorProto_DataLocation, TensorProtoSchema, type ModelProto } from "./onnx/onnx_pb.js";
import { inputOperation, weightOperation } from "./ops/constant.js";
import { outputOperation } from "./ops/normalisation.js";

export interface NamedType {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: Shape;
}

/** A graph ready to be written as ONNX: what it takes, what it gives, and which frozen weights it reads. */
export interface CompiledGraph {
  readonly inputs: readonly NamedType[];
  readonly outputs: readonly NamedType[];
  readonly weights: readonly NamedType[];
  /** The ONNX file's bytes, for a device (the processor by default); `locate` says where each weight's data lies. */
  serialize(locate: (weight: NamedType) => WeightLocation, device?: GraphDevice): Uint8Array;
}

/** Bytes of a weight inside an external file (or a buffer given under that name). */
export interface WeightLocation {
  readonly file: string;
  readonly offset: number;
  readonly byteLength: number;
}

const IR_VERSION = 10n;
const ONNX_OPSET = 21n;

/**
 * Compiles the nodes that the outputs need into one ONNX graph; equal subexpressions are computed once.
 * Throws SHAPE_MISMATCH when one input name stands for two types.
 */
export function compile(outputs: Readonly<Record<string, Node>>): CompiledGraph {
  const roots = Object.values(outputs);
  const inputs = new Map<string, NamedType>();
  const weights = new Map<string, NamedType>();
  const order = topologicalOrder(roots, computedFrom);
  for (const node of order) {
    const known = node.operation === inputOperation ? inputs : node.operation === weightOperation ? weights : undefined;
    if (known === undefined) continue;
    const type = node.attributes as NamedType;
    const before = known.get(type.name);
    if (before !== undefined && (before.dtype !== type.dtype || !sameShape(before.shape, type.shape))) {
      throw new LlamaGymError(
        "SHAPE_MISMATCH",
        `"${type.name}" stands for both ${before.dtype}${showShape(before.shape)} and ${type.dtype}${showShape(type.shape)}.`,
      );
    }
    known.set(type.name, { name: type.name, dtype: type.dtype, shape: type.shape });
  }
  const clash = [...inputs.keys()].find((name) => weights.has(name) || name in outputs);
  const clashing = clash ?? [...weights.keys()].find((name) => name in outputs);
  if (clashing !== undefined) {
    const expected = "inputs, weights and outputs of one graph need different names";
    throw new LlamaGymError("INVALID_ARGUMENT", `"${clashing}" names two things; ${expected}.`);
  }
  const merged = mergeEqual(order, roots);
  const types = {
    inputs: [...inputs.values()],
    outputs: Object.entries(outputs).map(([name, { dtype, shape }]) => ({ name, dtype, shape })),
    weights: [...weights.values()],
  };
  // Written for the processor at once, so that what cannot be written is refused here.
  const forCpu = emit("cpu", merged, types.inputs, outputs);
  return {
    ...types,
    serialize: (locate, device = "cpu") => {
      const emitter = device === "cpu" ? forCpu : emit(device, merged, types.inputs, outputs);
      return toBinary(ModelProtoSchema, model(emitter, types, locate));
    },
  };
}

function emit(
  device: GraphDevice,
  { distinct, numberOf }: MergedNodes,
  inputs: readonly NamedType[],
  outputs: Readonly<Record<string, Node>>,
): Emitter {
  const emitter = new Emitter(device);
  for (const { name, shape } of inputs) emitter.learnSizes(name, shape);
  const names: (readonly string[])[] = [];
  for (const { node, operands, read } of distinct) {
    // An `output` node needs all names of its operation, not only the first.
    const operandNames =
      node.operation === outputOperation ? names[operands[0]] : operands.map((number) => names[number][0]);
    const { attributes } = node;
    const emitted = node.operation.onnx({
      node,
      inputs: operandNames,
      attributes,
      emitter,
      isRead: (index) => read.has(index),
    });
    const emittedNames = typeof emitted === "string" ? [emitted] : emitted;
    emitter.declare(emittedNames[0], node.dtype, node.shape);
    names.push(emittedNames);
  }
  const computed = new Set(emitter.nodes.flatMap(({ output }) => output));
  const publicNames = new Map<string, string>();
  for (const [name, node] of Object.entries(outputs)) {
    const [inner] = names[numberOf.get(node)!];
    // What is given under two names, or as it came, takes a copy.
    const isFree = computed.has(inner) && !publicNames.has(inner);
    publicNames.set(isFree ? inner : emitter.emit("Identity", [inner]), name);
  }
  emitter.rename(publicNames);
  return emitter;
}

/** What a node's value is computed from: all inputs but those that matter to the gradient only. */
function computedFrom({ operation, inputs }: Node): readonly Node[] {
  return inputs.slice(0, operation.valueInputs ?? inputs.length);
}

interface DistinctNode {
  readonly node: Node;
  /** Numbers of the nodes that it is computed from. */
  readonly operands: readonly number[];
  /** Its outputs that other nodes or the graph's outputs read. */
  readonly read: Set<number>;
}

interface MergedNodes {
  /** One of each set of equal nodes, each after those that it is computed from. */
  readonly distinct: readonly DistinctNode[];
  /** For every node, the number of the one that stands for it. */
  readonly numberOf: ReadonlyMap<Node, number>;
}

function mergeEqual(order: readonly Node[], roots: readonly Node[]): MergedNodes {
  const distinct: DistinctNode[] = [];
  const numberOf = new Map<Node, number>();
  const numberOfKey = new Map<string, number>();
  const dataIdentity = new Map<object, number>();
  for (const node of order) {
    const operands = computedFrom(node).map((input) => numberOf.get(input)!);
    const key = `${node.again === true ? "again " : ""}${node.operation.name}(${operands.join(",")})${attributeKey(node.attributes, dataIdentity)}`;
    const known = numberOfKey.get(key);
    numberOf.set(node, known ?? distinct.length);
    if (known !== undefined) continue;
    numberOfKey.set(key, distinct.length);
    distinct.push({ node, operands, read: new Set() });
    const index = node.operation === outputOperation ? (node.attributes as { index: number }).index : 0;
    for (const operand of operands) distinct[operand].read.add(index);
  }
  for (const root of roots) distinct[numberOf.get(root)!].read.add(0);
  return { distinct, numberOf };
}

/** A text that is equal for equal attributes; large data counts as equal only to itself. */
function attributeKey(attributes: unknown, dataIdentity: Map<object, number>): string {
  return JSON.stringify(attributes, (_, value: unknown) => {
    if (ArrayBuffer.isView(value)) {
      if (value.byteLength <= 64) return [...new Uint8Array(value.buffer, value.byteOffset, value.byteLength)];
      if (!dataIdentity.has(value)) dataIdentity.set(value, dataIdentity.size);
      return `data ${dataIdentity.get(value)}`;
    }
    // JSON knows neither infinities nor -0.
    if (typeof value === "number" && !Number.isFinite(value)) return `number ${value}`;
    if (Object.is(value, -0)) return "number -0";
    return value instanceof Object && "key" in value ? (value as { key: string }).key : value;
  });
}

function model(
  emitter: Emitter,
  { inputs, outputs, weights }: Pick<CompiledGraph, "inputs" | "outputs" | "weights">,
  locate: (weight: NamedType) => WeightLocation,
): ModelProto {
  const graph = emitter.graph(
    "llamagym",
    inputs.map(({ name, dtype, shape }) => valueInfo(name, dtype, shape)),
    outputs.map(({ name, dtype, shape }) => valueInfo(name, dtype, shape)),
  );
  for (const weight of weights) {
    const { file, offset, byteLength } = locate(weight);
    graph.initializer.push(
      create(TensorProtoSchema, {
        name: weight.name,
        dims: weight.shape.map((dim) => BigInt(dim as number)),
        dataType: dtypes[weight.dtype].onnx,
        dataLocation: TensorProto_DataLocation.EXTERNAL,
        externalData: [
          { key: "location", value: file },
          { key: "offset", value: String(offset) },
          { key: "length", value: String(byteLength) },
        ],
      }),
    );
  }
  return create(ModelProtoSchema, {
    irVersion: IR_VERSION,
    producerName: "llamagym",
    graph,
    opsetImport: [
      { domain: "", version: ONNX_OPSET },
      { domain: MICROSOFT, version: 1n },
    ],
  });
}
