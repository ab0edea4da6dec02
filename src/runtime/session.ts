import { LlamaGymError } from "../errors.js";
import { evaluateDim, showShape } from "../graph/dim.js";
import type { CompiledGraph, NamedType } from "../graph/writer.js";
import { byteLength } from "../tensor/dtype.js";
import { elementCount, type Tensor } from "../tensor/tensor.js";
import type { View } from "./buffer.js";
import type { Request, Result } from "./protocol.js";

/** Inputs by name: tensors, which are copied over, or views of buffers, which are used in place. */
export type Feeds = Readonly<Record<string, Tensor | View>>;

/** A graph that is loaded and ready to run, for inputs of any size that its named dimensions allow. */
export class Session {
  constructor(
    readonly graph: CompiledGraph,
    private readonly id: number,
    private readonly send: (request: Request) => Promise<Result>,
  ) {}

  /**
   * Computes the outputs (all by default). An output in `fetches` is written into the view given there, which may be that
   * of an input of the same run; the others are returned by value.
   * Throws SHAPE_MISMATCH for a missing or ill-shaped input, RUNTIME_FAILED when the computation fails.
   */
  async run(
    feeds: Feeds,
    { fetches = {}, outputs }: { fetches?: Readonly<Record<string, View>>; outputs?: readonly string[] } = {},
  ): Promise<Record<string, Tensor<"float32">>> {
    checkFeeds(this.graph.inputs, feeds);
    const names = outputs ?? this.graph.outputs.map(({ name }) => name);
    const result = await this.send({
      kind: "run",
      session: this.id,
      feeds: this.graph.inputs.map(({ name }) => [name, feeds[name]]),
      fetches: names.map((name) => [name, fetches[name]]),
    });
    return result as Record<string, Tensor<"float32">>;
  }

  async release(): Promise<void> {
    await this.send({ kind: "release", session: this.id });
  }
}

/** Every input there, of its type, and all named dimensions of one size throughout. */
function checkFeeds(inputs: readonly NamedType[], feeds: Feeds): void {
  const sizes = new Map<string, number>();
  for (const type of inputs) {
    const fed = feeds[type.name];
    if (fed === undefined)
      throw new LlamaGymError("SHAPE_MISMATCH", `Input "${type.name}" of the graph was not given.`);
    if (fed.dtype !== type.dtype || fed.shape.length !== type.shape.length) throw mismatch(type, fed);
    type.shape.forEach((dim, axis) => {
      if (typeof dim !== "number" && !sizes.has(dim.key)) sizes.set(dim.key, fed.shape[axis]);
    });
  }
  for (const type of inputs) {
    const fed = feeds[type.name];
    if (type.shape.some((dim, axis) => evaluateDim(dim, sizes) !== fed.shape[axis])) throw mismatch(type, fed);
    if (
      "data" in fed &&
      fed.data.length * fed.data.BYTES_PER_ELEMENT !== byteLength(fed.dtype, elementCount(fed.shape))
    ) {
      throw mismatch(type, fed);
    }
  }
}

function mismatch({ name, dtype, shape }: NamedType, fed: Tensor | View): LlamaGymError {
  const size = "data" in fed ? ` with ${fed.data.length} elements` : "";
  return new LlamaGymError(
    "SHAPE_MISMATCH",
    `Input "${name}" must be ${dtype}${showShape(shape)}, but is ${fed.dtype}${showShape(fed.shape)}${size}.`,
  );
}
