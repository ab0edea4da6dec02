import { errorMessage } from "../core/errors.js";
import { SamplingClient } from "./client/sampling-client.js";
import { ServiceSession } from "./client/service-session.js";
import type { ConnectionOptions } from "./client/service-connection.js";
import { TokenUsage } from "./client/token-usage.js";
import { RemoteModel } from "./client/remote-model.js";
import { toData, readTargets, type TargetSequence, type TargetSupport } from "./token-sequences.js";
import type { TrainingDatum } from "./wire/forward-backward.js";

/** How a service computes. */
export interface ServiceTraits {
  /**
   * How it reduces a loss: the sum over tokens, or a mean over the weights of a sequence and over
   * sequences; undefined if it does not report the norm of gradients.
   */
  readonly reduction?: "sum" | "mean" | undefined;
  /** Losses that it has in addition to cross_entropy. */
  readonly losses: readonly string[];
  /**
   * Bounds at which its ppo loss clips the ratio by default; undefined without that loss or its
   * value.
   */
  readonly ppoBounds?: readonly [number, number] | undefined;
  /** Bounds at which its cispo loss clips the ratio by default. */
  readonly cispoBounds?: readonly [number, number] | undefined;
  /** Losses whose bounds may be set. */
  readonly clipSettings?: readonly string[] | undefined;
  /** Whether cross_entropy takes several targets of a position, and as lists of them. */
  readonly severalTargets?: TargetSupport | undefined;
  /** Names of the metrics of a training pass. */
  readonly metrics: readonly string[];
  /**
   * Whether it returns the log-probabilities of prompts, which choices and the KL to the reference
   * policy need.
   */
  readonly hasPromptLogProbs: boolean;
  /** Largest difference between log-probabilities in sampling and in training. */
  readonly samplingError?: number | undefined;
}

/** A few tokens that any vocabulary has. */
const TOKENS = [11, 12, 13, 14, 15, 16];
const CLIPPED_LOSSES = ["ppo", "cispo"] as const;
type ClippedLoss = (typeof CLIPPED_LOSSES)[number];
/** Largest difference between two log-probabilities of one token, in bfloat16. */
const TARGET_ERROR = 0.05;
const PROBED_LOSSES = ["importance_sampling", "ppo", "cispo", "dro", "gspo"];
const NO_STEP = { learningRate: 0, beta1: 0.9, beta2: 0.95, epsilon: 1e-12, weightDecay: 0, maxGradNorm: 0 };
/** Ratios beyond any usual bound. */
const [LOW_RATIO, HIGH_RATIO] = [0.25, 4];
/** Bounds that are no default. */
const SET_BOUNDS = [0.5, 2] as const;
/** Largest relative error of a bound that was set, in bfloat16. */
const BOUND_ERROR = 0.01;

/**
 * Measures how a service computes, on a small adapter in another session. It takes a dozen passes
 * over a few tokens.
 * @throws SERVICE_FAILED for a service that cannot train the model.
 */
export async function probeService(options: ConnectionOptions, baseModel: string): Promise<ServiceTraits> {
  const session = await ServiceSession.open(options);
  try {
    const form = { baseModel, rank: 8, seed: 0, trainAttn: true, trainMlp: true, trainUnembed: false };
    return await new ServiceProbe(session, await RemoteModel.create(session, 0, form)).run();
  } finally {
    await session.close();
  }
}

class ServiceProbe {
  constructor(
    private readonly session: ServiceSession,
    private readonly model: RemoteModel,
  ) {}

  async run(): Promise<ServiceTraits> {
    const { lossFnOutputs, metrics } = await this.pass("cross_entropy", { weights: () => 1 });
    const logProbs = lossFnOutputs[0].logprobs.data;
    const reduction = await this.measureReduction();
    const losses: string[] = [];
    for (const loss of PROBED_LOSSES) if (await this.hasLoss(loss, logProbs)) losses.push(loss);
    const bounds: Partial<Record<ClippedLoss, readonly [number, number]>> = {};
    const clipSettings: string[] = [];
    for (const loss of CLIPPED_LOSSES.filter((each) => losses.includes(each))) {
      bounds[loss] = await this.measureBounds(loss, logProbs);
      if (await this.hasClipSettings(loss, logProbs)) clipSettings.push(loss);
    }
    const severalTargets = await this.measureTargets(logProbs);
    const sampled = await this.scorePrompt();
    return {
      reduction,
      losses,
      ppoBounds: bounds.ppo,
      cispoBounds: bounds.cispo,
      clipSettings,
      severalTargets,
      metrics: Object.keys(metrics),
      hasPromptLogProbs: sampled !== undefined,
      samplingError: sampled && Math.max(...sampled.map((value, i) => Math.abs(value - logProbs[i]))),
    };
  }

  /** Compares the gradients of weights 1 and 1/2: a mean over the weights is the same for both. */
  private async measureReduction(): Promise<"sum" | "mean" | undefined> {
    const whole = await this.gradNorm(1);
    const half = await this.gradNorm(0.5);
    if (whole === undefined || half === undefined || !(whole > 0)) return undefined;
    return Math.abs(half / whole - 0.5) < 0.05 ? "sum" : Math.abs(half / whole - 1) < 0.05 ? "mean" : undefined;
  }

  private async gradNorm(weight: number): Promise<number | undefined> {
    await this.pass("cross_entropy", { weights: () => weight }, false);
    return findGradNorm(await this.model.optimStep(NO_STEP));
  }

  private async hasLoss(loss: string, logProbs: ArrayLike<number>): Promise<boolean> {
    try {
      const inputs = { logprobs: (i: number) => logProbs[i], advantages: () => 1 };
      if (loss === "gspo") await this.pass(loss, { ...inputs, sequence_ratio_mask: () => 1 });
      else if (loss === "dro") await this.pass(loss, inputs, true, { beta: 0.05 });
      else await this.pass(loss, inputs);
      return true;
    } catch {
      return false;
    }
  }

  /** At ratios beyond the bounds, the loss of one token is a bound. */
  private async measureBounds(
    lossFn: ClippedLoss,
    logProbs: ArrayLike<number>,
    config: Readonly<Record<string, number>> = {},
  ): Promise<readonly [number, number] | undefined> {
    const lossAt = async (ratio: number, advantage: number) => {
      const inputs = {
        logprobs: (i: number) => logProbs[i] - (i === 0 ? Math.log(ratio) : 0),
        advantages: (i: number) => (i === 0 ? advantage : 0),
      };
      const { metrics } = await this.pass(lossFn, inputs, true, config);
      // In cispo, the ratio is the weight of a log-probability.
      return (metrics["loss:sum"] ?? NaN) / (lossFn === "cispo" ? logProbs[0] : 1);
    };
    const bounds = [await lossAt(LOW_RATIO, -1), -(await lossAt(HIGH_RATIO, 1))] as const;
    return bounds.every((bound) => bound > 0) ? bounds : undefined;
  }

  private async hasClipSettings(lossFn: ClippedLoss, logProbs: ArrayLike<number>): Promise<boolean> {
    const [clip_low_threshold, clip_high_threshold] = SET_BOUNDS;
    try {
      const bounds = await this.measureBounds(lossFn, logProbs, { clip_low_threshold, clip_high_threshold });
      return bounds?.every((bound, i) => Math.abs(bound / SET_BOUNDS[i] - 1) < BOUND_ERROR) === true;
    } catch {
      return false;
    }
  }

  /** Scores two targets of one position. */
  private async measureTargets(logProbs: ArrayLike<number>): Promise<TargetSupport> {
    const position = TOKENS.length - 1;
    const targets = [TOKENS[position], TOKENS[0]].map((token, index) => ({ position, token, index }));
    const sequence: TargetSequence = { tokens: TOKENS, targets };
    for (const support of ["sparse", "dense"] as const) {
      try {
        const data = toData([sequence], { weights: () => 1 }, support);
        const { lossFnOutputs } = await this.model.pass(data, { lossFn: "cross_entropy", forwardOnly: true });
        const scores = readTargets([sequence], [lossFnOutputs.at(0)?.logprobs], targets.length);
        if (Math.abs((scores?.[0] ?? NaN) - logProbs[position - 1]) < TARGET_ERROR) return support;
      } catch {
        // The service does not take such a tensor.
      }
    }
    return "one";
  }

  private async scorePrompt(): Promise<readonly number[] | undefined> {
    const client = new SamplingClient(this.session, await this.model.snapshot(0), new TokenUsage());
    try {
      return await client.scoreLast(TOKENS, TOKENS.length - 1);
    } catch (error) {
      if (errorMessage(error).includes("log-probabilities of prompts")) return undefined;
      throw error;
    }
  }

  private async pass(
    lossFn: string,
    inputs: Readonly<Record<string, (index: number) => number>>,
    forwardOnly = true,
    config: Readonly<Record<string, number>> = {},
  ) {
    return this.model.pass([toDatum(inputs)], { lossFn, forwardOnly, config });
  }
}

function toDatum(inputs: Readonly<Record<string, (index: number) => number>>): TrainingDatum {
  const length = TOKENS.length - 1;
  const tensors = Object.entries(inputs).map(
    ([name, valueAt]) =>
      [name, { dtype: "float32", shape: [length], data: Array.from({ length }, (_, i) => valueAt(i)) }] as const,
  );
  return {
    tokens: TOKENS.slice(0, -1),
    lossFnInputs: {
      target_tokens: { dtype: "int64", shape: [length], data: TOKENS.slice(1) },
      ...Object.fromEntries(tensors),
    },
  };
}

/** Returns the norm of the gradient among the metrics of an optimizer step. */
export function findGradNorm(metrics: Readonly<Record<string, number>>): number | undefined {
  return Object.entries(metrics).find(([name]) => /grad_?norm/iu.test(name))?.[1];
}
