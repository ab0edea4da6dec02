import { compile, dim, gradient, input } from "../engine/graph/index.js";
import type { Runtime, Session } from "../engine/runtime/index.js";
import { tensor, type Tensor } from "../engine/tensor/index.js";
import { LlamaGymError } from "../core/errors.js";
import type { PolicyTrainer } from "../generation/index.js";
import type { GraphOptions, LossResult, PolicyNodes, TokenBatch, TrainingRunOptions } from "../models/graphs/index.js";
import type { LocalCritic } from "./local-critic.js";
import type { ServiceTraits } from "./probe-service.js";
import type { RemoteGradient } from "./remote-gradient.js";
import { ServiceLossFinder, type ServiceLoss } from "./service-loss.js";
import { selectDecisions } from "./decision-tokens.js";
import { unpackSequences, type TargetSequence } from "./token-sequences.js";

/** What a trainer needs of the policy that it trains. */
export interface ServicePasses {
  /** Returns how the service computes. */
  getTraits(): Promise<ServiceTraits>;
  /** Returns the log-probabilities of a batch's selected tokens. */
  score(sequences: readonly TargetSequence[], count: number): Promise<Float32Array>;
  /** Returns the same, and adds the gradient of a loss of the service. */
  train(sequences: readonly TargetSequence[], count: number, loss: ServiceLoss): Promise<Float32Array>;
  /** The gradient of the next optimizer step. */
  readonly gradient: RemoteGradient;
}

/** Options of `RemoteTrainer.create`. */
export interface RemoteTrainerOptions extends Pick<GraphOptions, "entropy"> {
  /** Computes the loss in this process. */
  readonly runtime: Runtime;
  readonly lossFn: (policy: PolicyNodes) => LossResult;
  /** Estimates values in this process, where the loss has them. */
  readonly critic?: Pick<LocalCritic, "score" | "addGradient"> | undefined;
}

/** Inputs and statistics of a loss have other names. */
const POLICY_PREFIX = "policy ";
/** A batch as sequences, with the inputs of its loss. */
interface UnpackedBatch {
  readonly batch: TokenBatch;
  readonly inputs: Readonly<Record<string, Tensor>>;
  readonly sequences: readonly TargetSequence[];
}

/** A batch for a loss of the service. */
interface OwnLoss extends UnpackedBatch {
  readonly values: Float32Array | undefined;
  readonly loss: ServiceLoss;
}

/** Inputs that follow from the log-probabilities. */
const OF_POLICY = ["logProbs", "entropy", "maxLogProbs"].map((name) => POLICY_PREFIX + name);
/** Input of a loss with the log-probabilities that tokens were sampled with. */
const OLD_LOG_PROBS = "oldLogProbs";
const HIDDEN_STATES = `${POLICY_PREFIX}hidden`;
/** Tokens of one pass with a gradient for each of a forward pass and one with a gradient. */
const MAX_COST = 4 / 3;
const GRADIENT = "gradient of logProbs";
const VALUE_GRADIENT = "gradient of values";

/**
 * Computes any loss over log-probabilities with a service: the service computes these, a graph in
 * this process the loss and its derivative d, and the service the gradient of the linear loss sum(d
 * * logProbs), which equals that of the loss. A loss that the service has is computed there in one
 * pass. Values and their gradient come from a critic in this process in the same way.
 */
export class RemoteTrainer implements PolicyTrainer {
  private finder: ServiceLossFinder | undefined;

  private constructor(
    private readonly passes: ServicePasses,
    private readonly critic: RemoteTrainerOptions["critic"],
    private readonly session: Session,
    private readonly usesEntropyGradient: boolean,
    /** Whether the derivative of the loss is the same at all log-probabilities. */
    private readonly isLinear: boolean,
  ) {}

  /** @throws INVALID_STATE for a loss that needs more of the model than log-probabilities. */
  static async create(
    passes: ServicePasses,
    { runtime, lossFn, critic, entropy = "none" }: RemoteTrainerOptions,
  ): Promise<RemoteTrainer> {
    const selected = dim("selected");
    const tokenInput = (name: string) => input(POLICY_PREFIX + name, "float32", [selected]);
    const logProbs = tokenInput("logProbs");
    const values = critic === undefined ? undefined : tokenInput("values");
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
    const derivativeInputs = compile({ [GRADIENT]: derivative }).inputs;
    const isLinear = !derivativeInputs.some(({ name }) => OF_POLICY.includes(name));
    return new RemoteTrainer(passes, critic, await runtime.createSession(graph), entropy === "gradient", isLinear);
  }

  async run(
    batch: TokenBatch,
    inputs: Readonly<Record<string, Tensor>> = {},
    { accumulate = false }: TrainingRunOptions = {},
  ): Promise<Record<string, Tensor<"float32">>> {
    if (this.usesEntropyGradient) checkConstrained(inputs);
    const { critic, passes } = this;
    const { gradient } = passes;
    if (!accumulate) gradient.drop();
    const { reduction, severalTargets } = await passes.getTraits();
    const values = await critic?.score(batch);
    const given = { batch, inputs, sequences: unpackSequences(batch, reduction === "sum" ? severalTargets : "one") };
    const own = await this.findLoss(given, values);
    const { sequences, ...computed } = own ?? { ...given, values };
    const count = computed.batch.selected.length;
    const logProbs =
      own === undefined ? await passes.score(sequences, count) : await passes.train(sequences, count, own.loss);
    const {
      [GRADIENT]: derivative,
      [VALUE_GRADIENT]: valueDerivative,
      ...outputs
    } = await this.compute(logProbs, computed.values, computed.inputs);
    const weights = derivative.data.map((value) => -value);
    gradient.add({ sequences, logProbs, weights }, { isAtService: own !== undefined });
    await critic?.addGradient(computed.batch, valueDerivative.data, { accumulate });
    return outputs;
  }

  /** Computes the loss and its derivatives in this process. */
  private async compute(
    logProbs: Float32Array,
    values: Float32Array | undefined,
    inputs: Readonly<Record<string, Tensor>>,
  ): Promise<Record<string, Tensor<"float32">>> {
    return this.session.run({
      [`${POLICY_PREFIX}logProbs`]: perToken(logProbs),
      // The mean of -log p over sampled tokens is an estimate of the entropy.
      [`${POLICY_PREFIX}entropy`]: perToken(logProbs.map((logProb) => -logProb)),
      // Unknown, so that no token is counted as the most probable one.
      [`${POLICY_PREFIX}maxLogProbs`]: perToken(new Float32Array(logProbs.length).fill(Infinity)),
      ...(values === undefined ? {} : { [`${POLICY_PREFIX}values`]: perToken(values) }),
      ...inputs,
    });
  }

  /**
   * Finds the loss of the service that equals this one, and what it is computed of; undefined if
   * there is none, or if it costs more than a linear one.
   */
  private async findLoss(given: UnpackedBatch, values: Float32Array | undefined): Promise<OwnLoss | undefined> {
    // The last gradient was in vain, and the next one may be.
    if (this.passes.gradient.wasRefused || this.usesEntropyGradient) return undefined;
    this.finder ??= new ServiceLossFinder(await this.passes.getTraits(), this.isLinear);
    const decisions = this.isLinear ? undefined : selectDecisions(given.batch, given.inputs);
    if (decisions === undefined && !this.isLinear) return undefined;
    const used: UnpackedBatch =
      decisions === undefined ? given : { ...decisions, sequences: unpackSequences(decisions.batch) };
    if (countTokens(used) > MAX_COST * countTokens(given)) return undefined;
    const usedValues = values && decisions ? Float32Array.from(decisions.origins, (origin) => values[origin]) : values;
    const loss = await this.finder.find(
      async (logProbs) => (await this.compute(logProbs, usedValues, used.inputs))[GRADIENT].data,
      {
        count: used.batch.selected.length,
        oldLogProbs: used.inputs[OLD_LOG_PROBS]?.data as Float32Array | undefined,
        hasOtherTokens: used.sequences.some(({ tokens, targets }) => targets.length < tokens.length - 1),
      },
    );
    return loss && { ...used, values: usedValues, loss };
  }

  async release(): Promise<void> {
    await this.session.release();
  }
}

const countTokens = ({ sequences }: UnpackedBatch) => sequences.reduce((sum, { tokens }) => sum + tokens.length, 0);

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
