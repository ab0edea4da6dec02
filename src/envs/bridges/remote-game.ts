import { LlamaGymError } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { Game, type GameResult } from "../games/game.js";
import type { Channel } from "./channel.js";

/**
 * A game in another process or on another machine. Its state is there, so it cannot be saved or
 * restored here.
 */
export abstract class RemoteGame extends Game {
  protected constructor(
    protected readonly channel: Channel,
    /** Where the state is, for messages, such as "in Python". */
    private readonly place: string,
  ) {
    super();
  }

  override getState(): JsonValue {
    throw new LlamaGymError("INVALID_STATE", `${this.channel.name} cannot be saved: its state is ${this.place}.`);
  }

  override setState(): void {
    throw new LlamaGymError("INVALID_STATE", `${this.channel.name} cannot be restored: its state is ${this.place}.`);
  }

  override close(): void | Promise<void> {
    return this.channel.close();
  }

  /** Ends the game with a loss of a seat, -1, and 1 shared by the others. */
  protected forfeit(seat: number): GameResult<unknown> {
    const rewards = Array.from({ length: this.seats }, (_, other) => (other === seat ? -1 : 1 / (this.seats - 1)));
    const info = { illegal: seat };
    return { seat: undefined, observation: undefined, info, rewards, terminated: true, truncated: false };
  }
}
