import { getChoices, Text, type Env, type Info } from "../../../envs/index.js";
import { findNearestName } from "../../../core/suggest.js";
import { LlamaGymError } from "../../../core/errors.js";

interface InteractiveEpisodeOptions {
  /** Whether the text form is shown where there is a picture in letters too. */
  readonly showText: boolean;
  readonly print: (line: string) => void;
}

/** More choices than this are not listed in an error. */
const MAX_LISTED_CHOICES = 30;

/** A game: what a person types or a model replies becomes actions, what comes of them is shown. */
export class InteractiveEpisode {
  /** Rewards of the episode so far. */
  episodeReturn = 0;
  steps = 0;
  isDone = false;
  private observation: unknown;
  private info: Info = {};

  constructor(
    private readonly env: Env,
    private readonly options: InteractiveEpisodeOptions,
  ) {}

  /** Starts an episode and shows it. */
  async reset(seed?: number): Promise<void> {
    ({ observation: this.observation, info: this.info } = await this.env.reset({ seed }));
    this.episodeReturn = 0;
    this.steps = 0;
    this.isDone = false;
    await this.printObservation();
  }

  /** Takes the action that a line means; a line that means none is told. */
  async handleLine(line: string): Promise<void> {
    const { print } = this.options;
    if (this.isDone) return print("The episode has ended: /reset starts another, /quit ends.");
    const action = this.resolveAction(line);
    const rejection = action === undefined ? this.rejection(line) : await this.step(action);
    if (rejection !== undefined) print(rejection);
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
    this.episodeReturn += reward;
    this.steps++;
    this.isDone = terminated || truncated;
    await this.printObservation();
    if (reward !== 0) print(`Reward ${formatReturn(reward)}.`);
    if (!this.isDone) return undefined;
    const ending = terminated ? "ended" : "stopped at the step limit";
    print(
      `The episode ${ending} after ${this.steps} ${this.steps === 1 ? "step" : "steps"}: return ${formatReturn(this.episodeReturn)}.`,
    );
    return undefined;
  }

  /** The possible replies with their numbers, or what kind of action is taken. */
  describeActions(): string {
    const choices = this.choices();
    if (choices.length === 0) return `An action of ${this.env.actionSpace.toString().slice(0, 200)}.`;
    return choices.map((choice, i) => `${i}  ${choice}`).join("\n");
  }

  /** The possible replies; none where they cannot be listed. */
  private choices(): readonly string[] {
    const { text } = this.env;
    return (text === undefined ? undefined : getChoices(text, this.observation, this.info)) ?? [];
  }

  /** What was last observed. */
  get pendingObservation(): { readonly observation: unknown; readonly info: Info } {
    const { observation, info } = this;
    return { observation, info };
  }

  private parseText(reply: string): unknown {
    return this.env.text?.parseAction(reply, this.observation, this.info);
  }

  /** What a language model reads. */
  private observationText(): string {
    const observationText = this.env.text?.formatObservation(this.observation, this.info);
    return observationText ?? JSON.stringify(this.env.observationSpace.encode(this.observation));
  }

  private resolveAction(line: string): unknown {
    const { text, actionSpace } = this.env;
    if (text === undefined) return decodeAction(actionSpace, line);
    const choices = this.choices();
    const isExact = choices.some((choice) => choice.toLowerCase() === line.toLowerCase());
    // Where actions are text a number is the place of one in the list.
    const isIndex = !isExact && actionSpace instanceof Text && /^\d+$/.test(line) && Number(line) < choices.length;
    return this.parseText(isIndex ? choices[Number(line)] : line);
  }

  private rejection(line: string): string {
    const choices = this.choices();
    const nearest = findNearestName(line, choices);
    if (nearest !== undefined) return `"${line}" is no action here. Did you mean "${nearest}"?`;
    const listing =
      choices.length > 0 && choices.length <= MAX_LISTED_CHOICES
        ? ` Actions: ${choices.join(", ")}.`
        : " /actions tells what is.";
    return `"${line}" is no action here.${listing}`;
  }

  private async printObservation(): Promise<void> {
    const { env, options } = this;
    const picture =
      env.metadata.renderModes.includes("ansi") && !options.showText ? await env.render("ansi") : undefined;
    if (typeof picture === "string") return options.print(picture.trimEnd());
    options.print(this.observationText());
  }
}

function decodeAction(space: Env["actionSpace"], line: string): unknown {
  try {
    return space.decode(JSON.parse(line));
  } catch {
    return undefined;
  }
}

/** A return or a reward with six digits. */
export function formatReturn(value: number): string {
  return String(Number(value.toPrecision(6)));
}
