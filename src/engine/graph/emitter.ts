import { create } from "@bufbuild/protobuf";
import { invalidArgument } from "../../core/errors.js";
import { byteLength, dtypes, type DType, type TypedArray } from "../tensor/dtype.js";
import { addDims, formatShape, type Dim, type Shape } from "./dim.js";
import {
  type AttributeProto,
  AttributeProto_AttributeType as AttributeType,
  AttributeProtoSchema,
  type GraphProto,
  GraphProtoSchema,
  type NodeProto,
  NodeProtoSchema,
  type TensorProto,
  TensorProtoSchema,
  type ValueInfoProto,
  ValueInfoProtoSchema,
} from "./onnx/onnx_pb.js";

/** Attribute values. Floats are wrapped, as ONNX attributes distinguish them from integers. */
type AttributeValue = number | boolean | readonly number[] | string | { readonly float: number } | GraphProto;

type Attributes = Readonly<Record<string, AttributeValue>>;

export const MS_DOMAIN = "com.microsoft";

/** ONNX Runtime's product of 8-bit matrices with float32 results. */
export const INT8_PRODUCT = "MatMulIntegerToFloat";

/** ONNX Runtime's operators in its own domain. */
const MS_OPERATORS: ReadonlySet<string> = new Set([
  "FusedMatMul",
  "GroupQueryAttention",
  INT8_PRODUCT,
  "MatMulNBits",
  "QuickGelu",
  "RotaryEmbedding",
]);

const textEncoder = new TextEncoder();

function createAttribute(name: string, value: AttributeValue): AttributeProto {
  if (typeof value === "number" || typeof value === "boolean")
    return create(AttributeProtoSchema, { name, i: BigInt(value), type: AttributeType.INT });
  if (typeof value === "string")
    return create(AttributeProtoSchema, { name, s: textEncoder.encode(value), type: AttributeType.STRING });
  if (Array.isArray(value))
    return create(AttributeProtoSchema, { name, ints: value.map(BigInt), type: AttributeType.INTS });
  if ("float" in value) return create(AttributeProtoSchema, { name, f: value.float, type: AttributeType.FLOAT });
  return create(AttributeProtoSchema, { name, g: value as GraphProto, type: AttributeType.GRAPH });
}

export function createValueInfo(name: string, dtype: DType, shape: Shape): ValueInfoProto {
  const dim = shape.map((d) => ({
    value:
      typeof d === "number"
        ? { case: "dimValue" as const, value: BigInt(d) }
        : { case: "dimParam" as const, value: d.label },
  }));
  return create(ValueInfoProtoSchema, {
    name,
    type: { value: { case: "tensorType", value: { elemType: dtypes[dtype].onnx, shape: { dim } } } },
  });
}

/**
 * Runtime that an ONNX graph is for: ONNX Runtime on the CPU, with its own operators, or any that
 * runs exported models on WebGPU. "cpu-uint8" is for processors that multiply only unsigned codes
 * of 8 bits right (see Runtime.getCodeType).
 */
export type GraphDevice = "cpu" | "cpu-uint8" | "webgpu";

/** Types of 8-bit codes; of unsigned ones, 128 is 0. */
export type CodeType = "int8" | "uint8";

/** Unsigned code of 0. */
export const ZERO_CODE = 128;

/**
 * Collects the ONNX nodes and constants of a graph or of a subgraph, which shares its parent's
 * naming.
 */
export class Emitter {
  readonly device: GraphDevice;
  readonly nodes: NodeProto[] = [];
  readonly initializers: TensorProto[] = [];
  private readonly declaredTypes = new Map<string, ValueInfoProto>();
  private readonly constants = new Map<string, string>();
  private readonly memos = new Map<string, string>();
  /** Graph input and axis from which each named size is read. */
  private readonly dimSources = new Map<string, { readonly input: string; readonly axis: number }>();
  private readonly counter: { next: number };

  /** @param from the device of a graph, or the parent of a subgraph. */
  constructor(from: GraphDevice | Emitter) {
    this.device = from instanceof Emitter ? from.device : from;
    this.counter = from instanceof Emitter ? from.counter : { next: 0 };
  }

  /** Returns an unused name; "#" keeps it distinct from inputs, weights and outputs. */
  newName(prefix: string): string {
    return `${prefix}#${this.counter.next++}`;
  }

  /** Adds a node and returns the names of its outputs. */
  emitAll(opType: string, inputs: readonly string[], outputs: number, attributes: Attributes = {}): string[] {
    const names = Array.from({ length: outputs }, () => this.newName(opType));
    const attribute = Object.entries(attributes).map(([name, value]) => createAttribute(name, value));
    const domain = MS_OPERATORS.has(opType) ? MS_DOMAIN : "";
    this.nodes.push(
      create(NodeProtoSchema, { input: [...inputs], output: names, name: names[0], opType, domain, attribute }),
    );
    return names;
  }

  /** Adds a node with one output and returns its name. */
  emit(opType: string, inputs: readonly string[], attributes?: Attributes): string {
    return this.emitAll(opType, inputs, 1, attributes)[0];
  }

  /** Renames computed values wherever they appear. */
  rename(names: ReadonlyMap<string, string>): void {
    const renameIn = (nodes: readonly NodeProto[]) => {
      for (const node of nodes) {
        node.input = node.input.map((name) => names.get(name) ?? name);
        node.output = node.output.map((name) => names.get(name) ?? name);
        for (const { g } of node.attribute) if (g !== undefined) renameIn(g.node);
      }
    };
    renameIn(this.nodes);
    for (const name of names.keys()) this.declaredTypes.delete(name);
  }

  /** Adds a constant; equal small constants are shared. */
  constant(dtype: DType, shape: readonly number[], data: TypedArray): string {
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    const key = bytes.length <= 64 ? `${dtype}:${shape.join(",")}:${bytes.join(",")}` : undefined;
    const known = key === undefined ? undefined : this.constants.get(key);
    if (known !== undefined) return known;
    const name = this.newName("constant");
    this.initializers.push(
      create(TensorProtoSchema, {
        name,
        dims: shape.map(BigInt),
        dataType: dtypes[dtype].onnx,
        rawData: Uint8Array.from(bytes),
      }),
    );
    if (key !== undefined) this.constants.set(key, name);
    return name;
  }

  /** Emits a value once per key. */
  emitOnce(key: string, emit: () => string): string {
    const known = this.memos.get(key) ?? emit();
    this.memos.set(key, known);
    return known;
  }

  float(value: number): string {
    return this.constant("float32", [], Float32Array.of(value));
  }

  ints(values: readonly number[]): string {
    return this.constant("int64", [values.length], BigInt64Array.from(values.map(BigInt)));
  }

  /** Registers a graph input as the source of the named sizes in its shape. */
  registerDimSources(input: string, shape: Shape): void {
    shape.forEach((dim, axis) => {
      if (typeof dim === "number" || this.dimSources.has(dim.key) || dim.terms.get(dim.key) !== 1) return;
      this.dimSources.set(dim.key, { input, axis });
    });
  }

  /**
   * Declares a value's type, which ONNX Runtime's memory planner uses
   * (docs/decisions/declared-shapes.md).
   */
  declareType(name: string, dtype: DType, shape: Shape): void {
    this.declaredTypes.set(name, createValueInfo(name, dtype, shape));
  }

  /** Emits the value of a named size. */
  private namedDim(name: string): string {
    return this.emitOnce(`size ${name}`, () => {
      const source = this.dimSources.get(name);
      if (source === undefined) throw invalidArgument(`No graph input determines dimension "${name}".`);
      return this.emit("Shape", [source.input], { start: source.axis, end: source.axis + 1 });
    });
  }

  /** Emits a dimension as a one-element int64 value. */
  dim(dim: Dim): string {
    if (typeof dim === "number") return this.ints([dim]);
    return this.emitOnce(`dim ${dim.key}`, () => {
      const products = [...dim.terms].map(([monomial, coefficient]) => {
        const factors = monomial === "" ? [] : monomial.split("*").map((name) => this.namedDim(name));
        if (coefficient !== 1 || factors.length === 0) factors.unshift(this.ints([coefficient]));
        return factors.reduce((product, factor) => this.emit("Mul", [product, factor]));
      });
      return products.reduce((sum, product) => this.emit("Add", [sum, product]));
    });
  }

  /** Emits a shape as an int64 vector. */
  shape(shape: Shape): string {
    if (shape.every((dim) => typeof dim === "number")) return this.ints(shape);
    return this.emitOnce(`shape ${formatShape(shape)}`, () =>
      this.emit(
        "Concat",
        shape.map((dim) => this.dim(dim)),
        { axis: 0 },
      ),
    );
  }

  /** Emits zeros of a type and shape. */
  zeros(dtype: DType, shape: Shape): string {
    const zero = this.constant(dtype, [], new Uint8Array(byteLength(dtype, 1)));
    return this.emit("Expand", [zero, this.shape(shape)]);
  }

  /** Emits a dimension as a float32 scalar. */
  floatDim(dim: Dim): string {
    return this.emitOnce(`float ${dim.toString()}`, () => {
      const scalar = this.emit("Squeeze", [this.dim(dim)]);
      return this.emit("Cast", [scalar], { to: dtypes.float32.onnx });
    });
  }

  reshape(value: string, shape: Shape): string {
    const symbolic = shape.filter((dim) => typeof dim !== "number");
    const inferred = symbolic.length === 1 && !shape.includes(0);
    const target = inferred ? this.ints(shape.map((dim) => (typeof dim === "number" ? dim : -1))) : this.shape(shape);
    return this.emit("Reshape", [value, target], { allowzero: 1 });
  }

  /** Emits value[..., start : start + length, ...] along an axis; the bounds may be symbolic. */
  slice(value: string, axis: number, start: Dim, length: Dim): string {
    return this.emit("Slice", [value, this.dim(start), this.dim(addDims(start, length)), this.ints([axis])]);
  }

  toGraph(name: string, inputs: readonly ValueInfoProto[], outputs: readonly ValueInfoProto[]): GraphProto {
    const computed = this.nodes.flatMap(({ output }) => output);
    return create(GraphProtoSchema, {
      name,
      node: this.nodes,
      initializer: [...this.initializers],
      input: [...inputs],
      output: [...outputs],
      valueInfo: computed.flatMap((value) => this.declaredTypes.get(value) ?? []),
    });
  }
}
