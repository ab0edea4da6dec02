import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { describeValue } from "../../core/format.js";
import { mean } from "../../core/numbers.js";
import type { LanguageModel } from "../../generation/index.js";
import type { Turn } from "../rollout/trajectory.js";
import type { AdvantageResult, ScoredTrajectory } from "./algorithm-definition.js";
import { checkSameTokenizer } from "./check-model.js";
import type { Distillation, ScoringPolicy, Teacher, TeacherServer } from "./learner.js";
import { LogProbScorer } from "./update/log-prob-scorer.js";

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
   * Text that the teacher's system prompt has in addition, such as rules, a plan or demonstrations;
   * the hint of a turn (`Agent.getTeacherHint`) follows it.
   */
  readonly hint?: string;
  /** Weight of the reverse KL divergence per decision. Default 1. */
  readonly coef?: number;
  /** Weight of the advantages of rewards. Default 1; 0 learns from the teacher alone. */
  readonly rewardCoef?: number;
}

/**
 * Adds -coef * (log π(a) - log π_teacher(a)) to the advantage of each decision, the one-sample
 * estimate of the reverse KL divergence on what the student sampled.
 */
export async function distill<State>(
  scored: readonly ScoredTrajectory[],
  result: AdvantageResult<State>,
  { teacher, coef, rewardCoef }: Distillation,
  temperature: number,
): Promise<AdvantageResult<State>> {
  const turns = scored.flatMap((trajectory) => trajectory.turns);
  const teacherLogProbs = await teacher.score(
    turns.map(({ turn }) => turn),
    temperature,
  );
  const kls = turns.map(({ oldLogProbs }, i) => oldLogProbs.map((logProb, t) => logProb - teacherLogProbs[i][t]));
  let next = 0;
  const indices = scored.map((trajectory) => trajectory.turns.map(() => next++));
  const advantages = result.advantages.map((ofTurns, i) =>
    ofTurns.map((ofDecisions, j) => kls[indices[i][j]].map((value, t) => rewardCoef * ofDecisions[t] - coef * value)),
  );
  const all = kls.flatMap((kl) => [...kl]);
  const metrics = {
    ...result.metrics,
    "teacher/kl": mean(all),
    "teacher/logps": mean(teacherLogProbs.flatMap((logProbs) => [...logProbs])),
  };
  return {
    ...result,
    advantages,
    metrics,
    teacherLogProbs: indices.map((ofTurns) => ofTurns.map((i) => teacherLogProbs[i])),
  };
}

/** A model that scores the student's decisions, after prompts that may have hints. */
class ModelTeacher implements Teacher {
  private readonly scorer: LogProbScorer;
  private readonly maxPositions: number;

  constructor(
    policy: ScoringPolicy,
    microBatchTokens: number,
    private readonly toPrompts: (turns: readonly Turn[]) => readonly (readonly number[])[],
  ) {
    this.scorer = new LogProbScorer(policy, { microBatchTokens });
    this.maxPositions = policy.config.maxPositions;
  }

  async score(turns: readonly Turn[], temperature: number): Promise<readonly Float64Array[]> {
    const prompts = this.toPrompts(turns);
    const prompted = turns.map((turn, i) => ({ ...turn, prompt: prompts[i] }));
    const length = Math.max(...prompted.map(({ prompt, tokens }) => prompt.length + tokens.length));
    if (length > this.maxPositions)
      throw new LlamaGymError(
        "CONTEXT_OVERFLOW",
        `The teacher's context has ${this.maxPositions} tokens, but a turn with its hints has ${length}. Shorten the hints, or set a lower maxContextLength for the agent.`,
      );
    return (await this.scorer.score(prompted, { temperature })).logProbs;
  }

  async release(): Promise<void> {
    await this.scorer.release();
  }
}

/**
 * Returns a rendered prompt with a hint in its system prompt. `render` gives the tokens of a first
 * prompt with a system prompt. @throws INVALID_ARGUMENT if the prompt does not begin as that does.
 */
export function insertHint(
  prompt: readonly number[],
  hint: string,
  { render, systemPrompt }: Pick<TeacherContext, "render" | "systemPrompt">,
): readonly number[] {
  const plain = render(systemPrompt);
  const hinted = render(systemPrompt === undefined || systemPrompt === "" ? hint : `${systemPrompt}\n\n${hint}`);
  let start = 0;
  while (start < plain.length && plain[start] === hinted[start]) start++;
  let end = 0;
  while (end < plain.length - start && plain[plain.length - 1 - end] === hinted[hinted.length - 1 - end]) end++;
  const replaced = plain.slice(start, plain.length - end);
  const inserted = hinted.slice(start, hinted.length - end);
  const begins = [...plain.slice(0, start), ...replaced].every((token, i) => prompt[i] === token);
  if (!begins)
    throw invalidArgument(
      "The hint of the teacher cannot be inserted: a prompt does not begin with the system prompt. Use a hint with prompts that keep it.",
    );
  return [...prompt.slice(0, start), ...inserted, ...prompt.slice(start + replaced.length)];
}

/** What a teacher is created from. */
interface TeacherContext {
  readonly student: LanguageModel;
  readonly microBatchTokens: number;
  readonly systemPrompt: string | undefined;
  /** Renders a first prompt with a system prompt. */
  readonly render: (systemPrompt: string | undefined) => readonly number[];
}

/**
 * The teacher "self" throws INVALID_ARGUMENT if no turn of its first batch has a hint. @throws
 * INVALID_ARGUMENT for weights below 0 and a model with another tokenizer; SERVICE_FAILED for a
 * server that does not score prompts.
 */
export async function createDistillation(
  { model, hint, coef = 1, rewardCoef = 1 }: TeacherOptions,
  { student, microBatchTokens, systemPrompt, render }: TeacherContext,
): Promise<Distillation> {
  for (const [name, value] of Object.entries({ coef, rewardCoef }))
    if (!(value >= 0 && value < Infinity))
      throw invalidArgument(`\`teacher.${name}\` must be a number >= 0, got ${describeValue(value)}.`);
  const weights = { coef, rewardCoef };
  if (model !== "self" && "score" in model && "release" in model) {
    if (hint === undefined) return { teacher: model, ...weights };
    throw invalidArgument("A `hint` needs a model as teacher. Add the hint where the teacher's scores come from.");
  }
  let hasHint = model !== "self";
  const toHints = ({ teacherHint }: Turn) => [hint, teacherHint].filter((text) => text !== undefined && text !== "");
  const policy = await openPolicy(model, student);
  const teacher = new ModelTeacher(policy, microBatchTokens, (turns) => {
    const hints = turns.map(toHints);
    hasHint ||= hints.some((texts) => texts.length > 0);
    if (!hasHint) throw invalidArgument(NO_HINT);
    return turns.map(({ prompt }, i) =>
      hints[i].length === 0 ? prompt : insertHint(prompt, hints[i].join("\n\n"), { render, systemPrompt }),
    );
  });
  return { teacher, ...weights };
}

const NO_HINT =
  "The teacher `self` needs hints: without them, the teacher is the student. Set the teacher's `hint`, or have the environment return `info.hint`.";

async function openPolicy(
  model: LanguageModel | TeacherServer | "self",
  student: LanguageModel,
): Promise<ScoringPolicy> {
  if (model === "self") return student.policy;
  if ("baseURL" in model) return (await import("./teacher-server.js")).connectTeacher(model, student);
  if (model !== student) checkSameTokenizer(student, model);
  return model.policy;
}
