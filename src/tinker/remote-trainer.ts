import { compile, dim, gradient, input } from "../engine/graph/index.js";
import type { Runtime, Session } from "../engine/runtime/index.js";
import { tensor, type Tensor } from "../engine/tensor/index.js";
import { LlamaGymError } from "../core/errors.js";
import type { PolicyTrainer } from "../generation/index.js";
import type { GraphOptions, LossResult, PolicyNodes, TokenBatch, TrainingRunOptions } from "../models/graphs/index.js";
import type { LocalCritic } from "./local-critic.js";
import type { WeightedSequences } from "./linear-loss.js";
import { unpackSequences, type TargetSequence } from "./token-sequences.js";

/** What a trainer needs of the policy that it trains. */
export interface LinearGradients {
  /** Returns the log-probabilities of a batch's selected tokens. */
  score(sequences: readonly TargetSequence[], count: number): Promise<Float32Array>;
  /** Adds to the gradient of the next optimizer step, or begins it. */
  addGradient(weighted: WeightedSequences, options: { readonly accumulate: boolean }): void;
  /** Estimates values in this process, where the loss has them. */
  readonly critic?: Pick<LocalCritic, "score" | "addGradient"> | undefined;
}

/** Inputs and statistics of a loss have other names. */
const POLICY_PREFIX = "policy ";
const HIDDEN_STATES = `${POLICY_PREFIX}hidden`;
const GRADIENT = "gradient of logProbs";
const VALUE_GRADIENT = "gradient of values";

/**
 * Computes any loss over log-probabilities with a service: the service computes these, a graph in
 * this process the loss and its derivative d, and the service the gradient of the linear loss sum(d
 * * logProbs), which equals that of the loss. Values and their gradient come from a critic in this
 * process in the same way.
 */
export class RemoteTrainer implements PolicyTrainer {
  private constructor(
    private readonly gradients: LinearGradients,
    private readonly session: Session,
    private readonly usesEntropyGradient: boolean,
  ) {}

  /** @throws INVALID_STATE for a loss that needs more of the model than log-probabilities. */
  static async create(
    gradients: LinearGradients,
    runtime: Runtime,
    lossFn: (policy: PolicyNodes) => LossResult,
    { entropy = "none" }: GraphOptions = {},
  ): Promise<RemoteTrainer> {
    const selected = dim("selected");
    const tokenInput = (name: string) => input(POLICY_PREFIX + name, "float32", [selected]);
    const logProbs = tokenInput("logProbs");
    const values = gradients.critic === undefined ? undefined : tokenInput("values");
    const { loss, statistics = {} } = lossFn({
      selected,
      logProbs,
      maxLogProbs: tokenInput("maxLogProbs"),
      entropy: entropy === "none" ? undefined : tokenInput("entropy"),
      values,
      hidden: input(HIDDEN_STATES, "float32", [selected, 1]),
    });
    const [derivative, valueDerivative] = gradient(loss, values === undefined ? [logProbs] : [logProbs, values]);
    const graph = compile({
      loss,
      ...statistics,
      [GRADIENT]: derivative,
      ...(values === undefined ? {} : { [VALUE_GRADIENT]: valueDerivative }),
    });
    if (graph.inputs.some(({ name }) => name === HIDDEN_STATES))
      throw new LlamaGymError(
        "INVALID_STATE",
        "The loss uses hidden states, which a Tinker service does not return. Use a loss of log-probabilities.",
      );
    return new RemoteTrainer(gradients, await runtime.createSession(graph), entropy === "gradient");
  }

  async run(
    batch: TokenBatch,
    inputs: Readonly<Record<string, Tensor>> = {},
    { accumulate = false }: TrainingRunOptions = {},
  ): Promise<Record<string, Tensor<"float32">>> {
    if (this.usesEntropyGradient) checkConstrained(inputs);
    const sequences = unpackSequences(batch);
    const { critic } = this.gradients;
    const [logProbs, values] = await Promise.all([
      this.gradients.score(sequences, batch.selected.length),
      critic?.score(batch),
    ]);
    const {
      [GRADIENT]: derivative,
      [VALUE_GRADIENT]: valueDerivative,
      ...outputs
    } = await this.session.run({
      [`${POLICY_PREFIX}logProbs`]: perToken(logProbs),
      // The mean of -log p over sampled tokens is an estimate of the entropy.
      [`${POLICY_PREFIX}entropy`]: perToken(logProbs.map((logProb) => -logProb)),
      // Unknown, so that no token is counted as the most probable one.
      [`${POLICY_PREFIX}maxLogProbs`]: perToken(new Float32Array(logProbs.length).fill(Infinity)),
      ...(values === undefined ? {} : { [`${POLICY_PREFIX}values`]: perToken(values) }),
      ...inputs,
    });
    const weights = derivative.data.map((value) => -value);
    this.gradients.addGradient({ sequences, logProbs, weights }, { accumulate });
    await critic?.addGradient(batch, valueDerivative.data, { accumulate });
    return outputs;
  }

  async release(): Promise<void> {
    await this.session.release();
  }
}

function perToken(data: Float32Array): Tensor<"float32"> {
  return tensor("float32", [data.length], data);
}

/**
 * An entropy bonus has a gradient where all decisions are among alternatives, whose
 * log-probabilities are known.
 */
function checkConstrained({ decision_free: isFree }: Readonly<Record<string, Tensor>>): void {
  if (isFree !== undefined && !isFree.data.some((value) => value !== 0)) return;
  throw new LlamaGymError(
    "INVALID_STATE",
    "An entropy bonus needs the logits of each token, which a Tinker service does not return. Set entropyCoef to 0, or " +
      "choose among listed actions (actionMode choices).",
  );
}
