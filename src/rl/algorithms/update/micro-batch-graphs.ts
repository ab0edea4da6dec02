import { isAllFinite } from "../../../core/numbers.js";
import { dim, input } from "../../../engine/graph/index.js";
import type { Tensor } from "../../../engine/tensor/index.js";
import type { PolicyBackend, PolicyTrainer } from "../../../generation/index.js";
import type {
  EntropyMode,
  PolicyNodes,
  TokenBatch,
  GraphOptions,
  LossResult,
  TrainingRunOptions,
} from "../../../models/graphs/index.js";
import { constrainedPolicyNodes } from "./constrained-policy-nodes.js";

/**
 * Graphs for unconstrained turns, for decisions among alternatives, and for masked vocabularies.
 */
export const GRAPH_KINDS = ["free", "alternatives", "masked"] as const;
type GraphKind = (typeof GRAPH_KINDS)[number];

/** The loss of a configured algorithm. */
export interface MicroBatchLoss {
  /** Builds the loss, a weighted sum over decisions, so that the losses of micro-batches add up. */
  readonly loss: (policy: PolicyNodes) => LossResult;
  readonly entropy: EntropyMode;
}

/** A micro-batch of an optimizer step: numbers only. */
export interface GradientJob {
  readonly kind: GraphKind;
  /** Whether logits are computed of some tokens only. */
  readonly withHeadTokens: boolean;
  readonly tokens: TokenBatch;
  /** Inputs of the loss and of the constraints. */
  readonly inputs: Readonly<Record<string, Tensor>>;
}

/** The loss of a micro-batch with its statistics. */
export type MicroBatchOutputs = Readonly<Record<string, Tensor<"float32">>>;

/** Result of a gradient job. */
export interface GradientResult {
  readonly outputs: MicroBatchOutputs;
  /**
   * Gradients in the order of the model's parameter buffer; undefined where a number is not finite.
   */
  readonly gradients: Float32Array | undefined;
}

/** Computes the gradients of micro-batches, with a graph for each kind. */
export class MicroBatchGraphs {
  private readonly graphs = new Map<`${GraphKind} ${boolean}`, PolicyTrainer>();

  constructor(
    private readonly policy: PolicyBackend,
    private readonly lossOptions: MicroBatchLoss,
    private readonly options: Pick<GraphOptions, "frozenStates"> = {},
  ) {}

  /** Writes the gradients of a micro-batch to the model's gradient buffer, or adds them. */
  async run({ kind, withHeadTokens, tokens, inputs }: GradientJob, options: TrainingRunOptions = {}) {
    return (await this.graph(kind, withHeadTokens)).run(tokens, inputs, options);
  }

  /** Returns the gradients of a micro-batch, as a worker does. */
  async computeGradients(job: GradientJob): Promise<GradientResult> {
    const outputs = await this.run(job);
    const { parameters, runtime } = this.policy.causalLM!;
    const gradients = (await runtime.read(parameters.gradients)).data as Float32Array;
    const isFinite = [gradients, ...Object.values(outputs).map(({ data }) => data)].every(isAllFinite);
    return { outputs, gradients: isFinite ? gradients : undefined };
  }

  /** Returns the names of the outputs, and whether each is a scalar. */
  describeOutputs(): ReadonlyMap<string, boolean> {
    const { valueHead, config } = this.policy;
    const selected = dim("selected");
    const perToken = (name: string) => input(name, "float32", [selected]);
    const { statistics } = this.lossOptions.loss({
      selected,
      logProbs: perToken("logProbs"),
      maxLogProbs: perToken("maxLogProbs"),
      entropy: this.lossOptions.entropy === "none" ? undefined : perToken("entropy"),
      values: valueHead === undefined ? undefined : perToken("values"),
      hidden: input("hidden", "float32", [selected, config.hiddenSize]),
    });
    const scalars = Object.entries(statistics ?? {}).map(([name, { shape }]) => [name, shape.length === 0] as const);
    return new Map([["loss", true], ...scalars]);
  }

  async release(): Promise<void> {
    for (const graph of this.graphs.values()) await graph.release();
  }

  private async graph(kind: GraphKind, withHeadTokens: boolean): Promise<PolicyTrainer> {
    const key = `${kind} ${withHeadTokens}` as const;
    let graph = this.graphs.get(key);
    if (graph === undefined) {
      const { loss, entropy } = this.lossOptions;
      const lossFn = (policy: PolicyNodes) => loss(kind === "free" ? policy : constrainedPolicyNodes(policy));
      const options = { entropy, withAllowedTokens: kind === "masked", withHeadTokens, ...this.options };
      graph = await this.policy.createTrainer(lossFn, options);
      this.graphs.set(key, graph);
    }
    return graph;
  }
}
