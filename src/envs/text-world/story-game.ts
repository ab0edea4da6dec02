import { LlamaGymError } from "../../errors.js";
import type { Game } from "./game.js";
import { GameView, needsTracking } from "./game-view.js";
import type { GameState, RequestedInfos, TextGame } from "./text-game.js";
import { Machine } from "./zmachine/machine.js";
import type { Story } from "./zmachine/story.js";

/** What a TextWorld story tells of itself after each command, once asked to, between tags of that name. */
const TAGS = ["description", "inventory", "score", "moves"] as const;
type Tag = (typeof TAGS)[number];
type TagValues = Partial<Record<Tag, string>>;

const WON = "*** The End ***";
const LOST = "*** You lost! ***";
const SUCCEEDED = " - succeeded";

/** How a story is played. */
export interface StoryGameOptions {
  /** Information to gather. */
  readonly infos: RequestedInfos;
  /**
   * Whether the feedback ends before the prompt and the status line, as TextWorld's does for story files whose
   * names start with "tw-" (those that tw-make names itself). Defaults to whether this story's does.
   */
  readonly trimPrompt?: boolean;
  /** How many instructions the story may carry out for a command; ENV_FAILED after that. */
  readonly maxInstructions?: number;
}

/** Plays a story file that TextWorld made, with the state that TextWorld keeps beside it. */
export class StoryGame implements TextGame {
  private readonly machine: Machine;
  private readonly infos: RequestedInfos;
  private readonly trimPrompt: boolean;
  private tracked: Tag[] = [];
  private values: TagValues = {};
  private view: GameView | undefined;

  constructor(
    private readonly story: Story,
    private readonly game: Game,
    { infos, trimPrompt, maxInstructions }: StoryGameOptions,
  ) {
    this.machine = new Machine(story, maxInstructions);
    this.infos = infos;
    this.trimPrompt = trimPrompt ?? story.name.startsWith("tw-");
  }

  start(): GameState {
    const feedback = this.clean(this.machine.start());
    this.tracked = [];
    this.values = {};
    if (this.infos.has("inventory")) this.track("inventory");
    if (this.infos.has("description")) this.track("description");
    this.track("moves");
    this.track("score");
    if (this.values.score === undefined) {
      throw new LlamaGymError(
        "FORMAT_UNSUPPORTED",
        `${this.story.name} does not answer tw-extra-infos: it is no story made by TextWorld.`,
      );
    }
    this.view = undefined;
    if (needsTracking(this.infos)) {
      this.machine.send("tw-trace-actions");
      this.view = new GameView(this.game, this.infos);
    }
    return this.state(feedback, undefined);
  }

  send(command: string): GameState {
    const typed = command.trim().replace(/\s*\n\s*/g, " ");
    const reply = cutTags(this.clean(this.machine.send(typed)), this.tracked);
    // A value that is empty keeps what it was.
    for (const tag of this.tracked) this.values[tag] = reply.values[tag] || this.values[tag];
    if (this.view === undefined) return this.state(reply.rest, typed);
    const { events, rest } = cutEvents(reply.rest);
    this.view.beginCommand();
    for (const event of events) this.view.note(this.game.findAction(event, this.view.progress.validActions));
    return this.state(rest, typed);
  }

  private track(tag: Tag): void {
    const { values } = cutTags(this.clean(this.machine.send(`tw-extra-infos ${tag}`)), TAGS);
    this.tracked.push(tag);
    this.values = { ...this.values, ...values };
  }

  private state(feedback: string, lastCommand: string | undefined): GameState {
    const won = feedback.includes(WON);
    const lost = feedback.includes(LOST);
    const moves = this.view !== undefined && this.infos.has("moves") ? this.view.moves : count(this.values.moves);
    return {
      feedback,
      score: count(this.values.score),
      moves,
      won,
      lost,
      isOver: won || lost || this.machine.hasQuit,
      lastCommand,
      description: this.values.description,
      inventory: this.values.inventory,
      ...this.view?.state(won, lost),
    };
  }

  private clean(reply: string): string {
    if (!this.trimPrompt) return reply;
    const prompt = reply.lastIndexOf(">");
    return reply.slice(1, prompt < 1 ? undefined : prompt - 1);
  }
}

/** The first number in the text, 0 when there is none. */
function count(text: string | undefined): number {
  const number = Number.parseInt(text ?? "", 10);
  return Number.isNaN(number) ? 0 : number;
}

/** Takes the blocks of these tags out of a reply, in this order. */
function cutTags(reply: string, tags: readonly Tag[]): { values: TagValues; rest: string } {
  const values: TagValues = {};
  let rest = reply;
  for (const tag of tags) {
    const block = new RegExp(`<${tag}>\\n([^]*)</${tag}>`);
    const found = block.exec(rest);
    if (found === null) continue;
    values[tag] = cutEvents(found[1]).rest.trim();
    rest = rest.replace(block, "");
  }
  return { values, rest };
}

/** Takes the `[...]` notes on actions out of a text, and lists the actions that succeeded. */
function cutEvents(text: string): { events: string[]; rest: string } {
  const events: string[] = [];
  let rest = text;
  for (const note of text.match(/\[[^\]]+\]\n?/g) ?? []) {
    rest = rest.replaceAll(note, "");
    const name = note.trim().slice(1, -1);
    const end = name.indexOf(SUCCEEDED);
    // A part of another action's rules has its number in parentheses.
    const event = name.slice(0, Math.max(0, end));
    if (end >= 0 && !/[()]/.test(event)) events.push(event);
  }
  return { events, rest };
}
