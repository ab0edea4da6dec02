import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { evaluateDim, formatShape } from "../graph/dim.js";
import type { CompiledGraph, NamedTensorType } from "../graph/compile.js";
import { byteLength } from "../tensor/dtype.js";
import { type Tensor } from "../tensor/tensor.js";
import { countElements } from "../../core/numbers.js";
import type { IoBinding, BufferView } from "./buffer-view.js";
import type { WorkerRequest, WorkerResult, RunRequest } from "./worker-protocol.js";

/** Inputs by name: tensors, which are copied, or buffer views, which are used in place. */
export type Feeds = Readonly<Record<string, Tensor | BufferView>>;

export interface SessionRunOptions {
  /** Views that receive outputs; may be views of inputs. */
  readonly fetches?: Readonly<Record<string, BufferView>>;
  /** Inputs and outputs bound by Runtime.bind. */
  readonly bindings?: readonly IoBinding[];
  /** Outputs to compute; default all. */
  readonly outputs?: readonly string[];
}

/** A loaded graph, which runs for inputs of any size that its named dimensions allow. */
export class Session {
  constructor(
    readonly graph: CompiledGraph,
    private readonly id: number,
    private readonly send: (request: WorkerRequest) => Promise<WorkerResult>,
  ) {}

  /**
   * Computes the outputs. An output in `fetches` is written to that view, which may be a view of an
   * input of the same run; the others are returned by value.
   * @throws SHAPE_MISMATCH for a missing or ill-shaped input, RUNTIME_FAILED when the computation
   * fails.
   */
  async run(feeds: Feeds, options: SessionRunOptions = {}): Promise<Record<string, Tensor<"float32">>> {
    return (await this.send(this.request(feeds, options))) as Record<string, Tensor<"float32">>;
  }

  /** Builds a run request for Runtime.sequence. */
  request(feeds: Feeds, { fetches = {}, bindings = [], outputs }: SessionRunOptions = {}): RunRequest {
    const bound = Object.assign({}, ...bindings.map((binding) => binding.feeds)) as Record<string, BufferView>;
    const written = Object.assign({}, ...bindings.map((binding) => binding.fetches)) as Record<string, BufferView>;
    checkFeeds(this.graph.inputs, feeds, bound);
    const known = this.graph.outputs.map(({ name }) => name);
    const unknown = [...(outputs ?? []), ...Object.keys(fetches)].find((name) => !known.includes(name));
    if (unknown !== undefined) {
      const expected = `its outputs are ${known.map((name) => `"${name}"`).join(", ")}`;
      throw invalidArgument(`The graph has no output "${unknown}"; ${expected}.`);
    }
    const names = outputs ?? known;
    return {
      kind: "run",
      session: this.id,
      bindings: bindings.map(({ id }) => id),
      feeds: this.graph.inputs.flatMap(({ name }) => (name in bound ? [] : [[name, feeds[name]] as const])),
      fetches: names.filter((name) => !(name in written)).map((name) => [name, fetches[name]]),
    };
  }

  async release(): Promise<void> {
    await this.send({ kind: "release", session: this.id });
  }
}

/**
 * Checks that every input is present and typed, with consistent named dimensions; bound inputs are
 * not checked again.
 */
function checkFeeds(
  inputs: readonly NamedTensorType[],
  feeds: Feeds,
  bound: Readonly<Record<string, BufferView>>,
): void {
  const sizes = new Map<string, number>();
  for (const type of inputs) {
    const value = bound[type.name] ?? feeds[type.name];
    if (value === undefined) throw new LlamaGymError("SHAPE_MISMATCH", `Input "${type.name}" is missing.`);
    if (value.dtype !== type.dtype || value.shape.length !== type.shape.length) throw shapeMismatch(type, value);
    for (let axis = 0; axis < type.shape.length; axis++) {
      const dim = type.shape[axis];
      if (typeof dim !== "number" && !sizes.has(dim.key)) sizes.set(dim.key, value.shape[axis]);
    }
  }
  for (const type of inputs) {
    if (type.name in bound) continue;
    const value = feeds[type.name];
    if (type.shape.some((dim, axis) => evaluateDim(dim, sizes) !== value.shape[axis])) throw shapeMismatch(type, value);
    if ("data" in value && value.data.byteLength !== byteLength(value.dtype, countElements(value.shape)))
      throw shapeMismatch(type, value);
  }
}

function shapeMismatch({ name, dtype, shape }: NamedTensorType, value: Tensor | BufferView): LlamaGymError {
  const size = "data" in value ? ` with ${value.data.length} elements` : "";
  return new LlamaGymError(
    "SHAPE_MISMATCH",
    `Input "${name}" must be ${dtype}${formatShape(shape)}, got ${value.dtype}${formatShape(value.shape)}${size}.`,
  );
}
