import { choicesFor, Text, type Env, type Info } from "../envs/index.js";
import { nearestName } from "../envs/registry/nearest-name.js";
import { LlamaGymError } from "../errors.js";

interface PlayOptions {
  /** Whether the text form is shown where there is a picture in letters too. */
  readonly showsText: boolean;
  readonly print: (line: string) => void;
}

/** More choices than this are not listed in an error. */
const MOST_CHOICES = 30;

/** A game: what a person types or a model replies becomes actions, what comes of them is shown. */
export class Play {
  /** Rewards of the episode so far. */
  total = 0;
  steps = 0;
  isOver = false;
  private observation: unknown;
  private info: Info = {};

  constructor(
    private readonly env: Env,
    private readonly options: PlayOptions,
  ) {}

  /** Starts an episode and shows it. */
  async reset(seed?: number): Promise<void> {
    ({ observation: this.observation, info: this.info } = await this.env.reset({ seed }));
    this.total = 0;
    this.steps = 0;
    this.isOver = false;
    await this.show();
  }

  /** Takes the action that a line means; a line that means none is told. */
  async take(line: string): Promise<void> {
    const { print } = this.options;
    if (this.isOver) return print("The episode has ended: /reset starts another, /quit ends.");
    const action = this.actionOf(line);
    const refusal = action === undefined ? this.refusal(line) : await this.step(action);
    if (refusal !== undefined) print(refusal);
  }

  /** Takes an action and shows what comes of it; gives the reason where the environment refuses it. */
  async step(action: unknown): Promise<string | undefined> {
    const { print } = this.options;
    let result;
    try {
      result = await this.env.step(action);
    } catch (error) {
      if (!(error instanceof LlamaGymError) || error.code !== "ENV_ACTION_INVALID") throw error;
      return error.message;
    }
    const { reward, terminated, truncated } = result;
    this.observation = result.observation;
    this.info = result.info;
    this.total += reward;
    this.steps++;
    this.isOver = terminated || truncated;
    await this.show();
    if (reward !== 0) print(`Reward ${rounded(reward)}.`);
    if (!this.isOver) return undefined;
    const why = terminated ? "ended" : "stopped at the step limit";
    print(
      `The episode ${why} after ${this.steps} ${this.steps === 1 ? "step" : "steps"}: return ${rounded(this.total)}.`,
    );
    return undefined;
  }

  /** The possible replies with their numbers, or what kind of action is taken. */
  actions(): string {
    const choices = this.choices();
    if (choices.length === 0) return `An action of ${this.env.actionSpace.toString().slice(0, 200)}.`;
    return choices.map((choice, i) => `${i}  ${choice}`).join("\n");
  }

  /** The possible replies; none where they cannot be listed. */
  private choices(): readonly string[] {
    const { text } = this.env;
    return (text === undefined ? undefined : choicesFor(text, this.observation, this.info)) ?? [];
  }

  /** What was last observed. */
  get situation(): { readonly observation: unknown; readonly info: Info } {
    const { observation, info } = this;
    return { observation, info };
  }

  private parsed(reply: string): unknown {
    return this.env.text?.parseAction(reply, this.observation, this.info);
  }

  /** What a language model reads. */
  private written(): string {
    const written = this.env.text?.formatObservation(this.observation, this.info);
    return written ?? JSON.stringify(this.env.observationSpace.encode(this.observation));
  }

  private actionOf(line: string): unknown {
    const { text, actionSpace } = this.env;
    if (text === undefined) return decoded(actionSpace, line);
    const choices = this.choices();
    const isExact = choices.some((choice) => choice.toLowerCase() === line.toLowerCase());
    // Where actions are text a number is the place of one in the list.
    const isPlace = !isExact && actionSpace instanceof Text && /^\d+$/.test(line) && Number(line) < choices.length;
    return this.parsed(isPlace ? choices[Number(line)] : line);
  }

  private refusal(line: string): string {
    const choices = this.choices();
    const near = nearestName(line, choices);
    if (near !== undefined) return `"${line}" is no action here. Did you mean "${near}"?`;
    const known =
      choices.length > 0 && choices.length <= MOST_CHOICES
        ? ` Actions: ${choices.join(", ")}.`
        : " /actions tells what is.";
    return `"${line}" is no action here.${known}`;
  }

  private async show(): Promise<void> {
    const { env, options } = this;
    const shown =
      env.metadata.renderModes.includes("ansi") && !options.showsText ? await env.render("ansi") : undefined;
    if (typeof shown === "string") return options.print(shown.trimEnd());
    options.print(this.written());
  }
}

function decoded(space: Env["actionSpace"], line: string): unknown {
  try {
    return space.decode(JSON.parse(line));
  } catch {
    return undefined;
  }
}

/** A return or a reward with six digits. */
export function rounded(value: number): string {
  return String(Number(value.toPrecision(6)));
}
