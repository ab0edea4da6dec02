import { LlamaGymError } from "../core/errors.js";
import type { TextWorldGame } from "./game.js";
import { StateTracker, needsTracking } from "./state-tracker.js";
import type { GameState, RequestedInfos, TextGame } from "./text-game.js";
import { ZMachine } from "./zmachine/z-machine.js";
import type { Story } from "./zmachine/story.js";

/** Info tags that a TextWorld story prints after each command, once enabled. */
const TAGS = ["description", "inventory", "score", "moves"] as const;
type Tag = (typeof TAGS)[number];
type TagValues = Partial<Record<Tag, string>>;

const WON_MARKER = "*** The End ***";
const LOST_MARKER = "*** You lost! ***";
const SUCCESS_SUFFIX = " - succeeded";

/** Options of a story game. */
export interface StoryGameOptions {
  /** Requested info entries. */
  readonly infos: RequestedInfos;
  /**
   * Whether to strip the prompt and the status line from the feedback, as TextWorld does for story
   * files whose names start with "tw-" (those named by tw-make). Default: whether this story's name
   * does.
   */
  readonly trimPrompt?: boolean;
  /** Instruction budget per command; exceeding it is ENV_FAILED. */
  readonly maxInstructions?: number;
}

/** Runs a TextWorld story file with the game state of its .json file. */
export class StoryGame implements TextGame {
  private readonly machine: ZMachine;
  private readonly infos: RequestedInfos;
  private readonly trimPrompt: boolean;
  private requestedTags: Tag[] = [];
  private tagValues: TagValues = {};
  private tracker: StateTracker | undefined;

  constructor(
    private readonly story: Story,
    private readonly game: TextWorldGame,
    { infos, trimPrompt, maxInstructions }: StoryGameOptions,
  ) {
    this.machine = new ZMachine(story, maxInstructions);
    this.infos = infos;
    this.trimPrompt = trimPrompt ?? story.name.startsWith("tw-");
  }

  start(): GameState {
    const feedback = this.cleanOutput(this.machine.start());
    this.requestedTags = [];
    this.tagValues = {};
    if (this.infos.has("inventory")) this.requestTag("inventory");
    if (this.infos.has("description")) this.requestTag("description");
    this.requestTag("moves");
    this.requestTag("score");
    if (this.tagValues.score === undefined)
      throw new LlamaGymError(
        "FORMAT_UNSUPPORTED",
        `${this.story.name} does not support tw-extra-infos, so it is not a TextWorld story.`,
      );
    this.tracker = undefined;
    if (needsTracking(this.infos)) {
      this.machine.send("tw-trace-actions");
      this.tracker = new StateTracker(this.game, this.infos);
    }
    return this.state(feedback, undefined);
  }

  send(command: string): GameState {
    const input = command.trim().replace(/\s*\n\s*/g, " ");
    const output = extractTags(this.cleanOutput(this.machine.send(input)), this.requestedTags);
    // An empty value keeps the previous one.
    for (const tag of this.requestedTags) this.tagValues[tag] = output.values[tag] || this.tagValues[tag];
    if (this.tracker === undefined) return this.state(output.rest, input);
    const { events, rest } = extractEvents(output.rest);
    this.tracker.beginCommand();
    for (const event of events)
      this.tracker.recordAction(this.game.findAction(event, this.tracker.progress.validActions));
    return this.state(rest, input);
  }

  private requestTag(tag: Tag): void {
    const { values: tagValues } = extractTags(this.cleanOutput(this.machine.send(`tw-extra-infos ${tag}`)), TAGS);
    this.requestedTags.push(tag);
    this.tagValues = { ...this.tagValues, ...tagValues };
  }

  private state(feedback: string, lastCommand: string | undefined): GameState {
    const won = feedback.includes(WON_MARKER);
    const lost = feedback.includes(LOST_MARKER);
    const moves =
      this.tracker !== undefined && this.infos.has("moves") ? this.tracker.moves : parseCount(this.tagValues.moves);
    return {
      feedback,
      score: parseCount(this.tagValues.score),
      moves,
      won,
      lost,
      isOver: won || lost || this.machine.hasQuit,
      lastCommand,
      description: this.tagValues.description,
      inventory: this.tagValues.inventory,
      ...this.tracker?.getState(won, lost),
    };
  }

  private cleanOutput(output: string): string {
    if (!this.trimPrompt) return output;
    const promptIndex = output.lastIndexOf(">");
    return output.slice(1, promptIndex < 1 ? undefined : promptIndex - 1);
  }
}

/** Returns the first number in a text, or 0. */
function parseCount(text: string | undefined): number {
  const number = Number.parseInt(text ?? "", 10);
  return Number.isNaN(number) ? 0 : number;
}

/** Extracts the blocks of these tags from output, in this order. */
function extractTags(output: string, tags: readonly Tag[]): { values: TagValues; rest: string } {
  const values: TagValues = {};
  let rest = output;
  for (const tag of tags) {
    rest = rest.replace(new RegExp(`<${tag}>\\n([^]*)</${tag}>`), (_, content: string) => {
      values[tag] = extractEvents(content).rest.trim();
      return "";
    });
  }
  return { values, rest };
}

/** Removes the `[...]` notes on actions from a text, and lists the actions that succeeded. */
function extractEvents(text: string): { events: string[]; rest: string } {
  const events: string[] = [];
  let rest = text;
  for (const marker of text.match(/\[[^\]]+\]\n?/g) ?? []) {
    rest = rest.replaceAll(marker, "");
    const name = marker.trim().slice(1, -1);
    const end = name.indexOf(SUCCESS_SUFFIX);
    // A part of another action's rules has a number in parentheses.
    const event = name.slice(0, Math.max(0, end));
    if (end >= 0 && !/[()]/.test(event)) events.push(event);
  }
  return { events, rest };
}
