import { create } from "@bufbuild/protobuf";
import { LlamaGymError } from "../../core/errors.js";
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

/** Attribute values; integers and floats are told apart by wrapping floats, as ONNX types its attributes. */
type AttributeValue = number | readonly number[] | string | { readonly float: number } | GraphProto;

export const MS_DOMAIN = "com.microsoft";

export interface EmitOptions {
  readonly attributes?: Readonly<Record<string, AttributeValue | undefined>>;
  readonly domain?: string;
  readonly outputs?: number;
}

const textEncoder = new TextEncoder();

function createAttribute(name: string, value: AttributeValue): AttributeProto {
  if (typeof value === "number")
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
        : { case: "dimParam" as const, value: d.key },
  }));
  return create(ValueInfoProtoSchema, {
    name,
    type: { value: { case: "tensorType", value: { elemType: dtypes[dtype].onnx, shape: { dim } } } },
  });
}

/** Where a graph will run: some operators have forms that only some devices compute, or compute well. */
export type GraphDevice = "cpu" | "webgpu" | "cuda";

/** Collects the ONNX nodes and constants of one graph (or of a subgraph, whose names continue its parent's). */
export class Emitter {
  readonly device: GraphDevice;
  readonly nodes: NodeProto[] = [];
  readonly initializers: TensorProto[] = [];
  private readonly declaredTypes = new Map<string, ValueInfoProto>();
  private readonly constants = new Map<string, string>();
  private readonly memos = new Map<string, string>();
  /** For each dimension, a one-element int64 value that holds it. */
  private readonly dimValues = new Map<string, string>();
  /** For each size name, a graph input and the axis on which it shows. */
  private readonly dimSources = new Map<string, { readonly input: string; readonly axis: number }>();
  private readonly counter: { next: number };

  /** @param from the device of a whole graph, or the graph that a subgraph belongs to. */
  constructor(from: GraphDevice | Emitter) {
    this.device = from instanceof Emitter ? from.device : from;
    this.counter = from instanceof Emitter ? from.counter : { next: 0 };
  }

  /** A new name; the mark keeps it apart from the names of inputs, weights and outputs. */
  newName(prefix: string): string {
    return `${prefix}#${this.counter.next++}`;
  }

  /** Adds a node; gives the names of its outputs. */
  emitAll(
    opType: string,
    inputs: readonly string[],
    { attributes = {}, domain = "", outputs = 1 }: EmitOptions = {},
  ): string[] {
    const names = Array.from({ length: outputs }, () => this.newName(opType));
    const attributeProtos = Object.entries(attributes).flatMap(([name, value]) =>
      value === undefined ? [] : [createAttribute(name, value)],
    );
    this.nodes.push(
      create(NodeProtoSchema, {
        input: [...inputs],
        output: names,
        name: names[0],
        opType,
        domain,
        attribute: attributeProtos,
      }),
    );
    return names;
  }

  /** Adds a node of one output; gives that output's name. */
  emit(opType: string, inputs: readonly string[], options: EmitOptions = {}): string {
    return this.emitAll(opType, inputs, { ...options, outputs: 1 })[0];
  }

  /** Gives values that nodes compute other names, wherever they are read. */
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

  /** A constant inside the graph; equal small constants are written once. */
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

  /** A value that is emitted once for each key: for what many nodes of a graph need alike. */
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

  /** Lets a graph input give values to the size names that it shows. */
  registerDimSources(input: string, shape: Shape): void {
    shape.forEach((dim, axis) => {
      if (typeof dim === "number" || this.dimSources.has(dim.key) || dim.terms.get(dim.key) !== 1) return;
      this.dimSources.set(dim.key, { input, axis });
    });
  }

  /** Says what a value is, which the runtime plans memory by (docs/decisions/declared-shapes.md). */
  declareType(name: string, dtype: DType, shape: Shape): void {
    this.declaredTypes.set(name, createValueInfo(name, dtype, shape));
  }

  /** The size of a name, read from a graph input. */
  private namedDim(name: string): string {
    return this.emitOnce(`size ${name}`, () => {
      const source = this.dimSources.get(name);
      if (source === undefined)
        throw new LlamaGymError("INVALID_ARGUMENT", `No input of the graph gives the size of dimension "${name}".`);
      return this.emit("Shape", [source.input], { attributes: { start: source.axis, end: source.axis + 1 } });
    });
  }

  /** A one-element int64 value that holds a dimension. */
  dim(dim: Dim): string {
    if (typeof dim === "number") return this.ints([dim]);
    const known = this.dimValues.get(dim.key);
    if (known !== undefined) return known;
    let sum: string | undefined;
    for (const [monomial, coefficient] of dim.terms) {
      let product = coefficient === 1 && monomial !== "" ? undefined : this.ints([coefficient]);
      for (const name of monomial.split("*")) {
        if (name === "") continue;
        const namedDim = this.namedDim(name);
        product = product === undefined ? namedDim : this.emit("Mul", [product, namedDim]);
      }
      sum = sum === undefined ? product! : this.emit("Add", [sum, product!]);
    }
    this.dimValues.set(dim.key, sum!);
    return sum!;
  }

  /** An int64 vector that holds a shape. */
  shape(shape: Shape): string {
    if (shape.every((dim) => typeof dim === "number")) return this.ints(shape);
    return this.emitOnce(`shape ${formatShape(shape)}`, () =>
      this.emit(
        "Concat",
        shape.map((dim) => this.dim(dim)),
        { attributes: { axis: 0 } },
      ),
    );
  }

  /** Zeros of a type and shape. */
  zeros(dtype: DType, shape: Shape): string {
    const zero = this.constant(dtype, [], new Uint8Array(byteLength(dtype, 1)));
    return this.emit("Expand", [zero, this.shape(shape)]);
  }

  /** A scalar float32 that holds a dimension. */
  floatDim(dim: Dim): string {
    return this.emitOnce(`float ${dim.toString()}`, () => {
      const scalar = this.emit("Squeeze", [this.dim(dim)]);
      return this.emit("Cast", [scalar], { attributes: { to: dtypes.float32.onnx } });
    });
  }

  reshape(value: string, shape: Shape): string {
    const symbolic = shape.filter((dim) => typeof dim !== "number");
    const inferred = symbolic.length === 1 && !shape.includes(0);
    const target = inferred ? this.ints(shape.map((dim) => (typeof dim === "number" ? dim : -1))) : this.shape(shape);
    return this.emit("Reshape", [value, target], { attributes: { allowzero: 1 } });
  }

  /** value[..., start:end, ...] along an axis; the bounds may be symbolic. */
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
