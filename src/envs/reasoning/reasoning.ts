import { invalidArgument } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import type { Env } from "../env.js";
import { applyDefaults } from "../env-options.js";
import type { Info } from "../info.js";
import type { Policy } from "../policy.js";
import type { Registration } from "../registry/env-registry.js";
import { Text } from "../spaces/text.js";
import { TaskEnv, type TaskStep } from "../tasks/task-env.js";
import type { TextInterface } from "../text-interface.js";
import { CurriculumWrapper } from "./curriculum.js";
import type { ReasoningItem, ReasoningTask } from "./reasoning-task.js";
import { checkLevel, drawItem, extractAnswer, findReasoningTask, REASONING_TASKS, scoreCompletion } from "./tasks.js";
import { KNOWN_RETURNS } from "./known-returns.js";

const PRINTABLE = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).join("");
const CHARSET = `${PRINTABLE}\n`;
const MAX_QUESTION = 4096;
const MAX_ANSWER = 1000;
const MAX_ATTEMPTS = 20;

/** Options of `ReasoningEnv`. */
export interface ReasoningOptions {
  /** Reasoning Gym's name of the task, such as "chain_sum". */
  readonly task?: string;
  /** Difficulty, from 0; null for the task's default, Reasoning Gym's settings. */
  readonly level?: number | null;
  /** Answers in an episode; after a wrong one the observation has its score. */
  readonly attempts?: number;
}

type ReasoningState = {
  readonly item: { readonly question: string; readonly answer: string; readonly metadata: ReasoningItem["metadata"] };
  /** Wrong answers with their scores. */
  readonly log: readonly string[];
};

/**
 * Answer a generated question whose answer a verifier scores. Observation: the question, and wrong
 * answers so far. Reward: the score of the last answer, 0 to 1.
 */
export class ReasoningEnv extends TaskEnv<string, string, ReasoningState> {
  override readonly observationSpace = new Text(MAX_QUESTION, { charset: CHARSET });
  override readonly actionSpace = new Text(MAX_ANSWER, { charset: CHARSET });
  override readonly text = reasoningText;
  /** Level of the questions from the next reset on. */
  level: number;
  private readonly task: ReasoningTask;
  private readonly attempts: number;

  constructor({ level = null, ...options }: ReasoningOptions = {}) {
    super();
    const { task, attempts } = applyDefaults("Reasoning", options, { task: "chain_sum", attempts: 1 }, ["level"]);
    this.task = findReasoningTask(task);
    this.level = checkLevel(this.task, level ?? undefined);
    if (!(Number.isInteger(attempts) && attempts >= 1 && attempts <= MAX_ATTEMPTS))
      throw invalidArgument(
        `Reasoning: option attempts must be an integer from 1 to ${MAX_ATTEMPTS}, got ${attempts}.`,
      );
    this.attempts = attempts;
  }

  /** Highest level of the task. */
  get maxLevel(): number {
    return this.task.levels.length - 1;
  }

  /** Reference answer of the present question. */
  get answer(): string {
    return this.currentState.item.answer;
  }

  protected override start(): ReasoningState {
    const { question, answer, metadata } = drawItem(this.task, this.level, this.random);
    return { item: { question, answer, metadata }, log: [] };
  }

  protected override observe({ item, log }: ReasoningState): string {
    return [item.question, ...log].join("\n");
  }

  protected override describe(): Info {
    return { level: this.level };
  }

  protected override advance(state: ReasoningState, completion: string): TaskStep<ReasoningState> {
    const score = scoreCompletion(this.task, completion, state.item);
    const log = [...state.log, `Not right (score ${score.toFixed(2)}): ${excerptAnswer(completion)}`];
    const isOver = score >= 1 || log.length >= this.attempts;
    const next = { ...state, log: isOver ? state.log : log };
    return { state: next, reward: isOver ? score : 0, terminated: isOver, isSuccess: score >= 1 };
  }

  protected override saveState(): JsonValue {
    return { level: this.level, task: super.saveState() };
  }

  protected override loadState(json: JsonValue): void {
    const { level, task } = json as { level: number; task: JsonValue };
    this.level = checkLevel(this.task, level);
    super.loadState(task);
  }
}

/** The beginning of a wrong answer, on one line. */
function excerptAnswer(completion: string): string {
  const answer = extractAnswer(completion).replace(/\s+/g, " ");
  return answer.length <= 80 ? answer : `${answer.slice(0, 77)}...`;
}

const reasoningText: TextInterface<string, string> = {
  systemPrompt: "Answer the question. Write the answer alone, or your reasoning and then <answer>the answer</answer>.",
  formatObservation: (observation) => observation,
  parseAction: (completion) => {
    const answer = (/<answer>/i.test(completion) ? extractAnswer(completion) : completion).slice(0, MAX_ANSWER + 1);
    const plain = Array.from(answer, (character) => (CHARSET.includes(character) ? character : "?")).join("");
    return plain.trim() === "" || plain.length > MAX_ANSWER ? undefined : plain;
  },
  formatAction: (answer) => answer,
};

const createExpert = (env: Env): Policy => {
  const reasoning = env.unwrapped as ReasoningEnv;
  return () => reasoning.answer;
};

/** Creates the environment; with `curriculum`, its level follows the scores. */
function createReasoning({ curriculum = false, ...options }: ReasoningOptions & { curriculum?: unknown }): Env {
  if (typeof curriculum !== "boolean")
    throw invalidArgument(`Reasoning: option curriculum must be a boolean, got ${JSON.stringify(curriculum)}.`);
  const env = new ReasoningEnv(options);
  return curriculum ? new CurriculumWrapper(env) : env;
}

export const reasoningEnvs: readonly Registration[] = REASONING_TASKS.map(({ name, summary }) => ({
  id: `Reasoning-${name.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase())}-v0`,
  entryPoint: createReasoning,
  options: { task: name },
  summary,
  knownReturns: { random: KNOWN_RETURNS[name], best: 1, basis: "measured" },
  expert: createExpert,
}));
