import { invalidArgument } from "../../core/errors.js";
/**
 * A game of several players who move in turn. A game may be asynchronous. Every `info` with a seat to move has
 * `legalActions`, where they can be listed; an action that is not legal is answered as the game's rules say.
 */
export class Game {
    metadata = { renderModes: [] };
    /** Renders the position; `mode` is one of `metadata.renderModes`. */
    render(mode) {
        throw invalidArgument(`${this.constructor.name} cannot render "${mode}".`);
    }
    /** Releases resources. May be called twice. */
    close() { }
}
