import { create, toBinary } from "@bufbuild/protobuf";
import { LlamaGymError } from "../errors.js";
import { dtypes, type DType } from "../tensor/dtype.js";
import { sameShape, showShape, type Shape } from "./dim.js";
import { Emitter, MICROSOFT, valueInfo } from "./emitter.js";
import { topologicalOrder } from "./gradient.js";
import type { Node } from "./node.js";
import { ModelProtoSchema, TensorProto_DataLocation, TensorProtoSchema, type ModelProto } from "./onnx/onnx_pb.js";
import { inputOperation, weightOperation } from "./ops/constant.js";

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
  /** The ONNX file's bytes; `locate` says where each weight's data lies. */
  serialize(locate: (weight: NamedType) => WeightLocation): Uint8Array;
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
  const emitter = new Emitter();
  const inputs = new Map<string, NamedType>();
  const weights = new Map<string, NamedType>();
  const order = topologicalOrder(roots);
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
  for (const { name, shape } of inputs.values()) emitter.learnSizes(name, shape);

  const names = new Map<Node, readonly string[]>();
  const written = new Map<string, readonly string[]>();
  const dataIdentity = new Map<object, number>();
  for (const node of order) {
    const inputNames = node.inputs.map((input) => names.get(input)![0]);
    // An `output` node needs all names of its operation, not only the first.
    const operands = node.operation.name === "output" ? names.get(node.inputs[0])! : inputNames;
    const key = `${node.operation.name}(${operands.join(",")})${attributeKey(node.attributes, dataIdentity)}`;
    let result = written.get(key);
    if (result === undefined) {
      const emitted = node.operation.onnx({ node, inputs: operands, attributes: node.attributes, emitter });
      result = typeof emitted === "string" ? [emitted] : emitted;
      written.set(key, result);
    }
    names.set(node, result);
  }
  // An Identity gives each output its public name; the runtime folds it away.
  const outputTypes = Object.entries(outputs).map(([name, node]) => {
    const { nodes } = emitter;
    emitter.emit("Identity", [names.get(node)![0]]);
    nodes[nodes.length - 1].output = [name];
    return { name, dtype: node.dtype, shape: node.shape };
  });

  return {
    inputs: [...inputs.values()],
    outputs: outputTypes,
    weights: [...weights.values()],
    serialize: (locate) =>
      toBinary(ModelProtoSchema, model(emitter, [...inputs.values()], outputTypes, [...weights.values()], locate)),
  };
}

/** A text that is equal for equal attributes; large data counts as equal only to itself. */
function attributeKey(attributes: unknown, dataIdentity: Map<object, number>): string {
  return JSON.stringify(attributes, (_, value: unknown) => {
    if (ArrayBuffer.isView(value)) {
      if (value.byteLength <= 64) return [...new Uint8Array(value.buffer, value.byteOffset, value.byteLength)];
      if (!dataIdentity.has(value)) dataIdentity.set(value, dataIdentity.size);
      return `data ${dataIdentity.get(value)}`;
    }
    return value instanceof Object && "key" in value ? (value as { key: string }).key : value;
  });
}

function model(
  emitter: Emitter,
  inputs: readonly NamedType[],
  outputs: readonly NamedType[],
  weights: readonly NamedType[],
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
