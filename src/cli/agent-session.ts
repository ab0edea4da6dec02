import type { Env } from "../envs/index.js";
import { LlamaGymError } from "../errors.js";
import type { LanguageModel } from "../generation/language-model.js";
import { RandomStream } from "../tensor/random.js";
import { AgentDialogue } from "./agent-dialogue.js";
import { hasChatTemplate } from "./open-model.js";
import { Play, rounded } from "./play-session.js";

interface AgentOptions {
  readonly episodes: number;
  /** Replies are free texts also where the environment lists what they may be. */
  readonly isFree: boolean;
  readonly maxNewTokens: number;
  readonly temperature: number;
  /** The same seed gives the same episodes and replies. */
  readonly seed: number | undefined;
  /** Whether the text form is shown where there is a picture in letters too. */
  readonly showsText: boolean;
  readonly print: (line: string) => void;
  /** Told what is not part of the game. */
  readonly tell: (line: string) => void;
}

/** Throws ENV_INVALID for an environment without a text form, which no language model can play. */
export function checkReadable(env: Env, name: string): void {
  if (env.text !== undefined) return;
  throw new LlamaGymError(
    "ENV_INVALID",
    `${name} has no text form, so a language model cannot play it; give it a \`text\`.`,
  );
}

/** A language model's game: it is shown what the text form says, and its replies are the actions. */
export class AgentSession {
  private readonly play: Play;
  private readonly random: RandomStream;
  private replies = 0;
  private understood = 0;
  /** The reply as it was last shown. */
  private said = "";

  constructor(
    private readonly env: Env,
    private readonly model: LanguageModel,
    private readonly options: AgentOptions,
  ) {
    // Some games repeat the command before their answer.
    const print = (text: string) =>
      options.print(text.startsWith(`${this.said}\n`) ? text.slice(this.said.length + 1) : text);
    this.play = new Play(env, { ...options, print });
    this.random = new RandomStream(options.seed);
    if (options.seed !== undefined) env.actionSpace.seed(options.seed);
  }

  /** Plays all episodes, then tells the mean return and how many replies were actions. */
  async run(): Promise<void> {
    const { play } = this;
    const { episodes, print, seed } = this.options;
    let total = 0;
    let steps = 0;
    for (let episode = 0; episode < episodes; episode++) {
      if (episodes > 1) print(`${episode > 0 ? "\n" : ""}Episode ${episode + 1} of ${episodes}.`);
      // A seed tells all episodes after it too.
      await play.reset(episode === 0 ? seed : undefined);
      await this.playEpisode();
      total += play.total;
      steps += play.steps;
    }
    if (episodes > 1) {
      print(`\nMean return ${rounded(total / episodes)}, ${rounded(steps / episodes)} steps, of ${episodes} episodes.`);
    }
    print(`${this.understood} of ${this.replies} replies were actions.`);
  }

  private async playEpisode(): Promise<void> {
    const { play, options } = this;
    const dialogue = new AgentDialogue(this.model, this.env.text?.systemPrompt ?? "");
    let remark = "";
    while (!play.isOver) {
      dialogue.show(`${remark}${play.written()}`);
      const reply = await this.reply(dialogue);
      dialogue.answer(reply);
      this.said = `> ${reply.replaceAll("\n", "\n  ")}`;
      options.print(this.said);
      const action = play.parsed(reply);
      this.replies++;
      const isTaken = action !== undefined && (await play.step(action)) === undefined;
      if (isTaken) this.understood++;
      remark = isTaken ? "" : await this.stepAtRandom();
    }
  }

  private async reply(dialogue: AgentDialogue): Promise<string> {
    const { isFree, maxNewTokens, temperature, seed, tell } = this.options;
    const { tokenizer } = this.model;
    const choices = isFree ? [] : [...new Set(this.play.choices())];
    const isHeld = choices.length > 0;
    // A token more for the end of a choice that others begin with, and one for a leading space.
    const longest = () => Math.max(...choices.map((choice) => tokenizer.encode(choice).length)) + 2;
    const { tokens, forgotten } = dialogue.prompt(isHeld ? longest() : maxNewTokens);
    if (forgotten > 0) {
      tell(`(The context is full: the oldest ${forgotten === 1 ? "turn was" : `${forgotten} turns were`} left out.)`);
    }
    // Without a chat template nothing but the line's end says that a reply is over.
    const free = hasChatTemplate(this.model) ? { maxNewTokens } : { maxNewTokens, stop: "\n" };
    const { text, choice } = await this.model.reply(tokens, {
      temperature,
      ...(seed === undefined ? {} : { seed: seed + this.replies }),
      ...(isHeld ? { choices } : free),
    });
    return choice === undefined ? text.trim() : choices[choice];
  }

  /** Takes a random action in place of a reply that is none; gives what the model is told of it. */
  private async stepAtRandom(): Promise<string> {
    const { env, play, random, options } = this;
    const choices = play.choices();
    const drawn = choices.length > 0 ? play.parsed(random.choice(choices)) : undefined;
    const action = drawn ?? env.actionSpace.sample();
    const name = env.text?.formatAction(action) ?? String(action);
    options.print(`That is no action here; at random: ${name}`);
    this.said = `> ${name}`;
    const refusal = await play.step(action);
    if (refusal !== undefined) throw new LlamaGymError("ENV_INVALID", `A random action was refused: ${refusal}`);
    return `Your reply was no action, so "${name}" was done.\n`;
  }
}
