import { invalidArgument } from "../../core/errors.js";
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
   * `hint` in its prompt, or another source of scores.
   */
  readonly model: LanguageModel | TeacherServer | Teacher | "self";
  /**
   * Text that the teacher's system prompt has in addition, such as rules, a plan or demonstrations.
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

/** A model that scores the student's decisions, with another prompt if a function returns one. */
class ModelTeacher implements Teacher {
  private readonly scorer: LogProbScorer;

  constructor(
    policy: ScoringPolicy,
    microBatchTokens: number,
    private readonly toPrompt: (prompt: readonly number[]) => readonly number[] = (prompt) => prompt,
  ) {
    this.scorer = new LogProbScorer(policy, { microBatchTokens });
  }

  async score(turns: readonly Turn[], temperature: number): Promise<readonly Float64Array[]> {
    const prompted = turns.map((turn) => ({ ...turn, prompt: this.toPrompt(turn.prompt) }));
    return (await this.scorer.score(prompted, { temperature })).logProbs;
  }

  async release(): Promise<void> {
    await this.scorer.release();
  }
}

/**
 * Returns a function that inserts a hint into the system prompt of rendered prompts. `render` gives
 * the tokens of a first prompt with a system prompt. @throws INVALID_ARGUMENT if a prompt does not
 * begin as that does.
 */
export function insertHint(
  render: (systemPrompt: string | undefined) => readonly number[],
  systemPrompt: string | undefined,
  hint: string,
): (prompt: readonly number[]) => readonly number[] {
  const plain = render(systemPrompt);
  const hinted = render(systemPrompt === undefined || systemPrompt === "" ? hint : `${systemPrompt}\n\n${hint}`);
  let start = 0;
  while (start < plain.length && plain[start] === hinted[start]) start++;
  let end = 0;
  while (end < plain.length - start && plain[plain.length - 1 - end] === hinted[hinted.length - 1 - end]) end++;
  const replaced = plain.slice(start, plain.length - end);
  const inserted = hinted.slice(start, hinted.length - end);
  return (prompt) => {
    const begins = [...plain.slice(0, start), ...replaced].every((token, i) => prompt[i] === token);
    if (!begins)
      throw invalidArgument(
        "The hint of the teacher cannot be inserted: a prompt does not begin with the system prompt. Use a hint with prompts that keep it.",
      );
    return [...prompt.slice(0, start), ...inserted, ...prompt.slice(start + replaced.length)];
  };
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
 * @throws INVALID_ARGUMENT for weights below 0, "self" without a hint, and a model with another
 * tokenizer; SERVICE_FAILED for a server that does not score prompts.
 */
export async function createDistillation(
  { model, hint, coef = 1, rewardCoef = 1 }: TeacherOptions,
  { student, microBatchTokens, systemPrompt, render }: TeacherContext,
): Promise<Distillation> {
  for (const [name, value] of Object.entries({ coef, rewardCoef }))
    if (!(value >= 0 && value < Infinity))
      throw invalidArgument(`\`teacher.${name}\` must be a number >= 0, got ${describeValue(value)}.`);
  if (model === "self" && (hint === undefined || hint === ""))
    throw invalidArgument(
      "The teacher `self` needs a `hint`: without it, the teacher is the student and there is nothing to learn from it.",
    );
  const weights = { coef, rewardCoef };
  if (model !== "self" && "score" in model && "release" in model) {
    if (hint === undefined) return { teacher: model, ...weights };
    throw invalidArgument("A `hint` needs a model as teacher. Add the hint where the teacher's scores come from.");
  }
  const toPrompt = hint === undefined ? undefined : insertHint(render, systemPrompt, hint);
  const policy = await openPolicy(model, student);
  return { teacher: new ModelTeacher(policy, microBatchTokens, toPrompt), ...weights };
}

async function openPolicy(
  model: LanguageModel | TeacherServer | "self",
  student: LanguageModel,
): Promise<ScoringPolicy> {
  if (model === "self") return student.policy;
  if ("baseURL" in model) return (await import("./teacher-server.js")).connectTeacher(model, student);
  if (model !== student) checkSameTokenizer(student, model);
  return model.policy;
}
