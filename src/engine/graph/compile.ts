import { create, toBinary } from "@bufbuild/protobuf";
import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { dtypes, type DType } from "../tensor/dtype.js";
import { sameShape, formatShape, type Shape } from "./dim.js";
import { Emitter, INT8_PRODUCT, MS_DOMAIN, createValueInfo, type GraphDevice } from "./emitter.js";
import { topologicalSort } from "./gradient.js";
import type { Node } from "./node.js";
import { ModelProtoSchema, TensorProto_DataLocation, TensorProtoSchema, type ModelProto } from "./onnx/onnx_pb.js";
import { inputOperation, weightOperation } from "./ops/leaves.js";
import { outputOperation } from "./ops/layout.js";

/** Name, element type and shape of a graph's input or output. */
export interface NamedTensorType {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: Shape;
}

/** A graph ready for serialization: its inputs, outputs and frozen weights. */
export interface CompiledGraph {
  readonly inputs: readonly NamedTensorType[];
  readonly outputs: readonly NamedTensorType[];
  readonly weights: readonly NamedTensorType[];
  /** Whether it multiplies 8-bit numbers. */
  readonly hasInt8Products: boolean;
  /** The distinct nodes, inputs first. */
  readonly nodes: readonly DistinctNode[];
  /** Index of each output's node. */
  readonly outputNodes: readonly number[];
  /**
   * Serializes the graph as ONNX for a device (default "cpu"); `locate` gives each weight's
   * location.
   */
  serialize(locate: (weight: NamedTensorType) => WeightLocation, device?: GraphDevice): Uint8Array;
}

/** Byte range of a weight in an external file or in a buffer of that name. */
export interface WeightLocation {
  readonly file: string;
  readonly offset: number;
  readonly byteLength: number;
  /** Forms of the weight that kernels read, in the same file; see Runtime.packWeight. */
  readonly packed?: readonly string[];
  /**
   * Whether the runtime must take the weight as it is, as if it could change: it then keeps no
   * packed copy of it.
   */
  readonly isVariable?: boolean;
}

const IR_VERSION = 10n;
const ONNX_OPSET = 21n;

/**
 * Compiles the nodes that the outputs depend on into one ONNX graph, merging common subexpressions.
 * @throws SHAPE_MISMATCH when one input name is declared with two types.
 */
export function compile(outputs: Readonly<Record<string, Node>>): CompiledGraph {
  const roots = Object.values(outputs);
  const inputs = new Map<string, NamedTensorType>();
  const weights = new Map<string, NamedTensorType>();
  const order = topologicalSort(roots, getValueInputs);
  for (const node of order) {
    const declared =
      node.operation === inputOperation ? inputs : node.operation === weightOperation ? weights : undefined;
    if (declared === undefined) continue;
    const type = node.attributes as NamedTensorType;
    const existing = declared.get(type.name);
    if (existing !== undefined && (existing.dtype !== type.dtype || !sameShape(existing.shape, type.shape)))
      throw new LlamaGymError(
        "SHAPE_MISMATCH",
        `"${type.name}" is declared both as ${existing.dtype}${formatShape(existing.shape)} and as ${type.dtype}${formatShape(type.shape)}.`,
      );
    declared.set(type.name, { name: type.name, dtype: type.dtype, shape: type.shape });
  }
  const clash = [...inputs.keys()].find((name) => weights.has(name) || name in outputs);
  const clashing = clash ?? [...weights.keys()].find((name) => name in outputs);
  if (clashing !== undefined) {
    const expected = "Names of inputs, weights and outputs of a graph must differ";
    throw invalidArgument(`"${clashing}" is used twice. ${expected}.`);
  }
  const merged = mergeEqualNodes(order, roots);
  const types = {
    inputs: [...inputs.values()],
    outputs: Object.entries(outputs).map(([name, { dtype, shape }]) => ({ name, dtype, shape })),
    weights: [...weights.values()],
  };
  // Emitting for the CPU right away reports unsupported graphs at compile time.
  const cpuEmitter = emitGraph("cpu", merged, types.inputs, outputs);
  return {
    ...types,
    hasInt8Products: cpuEmitter.nodes.some(({ opType }) => opType === INT8_PRODUCT),
    nodes: merged.distinct,
    outputNodes: roots.map((root) => merged.nodeIndices.get(root)!),
    serialize: (locate, device = "cpu") => {
      const emitter = device === "cpu" ? cpuEmitter : emitGraph(device, merged, types.inputs, outputs);
      return toBinary(ModelProtoSchema, createModelProto(emitter, types, locate));
    },
  };
}

function emitGraph(
  device: GraphDevice,
  { distinct, nodeIndices }: MergedNodes,
  inputs: readonly NamedTensorType[],
  outputs: Readonly<Record<string, Node>>,
): Emitter {
  const emitter = new Emitter(device);
  for (const { name, shape } of inputs) emitter.registerDimSources(name, shape);
  const names: (readonly string[])[] = [];
  for (const { node, operands, readOutputs } of distinct) {
    // An `output` node receives the names of all outputs of its operation, not only the first.
    const operandNames =
      node.operation === outputOperation ? names[operands[0]] : operands.map((number) => names[number][0]);
    const { attributes } = node;
    const emitted = node.operation.onnx({
      node,
      inputs: operandNames,
      attributes,
      emitter,
      isRead: (index) => readOutputs.has(index),
    });
    const emittedNames = typeof emitted === "string" ? [emitted] : emitted;
    emitter.declareType(emittedNames[0], node.dtype, node.shape);
    names.push(emittedNames);
  }
  const computed = new Set(emitter.nodes.flatMap(({ output }) => output));
  const publicNames = new Map<string, string>();
  for (const [name, node] of Object.entries(outputs)) {
    const [inner] = names[nodeIndices.get(node)!];
    // Graph inputs and values with two output names are copied.
    const canRename = computed.has(inner) && !publicNames.has(inner);
    publicNames.set(canRename ? inner : emitter.emit("Identity", [inner]), name);
  }
  emitter.rename(publicNames);
  return emitter;
}

/** Returns the inputs that determine the node's value, without those only its gradient reads. */
function getValueInputs({ operation, inputs }: Node): readonly Node[] {
  return inputs.slice(0, operation.valueInputCount ?? inputs.length);
}

export interface DistinctNode {
  readonly node: Node;
  /** Indices of the nodes it is computed from. */
  readonly operands: readonly number[];
  /** Indices of its outputs read by other nodes or returned by the graph. */
  readonly readOutputs: ReadonlySet<number>;
}

interface MergedNodes {
  /** One node per set of equal nodes, in topological order. */
  readonly distinct: readonly DistinctNode[];
  /** Index of the node that replaces each node. */
  readonly nodeIndices: ReadonlyMap<Node, number>;
}

function mergeEqualNodes(order: readonly Node[], roots: readonly Node[]): MergedNodes {
  const distinct: (DistinctNode & { readonly readOutputs: Set<number> })[] = [];
  const nodeIndices = new Map<Node, number>();
  const indexByKey = new Map<string, number>();
  const dataIdentity = new Map<object, number>();
  for (const node of order) {
    const operands = getValueInputs(node).map((input) => nodeIndices.get(input)!);
    const key = `${node.isRecomputed === true ? "recomputed " : ""}${node.operation.name}(${operands.join(",")})${attributeKey(node.attributes, dataIdentity)}`;
    const known = indexByKey.get(key);
    nodeIndices.set(node, known ?? distinct.length);
    if (known !== undefined) continue;
    indexByKey.set(key, distinct.length);
    distinct.push({ node, operands, readOutputs: new Set() });
    const index = node.operation === outputOperation ? (node.attributes as { index: number }).index : 0;
    for (const operand of operands) distinct[operand].readOutputs.add(index);
  }
  for (const root of roots) distinct[nodeIndices.get(root)!].readOutputs.add(0);
  return { distinct, nodeIndices };
}

/**
 * Returns a key that is equal for equal attributes. Arrays above 64 bytes are compared by identity.
 */
function attributeKey(attributes: unknown, dataIdentity: Map<object, number>): string {
  return JSON.stringify(attributes, (_, value: unknown) => {
    if (ArrayBuffer.isView(value)) {
      if (value.byteLength <= 64) return [...new Uint8Array(value.buffer, value.byteOffset, value.byteLength)];
      if (!dataIdentity.has(value)) dataIdentity.set(value, dataIdentity.size);
      return `data ${dataIdentity.get(value)}`;
    }
    // JSON has neither infinities nor -0.
    if (typeof value === "number" && !Number.isFinite(value)) return `number ${value}`;
    if (Object.is(value, -0)) return "number -0";
    return value instanceof Object && "key" in value ? (value as { key: string }).key : value;
  });
}

function createModelProto(
  emitter: Emitter,
  { inputs, outputs, weights }: Pick<CompiledGraph, "inputs" | "outputs" | "weights">,
  locate: (weight: NamedTensorType) => WeightLocation,
): ModelProto {
  const graph = emitter.toGraph(
    "llamagym",
    inputs.map(({ name, dtype, shape }) => createValueInfo(name, dtype, shape)),
    outputs.map(({ name, dtype, shape }) => createValueInfo(name, dtype, shape)),
  );
  for (const weight of weights) {
    const { file, offset, byteLength, packed = [], isVariable = false } = locate(weight);
    // An initializer that is an input as well has a default value, which is not constant.
    if (isVariable) graph.input.push(createValueInfo(weight.name, weight.dtype, weight.shape));
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
          ...packed.map((value, i) => ({ key: `prepacked_${i}`, value })),
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
      { domain: MS_DOMAIN, version: 1n },
    ],
  });
}
