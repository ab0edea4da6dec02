import { clone, fromBinary, toBinary } from "@bufbuild/protobuf";
import { INT8_PRODUCT } from "../graph/emitter.js";
import {
  type GraphProto,
  ModelProtoSchema,
  type NodeProto,
  NodeProtoSchema,
  TensorProtoSchema,
} from "../graph/onnx/onnx_pb.js";

/**
 * Gives each 8-bit product of a model its own copy of constant codes. ONNX Runtime's option
 * for wider sums replaces codes by unsigned ones, and fails at the second product of one name.
 * Weights in files stay there.
 */
export function separateInt8Weights(bytes: Uint8Array): Uint8Array {
  const model = fromBinary(ModelProtoSchema, bytes);
  if (model.graph !== undefined) new WeightSeparator(model.graph).separate();
  return toBinary(ModelProtoSchema, model);
}

class WeightSeparator {
  private readonly initializers;
  private readonly producers;
  private copies = 0;

  constructor(private readonly graph: GraphProto) {
    const inputs = new Set(graph.input.map(({ name }) => name));
    // An initializer that is an input as well may change.
    this.initializers = new Map(
      graph.initializer.filter(({ name }) => !inputs.has(name)).map((tensor) => [tensor.name, tensor]),
    );
    this.producers = new Map(graph.node.flatMap((node) => node.output.map((name) => [name, node])));
  }

  separate(): void {
    const used = new Set<string>();
    const nodes: NodeProto[] = [];
    for (const node of this.graph.node) {
      const [, codes] = node.input;
      if (node.opType === INT8_PRODUCT && used.has(codes) && this.isConstant(codes))
        node.input[1] = this.copy(codes, nodes);
      else if (node.opType === INT8_PRODUCT) used.add(codes);
      nodes.push(node);
    }
    this.graph.node = nodes;
  }

  private isConstant(name: string): boolean {
    if (this.initializers.has(name)) return true;
    const producer = this.producers.get(name);
    return producer !== undefined && producer.input.every((input) => this.isConstant(input));
  }

  /** Copies a constant value and what it is computed from; returns its name. */
  private copy(name: string, nodes: NodeProto[]): string {
    const suffix = `#${this.copies++}`;
    const tensor = this.initializers.get(name);
    if (tensor !== undefined) {
      this.graph.initializer.push({ ...clone(TensorProtoSchema, tensor), name: name + suffix });
      return name + suffix;
    }
    const node = clone(NodeProtoSchema, this.producers.get(name)!);
    node.input = node.input.map((input) => this.copy(input, nodes));
    node.output = node.output.map((output) => output + suffix);
    nodes.push({ ...node, name: node.name + suffix });
    return name + suffix;
  }
}
