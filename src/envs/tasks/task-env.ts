import { LlamaGymError } from "../../core/errors.js";
import {
  Env,
  type EnvMetadata,
  type RenderFrame,
  type RenderMode,
  type ResetOptions,
  type ResetResult,
  type StepResult,
} from "../env.js";
import type { Info } from "../info.js";
import type { JsonValue } from "../../core/json.js";
import type { TextInterface } from "../text-interface.js";

/** Result of an action. */
export interface TaskStep<State> {
  readonly state: State;
  readonly reward: number;
  readonly terminated: boolean;
  /** Whether the task's own step limit ended the episode. */
  readonly truncated?: boolean;
  /** Whether the task is solved, for tasks that can be: becomes `is_success` of the info. */
  readonly isSuccess?: boolean;
}

/**
 * A task whose whole state is one JSON value. Subclasses define the initial state, its observation
 * and the transition for an action. States are immutable.
 */
export abstract class TaskEnv<Observation, Action, State extends JsonValue> extends Env<Observation, Action> {
  override readonly metadata: EnvMetadata = { renderModes: ["ansi"], renderFps: 4 };
  abstract override readonly text: TextInterface<Observation, Action>;
  private state: State | undefined;
  private isOver = false;

  /** Draws an initial state from `this.random`. */
  protected abstract start(): State;
  /** Returns the observation of a state, as a new value. */
  protected abstract observe(state: State): Observation;
  /** Applies an action to a state; randomness comes from `this.random`. */
  protected abstract advance(state: State, action: Action): TaskStep<State>;

  /** Returns the info of a state, as a new value. */
  protected describe(_state: State): Info {
    return {};
  }

  override reset({ seed }: ResetOptions = {}): ResetResult<Observation> {
    this.reseed(seed);
    this.state = this.start();
    this.isOver = false;
    return { observation: this.observe(this.state), info: this.describe(this.state) };
  }

  override step(action: Action): StepResult<Observation> {
    this.checkAction(action);
    if (this.state === undefined) throw this.notResetError();
    if (this.isOver)
      throw new LlamaGymError("ENV_NOT_RESET", `${this.constructor.name}: the episode has ended. Call reset().`);
    const { state, reward, terminated, truncated = false, isSuccess } = this.advance(this.state, action);
    this.state = state;
    this.isOver = terminated || truncated;
    const info = { ...this.describe(state), ...(isSuccess === undefined ? {} : { is_success: isSuccess }) };
    return { observation: this.observe(state), reward, terminated, truncated, info };
  }

  /** The present state. @throws ENV_NOT_RESET before the first reset. */
  protected get currentState(): State {
    if (this.state === undefined) throw this.notResetError();
    return this.state;
  }

  /** Renders the text of the observation. */
  override render(_mode: RenderMode): RenderFrame {
    const state = this.currentState;
    return `${this.text.formatObservation(this.observe(state), this.describe(state))}\n`;
  }

  protected override saveState(): JsonValue {
    return { state: this.state ?? null, isOver: this.isOver };
  }

  protected override loadState(json: JsonValue): void {
    const { state, isOver } = json as { state: State | null; isOver: boolean };
    this.state = state ?? undefined;
    this.isOver = isOver;
  }
}

/** Formats the lines of previous guesses with the question for the next one. */
export function formatGuesses(lines: string, limit: number): string {
  const guessesLeft = limit - (lines === "" ? 0 : lines.split("\n").length);
  const question = `${guessesLeft} ${guessesLeft === 1 ? "guess" : "guesses"} left. What is your guess?`;
  return lines === "" ? question : `${lines}\n${question}`;
}

/**
 * Parses a written command from a completion: the last line that starts with one of the verbs, or
 * else its only line. Characters outside `charset` become spaces. Returns undefined for none or a
 * too long one.
 */
export function parseCommand(
  completion: string,
  { verbs, charset, maxLength }: { verbs: readonly string[]; charset: string; maxLength: number },
): string | undefined {
  const lines = completion.split("\n").filter((line) => line.trim() !== "");
  const start = new RegExp(`^[\\s>*\`"-]*(?:(?:action|command)\\s*:\\s*)?((?:${verbs.join("|")})\\b.*)$`, "i");
  const commands = lines.flatMap((line) => start.exec(line)?.[1] ?? []);
  const command = commands.at(-1) ?? (lines.length === 1 ? lines[0] : "");
  const plain = Array.from(command, (character) => (charset.includes(character) ? character : " ")).join("");
  return plain.trim() === "" || plain.length > maxLength ? undefined : plain;
}

/** Letters, digits and the characters of arithmetic and prices. */
export const COMMAND_CHARSET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,+*/()%$'?!-";
