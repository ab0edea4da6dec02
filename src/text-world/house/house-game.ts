import { LlamaGymError } from "../../core/errors.js";
import type { TextWorldGame } from "../game.js";
import { StateTracker } from "../state-tracker.js";
import type { Variable } from "../logic/proposition.js";
import type { GameState, RequestedInfos, TextGame } from "../text-game.js";
import { describeContents, describeInventory, describeRoom, describeObject } from "./describe-house.js";
import { resolveCommand, type ResolvedCommand } from "./resolve-command.js";
import { PlayerView } from "./player-view.js";

/** Runs a generated house by its rules and describes the results. */
export class HouseGame implements TextGame {
  private tracker: StateTracker;
  private isOver = false;

  constructor(
    private readonly game: TextWorldGame,
    private readonly infos: RequestedInfos,
  ) {
    this.tracker = new StateTracker(game, infos, true);
  }

  start(): GameState {
    this.tracker = new StateTracker(this.game, this.infos, true);
    return this.state(`${this.game.objective}\n\n${describeRoom(this.view())}`, undefined);
  }

  send(command: string): GameState {
    if (this.isOver) throw new LlamaGymError("INVALID_STATE", "The game is over. Call start() to play it again.");
    this.tracker.beginCommand();
    return this.state(this.execute(command), command);
  }

  /** Executes a command. Returns the feedback. */
  private execute(command: string): string {
    const before = this.view();
    const resolved = resolveCommand(command, before);
    if ("refusal" in resolved) return resolved.refusal;
    const { progress } = this.tracker;
    const action = progress.validActions.find(
      (candidate) => this.game.formatCommands([candidate])[0] === resolved.command,
    );
    // The rules decide, even if the resolver missed a reason to refuse.
    if (action === undefined) return "That does not work.";
    this.tracker.recordAction(action);
    const description = describeAction(resolved, before, this.view());
    if (progress.completed) return `${description}\n\nThat was your task. You have won!`;
    if (progress.failed) return `${description}\n\nNow your task cannot be done any more. You have lost.`;
    return description;
  }

  private view(): PlayerView {
    return new PlayerView(this.game, this.tracker.progress.facts);
  }

  private state(feedback: string, lastCommand: string | undefined): GameState {
    const { progress, moves } = this.tracker;
    const { completed: won, failed: lost, score } = progress;
    this.isOver = won || lost;
    return {
      isOver: this.isOver,
      feedback,
      score,
      moves,
      won,
      lost,
      lastCommand: lastCommand?.trim(),
      description: this.infos.has("description") ? describeRoom(this.view()) : undefined,
      inventory: this.infos.has("inventory") ? describeInventory(this.view()) : undefined,
      ...this.tracker.getState(won, lost),
    };
  }
}

/** Describes the result of an action. */
function describeAction(
  { verb, object, other }: Exclude<ResolvedCommand, { refusal: string }>,
  before: PlayerView,
  after: PlayerView,
): string {
  if (verb === "inventory") return describeInventory(after);
  if (object === undefined) return describeRoom(after);
  const the = (thing: Variable) => `the ${before.getName(thing)}`;
  const place = other === undefined ? "" : the(other);
  switch (verb) {
    case "examine":
      return describeObject(after, object);
    case "take":
      return other === undefined ? `You pick up ${the(object)}.` : `You take ${the(object)} from ${place}.`;
    case "drop":
      return `You put ${the(object)} on the floor.`;
    case "put":
      return `You put ${the(object)} on ${place}.`;
    case "insert":
      return `You put ${the(object)} into ${place}.`;
    case "open":
      return `You open ${the(object)}.${object.type === "c" ? ` ${describeContents(after, object)}` : ""}`;
    case "eat":
      return `You eat ${the(object)}. It tastes good.`;
    default:
      return `You ${verb} ${the(object)}${other === undefined ? "" : ` with ${place}`}.`;
  }
}
