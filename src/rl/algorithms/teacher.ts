import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { describeValue } from "../../core/format.js";
import { checkOptions } from "../../core/settings.js";
import { mean } from "../../core/numbers.js";
import type { LanguageModel } from "../../generation/index.js";
import type { Turn } from "../rollout/trajectory.js";
import type { AdvantageResult, ScoredTrajectory } from "./algorithm-definition.js";
import { checkSameTokenizer } from "./check-model.js";
import type { Distillation, ScoringPolicy, Teacher, TeacherServer } from "./learner.js";
import { LogProbScorer, type TurnScores } from "./update/log-prob-scorer.js";

/**
 * On-policy distillation: the student is rewarded for decisions that a teacher finds more probable
 * than it does.
 */
export interface TeacherOptions {
  /**
   * A model with the student's tokenizer, the server of one, "self" for the student itself with
   * hints in its prompt, or another source of scores.
   */
  readonly model: LanguageModel | TeacherServer | Teacher | "self";
  /**
   * Text that the teacher's system prompt has in addition, such as rules, a plan or demonstrations.
   * The hint of a turn (`Agent.getTeacherHint`) follows its observation.
   */
  readonly hint?: string;
  /** Weight of the reverse KL divergence per decision. Default 1. */
  readonly coef?: number;
  /** Weight of the advantages of rewards. Default 1; 0 learns from the teacher alone. */
  readonly rewardCoef?: number;
}

/**
 * Adds -coef * (log π(a) - log π_teacher(a) - b) to the advantage of each decision, the one-sample
 * estimate of the reverse KL divergence on what the student sampled. The baseline b lowers the
 * variance of the gradient: the divergence of a decision of which both score all alternatives, the
 * mean log-ratio of the other decisions.
 */
export async function distill<State>(
  scored: readonly ScoredTrajectory[],
  result: AdvantageResult<State>,
  { teacher, coef, rewardCoef }: Distillation,
  temperature: number,
): Promise<AdvantageResult<State>> {
  const turns = scored.flatMap((trajectory) => trajectory.turns);
  const { logProbs, alternatives } = await teacher.score(
    turns.map(({ turn }) => turn),
    temperature,
  );
  const decisions = turns.map(({ oldLogProbs, alternatives: own }, i) =>
    Array.from(oldLogProbs, (logProb, t) => ({
      logRatio: logProb - logProbs[i][t],
      divergence: reverseKl(own?.[t], alternatives?.[i][t]),
    })),
  );
  const others = decisions.flat().filter(({ divergence }) => divergence === undefined);
  const meanLogRatio = mean(others.map(({ logRatio }) => logRatio));
  let next = 0;
  const indices = scored.map((trajectory) => trajectory.turns.map(() => next++));
  const advantages = result.advantages.map((ofTurns, i) =>
    ofTurns.map((ofDecisions, j) =>
      decisions[indices[i][j]].map(
        ({ logRatio, divergence = meanLogRatio }, t) => rewardCoef * ofDecisions[t] - coef * (logRatio - divergence),
      ),
    ),
  );
  const metrics = {
    ...result.metrics,
    "teacher/kl": mean(decisions.flat().map(({ logRatio, divergence = logRatio }) => divergence)),
    "teacher/logps": mean(logProbs.flatMap((values) => [...values])),
  };
  return {
    ...result,
    advantages,
    metrics,
    teacherLogProbs: indices.map((ofTurns) => ofTurns.map((i) => logProbs[i])),
  };
}

/** Computes KL(student || teacher) in nats among the alternatives of a decision, if known. */
function reverseKl(student: Float64Array | undefined, teacher: Float64Array | undefined): number | undefined {
  return teacher && student?.reduce((sum, logProb, i) => sum + Math.exp(logProb) * (logProb - teacher[i]), 0);
}

/** A model that scores the student's decisions, after prompts that may have hints. */
class ModelTeacher {
  private readonly scorer: LogProbScorer;

  constructor(
    private readonly policy: ScoringPolicy,
    microBatchTokens: number,
    private readonly toPrompts: (turns: readonly Turn[]) => readonly (readonly number[])[],
  ) {
    this.scorer = new LogProbScorer(policy, { microBatchTokens, alternatives: true });
  }

  async score(turns: readonly Turn[], temperature: number): Promise<TurnScores> {
    const { maxPositions } = this.policy.config;
    const prompts = this.toPrompts(turns);
    const prompted = turns.map((turn, i) => ({ ...turn, prompt: prompts[i] }));
    const length = Math.max(...prompted.map(({ prompt, tokens }) => prompt.length + tokens.length));
    if (length > maxPositions)
      throw new LlamaGymError(
        "CONTEXT_OVERFLOW",
        `The teacher's context has ${maxPositions} tokens, but a turn with its hints has ${length}. Shorten the hints, or set a lower maxContextLength for the agent.`,
      );
    return this.scorer.score(prompted, { temperature });
  }

  async release(): Promise<void> {
    await this.scorer.release();
  }
}

/** What a text adds to a rendered prompt, and the tokens before and after it. */
function findAddition(plain: readonly number[], longer: readonly number[]) {
  let start = 0;
  while (start < plain.length && plain[start] === longer[start]) start++;
  let end = 0;
  while (end < plain.length - start && plain.at(-1 - end) === longer.at(-1 - end)) end++;
  return {
    before: plain.slice(0, start),
    replaced: plain.slice(start, plain.length - end),
    added: longer.slice(start, longer.length - end),
    after: plain.slice(plain.length - end),
  };
}

interface HintContext {
  readonly systemPrompt: string | undefined;
  /** Renders a first prompt with a system prompt and an observation. */
  readonly render: (systemPrompt: string | undefined, observation: string) => readonly number[];
}

/**
 * Returns a function that adds hints to rendered prompts: `systemHint` behind the system prompt,
 * the hint of a turn behind its observation. `render` gives the tokens of a first prompt with a
 * system prompt and an observation. The function throws INVALID_ARGUMENT for a prompt that does not
 * begin or end as that does.
 */
export function createHintInserter(
  { render, systemPrompt }: HintContext,
  systemHint = "",
): (prompt: readonly number[], turnHint?: string) => readonly number[] {
  const plain = render(systemPrompt, "x");
  const hinted = [systemPrompt, systemHint].filter((text) => text !== undefined && text !== "").join("\n\n");
  const system = systemHint === "" ? undefined : findAddition(plain, render(hinted, "x"));
  return (prompt, turnHint = "") => {
    let result = prompt;
    if (turnHint !== "") {
      const { replaced, added, after } = findAddition(plain, render(systemPrompt, `x\n\n${turnHint}`));
      const endsAlike = after.every((token, i) => prompt[prompt.length - after.length + i] === token);
      // A tokenizer that joins "x" with the hint would repeat it.
      if (!endsAlike || replaced.length > 0) throw cannotInsert("end with an observation");
      result = [...prompt.slice(0, prompt.length - after.length), ...added, ...after];
    }
    if (system === undefined) return result;
    const begin = [...system.before, ...system.replaced];
    if (!begin.every((token, i) => prompt[i] === token)) throw cannotInsert("begin with the system prompt");
    return [...system.before, ...system.added, ...result.slice(begin.length)];
  };
}

const cannotInsert = (requirement: string) =>
  invalidArgument(
    `The hint of the teacher cannot be inserted: a prompt does not ${requirement}. Use a hint with prompts that do.`,
  );

/** What a teacher is created from. */
interface TeacherContext {
  readonly student: LanguageModel;
  readonly microBatchTokens: number;
  /** Returns a turn's prompt with its hints: the same array if it has none. */
  readonly toTeacherPrompt: (turn: Turn) => readonly number[];
}

/** @throws INVALID_ARGUMENT for an unknown option, and for values that are none of a teacher's. */
export function checkTeacherOptions(options: TeacherOptions): void {
  checkOptions("`teacher`", options, { model: true, hint: true, coef: true, rewardCoef: true });
  const { model, hint, coef = 1, rewardCoef = 1 } = options;
  for (const [name, value] of Object.entries({ coef, rewardCoef }))
    if (!(typeof value === "number" && value >= 0 && value < Infinity))
      throw invalidArgument(`\`teacher.${name}\` must be a number >= 0, got ${describeValue(value)}.`);
  if (hint !== undefined && typeof hint !== "string")
    throw invalidArgument(`\`teacher.hint\` must be a text, got ${describeValue(hint)}.`);
  if (model === "self") return;
  const has = (...names: string[]) =>
    typeof model === "object" && model !== null && names.every((name) => name in model);
  if (has("baseURL"))
    checkOptions("The server of `teacher.model`", model, { baseURL: true, apiKey: true, model: true });
  else if (has("score", "release")) {
    if (hint !== undefined)
      throw invalidArgument("A `hint` needs a model as teacher. Add the hint where the teacher's scores come from.");
  } else if (!has("policy"))
    throw invalidArgument(
      `\`teacher.model\` must be an open model, "self", the server of one ({ baseURL }) or an object with score and release, got ${describeValue(model)}.`,
    );
}

/**
 * The teacher "self" throws INVALID_ARGUMENT if no turn of its first batch has a hint. @throws
 * INVALID_ARGUMENT for weights below 0 and a model with another tokenizer; SERVICE_FAILED for a
 * server that does not score prompts.
 */
export async function createDistillation(
  options: TeacherOptions,
  { student, microBatchTokens, toTeacherPrompt }: TeacherContext,
): Promise<Distillation> {
  checkTeacherOptions(options);
  const { model, coef = 1, rewardCoef = 1 } = options;
  const weights = { coef, rewardCoef };
  if (model !== "self" && "score" in model && "release" in model) {
    const score = async (turns: readonly Turn[], temperature: number) => ({
      logProbs: await model.score(turns, temperature),
      alternatives: undefined,
    });
    return { teacher: { score, release: async () => model.release() }, ...weights };
  }
  let hasHint = model !== "self";
  const policy = await openPolicy(model, student);
  const teacher = new ModelTeacher(policy, microBatchTokens, (turns) => {
    const prompts = turns.map(toTeacherPrompt);
    hasHint ||= prompts.some((prompt, i) => prompt !== turns[i].prompt);
    if (!hasHint) throw invalidArgument(NO_HINT);
    return prompts;
  });
  return { teacher, ...weights };
}

export const NO_HINT =
  "The teacher `self` needs hints: without them, the teacher is the student. Set the teacher's `hint`, have the environment return `info.hint`, or add a column `hint` to the data.";

async function openPolicy(
  model: LanguageModel | TeacherServer | "self",
  student: LanguageModel,
): Promise<ScoringPolicy> {
  if (model === "self") return student.policy;
  if ("baseURL" in model) return (await import("./teacher-server.js")).connectTeacher(model, student);
  if (model !== student) checkSameTokenizer(student, model);
  return model.policy;
}
