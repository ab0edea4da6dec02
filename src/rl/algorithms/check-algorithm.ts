import { errorMessage, LlamaGymError } from "../../core/errors.js";
import { RandomStream } from "../../core/random/random-stream.js";
import { checkOptions, isValidValue } from "../../core/settings.js";
import { AutoModelForCausalLM, getPeftModel, type LanguageModel } from "../../generation/index.js";
import { EMBEDDED_MODEL } from "../../models/index.js";
import type { Trajectory, Turn } from "../rollout/trajectory.js";
import type { TurnSample } from "./algorithm-definition.js";
import type { Algorithm } from "./define-algorithm.js";
import type { Learner } from "./learner.js";
import { PolicyLearner } from "./policy-learner.js";
import { LogProbScorer } from "./update/log-prob-scorer.js";

/** Options of `checkAlgorithm`. */
export interface CheckAlgorithmOptions<Options extends object> {
  /** Options of the algorithm for the checks. */
  readonly options?: Options;
  /**
   * False for a loss with `stopGradient`, whose gradient is not the derivative of its value.
   * Default true.
   */
  readonly finiteDifferences?: boolean;
}

const WHOLE_BATCH = 4096;
const SPLIT_BATCH = 24;
/** Agreement of gradients that float32 rounding allows. */
const SPLIT_TOLERANCE = 1e-3;
const FINITE_DIFFERENCE_TOLERANCE = 0.05;
/** Value of `klSetting` with which an algorithm without a KL term by default is also checked. */
const REFERENCE_KL = 0.1;

/**
 * Checks an algorithm on the embedded model: the loss's gradient agrees with finite differences and
 * with any split into micro-batches, reference log-probabilities give a finite loss, zero
 * advantages have zero gradient, and a restored state continues exactly.
 *
 * @throws INVALID_STATE at the first violation.
 */
export async function checkAlgorithm<Options extends object>(
  algorithm: Algorithm<Options>,
  checkAlgorithmOptions: CheckAlgorithmOptions<Options> = {},
): Promise<void> {
  checkOptions("checkAlgorithm", checkAlgorithmOptions, { options: true, finiteDifferences: true });
  const { options, finiteDifferences = true } = checkAlgorithmOptions;
  algorithm.resolve();
  const subject = new Subject(algorithm, { ...options });
  try {
    await subject.open();
    await subject.during("its gradients", () => checkGradients(subject, finiteDifferences));
    await subject.during("its KL to the reference policy", () => checkReference(subject));
    await subject.during("its gradient at zero advantages", () => checkZeroAdvantages(subject));
    await subject.during("its saved state", () => checkResume(subject));
  } finally {
    await subject.close();
  }
}

/** The parts of a `PolicyLearner` that the checks of the loss use. */
interface GradientLearner {
  prepare(trajectories: readonly Trajectory[]): Promise<{ readonly turns: readonly (TurnSample | undefined)[] }>;
  computeGradients(turns: readonly TurnSample[]): Promise<Readonly<Record<string, number>>>;
}

/** An algorithm on a model, with trajectories sampled by it. */
class Subject {
  trajectories: readonly Trajectory[] = [];
  private model!: LanguageModel;
  private readonly learners: Learner[] = [];

  constructor(
    readonly algorithm: Algorithm,
    private readonly options: object,
  ) {}

  async open(): Promise<void> {
    const base = await AutoModelForCausalLM.fromPretrained(EMBEDDED_MODEL, { device: "cpu", threads: 1 });
    const valueHead = this.algorithm.hasCritic ? ({ kind: "linear", dropout: 0 } as const) : undefined;
    this.model = await getPeftModel(base, { r: 4, seed: 1, valueHead });
    // Adapters start at the reference policy, where KL terms have no gradient.
    const random = new RandomStream(7);
    await this.setParameters((await this.parameters()).map((value) => value + 0.02 * random.normal()));
    this.trajectories = await this.sampleTrajectories();
  }

  /** Returns the value that the options, or else the defaults, give a setting. */
  valueOf(setting: string): unknown {
    return (this.algorithm.resolve(this.options as never) as Readonly<Record<string, unknown>>)[setting];
  }

  /** Adds to an error of the algorithm's functions what they were called with. */
  async during(checked: string, check: () => Promise<void>): Promise<void> {
    try {
      await check();
    } catch (error) {
      if (!(error instanceof LlamaGymError && error.code === "ALGORITHM_FAILED")) throw error;
      const { trajectories, algorithm } = this;
      const rewards = trajectories.flatMap(({ turns }) => turns.map(({ reward }) => reward));
      const groups = new Set(trajectories.map(({ group }) => group)).size;
      throw violation(
        algorithm.title,
        `in the check of ${checked}: ${errorMessage(error)} (with ` +
          `${trajectories.length} trajectories in ${groups} groups, each of two turns with 3 and 2 tokens and a reward ` +
          `from ${Math.min(...rewards)} to ${Math.max(...rewards)})`,
        error,
      );
    }
  }

  async createLearner(microBatchTokens = WHOLE_BATCH, options: object = {}): Promise<Learner> {
    const learner = await this.algorithm({ ...this.options, ...options } as never).create(this.model, {
      temperature: 1,
      isTruncatedSampling: false,
      microBatchTokens,
      random: new RandomStream(5),
    });
    this.learners.push(learner);
    return learner;
  }

  async parameters(): Promise<Float32Array> {
    const { runtime, parameters } = this.model.causalLM;
    return ((await runtime.read(parameters.values)).data as Float32Array).slice();
  }

  async gradients(): Promise<Float32Array> {
    const { runtime, parameters } = this.model.causalLM;
    return ((await runtime.read(parameters.gradients)).data as Float32Array).slice();
  }

  async setParameters(values: Float32Array): Promise<void> {
    const { causalLM } = this.model;
    await causalLM.runtime.write(causalLM.parameters.values, values);
    causalLM.markParametersChanged();
  }

  async close(): Promise<void> {
    for (const learner of this.learners) await learner.release();
    await this.model?.close();
  }

  /** Returns groups of two-turn episodes with random tokens and rewards, scored by the model. */
  private async sampleTrajectories(): Promise<Trajectory[]> {
    const { causalLM } = this.model;
    const spec = (await this.createLearner()).rolloutSpec;
    const groupSize = spec.kind === "groups" ? spec.groupSize : 1;
    const groups = groupSize > 1 ? 3 : 8;
    const random = new RandomStream(11);
    const tokens = (count: number) =>
      Array.from({ length: count }, () => random.integers(0, causalLM.config.vocabSize));
    const prompts = Array.from({ length: groups }, () => tokens(6));
    const drafts = Array.from({ length: groups * groupSize }, (_, i) => {
      const [group, completion] = [Math.floor(i / groupSize), tokens(3)];
      const prompt = prompts[group];
      return {
        group,
        turns: [
          { prompt, tokens: completion },
          { prompt: [...prompt, ...completion, 1], tokens: tokens(2) },
        ],
      };
    });
    const turns = drafts.flatMap((draft) => draft.turns.map((turn) => ({ ...turn, allowedTokens: undefined })));
    const scorer = new LogProbScorer(this.model.policy, { microBatchTokens: WHOLE_BATCH });
    const { logProbs } = await scorer.score(turns);
    await scorer.release();
    const sampled = turns.map((turn, i): Turn => ({
      ...turn,
      logProbs: Array.from(logProbs[i]),
      text: "",
      finishReason: "stop",
      isValid: true,
      attempts: 1,
      penalty: 0,
      reward: Math.round(10 * random.normal()) / 10,
    }));
    return drafts.map(({ group }, i) => ({
      turns: [sampled[2 * i], sampled[2 * i + 1]],
      group,
      end: "terminated",
      bootstrapPrompt: undefined,
    }));
  }
}

async function checkGradients(subject: Subject, finiteDifferences: boolean): Promise<void> {
  const { title } = subject.algorithm;
  const learner = await subject.createLearner();
  if (!(learner instanceof PolicyLearner)) return;
  const turns = await prepareTurns(learner, subject);
  const { loss } = await learner.computeGradients(turns);
  const gradients = await subject.gradients();
  const norm = l2Norm(gradients);
  if (!Number.isFinite(loss) || !(norm > 0))
    throw violation(
      title,
      `its loss is ${loss} with a gradient of norm ${norm}; both must be finite, and the norm above 0`,
    );

  const split: GradientLearner = (await subject.createLearner(SPLIT_BATCH)) as PolicyLearner<never, never, unknown>;
  const { loss: splitLoss } = await split.computeGradients(turns);
  const difference = distance(await subject.gradients(), gradients) / norm;
  if (Math.abs(splitLoss - loss) > SPLIT_TOLERANCE * Math.max(1, Math.abs(loss)) || difference > SPLIT_TOLERANCE)
    throw violation(
      title,
      `in micro-batches its loss is ${splitLoss} instead of ${loss}, and its gradient differs by a factor of ${difference}; the loss ` +
        "must be a sum over decisions, weighted by the input weights",
    );

  if (!finiteDifferences) return;
  const start = await subject.parameters();
  const step = 0.01 / norm;
  const lossAt = async (distance: number): Promise<number> => {
    await subject.setParameters(start.map((value, i) => value + (distance * gradients[i]) / norm));
    return (await learner.computeGradients(turns)).loss;
  };
  const slope = ((await lossAt(step)) - (await lossAt(-step))) / (2 * step);
  await subject.setParameters(start);
  if (Math.abs(slope / norm - 1) > FINITE_DIFFERENCE_TOLERANCE)
    throw violation(title, `its loss has a slope of ${slope} along its gradient, which has a norm of ${norm}`);
}

/** Offers reference log-probabilities to an algorithm that uses none by default. */
async function checkReference(subject: Subject): Promise<void> {
  const { title, settings, klSetting } = subject.algorithm;
  if (klSetting === undefined || Number(subject.valueOf(klSetting)) > 0) return;
  if (!isValidValue(REFERENCE_KL, settings[klSetting])) return;
  const learner = await subject.createLearner(WHOLE_BATCH, { [klSetting]: REFERENCE_KL });
  if (!(learner instanceof PolicyLearner)) return;
  const { loss } = await (learner as GradientLearner).computeGradients(await prepareTurns(learner, subject));
  const norm = l2Norm(await subject.gradients());
  if (!Number.isFinite(loss) || !Number.isFinite(norm))
    throw violation(title, `with ${klSetting} ${REFERENCE_KL} its loss is ${loss} with a gradient of norm ${norm}`);
}

async function checkZeroAdvantages(subject: Subject): Promise<void> {
  const { title, settings, klSetting } = subject.algorithm;
  const regularizers = ["entropyCoef", klSetting].filter((name) => name !== undefined && Object.hasOwn(settings, name));
  // A regularizer that cannot be 0 always has a gradient.
  if (regularizers.some((name) => !isValidValue(0, settings[name!]))) return;
  const learner = await subject.createLearner(WHOLE_BATCH, Object.fromEntries(regularizers.map((name) => [name, 0])));
  if (!(learner instanceof PolicyLearner)) return;
  const turns = (await prepareTurns(learner, subject)).map((turn): TurnSample => ({
    ...turn,
    advantages: new Float64Array(turn.oldLogProbs.length),
    returns: turn.returns && turn.oldValues,
  }));
  await learner.computeGradients(turns);
  const norm = l2Norm(await subject.gradients());
  if (norm > 1e-5) throw violation(title, `with zero advantages its gradient has a norm of ${norm} instead of 0`);
}

/** Two updates in a row equal one update, a saved and restored state, and another. */
async function checkResume(subject: Subject): Promise<void> {
  const { trajectories } = subject;
  const learner = await subject.createLearner();
  await learner.update(await learner.prepare(trajectories));
  const { optimizer, state } = await learner.getState();
  const saved = { optimizer, state: JSON.parse(JSON.stringify(state)) as unknown };
  const parameters = await subject.parameters();
  const metrics = await learner.update(await learner.prepare(trajectories), { progress: 0.5 });
  const expected = await subject.parameters();

  await subject.setParameters(parameters);
  const resumed = await subject.createLearner();
  await resumed.setState(saved);
  const resumedMetrics = await resumed.update(await resumed.prepare(trajectories), { progress: 0.5 });
  const difference = distance(await subject.parameters(), expected);
  if (difference > 0 || JSON.stringify(resumedMetrics) !== JSON.stringify(metrics))
    throw violation(
      subject.algorithm.title,
      `after getState and setState its next update differs by ${difference}; its state must be JSON and complete`,
    );
}

async function prepareTurns(learner: GradientLearner, subject: Subject): Promise<TurnSample[]> {
  const { turns } = await learner.prepare(subject.trajectories);
  return turns.filter((turn) => turn !== undefined);
}

function distance(a: Float32Array, b: Float32Array): number {
  return l2Norm(a.map((value, i) => value - b[i]));
}

function l2Norm(values: Float32Array): number {
  return Math.sqrt(values.reduce((sum, value) => sum + value ** 2, 0));
}

function violation(title: string, message: string, cause?: unknown): LlamaGymError {
  return new LlamaGymError("INVALID_STATE", `${title} is not a valid algorithm: ${message}.`, { cause });
}
