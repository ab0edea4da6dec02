import { LlamaGymError } from "../../../errors.js";
import type { Game } from "../game.js";
import { GameView } from "../game-view.js";
import type { Variable } from "../logic/terms.js";
import type { GameState, RequestedInfos, TextGame } from "../text-game.js";
import { describeContents, describeInventory, describeRoom, describeThing } from "./describe.js";
import { parseCommand } from "./parser.js";
import { decide, type Decision } from "./refusals.js";
import { Scene } from "./scene.js";

/** Plays a generated house: its rules decide what happens, and this tells it. */
export class HouseGame implements TextGame {
  private view: GameView;
  private isOver = false;

  constructor(
    private readonly game: Game,
    private readonly infos: RequestedInfos,
  ) {
    this.view = new GameView(game, infos, true);
  }

  start(): GameState {
    this.view = new GameView(this.game, this.infos, true);
    this.isOver = false;
    return this.state(`${this.game.objective}\n\n${describeRoom(this.scene())}`, undefined);
  }

  send(command: string): GameState {
    if (this.isOver) throw new LlamaGymError("INVALID_STATE", "The game is over. Call start() to play it again.");
    const wish = parseCommand(command);
    this.view.beginCommand();
    if (wish === undefined) {
      const said = command.trim() === "" ? "Say what you want to do." : "You cannot do that here: it is no command.";
      return this.state(said, command);
    }
    const before = this.scene();
    const decision = decide(wish, before);
    if ("refusal" in decision) return this.state(decision.refusal, command);
    const { validActions } = this.view.progress;
    const action = validActions.find((candidate) => this.game.commandsOf([candidate])[0] === decision.command);
    // The rules have the last word, should a refusal have been forgotten.
    if (action === undefined) return this.state("That does not work.", command);
    this.view.note(action);
    const told = tell(decision, before, this.scene());
    const { progress } = this.view;
    if (progress.completed) return this.state(`${told}\n\nThat was your task. You have won!`, command);
    if (progress.failed) return this.state(`${told}\n\nNow your task cannot be done any more. You have lost.`, command);
    return this.state(told, command);
  }

  private scene(): Scene {
    return new Scene(this.game, this.view.progress.facts);
  }

  private state(feedback: string, lastCommand: string | undefined): GameState {
    const { progress, moves } = this.view;
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
      ...this.view.state(won, lost),
    };
  }
}

/** What the player is told of an action that was done. */
function tell({ verb, object, other }: Exclude<Decision, { refusal: string }>, before: Scene, after: Scene): string {
  const the = (thing: Variable | undefined) => (thing === undefined ? "" : `the ${before.nameOf(thing)}`);
  switch (verb) {
    case "look":
      return describeRoom(after);
    case "inventory":
      return describeInventory(after);
    case "go":
      return describeRoom(after);
    case "examine":
      return object === undefined ? "" : describeThing(after, object);
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
