import { getChoices, Text, type Env } from "../../../envs/index.js";
import { findNearestName } from "../../../core/suggest.js";
import { LlamaGymError } from "../../../core/errors.js";
import { EpisodeRunner, type EpisodeRunnerOptions } from "../../../rl/rollout/index.js";

interface InteractiveEpisodeOptions extends EpisodeRunnerOptions {
  /** Show the text interface even if the environment renders text art. */
  readonly showText: boolean;
  readonly print: (line: string) => void;
  /** Prints a rendering, which may have colors. */
  readonly printRendering: (rendering: string) => void;
}

/** Longer lists of choices are left out of errors. */
const MAX_LISTED_CHOICES = 30;

/** An episode driven by typed lines or by actions, with every observation printed. */
export class InteractiveEpisode {
  /** The episode; `reset` starts it. */
  readonly runner: EpisodeRunner;

  constructor(
    private readonly env: Env,
    private readonly options: InteractiveEpisodeOptions,
  ) {
    this.runner = new EpisodeRunner(env, options);
  }

  /** Starts an episode and prints its first observation. */
  async reset(seed?: number): Promise<void> {
    await this.runner.reset(seed);
    await this.printObservation();
  }

  /** Takes the action that a line names, or prints why it names none. */
  async handleLine(line: string): Promise<void> {
    const { print } = this.options;
    if (this.runner.isDone) return print("The episode has ended. /reset starts another one, /quit quits.");
    const action = this.resolveAction(line);
    const rejection = action === undefined ? this.describeRejection(line) : await this.step(action);
    if (rejection !== undefined) print(rejection);
  }

  /**
   * Takes an action and prints the result. Returns the reason if the environment rejects the
   * action.
   */
  async step(action: unknown): Promise<string | undefined> {
    const { runner } = this;
    const { print } = this.options;
    let reward: number;
    try {
      ({ reward } = await runner.step(action));
    } catch (error) {
      if (!(error instanceof LlamaGymError) || error.code !== "ENV_ACTION_INVALID") throw error;
      return error.message;
    }
    await this.printObservation();
    if (reward !== 0) print(`Reward ${formatReturn(reward)}.`);
    const { end, steps, episodeReturn } = runner;
    if (end === undefined) return undefined;
    const ending = end === "terminated" ? "ended" : "stopped at the step limit";
    print(
      `The episode ${ending} after ${steps} ${steps === 1 ? "step" : "steps"}: return ${formatReturn(episodeReturn)}.`,
    );
    return undefined;
  }

  /** Lists the choices with their numbers, or describes the action space. */
  describeActions(): string {
    const choices = this.choices();
    if (choices.length === 0) return `Any action of ${this.env.actionSpace.toString().slice(0, 200)}.`;
    return choices.map((choice, i) => `${i}  ${choice}`).join("\n");
  }

  /** Returns the choices; empty if the environment does not list them. */
  private choices(): readonly string[] {
    const { text } = this.env;
    const { observation, info } = this.runner;
    return (text === undefined ? undefined : getChoices(text, observation, info)) ?? [];
  }

  private parseText(text: string): unknown {
    const { observation, info } = this.runner;
    return this.env.text?.parseAction(text, observation, info);
  }

  /** Returns the observation as a language model reads it. */
  private observationText(): string {
    const { observation, info } = this.runner;
    const observationText = this.env.text?.formatObservation(observation, info);
    return observationText ?? JSON.stringify(this.env.observationSpace.encode(observation));
  }

  private resolveAction(line: string): unknown {
    const { text, actionSpace } = this.env;
    if (text === undefined) return decodeAction(actionSpace, line);
    const choices = this.choices();
    const isExact = choices.some((choice) => choice.toLowerCase() === line.toLowerCase());
    // If actions are text, a number is an index into the choices.
    const isIndex = !isExact && actionSpace instanceof Text && /^\d+$/.test(line) && Number(line) < choices.length;
    return this.parseText(isIndex ? choices[Number(line)] : line);
  }

  private describeRejection(line: string): string {
    const choices = this.choices();
    const nearest = findNearestName(line, choices);
    if (nearest !== undefined) return `"${line}" is not a valid action. Did you mean "${nearest}"?`;
    const listing =
      choices.length > 0 && choices.length <= MAX_LISTED_CHOICES
        ? ` Actions: ${choices.join(", ")}.`
        : " /actions lists them.";
    return `"${line}" is not a valid action.${listing}`;
  }

  private async printObservation(): Promise<void> {
    const { runner, options } = this;
    const rendering = options.showText ? undefined : await runner.render();
    if (rendering !== undefined) return options.printRendering(rendering.trimEnd());
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

/** Formats a return or a reward with six significant digits. */
export function formatReturn(value: number): string {
  return String(Number(value.toPrecision(6)));
}
