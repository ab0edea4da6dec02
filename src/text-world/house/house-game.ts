import { LlamaGymError } from "../../core/errors.js";
import type { Game } from "../game.js";
import { StateTracker } from "../state-tracker.js";
import type { Variable } from "../logic/proposition.js";
import type { GameState, RequestedInfos, TextGame } from "../text-game.js";
import { describeContents, describeInventory, describeRoom, describeObject } from "./describe-house.js";
import { parseCommand } from "./parse-command.js";
import { resolveCommand, type ResolvedCommand } from "./resolve-command.js";
import { PlayerView } from "./player-view.js";

/** Runs a generated house by its rules and describes the results. */
export class HouseGame implements TextGame {
  private tracker: StateTracker;
  private isOver = false;

  constructor(
    private readonly game: Game,
    private readonly infos: RequestedInfos,
  ) {
    this.tracker = new StateTracker(game, infos, true);
  }

  start(): GameState {
    this.tracker = new StateTracker(this.game, this.infos, true);
    this.isOver = false;
    return this.state(`${this.game.objective}\n\n${describeRoom(this.scene())}`, undefined);
  }

  send(command: string): GameState {
    if (this.isOver) throw new LlamaGymError("INVALID_STATE", "The game is over. Call start() to play it again.");
    const parsedCommand = parseCommand(command);
    this.tracker.beginCommand();
    if (parsedCommand === undefined) {
      const message = command.trim() === "" ? "Say what you want to do." : "You cannot do that here: it is no command.";
      return this.state(message, command);
    }
    const before = this.scene();
    const resolved = resolveCommand(parsedCommand, before);
    if ("refusal" in resolved) return this.state(resolved.refusal, command);
    const { validActions } = this.tracker.progress;
    const action = validActions.find((candidate) => this.game.formatCommands([candidate])[0] === resolved.command);
    // The rules decide, even if the resolver missed a reason to refuse.
    if (action === undefined) return this.state("That does not work.", command);
    this.tracker.recordAction(action);
    const description = describeAction(resolved, before, this.scene());
    const { progress } = this.tracker;
    if (progress.completed) return this.state(`${description}\n\nThat was your task. You have won!`, command);
    if (progress.failed)
      return this.state(`${description}\n\nNow your task cannot be done any more. You have lost.`, command);
    return this.state(description, command);
  }

  private scene(): PlayerView {
    return new PlayerView(this.game, this.tracker.progress.facts);
  }

  private state(feedback: string, lastCommand: string | undefined): GameState {
    const { progress, moves } = this.tracker;
    const won = progress.completed;
    const lost = progress.failed;
    this.isOver = won || lost;
    return {
      isOver: this.isOver,
      feedback,
      score: progress.score,
      moves,
      won,
      lost,
      lastCommand: lastCommand?.trim(),
      description: this.infos.has("description") ? describeRoom(this.scene()) : undefined,
      inventory: this.infos.has("inventory") ? describeInventory(this.scene()) : undefined,
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
  const the = (thing: Variable | undefined) => (thing === undefined ? "" : `the ${before.getName(thing)}`);
  switch (verb) {
    case "look":
      return describeRoom(after);
    case "inventory":
      return describeInventory(after);
    case "go":
      return describeRoom(after);
    case "examine":
      return object === undefined ? "" : describeObject(after, object);
    case "take":
      return other === undefined ? `You pick up ${the(object)}.` : `You take ${the(object)} from ${the(other)}.`;
    case "drop":
      return `You put ${the(object)} on the floor.`;
    case "put":
      return `You put ${the(object)} on ${the(other)}.`;
    case "insert":
      return `You put ${the(object)} into ${the(other)}.`;
    case "open":
      return `You open ${the(object)}.${object?.type === "c" ? ` ${describeContents(after, object)}` : ""}`;
    case "eat":
      return `You eat ${the(object)}. It tastes good.`;
    case "close":
    case "lock":
    case "unlock":
      return `You ${verb} ${the(object)}${other === undefined ? "" : ` with ${the(other)}`}.`;
  }
}
